/** 95 % intervals of a mean over problems. */
import { randomKey, Stream } from "../core/random.js";
import { wilson } from "../core/wilson.js";

/** An interval of 95 %, and how it was found. */
export interface Interval {
  readonly low: number;
  readonly high: number;
  readonly by: "wilson" | "bootstrap";
}

const resamplings = 2000;

/**
 * Interval of the mean of one number a problem: percentile bootstrap, problems drawn with replacement, keyed by the seed
 * (Efron 1979; 2,000 resamplings are our choice), so that columns of equal length are resampled alike. Where all problems
 * are 0, or all 1, resampling sees no spread, and where each is `single`, one sample that is right or wrong, the share is
 * binomial: both have Wilson's interval. No problem, or one whose spread nobody knows, has none.
 */
export function meanInterval(values: readonly number[], seed: number, single: boolean): Interval | undefined {
  const [first] = values;
  const n = values.length;
  if (first === undefined) return undefined;
  const sum = values.reduce((a, b) => a + b, 0);
  const binary = values.every((x) => x === 0 || x === 1);
  if (binary && (single || sum === 0 || sum === n)) return wilson(sum, n);
  if (n === 1) return undefined;
  const stream = new Stream(randomKey({ seed, purpose: "evaluate/bootstrap" }));
  const means = Float64Array.from({ length: resamplings }, () => {
    let drawn = 0;
    for (let i = 0; i < n; i++) drawn += values[stream.int(n)];
    return drawn / n;
  }).sort();
  return { low: quantile(means, 0.025), high: quantile(means, 0.975), by: "bootstrap" };
}

/** Quantile of ascending numbers, linear between neighbours (type 7 of Hyndman and Fan 1996). */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}
