import { describe, expect, it } from "vitest";
import { parseSchedule, rateAt, type Schedule } from "./schedule.js";

const rates = (schedule: Schedule, last: number): number[] => Array.from({ length: last }, (_, i) => rateAt(schedule, i + 1));
const near = (values: readonly number[]) => values.map((x) => expect.closeTo(x, 12));

describe("rateAt", () => {
  it("stays at a constant rate", () => {
    expect(rates({ kind: "constant", rate: 0.5 }, 3)).toEqual([0.5, 0.5, 0.5]);
  });

  it("climbs to the peak with the last update of the warm-up, without an update of rate 0", () => {
    expect(rates({ kind: "constant", rate: 1, warmup: 4 }, 6)).toEqual([0.25, 0.5, 0.75, 1, 1, 1]);
  });

  it("falls in a line: 4 updates, each a quarter less, none of rate 0", () => {
    expect(rates({ kind: "linear", rate: 1, steps: 4 }, 6)).toEqual([1, 0.75, 0.5, 0.25, 0, 0]);
  });

  it("falls in a line to endRate after the warm-up", () => {
    expect(rates({ kind: "linear", rate: 1, steps: 6, warmup: 2, endRate: 0.2 }, 8)).toEqual(near([0.5, 1, 1, 0.8, 0.6, 0.4, 0.2, 0.2]));
  });

  it("falls in half a cosine: (1 + cos πp) / 2 at p = 0, 1/4, 1/2, 3/4", () => {
    const quarter = Math.SQRT1_2 / 2;
    expect(rates({ kind: "cosine", rate: 2, steps: 4 }, 5)).toEqual(near([2, 1 + 2 * quarter, 1, 1 - 2 * quarter, 0]));
  });

  it("falls in half a cosine to endRate after the warm-up", () => {
    expect(rates({ kind: "cosine", rate: 1, steps: 3, warmup: 1, endRate: 0.1 }, 5)).toEqual(near([1, 1, 0.55, 0.1, 0.1]));
  });

  it("never leaves the range between endRate and the peak", () => {
    for (const kind of ["linear", "cosine"] as const) {
      for (const rate of rates({ kind, rate: 3e-4, steps: 50, warmup: 7, endRate: 1e-5 }, 80).slice(7)) {
        expect(rate).toBeGreaterThanOrEqual(1e-5 - 1e-18);
        expect(rate).toBeLessThanOrEqual(3e-4);
      }
    }
  });

  it("refuses a step that is not counted from 1", () => {
    expect(() => rateAt({ kind: "constant", rate: 1 }, 0)).toThrow(/step is 0; count updates from 1/);
    expect(() => rateAt({ kind: "constant", rate: 1 }, 1.5)).toThrow(/step is 1.5/);
  });
});

describe("parseSchedule", () => {
  it("reads each kind", () => {
    for (const schedule of [
      { kind: "constant", rate: 0 },
      { kind: "linear", rate: 1, steps: 10, warmup: 9 },
      { kind: "cosine", rate: 1, steps: 1, endRate: 0.1 },
    ]) {
      expect(parseSchedule(schedule, "test")).toEqual(schedule);
    }
  });

  it("refuses what it does not know or cannot mean, and names it", () => {
    expect(() => parseSchedule({ kind: "cosine", rate: 1, step: 10 }, "sft")).toThrow(/sft.*step.*steps/);
    expect(() => parseSchedule({ kind: "constant", rate: 1, steps: 10 }, "sft")).toThrow(/steps/);
    expect(() => parseSchedule({ kind: "exponential", rate: 1 }, "sft")).toThrow(/kind/);
    expect(() => parseSchedule({ kind: "linear", rate: -1, steps: 10 }, "sft")).toThrow(/rate/);
    expect(() => parseSchedule({ kind: "linear", rate: 1 }, "sft")).toThrow(/steps/);
    expect(() => parseSchedule({ kind: "linear", rate: 1, steps: 10, warmup: 10 }, "sft")).toThrow(/warmup/);
  });
});
