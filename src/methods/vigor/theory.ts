/** What the paper proves of allocation by variance (P52): how large gradients can be, and how much faster the same gradients come. */

/**
 * Bound on the norm of a prompt's policy gradient, M sigma, where M bounds the norm of a ratio's gradient and rewards are +-1 with
 * deviation sigma (theorem 1; without a KL). It holds through sum_i |A_i| = G sigma; of rewards 0 and 1, with A_i the same,
 * sum_i |A_i| = 2 G sigma, so their bound is twice as large.
 */
export function gradientBound(ratioGradient: number, deviation: number, rewards: "plus-minus" | "zero-one" = "plus-minus"): number {
  return (rewards === "plus-minus" ? 1 : 2) * ratioGradient * deviation;
}

/** How variances are spread (Pareto with shape k > 1), and what the rounds do: each keeps the share alpha and draws gamma times as many. */
export interface SpeedUp {
  readonly k: number;
  readonly rounds: number;
  readonly alpha: number;
  readonly gamma: number;
}

/** eta: the gradients' scale against that of as many answers spread evenly, sum_i (gamma alpha^(1 - 1/k))^i / sum_i (alpha gamma)^i, i < rounds. */
export function eta({ k, rounds, alpha, gamma }: SpeedUp): number {
  if (!(k > 1)) throw new RangeError(`the shape of the Pareto distribution must be above 1, for a mean to exist; got ${k}`);
  return geometric(gamma * alpha ** (1 - 1 / k), rounds) / geometric(alpha * gamma, rounds);
}

/** Time to a target against even allocation: eta^(1/3). */
export function speedUp(form: SpeedUp): number {
  return Math.cbrt(eta(form));
}

function geometric(ratio: number, terms: number): number {
  return Array.from({ length: terms }, (_, i) => ratio ** i).reduce((a, b) => a + b, 0);
}
