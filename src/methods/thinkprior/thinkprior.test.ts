import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { row } from "../../../test/support/batch.js";
import { lax } from "../../../test/support/lax-task.js";
import { made, resolved, settings as runSettings } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { ScheduledEngine } from "../../../test/support/scheduled-engine.js";
import { options, scratch, tablePolicy } from "../../../test/support/tabular.js";
import type { Problem } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import { accept, reject, unscored } from "../../core/verdict.js";
import type { SampleRequest } from "../../engine/contract.js";
import { TableEngine } from "../../engine/table/engine.js";
import { RunReader } from "../../train/store/reader.js";
import { resume, type TrainOptions, train } from "../../train/train.js";
import { Cells } from "../cell.js";
import type { Lab, Outcome, ProblemSource } from "../contract.js";
import { dapo } from "../dapo/dapo.js";
import { compose } from "../resolve.js";
import { vigor } from "../vigor/vigor.js";
import { initialState, mostLearnable, type ThinkPriorState } from "./select.js";
import { expectedLearnability, posterior, thinkprior, thinkpriorOptions } from "./thinkprior.js";

const paper = { kappa: 4, epsilon: 1e-3, flat: false };
const problem = (key: string): Problem => ({ key, prompt: [{ role: "user", content: key }], reference: { state: "gold", version: 0 } });
const keys = (problems: readonly Problem[]) => problems.map((p) => p.key);
const labOf = (pool: readonly Problem[], step = 1, more: Partial<ProblemSource> = {}, seed = 0): Lab =>
  ({
    step,
    settings: runSettings,
    problems: { size: pool.length, get: (i: number) => pool[i], ...more },
    key: (meaning: object) => randomKey({ seed, purpose: "", ...meaning }),
  }) as unknown as Lab;
const cellOf = (state: Partial<ThinkPriorState>) => new Cells().cell("thinkprior", { ...initialState, ...state } as ThinkPriorState);
const outcome = (key: string, scores: readonly (0 | 1 | null)[], used = true): Outcome => ({
  problem: problem(key),
  used,
  trajectories: scores.map((score, i) => row(key, i, { old: [-1], verdict: score === null ? unscored("lost") : score === 1 ? accept() : reject("no") })),
});

