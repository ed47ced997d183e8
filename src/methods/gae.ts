/**
 * Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438, eq. 11 to 16) over the tokens of an episode:
 *
 *     delta_t = r_t + gamma V_{t+1} - V_t,     A_t = delta_t + gamma lambda A_{t+1}
 *
 * A time step is a token that the policy drew; what environments wrote in between is no step. The return of an episode falls
 * on its last token, rewards on single tokens on theirs.
 */
import type { Batch, Trajectory } from "../core/trajectory.js";
import type { Rewards } from "./contract.js";
import { rowsOf } from "./credit.js";

export interface GaeOptions {
  readonly gamma: number;
  /** From the number of steps of an episode. */
  readonly lambda: (steps: number) => number;
  /** What the value after the last step is: 0, or, where the budget cut the episode off, what the critic gives. */
  readonly truncated: "terminal" | "bootstrap";
}

/** A of a list of steps. `after`: the value of what follows the last one. */
export function gae(rewards: ArrayLike<number>, values: ArrayLike<number>, after: number, gamma: number, lambda: number): Float64Array {
  const advantages = new Float64Array(rewards.length);
  let next = after;
  let advantage = 0;
  for (let t = rewards.length - 1; t >= 0; t--) {
    advantage = rewards[t] + gamma * next - values[t] + gamma * lambda * advantage;
    advantages[t] = advantage;
    next = values[t];
  }
  return advantages;
}

interface Place {
  readonly row: number;
  readonly token: number;
}

/** Advantages of all rows; 0 on tokens that are no steps, and in rows without a score. `values` [rows][tokens + 1]. [rows][tokens] */
export function tokenAdvantages(batch: Batch, rewards: Rewards, values: readonly Float64Array[], options: GaeOptions): Float64Array[] {
  const rows = rowsOf(batch);
  const advantages = rows.map(({ response }) => new Float64Array(response.length));
  const episodes = new Map<string, number[]>();
  rows.forEach(({ episode }, i) => {
    if (rewards.values[i] !== undefined) episodes.set(episode, [...(episodes.get(episode) ?? []), i]);
  });
  for (const indices of episodes.values()) {
    const ordered = [...indices].sort((a, b) => (rows[a] as Trajectory).turn - (rows[b] as Trajectory).turn);
    const places = ordered.flatMap((row): Place[] =>
      [...rows[row].reward.keys()].filter((token) => rows[row].reward[token] === 1).map((token) => ({ row, token })),
    );
    const end = places.at(-1);
    if (end === undefined) continue;
    const last = ordered.at(-1) as number;
    const earned = places.map(({ row, token }) => rewards.tokens?.[row]?.[token] ?? 0);
    earned[places.length - 1] += rewards.values[last] as number;
    const worth = places.map(({ row, token }) => values[row][token]);
    const cut = options.truncated === "bootstrap" && rows[last].stop === "length";
    const after = cut ? (values[end.row][end.token + 1] as number) : 0;
    const found = gae(earned, worth, after, options.gamma, options.lambda(places.length));
    places.forEach(({ row, token }, t) => {
      advantages[row][token] = found[t];
    });
  }
  return advantages;
}

/** lambda = 1 - 1 / (alpha T), kept within 0 and 1 (VAPO: Yue et al. 2025, arXiv 2504.05118, sec. 4.2; the bounds are our choice, for short answers). */
export function lengthAdaptiveLambda(alpha: number, steps: number): number {
  return Math.min(1, Math.max(0, 1 - 1 / (alpha * steps)));
}
