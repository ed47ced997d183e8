import { describe, expect, it } from "vitest";
import { curve, sparkline } from "./curve.js";

describe("a curve", () => {
  it("rises from the lower left to the upper right, between its labels", () => {
    expect(curve([0, 1, 2, 3], { height: 2 })).toEqual(["3 ┤ ▞", "0 ┤▞", "  └──", "   1 4"]);
  });

  it("draws equal values as one line and averages more values than fit", () => {
    expect(curve([0.5, 0.5, 0.5, 0.5], { height: 2, low: 0, high: 1 }).slice(0, 2)).toEqual(["1 ┤▄▄", "0 ┤"]);
    const lines = curve(
      Array.from({ length: 1000 }, (_, i) => i),
      { width: 10, height: 4 },
    );
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(20);
    expect(lines.at(-1)).toMatch(/^ +1 +1000$/);
  });

  it("of nothing has no lines", () => {
    expect(curve([])).toEqual([]);
    expect(curve([undefined])).toEqual([]);
  });

  it("leaves a gap where nothing is, counts from the step that is first, and names one end where all values are one", () => {
    expect(curve([0, undefined, 1, 1, 1, 1], { height: 2, first: 101 })).toEqual(["1 ┤ ▀▀", "0 ┤▖", "  └───", "   101 106"]);
    expect(curve([5, 5, 5, 5], { height: 2 })).toEqual(["  ┤", "5 ┤▄▄", "  └──", "   1 4"]);
  });
});

describe("a curve in one line", () => {
  it("goes from its lowest to its highest value, in means where there are more than fit", () => {
    expect(sparkline([0, 1, 2, 7])).toBe("▁▂▃█");
    expect(sparkline([0, 0, 7, 7], 2)).toBe("▁█");
    expect(sparkline([0.5, 0.5])).toBe("▁▁");
    expect(sparkline([])).toBe("");
  });
});
