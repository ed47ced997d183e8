import { describe, expect, it } from "vitest";
import { rewarded } from "../../test/support/batch.js";
import { settings } from "../../test/support/method.js";
import type { Json } from "../core/json.js";
import type { Note } from "../core/note.js";
import { note } from "../core/note.js";
import { clip } from "../losses/clip.js";
import { Cells } from "./cell.js";
import { coefficientsOf } from "./coefficients.js";
import type { Lab, Method, Slots } from "./contract.js";
import type { Credit } from "./credit.js";
import { grpo, grpoOptions } from "./grpo/grpo.js";
import { keepTokens } from "./keep.js";
import { checkNeeds } from "./needs.js";
import { compose, overruled, resolve, tableOf, tableText } from "./resolve.js";

const base = grpo.make(grpoOptions.parse({}), new Cells().cell("grpo", grpo.initial));
const method = (name: string, slots: Slots, more: Partial<Method> = {}): Method => ({ name, slots, ...more });
const loss = clip({ clip_low: 0.1, clip_high: 0.1 });
const other = clip({ clip_low: 0.3, clip_high: 0.3 });

describe("a slot with one answer", () => {
  it("runs the owner over any preference, the right-most preference over others, and GRPO's when nobody answers", () => {
    const prefersA = method("a", { loss: { prefers: loss } });
    const prefersB = method("b", { loss: { prefers: other } });
    const owns = method("o", { loss: { owns: loss } });
    expect(resolve(compose(prefersA, prefersB), base).one.loss).toMatchObject({ from: "b", how: "prefers", over: ["a"] });
    expect(resolve(compose(owns, prefersB), base).one.loss).toMatchObject({ from: "o", how: "owns", over: ["b"] });
    expect(resolve(prefersA, base).one.credit).toMatchObject({ from: "grpo", how: "default", over: [] });
  });

  it("runs what the user set over an owner", () => {
    const composed = compose(method("o", { loss: { owns: loss } }), method("options", { loss: { sets: other } }));
    expect(resolve(composed, base).one.loss).toMatchObject({ from: "options", how: "sets", over: ["o"], value: other });
  });

  it("has answers that are laid around an owner's, and around nothing else", async () => {
    const doubled: Slots = {
      aggregate: {
        prefers: () => [new Float64Array([1])],
        around:
          (owner) =>
          (...given) =>
            owner(...given).map((w) => w.map((x) => 2 * x)),
        about: "twice",
      },
    };
    const set: Slots = {
      aggregate: {
        sets: () => [new Float64Array([1])],
        around:
          (owner) =>
          (...given) =>
            owner(...given).map((w) => w.map((x) => x + 1)),
      },
    };
    const owner = method("o", { aggregate: { owns: () => [new Float64Array([5])], about: "fives" } });
    const of = (...methods: Method[]) => resolve(compose(...methods), base).one.aggregate;
    const weightsOf = ({ value }: ReturnType<typeof of>) => value({ step: 1, groups: [] }, { rows: new Uint8Array(), tokens: [] }, settings).map((w) => [...w]);
    const both = of(method("d", doubled), method("s", set), owner);
    expect(both).toMatchObject({ from: "o", how: "owns", over: [], about: "fives; within that of d (twice); within that of s" });
    expect(weightsOf(both)).toEqual([[11]]);
    expect(weightsOf(of(owner, method("d", doubled)))).toEqual([[10]]);
    expect(of(method("d", doubled), method("p", { aggregate: { prefers: () => [] } }))).toMatchObject({ from: "p", how: "prefers", over: ["d"] });
    expect(weightsOf(of(method("d", doubled)))).toEqual([[1]]);
  });

  it("with two owners is an error that names both", () => {
    expect(() => compose(method("bpo", { loss: { owns: loss } }), method("hispo", { loss: { owns: other } }))).toThrow(
      "method bpo+hispo: both own the slot loss; leave one of the two out",
    );
  });
});

