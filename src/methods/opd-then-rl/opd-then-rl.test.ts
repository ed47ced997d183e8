import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../../test/support/batch.js";
import { type Asked, hintedLab } from "../../../test/support/hinted.js";
import { lax } from "../../../test/support/lax-task.js";
import { made, resolved } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { options as runOf, scratch, tablePolicy } from "../../../test/support/tabular.js";
import { plainContext } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import type { Batch } from "../../core/trajectory.js";
import { accept, reject, type Verdict } from "../../core/verdict.js";
import type { TopK } from "../../engine/contract.js";
import { TableEngine } from "../../engine/table/engine.js";
import { passAtK } from "../../evaluate/passk.js";
import { RunReader } from "../../train/store/reader.js";
import { resume, type TrainOptions, train } from "../../train/train.js";
import { Cells } from "../cell.js";
import { coefficientsOf } from "../coefficients.js";
import { checkSettings } from "../resolve.js";
import { opdThenRl, opdThenRlOptions } from "./opd-then-rl.js";
import { massShared } from "./teacher.js";

const old = [
  [-1, -2, -1],
  [-1, -3],
];
const own = (...verdicts: readonly Verdict[]): Batch =>
  batch(
    group(
      "p",
      old.map((each, i) => row("p", i, { old: each, verdict: verdicts[i] ?? (i === 0 ? accept() : reject("no")) })),
    ),
  );
/** The teacher's log-probs less the policy's. */
const d = [
  [0.5, -1, 0.25],
  [2, -0.5],
];
const taught = (asked: Asked[] = []) =>
  hintedLab(({ sequence }) => {
    const i = sequence.response.length === 3 ? 0 : 1;
    return scores((old[i] as number[]).map((x, t) => x + (sequence.weights.role === "teacher" ? (d[i]?.[t] as number) : 0)));
  }, asked);

const tokensOf = async (options: object, step = 1) => {
  const c = await coefficientsOf(resolved(made(opdThenRl, options)), own(), { ...taught(), step });
  return { c, tokens: c.credit.token.map((each) => [...each]), a: [...c.credit.trajectory] };
};
const closeTo = (is: readonly (readonly number[])[], wanted: readonly (readonly number[])[]): void =>
  is.forEach((each, i) => each.forEach((x, t) => expect(x).toBeCloseTo(wanted[i]?.[t] as number, 12)));

