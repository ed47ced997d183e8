import { describe, expect, it } from "vitest";
import { randomKey, Stream } from "../../core/random.js";
import { hardVotes, largest, softVotes, voteEntropy, votesOf } from "./votes.js";

const same = (a: string, b: string): boolean => a === b;
const of = (...answers: readonly (string | undefined)[]) => votesOf(answers, same);

describe("votes", () => {
  it("by hand: of 7, 3, 7, none, 3, 7, 5 and 7 the soft votes are 4/8, 2/8 and 1/8, and 0 for none", () => {
    const votes = of("7", "3", "7", undefined, "3", "7", "5", "7");
    expect(votes).toEqual({ classOf: [0, 1, 0, -1, 1, 0, 2, 0], sizes: [4, 2, 1], first: [0, 1, 6] });
    expect(softVotes(votes)).toEqual([0.5, 0.25, 0.5, 0, 0.25, 0.5, 0.125, 0.5]);
    expect(hardVotes(votes)).toEqual([1, 0, 1, 0, 0, 1, 0, 1]);
    expect(voteEntropy(votes)).toBeCloseTo(-(4 / 7) * Math.log(4 / 7) - (2 / 7) * Math.log(2 / 7) - (1 / 7) * Math.log(1 / 7), 12);
  });

  it("have as their mean the sum over classes of (n/G) squared", () => {
    const random = new Stream(randomKey({ seed: 3, purpose: "votes" }));
    for (let round = 0; round < 200; round++) {
      const answers = Array.from({ length: 1 + random.int(12) }, () => (random.int(5) === 0 ? undefined : String(random.int(4))));
      const votes = of(...answers);
      const mean = softVotes(votes).reduce((a, b) => a + b, 0) / answers.length;
      expect(mean).toBeCloseTo(
        votes.sizes.reduce((sum, n) => sum + (n / answers.length) ** 2, 0),
        12,
      );
    }
  });

  it("of classes that are equally large prefer the one that appears first", () => {
    expect(hardVotes(of(undefined, "b", "a", "a", "b"))).toEqual([0, 1, 0, 0, 1]);
    expect(largest(of("c", "b", "a", "a"), 2)).toEqual([2, 0]);
  });

  it("without any answer are 0", () => {
    expect([softVotes(of(undefined, undefined)), hardVotes(of(undefined, undefined)), voteEntropy(of(undefined))]).toEqual([[0, 0], [0, 0], 0]);
  });

  it("go by the verifier's sameness, not by spelling", () => {
    expect(
      votesOf(
        ["1/2", "0.5", "2/4", "1"],
        (a, b) => Math.abs(Number(a.split("/").reduce((x, y) => String(+x / +y))) - Number(b.split("/").reduce((x, y) => String(+x / +y)))) < 1e-9,
      ).classOf,
    ).toEqual([0, 0, 0, 1]);
  });
});
