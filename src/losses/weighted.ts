/**
 * Log-prob losses whose weight takes no gradient, so that no token loses its own:
 *
 *     loss = -sum_t w_t sg[v_t] A_t l_t,    dloss/dl_t = -w_t v_t A_t
 *
 * `cispo` (MiniMax-M1, arXiv 2506.13585, eq. 4-5): v = the ratio of the token's unit, clamped into the bounds.
 * `reinforce` (Williams 1992): v = 1.
 */
import type { RatioBounds, Surrogate } from "./contract.js";
import { ratiosOf } from "./ratio.js";
import { Counter, type FamilyOptions, fate, finite, ratioOptions } from "./surrogate.js";

export interface CispoOptions extends FamilyOptions {
  /** Distance of the lower bound from 1; absent: no lower bound (the paper's choice). */
  readonly clip_low?: number;
  /** Distance of the upper bound from 1. */
  readonly clip_high: number;
}

export function cispo(options: CispoOptions): Surrogate {
  const low = options.clip_low === undefined ? 0 : Math.max(0, 1 - options.clip_low);
  return weighted("cispo", options, { low, high: 1 + options.clip_high }, (ratio, lowest, highest) => Math.min(Math.max(ratio, lowest), highest));
}

export function reinforce(options: FamilyOptions = {}): Surrogate {
  return weighted("reinforce", options, { low: 0, high: Number.POSITIVE_INFINITY }, () => 1);
}

function weighted(name: string, options: FamilyOptions, bounds: RatioBounds, weigh: (ratio: number, low: number, high: number) => number): Surrogate {
  const resolved = ratioOptions(options);
  return {
    name,
    denominator: resolved.denominator,
    bounds,
    run(rows) {
      const count = new Counter();
      let value = 0;
      const derivatives = rows.map((row) => {
        const ratios = ratiosOf(row, resolved);
        count.row(row);
        const dLogp = new Float64Array(row.mask.length);
        for (let t = 0; t < dLogp.length; t++) {
          if (!row.mask[t]) continue;
          const ratio = ratios.ratio[t] as number;
          const low = row.low[t] as number;
          const high = row.high[t] as number;
          const factor = (row.weights[t] as number) * weigh(ratio, low, high) * (row.coefficient[t] as number);
          value -= factor * (row.now.logp[t] as number);
          dLogp[t] = -factor;
          count.token(ratios, t, ratio > high ? fate.high : ratio < low ? fate.low : fate.kept);
        }
        count.clamped += ratios.clamped;
        return { dLogp };
      });
      return finite(name, rows, { value, derivatives, statistics: count.statistics() });
    },
  };
}
