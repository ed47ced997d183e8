/**
 * Importance sampling without a trust region, f(r, A) = r A: the unbiased estimate of the policy gradient on data of
 * another policy. A `bounds` stage, or `truncate`, cuts the ratio off on both sides whatever the sign of A; a token beyond
 * has no gradient (Espeholt et al. 2018, arXiv 1802.01561, truncate the weight alone: that is weighted.ts).
 */
import type { RatioBounds, Surrogate } from "./contract.js";
import { type FamilyOptions, fate, ratioSurrogate } from "./surrogate.js";

export interface ImportanceOptions extends FamilyOptions {
  /** Smallest and largest ratio that keep their gradient. Default: 0 and Infinity. */
  readonly truncate?: RatioBounds;
}

export function importance(options: ImportanceOptions = {}): Surrogate {
  return ratioSurrogate("importance", options, options.truncate ?? { low: 0, high: Number.POSITIVE_INFINITY }, (out, r, a, low, high) => {
    const outside = r > high ? fate.high : r < low ? fate.low : fate.kept;
    out.value = Math.min(Math.max(r, low), high) * a;
    out.slope = outside === fate.kept ? a : 0;
    out.fate = outside;
  });
}
