/**
 * The reweighting of self-distillation by privileged contexts (RLSD, as the code of CEPO has it): a teacher that sees more
 * than the policy says how much of an answer's advantage each token gets, and never turns it around.
 *
 *     gap    = teacher's log-prob - own, of the token drawn
 *     w      = clip(exp(sign(A) gap), 1 - clip, 1 + clip)        exponent within -20 to 20
 *     A_t    = A [(1 - lambda) + lambda w]
 */

/** Largest exponent either way: exp stays finite whatever the gap. */
export const largestExponent = 20;

export interface RlsdOptions {
  /** Share of the weight in the factor, from 0 (none) to 1. */
  readonly lambda: number;
  /** Largest distance of the weight from 1. */
  readonly clip: number;
}

/** The factor of a token's advantage, within 1 - lambda clip and 1 + lambda clip; 1 exactly for lambda 0. */
export function rlsdFactor(advantage: number, gap: number, { lambda, clip }: RlsdOptions): number {
  const exponent = Math.min(Math.max(Math.sign(advantage) * gap, -largestExponent), largestExponent);
  const weight = Math.min(Math.max(Math.exp(exponent), 1 - clip), 1 + clip);
  return 1 - lambda + lambda * weight;
}

/** A number that goes linearly from one value to another over so many steps, and stays there. `step` counts from 1. */
export function linearly(step: number, from: number, to: number, steps: number): number {
  return from + (to - from) * Math.min(1, Math.max(0, step - 1) / steps);
}
