import { expect, it } from "vitest";
import { batch, group, row, scores } from "../../test/support/batch.js";
import { rowsOf } from "../methods/credit.js";
import { type LossRow, readStatistics } from "./contract.js";
import { explainedVariance, valueTerm } from "./value.js";

const three = rowsOf(batch(group("p", [row("p", 0, { old: [-1, -1, -1] })])));
const f = (...values: number[]) => Float64Array.from(values);
const rowsAt = (values: Float64Array): LossRow[] =>
  three.map((trajectory, index) => ({ index, trajectory, now: { ...scores([-1, -1, -1]), values } }) as never);
const term = (more: object = {}) => valueTerm({ coefficient: 0.5, targets: [f(1, 0, 1)], old: [f(0.5, 0.5, 0)], weights: [f(0.5, 0.5, 0)], ...more });

it("by hand: half the weighted squared error, the slope of each value, and none after the last token or without weight", () => {
  const { value, derivatives } = term().run(rowsAt(f(0.8, 0.4, 9, 9)));
  expect(value).toBeCloseTo(0.5 * 0.5 * (0.2 ** 2 + 0.4 ** 2) * 0.5, 12);
  expect([...(derivatives[0].dValue as Float64Array)].map((d) => Number(d.toFixed(12)))).toEqual([-0.05, 0.1, 0, 0]);
});

it("clipped: where the bounded error is the larger one it counts, and has no slope", () => {
  // 0.8 may be at most 0.6 = 0.5 + 0.1: error 0.4 instead of 0.2. 0.4 is within its bounds.
  const { value, derivatives } = term({ clip: 0.1 }).run(rowsAt(f(0.8, 0.4, 9, 9)));
  expect(value).toBeCloseTo(0.5 * 0.5 * (0.4 ** 2 + 0.4 ** 2) * 0.5, 12);
  expect((derivatives[0].dValue as Float64Array)[0]).toBe(0);
  expect((derivatives[0].dValue as Float64Array)[1]).toBeCloseTo(0.1, 12);
});

it("tells how much of the targets' variance the values before the update explain", () => {
  // Targets 1 and 0, values 0.5: nothing. Values 0.9 and 0.1 leave errors 0.1 and -0.1: 1 - 0.01 / 0.25.
  const explained = (old: Float64Array) => explainedVariance(readStatistics(term({ old: [old] }).run(rowsAt(f(0, 0, 0, 0))).statistics));
  expect(explained(f(0.5, 0.5, 0))).toBeCloseTo(0, 12);
  expect(explained(f(0.9, 0.1, 0))).toBeCloseTo(0.96, 12);
  expect(explainedVariance({})).toBeUndefined();
});
