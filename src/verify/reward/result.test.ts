import { describe, expect, it } from "vitest";
import { rewardOf, scoreOf } from "../../core/verdict.js";
import { verdictOf } from "./result.js";

const unit = [0, 1] as [number, number];

describe("a reward's result", () => {
  it("within the range is the score itself", () => {
    expect(verdictOf(1, unit)).toEqual({ kind: "accept" });
    expect(verdictOf(0, unit)).toEqual({ kind: "reject", reason: "wrong" });
    expect(verdictOf(0.25, unit)).toEqual({ kind: "partial", score: 0.25 });
    expect(verdictOf(true, unit)).toEqual({ kind: "accept" });
    expect(verdictOf(false, unit)).toEqual({ kind: "reject", reason: "wrong" });
  });

  it("on a scale of its own is what training takes, and mapped for evaluation", () => {
    // (r - low) / (high - low) with -1 and 2.
    const cases: [number, number][] = [
      [-5, 0],
      [-1, 0],
      [0, 1 / 3],
      [0.5, 0.5],
      [2, 1],
      [12, 1],
    ];
    for (const [reward, score] of cases) {
      const verdict = verdictOf(reward, [-1, 2]);
      expect(scoreOf(verdict)).toBeCloseTo(score, 12);
      expect(rewardOf(verdict)).toBe(reward);
    }
    expect(verdictOf(-0.5, unit)).toEqual({ kind: "reject", reason: "wrong", reward: -0.5 });
    expect(verdictOf(3, unit)).toEqual({ kind: "accept", reward: 3 });
  });

  it("that is nothing, not finite or of no known form is unscored, never 0", () => {
    for (const result of [
      null,
      undefined,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      "1",
      [1],
      {},
      { reward: "high" },
      { score: null },
      { kind: "right" },
      { score: Number.NaN },
    ]) {
      const verdict = verdictOf(result, unit);
      expect(verdict.kind).toBe("unscored");
      expect(rewardOf(verdict)).toBeUndefined();
    }
    expect(verdictOf("1", unit)).toMatchObject({ reason: "malformed", evidence: { message: 'a reward gave the text "1"' } });
    expect(verdictOf({ unscored: "judge-down" }, unit)).toMatchObject({ kind: "unscored", reason: "judge-down" });
  });

  it("may say more: parts, evidence, a reason, a kind", () => {
    expect(verdictOf({ score: 0.5, acc: 1, format: true, pred: "12" }, unit)).toEqual({
      kind: "partial",
      score: 0.5,
      parts: { acc: 1 },
      evidence: { format: true, pred: "12" },
    });
    expect(verdictOf({ kind: "reject", reason: "format" }, unit)).toEqual({ kind: "reject", reason: "format" });
    expect(verdictOf({ kind: "reject", reason: "format", reward: -1 }, unit)).toEqual({ kind: "reject", reason: "format", reward: -1 });
    expect(verdictOf({ kind: "accept", parts: { length: 3 } }, unit)).toEqual({ kind: "accept", parts: { length: 3 } });
    expect(verdictOf({ reward: 0, reason: "too long" }, unit)).toEqual({ kind: "reject", reason: "too long" });
    expect(verdictOf({ score: 1, parts: { length: "three" } }, unit)).toMatchObject({ kind: "unscored", reason: "malformed" });
  });
});
