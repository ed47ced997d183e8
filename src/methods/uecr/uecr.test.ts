import { describe, expect, it } from "vitest";
import { batch, group, rewarded, row, scores } from "../../../test/support/batch.js";
import { type Asked, hintedLab } from "../../../test/support/hinted.js";
import { lax } from "../../../test/support/lax-task.js";
import { lossAt, made, resolved } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { options as runOf, tablePolicy } from "../../../test/support/tabular.js";
import { plainContext } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Batch } from "../../core/trajectory.js";
import { accept, reject, unscored } from "../../core/verdict.js";
import { TableEngine } from "../../engine/table/engine.js";
import { enumerate } from "../../engine/table/enumerate.js";
import { RunReader } from "../../train/store/reader.js";
import { resume, type TrainOptions, train } from "../../train/train.js";
import { coefficientsOf } from "../coefficients.js";
import type { Lab } from "../contract.js";
import { rowsOf } from "../credit.js";
import { gapo } from "../gapo/gapo.js";
import { grpo } from "../grpo/grpo.js";
import { keepTokens } from "../keep.js";
import { compose } from "../resolve.js";
import { redistribution, type Told } from "./teacher.js";
import { scoreNote, taskNote, uecr, uecrOptions } from "./uecr.js";

/** Without the KL, of which losses know. */
const free = (options: object = {}) => made(uecr, { kl_coef: 0, ...options });
const base = { std: "population", eps: 1e-6 };

const old = [[-1, -2], [-3]];
const pair = (): Batch => batch(group("p", [row("p", 0, { old: old[0], verdict: accept() }), row("p", 1, { old: old[1], verdict: reject("no") })]));

interface Said {
  readonly logp: readonly (readonly number[])[];
  readonly entropy?: readonly (readonly number[])[];
}
/** A lab in which the teacher says this of the rows, and the policy itself says `own`. */
const taught = ({ logp, entropy }: Said, own: readonly (readonly number[])[] = [], asked: Asked[] = []): Lab =>
  hintedLab(({ sequence }, i) => {
    if (sequence.weights.role === "policy") return scores(own[i] as number[]);
    return scores(logp[i] as number[], entropy?.[i] ?? (logp[i] as number[]).map(() => 0));
  }, asked);
const said = { logp: [[-0.5, -2], [-4]], entropy: [[0, Math.LN2], [0]] };

const credits = async (b: Batch, lab: Lab, method = free()) => {
  const c = await coefficientsOf(resolved(method), b, lab);
  return { c, whole: [...c.credit.trajectory], tokens: c.credit.token.map((each) => [...each]), task: rowsOf(b).map((each) => taskNote.get(each) as number) };
};
const sum = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0);

/** What a teacher might say of an answer of so many tokens, some of them masked. */
const drawn = (random: Stream, tokens: number): Told => {
  const numbers = (scale: number) => Float64Array.from({ length: tokens }, () => scale * (random.next() - 0.5));
  return { mask: Uint8Array.from({ length: tokens }, () => (random.next() < 0.8 ? 1 : 0)), gap: numbers(12), entropy: numbers(3).map(Math.abs) };
};
const soft = { tau_gap: 1, tau_entropy: 1 };

