import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import { applyUpdate, clipFactor, freshState, normOf } from "./optimizer.js";

interface Numbers {
  readonly [tensor: string]: readonly number[];
}
interface Fixture {
  readonly lr: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weight_decay: number;
  readonly max_norm: number;
  readonly weight: Numbers;
  readonly steps: readonly { readonly gradient: Numbers; readonly norm: number; readonly clip_coefficient: number; readonly weight: Numbers }[];
}

const tensors = (numbers: Numbers): Map<string, Float64Array> => new Map(Object.entries(numbers).map(([name, data]) => [name, Float64Array.from(data)]));

it("AdamW gives the fixture's weights over five steps: ordinary, clipped, zero and tiny gradients", () => {
  const given: Fixture = JSON.parse(readFileSync(fixture("optim", "adamw.json"), "utf8"));
  const rule = { rule: "adamw", rate: given.lr, beta1: given.beta1, beta2: given.beta2, epsilon: given.eps, weightDecay: given.weight_decay } as const;
  let weights = tensors(given.weight);
  let state = freshState;
  const factors: number[] = [];
  for (const step of given.steps) {
    const gradient = tensors(step.gradient);
    const norm = normOf(gradient);
    const factor = clipFactor(norm, given.max_norm);
    expect(norm).toBeCloseTo(step.norm, 12);
    expect(factor).toBeCloseTo(step.clip_coefficient, 12);
    factors.push(factor);
    ({ weights, state } = applyUpdate(weights, gradient, state, rule, { factor, groups: [{ match: "^bias$", weightDecay: 0 }] }));
    for (const [name, data] of weights) data.forEach((x, i) => void expect(Math.abs(x - step.weight[name][i])).toBeLessThan(1e-12));
  }
  expect(state.steps).toBe(given.steps.length);
  expect(Math.min(...factors)).toBeLessThan(1);
});
