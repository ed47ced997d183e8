import { describe, expect, it } from "vitest";
import { lossRow } from "../../test/support/batch.js";
import { readStatistics } from "./contract.js";
import { entropyTerm } from "./entropy.js";
import { klEstimators, klPenalty, klSlope, klTerm, klValue } from "./kl.js";

describe("KL estimates", () => {
  it("by hand: policy -1, reference -3", () => {
    expect(klValue("k1", -1, -3)).toBe(2); // positive where the policy gives more than the reference
    expect(klValue("k2", -1, -3)).toBe(2);
    expect(klValue("k3", -1, -3)).toBeCloseTo(Math.exp(-2) + 2 - 1, 12);
    expect(klSlope("k1", -1, -3)).toBe(1);
    expect(klSlope("k2", -1, -3)).toBe(2);
    expect(klSlope("k3", -1, -3)).toBeCloseTo(1 - Math.exp(-2), 12);
  });

  it("the expectation of k1 and k3 under the policy is the KL", () => {
    const p = [0.5, 0.3, 0.2];
    const q = [0.2, 0.3, 0.5];
    const kl = p.reduce((sum, x, i) => sum + x * Math.log(x / (q[i] as number)), 0);
    for (const estimator of ["k1", "k3"] as const) {
      expect(p.reduce((sum, x, i) => sum + x * klValue(estimator, Math.log(x), Math.log(q[i] as number)), 0)).toBeCloseTo(kl, 12);
    }
  });

  it.each(klEstimators)("%s: the slope is that of the value, on both sides of the straight line of k3", (estimator) => {
    const h = 1e-6;
    for (const x of [-100, -25, -3, -0.1, 0, 0.1, 3, 19.9, 20.1, 25, 100]) {
      const difference = (klValue(estimator, -x + h, 0) - klValue(estimator, -x - h, 0)) / (2 * h);
      const slope = klSlope(estimator, -x, 0);
      expect(Math.abs(difference - slope)).toBeLessThan(1e-6 * Math.max(1, Math.abs(slope)));
    }
  });

  it.each(klEstimators)("%s: finite at log-ratios of 100 and -100, and k2 and k3 pull towards the reference", (estimator) => {
    for (const x of [100, -100]) {
      expect(Number.isFinite(klValue(estimator, -x, 0))).toBe(true);
      const slope = klSlope(estimator, -x, 0);
      expect(Number.isFinite(slope)).toBe(true);
      // Descending the loss moves the log-prob against the slope: up when the reference gives more (x > 0).
      if (estimator !== "k1") expect(Math.sign(-slope)).toBe(Math.sign(x));
    }
  });
});

describe("the KL term", () => {
  it("by hand: coefficient times weight times estimate, only where weights are", () => {
    const term = klTerm({
      estimator: "k2",
      coefficient: 0.1,
      reference: [Float64Array.from([-3, Number.NaN, -1])],
      weights: [Float64Array.from([0.5, 0, 0.25])],
    });
    const { value, derivatives, statistics } = term.run([lossRow({ old: [0, 0, 0], now: [-1, -1, -2], coefficient: 0 })]);
    expect(value).toBeCloseTo(0.1 * (0.5 * 2 + 0.25 * 0.5), 12);
    expect([...(derivatives[0]?.dLogp ?? [])]).toEqual([0.1 * 0.5 * 2, 0, 0.1 * 0.25 * -1]);
    expect(readStatistics(statistics)).toEqual({ kl_reference: 1.25 });
  });

  it("refuses a reference of another length", () => {
    const term = klTerm({ estimator: "k3", coefficient: 1, reference: [Float64Array.from([-1])], weights: [Float64Array.from([1, 1])] });
    expect(() => term.run([lossRow({ old: [0, 0], now: [-1, -1], coefficient: 0 })])).toThrow("it has 2 response tokens, 1 reference log-probs and 2 weights");
  });

  it("as a penalty in the reward is negative where the policy gives more than the reference", () => {
    expect([...klPenalty("k1", 0.5, Float64Array.from([-1, -1, -3]), Float64Array.from([-3, -3, -1]), Uint8Array.from([1, 0, 1]))]).toEqual([-1, 0, 1]);
  });
});

describe("the entropy term", () => {
  it("by hand: a positive coefficient rewards entropy", () => {
    const term = entropyTerm({ coefficient: 0.1, weights: [Float64Array.from([0.5, 0, 0.5])] });
    const { value, derivatives } = term.run([lossRow({ old: [0, 0, 0], now: [0, 0, 0], entropy: [1, 5, 2], coefficient: 0 })]);
    expect(value).toBeCloseTo(-0.15, 12);
    expect([...(derivatives[0]?.dEntropy ?? [])]).toEqual([-0.05, -0, -0.05].map((x) => x + 0));
  });
});
