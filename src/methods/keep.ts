import type { Batch, Trajectory } from "../core/trajectory.js";
import type { Mask, Rewards } from "./contract.js";
import { rowsOf } from "./credit.js";

/** A mask that keeps every term and those tokens of the policy's loss for which `keep` holds (`index`: row of the batch). */
export function keepTokens(batch: Batch, keep: (row: Trajectory, token: number, index: number) => boolean): Mask {
  const rows = rowsOf(batch);
  return {
    rows: new Uint8Array(rows.length).fill(1),
    policy: rows.map((row, i) => Uint8Array.from(row.response, (_, t) => (keep(row, t, i) ? 1 : 0))),
    terms: rows.map((row) => new Uint8Array(row.response.length).fill(1)),
  };
}

/** A mask that takes whole rows out: of normalisers, of the policy's loss and of terms. */
export function keepRows(batch: Batch, keep: (row: Trajectory, index: number) => boolean): Mask {
  const rows = rowsOf(batch);
  const all = rows.map((row) => new Uint8Array(row.response.length).fill(1));
  return { rows: Uint8Array.from(rows, (row, i) => (keep(row, i) ? 1 : 0)), policy: all, terms: all };
}

/** The masks that verdicts and trajectories give, before any `keep`: unscored rows fall out whole. */
export function scoredTokens(rows: readonly Trajectory[], rewards: Rewards): Mask {
  const counts = Uint8Array.from(rewards.values, (value) => (value === undefined ? 0 : 1));
  const masked = (pick: (row: Trajectory) => Uint8Array) =>
    rows.map((row, i) => (counts[i] ? pick(row).map((m, t) => m & (row.loss[t] as number)) : new Uint8Array(row.response.length)));
  return { rows: counts, policy: masked((row) => row.reward), terms: masked((row) => row.loss) };
}
