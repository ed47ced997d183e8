/**
 * The geometric mean of an answer's clipped ratios (GMPO: Zhao et al. 2025, arXiv 2507.20673). With x_t = l_t - o_t, y the
 * answer's tokens inside the mask, A_t their coefficients and w_t their weights:
 *
 *     x'_t = min(x_t, log high_t) where A_t > 0, max(x_t, log low_t) where A_t < 0          token by token, before the mean
 *     s    = exp((1/|y|) sum_t x'_t)
 *     loss = -s sum_t w_t A_t,          dloss/dl_t = -(s/|y|) sum_j w_j A_j, and 0 where x_t was cut
 *
 * One advantage an answer gives the paper's loss; with several, each token is cut by the sign of its own (our choice).
 */
import type { Surrogate } from "./contract.js";
import { maxLogRatio, ratiosOf } from "./ratio.js";
import { Counter, fate, finite } from "./surrogate.js";

export interface GeometricOptions {
  /** Distance of the smallest log-ratio below 0. */
  readonly clip_low: number;
  /** Distance of the largest log-ratio above 0. */
  readonly clip_high: number;
}

export function geometric({ clip_low, clip_high }: GeometricOptions): Surrogate {
  const name = "geometric";
  return {
    name,
    denominator: "old",
    bounds: { low: Math.exp(-clip_low), high: Math.exp(clip_high) },
    run(rows) {
      const count = new Counter();
      let value = 0;
      const derivatives = rows.map((row) => {
        const ratios = ratiosOf(row, { unit: "token", reduce: "mean", gradient: "unit", denominator: "old" });
        count.row(row);
        const tokens = row.mask.length;
        const fates = new Uint8Array(tokens);
        let size = 0;
        let sum = 0;
        let weight = 0;
        for (let t = 0; t < tokens; t++) {
          if (!row.mask[t]) continue;
          const a = row.coefficient[t] as number;
          const x = ratios.log[t] as number;
          const [low, high] = [Math.log(row.low[t] as number), Math.log(row.high[t] as number)];
          fates[t] = a > 0 && x > high ? fate.high : a < 0 && x < low ? fate.low : fate.kept;
          sum += fates[t] === fate.high ? high : fates[t] === fate.low ? low : x;
          weight += (row.weights[t] as number) * a;
          size++;
          count.token(ratios, t, fates[t] as number);
        }
        const dLogp = new Float64Array(tokens);
        if (size === 0) return { dLogp };
        const mean = sum / size;
        const s = Math.exp(Math.min(maxLogRatio, Math.max(-maxLogRatio, mean)));
        value -= s * weight;
        const slope = Math.abs(mean) <= maxLogRatio ? (-s * weight) / size : 0;
        for (let t = 0; t < tokens; t++) if (row.mask[t] && fates[t] === fate.kept) dLogp[t] = slope;
        count.clamped += ratios.clamped;
        return { dLogp };
      });
      return finite(name, rows, { value, derivatives, statistics: count.statistics() });
    },
  };
}
