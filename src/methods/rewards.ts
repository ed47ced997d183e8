import type { Batch, Trajectory } from "../core/trajectory.js";
import type { Rewards } from "./contract.js";
import { rowsOf } from "./credit.js";

/**
 * Returns of the scored episodes among some rows, by episode (C2): the reward of the last scored row, plus all rewards on
 * single tokens of the episode's scored rows.
 */
export function episodesOf(indices: readonly number[], rows: readonly Trajectory[], rewards: Rewards): Map<string, number> {
  const last = new Map<string, { turn: number; value: number; extra: number }>();
  for (const i of indices) {
    const value = rewards.values[i];
    if (value === undefined) continue;
    const { episode, turn } = rows[i] as Trajectory;
    const extra = rewards.tokens?.[i]?.reduce((sum, x) => sum + x, 0) ?? 0;
    const seen = last.get(episode);
    if (!seen) last.set(episode, { turn, value, extra });
    else last.set(episode, turn >= seen.turn ? { turn, value, extra: seen.extra + extra } : { ...seen, extra: seen.extra + extra });
  }
  return new Map([...last].map(([episode, { value, extra }]) => [episode, value + extra]));
}

/**
 * Rewards that are still to come at each token: those on the token itself and later ones, of the row and of the later turns
 * of its episode, and the episode's own. 0 for unscored rows. [rows][tokens]
 */
export function returnsToGo(batch: Batch, rewards: Rewards): Float64Array[] {
  const rows = rowsOf(batch);
  const left = rows.map((row) => new Float64Array(row.response.length));
  const rest = new Map<string, number>();
  const scored = [...rows.keys()].filter((i) => rewards.values[i] !== undefined);
  for (const i of scored.sort((a, b) => (rows[b] as Trajectory).turn - (rows[a] as Trajectory).turn || b - a)) {
    const { episode } = rows[i] as Trajectory;
    const own = left[i] as Float64Array;
    let sum = rest.get(episode) ?? (rewards.values[i] as number);
    for (let t = own.length - 1; t >= 0; t--) {
      sum += rewards.tokens?.[i]?.[t] ?? 0;
      own[t] = sum;
    }
    rest.set(episode, sum);
  }
  return left;
}
