/**
 * The clipped surrogate of PPO (Schulman et al. 2017, arXiv 1707.06347, eq. 7), which GRPO, Dr. GRPO, DAPO, GSPO and
 * REINFORCE++ share:
 *
 *     f(r, A) = min(r A, clip(r, low, high) A)
 *
 * `low` and `high` bound the ratio itself: 1 - clip_low and 1 + clip_high. Dual clip (Ye et al. 2020, arXiv 1912.09729,
 * eq. 5) also bounds what a negative A can cost: f = max(f, c A) for A < 0, with c > 1.
 */
import { ConfigError } from "../core/errors.js";
import type { Surrogate } from "./contract.js";
import { type FamilyOptions, fate, ratioSurrogate } from "./surrogate.js";

export interface ClipOptions extends FamilyOptions {
  /** Distance of the lower bound from 1; Infinity: none. */
  readonly clip_low: number;
  /** Distance of the upper bound from 1; Infinity: none. */
  readonly clip_high: number;
  /** Largest ratio that a negative coefficient still answers for; absent: no such bound. */
  readonly dual_clip?: number;
}

export function clip(options: ClipOptions): Surrogate {
  const { clip_low, clip_high, dual_clip } = options;
  if (!(clip_low >= 0 && clip_high >= 0)) {
    throw new ConfigError({ place: "clip_low, clip_high", cause: `they are ${clip_low} and ${clip_high}`, mend: "give distances from 1, both 0 or more" });
  }
  if (dual_clip !== undefined && !(dual_clip > 1)) throw new ConfigError({ place: "dual_clip", cause: `it is ${dual_clip}`, mend: "give a ratio above 1" });
  const dual = dual_clip ?? Number.POSITIVE_INFINITY;
  return ratioSurrogate("clip", options, { low: Math.max(0, 1 - clip_low), high: 1 + clip_high }, (out, r, a, low, high) => {
    if (a > 0 && r > high) {
      out.value = high * a;
      out.slope = 0;
      out.fate = fate.high;
    } else if (a < 0 && r < low) {
      out.value = low * a;
      out.slope = 0;
      out.fate = fate.low;
    } else if (a < 0 && r > dual) {
      out.value = dual * a;
      out.slope = 0;
      out.fate = fate.dual;
    } else {
      out.value = r * a;
      out.slope = a;
      out.fate = fate.kept;
    }
  });
}
