import { describe, expect, it } from "vitest";
import { pairedInterval, studentQuantile } from "./paired.js";

describe("the interval of paired differences", () => {
  it("uses the quantiles of Student's t as tables have them", () => {
    const table: [number, number][] = [
      [1, 12.7062],
      [2, 4.3027],
      [3, 3.1824],
      [4, 2.7764],
      [5, 2.5706],
      [10, 2.2281],
      [29, 2.0452],
      [200, 1.9719],
    ];
    for (const [degrees, value] of table) expect(studentQuantile(degrees)).toBeCloseTo(value, 4);
  });

  it("is the t interval for a handful of pairs", () => {
    // Mean 0.2, deviation 0.1, three pairs: 4.3027 * 0.1 / sqrt(3) = 0.24842.
    const interval = pairedInterval([0.1, 0.2, 0.3]);
    expect(interval).toMatchObject({ n: 3, by: "t" });
    expect(interval?.low).toBeCloseTo(0.2 - 0.24842, 4);
    expect(interval?.high).toBeCloseTo(0.2 + 0.24842, 4);
  });

  it("is near the normal one for many pairs, and the same every time", () => {
    const values = Array.from({ length: 400 }, (_, i) => (i % 4 === 0 ? 1 : 0));
    const interval = pairedInterval(values);
    // sqrt(0.25 * 0.75 / 400) = 0.02165; 1.96 of it is 0.0424.
    expect(interval?.low).toBeCloseTo(0.25 - 0.0424, 2);
    expect(interval?.high).toBeCloseTo(0.25 + 0.0424, 2);
    expect(pairedInterval(values)).toEqual(interval);
  });

  it("does not exist for one pair or none, rather than being 0 wide", () => {
    expect(pairedInterval([0.3])).toBeUndefined();
    expect(pairedInterval([])).toBeUndefined();
  });
});
