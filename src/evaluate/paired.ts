/** 95 % intervals of a mean difference between pairs: two policies on the same problems, or two methods on the same seeds. */
import { randomKey, Stream } from "../core/random.js";
import { quantile } from "./interval.js";

export interface PairedInterval {
  readonly low: number;
  readonly high: number;
  /** Pairs. */
  readonly n: number;
  /** Which of the two was the wider one. */
  readonly by: "bootstrap" | "t";
}

/** As of other intervals. */
const resamplings = 2000;

/**
 * Interval of the mean of `values`, one difference a pair: the wider of the percentile bootstrap over pairs (Efron 1979) and
 * of Student's t, because a bootstrap of a handful of pairs is too narrow (taking the wider one is our choice). One pair has
 * no interval: it says nothing about how much pairs differ.
 */
export function pairedInterval(values: readonly number[], seed = 0): PairedInterval | undefined {
  const n = values.length;
  if (n < 2) return undefined;
  const mean = values.reduce((a, b) => a + b, 0) / n;
  const deviation = Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (n - 1));
  const half = (studentQuantile(n - 1) * deviation) / Math.sqrt(n);
  const stream = new Stream(randomKey({ seed, purpose: "evaluate/paired" }));
  const means = Float64Array.from({ length: resamplings }, () => {
    let drawn = 0;
    for (let i = 0; i < n; i++) drawn += values[stream.int(n)];
    return drawn / n;
  }).sort();
  const [low, high] = [quantile(means, 0.025), quantile(means, 0.975)];
  return high - low > 2 * half ? { low, high, n, by: "bootstrap" } : { low: mean - half, high: mean + half, n, by: "t" };
}

/** The 97.5 % quantile of Student's t with a whole number of degrees of freedom, by bisection of its distribution. */
export function studentQuantile(degrees: number): number {
  let [low, high] = [0, 16];
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if (within(middle, degrees) < 0.95) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** P(|T| <= t): the finite sums of Abramowitz and Stegun, 26.7.3 (odd degrees) and 26.7.4 (even ones). */
function within(t: number, degrees: number): number {
  const angle = Math.atan(t / Math.sqrt(degrees));
  const cosine2 = Math.cos(angle) ** 2;
  const odd = degrees % 2 === 1;
  let term = odd ? Math.cos(angle) : 1;
  let sum = degrees === 1 ? 0 : term;
  for (let i = odd ? 3 : 2; i <= degrees - 2; i += 2) {
    term *= (cosine2 * (i - 1)) / i;
    sum += term;
  }
  return odd ? (2 / Math.PI) * (angle + Math.sin(angle) * sum) : Math.sin(angle) * sum;
}