describe("the shares of an answer's tokens", () => {
  it("by hand: confidence falls by e a nat of entropy, direction saturates with the gap", () => {
    const q = redistribution({ mask: Uint8Array.of(1, 1, 0), gap: Float64Array.of(0.5, 0, 9), entropy: Float64Array.of(0, Math.LN2, 0) }, 1, soft);
    // d = tanh(1/4), 0; c = 1, 1/2; mean 2/3 tanh(1/4).
    const d = Math.tanh(0.25);
    [d / 6, -d / 6, 0].forEach((x, t) => expect(q[t]).toBeCloseTo(x, 14));
    const other = redistribution({ mask: Uint8Array.of(1, 1), gap: Float64Array.of(4, -2), entropy: Float64Array.of(1, 1) }, -1, {
      tau_gap: 2,
      tau_entropy: 0.5,
    });
    const half = (Math.exp(-2) * (Math.tanh(-1) - Math.tanh(0.5))) / 4;
    [half, -half].forEach((x, t) => expect(other[t]).toBeCloseTo(x, 14));
  });

  it("sum to 0, so that weights 1 + rho q average 1 to 1e-12, and never pass 1, so that no weight is below 0", () => {
    const random = new Stream(randomKey({ seed: 1, purpose: "test" }));
    for (let round = 0; round < 300; round++) {
      const each = drawn(random, 1 + random.int(30));
      const q = redistribution(each, random.pick([-1, 0, 1]), { tau_gap: 0.1 + random.next(), tau_entropy: 0.1 + random.next() });
      const valid = sum(each.mask);
      expect(Math.abs(sum(q))).toBeLessThan(1e-12);
      if (valid > 0) expect(Math.abs(sum([...q].filter((_, t) => each.mask[t] === 1).map((x) => 1 + 0.9 * x)) / valid - 1)).toBeLessThan(1e-12);
      for (const x of q) expect(Math.abs(x)).toBeLessThanOrEqual(1);
      expect([...q].every((x, t) => each.mask[t] === 1 || x === 0)).toBe(true);
    }
  });

  it("are 0 where all directions are equal, where the teacher is sure of nothing, and for one token", () => {
    const gap = Float64Array.of(1, -2, 0.5);
    const ones = Uint8Array.of(1, 1, 1);
    const even = redistribution({ mask: ones, gap: new Float64Array(3).fill(1.3), entropy: Float64Array.of(0, 1, 2) }, 1, soft);
    for (const x of even) expect(Math.abs(x)).toBeLessThan(1e-16);
    const lost = redistribution({ mask: ones, gap, entropy: new Float64Array(3).fill(40) }, 1, soft);
    for (const x of lost) expect(Math.abs(x)).toBeLessThan(1e-16);
    const nothing = redistribution({ mask: ones, gap, entropy: new Float64Array(3).fill(1e4) }, 1, soft);
    const single = redistribution({ mask: Uint8Array.of(0, 1, 0), gap, entropy: new Float64Array(3) }, -1, soft);
    for (const x of [...nothing, ...single]) expect(Math.abs(x)).toBe(0);
  });
});