describe("the coefficients of a step", () => {
  it("by hand: in the first phase the teacher's log-prob less the own, whatever the verdict", async () => {
    closeTo((await tokensOf({})).tokens, d);
  });

  it("by hand: both at once are the sum, the sum where both agree, the sum with a falling weight, or the reweighted advantage", async () => {
    const with_ = async (options: object, of: (a: number, x: number) => number, step = 1) => {
      const { tokens, a } = await tokensOf(options, step);
      closeTo(
        tokens,
        d.map((each, i) => each.map((x) => of(a[i] as number, x))),
      );
    };
    await with_({ mode: "additive", beta: 0.3 }, (a, x) => a + 0.3 * x);
    await with_({ mode: "masked", beta: 0.3 }, (a, x) => (a * x > 0 ? a + 0.3 * x : a));
    await with_({ mode: "annealed" }, (a, x) => a + 0.2 * x);
    await with_({ mode: "annealed" }, (a, x) => a + 0.101 * x, 76);
    await with_({ mode: "annealed" }, (a, x) => a + 0.002 * x, 151);
    await with_({ mode: "modulated" }, (a, x) => a * (0.5 + 0.5 * Math.min(1.2, Math.max(0.8, Math.exp(Math.sign(a) * x)))));
  });

  it("by hand: an end that is none of the teacher's is not distilled, and has no part in the normaliser", async () => {
    const last = 5; // The third token of an answer.
    const kept = await tokensOf({ teacher_eos: [last, 4] });
    closeTo(kept.tokens, d);
    expect(kept.c.mask.policy.map((each) => [...each])).toEqual([
      [1, 1, 1],
      [1, 1],
    ]);
    const masked = await tokensOf({ teacher_eos: [4] });
    closeTo(masked.tokens, [
      [0.5, -1, 0],
      [2, -0.5],
    ]);
    expect(masked.c.mask.policy[0]).toEqual(Uint8Array.of(1, 1, 0));
    expect([...(masked.c.weights[0] ?? [])]).toEqual([1 / 4, 1 / 4, 0]);
    const joint = await tokensOf({ mode: "additive", teacher_eos: [4] });
    expect(joint.tokens[0]?.[2]).toBe(joint.a[0]);
    expect(joint.c.mask.policy[0]).toEqual(Uint8Array.of(1, 1, 1));
  });

  it("after the switch are the advantage, and no teacher is asked", async () => {
    const cells = new Cells();
    const method = resolved(made(opdThenRl, { switch_at: 1, shared_top_k: 2, teacher_eos: [4] }, cells));
    const announced: string[] = [];
    const lab = hintedLab(() => ({ ...scores([-1, -1, -1]), top: { k: 2, ids: new Int32Array(6), logp: new Float64Array(6), tail: new Float64Array(3) } }));
    const first = await coefficientsOf(method, own(), lab);
    const seen = (batch: Batch, step: number) =>
      method.stages.observe.map((stage) => stage.run({ step, batch, metrics: {}, announce: (reason: string) => announced.push(reason) } as never))[0];
    expect(seen(first.batch, 1)).toMatchObject({ "opd-then-rl.rl": 0, kl_teacher: expect.any(Number), "opd-then-rl.shared_mass": expect.any(Number) });
    const asked: Asked[] = [];
    const second = await coefficientsOf(method, own(), taught(asked));
    expect(asked).toEqual([]);
    expect(second.credit.token.map((each) => [...each])).toEqual(second.waterfall[0]?.token.map((each) => [...each]));
    expect(second.mask.policy[0]).toEqual(Uint8Array.of(1, 1, 1));
    expect(seen(second.batch, 2)).toEqual({ "opd-then-rl.rl": 1 });
    expect(announced).toEqual(["1 steps are done"]);
  });

  it("tell the reverse KL on the tokens drawn, and what the likely tokens of both have of the policy's probability", async () => {
    const method = resolved(made(opdThenRl, {}));
    const c = await coefficientsOf(method, own(), taught());
    const is = method.stages.observe[0]?.run({ step: 1, batch: c.batch, metrics: {}, announce: () => undefined } as never) as { kl_teacher: number };
    expect(is.kl_teacher).toBeCloseTo(-d.flat().reduce((a, b) => a + b, 0) / 5, 12);
    const top = (ids: readonly number[], p: readonly number[]): TopK => ({
      k: 2,
      ids: Int32Array.from(ids),
      logp: Float64Array.from(p, Math.log),
      tail: new Float64Array(2),
    });
    const [mine, theirs] = [top([7, 3, 1, 2], [0.5, 0.2, 0.6, 0.3]), top([3, 9, 2, 1], [0.9, 0.1, 0.5, 0.5])];
    expect(massShared(mine, theirs, 0)).toBeCloseTo(0.2, 12);
    expect(massShared(mine, theirs, 1)).toBeCloseTo(0.9, 12);
  });
});

describe("distillation at one position", () => {
  /** Teacher and policy with two distributions over four tokens. */
  async function engineOf(policy: readonly number[], teacher: readonly number[]) {
    const engine = new TableEngine();
    for (const [role, p] of Object.entries({ policy, teacher })) {
      const config = { kind: "table", vocabulary: 4, order: 0, init: 0, maxTokens: 8 } as never;
      const info = await engine.weights.load({ role, trainable: role === "policy", source: { from: "config", config, seed: 1 } });
      const [tensor] = info.tensors as readonly { name: string; shape: readonly number[] }[];
      await engine.weights.write(role, [{ ...(tensor as { name: string; shape: readonly number[] }), data: Float64Array.from(p, Math.log) }]);
    }
    return { engine, name: (await engine.weights.info("policy")).tensors[0]?.name as string };
  }
  const p = [0.4, 0.3, 0.2, 0.1];
  const q = [0.1, 0.2, 0.3, 0.4];

  it("has the gradient of minus the reverse KL as its expectation, within 3 standard errors", async () => {
    const { engine, name } = await engineOf(p, q);
    const context = plainContext([1]);
    const n = 20_000;
    const requests = Array.from({ length: n }, (_, member) => ({
      context,
      weights: { role: "policy" },
      temperature: 1,
      maxTokens: 1,
      stop: { ids: [] },
      key: randomKey({ seed: 3, purpose: "sample", member }),
    }));
    const counts = [0, 0, 0, 0];
    for await (const { ids } of engine.sample(requests)) counts[ids[0] as number] = (counts[ids[0] as number] as number) + 1;
    const response = (y: number) => ({ context, response: Int32Array.of(y), temperature: 1 });
    const score = async (role: string) => (await engine.score(p.map((_, y) => ({ ...response(y), weights: { role } })))).map(({ logp }) => logp[0] as number);
    const [mine, theirs] = [await score("policy"), await score("teacher")];
    const gap = mine.map((l, y) => (theirs[y] as number) - l);
    const { handle } = await engine.forward(p.map((_, y) => ({ ...response(y), weights: { role: "policy" } })));
    await engine.backward(
      handle,
      counts.map((count, y) => ({ dLogp: Float64Array.of(((count as number) / n) * (gap[y] as number)) })),
      "role:policy",
    );
    const [gradient] = await engine.weights.readGradient("role:policy", [name]);
    const kl = p.reduce((sum, x, v) => sum + x * Math.log(x / (q[v] as number)), 0);
    p.forEach((x, v) => {
      // d KL / d logit v = p_v (log p_v / q_v - KL); the sample's variance is that of gap_y (1[y = v] - p_v).
      const wanted = -x * (Math.log(x / (q[v] as number)) - kl);
      const values = gap.map((g, y) => g * ((y === v ? 1 : 0) - x));
      const mean = values.reduce((sum, value, y) => sum + (p[y] as number) * value, 0);
      const error = Math.sqrt(values.reduce((sum, value, y) => sum + (p[y] as number) * (value - mean) ** 2, 0) / n);
      expect(mean).toBeCloseTo(wanted, 12);
      expect(Math.abs((gradient?.data[v] as number) - wanted)).toBeLessThan(3 * error);
    });
    await engine.close();
  });
});

