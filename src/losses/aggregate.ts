/**
 * Aggregation: from masks to token weights that contain the whole normaliser. N is the number of trajectories that count
 * (unscored ones do not; one whose tokens are all masked does, as in GRPO's 1/N sum), |y| the number of tokens in the mask.
 *
 *     token-mean            1 / sum_i |y_i|             (DAPO, arXiv 2503.14476, eq. 8)
 *     seq-mean-token-mean   1 / (N |y_i|)               (GRPO, arXiv 2402.03300, eq. 3)
 *     seq-mean-token-sum    1 / (N constant)            (Dr. GRPO, arXiv 2503.20783, with constant = max_tokens; 1 by default)
 *     token-sum             1 / constant
 *
 * Kinds of groups are normalised apart and a group's weight multiplies its tokens (C2). An empty mask weighs exactly 0.
 */
import { ConfigError } from "../core/errors.js";
import type { Batch } from "../core/trajectory.js";

export const aggregations = ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "token-sum"] as const;
export type Aggregation = (typeof aggregations)[number];

/** Which rows of a batch count, and which of their tokens. */
export interface TokenMask {
  /** 1 where the trajectory counts. [rows] */
  readonly rows: Uint8Array;
  /** 1 where the loss falls. [rows][tokens] */
  readonly tokens: readonly Uint8Array[];
}

/** Token weights [rows][tokens] of a mask over the rows of a batch. */
export type Aggregator = (batch: Batch, mask: TokenMask) => Float64Array[];

/** An aggregation as a function. `constant`: the fixed divisor of the two sums. */
export function aggregator(name: Aggregation, constant = 1): Aggregator {
  if (!(constant > 0 && Number.isFinite(constant))) {
    throw new ConfigError({ place: "aggregation constant", cause: `it is ${constant}`, mend: "give a number above 0, such as the response budget in tokens" });
  }
  return (batch, mask) => {
    const groupOfRow = batch.groups.flatMap((group) => group.trajectories.filter((t) => t.purpose === "train").map(() => group));
    const sizes = mask.tokens.map((tokens, i) => (mask.rows[i] ? tokens.reduce((n, m) => n + m, 0) : 0));
    const totals = new Map<string, { rows: number; tokens: number }>();
    groupOfRow.forEach((group, i) => {
      const total = totals.get(group.kind) ?? { rows: 0, tokens: 0 };
      total.rows += mask.rows[i] as number;
      total.tokens += sizes[i] as number;
      totals.set(group.kind, total);
    });
    return mask.tokens.map((tokens, i) => {
      const weights = new Float64Array(tokens.length);
      const size = sizes[i] as number;
      const group = groupOfRow[i];
      if (size === 0 || group === undefined) return weights;
      const total = totals.get(group.kind) as { rows: number; tokens: number };
      const divisor = {
        "token-mean": total.tokens,
        "seq-mean-token-mean": total.rows * size,
        "seq-mean-token-sum": total.rows * constant,
        "token-sum": constant,
      }[name];
      for (let t = 0; t < tokens.length; t++) if (tokens[t]) weights[t] = group.weight / divisor;
      return weights;
    });
  };
}
