import type { Trajectory } from "../core/trajectory.js";
import type { Rewards } from "./contract.js";

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
