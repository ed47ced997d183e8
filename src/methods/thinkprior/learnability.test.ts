import { describe, expect, it } from "vitest";
import { randomKey, Stream } from "../../core/random.js";
import { expectedLearnability, learnability } from "./learnability.js";

const factorial = (n: number): number => (n < 2 ? 1 : n * factorial(n - 1));
const beta = (a: number, b: number): number => (factorial(a - 1) * factorial(b - 1)) / factorial(a + b - 1);
/** P(0 < C < G) of a beta-binomial, by its sum over C; a and b are whole numbers. */
function bySum(a: number, b: number, group: number): number {
  let sum = 0;
  for (let c = 1; c < group; c++) sum += ((factorial(group) / factorial(c) / factorial(group - c)) * beta(a + c, b + group - c)) / beta(a, b);
  return sum;
}

describe("learnability", () => {
  it("by hand: of two answers that are right at a rate of 1/4 3/8 of the groups are mixed; of one, none", () => {
    expect(learnability(0.25, 2)).toBeCloseTo(3 / 8, 12);
    expect(learnability(0.25, 1)).toBe(0);
    expect([learnability(0, 8), learnability(1, 8)]).toEqual([0, 0]);
  });

  it("is largest at 1/2, 1 - 2^(1 - G), symmetric and concave", () => {
    for (const group of [2, 4, 8, 16]) {
      expect(learnability(0.5, group)).toBe(1 - 2 ** (1 - group));
      for (let i = 1; i < 20; i++) {
        const p = i / 20;
        const [before, here, after] = [p - 0.05, p, p + 0.05].map((x) => learnability(x, group)) as [number, number, number];
        expect(here).toBeCloseTo(learnability(1 - p, group), 12);
        expect(here).toBeGreaterThan((before + after) / 2);
        expect(here).toBeLessThanOrEqual(learnability(0.5, group));
      }
    }
  });
});

describe("expected learnability", () => {
  it("by hand: a = 2, b = 1 and two answers: 1 - (2 x 3 + 1 x 2) / (3 x 4) = 1/3", () => {
    expect(expectedLearnability(2, 1, 2)).toBeCloseTo(1 / 3, 12);
  });

  it("equals the sum over numbers of right answers, for groups of up to eight", () => {
    for (let group = 2; group <= 8; group++)
      for (const [a, b] of [
        [1, 1],
        [1, 4],
        [3, 2],
        [7, 7],
      ] as const)
        expect(expectedLearnability(a, b, group)).toBeCloseTo(bySum(a, b, group), 12);
  });

  it("equals the share of mixed groups in draws, within three standard errors", () => {
    const random = new Stream(randomKey({ seed: 1, purpose: "test" }));
    const draws = 20_000;
    for (const [a, b, group] of [
      [0.501, 3.501, 8],
      [2.001, 2.001, 8],
      [4.001, 0.001, 4],
      [30, 12, 16],
    ] as const) {
      let mixed = 0;
      for (let n = 0; n < draws; n++) {
        // Polya's urn: answers one after another, each with what the ones before it say.
        let right = 0;
        for (let i = 0; i < group; i++) if (random.next() < (a + right) / (a + b + i)) right++;
        if (right > 0 && right < group) mixed++;
      }
      const exact = expectedLearnability(a, b, group);
      expect(Math.abs(mixed / draws - exact)).toBeLessThan(3 * Math.sqrt((exact * (1 - exact)) / draws));
    }
  });

  it("is 1 - 2 / (G + 1) where nothing is known, the same for every problem", () => {
    for (const group of [2, 8, 64]) expect(expectedLearnability(1, 1, group)).toBeCloseTo(1 - 2 / (group + 1), 12);
  });

  it("at an equal mean grows with what is known, towards that of the mean", () => {
    for (const mean of [0.5, 0.2, 0.9]) {
      let before = 0;
      for (const known of [0.1, 1, 4, 20, 200, 1e6]) {
        const here = expectedLearnability(mean * known, (1 - mean) * known, 8);
        expect(here).toBeGreaterThan(before);
        before = here;
      }
      expect(before).toBeCloseTo(learnability(mean, 8), 4);
    }
  });

  it("has the same bits for (a, b) and (b, a), so that ties are ties", () => {
    for (let i = 0; i < 50; i++) expect(expectedLearnability(0.1 + i / 7, 4.3, 8)).toBe(expectedLearnability(4.3, 0.1 + i / 7, 8));
  });

  it("of a rate of 0 is near nothing with the paper's prior: such a problem is asked last", () => {
    // 1 - (0.001)_8 / (4.002)_8 - (4.001)_8 / (4.002)_8, by hand about 0.001 times the sum of 1/(4 + i), i < 8.
    expect(expectedLearnability(0.001, 4.001, 8)).toBeCloseTo(0.001 * [4, 5, 6, 7, 8, 9, 10, 11].reduce((sum, n) => sum + 1 / n, 0), 5);
  });
});