describe("UECR-GRPO", () => {
  it("by hand: both answers differ by reward and teacher's score in one deviation, and the right one's first token gains", async () => {
    const { whole, tokens, task } = await credits(pair(), taught(said), free({ eps: 1e-12 }));
    // RT = 1/4 and -1, so U = 5/4 and -1, deviation 9/8; the verifier's part is 1/2 over it.
    [1, -1].forEach((a, i) => expect(whole[i]).toBeCloseTo(a, 11));
    [4 / 9, -4 / 9].forEach((a, i) => expect(task[i]).toBeCloseTo(a, 11));
    const moved = (0.5 * (4 / 9) * Math.tanh(0.25)) / 6;
    [[1 + moved, 1 - moved], [-1]].forEach((each, i) => each.forEach((a, t) => expect(tokens[i]?.[t]).toBeCloseTo(a, 11)));
  });

  it("adds the KL to the reference to the loss alone", async () => {
    const { value, c } = await lossAt(made(uecr), pair(), old, taught(said));
    const plain = await lossAt(free(), pair(), old, taught(said));
    expect(c.credit.token.map((each) => [...each])).toEqual(plain.c.credit.token.map((each) => [...each]));
    // k3 of gaps 1/2, 0 and -1 under the mean over tokens, then answers.
    const k3 = (gap: number) => Math.exp(gap) - gap - 1;
    expect(value - plain.value).toBeCloseTo(1e-3 * ((k3(0.5) + 0) / 2 + k3(-1)) * 0.5, 12);
  });

  it("is the sum of the verifier's and alpha times the teacher's part, over one deviation, to 1e-12", async () => {
    const random = new Stream(randomKey({ seed: 2, purpose: "test" }));
    for (const alpha of [0.3, 1, 2.5]) {
      const rows = Array.from({ length: 6 }, (_, i) => {
        const length = 1 + random.int(5);
        return row("p", i, { old: Array.from({ length }, () => -3 * random.next()), verdict: i % 3 === 0 ? accept() : reject("no") });
      });
      const b = batch(group("p", rows));
      const logp = rows.map(({ response }) => Array.from(response, () => -3 * random.next()));
      const { whole, task } = await credits(b, taught({ logp }), free({ alpha }));
      const rt = rows.map(({ old: own }, i) => sum((logp[i] as number[]).map((x, t) => x - (own?.values[t] as number))) / (logp[i] as number[]).length);
      rt.forEach((x, i) => expect(scoreNote.get(rows[i] as (typeof rows)[number])).toBeCloseTo(x, 12));
      const u = rt.map((x, i) => (i % 3 === 0 ? 1 : 0) + alpha * x);
      const mean = (values: readonly number[]) => sum(values) / values.length;
      const deviation = Math.sqrt(mean(u.map((x) => (x - mean(u)) ** 2))) + 1e-6;
      whole.forEach((a, i) => {
        expect(Math.abs((task[i] as number) - ((i % 3 === 0 ? 1 : 0) - 1 / 3) / deviation)).toBeLessThan(1e-12);
        expect(Math.abs(a - ((task[i] as number) + (alpha * ((rt[i] as number) - mean(rt))) / deviation))).toBeLessThan(1e-12);
      });
    }
  });

  it("keeps the sum of each answer and, of the verifier's part, sum and sign at each token", async () => {
    const random = new Stream(randomKey({ seed: 3, purpose: "test" }));
    const rows = Array.from({ length: 8 }, (_, i) =>
      row("p", i, {
        old: Array.from({ length: 12 }, () => -2 * random.next()),
        mask: Array.from({ length: 12 }, (_, t) => (t === i ? 0 : 1)),
        verdict: i < 3 ? accept() : reject("no"),
      }),
    );
    const numbers = () => rows.map(() => Array.from({ length: 12 }, () => 4 * random.next()));
    const lab = taught({ logp: numbers().map((each) => each.map((x) => -x)), entropy: numbers() });
    for (const control of ["none", "noise", "entropies"]) {
      const { whole, tokens, task } = await credits(batch(group("p", rows)), lab, free({ rho: 0.99, tau_gap: 0.05, control }));
      tokens.forEach((each, i) => {
        const own = each.filter((_, t) => t !== i);
        expect(sum(own)).toBeCloseTo(11 * (whole[i] as number), 11);
        const verifier = own.map((a) => a - (whole[i] as number) + (task[i] as number));
        expect(sum(verifier)).toBeCloseTo(11 * (task[i] as number), 11);
        for (const a of verifier) expect(a * (task[i] as number)).toBeGreaterThan(0);
        expect(each[i]).toBe(whole[i]);
      });
    }
  });

  it("with rho = 0 is the path-utility variant: one number an answer, which the teacher has a say in", async () => {
    const { c, whole, tokens } = await credits(pair(), taught(said), free({ rho: 0 }));
    expect(tokens).toEqual([[whole[0], whole[0]], [whole[1]]]);
    expect(c.waterfall.map(({ slot }) => slot)).toEqual(["credit"]);
    const three = batch(
      group(
        "p",
        [0, 1, 2].map((i) => row("p", i, { old: [-1], verdict: i === 0 ? accept() : reject("no") })),
      ),
    );
    const ranked = (await credits(three, taught({ logp: [[-1], [-0.5], [-2]] }), free({ rho: 0 }))).whole;
    expect((ranked[1] as number) > (ranked[2] as number)).toBe(true);
  });

  it("with alpha = 0 and rho = 0 is GRPO bit for bit, asks no teacher and names none", async () => {
    const neutral = free({ alpha: 0, rho: 0 });
    const asked: Asked[] = [];
    const now = [[-0.9, -2.2], [-2.9]];
    const own = await lossAt(neutral, pair(), now, taught(said, [], asked));
    const plain = await lossAt(made(grpo, base), pair(), now);
    expect(own).toMatchObject({ value: plain.value, d: plain.d });
    expect(asked).toEqual([]);
    expect(neutral.needs?.flatMap(({ oneOf }) => oneOf.flatMap(({ roles = [] }) => roles))).toEqual([]);
  });

  it("with alpha = 0 leaves answers as the verifier says, and moves credit within them", async () => {
    const { whole, tokens } = await credits(pair(), taught(said), free({ alpha: 0, eps: 1e-12 }));
    [1, -1].forEach((a, i) => expect(whole[i]).toBeCloseTo(a, 11));
    const moved = (0.5 * Math.tanh(0.25)) / 6;
    [1 + moved, 1 - moved].forEach((a, t) => expect(tokens[0]?.[t]).toBeCloseTo(a, 11));
  });

  it("ranks a group whose verdicts are equal where the teacher's scores differ, and not where they do not", async () => {
    const silent = rewarded([0, 0], [1, 1]);
    const { whole, tokens, task } = await credits(silent, taught({ logp: [[-0.5], [-2], [-1.2], [-1.2]] }));
    [1, -1, 0, 0].forEach((a, i) => expect(whole[i]).toBeCloseTo(a, 5));
    expect(task).toEqual([0, 0, 0, 0]);
    expect(tokens.flat()).toEqual(whole);
    expect(free().signal).toBe("beyond");
    expect(free({ alpha: 0 }).signal).toBe(undefined);
  });

  it("leaves unscored answers out, and gives the rows of one episode one score and one verdict", async () => {
    const three = batch(
      group("p", [
        row("p", 0, { old: [-1], episode: "e", turn: 0, verdict: accept() }),
        row("p", 0, { old: [-1, -1, -1], episode: "e", turn: 1, verdict: accept() }),
        row("p", 1, { old: [-1], verdict: reject("no") }),
        row("p", 2, { old: [-1], verdict: unscored("lost") }),
      ]),
    );
    const { whole, task } = await credits(three, taught({ logp: [[-2], [-1, 0, 1], [-1], [5]] }));
    // Gaps -1, 0, 1, 2 over both turns: 1/2.
    expect(rowsOf(three).map((each) => scoreNote.get(each))).toEqual([0.5, 0.5, 0, 6]);
    expect(whole[0]).toBe(whole[1]);
    expect(task[0]).toBe(task[1]);
    expect([whole[3], task[3]]).toEqual([0, 0]);
    expect(whole[0]).toBeCloseTo(-(whole[2] as number), 12);
  });

  it("compares log-probs at temperature 1 on both sides: it asks the policy once more where the rollout had another", async () => {
    const asked: Asked[] = [];
    const lab = taught(said, [], asked);
    await credits(pair(), lab);
    expect(new Set(asked.map(({ sequence }) => JSON.stringify([sequence.weights, sequence.temperature])))).toEqual(new Set(['[{"role":"teacher"},1]']));
    const cold = pair();
    const conditions = { context: "plain", weights: "policy@0", temperature: 0.7 };
    const at07 = batch(
      group(
        "p",
        rowsOf(cold).map((each) => ({ ...each, old: { values: each.behaviour.values.map((x) => x - 9), conditions } })),
      ),
    );
    const again: Asked[] = [];
    const { whole, tokens } = await credits(at07, taught(said, old, again));
    expect(again.filter(({ sequence }) => sequence.weights.role === "policy").map(({ sequence }) => sequence.temperature)).toContain(1);
    const warm = await credits(pair(), taught(said));
    expect({ whole, tokens }).toEqual({ whole: warm.whole, tokens: warm.tokens });
  });

  it("moves gaps between all tokens of a batch, or entropies within an answer, for comparison, the same for a seed", async () => {
    const random = new Stream(randomKey({ seed: 4, purpose: "test" }));
    const logp = [0, 1].map(() => Array.from({ length: 20 }, () => -2 * random.next()));
    const entropy = [0, 1].map(() => Array.from({ length: 20 }, () => 2 * random.next()));
    const b = () =>
      batch(
        group(
          "p",
          logp.map((_, i) => row("p", i, { old: new Array(20).fill(-1), verdict: i === 0 ? accept() : reject("no") })),
        ),
      );
    const of = (control: string) => credits(b(), taught({ logp, entropy }), free({ control }));
    const [none, noise, entropies] = [await of("none"), await of("noise"), await of("entropies")];
    expect(noise.whole).not.toEqual(none.whole);
    expect(entropies.whole).toEqual(none.whole);
    expect(entropies.tokens).not.toEqual(none.tokens);
    expect((await of("noise")).tokens).toEqual(noise.tokens);
    expect((await of("entropies")).tokens).toEqual(entropies.tokens);
  });

  it("leaves the level of answers for what reads it, and its sums where other stages mask tokens", async () => {
    const masked = { name: "masked", slots: { keep: { run: (b: Batch) => keepTokens(b, (_, t) => t > 0) } } };
    const { c } = await lossAt(compose(free({ rho: 0.9 }), made(gapo), masked), pair(), old, taught(said));
    [1, -1].forEach((a, i) => expect(c.credit.trajectory[i]).toBeCloseTo(a, 5));
    expect([...(c.bounds[0]?.high ?? [])].map((x) => Number(x.toFixed(4)))).toEqual([1.2, 1.2]);
  });

  it("reports the teacher's mean score, and how often it turned the verifier's sign", async () => {
    const method = resolved(free());
    const b = pair();
    const c = await coefficientsOf(method, b, taught({ logp: [[-4, -5], [-1]] }));
    const seen = method.stages.observe[0]?.run({ batch: b, credit: c.credit, mask: c.mask } as never);
    // The wrong answer's score is 2 - (-3) = 5 above the right one's, the reward 1 below.
    expect(seen).toEqual({ "uecr.score": (-3 + 2) / 2, "uecr.turned": 1 });
  });

  it("has the paper's alpha, and our choices for the rest", () => {
    expect(uecrOptions.parse({})).toEqual({ alpha: 1, rho: 0.5, tau_gap: 1, tau_entropy: 1, kl_coef: 1e-3, eps: 1e-6, control: "none" });
  });
});

