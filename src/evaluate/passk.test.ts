import { describe, expect, it } from "vitest";
import { type AnswerClass, majAtK, passAtK } from "./passk.js";

/** All subsets of k of the items. */
function subsets<T>(items: readonly T[], k: number): T[][] {
  if (k === 0) return [[]];
  return items.flatMap((item, i) => subsets(items.slice(i + 1), k - 1).map((rest) => [item, ...rest]));
}

describe("pass@k", () => {
  it("is 1 − C(n−c, k) / C(n, k), by hand", () => {
    expect(passAtK(4, 1, 2)).toBeCloseTo(1 - 3 / 6, 15);
    expect(passAtK(5, 2, 3)).toBeCloseTo(1 - 1 / 10, 15);
    expect(passAtK(10, 3, 1)).toBeCloseTo(0.3, 15);
  });

  it("is 0 without a right sample, and 1 where fewer than k are wrong", () => {
    expect(passAtK(8, 0, 8)).toBe(0);
    expect(passAtK(8, 5, 4)).toBe(1);
    expect(passAtK(1, 1, 1)).toBe(1);
  });

  it("is the share of all subsets of k with a right one", () => {
    for (const [n, c] of [
      [6, 2],
      [7, 3],
      [5, 1],
    ] as const) {
      for (let k = 1; k <= n; k++) {
        const all = subsets(
          Array.from({ length: n }, (_, i) => i < c),
          k,
        );
        expect(passAtK(n, c, k)).toBeCloseTo(all.filter((subset) => subset.includes(true)).length / all.length, 14);
      }
    }
  });

  it("does not overflow for thousands of samples", () => {
    expect(passAtK(10_000, 100, 64)).toBeCloseTo(0.475, 2);
  });

  it("refuses k above n and counts that cannot be", () => {
    expect(() => passAtK(4, 1, 5)).toThrow("k is 5 where a problem has 4 scored samples");
    expect(() => passAtK(4, 5, 1)).toThrow("5 of 4 samples cannot be right");
    expect(() => passAtK(4, 1, 0)).toThrow("k is 0");
  });
});

describe("maj@k", () => {
  const right = (count: number): AnswerClass => ({ count, right: count });
  const wrong = (count: number): AnswerClass => ({ count, right: 0 });

  it("of all samples is the most frequent answer's rightness", () => {
    expect(majAtK([right(3), wrong(2)], 0, 5)).toBe(1);
    expect(majAtK([right(2), wrong(3)], 0, 5)).toBe(0);
  });

  it("gives each of equally frequent answers its share", () => {
    expect(majAtK([right(2), wrong(2)], 0, 4)).toBeCloseTo(1 / 2, 15);
    expect(majAtK([wrong(1), right(1), wrong(1)], 0, 3)).toBeCloseTo(1 / 3, 15);
  });

  it("counts no vote of a sample without an answer; nobody's vote is wrong", () => {
    expect(majAtK([right(1)], 4, 5)).toBe(1);
    expect(majAtK([], 3, 3)).toBe(0);
    // Of the pairs of {right, none, none}: two have the right answer as their only vote, one has no vote.
    expect(majAtK([right(1)], 2, 2)).toBeCloseTo(2 / 3, 15);
  });

  it("of k below n is the mean over all subsets, by hand and by enumeration", () => {
    // Right, right, wrong: of three pairs one is right twice, two are ties.
    expect(majAtK([right(2), wrong(1)], 0, 2)).toBeCloseTo((1 + 1 / 2 + 1 / 2) / 3, 15);
    const classes: AnswerClass[] = [right(3), wrong(2), { count: 2, right: 1 }, wrong(1)];
    const votes = [...classes.flatMap((_, i) => new Array<number>(classes[i]!.count).fill(i)), -1, -1];
    for (let k = 1; k <= votes.length; k++) {
      const all = subsets(votes, k).map((subset) => {
        const counts = classes.map((_, i) => subset.filter((vote) => vote === i).length);
        const top = Math.max(...counts);
        if (top === 0) return 0;
        const winners = classes.filter((_, i) => counts[i] === top);
        return winners.reduce((sum, { count, right: accepted }) => sum + accepted / count, 0) / winners.length;
      });
      expect(majAtK(classes, 2, k)).toBeCloseTo(all.reduce((a, b) => a + b, 0) / all.length, 12);
    }
  });

  it("of one sample is pass@1", () => {
    expect(majAtK([right(3), wrong(4), wrong(1)], 2, 1)).toBeCloseTo(passAtK(10, 3, 1), 14);
  });

  it("refuses more samples than its arithmetic holds", () => {
    expect(() => majAtK([right(1001)], 0, 2)).toThrow("at most 1000");
  });
});
