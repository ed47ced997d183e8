/**
 * Estimates of KL(policy, reference) on sampled tokens (Schulman, "Approximating KL divergence", 2020). With l and f the
 * log-probs of a token under policy and reference:
 *
 *     k1 = l - f                        unbiased, may be negative; as a loss its gradient has expectation 0
 *     k2 = (l - f)^2 / 2                as a loss its gradient has that of the KL as expectation
 *     k3 = exp(f - l) - (f - l) - 1     unbiased, never negative; GRPO's choice (arXiv 2402.03300, eq. 4)
 *
 * k3 beyond a log-ratio of 20 goes on as a straight line (our choice): finite, and it still pulls towards the reference.
 */
import { ArgumentError } from "../core/errors.js";
import type { LossRow, Term } from "./contract.js";
import { finite } from "./surrogate.js";

export const klEstimators = ["k1", "k2", "k3"] as const;
export type KlEstimator = (typeof klEstimators)[number];

/** Log-ratio from which k3 is a straight line. */
export const klLinearFrom = 20;

/** The estimate for one token, in nats. */
export function klValue(estimator: KlEstimator, logp: number, reference: number): number {
  const x = reference - logp;
  if (estimator === "k1") return -x;
  if (estimator === "k2") return (x * x) / 2;
  if (x <= klLinearFrom) return Math.expm1(x) - x;
  const edge = Math.exp(klLinearFrom);
  return edge * (1 + x - klLinearFrom) - 1 - x;
}

/** Its derivative with respect to the policy's log-prob. */
export function klSlope(estimator: KlEstimator, logp: number, reference: number): number {
  const x = reference - logp;
  if (estimator === "k1") return 1;
  if (estimator === "k2") return -x;
  return -Math.expm1(Math.min(x, klLinearFrom));
}

export interface KlTermOptions {
  readonly estimator: KlEstimator;
  /** Weight of the term; the loss grows by coefficient times the estimate. */
  readonly coefficient: number;
  /** Log-probs under the reference, at the training context and temperature. [rows][tokens] */
  readonly reference: readonly Float64Array[];
  /** Token weights, normaliser included; 0 where the term does not fall. [rows][tokens] */
  readonly weights: readonly Float64Array[];
}

/** The KL to a reference as a loss term. Reports the mean of the estimate over its tokens as `kl_reference`. */
export function klTerm(options: KlTermOptions): Term {
  const { estimator, coefficient } = options;
  return {
    name: `kl ${estimator}`,
    run(rows) {
      let value = 0;
      let sum = 0;
      let count = 0;
      const derivatives = rows.map((row) => {
        const { reference, weights } = arraysOf(options, row);
        const dLogp = new Float64Array(weights.length);
        for (let t = 0; t < weights.length; t++) {
          const w = weights[t] as number;
          if (w === 0) continue;
          const now = row.now.logp[t] as number;
          const kl = klValue(estimator, now, reference[t] as number);
          sum += kl;
          count++;
          value += w * coefficient * kl;
          dLogp[t] = w * coefficient * klSlope(estimator, now, reference[t] as number);
        }
        return { dLogp };
      });
      return finite(this.name, rows, { value, derivatives, statistics: { kl_reference: { sum, count } } });
    },
  };
}

function arraysOf(options: KlTermOptions, row: LossRow): { reference: Float64Array; weights: Float64Array } {
  const reference = options.reference[row.index];
  const weights = options.weights[row.index];
  if (reference?.length !== row.mask.length || weights?.length !== row.mask.length) {
    throw new ArgumentError({
      place: `kl term, trajectory ${row.trajectory.key}`,
      cause: `it has ${row.mask.length} response tokens, ${reference?.length ?? "no"} reference log-probs and ${weights?.length ?? "no"} weights`,
      mend: "give one of each a token, for every row of the batch",
    });
  }
  return { reference, weights };
}

/** −coefficient times the estimate at the log-probs of the rollout, a token: the KL as part of the reward. 0 outside the mask. */
export function klPenalty(estimator: KlEstimator, coefficient: number, old: Float64Array, reference: Float64Array, mask: Uint8Array): Float64Array {
  return Float64Array.from(old, (value, t) => (mask[t] ? -coefficient * klValue(estimator, value, reference[t] as number) : 0));
}
