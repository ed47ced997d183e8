/**
 * Probability ratios over units, in log space. A unit is a set of response tokens that share one ratio: a token (GRPO), a
 * turn, a segment named by a method, or the whole response (GSPO: the mean of its log-ratios; RLOO: their sum).
 */
import { ArgumentError } from "../core/errors.js";
import type { Trajectory } from "../core/trajectory.js";
import type { LossRow } from "./contract.js";

/** What shares a ratio. A function gives each response token the index of its segment, from 0; −1 for none (masked tokens only). */
export type Unit = "token" | "turn" | "sequence" | ((trajectory: Trajectory) => Int32Array);

export interface RatioOptions {
  readonly unit: Unit;
  /** `mean`: geometric mean over the unit's tokens; `sum`: the product, the true ratio of the unit. The same for single tokens. */
  readonly reduce: "mean" | "sum";
  /** `unit`: the gradient of the unit's ratio reaches all its tokens; `own`: each token has only its own, sg[s] π/sg[π] (GSPO, eq. 13). */
  readonly gradient: "unit" | "own";
  readonly denominator: "old" | "behaviour";
}

/** A log-ratio beyond this counts as this: e^20 is half a billion, and whatever lies beyond is a fault, not a policy. */
export const maxLogRatio = 20;

/** Ratios of one row. Arrays are [tokens]; entries outside the mask are 1 and 0. */
export interface Ratios {
  /** Ratio of the token's unit. */
  readonly ratio: Float64Array;
  /** log now − log denominator of the token itself. */
  readonly log: Float64Array;
  /** d ratio[t] / d logp[t] per token of the unit, without the ratio: 1, or 1 over the unit's tokens for a mean; 0 where clamped. */
  readonly share: Float64Array;
  /** Unit of each token, −1 outside the mask. */
  readonly units: Int32Array;
  readonly unitCount: number;
  readonly clamped: number;
}

export function ratiosOf(row: LossRow, options: RatioOptions): Ratios {
  const tokens = row.mask.length;
  const below = row[options.denominator];
  const log = new Float64Array(tokens);
  const ratio = new Float64Array(tokens).fill(1);
  const share = new Float64Array(tokens);
  const { units, unitCount } = unitsOf(row, options.unit);
  const sums = new Float64Array(unitCount);
  const sizes = new Float64Array(unitCount);
  for (let t = 0; t < tokens; t++) {
    const u = units[t] as number;
    if (u < 0) continue;
    log[t] = (row.now.logp[t] as number) - (below[t] as number);
    sums[u] = (sums[u] as number) + (log[t] as number);
    sizes[u] = (sizes[u] as number) + 1;
  }
  let clamped = 0;
  for (let t = 0; t < tokens; t++) {
    const u = units[t] as number;
    if (u < 0) continue;
    const scale = options.reduce === "mean" ? 1 / (sizes[u] as number) : 1;
    const exact = (sums[u] as number) * scale;
    const inside = Math.abs(exact) <= maxLogRatio;
    if (!inside) clamped++;
    ratio[t] = Math.exp(Math.min(maxLogRatio, Math.max(-maxLogRatio, exact)));
    share[t] = inside ? (options.gradient === "own" ? 1 : scale) : 0;
  }
  return { ratio, log, share, units, unitCount, clamped };
}

function unitsOf(row: LossRow, unit: Unit): { units: Int32Array; unitCount: number } {
  const tokens = row.mask.length;
  const units = new Int32Array(tokens).fill(-1);
  if (unit === "token" || unit === "sequence") {
    for (let t = 0; t < tokens; t++) if (row.mask[t]) units[t] = unit === "token" ? t : 0;
    return { units, unitCount: unit === "token" ? tokens : 1 };
  }
  const given = unit === "turn" ? turnOfTokens(row.trajectory) : unit(row.trajectory);
  if (given.length !== tokens) {
    throw new ArgumentError({
      place: `segments of ${row.trajectory.key}`,
      cause: `${given.length} indices were given for ${tokens} response tokens`,
      mend: "give one index a token, -1 for none",
    });
  }
  let unitCount = 0;
  for (let t = 0; t < tokens; t++) {
    if (!row.mask[t]) continue;
    const u = given[t] as number;
    if (u < 0) {
      throw new ArgumentError({
        place: `segments of ${row.trajectory.key}`,
        cause: `token ${t} is inside the loss mask but in no segment`,
        mend: "give every trained token a segment, or mask it",
      });
    }
    units[t] = u;
    unitCount = Math.max(unitCount, u + 1);
  }
  return { units, unitCount };
}

/** Index of the `turn` span of each response token, −1 outside all turns; a response without turns is one turn. */
export function turnOfTokens(trajectory: Trajectory): Int32Array {
  const turns = trajectory.spans.filter((span) => span.name === "turn");
  const result = new Int32Array(trajectory.response.length).fill(turns.length === 0 ? 0 : -1);
  turns.forEach((span, i) => {
    result.fill(i, span.start, span.end);
  });
  return result;
}
