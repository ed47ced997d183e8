/**
 * pass@k and maj@k of one problem, from its n scored samples.
 *
 *   pass@k = 1 − C(n−c, k) / C(n, k)      Chen et al. 2021, "Evaluating large language models trained on code", equation 1
 *   maj@k  = share of the subsets of k samples whose most frequent answer is right
 *
 * Both are means over all subsets of k of the n samples, without replacement, so both are unbiased for any n ≥ k.
 */
import { ArgumentError } from "../core/errors.js";

/** Unbiased pass@k of a problem with `right` accepted among `n` samples. */
export function passAtK(n: number, right: number, k: number): number {
  checkK("pass@k", n, k);
  if (!(Number.isInteger(right) && right >= 0 && right <= n)) {
    throw new ArgumentError({ place: "pass@k", cause: `${right} of ${n} samples cannot be right`, mend: "give a whole number from 0 to n" });
  }
  // The probability that k draws miss all right ones, as a product: the binomials themselves overflow.
  let miss = 1;
  for (let i = 0; i < k; i++) miss *= Math.max(0, n - right - i) / (n - i);
  return 1 - miss;
}

/** Samples of one problem that gave the same answer. */
export interface AnswerClass {
  readonly count: number;
  /** How many of them were accepted: all or none, unless the verifier looks at more than the answer. */
  readonly right: number;
}

/** Beyond this many samples of a problem the binomials leave float64. */
const mostSamples = 1000;

/**
 * Unbiased maj@k of a problem: `classes` are its answers, `abstained` the samples without one, which do not vote. A vote
 * between equals is drawn, so each counts its share; a class counts the share of its samples that are right; where nobody
 * votes the majority is wrong (our choices).
 */
export function majAtK(classes: readonly AnswerClass[], abstained: number, k: number): number {
  const n = classes.reduce((sum, { count }) => sum + count, abstained);
  checkK("maj@k", n, k);
  if (n > mostSamples) {
    throw new ArgumentError({ place: "maj@k", cause: `a problem has ${n} samples`, mend: `give at most ${mostSamples}` });
  }
  const most = Math.min(k, Math.max(0, ...classes.map(({ count }) => count)));
  let won = 0;
  for (let top = 1; top <= most; top++) won += waysToWin(classes, abstained, k, top);
  return Math.min(1, won / choose(n, k));
}

/**
 * Over all subsets of k samples in which the most frequent answers occur exactly `top` times: the sum of the mean
 * rightness of those answers. Counted class by class: `ways[s][t]` subsets of s samples with t answers at the top,
 * `rights[s][t]` the sum of their rightness.
 */
function waysToWin(classes: readonly AnswerClass[], abstained: number, k: number, top: number): number {
  const ties = Math.floor(k / top);
  const table = (): Float64Array[] => Array.from({ length: k + 1 }, () => new Float64Array(ties + 1));
  let ways = table();
  let rights = table();
  for (let s = 0; s <= Math.min(k, abstained); s++) ways[s][0] = choose(abstained, s);
  for (const { count, right } of classes) {
    const nextWays = table();
    const nextRights = table();
    for (let taken = 0; taken <= Math.min(top, count); taken++) {
      const times = choose(count, taken);
      const tied = taken === top ? 1 : 0;
      for (let s = taken; s <= k; s++) {
        for (let t = tied; t <= ties; t++) {
          const before = ways[s - taken][t - tied];
          if (before === 0) continue;
          nextWays[s][t] += times * before;
          nextRights[s][t] += times * (rights[s - taken][t - tied] + tied * (right / count) * before);
        }
      }
    }
    ways = nextWays;
    rights = nextRights;
  }
  return rights[k].reduce((sum, total, t) => (t === 0 ? sum : sum + total / t), 0);
}

/** The binomial coefficient n over k, in float64. */
function choose(n: number, k: number): number {
  let result = 1;
  for (let i = 1; i <= k; i++) result = (result * (n - k + i)) / i;
  return k > n ? 0 : result;
}

function checkK(place: string, n: number, k: number): void {
  if (!(Number.isInteger(k) && k >= 1 && k <= n)) {
    throw new ArgumentError({ place, cause: `k is ${k} where a problem has ${n} scored samples`, mend: "give a whole number from 1 to the number of samples" });
  }
}
