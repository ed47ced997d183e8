/**
 * Update rules in float64 on tensors by name. SGD: w ← w − rate·m with m ← momentum·m + g + decay·w (as torch has it).
 * AdamW (Loshchilov and Hutter 2019, algorithm 2, with the rate in the decay): w ← w(1 − rate·decay) − rate·m̂/(√v̂ + ε).
 */
import type { ParameterRule, UpdateRule } from "../contract.js";
import type { Tensors } from "./model.js";

/** Moments by kind and tensor name (`m`, `v`, `momentum`), and the number of AdamW steps behind them. */
export interface OptimizerState {
  readonly steps: number;
  readonly moments: ReadonlyMap<string, Float64Array>;
}

export const freshState: OptimizerState = { steps: 0, moments: new Map() };

/** The name of the first tensor whose gradient is not finite. */
export function firstNonFinite(gradient: Tensors): string | undefined {
  for (const [name, data] of gradient) if (data.some((x) => !Number.isFinite(x))) return name;
  return undefined;
}

/** Global L2 norm. */
export function normOf(gradient: Tensors): number {
  let sum = 0;
  for (const data of gradient.values()) for (const x of data) sum += x * x;
  return Math.sqrt(sum);
}

/** What a gradient is multiplied with so that its norm is at most `maxNorm` (torch's clip_grad_norm_, with its 1e-6). */
export function clipFactor(norm: number, maxNorm: number | undefined): number {
  return maxNorm === undefined ? 1 : Math.min(1, maxNorm / (norm + 1e-6));
}

/** New weights and state; what was handed in stays as it is. */
export function applyUpdate(
  weights: Tensors,
  gradient: Tensors,
  state: OptimizerState,
  rule: UpdateRule,
  options: { readonly factor: number; readonly groups?: readonly ParameterRule[] },
): { weights: Map<string, Float64Array>; state: OptimizerState } {
  const moments = new Map(state.moments);
  const steps = rule.rule === "adamw" ? state.steps + 1 : state.steps;
  const next = new Map<string, Float64Array>();
  const groups = (options.groups ?? []).map((group) => ({ ...group, pattern: new RegExp(group.match) }));
  for (const [name, before] of weights) {
    const group = groups.find(({ pattern }) => pattern.test(name));
    const rate = rule.rate * (group?.rateScale ?? 1);
    const decay = group?.weightDecay ?? rule.weightDecay ?? 0;
    const scaled = gradient.get(name)!.map((x) => x * options.factor);
    const moment = (kind: string): Float64Array => {
      const copy = moments.get(`${kind}.${name}`)?.slice() ?? new Float64Array(before.length);
      moments.set(`${kind}.${name}`, copy);
      return copy;
    };
    const after = before.slice();
    if (rule.rule === "adamw") adamw(after, scaled, moment("m"), moment("v"), { ...rule, rate, weightDecay: decay, steps });
    else sgd(after, scaled, rule.momentum ? moment("momentum") : undefined, { ...rule, rate, weightDecay: decay });
    next.set(name, after);
  }
  return { weights: next, state: { steps, moments } };
}

function sgd(
  weights: Float64Array,
  gradient: Float64Array,
  momentum: Float64Array | undefined,
  rule: { readonly rate: number; readonly momentum?: number; readonly weightDecay: number },
): void {
  for (let i = 0; i < weights.length; i++) {
    let direction = gradient[i] + rule.weightDecay * weights[i];
    if (momentum) {
      momentum[i] = rule.momentum! * momentum[i] + direction;
      direction = momentum[i];
    }
    weights[i] -= rule.rate * direction;
  }
}

function adamw(
  weights: Float64Array,
  gradient: Float64Array,
  m: Float64Array,
  v: Float64Array,
  rule: {
    readonly rate: number;
    readonly beta1?: number;
    readonly beta2?: number;
    readonly epsilon?: number;
    readonly weightDecay: number;
    readonly steps: number;
  },
): void {
  const { rate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay, steps } = rule;
  const correction1 = 1 - beta1 ** steps;
  const correction2 = 1 - beta2 ** steps;
  for (let i = 0; i < weights.length; i++) {
    m[i] = beta1 * m[i] + (1 - beta1) * gradient[i];
    v[i] = beta2 * v[i] + (1 - beta2) * gradient[i] * gradient[i];
    // Without a gradient ever and with epsilon 0 this is 0/0, which moves nothing.
    const denominator = Math.sqrt(v[i] / correction2) + epsilon;
    weights[i] = weights[i] * (1 - rate * weightDecay) - (denominator === 0 ? 0 : (rate * (m[i] / correction1)) / denominator);
  }
}
