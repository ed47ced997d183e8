/**
 * Advantages from returns. Statistics count episodes, not rows (C2), and scored ones only; unscored rows have advantage 0.
 * A group of which all returns are equal, or one is scored, carries no signal: its advantages are exactly 0 (tested on the
 * returns, not on a sum that rounding spoils).
 */
import { ConfigError } from "../core/errors.js";
import type { Batch } from "../core/trajectory.js";
import type { Rewards, Settings } from "./contract.js";
import { perGroup, rowsByGroup, rowsOf } from "./credit.js";
import { episodesOf } from "./rewards.js";

/** `sample`: with divisor n - 1; `population`: with divisor n; `none`: not divided at all. */
export const deviations = ["sample", "population", "none"] as const;
export type Deviation = (typeof deviations)[number];

/** Whether returns differ, so that some are better than others. */
export function varied(returns: readonly number[]): boolean {
  return returns.length >= 2 && returns.some((r) => r !== returns[0]);
}

/** Advantages of all rows, from a function of a group's returns; it is asked only where they vary. [rows] */
export function byGroup(batch: Batch, rewards: Rewards, of: (returns: readonly number[]) => (own: number) => number): Float64Array {
  const rows = rowsOf(batch);
  return Float64Array.from(
    perGroup(batch, (indices) => {
      const episodes = episodesOf(indices, rows, rewards);
      const returns = [...episodes.values()];
      const advantage = varied(returns) ? of(returns) : undefined;
      return indices.map((i) => {
        const own = episodes.get((rows[i] as (typeof rows)[number]).episode);
        return own === undefined || rewards.values[i] === undefined ? 0 : (advantage?.(own) ?? 0);
      });
    }),
  );
}

/** (R - mean) / (deviation + eps) within each group (DeepSeekMath, arXiv 2402.03300, sec. 4.1.2); with `none` R - mean (Dr. GRPO, arXiv 2503.20783). [rows] */
export function groupAdvantages(batch: Batch, rewards: Rewards, { std, eps }: { readonly std: Deviation; readonly eps: number }): Float64Array {
  return byGroup(batch, rewards, (returns) => {
    const mean = meanOf(returns);
    if (std === "none") return (own) => own - mean;
    const squares = returns.reduce((sum, r) => sum + (r - mean) ** 2, 0);
    const spread = Math.sqrt(squares / (std === "sample" ? returns.length - 1 : returns.length));
    return (own) => (own - mean) / (spread + eps);
  });
}

/** R - mean of the other members of the group (RLOO: Ahmadian et al. 2024, arXiv 2402.14740). [rows] */
export function leaveOneOut(batch: Batch, rewards: Rewards): Float64Array {
  return byGroup(batch, rewards, (returns) => {
    const sum = returns.reduce((a, b) => a + b, 0);
    return (own) => own - (sum - own) / (returns.length - 1);
  });
}

/** Returns of the scored rows, less `baseline` of all returns of the batch; 0 for unscored rows. [rows] */
export function returnsLess(batch: Batch, rewards: Rewards, baseline: (returns: readonly number[]) => number): Float64Array {
  const rows = rowsOf(batch);
  const episodes = episodesOf([...rows.keys()], rows, rewards);
  const subtracted = episodes.size === 0 ? 0 : baseline([...episodes.values()]);
  return Float64Array.from(rows, ({ episode }, i) => (rewards.values[i] === undefined ? 0 : (episodes.get(episode) as number) - subtracted));
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, x) => sum + x, 0) / values.length;
}

/** Number of groups of a batch by what they teach: `varied`, or why nothing. */
export function groupCounts(batch: Batch, rewards: Rewards): { varied: number; equal: number; oneScored: number; unscored: number } {
  const rows = rowsOf(batch);
  const counts = { varied: 0, equal: 0, oneScored: 0, unscored: 0 };
  for (const indices of rowsByGroup(batch)) {
    const returns = [...episodesOf(indices, rows, rewards).values()];
    if (returns.length === 0) counts.unscored++;
    else if (returns.length === 1) counts.oneScored++;
    else if (varied(returns)) counts.varied++;
    else counts.equal++;
  }
  return counts;
}

/** Refuses groups of one answer, for an answer to a slot that compares the answers of a group. */
export function comparesAnswers(name: string): (settings: Settings) => void {
  return ({ group }) => {
    if (group >= 2) return;
    throw new ConfigError({
      place: "group",
      cause: `it is ${group}, and ${name} compares the answers to one problem with each other: alone, an answer has advantage 0 and nothing is learnt`,
      mend: "set group to 2 or more (8 is usual), or take a method without a group baseline",
    });
  };
}