describe("selection", () => {
  const pool = ["a", "b", "c", "d", "e"].map(problem);
  const prior = { a: 0, b: 0.5, c: 1, d: 0.25, e: 0.5 };

  it("takes the problems with the largest expectation, ties in the order of the pool", async () => {
    const select = mostLearnable(cellOf({ prior }), paper, 0);
    expect(keys(await select.propose(4, labOf(pool)))).toEqual(["b", "e", "d", "a"]);
  });

  it("goes on with the next ones in the same step, until none is left, and begins anew in the next", async () => {
    const select = mostLearnable(cellOf({ prior }), paper, 0);
    expect(keys(await select.propose(2, labOf(pool)))).toEqual(["b", "e"]);
    expect(keys(await select.propose(2, labOf(pool)))).toEqual(["d", "a"]);
    expect(keys(await select.propose(3, labOf(pool)))).toEqual(["c"]);
    expect(await select.propose(1, labOf(pool))).toEqual([]);
    expect(keys(await select.propose(2, labOf(pool, 2)))).toEqual(["b", "e"]);
  });

  it("adds right and wrong answers to the prior: 4 x 1/2 + 0.001 and 3 of 4 right are 5.001 and 3.001", () => {
    const state = cellOf({ prior });
    mostLearnable(state, paper, 0).learn([outcome("b", [1, 1, 0, 1]), outcome("e", [0, null, 0])]);
    expect(posterior(state.get(), "b", paper)).toEqual([2.001 + 3, 2.001 + 1]);
    expect(posterior(state.get(), "e", paper)).toEqual([2.001, 2.001 + 2]); // What has no score counts for nothing.
    expect(posterior(state.get(), "c", paper)).toEqual([4.001, 0.001]);
    expect(posterior(state.get(), "b", { ...paper, flat: true })).toEqual([4, 2]);
    expect(posterior(cellOf({ prior: { a: null } }).get(), "a", paper)).toEqual([2.001, 2.001]);
  });

  it("learns from groups that were dropped, and does not care in which order", () => {
    const outcomes = [outcome("a", [1, 1]), outcome("b", [1, 0], false), outcome("a", [0, 1])];
    const after = [outcomes, [...outcomes].reverse()].map((order) => {
      const state = cellOf({ prior });
      for (const each of order) mostLearnable(state, paper, 0).learn([each]);
      return state.get().counts;
    });
    expect(after[0]).toEqual({ a: [3, 1], b: [1, 1] });
    expect(after[1]).toEqual(after[0]);
  });

  it("counts answers that were drawn, trained on, and in groups without signal", () => {
    const state = cellOf({ prior });
    mostLearnable(state, paper, 0).learn([outcome("a", [1, 1, 1], false), outcome("b", [1, 0]), outcome("c", [0, 0, null, 0])]);
    expect(state.get().spent).toEqual({ generated: 9, used: 6, silent: 7 });
  });

  it("holds keys that objects have by themselves", () => {
    const odd = ["__proto__", "constructor"].map(problem);
    const state = cellOf({ prior: JSON.parse('{"__proto__": 0.5, "constructor": 1}') as ThinkPriorState["prior"] });
    mostLearnable(state, paper, 0).learn(odd.map(({ key }) => outcome(key, [1, 0])));
    expect(odd.map(({ key }) => posterior(state.get(), key, paper))).toEqual([
      [3.001, 3.001],
      [5.001, 1.001],
    ]);
  });

  it("gives a share of the places to any problem, one that is locked out too", async () => {
    const many = Array.from({ length: 40 }, (_, i) => problem(`p${i}`));
    const locked = Object.fromEntries(many.map(({ key }, i) => [key, i < 20 ? 0.5 : 0]));
    const found = async (explore: number) => {
      const select = mostLearnable(cellOf({ prior: locked }), paper, explore);
      let out = 0;
      for (let step = 1; step <= 100; step++) out += (await select.propose(8, labOf(many, step))).filter(({ key }) => locked[key] === 0).length;
      return out;
    };
    expect(await found(0)).toBe(0);
    // 800 places, half of what is drawn evenly: about 0.05 x 800 x 20/36 at the most, in four standard deviations of 800 x 0.025.
    const some = await found(0.05);
    expect(Math.abs(some - 21)).toBeLessThan(4 * Math.sqrt(21));
    expect(await found(0.05)).toBe(some);
    const all = await found(1);
    expect(Math.abs(all - 400)).toBeLessThan(4 * Math.sqrt(200));
  });

  it("gives each place of a mixture to the best problem of the source that is drawn for it", async () => {
    const mixture = [
      { name: "one", weight: 3, indices: [0, 1] },
      { name: "two", weight: 1, indices: [2, 3, 4] },
    ];
    const select = mostLearnable(cellOf({ prior }), paper, 0);
    const first = { one: 0, two: 0 };
    for (let step = 1; step <= 400; step++) {
      const [key] = keys(await select.propose(1, labOf(pool, step, { mixture })));
      expect(["b", "e"]).toContain(key); // The best of either.
      first[key === "b" ? "one" : "two"]++;
    }
    expect(Math.abs(first.one - 300)).toBeLessThan(4 * Math.sqrt(400 * 0.75 * 0.25));
    const whole = keys(await select.propose(40, labOf(pool, 401, { mixture })));
    expect(new Set(whole)).toEqual(new Set(["a", "b", "c", "d", "e"])); // Each once, though places went to sources that had none left.
  });
});

let model: string;
let anchor: string;
/** Keys in the order of the pool. */
let pool: readonly string[];
beforeAll(async () => {
  model = await tablePolicy();
  anchor = await tablePolicy({ init: 1, order: 3 }, 5);
  const { folder } = await train(run({ problems: 12, steps: 1, roles: {}, method: flat }));
  pool = stateAt(folder, 1).taken.keys;
});
const run = (more: Partial<TrainOptions> = {}): TrainOptions =>
  options(model, { task: lax(), steps: 3, method: "thinkprior", roles: { anchor: { model: anchor } }, checkpoint: { every: 1, keep_last: 9 }, ...more });
const flat = { name: "thinkprior", options: { prior: "flat" } };
const events = (folder: string) => [...RunReader.open(folder).events()].filter(({ kind }) => kind === "step");
const metricsOf = (folder: string) => events(folder).map(({ data }) => data.metrics as { readonly [name: string]: number });
const ledgers = (folder: string) =>
  events(folder).map(({ data }) => data.ledger as { readonly sampled: { readonly [purpose: string]: number }; readonly rollouts: number });
const stateAt = (folder: string, step: number): ThinkPriorState =>
  (RunReader.open(folder).checkpoints.read(step).state as { readonly cells: { readonly thinkprior: ThinkPriorState } }).cells.thinkprior;
