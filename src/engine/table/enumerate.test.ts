import { describe, expect, it } from "vitest";
import { plainContext } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import type { Sequence } from "../contract.js";
import { TableEngine } from "./engine.js";
import { enumerate, expectation, type Outcome } from "./enumerate.js";
import { weightName } from "./model.js";

const weights = { role: "policy" };
const request = { context: plainContext([1]), weights, temperature: 0.8, maxTokens: 3, stopIds: [0] };

async function policy(): Promise<TableEngine> {
  const engine = new TableEngine();
  await engine.weights.load({
    role: "policy",
    trainable: true,
    source: { from: "config", config: { kind: "table", vocabulary: 3, order: 1, init: 1 }, seed: 4 },
  });
  return engine;
}

const sequenceOf = ({ ids }: Outcome): Sequence => ({ context: request.context, response: ids, weights, temperature: request.temperature });
/** A reward that depends on the whole response. */
const reward = ({ ids, stop }: Outcome): number => (stop === "eos" ? 1 : 0) + 0.5 * ids.filter((id) => id === 2).length;

/** Gradient of Σ coefficient × log-prob of each response, over all weights. */
async function gradientOf(engine: TableEngine, outcomes: readonly Outcome[], coefficients: readonly number[]): Promise<Float64Array> {
  await engine.weights.zeroGradient("role:policy");
  const { handle } = await engine.forward(outcomes.map(sequenceOf));
  await engine.backward(
    handle,
    outcomes.map(({ ids }, i) => ({ dLogp: new Float64Array(ids.length).fill(coefficients[i]) })),
    "role:policy",
  );
  return (await engine.weights.readGradient("role:policy", [weightName]))[0].data;
}

describe("enumeration", () => {
  it("gives every response once, with its probability; they sum to 1", async () => {
    const engine = await policy();
    const outcomes = await enumerate(engine, request);
    // 0; then 1 or 2 and 0; then two of them and any: 1 + 2 + 4 · 3.
    expect(outcomes).toHaveLength(15);
    expect(new Set(outcomes.map(({ ids }) => ids.join())).size).toBe(15);
    expect(expectation(outcomes, () => 1)).toBeCloseTo(1, 14);
    const scores = await engine.score(outcomes.map(sequenceOf));
    outcomes.forEach(({ logp, ids, stop }, i) => {
      expect(logp).toBeCloseTo(
        scores[i].logp.reduce((sum, x) => sum + x, 0),
        13,
      );
      expect(stop).toBe(ids.at(-1) === 0 ? "eos" : "length");
    });
  });

  it("leaves out what cannot happen", async () => {
    const engine = await policy();
    const [table] = await engine.weights.read(weights, [weightName]);
    await engine.weights.write("policy", [{ ...table, data: table.data.map((x, i) => (i % 3 === 2 ? -1e300 : x)) }]);
    const outcomes = await enumerate(engine, request);
    expect(outcomes.map(({ ids }) => ids.join())).toEqual(["0", "1,0", "1,1,0", "1,1,1"]);
    expect(expectation(outcomes, () => 1)).toBeCloseTo(1, 14);
  });
});

describe("the policy gradient", () => {
  it("summed over all responses equals central differences of the exact expected reward to 1e-9", async () => {
    const engine = await policy();
    const outcomes = await enumerate(engine, request);
    const exact = await gradientOf(
      engine,
      outcomes,
      outcomes.map((outcome) => outcome.probability * reward(outcome)),
    );
    const [table] = await engine.weights.read(weights, [weightName]);
    const at = async (entry: number, h: number): Promise<number> => {
      await engine.weights.write("policy", [{ ...table, data: table.data.map((x, i) => (i === entry ? x + h : x)) }]);
      return expectation(await enumerate(engine, request), reward);
    };
    for (const entry of exact.keys()) {
      const slope = async (h: number): Promise<number> => ((await at(entry, h)) - (await at(entry, -h))) / (2 * h);
      expect(exact[entry]).toBeCloseTo((4 * (await slope(5e-4)) - (await slope(1e-3))) / 3, 9);
    }
    expect(Math.hypot(...exact)).toBeGreaterThan(0.05);
  });

  it("estimated from 4,000 samples lies within 4 standard errors of the exact one in every entry, with and without a baseline", async () => {
    const engine = await policy();
    const outcomes = await enumerate(engine, request);
    const exact = await gradientOf(
      engine,
      outcomes,
      outcomes.map((outcome) => outcome.probability * reward(outcome)),
    );
    const score: Float64Array[] = [];
    for (const outcome of outcomes) score.push(await gradientOf(engine, [outcome], [1]));
    const count = new Map(outcomes.map(({ ids }) => [ids.join(), 0]));
    const samples = 4000;
    const requests = Array.from({ length: samples }, (_, member) => ({
      ...request,
      stop: { ids: request.stopIds },
      key: randomKey({ seed: 9, purpose: "sample", member }),
    }));
    for await (const { ids } of engine.sample(requests)) count.set(ids.join(), count.get(ids.join())! + 1);
    const share = outcomes.map(({ ids }) => count.get(ids.join())! / samples);
    expect(share.reduce((sum, x) => sum + x, 0)).toBeCloseTo(1, 12);
    const mean = expectation(outcomes, reward);
    const spread = [0, mean].map((baseline) => {
      let total = 0;
      for (const entry of exact.keys()) {
        const terms = outcomes.map((outcome, i) => (reward(outcome) - baseline) * score[i][entry]);
        const estimate = terms.reduce((sum, x, i) => sum + share[i] * x, 0);
        const variance = outcomes.reduce((sum, { probability }, i) => sum + probability * (terms[i] - exact[entry]) ** 2, 0);
        expect(Math.abs(estimate - exact[entry])).toBeLessThanOrEqual(4 * Math.sqrt(variance / samples) + 1e-12);
        total += variance;
      }
      return total;
    });
    // The expectation is the same with a baseline; the variance is not.
    expect(spread[1]).toBeLessThan(spread[0]);
  });
});