describe("what it aims at, over all answers of a softmax table", () => {
  const context = plainContext([1]);
  async function paths() {
    const engine = new TableEngine();
    for (const [role, seed] of [
      ["policy", 1],
      ["teacher", 2],
    ] as const)
      await engine.weights.load({
        role,
        trainable: false,
        source: { from: "config", config: { kind: "table", vocabulary: 3, order: 2, init: 1, maxTokens: 8 } as never, seed },
      });
    const all = async (role: string) => enumerate(engine, { context, weights: { role }, temperature: 1, maxTokens: 3, stopIds: [0] });
    const [anchor, teacher] = [await all("policy"), await all("teacher")];
    const gaps = (await Promise.all(
      ["teacher", "policy"].map((role) => engine.score(anchor.map(({ ids }) => ({ context, response: ids, weights: { role }, temperature: 1 })))),
    )) as unknown as readonly { readonly logp: Float64Array }[][];
    await engine.close();
    const telescoped = anchor.map((_, i) => sum((gaps[0]?.[i]?.logp ?? new Float64Array()).map((x, t) => x - (gaps[1]?.[i]?.logp[t] as number))));
    return { anchor, teacher, telescoped };
  }
  /** Q* in proportion to exp(R / beta) P_T^(alpha / beta) P_0^(1 - alpha / beta). */
  const target = (reward: readonly number[], teacher: readonly number[], anchor: readonly number[], alpha: number, beta: number): number[] => {
    const logs = reward.map((r, i) => r / beta + (alpha / beta) * (teacher[i] as number) + (1 - alpha / beta) * (anchor[i] as number));
    const whole = sum(logs.map(Math.exp));
    return logs.map((x) => Math.exp(x) / whole);
  };

  it("gaps of tokens add up to the log-ratio of the answer's probabilities", async () => {
    const { anchor, teacher, telescoped } = await paths();
    expect(anchor.length).toBe(1 + 2 + 4 * 3);
    telescoped.forEach((x, i) => expect(x).toBeCloseTo((teacher[i]?.logp as number) - (anchor[i]?.logp as number), 12));
  });

  it("is the teacher without rewards where alpha = beta, and else the best of reward, teacher and closeness", async () => {
    const { anchor, teacher, telescoped } = await paths();
    const [p0, pt] = [anchor.map(({ logp }) => logp), teacher.map(({ logp }) => logp)];
    const none = p0.map(() => 0);
    target(none, pt, p0, 0.7, 0.7).forEach((q, i) => expect(q).toBeCloseTo(teacher[i]?.probability as number, 12));
    // E[R + alpha log P_T / P_0] - beta KL(Q, P_0) is largest where its derivative by every Q(y) is the same.
    const reward = anchor.map(({ ids }) => (ids.length === 2 ? 1 : 0));
    const best = target(reward, pt, p0, 0.4, 0.9).map(
      (q, i) => (reward[i] as number) + 0.4 * (telescoped[i] as number) - 0.9 * (Math.log(q) - (p0[i] as number)),
    );
    for (const x of best) expect(x).toBeCloseTo(best[0] as number, 12);
  });
});