const problemsOf = async (folder: string, step: number) => (await RunReader.open(folder).groups(step)).map(({ group }) => group.problem.key).sort();
/** The best of a state, computed anew. */
const best = ({ prior, counts }: ThinkPriorState, n: number, group: number) =>
  pool
    .map((key, i) => ({ key, i, u: expectedLearnability(...posterior({ prior, counts }, key, paper), group) }))
    .sort((a, b) => b.u - a.u || a.i - b.i)
    .slice(0, n)
    .map(({ key }) => key)
    .sort();

describe("a run", () => {
  it("asks the anchor 16 times for each problem before step 1, and takes the best by what it knows at every step", async () => {
    const asked: SampleRequest[] = [];
    class Watched extends TableEngine {
      override async *sample(...call: Parameters<TableEngine["sample"]>): ReturnType<TableEngine["sample"]> {
        asked.push(...call[0].filter(({ weights }) => weights.role === "anchor"));
        yield* super.sample(...call);
      }
    }
    const { folder } = await train(run({ engine: new Watched() }));
    expect(asked.length).toBe(16 * 12);
    expect(new Set(asked.map(({ key }) => key.join())).size).toBe(16 * 12);
    const { prior } = stateAt(folder, 0);
    expect(Object.keys(prior).length).toBe(12);
    expect(Object.values(prior).every((rate) => Number.isInteger(16 * (rate as number)))).toBe(true);
    expect(new Set(Object.values(prior)).size).toBeGreaterThan(3);
    for (const step of [1, 2, 3]) {
      expect(await problemsOf(folder, step)).toEqual(best(stateAt(folder, step - 1), 4, 4));
      const { counts } = stateAt(folder, step);
      expect(Object.values(counts).reduce((sum, [right, wrong]) => sum + right + wrong, 0)).toBe(16 * step);
    }
    expect(ledgers(folder)[0]?.sampled.aux).toBeGreaterThanOrEqual(16 * 12); // A token each at least.
    expect(metricsOf(folder)[0]).toMatchObject({ "thinkprior.generated": 16, "thinkprior.used": 16 });
  });

  it("knows nothing with a flat prior, needs no anchor, and over the whole pool is GRPO bit for bit", async () => {
    const all = { problems: 12, roles: {} };
    const own = await train(run({ ...all, method: flat }));
    const plain = await train(run({ ...all, method: "grpo" }));
    const bytes = (folder: string) => Object.fromEntries(Object.entries(snapshot(folder)).filter(([path]) => /^rollouts\/|policy\/|optimizer/.test(path)));
    expect(Object.keys(bytes(plain.folder)).some((path) => path.endsWith("policy/model.safetensors"))).toBe(true);
    expect(bytes(own.folder)).toEqual(bytes(plain.folder));
    expect(metricsOf(own.folder)[0]?.["thinkprior.learnability"]).toBeCloseTo(1 - 2 / 5, 12);
  });

  it("deals the anchor's rates out to other problems on request", async () => {
    const [own, dealt] = await Promise.all(
      [{}, { prior: "shuffled" }].map(async (more) => stateAt((await train(run({ steps: 1, method: { name: "thinkprior", options: more } }))).folder, 0).prior),
    );
    expect(dealt).not.toEqual(own);
    expect(Object.values(dealt as object).sort()).toEqual(Object.values(own as object).sort());
  });

  it("takes a profile in place of the anchor, whoever made it", async () => {
    const file = join(scratch(), "profile.jsonl");
    const line = (i: number) => JSON.stringify({ key: `p${i}`, pass: i % 3 === 0 ? 0.5 : i === 1 ? null : 0, scored: 8 });
    writeFileSync(file, [JSON.stringify({ touchstone_profile: 1, model: "m" }), ...Array.from({ length: 12 }, (_, i) => line(i))].join("\n"));
    const profiled = run({ steps: 1, roles: {}, method: { name: "thinkprior", options: { profile: file } } });
    const { folder } = await train(profiled);
    expect(await problemsOf(folder, 1)).toEqual(
      pool
        .filter((key) => key === "p1" || Number(key.slice(1)) % 3 === 0)
        .slice(0, 4)
        .sort(),
    ); // p1 is unknown: 1/2.
    expect(ledgers(folder)[0]?.sampled.aux).toBe(0);
    writeFileSync(file, `${line(0)}\n`);
    await expect(train(run({ roles: {}, method: { name: "thinkprior", options: { profile: file } } }))).rejects.toThrow(
      /profile\.jsonl: it does not have .*; give a file that touchstone profile wrote of the problems that are trained on/,
    );
  });

  it.each([0, 1])("has the same bytes with overlap %d whatever arrives first, and resumed", async (overlap) => {
    const whole = run({ steps: 5, overlap, method: ["dapo", "thinkprior"] });
    await train(whole);
    const bytes = snapshot(whole.out);
    for (const schedule of ["samples first", "keyed"] as const) {
      const other = run({ steps: 5, overlap, method: ["dapo", "thinkprior"], engine: new ScheduledEngine(schedule) });
      await train(other);
      expect(snapshot(other.out)).toEqual(bytes);
    }
    for (const step of [1, 3]) {
      const controller = new AbortController();
      const onProgress: TrainOptions["onProgress"] = (p) => p.kind === "step" && p.step === step && controller.abort();
      const part = run({ steps: 5, overlap, method: ["dapo", "thinkprior"], signal: controller.signal, onProgress });
      await train(part);
      await resume(part.out, { task: lax() });
      expect(snapshot(part.out)).toEqual(bytes);
    }
  });

  it("asks the anchor once in a run of several stages", async () => {
    const { method, ...rest } = run();
    const stages = [1, 1].map((steps) => ({ method: method as string, steps }));
    const { folder } = await train({ ...rest, stages, steps: 2 });
    const aux = ledgers(folder).map(({ sampled }) => sampled.aux);
    expect(aux[1]).toBe(aux[0]);
  });
});

