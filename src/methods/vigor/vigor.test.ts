import { beforeAll, describe, expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import { lax } from "../../../test/support/lax-task.js";
import { lossAt, made, resolved, settings } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { ScheduledEngine } from "../../../test/support/scheduled-engine.js";
import { options, tablePolicy } from "../../../test/support/tabular.js";
import type { Problem } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import type { Group, Trajectory } from "../../core/trajectory.js";
import { accept, partial, reject, unscored, type Verdict } from "../../core/verdict.js";
import { TableEngine } from "../../engine/table/engine.js";
import { RunReader } from "../../train/store/reader.js";
import { resume, type TrainOptions, train } from "../../train/train.js";
import { groupAdvantages } from "../advantages.js";
import type { Step } from "../contract.js";
import { dapo } from "../dapo/dapo.js";
import { defineMethod } from "../define.js";
import { compose, tableOf } from "../resolve.js";
import { eta, gradientBound, roundsOf, speedUp, variance, variedRounds, vigor, vigorOptions } from "./vigor.js";

type Answer = 0 | 1 | null;
const verdictOf = (r: Answer): Verdict => (r === null ? unscored("worker lost") : r === 1 ? accept() : reject("wrong"));

interface Allocated {
  /** Answers by problem, in the order of the groups. */
  readonly sizes: { readonly [key: string]: number };
  /** Of each round, the problems and how many answers of each. */
  readonly asked: readonly string[];
  readonly groups: readonly Group[];
}

/** The rounds over problems whose member i has this reward. */
async function allocate(rewards: { readonly [key: string]: (member: number) => Answer }, more: object = {}, seed = 0): Promise<Allocated> {
  const problems = Object.keys(rewards).map((key): Problem => ({ key, prompt: [], reference: { state: "gold", version: 0 } }));
  const asked: string[] = [];
  const step = {
    step: 1,
    settings: { ...settings, problems: problems.length },
    key: (meaning: object) => randomKey({ seed, purpose: "", ...meaning }),
    propose: async (n: number) => problems.slice(0, n),
    async *expand({ key }: Problem, n: number, from: number): AsyncGenerator<Trajectory> {
      asked.push(`${key} ${from}+${n}`);
      const members = Array.from({ length: n }, (_, i) => from + i).reverse(); // The last comes first.
      for (const member of members) yield row(key, member, { old: [-1], verdict: verdictOf(rewards[key]?.(member) as Answer) });
    },
  } as unknown as Step;
  const groups: Group[] = [];
  for await (const each of variedRounds(vigorOptions.parse(more)).run(step)) groups.push(each);
  return { asked, groups, sizes: Object.fromEntries(groups.map(({ problem, trajectories }) => [problem.key, trajectories.length])) };
}

const always = (reward: Answer) => () => reward;
const mixed = (member: number): Answer => (member % 2 === 0 ? 1 : 0);
const named = (n: number, of: (i: number) => (member: number) => Answer) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`p${i}`, of(i)]));