describe("a run of UECR-GRPO", () => {
  const use = (options: object = {}) => ({ name: "uecr", options: options as never });
  const models = async () => ({ model: await tablePolicy({ init: 0.5 }), teacher: await tablePolicy({ init: 2 }, 9) });
  const start = ({ model, teacher }: Awaited<ReturnType<typeof models>>, more: Partial<TrainOptions> = {}): TrainOptions =>
    runOf(model, {
      task: lax(),
      method: use(),
      minibatches: 2,
      steps: 3,
      temperature: 0.7,
      roles: { teacher: { model: teacher }, reference: { model } },
      checkpoint: { every: 1, keep_last: 99 },
      ...more,
    });
  const weightsOf = (folder: string) => Object.entries(snapshot(folder)).filter(([path]) => path.endsWith("policy/model.safetensors"));
  const metricsOf = (folder: string) =>
    [...RunReader.open(folder).events()].flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { [name: string]: number }] : []));

  it("without effect has GRPO's weights bit for bit, and with it others, and tells what the teacher says", async () => {
    const both = await models();
    const plain = weightsOf((await train(start(both, { method: { name: "grpo", options: base as never }, roles: {} }))).folder);
    expect(plain.length).toBe(4);
    expect(weightsOf((await train(start(both, { method: use({ alpha: 0, rho: 0, kl_coef: 0 }), roles: {} }))).folder)).toEqual(plain);
    const { folder } = await train(start(both));
    expect(weightsOf(folder)).not.toEqual(plain);
    for (const metrics of metricsOf(folder)) expect(metrics).toMatchObject({ "uecr.score": expect.any(Number), "uecr.turned": expect.any(Number) });
    const [first] = (await RunReader.open(folder).groups(1)).flatMap(({ rollouts }) => rollouts);
    expect(Object.keys(first?.columns ?? {})).toEqual(expect.arrayContaining(["coefficient.credit.0.uecr", "coefficient.shape.0.uecr"]));
  });

  it("goes on byte for byte where it was interrupted", async () => {
    const both = await models();
    const { folder: whole } = await train(start(both));
    const controller = new AbortController();
    const { folder } = await train(start(both, { signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === 2 && controller.abort() }));
    expect(weightsOf(folder).length).toBe(3);
    await resume(folder, { task: lax() });
    const [is, wanted] = [snapshot(folder), snapshot(whole)];
    expect(Object.keys(wanted).filter((path) => path !== "run.json" && is[path] !== wanted[path])).toEqual([]);
  });

  it("is refused without a teacher, and beside on-policy distillation, both named", async () => {
    const both = await models();
    await expect(train(start(both, { roles: { reference: { model: both.model } } }))).rejects.toThrow(/the teacher's log-probs/);
    await expect(train(start(both, { method: ["uecr", "opd"] }))).rejects.toThrow("method uecr+opd: both own the slot credit; leave one of the two out");
  });
});