describe("with DAPO", () => {
  it("what replaces groups without signal are the next in order, and what was dropped is learnt", async () => {
    const { folder } = await train(run({ group: 3, steps: 4, method: [{ name: "dapo", options: { overlong_punishment: 0 } }, "thinkprior"] }));
    let dropped = 0;
    for (const { step, data } of events(folder)) {
      const metrics = data.metrics as { readonly [name: string]: number };
      const drawn = 4 + (metrics["dapo.dropped"] as number);
      dropped += metrics["dapo.dropped"] as number;
      const { taken, counts } = stateAt(folder, step);
      expect([...taken.keys].sort()).toEqual(best(stateAt(folder, step - 1), drawn, 3));
      const batch = await problemsOf(folder, step);
      expect(batch.every((key) => taken.keys.includes(key))).toBe(true);
      expect(metrics).toMatchObject({ "thinkprior.generated": 3 * drawn, "thinkprior.used": 12, "thinkprior.silent": 3 * (drawn - 4), groups_silent: 0 });
      const { rollouts } = data.ledger as { readonly rollouts: number };
      expect(Object.values(counts).reduce((sum, [right, wrong]) => sum + right + wrong, 0)).toBe(rollouts);
    }
    expect(dropped).toBeGreaterThan(0);
  });
});

describe("what cannot work is refused", () => {
  it("a run without an anchor", async () => {
    await expect(train(run({ roles: {} }))).rejects.toThrow(
      "method thinkprior: the prior needs a role named anchor; give the run that role, or turn the option off",
    );
  });

  it("problems with weights of their own", async () => {
    const setup = resolved(made(thinkprior)).stages.setup[0];
    await expect(setup?.run({ problems: { weights: [1] } } as unknown as Lab)).rejects.toThrow(
      "method thinkprior: problems have weights, which say how often each comes up, and thinkprior decides that by their learnability; set profile.weight to equal",
    );
  });

  it("conversations, for which there is no pass of the anchor", async () => {
    const setup = resolved(made(thinkprior)).stages.setup[0];
    await expect(setup?.run({ ...labOf([problem("a")]), conversational: true } as Lab)).rejects.toThrow("give the option profile");
  });

  it("a profile beside a flat prior, another owner of the selection, and references that are withheld", () => {
    expect(() => made(thinkprior, { prior: "flat", profile: "p.jsonl" })).toThrow("the prior is flat and does not read it");
    const leeps = { name: "leeps", slots: { select: { owns: { propose: () => [], learn() {} } } } };
    expect(() => compose(made(thinkprior), leeps)).toThrow("method thinkprior+leeps: both own the slot select; leave one of the two out");
    expect(() => compose(made(thinkprior), { name: "blind", references: "withheld", slots: {} })).toThrow("thinkprior goes by verdicts");
    expect(() => compose(made(dapo), made(vigor), made(thinkprior))).not.toThrow();
  });
});

it("has the paper's numbers as defaults", () => {
  expect(thinkpriorOptions.parse({})).toEqual({ prior: "anchor", samples: 16, kappa: 4, epsilon: 1e-3, explore: 0 });
});