describe("stages", () => {
  const stage = (level?: "group" | "trajectory" | "turn" | "token") => ({ level, run: (_: unknown, c: Credit) => c });

  it("run coarse level first, then in the order of composition", () => {
    const a = method("a", { shape: [stage("token"), stage("trajectory")] });
    const b = method("b", { shape: stage("trajectory") });
    const c = method("c", { shape: stage("token") });
    expect(resolve(compose(a, b, c), base).stages.shape.map((s) => `${s.from} ${s.level}`)).toEqual(["a trajectory", "b trajectory", "a token", "c token"]);
    expect(resolve(compose(c, b, a), base).stages.shape.map((s) => `${s.from} ${s.level}`)).toEqual(["b trajectory", "a trajectory", "c token", "a token"]);
  });

  it("masks intersect", async () => {
    const first = method("first", { keep: { run: (b) => keepTokens(b, (_r, _t, i) => i !== 0) } });
    const second = method("second", { keep: { run: (b) => keepTokens(b, (_r, _t, i) => i !== 1) } });
    const c = await coefficientsOf(resolve(compose(first, second), base), rewarded([1, 0, 0]), {} as Lab);
    expect(c.mask.policy.map((m) => m[0])).toEqual([0, 0, 1]);
    expect(c.mask.terms.map((m) => m[0])).toEqual([1, 1, 1]);
  });

  it("of shape leave the coefficients after each in the waterfall", async () => {
    const half = method("half", {
      shape: {
        level: "trajectory",
        run: (_, c) =>
          c.scaled(
            "trajectory",
            c.trajectory.map(() => 0.5),
          ),
      },
    });
    const c = await coefficientsOf(resolve(compose(base, half), base), rewarded([1, 0]), {} as Lab);
    const [first, second] = c.waterfall;
    expect([first?.method, second?.method]).toEqual(["grpo", "half"]);
    expect(second?.token[0]?.[0]).toBe((first?.token[0]?.[0] as number) / 2);
  });
});

describe("compose", () => {
  it("of one method is that method, and of compositions is the composition of all parts", () => {
    const [a, b, c] = ["a", "b", "c"].map((name) => method(name, {})) as [Method, Method, Method];
    expect(compose(a)).toBe(a);
    expect(compose(compose(a, b), c).name).toBe("a+b+c");
    expect(compose(a, compose(b, c)).parts).toEqual([a, b, c]);
  });

  it("refuses a forbidden slot in use, and silences a preference for it", () => {
    const pair = method("pair", { loss: { owns: loss } }, { forbids: ["keep", "aggregate"] });
    expect(() => compose(pair, method("gmts", { keep: { run: (b) => keepTokens(b, () => true) } }))).toThrow(
      "method pair+gmts: pair forbids the slot keep, which gmts fills",
    );
    const preferring = method("dapo", { aggregate: { prefers: () => [] } });
    expect(resolve(compose(preferring, pair), base).one.aggregate).toMatchObject({ from: "grpo", how: "default" });
  });

  it("refuses a note that nobody writes, unless it has a default", () => {
    const needy = note<Json>("inclusion") as Note<Json>;
    const reader = method("pair", {}, { reads: [needy] });
    expect(() => compose(reader)).toThrow(
      'method pair: it reads the note "inclusion", which no method of pair writes; compose it with a method that writes the note',
    );
    expect(() => compose(reader, method("writer", {}, { writes: [needy] }))).not.toThrow();
    expect(() => compose(method("sara", {}, { reads: [note<Json>("prior", [1, 1])] }))).not.toThrow();
  });

  it("refuses a filter on reward variance beside a method that learns from equal rewards", () => {
    expect(() => compose(method("dapo", {}, { signal: "reward-variance" }), method("cpo", {}, { signal: "beyond" }))).toThrow(
      "dapo drops groups whose rewards are equal, and cpo learns from them",
    );
  });

  it("refuses a method that goes by verdicts beside one that withholds references", () => {
    expect(() => compose(method("om-grpo", {}, { references: "withheld" }), method("vigor", {}, { references: "judged" }))).toThrow(
      "method om-grpo+vigor: om-grpo withholds references, and vigor goes by verdicts; leave one of the two out",
    );
  });

  it("refuses a method named twice, and no method", () => {
    expect(() => compose(base, base)).toThrow("grpo is named twice");
    expect(() => compose()).toThrow("none was given; name at least one, such as grpo");
  });

  it("refuses groups that cannot be appended to under an allocator that appends", () => {
    const tree = method("tree", { expand: { owns: { appendable: false, run: async function* () {} } } });
    const vigor = method("vigor", { allocate: { owns: { appends: true, run: async function* () {} } } });
    expect(() => resolve(compose(tree, vigor), base)).toThrow("groups of tree cannot be appended to, and vigor allocates in rounds that append");
  });
});