describe("a run of OPD-then-RL", () => {
  const use = (options: object = {}) => ({ name: "opd-then-rl", options: options as never });
  const models = async () => ({ model: await tablePolicy({ init: 0.5 }), teacher: await tablePolicy({ init: 2 }, 9) });
  const start = ({ model, teacher }: Awaited<ReturnType<typeof models>>, more: Partial<TrainOptions> = {}): TrainOptions =>
    runOf(model, { task: lax(), minibatches: 2, steps: 4, roles: { teacher: { model: teacher } }, checkpoint: { every: 1, keep_last: 99 }, ...more });
  const weightsOf = (folder: string) => Object.fromEntries(Object.entries(snapshot(folder)).filter(([path]) => path.endsWith("policy/model.safetensors")));
  const eventsOf = (folder: string) => [...RunReader.open(folder).events()];
  const metricsOf = (folder: string) => eventsOf(folder).flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { [name: string]: number }] : []));

  it("that switches at 0 is GRPO bit for bit, and needs no teacher", async () => {
    const both = await models();
    const grpo = weightsOf((await train(start(both, { method: "grpo", roles: {} }))).folder);
    expect(Object.keys(grpo).length).toBe(5);
    const own = await train(start(both, { method: use({ switch_at: 0 }), roles: {} }));
    expect(weightsOf(own.folder)).toEqual(grpo);
    expect(eventsOf(own.folder).filter(({ kind }) => kind === "stage")).toEqual([]);
  });

  it("that never switches is on-policy distillation bit for bit, with the same loss", async () => {
    const both = await models();
    const opd = weightsOf((await train(start(both, { method: ["opd", "grpo"] }))).folder);
    expect(weightsOf((await train(start(both, { method: use({ switch_at: "never" }) }))).folder)).toEqual(opd);
    expect(new Set(Object.values(opd)).size).toBe(5);
  });

  it("that switches at 2 is on-policy distillation up to there and not after, and says so once, with its reason", async () => {
    const both = await models();
    const opd = weightsOf((await train(start(both, { method: use({ switch_at: "never" }) }))).folder);
    const { folder } = await train(start(both, { method: use({ switch_at: 2 }) }));
    const is = weightsOf(folder);
    expect(Object.keys(opd).map((path) => is[path] === opd[path])).toEqual([true, true, true, false, false]);
    expect(eventsOf(folder).filter(({ kind }) => kind === "stage")).toEqual([
      expect.objectContaining({ step: 2, data: { method: "opd-then-rl", reason: "2 steps are done" } }),
    ]);
    expect(metricsOf(folder).map((metrics) => [metrics["opd-then-rl.rl"], "kl_teacher" in metrics])).toEqual([
      [0, true],
      [0, true],
      [1, false],
      [1, false],
    ]);
    const scored = eventsOf(folder).flatMap(({ kind, data }) => (kind === "step" ? [(data.ledger as { scored: { train: number } }).scored.train] : []));
    expect(scored[2]).toBe(scored[1]);
    expect(scored[3]).toBe(scored[1]);
  });

  it("that switches at a plateau goes on byte for byte where it was interrupted, before the switch, at it and after", async () => {
    const both = await models();
    // A score that has to rise by 2 never does: the evaluations after steps 0, 1 and 2 make a plateau that step 3 sees.
    const settings = (more: Partial<TrainOptions> = {}) =>
      start(both, { steps: 5, method: use({ switch_at: "plateau", improvement: 2, patience: 2 }), eval: { every: 1, problems: 2 }, ...more });
    const whole = settings();
    await train(whole);
    const reason = /^the score has not risen by 2 over [\d.]+ in 2 evaluations and is [\d.]+ after step 2$/;
    expect(eventsOf(whole.out).filter(({ kind }) => kind === "stage")).toEqual([
      expect.objectContaining({ step: 3, data: { method: "opd-then-rl", reason: expect.stringMatching(reason) } }),
    ]);
    for (const stop of [2, 3, 4]) {
      const controller = new AbortController();
      const out = join(scratch(), "run");
      await train(settings({ out, signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === stop && controller.abort() }));
      await resume(out, { task: lax() });
      const [is, wanted] = [snapshot(out), snapshot(whole.out)];
      expect(Object.keys(wanted).filter((path) => path !== "run.json" && is[path] !== wanted[path])).toEqual([]);
    }
  });

  it("in which the teacher is the policy has nothing to distil: no token a coefficient at the first step", async () => {
    const { model } = await models();
    const { folder } = await train(start({ model, teacher: model }, { steps: 1, method: use() }));
    const columns = (await RunReader.open(folder).groups(1)).flatMap(({ rollouts }) =>
      rollouts.flatMap(({ columns: { coefficient } }) => [...(coefficient as Float64Array)]),
    );
    expect(columns.length).toBeGreaterThan(10);
    expect(columns.every((x) => x === 0)).toBe(true);
  });

  it("comes nearer to its teacher in the first phase, by tokens, by the whole distribution, by its likely tokens, and by its answers", async () => {
    const both = await models();
    for (const options of [{}, { divergence: "full" }, { divergence: "top-k", top_k: 3 }, { first: "sft" }]) {
      const { folder } = await train(start(both, { method: use({ ...options, shared_top_k: 3 }), steps: 40, group: 8, checkpoint: { every: 0 } }));
      const metrics = metricsOf(folder);
      const mean = (name: string, from: number, to: number) => metrics.slice(from, to).reduce((sum, each) => sum + (each[name] as number) / (to - from), 0);
      expect(mean("kl_teacher", 35, 40), JSON.stringify(options)).toBeLessThan(0.6 * mean("kl_teacher", 0, 3));
      expect(mean("opd-then-rl.shared_mass", 35, 40), JSON.stringify(options)).toBeGreaterThan(mean("opd-then-rl.shared_mass", 0, 3));
    }
  });

  it("is refused without a teacher, and where no score is measured in which a plateau could be seen", async () => {
    const { model } = await models();
    await expect(train(runOf(model, { task: lax(), method: use() }))).rejects.toThrow("the teacher's log-probs needs a role named teacher");
    await expect(train(start(await models(), { method: use({ switch_at: "plateau" }) }))).rejects.toThrow(
      "method opd-then-rl, option switch_at: it is plateau, and the run measures no score in which one could be seen; set eval.every, or give the number of steps",
    );
    const settings = { group: 2, problems: 2, temperature: 1, maxTokens: 4, stop: { ids: [] } };
    expect(() => checkSettings(resolved(made(opdThenRl, { switch_at: "plateau" })), { ...settings, evaluateEvery: 5 })).not.toThrow();
  });
});

describe("what the paper measures by", () => {
  it("pass@k is the share of k-subsets with a right answer, counted one by one", () => {
    for (let n = 1; n <= 6; n++) {
      for (let c = 0; c <= n; c++) {
        for (let k = 1; k <= n; k++) {
          let [hits, all] = [0, 0];
          for (let subset = 0; subset < 1 << n; subset++) {
            const members = Array.from({ length: n }, (_, i) => i).filter((i) => (subset >> i) & 1);
            if (members.length !== k) continue;
            all++;
            if (members.some((i) => i < c)) hits++;
          }
          expect(passAtK(n, c, k)).toBeCloseTo(hits / all, 12);
        }
      }
    }
  });

  it("has the specification's numbers as defaults", () => {
    expect(opdThenRlOptions.parse({})).toMatchObject({
      switch_at: 60,
      improvement: 0.005,
      patience: 3,
      beta: 0.2,
      beta_end: 0.002,
      lambda: 0.5,
      weight_clip: 0.2,
    });
  });
});
