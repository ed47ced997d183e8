import { describe, expect, it } from "vitest";
import { accept, partial, reject, scoreOf, unscored } from "./verdict.js";

describe("a verdict", () => {
  it("has a score, unless the fault was ours", () => {
    expect([accept(), reject("wrong"), partial(0.25), unscored("starved")].map(scoreOf)).toEqual([1, 0, 0.25, undefined]);
  });

  it("carries what explains it", () => {
    expect(reject("wrong", { evidence: { read: "7" }, parts: { format: 1 } })).toEqual({
      kind: "reject",
      reason: "wrong",
      evidence: { read: "7" },
      parts: { format: 1 },
    });
  });

  it("is partial only strictly between 0 and 1", () => {
    expect(partial(Number.MIN_VALUE).kind).toBe("partial");
    expect(partial(1 - 2 ** -53).kind).toBe("partial");
    for (const score of [0, 1, -0.1, 1.1, Number.NaN, Infinity]) expect(() => partial(score)).toThrow("between 0 and 1");
  });
});