describe("the resolved table", () => {
  it("names every slot with one answer and every stage, as data and as text", () => {
    const dapo = method("dapo", { loss: { prefers: loss, about: "clip" }, bounds: { level: "trajectory", about: "clip higher", run: (_b, _c, x) => x } });
    const hispo = method("hispo", { loss: { owns: other, about: "segments" } });
    const resolved = resolve(compose(dapo, hispo), base);
    expect(tableOf(resolved).find((r) => r.slot === "loss")).toEqual({
      seam: "loss",
      slot: "loss",
      from: "hispo",
      how: "owns",
      over: ["dapo"],
      about: "segments",
    });
    const text = tableText(resolved).split("\n");
    expect(text.length).toBe(10);
    expect(text.find((line) => line.startsWith("loss.bounds"))).toMatch(/^loss\.bounds +dapo +trajectory level: clip higher$/);
    expect(text.find((line) => line.startsWith("loss "))).toMatch(/^loss +hispo \(owns\), over dapo +segments$/);
    expect(text.find((line) => line.startsWith("credit "))).toMatch(/^credit +grpo \(default\)/);
  });
});

describe("whose answers stand over whose", () => {
  it("is said once for a pair, with all slots; of a method alone, and of answers to different slots, there is nothing to say", () => {
    const aggregate = { prefers: () => [] };
    const a = method("a", { loss: { prefers: loss }, aggregate });
    const b = method("b", { loss: { owns: other }, aggregate });
    const c = method("c", { loss: { prefers: loss } });
    expect(overruled(resolve(compose(a, b), base))).toEqual(["loss and aggregate of b, over a"]);
    expect(overruled(resolve(compose(a, b, c), base))).toEqual(["loss of b, over a and c", "aggregate of b, over a"]);
    expect(overruled(resolve(a, base))).toEqual([]);
    expect(overruled(resolve(compose(c, method("d", { aggregate })), base))).toEqual([]);
  });
});

describe("needs", () => {
  const engine = {
    name: "openai",
    has: new Set(["sample", "score.top-k"] as const),
    lacks: { train: "a completion server has no gradients" },
    fingerprint: {},
  };
  const need = (oneOf: NonNullable<Method["needs"]>[number]["oneOf"]) => method("m", {}, { needs: [{ for: "distillation", oneOf }] });

  it("take the first way that can be gone and tell the difference from the paper", () => {
    const m = need([{ capabilities: ["score.full"] }, { capabilities: ["score.top-k"], difference: "top-k targets in place of full ones" }]);
    expect(checkNeeds(m, engine, new Set(["policy"]))).toEqual([{ method: "m", for: "distillation", difference: "top-k targets in place of full ones" }]);
  });

  it("that cannot be met name what is missing", () => {
    expect(() => checkNeeds(need([{ capabilities: ["train"] }]), engine, new Set())).toThrow(
      "method m: distillation needs train of the engine openai (a completion server has no gradients); use another engine, or turn the option off",
    );
    expect(() => checkNeeds(need([{ roles: ["teacher"] }]), engine, new Set(["policy"]))).toThrow(
      "distillation needs a role named teacher; give the run that role",
    );
  });
});
