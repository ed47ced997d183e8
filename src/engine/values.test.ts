import { describe, expect, it } from "vitest";
import { draw, entropyOf, logitGradient, logSoftmax, logSumExp, mostLikely, tailOf, topOf, truncated } from "./values.js";

const log = (...p: number[]): Float64Array => Float64Array.from(p, Math.log);
const close = (actual: ArrayLike<number>, expected: ArrayLike<number>, digits = 14): void => {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i++) expect(actual[i]).toBeCloseTo(expected[i], digits);
};

describe("one distribution", () => {
  it("has the hand-computed probabilities, entropy and order at temperatures 1 and 0.5", () => {
    const logits = [3 + Math.log(1), 3 + Math.log(2), 3 + Math.log(5)];
    close(logSoftmax(logits), log(1 / 8, 2 / 8, 5 / 8));
    close(logSoftmax(logits, 0.5), log(1 / 30, 4 / 30, 25 / 30));
    expect(entropyOf(log(1 / 8, 2 / 8, 5 / 8))).toBeCloseTo((Math.log(8) + 2 * Math.log(4) + 5 * Math.log(8 / 5)) / 8, 14);
    expect(mostLikely(log(0.3, 0.35, 0.35))).toBe(1);
  });

  it("keeps huge and impossible logits: no overflow, and no NaN from 0 log 0", () => {
    expect(logSumExp([1000, 1000])).toBeCloseTo(1000 + Math.log(2), 12);
    expect(logSumExp([])).toBe(-Infinity);
    const logp = logSoftmax([0, -1e9, -Infinity]);
    expect(Array.from(logp)).toEqual([0, -1e9, -Infinity]);
    expect(entropyOf(logp)).toBe(0);
  });

  it("keeps the digits of a tail that 1 − Σp would lose", () => {
    const logp = logSoftmax([0, -50, -51]);
    expect(tailOf(logp, [0])).toBeCloseTo(-50 + Math.log(1 + Math.exp(-1)), 12);
    expect(tailOf(logp, [0, 1, 2])).toBe(-Infinity);
  });

  it("lists the most likely first, ties by lower id", () => {
    const top = topOf(log(0.1, 0.3, 0.1, 0.3, 0.2), 3);
    expect(Array.from(top.ids)).toEqual([1, 3, 4]);
    close([...top.logp, top.tail], log(0.3, 0.3, 0.2, 0.2));
    expect(topOf(log(0.5, 0.5), 2).tail).toBe(-Infinity);
  });
});

describe("the inverse transform", () => {
  const p = log(0, 0.25, 0, 0.5, 0.25, 0);

  it("takes the first id whose cumulative probability exceeds u, on both sides of each bound", () => {
    const at = [0, 0.25 - 1e-12, 0.25, 0.75 - 1e-12, 0.75, 1 - 2 ** -53];
    expect(at.map((u) => draw(p, u))).toEqual([1, 1, 3, 3, 4, 4]);
  });

  it("never draws an id of probability 0, whatever the rounding of the total", () => {
    const logp = logSoftmax([-Infinity, ...Array.from({ length: 1000 }, (_, i) => Math.sin(i) * 8), -Infinity]);
    for (const u of [0, 2 ** -53, 0.5, 1 - 2 ** -52, 1 - 2 ** -53]) expect(logp[draw(logp, u)]).toBeGreaterThan(-Infinity);
    expect(draw(logp, 0)).toBe(1);
    expect(draw(logp, 1 - 2 ** -53)).toBe(1000);
  });
});

describe("truncation", () => {
  const p = log(0.4, 0.3, 0.2, 0.1);

  it.each([
    [{ topK: 2 }, [4 / 7, 3 / 7, 0, 0]],
    [{ topP: 0.39 }, [1, 0, 0, 0]],
    [{ topP: 0.41 }, [4 / 7, 3 / 7, 0, 0]],
    [{ topP: 1 }, [0.4, 0.3, 0.2, 0.1]],
    [{ minP: 0.49 }, [4 / 9, 3 / 9, 2 / 9, 0]],
    [{ minP: 1 }, [1, 0, 0, 0]],
    [{ topK: 3, topP: 0.5 }, [4 / 7, 3 / 7, 0, 0]],
    [{ topK: 2, topP: 0.6 }, [4 / 7, 3 / 7, 0, 0]],
    [{ topK: 2, topP: 0.5 }, [1, 0, 0, 0]],
  ])("%j keeps and renormalises by hand", (truncation, expected) => {
    close(truncated(p, truncation).map(Math.exp), expected);
  });
});

describe("the gradient of the logits", () => {
  const logits = [0.3, -1.2, 2, 0.7, -0.4];
  const zero = { token: 2, dLogp: 0, dEntropy: 0, ids: [0, 3], dTargetLogp: [0, 0], dTargetTail: 0 };
  const given = { token: 3, dLogp: 0.8, dEntropy: -1.3, ids: [4, 0], dTargetLogp: [0.5, -0.9], dTargetTail: 1.7 };

  it("is onehot − p over the temperature for a log-prob", () => {
    const logp = log(0.2, 0.5, 0.3);
    close(logitGradient(logp, 2, { ...zero, ids: [], token: 1, dLogp: 3 }), [-0.3, 0.75, -0.45]);
  });

  it.each([
    ["the log-prob", { ...zero, dLogp: 1.1 }],
    ["the entropy", { ...zero, dEntropy: 0.7 }],
    ["the targets", { ...zero, dTargetLogp: [0.4, -2] }],
    ["the tail", { ...zero, dTargetTail: -0.6 }],
    ["all of them", given],
  ])("equals central differences to 1e-9 for %s", (_, derivatives) => {
    const temperature = 0.7;
    const loss = (x: readonly number[]): number => {
      const logp = logSoftmax(x, temperature);
      const { token, dLogp, dEntropy, ids, dTargetLogp, dTargetTail } = derivatives;
      return (
        dLogp * logp[token] + dEntropy * entropyOf(logp) + ids.reduce((sum, id, i) => sum + dTargetLogp[i] * logp[id], 0) + dTargetTail * tailOf(logp, ids)
      );
    };
    const gradient = logitGradient(logSoftmax(logits, temperature), temperature, derivatives);
    logits.forEach((_, v) => {
      const at = (h: number): number => loss(logits.map((x, i) => (i === v ? x + h : x)));
      const slope = (h: number): number => (at(h) - at(-h)) / (2 * h);
      expect(gradient[v]).toBeCloseTo((4 * slope(5e-4) - slope(1e-3)) / 3, 9);
    });
    expect(gradient.reduce((sum, x) => sum + x, 0)).toBeCloseTo(0, 14);
  });

  it("is exactly 0 where all derivatives are, and where the tail has no mass", () => {
    expect(logitGradient(logSoftmax(logits), 1, zero).every((x) => x === 0)).toBe(true);
    const everything = { ...zero, ids: [0, 1, 2, 3, 4], dTargetLogp: [0, 0, 0, 0, 0], dTargetTail: 1 };
    expect(logitGradient(logSoftmax(logits), 1, everything).every((x) => x === 0)).toBe(true);
  });
});
