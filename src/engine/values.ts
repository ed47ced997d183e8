/**
 * The mathematics of one distribution over a vocabulary, in float64: what engines report and what estimator tests
 * compare with. Log-probs are natural; an id of probability 0 has log-prob -Infinity and adds nothing to a sum.
 */
import type { Truncation } from "../core/trajectory.js";

/** log Σ exp(x) without overflow; -Infinity for an empty array. */
export function logSumExp(values: ArrayLike<number>): number {
  let max = -Infinity;
  for (let i = 0; i < values.length; i++) if (values[i] > max) max = values[i];
  if (max === -Infinity) return -Infinity;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += Math.exp(values[i] - max);
  return max + Math.log(sum);
}

/** log softmax(logits / temperature). */
export function logSoftmax(logits: ArrayLike<number>, temperature = 1): Float64Array {
  const result = Float64Array.from(logits, (x) => x / temperature);
  const total = logSumExp(result);
  for (let v = 0; v < result.length; v++) result[v] -= total;
  return result;
}

/** Entropy in nats of a distribution given by its log-probs. */
export function entropyOf(logp: ArrayLike<number>): number {
  let sum = 0;
  for (let v = 0; v < logp.length; v++) {
    const p = Math.exp(logp[v]);
    if (p > 0) sum -= p * logp[v];
  }
  return sum;
}

/** Log of the mass outside the listed ids: summed over the others, because 1 − Σp loses its digits when little is left. */
export function tailOf(logp: ArrayLike<number>, ids: ArrayLike<number>): number {
  const listed = new Set(Array.from(ids));
  return logSumExp(Array.from(logp).filter((_, v) => !listed.has(v)));
}

/** Ids by falling probability, ties by lower id. */
function ranked(logp: Float64Array): Int32Array {
  return Int32Array.from(logp.keys()).sort((a, b) => logp[b] - logp[a] || a - b);
}

/** The k most likely ids, most likely first, ties by lower id, and the log of the mass of all others. */
export function topOf(logp: Float64Array, k: number): { ids: Int32Array; logp: Float64Array; tail: number } {
  const ids = ranked(logp).slice(0, k);
  return { ids, logp: Float64Array.from(ids, (v) => logp[v]), tail: tailOf(logp, ids) };
}

/** The most likely id, ties by lower id. */
export function mostLikely(logp: ArrayLike<number>): number {
  let best = 0;
  for (let v = 1; v < logp.length; v++) if (logp[v] > logp[best]) best = v;
  return best;
}

/**
 * Inverse transform: the first id whose cumulative probability exceeds u times the total, for u in [0, 1). An id of
 * probability 0 is never drawn.
 */
export function draw(logp: ArrayLike<number>, u: number): number {
  let total = 0;
  for (let v = 0; v < logp.length; v++) total += Math.exp(logp[v]);
  const bound = u * total;
  let sum = 0;
  for (let v = 0; v < logp.length; v++) {
    sum += Math.exp(logp[v]);
    if (sum > bound) return v;
  }
  // The sum ends at the total, which is above the bound, so only log-probs that are no numbers come here.
  return mostLikely(logp);
}

/**
 * Log-probs after truncation, renormalised, -Infinity outside. The rules act one after another on the distribution at its
 * temperature: top-k (the k most likely ids), top-p (of these, from the most likely on, the fewest that reach the share p of their
 * mass), min-p (of these, ids at least minP times as likely as the most likely one). Ties of probability go to the lower id. At
 * least one id stays; topK of the vocabulary or more, topP 1 and minP 0 keep all.
 */
export function truncated(logp: Float64Array, { topK, topP, minP }: Truncation): Float64Array {
  let kept = ranked(logp);
  if (topK !== undefined) kept = kept.subarray(0, topK);
  if (topP !== undefined && topP < 1) {
    const total = logSumExp(Float64Array.from(kept, (v) => logp[v]));
    let sum = 0;
    let count = 0;
    while (count < kept.length && sum < topP) sum += Math.exp(logp[kept[count++]] - total);
    kept = kept.subarray(0, Math.max(1, count));
  }
  if (minP !== undefined && minP > 0) {
    const least = logp[kept[0]] + Math.log(minP);
    kept = kept.filter((v, rank) => rank === 0 || logp[v] >= least);
  }
  if (kept.length === logp.length) return logp;
  const total = logSumExp(Float64Array.from(kept, (v) => logp[v]));
  const result = new Float64Array(logp.length).fill(-Infinity);
  for (const v of kept) result[v] = logp[v] - total;
  return result;
}

/** What a loss says about one position: derivatives of the numbers reported there. */
export interface PositionDerivatives {
  readonly token: number;
  readonly dLogp: number;
  readonly dEntropy: number;
  /** Listed outcomes with one derivative each, and that of the tail. */
  readonly ids: ArrayLike<number>;
  readonly dTargetLogp: ArrayLike<number>;
  readonly dTargetTail: number;
}

/**
 * dL/dlogits of one position, where `logp` = log softmax(logits / temperature); exactly 0 where all derivatives are.
 * With z = logits / temperature: d logp_y/dz = onehot_y − p; dH/dz = −p (log p + H); d tail/dz = p [outside] / p_tail − p.
 * A tail without mass has no derivative and gives 0.
 */
export function logitGradient(logp: Float64Array, temperature: number, given: PositionDerivatives): Float64Array {
  const { token, dLogp, dEntropy, ids, dTargetLogp, dTargetTail } = given;
  const result = new Float64Array(logp.length);
  let minusP = dLogp;
  if (dLogp !== 0) result[token] += dLogp;
  for (let i = 0; i < ids.length; i++) {
    if (dTargetLogp[i] === 0) continue;
    result[ids[i]] += dTargetLogp[i];
    minusP += dTargetLogp[i];
  }
  const tail = dTargetTail === 0 ? -Infinity : tailOf(logp, ids);
  if (tail > -Infinity) {
    const listed = new Set(Array.from(ids));
    for (let v = 0; v < logp.length; v++) if (!listed.has(v)) result[v] += dTargetTail * Math.exp(logp[v] - tail);
    minusP += dTargetTail;
  }
  const entropy = dEntropy === 0 ? 0 : entropyOf(logp);
  for (let v = 0; v < logp.length; v++) {
    const p = Math.exp(logp[v]);
    if (p === 0) continue;
    if (minusP !== 0) result[v] -= p * minusP;
    if (dEntropy !== 0) result[v] -= dEntropy * p * (logp[v] + entropy);
  }
  for (let v = 0; v < logp.length; v++) result[v] /= temperature;
  return result;
}
