import { describe, expect, it } from "vitest";
import { linearly, rlsdFactor } from "./rlsd.js";

describe("the reweighting of self-distillation", () => {
  it("by hand: half of a weight within 0.8 and 1.2, by the sign of the advantage", () => {
    const half = { lambda: 0.5, clip: 0.2 };
    expect(rlsdFactor(2, Math.log(1.1), half)).toBeCloseTo(1.05, 14);
    expect(rlsdFactor(-2, Math.log(1.1), half)).toBeCloseTo(0.5 + 0.5 / 1.1, 14);
    expect([rlsdFactor(1, 3, half), rlsdFactor(1, -3, half), rlsdFactor(-1, 3, half)]).toEqual([1.1, 0.9, 0.9]);
  });

  it("is 1 exactly without lambda, and lies within 1 - lambda clip and 1 + lambda clip for gaps of any size", () => {
    for (const gap of [-1000, -20, -1, -1e-9, 0, 1e-9, 1, 20, 1000]) {
      for (const a of [-3, 0, 3]) {
        expect(rlsdFactor(a, gap, { lambda: 0, clip: 0.2 })).toBe(1);
        const factor = rlsdFactor(a, gap, { lambda: 0.7, clip: 0.3 });
        expect(factor).toBeGreaterThanOrEqual(1 - 0.21 - 1e-15);
        expect(factor).toBeLessThanOrEqual(1 + 0.21 + 1e-15);
      }
    }
  });

  it("fades linearly: from one half at step 1 to 0 at step 51, and stays there", () => {
    expect([1, 26, 51, 400].map((step) => linearly(step, 0.5, 0, 50))).toEqual([0.5, 0.25, 0, 0]);
  });
});
