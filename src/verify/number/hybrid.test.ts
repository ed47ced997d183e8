import { describe, expect, it } from "vitest";
import type { Problem } from "../../core/problem.js";
import { scoreOf, type Verdict } from "../../core/verdict.js";
import { hybridReward } from "./hybrid.js";
import { number } from "./number.js";

const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "100", version: 0 } };

describe("the hybrid reward", () => {
  it("has its numbers by hand", () => {
    const shape = { floor: 0.5, gamma: 1 };
    expect([0, 0.2, 0.5, 1, 1.0001, Number.NaN, Number.POSITIVE_INFINITY, -1].map((error) => hybridReward(error, shape))).toEqual([
      1, 0.9, 0.75, 0.5, 0, 0, 0, 0,
    ]);
    expect(hybridReward(0.5, { floor: 0.2, gamma: 2 })).toBeCloseTo(0.4, 12);
  });

  it("falls strictly up to the edge, and jumps to 0 there", () => {
    for (const floor of [0, 0.3, 0.9]) {
      for (const gamma of [0.5, 1, 3]) {
        const values = Array.from({ length: 101 }, (_, i) => hybridReward(i / 100, { floor, gamma }));
        for (let i = 1; i < values.length; i++) expect(values[i]).toBeLessThan(values[i - 1] as number);
        expect(values.at(-1)).toBeCloseTo(floor, 12);
        expect(hybridReward(1 + 1e-9, { floor, gamma })).toBe(0);
      }
    }
  });

  it("is the plain tolerance with a floor of 1", () => {
    for (const error of [0, 0.3, 1, 1.1, 5]) expect(hybridReward(error, { floor: 1, gamma: 1 })).toBe(error <= 1 ? 1 : 0);
  });
});

describe("number with the hybrid reward", () => {
  const verifier = number({ hybrid: {} });
  const verdict = (response: string, reference = "100"): Verdict => verifier.verify({ reference, response, problem, truncated: false }) as Verdict;

  it("pays near answers in part and logs how far off they are", () => {
    expect(verdict("It is 100")).toMatchObject({ kind: "accept", parts: { error: 0 } });
    expect(verdict("It is 101")).toMatchObject({ kind: "partial", score: expect.closeTo(0.9, 12), parts: { error: expect.closeTo(0.2, 12) } });
    expect(verdict("It is 95")).toMatchObject({ kind: "partial", score: 0.5, parts: { error: 1 } });
    expect(verdict("It is 94.99")).toMatchObject({ kind: "reject", reason: "wrong" });
    expect(verdict("It is -100")).toMatchObject({ kind: "reject", reason: "wrong" });
  });

  it("has no tolerance around 0, and none that overflows", () => {
    expect(scoreOf(verdict("It is 0", "0"))).toBe(1);
    expect(scoreOf(verdict("It is 0.0001", "0"))).toBe(0);
    expect(scoreOf(verdict(`It is 1e900`, "1e900"))).toBe(1);
    expect(scoreOf(verdict(`It is 1.01e900`, "1e900"))).toBeCloseTo(0.9, 12);
    expect(scoreOf(verdict(`It is 1e900`, "1"))).toBe(0);
  });
});
