/** How strongly tokens react to claims about the outcome, and the weights that follow. */

/** A token's log-prob under the claim that its answer is right, and that it is wrong, each less the one without a claim. */
export interface Gaps {
  readonly right: Float64Array; // [tokens]
  readonly wrong: Float64Array; // [tokens]
}

/** s_t = max(|gap to right|, |gap to wrong|), in nats. */
export function sensitivity({ right, wrong }: Gaps): Float64Array {
  return right.map((gap, t) => Math.max(Math.abs(gap), Math.abs(wrong[t] as number)));
}

export interface WeightOptions {
  readonly beta: number;
  readonly w_min: number;
  readonly inverted: boolean;
}

/** max(w_min, exp(-beta max(0, s - kappa))); inverted, its reciprocal. 1 exactly up to the threshold and for beta 0. */
export function tokenWeight(s: number, kappa: number, { beta, w_min, inverted }: WeightOptions): number {
  const weight = Math.max(w_min, Math.exp(-beta * Math.max(0, s - kappa)));
  return inverted ? 1 / weight : weight;
}

/**
 * Coefficients times weights, scaled so that an answer's positive and its negative ones keep their sums. Where all of an
 * answer's coefficients are one number A, that is A w_t n / sum w.
 */
export function redistributed(coefficients: Float64Array, weights: Float64Array, mask: Uint8Array): Float64Array {
  const scale = (sign: 1 | -1): number => {
    let [before, after] = [0, 0];
    for (let t = 0; t < mask.length; t++) {
      const a = coefficients[t] as number;
      if (!mask[t] || sign * a <= 0) continue;
      before += a;
      after += a * (weights[t] as number);
    }
    return after === 0 ? 1 : before / after;
  };
  const [up, down] = [scale(1), scale(-1)];
  return coefficients.map((a, t) => (mask[t] ? a * (weights[t] as number) * (a > 0 ? up : down) : a));
}

/** The middle number, or the mean of the two in the middle; 0 of none. */
export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  if (sorted.length === 0) return 0;
  return sorted.length % 2 === 1 ? (sorted[half] as number) : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
}
