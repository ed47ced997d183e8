import { beforeEach, describe, expect, it } from "vitest";
import { batch, group, row } from "../../test/support/batch.js";
import { accept, reject } from "../core/verdict.js";
import { TableEngine } from "../engine/table/engine.js";
import { Cells } from "../methods/cell.js";
import { type Coefficients, coefficientsOf } from "../methods/coefficients.js";
import type { Lab } from "../methods/contract.js";
import { grpo, grpoOptions } from "../methods/grpo/grpo.js";
import { resolve } from "../methods/resolve.js";
import { activeRows, minibatches, pieces } from "./minibatch.js";
import { type UpdateOptions, update } from "./update.js";

const method = (options: object) => {
  const made = grpo.make(grpoOptions.parse({ std: "none", ...options }), new Cells().cell("grpo", grpo.initial));
  return resolve(made, made);
};
const options: UpdateOptions = {
  minibatches: 1,
  epochs: 1,
  temperature: 1,
  maxNorm: 100,
  gapLimit: 0.05,
  rule: () => ({ rule: "sgd", rate: 1 }),
  updates: 0,
  key: (epoch) => [1, 2, 3, epoch],
};

let engine: TableEngine;
/** A bandit with two arms, both at probability 1/2. */
beforeEach(async () => {
  engine = new TableEngine();
  const config = { kind: "table", vocabulary: 2, order: 0, init: 0 };
  await engine.weights.load({ role: "policy", source: { from: "config", config, seed: 0 }, trainable: true });
});
const logits = async (): Promise<number[]> => [...((await engine.weights.read({ role: "policy" }, ["logits.weight"]))[0]?.data ?? [])].map((x) => x + 0); // -0 is 0

/** Arm 0 was drawn and accepted, arm 1 drawn and rejected: advantages 1/2 and -1/2. */
const arms = (problem = "p") => {
  const one = (arm: number) => ({
    ...row(problem, arm, { old: [Math.log(0.5)], verdict: arm === 0 ? accept() : reject("wrong") }),
    response: Int32Array.of(arm),
    sampledUnder: { ids: Int32Array.of(0), label: "plain" },
    trainedUnder: { ids: Int32Array.of(0), label: "plain" },
    old: undefined,
  });
  return group(problem, [one(0), one(1)]);
};
const coefficients = (options: object, ...groups: readonly ReturnType<typeof arms>[]): Promise<Coefficients> =>
  coefficientsOf(method(options), batch(...(groups.length > 0 ? groups : [arms()])), {} as Lab);

describe("two optimizer steps on one batch, by hand", () => {
  const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
  // Step 1, all ratios 1: dloss/dlogp = -1/4 and 1/4, so the logits move by 1/4 each way: to (1/4, -1/4).
  const p = sigmoid(0.5);
  // Step 2: ratios p/0.5 and (1-p)/0.5. Row 0: -1/4 (2p) (1-p); row 1: 1/4 (2 (1-p)) (-p): together -p (1-p).
  const second = 0.25 + p * (1 - p);

  it("the second step's ratio is that of the weights being differentiated", async () => {
    const result = await update(engine, await coefficients({ clip_low: 1, clip_high: 1 }), { ...options, epochs: 2 });
    const [a, b] = await logits();
    expect(a).toBeCloseTo(second, 12);
    expect(b).toBeCloseTo(-second, 12);
    expect(second).not.toBeCloseTo(0.5, 2); // what the log-probs of the rollout would have given
    expect(result.steps).toBe(2);
    expect(result.gradNorms[0]).toBeCloseTo(Math.hypot(0.25, 0.25), 12);
    expect(result.gradNorms[1]).toBeCloseTo(Math.hypot(p * (1 - p), p * (1 - p)), 12);
    expect(result.statistics.ratio_max).toEqual({ max: expect.closeTo(2 * p, 12) });
  });

  it("and so it is clipped by them: ratios 1.24 and 0.76 lie outside of 0.2", async () => {
    const result = await update(engine, await coefficients({}), { ...options, epochs: 2 });
    expect(await logits()).toEqual([0.25, -0.25]);
    expect(result.gradNorms[1]).toBe(0);
    expect(result.statistics.clip_high).toEqual({ sum: 1, count: 4 });
    expect(result.statistics.clip_low).toEqual({ sum: 1, count: 4 });
  });

  it("two minibatches of one group each: each step is as large as one of the whole batch", async () => {
    const result = await update(engine, await coefficients({ clip_low: 1, clip_high: 1 }, arms("p"), arms("q")), { ...options, minibatches: 2 });
    expect((await logits())[0]).toBeCloseTo(second, 12);
    expect(result).toMatchObject({ steps: 2, rows: 4, tokens: 4 });
  });
});

