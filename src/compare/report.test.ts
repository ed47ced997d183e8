import { describe, expect, it } from "vitest";
import { type Arm, reportOf } from "./report.js";
import type { ComparedRun } from "./run.js";

const none = { sampled: 0, trained: 0, evaluation: 0 };
function made(seed: number, values: readonly number[], more: Partial<ComparedRun> = {}): ComparedRun {
  const points = values.map((value, i) => ({ step: 10 * i, value }));
  return { folder: `run-${seed}`, method: "m", seed, steps: 20, data: "d", ended: "done", points, final: values.at(-1) as number, tokens: none, ...more };
}
const arm = (label: string, ...runs: ComparedRun[]): Arm => ({ label, runs });
const options = { metric: "eval.score" };

describe("the report of a comparison", () => {
  it("takes differences seed by seed, in whatever order runs are given", () => {
    // Differences 0.1, 0.2 and 0.3 although the means alone spread much more: t interval 0.2 ± 4.3027 * 0.1 / sqrt(3).
    const a = arm("a", made(0, [0, 0.1]), made(1, [0, 0.5]), made(2, [0, 0.6]));
    const b = arm("b", made(2, [0, 0.9]), made(0, [0, 0.2]), made(1, [0, 0.7]));
    const { difference, final } = reportOf([a, b], options).arms[1];
    expect(final.mean).toBeCloseTo(0.6, 12);
    expect(difference).toMatchObject({ pairs: 3, seeds: { by: "t", n: 3 }, problems: null });
    expect(difference?.mean).toBeCloseTo(0.2, 12);
    expect(difference?.seeds?.low).toBeCloseTo(-0.0484, 3);
    expect(difference?.seeds?.high).toBeCloseTo(0.4484, 3);
  });

  it("has no interval over one seed, and says so", () => {
    const report = reportOf([arm("a", made(0, [0, 0.1])), arm("b", made(0, [0, 0.4]))], options);
    expect(report.arms[0].final.interval).toBeNull();
    expect(report.arms[1].difference).toEqual({ mean: 0.30000000000000004, pairs: 1, seeds: null, problems: null });
    expect(report.notes).toEqual([expect.stringContaining("have one seed in common, so there is no interval over seeds")]);
  });

  it("does not pair runs of different seeds", () => {
    const report = reportOf([arm("a", made(0, [0, 0.1])), arm("b", made(1, [0, 0.4]), made(2, [0, 0.6]))], options);
    expect(report.arms[1].difference).toEqual({ mean: 0.4, pairs: 0, seeds: null, problems: null });
    expect(report.notes[0]).toContain("no seed in common");
  });

  it("counts runs without a pair in the means alone", () => {
    const report = reportOf([arm("a", made(0, [0, 0.1]), made(1, [0, 0.3])), arm("b", made(1, [0, 0.4]))], options);
    expect(report.arms[0].final.mean).toBeCloseTo(0.2, 12);
    expect(report.arms[1].difference?.mean).toBeCloseTo(0.1, 12);
    expect(report.notes.join()).toContain("one run of a and b has no pair and counts in the mean alone");
  });

  it("takes differences problem by problem, where the same problems were measured", () => {
    const scored = (seed: number, final: number, scores: (number | null)[], set = "s") => made(seed, [0, final], { problems: { set, scores } });
    const a = arm("a", scored(0, 0.25, [0, 1, 0, 0, null]));
    const b = arm("b", scored(0, 0.75, [1, 1, 1, 0, 1]));
    // Differences 1, 0, 1, 0; the fifth problem has no score on one side. Mean 0.5, deviation 0.57735: 3.1824 * 0.57735 / 2.
    const { difference } = reportOf([a, b], options).arms[1];
    expect(difference).toMatchObject({ seeds: null, problems: { n: 4, by: "t" } });
    expect(difference?.problems?.low).toBeCloseTo(0.5 - 0.9187, 3);
    const other = arm("b", scored(0, 0.75, [1, 1, 1, 0, 1], "other"));
    expect(reportOf([a, other], options).arms[1].difference?.problems).toBeNull();
  });

  it("measures the area by trapezoids, and the steps to a threshold by the median of the runs", () => {
    // (0 + 0.5) / 2 and (0.5 + 1) / 2 over equal spans: 0.25 and 0.75, mean 0.5.
    const a = arm("a", made(0, [0, 0.5, 1]), made(1, [0, 0.9, 1]), made(2, [0, 0.1, 0.2]));
    const b = arm("b", made(0, [0, 0.1, 0.2]), made(1, [0, 0.1, 0.9]), made(2, [0, 0.1, 0.2]));
    const [first, second] = reportOf([a, b], { ...options, threshold: 0.8 }).arms;
    expect(reportOf([arm("a", a.runs[0]), arm("b", b.runs[0])], options).arms[0].area?.mean).toBeCloseTo(0.5, 12);
    expect(first.threshold).toEqual({ value: 0.8, reached: 2, steps: 20 });
    expect(second.threshold).toEqual({ value: 0.8, reached: 1, steps: null });
    expect(first.curve[1]).toEqual({ step: 10, mean: expect.closeTo(0.5, 12), low: 0.1, high: 0.9 });
  });

  it("tells what has not ended, ended early, or was trained on something else", () => {
    const { ended: _, ...going } = made(1, [0, 0.2]);
    const early = made(0, [0, 0.2], { ended: "no-signal", data: "e" });
    const { notes } = reportOf([arm("a", made(0, [0, 0.1]), made(1, [0, 0.2])), arm("b", early, going)], options);
    expect(notes).toEqual([
      expect.stringContaining("run-1 has not ended"),
      expect.stringContaining("run-0 stopped by itself after step 20 (no-signal)"),
      "a and b were trained on different problems",
    ]);
  });

  it("refuses two runs of one seed on a side", () => {
    expect(() => reportOf([arm("a", made(0, [0]), made(0, [0])), arm("b", made(0, [0]))], options)).toThrow("2 of them have the seed 0");
  });
});
