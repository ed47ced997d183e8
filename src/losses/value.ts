/**
 * The loss of a value function (PPO: Schulman et al. 2017, arXiv 1707.06347, eq. 9; clipped as in its reference code):
 *
 *     loss = coefficient sum_t w_t max( (V_t - G_t)^2, (clip(V_t, O_t - c, O_t + c) - G_t)^2 ) / 2
 *
 * V: values being differentiated, before each token is seen; O: values at the weights of the rollout; G: targets.
 */
import type { Term } from "./contract.js";
import { finite } from "./surrogate.js";

export interface ValueTermOptions {
  readonly coefficient: number;
  /** G. [rows][tokens] */
  readonly targets: readonly Float64Array[];
  /** O. [rows][tokens] */
  readonly old: readonly Float64Array[];
  /** Token weights, normaliser included; 0 where the term does not fall. [rows][tokens] */
  readonly weights: readonly Float64Array[];
  /** c; absent: not clipped. */
  readonly clip?: number;
  /** A pass of its own; absent: values of the policy's pass. */
  readonly on?: Term["on"];
}

/** The value loss as a term. Reports sums from which the explained variance of the values before the update follows (`explainedVariance`). */
export function valueTerm(options: ValueTermOptions): Term {
  const { coefficient, clip } = options;
  return {
    name: "value",
    want: { values: true },
    ...(options.on ? { on: options.on } : {}),
    run(rows) {
      let value = 0;
      const sums = { error: 0, squaredError: 0, target: 0, squaredTarget: 0 };
      let count = 0;
      const derivatives = rows.map((row) => {
        const [targets, old, weights] = [options.targets, options.old, options.weights].map((arrays) => arrays[row.index] as Float64Array);
        const now = row.now.values as Float64Array;
        const dValue = new Float64Array(now.length);
        for (let t = 0; t < weights.length; t++) {
          const w = weights[t];
          if (w === 0) continue;
          const plain = now[t] - targets[t];
          const bounded = clip === undefined ? plain : Math.min(Math.max(now[t], old[t] - clip), old[t] + clip) - targets[t];
          const isBounded = bounded ** 2 > plain ** 2;
          value += (coefficient * w * (isBounded ? bounded : plain) ** 2) / 2;
          // Where the bounded error is the larger one, the value stands outside of its bounds and has no slope.
          dValue[t] = isBounded ? 0 : coefficient * w * plain;
          const before = targets[t] - old[t];
          sums.error += before;
          sums.squaredError += before ** 2;
          sums.target += targets[t];
          sums.squaredTarget += targets[t] ** 2;
          count++;
        }
        return { dValue };
      });
      const statistics = Object.fromEntries(Object.entries(sums).map(([name, sum]) => [`value.${name}`, { sum, count }]));
      return finite(this.name, rows, { value, derivatives, statistics });
    },
  };
}

/** 1 - Var(G - O) / Var(G) from the statistics of `valueTerm`; undefined where targets do not vary. */
export function explainedVariance(statistics: { readonly [name: string]: number }): number | undefined {
  const { "value.error": error, "value.squaredError": squaredError, "value.target": target, "value.squaredTarget": squaredTarget } = statistics;
  if (error === undefined) return undefined;
  const variance = squaredTarget - target ** 2;
  return variance > 1e-12 ? 1 - (squaredError - error ** 2) / variance : undefined;
}
