/** Small batches for tests of methods and losses. */
import { plainContext } from "../../src/core/problem.js";
import type { Batch, Group, Span, Trajectory } from "../../src/core/trajectory.js";
import { accept, reject, unscored, type Verdict } from "../../src/core/verdict.js";
import type { Scores } from "../../src/engine/contract.js";
import type { LossRow } from "../../src/losses/contract.js";

export interface RowOptions {
  readonly old: readonly number[];
  readonly behaviour?: readonly number[];
  readonly mask?: readonly number[];
  readonly lossMask?: readonly number[];
  readonly verdict?: Verdict;
  readonly spans?: readonly Span[];
  readonly episode?: string;
  readonly turn?: number;
  readonly purpose?: "train" | "aux";
}

/** A trajectory of `old.length` tokens; `mask` is its reward mask, `lossMask` its loss mask (by default the same). */
export function row(problem: string, member: number, options: RowOptions): Trajectory {
  const { old, mask = old.map(() => 1), lossMask = mask, verdict = reject("wrong"), spans = [], turn = 0, purpose = "train" } = options;
  const context = plainContext([1, 2]);
  const key = `1:${problem}/${member}`;
  const conditions = { context: "plain", weights: "policy@0", temperature: 1 };
  return {
    key,
    problem,
    member,
    episode: options.episode ?? key,
    turn,
    role: "policy",
    purpose,
    sampledUnder: context,
    trainedUnder: context,
    response: Int32Array.from(old, (_, t) => t + 3),
    text: old.map((_, t) => `t${t}`).join(" "),
    sampled: Uint8Array.from(mask),
    reward: Uint8Array.from(mask),
    loss: Uint8Array.from(lossMask),
    behaviour: { values: Float64Array.from(options.behaviour ?? old), conditions },
    old: { values: Float64Array.from(old), conditions },
    entropy: Float64Array.from(old, () => 0.5),
    spans,
    stop: "eos",
    policyVersion: 0,
    random: [1, 2, 3, member],
    verdict,
  };
}

export function group(problem: string, trajectories: readonly Trajectory[], kind = "main", weight = 1): Group {
  return {
    key: `1:${problem}:${kind}`,
    problem: { key: problem, prompt: [{ role: "user", content: `what is ${problem}?` }], reference: { state: "gold", answer: "7", version: 0 } },
    kind,
    weight,
    trajectories,
  };
}

export function batch(...groups: readonly Group[]): Batch {
  return { step: 1, groups };
}

/** Groups of one-token answers with these rewards: 1 accept, 0 reject, null unscored. */
export function rewarded(...groups: readonly (readonly (0 | 1 | null)[])[]): Batch {
  const verdictOf = (r: 0 | 1 | null) => (r === null ? unscored("worker lost") : r === 1 ? accept() : reject("wrong"));
  return batch(
    ...groups.map((rewards, g) =>
      group(
        `p${g}`,
        rewards.map((r, i) => row(`p${g}`, i, { old: [-1], verdict: verdictOf(r) })),
      ),
    ),
  );
}

export function scores(logp: readonly number[], entropy?: readonly number[]): Scores {
  return { logp: Float64Array.from(logp), ...(entropy ? { entropy: Float64Array.from(entropy) } : {}), weights: "policy@0" };
}

export interface LossRowOptions extends RowOptions {
  readonly now: readonly number[];
  readonly coefficient: readonly number[] | number;
  readonly weights?: readonly number[];
  readonly entropy?: readonly number[];
  readonly bounds?: { readonly low: number; readonly high: number };
}

/** One row as a loss reads it; weights are 1 inside the mask unless given. */
export function lossRow(options: LossRowOptions, index = 0): LossRow {
  const trajectory = row("p", index, options);
  const { now, coefficient, bounds = { low: 0, high: Number.POSITIVE_INFINITY } } = options;
  const mask = trajectory.reward;
  return {
    index,
    trajectory,
    now: scores(now, options.entropy),
    old: (trajectory.old ?? trajectory.behaviour).values,
    behaviour: trajectory.behaviour.values,
    mask,
    coefficient: typeof coefficient === "number" ? new Float64Array(now.length).fill(coefficient) : Float64Array.from(coefficient),
    weights: Float64Array.from(options.weights ?? mask),
    low: new Float64Array(now.length).fill(bounds.low),
    high: new Float64Array(now.length).fill(bounds.high),
  };
}