describe("a batch", () => {
  it("gives the same gradient in one piece and in several", async () => {
    const c = await coefficients({}, arms("p"), arms("q"), arms("r"));
    await update(engine, c, { ...options, microbatch: 1 });
    const small = await logits();
    await engine.weights.load({
      role: "policy",
      source: { from: "config", config: { kind: "table", vocabulary: 2, order: 0, init: 0 }, seed: 0 },
      trainable: true,
    });
    await update(engine, c, options);
    expect(small[0]).toBeCloseTo((await logits())[0] as number, 12);
    expect(small[0]).toBeCloseTo(0.25, 12);
  });

  it("without signal makes no step", async () => {
    const equal = { ...arms(), trajectories: arms().trajectories.map((t) => ({ ...t, verdict: accept() })) };
    const result = await update(engine, await coefficients({}, equal), options);
    expect(result).toMatchObject({ steps: 0, rows: 0, loss: 0, gradNorms: [] });
    expect(await logits()).toEqual([0, 0]);
  });

  it("whose sampler disagrees with the trainer stops the run before a step, and leaves no gradient behind", async () => {
    const off = { ...arms(), trajectories: arms().trajectories.map((t) => ({ ...t, behaviour: { ...t.behaviour, values: Float64Array.of(-0.5) } })) };
    await expect(update(engine, await coefficients({}, off), options)).rejects.toThrow(
      "sampler and trainer: their log-probs of the same tokens differ by 0.193 nats a token on average, more than limits.gap 0.05",
    );
    expect(await logits()).toEqual([0, 0]);
    expect((await engine.weights.readGradient("role:policy", ["logits.weight"]))[0]?.data).toEqual(Float64Array.of(0, 0));
  });

  it("whose gradient is not finite stops the run, and leaves the weights as they were", async () => {
    const c = await coefficients({}, arms("p"), arms("q"));
    // Each derivative is finite; their sum over four rows is not.
    const run = () => ({ value: 0, derivatives: [1, -1, 1, -1].map((sign) => ({ dLogp: Float64Array.of(sign * 1.7e308) })), statistics: {} });
    await expect(update(engine, { ...c, surrogate: { ...c.surrogate, run } }, options)).rejects.toThrow(
      "optimizer step of role:policy: the gradient of logits.weight is not finite; lower the learning rate",
    );
    expect(await logits()).toEqual([0, 0]);
  });
});

describe("minibatches", () => {
  it("keep groups whole where there are enough, else split rows; every active row is in one of them", async () => {
    const c = await coefficients({}, arms("p"), arms("q"), arms("r"));
    const whole = minibatches(c, 3, [1, 2, 3, 4]);
    expect(whole.map((rows) => rows.join()).sort()).toEqual(["0,1", "2,3", "4,5"]);
    const split = minibatches(c, 4, [1, 2, 3, 4]);
    expect(split).toHaveLength(4);
    expect(split.flat().sort()).toEqual(activeRows(c));
    expect(minibatches(c, 3, [1, 2, 3, 4])).toEqual(whole);
    const orders = new Set(Array.from({ length: 20 }, (_, i) => JSON.stringify(minibatches(c, 3, [1, 2, 3, i]))));
    expect(orders.size).toBeGreaterThan(1);
  });

  it("never split what a loss keeps whole", async () => {
    const c = await coefficients({}, arms("p"), arms("q"));
    const grouped: Coefficients = { ...c, surrogate: { ...c.surrogate, unit: "group" } };
    expect(pieces(grouped, [0, 1, 2, 3], 3)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(pieces(c, [0, 1, 2, 3], 3)).toEqual([[0, 1, 2], [3]]);
    expect(() => minibatches(grouped, 3, [1, 2, 3, 4])).toThrow("minibatches: it is 3, a batch has 2 groups, and the loss clip keeps groups whole");
  });
});