describe("rounds", () => {
  it("draw 2, 4, 8 and 16 answers to 8, 4, 2 and 1 problems: 2, 6, 14, 30 a problem, 8 on average", async () => {
    const { sizes, asked } = await allocate(named(8, () => mixed));
    expect(Object.values(sizes).sort((a, b) => a - b)).toEqual([2, 2, 2, 2, 6, 6, 14, 30]);
    expect(asked.map((each) => each.split(" ")[1])).toEqual([
      ...new Array<string>(8).fill("0+2"),
      ...new Array<string>(4).fill("2+4"),
      ...new Array<string>(2).fill("6+8"),
      "14+16",
    ]);
  });

  it("keep the problems whose rewards vary, in the order of the batch", async () => {
    const { sizes, groups } = await allocate({ a: always(0), b: mixed, c: always(1), d: mixed }, { rounds: 2 });
    expect(sizes).toEqual({ a: 2, b: 6, c: 2, d: 6 });
    expect(groups.map(({ problem }) => problem.key)).toEqual(["a", "b", "c", "d"]);
    expect(groups[1]?.trajectories.map(({ member }) => member)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("go by the whole pool: of 4 of 6 and 1 of 6 right, whose variances are 2/9 and 5/36, the first goes on", async () => {
    const of =
      (right: number) =>
      (member: number): Answer =>
        member === 1 || member > 6 - right ? 1 : 0;
    const { sizes } = await allocate({ a: of(1), b: always(0), c: of(4), d: always(0) }, { rounds: 3 });
    expect(sizes).toEqual({ a: 6, b: 2, c: 14, d: 2 });
  });

  it("count scored answers alone, and a partial score for what it is", async () => {
    const { sizes } = await allocate({ a: (member) => (member === 0 ? 1 : null), b: mixed }, { rounds: 2 });
    expect(sizes).toEqual({ a: 2, b: 6 });
    expect(variance([0.5, 1])).toBe(1 / 16);
    expect([variance([]), variance([1]), variance([1, 1]), variance([1, 0, 0, 0])]).toEqual([0, 0, 0, 3 / 16]);
    expect(partial(0.5).kind).toBe("partial");
  });

  it("by success keep the hardest, and at random any, whatever their rewards", async () => {
    const rewards = { a: always(1), b: mixed, c: always(0), d: always(1) };
    expect((await allocate(rewards, { rounds: 2, by: "success" })).sizes).toEqual({ a: 2, b: 6, c: 6, d: 2 });
    const kept = new Set<string>();
    for (let seed = 0; seed < 20; seed++) {
      const { sizes } = await allocate(rewards, { rounds: 2, by: "random" }, seed);
      kept.add(
        Object.keys(sizes)
          .filter((key) => sizes[key] === 6)
          .join(""),
      );
    }
    expect(kept.size).toBeGreaterThan(3); // Of the six pairs.
  });

  it("take exactly B m0 T answers, B m0 a round, where alpha gamma is 1 and the batch divides", () => {
    expect(roundsOf(8, { m0: 2, rounds: 4, alpha: 0.5, gamma: 2 })).toEqual([16, 16, 16, 16]);
    expect(roundsOf(100, { m0: 3, rounds: 3, alpha: 0.1, gamma: 10 })).toEqual([300, 300, 300]);
  });

  it("never take more, whatever the batch and the shares", async () => {
    for (let problems = 1; problems <= 20; problems++) {
      for (const [alpha, gamma] of [
        [0.5, 2],
        [0.3, 3],
        [0.7, 1.4],
        [0.29, 1],
      ] as const) {
        const budget = [0, 1, 2, 3].reduce((sum, i) => sum + problems * 2 * (alpha * gamma) ** i, 0);
        const sizes = roundsOf(problems, { m0: 2, rounds: 4, alpha, gamma });
        const planned = sizes.reduce((a, b) => a + b, 0);
        expect(planned).toBeLessThanOrEqual(budget + 1e-9);
        const { groups } = await allocate(
          named(problems, () => mixed),
          { alpha, gamma },
        );
        expect(groups.reduce((n, { trajectories }) => n + trajectories.length, 0)).toBe(planned);
      }
    }
    expect(roundsOf(100, { m0: 2, rounds: 2, alpha: 0.29, gamma: 1 })).toEqual([200, 58]); // 0.29 x 100 is 28.999… in binary.
  });
});

describe("ties", () => {
  const sizesOf = async (keys: readonly string[], seed = 0) => (await allocate(Object.fromEntries(keys.map((key) => [key, mixed])), {}, seed)).sizes;
  const keys = ["a", "b", "c", "d", "e", "f", "g", "h"];

  it("are broken by keys, so that whoever stands first in the batch has no advantage", async () => {
    const here = await sizesOf(keys);
    expect(await sizesOf([...keys].reverse())).toEqual(here);
    expect(await sizesOf(["d", "a", "h", "c", "g", "b", "f", "e"])).toEqual(here);
  });

  it("fall otherwise for another seed", async () => {
    const largest = async (seed: number) => Object.entries(await sizesOf(keys, seed)).find(([, n]) => n === 30)?.[0];
    const all = await Promise.all(Array.from({ length: 20 }, (_, seed) => largest(seed)));
    expect(new Set(all).size).toBeGreaterThan(4);
  });

  it("are ties though sums round: one right of three is as varied as two", async () => {
    const kept = new Set<string>();
    const one = (member: number): Answer => (member === 0 ? 1 : 0);
    const two = (member: number): Answer => (member === 0 ? 0 : 1);
    for (let seed = 0; seed < 20; seed++) {
      const { sizes } = await allocate({ a: one, b: two }, { m0: 3, rounds: 2 }, seed);
      kept.add(Object.keys(sizes).find((key) => sizes[key] === 9) as string);
    }
    expect(kept.size).toBe(2);
  });
});

describe("what is proved of it", () => {
  it("sum |A| is G sigma for rewards of +-1, and 2 G sigma for 0 and 1", () => {
    for (const [n, right] of [
      [2, 1],
      [6, 1],
      [30, 7],
      [8, 8],
    ] as const) {
      const rows = Array.from({ length: n }, (_, i) => row("p", i, { old: [-1] }));
      const absolute = (low: number): number => {
        const values = rows.map((_, i) => (i < right ? 1 : low));
        const advantages = groupAdvantages(batch(group("p", rows)), { values }, { std: "population", eps: 0 });
        return advantages.reduce((sum, a) => sum + Math.abs(a), 0);
      };
      const share = right / n;
      const sigma = Math.sqrt(share * (1 - share)); // of 0 and 1; of +-1 it is twice as large
      expect(absolute(-1)).toBeCloseTo(n * 2 * sigma, 10);
      expect(absolute(0)).toBeCloseTo(2 * n * sigma, 10);
      // The loss is a mean over G answers: with a ratio's gradient of norm 1 each, its own is at most sum |A| / G.
      expect(absolute(-1) / n).toBeCloseTo(gradientBound(1, 2 * sigma), 10);
      expect(absolute(0) / n).toBeCloseTo(gradientBound(1, sigma, "zero-one"), 10);
    }
    expect(gradientBound(3, 0.5)).toBe(1.5);
  });

  it("eta is 3.2566 for k = 1.1 and 1.8107 for k = 2, as its closed form for alpha gamma = 1", () => {
    const paper = { rounds: 4, alpha: 0.5, gamma: 2 };
    const closed = (k: number, T: number): number => (0.5 ** (-T / k) - 1) / (T * (0.5 ** (-1 / k) - 1));
    expect(eta({ ...paper, k: 1.1 })).toBeCloseTo(3.2566, 4);
    expect(eta({ ...paper, k: 2 })).toBeCloseTo(1.8107, 4);
    for (const k of [1.1, 1.5, 2, 5]) for (const rounds of [1, 2, 4, 7]) expect(eta({ ...paper, k, rounds })).toBeCloseTo(closed(k, rounds), 10);
    // By hand, alpha gamma = 1.5: (1 + 3 / sqrt 2) / (1 + 1.5).
    expect(eta({ k: 2, rounds: 2, alpha: 0.5, gamma: 3 })).toBeCloseTo((1 + 3 / Math.SQRT2) / 2.5, 12);
    expect(speedUp({ ...paper, k: 2 })).toBeCloseTo(1.8107 ** (1 / 3), 4);
  });

  it("eta is 1 for one round, and grows with every further one", () => {
    const at = (rounds: number): number => eta({ k: 1.1, rounds, alpha: 0.5, gamma: 2 });
    expect(at(1)).toBe(1);
    for (let rounds = 1; rounds < 10; rounds++) expect(at(rounds + 1)).toBeGreaterThan(at(rounds));
    expect(() => eta({ k: 1, rounds: 2, alpha: 0.5, gamma: 2 })).toThrow("must be above 1");
  });

  it("problems without variance have no gradient, whatever their number of answers", async () => {
    const pool = (key: string, rewards: readonly Answer[]) =>
      group(
        key,
        rewards.map((r, i) => row(key, i, { old: [-1], verdict: verdictOf(r) })),
      );
    const ragged = batch(pool("a", [1, 1]), pool("b", [1, 0, 0, 0, 0, 0]), pool("c", [0, 0]));
    const { d } = await lossAt(made(vigor), ragged, new Array(10).fill([-1]));
    expect(d.flat().map((x) => x !== 0)).toEqual([false, false, true, true, true, true, true, true, false, false]);
  });
});

describe("weights of problems", () => {
  it("are their answers', or on request all alike: of pools of 2 and 6, each has half", async () => {
    const pool = (key: string, n: number, kind = "main") =>
      group(
        key,
        Array.from({ length: n }, (_, i) => row(key, i, { old: [-1], verdict: verdictOf(i === 0 ? 1 : 0) })),
        kind,
      );
    const groups = [pool("a", 2), pool("b", 6), pool("c", 3, "other")];
    const enrich = resolved(made(vigor, { equal_prompts: true })).stages.enrich[0];
    const alike = (await enrich?.run(groups, {} as Step)) as Group[];
    expect(alike.map(({ weight }) => weight)).toEqual([2, 4 / 6, 1]);
    const shares = async (given: readonly Group[]) => {
      const { c } = await lossAt(made(vigor), batch(...given), new Array(8).fill([-1]));
      const weights = c.weights.map(([w]) => w as number);
      return [weights.slice(0, 2), weights.slice(2)].map((of) => of.reduce((a, b) => a + b, 0));
    };
    expect(await shares(groups.slice(0, 2))).toEqual([expect.closeTo(0.25, 12), expect.closeTo(0.75, 12)]);
    expect(await shares(alike.slice(0, 2))).toEqual([expect.closeTo(0.5, 12), expect.closeTo(0.5, 12)]);
    expect(resolved(made(vigor)).stages.enrich).toEqual([]);
  });
});

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});
const run = (more: Partial<TrainOptions> = {}): TrainOptions =>
  options(model, { task: lax(), problems: 8, steps: 3, method: "vigor", checkpoint: { every: 1, keep_last: 9 }, ...more });
const events = (folder: string) => [...RunReader.open(folder).events()].filter(({ kind }) => kind === "step");
const metricsOf = (folder: string) => events(folder).map(({ data }) => data.metrics as { readonly [name: string]: number });
/** Everything that a run's training went through: its rollouts and its policies. */
const trainedBytes = (folder: string) =>
  Object.fromEntries(Object.entries(snapshot(folder)).filter(([path]) => path.startsWith("rollouts/") || /policy\/|optimizer/.test(path)));

describe("a run", () => {
  it.each([
    ["one round is GRPO with groups of m0", { rounds: 1, m0: 4 }, 4],
    ["rounds that all problems go on to are GRPO with groups of m0 T", { rounds: 3, m0: 2, alpha: 1, gamma: 1 }, 6],
  ] as const)("of %s, bit for bit", async (_, own, size) => {
    const vigorous = run({ method: { name: "vigor", options: own } });
    const plain = run({ method: "grpo", group: size });
    await train(vigorous);
    await train(plain);
    const bytes = trainedBytes(plain.out);
    expect(Object.keys(bytes).some((path) => path.endsWith("policy/model.safetensors"))).toBe(true);
    expect(trainedBytes(vigorous.out)).toEqual(bytes);
  });

  it("books every answer as trained, and says what the rounds found", async () => {
    const { folder } = await train(run());
    let answers = 0;
    for (const { step, data } of events(folder)) {
      const metrics = data.metrics as { readonly [name: string]: number };
      const { sampled, rollouts } = data.ledger as { readonly sampled: { readonly [purpose: string]: number }; readonly rollouts: number };
      answers += metrics.rows as number;
      expect(metrics).toMatchObject({ rows: 64, "vigor.largest": 30 });
      expect(metrics["vigor.variance_answers"]).toBeGreaterThan(metrics["vigor.variance"] as number);
      expect(rollouts).toBe(answers);
      expect(sampled.discarded).toBe(0);
      const sizes = (await RunReader.open(folder).groups(step)).map(({ group }) => group.trajectories.length);
      expect(sizes.sort((a, b) => a - b)).toEqual([2, 2, 2, 2, 6, 6, 14, 30]);
    }
  });

  it.each([0, 1])("has the same bytes with overlap %d whatever arrives first, and resumed", async (overlap) => {
    const whole = run({ overlap });
    await train(whole);
    const bytes = snapshot(whole.out);
    for (const schedule of ["samples first", "keyed"] as const) {
      const other = run({ overlap, engine: new ScheduledEngine(schedule) });
      await train(other);
      expect(snapshot(other.out)).toEqual(bytes);
    }
    const controller = new AbortController();
    const part = run({ overlap, signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === 1 && controller.abort() });
    await train(part);
    await resume(part.out, { task: lax() });
    expect(snapshot(part.out)).toEqual(bytes);
  });

  it("trains on the same with verifiers in threads of their own", async () => {
    const [within, threads] = [run({ steps: 1 }), run({ steps: 1, task: "test/support/lax-task.ts", verifier_workers: 2 })];
    await train(within);
    await train(threads);
    expect(trainedBytes(threads.out)).toEqual(trainedBytes(within.out));
  });

  it("asks for no answer of a round before all of the one before are in", async () => {
    const open = new Set<number>();
    const rounds: number[] = [];
    class Watched extends TableEngine {
      override async *sample(...call: Parameters<TableEngine["sample"]>): ReturnType<TableEngine["sample"]> {
        rounds.push(call[0].length);
        expect(open.size).toBe(0);
        open.add(rounds.length);
        yield* super.sample(...call);
        open.clear();
      }
    }
    await train(run({ steps: 1, engine: new Watched() }));
    expect(rounds).toEqual([16, 16, 16, 16]);
  });
});

describe("in a composition", () => {
  it("with DAPO problems without signal are replaced by others, which have rounds of their own", async () => {
    const rows = tableOf(resolved(compose(made(dapo), made(vigor))));
    expect(rows.find(({ slot }) => slot === "allocate")).toMatchObject({
      from: "vigor",
      how: "owns",
      over: [],
      about: expect.stringContaining("within that of dapo ("),
    });
    const { folder } = await train(run({ method: ["dapo", "vigor"], problems: 4, steps: 4 }));
    let dropped = 0;
    for (const { step, data } of events(folder)) {
      const metrics = data.metrics as { readonly [name: string]: number };
      dropped += metrics["dapo.dropped"] as number;
      if (metrics.groups === 4) expect(metrics.groups_silent).toBe(0);
      const { sampled } = data.ledger as { readonly sampled: { readonly [purpose: string]: number } };
      expect((sampled.discarded as number) > 0).toBe(dropped > 0);
      for (const { group } of await RunReader.open(folder).groups(step)) expect([2, 6, 14]).toContain(group.trajectories.length);
    }
    expect(dropped).toBeGreaterThan(0);
    expect(metricsOf(folder).length).toBe(4);
  });

  it("an explicit number of refills is DAPO's, and does not take the rounds away", () => {
    const rows = tableOf(resolved(compose(made(dapo, { max_refills: 3 }), made(vigor))));
    expect(rows.find(({ slot }) => slot === "allocate")).toMatchObject({ from: "vigor", how: "owns", about: expect.stringContaining("3 refills at most") });
  });

  it("another owner of allocation is refused, both named, and so are a tree, and references that are withheld", () => {
    const sara = { name: "sara", slots: { allocate: { owns: { appends: true, async *run() {} } } } };
    expect(() => compose(made(vigor), sara)).toThrow("method vigor+sara: both own the slot allocate; leave one of the two out");
    const tree = { name: "tree", slots: { expand: { owns: { appendable: false, async *run() {} } } } };
    expect(() => resolved(compose(tree, made(vigor)))).toThrow("groups of tree cannot be appended to, and vigor allocates in rounds that append");
    const blind = defineMethod({ name: "blind", make: () => ({ references: "withheld", slots: {} }) });
    expect(() => compose(made(blind), made(vigor))).toThrow("blind withholds references, and vigor goes by verdicts");
  });
});

it("has the paper's numbers as defaults", () => {
  expect(vigorOptions.parse({})).toEqual({ m0: 2, rounds: 4, alpha: 0.5, gamma: 2, by: "variance", equal_prompts: false });
});
