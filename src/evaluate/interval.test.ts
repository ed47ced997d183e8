import { describe, expect, it } from "vitest";
import { randomKey, Stream } from "../core/random.js";
import { wilson } from "../core/wilson.js";
import { meanInterval, quantile } from "./interval.js";

describe("Wilson's interval", () => {
  it("is the published one for 81 of 263, without and at the ends", () => {
    // Newcombe, Statistics in Medicine 1998, table I, method 3.
    const { low, high } = wilson(81, 263);
    expect(low).toBeCloseTo(0.2553, 4);
    expect(high).toBeCloseTo(0.3662, 4);
    const none = wilson(0, 20);
    expect(none.low).toBe(0);
    expect(none.high).toBeCloseTo(0.1611, 4);
    const one = wilson(1, 29);
    expect(one.low).toBeCloseTo(0.0061, 4);
    expect(one.high).toBeCloseTo(0.1718, 4);
  });

  it("refuses what is no share", () => {
    expect(() => wilson(3, 2)).toThrow("3 of 2");
    expect(() => wilson(0, 0)).toThrow("0 of 0");
  });
});

describe("the interval of a mean over problems", () => {
  const stream = new Stream(randomKey({ seed: 5, purpose: "test" }));
  const values = Array.from({ length: 400 }, () => stream.int(5) / 4);

  it("has about the width of the normal one, and lies around the mean", () => {
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const deviation = Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (values.length - 1));
    const { low, high, by } = meanInterval(values, 1, false)!;
    expect(by).toBe("bootstrap");
    const half = (1.96 * deviation) / Math.sqrt(values.length);
    expect((high - low) / 2 / half).toBeGreaterThan(0.93);
    expect((high - low) / 2 / half).toBeLessThan(1.07);
    expect(Math.abs((high + low) / 2 - mean)).toBeLessThan(half / 10);
  });

  it("is the same for the same seed and another for another", () => {
    expect(meanInterval(values, 1, false)).toEqual(meanInterval(values, 1, false));
    expect(meanInterval(values, 1, false)).not.toEqual(meanInterval(values, 2, false));
  });

  it("is Wilson's where each problem has one sample, and where all problems agree", () => {
    expect(meanInterval([1, 0, 0, 1, 1], 1, true)).toEqual(wilson(3, 5));
    expect(meanInterval([1, 1, 1], 1, false)).toEqual(wilson(3, 3));
    expect(meanInterval([1, 0, 0, 1, 1], 1, false)!.by).toBe("bootstrap");
    expect(meanInterval([0.5, 0, 0.5, 1], 1, true)!.by).toBe("bootstrap");
  });

  it("is none without problems and for one of unknown spread", () => {
    expect(meanInterval([], 1, true)).toBeUndefined();
    expect(meanInterval([0.5], 1, false)).toBeUndefined();
  });
});

describe("a quantile", () => {
  it("is linear between neighbours", () => {
    expect(quantile([0, 10, 20, 30], 0.5)).toBe(15);
    expect(quantile([0, 10, 20, 30], 0.25)).toBe(7.5);
    expect(quantile([4], 0.9)).toBe(4);
    expect(quantile([0, 10], 1)).toBe(10);
  });
});
