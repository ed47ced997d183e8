/**
 * The shape of a loss. A loss is a plain function of the current log-probs of a minibatch (and of the entropies, values
 * or target log-probs that it asked for); it returns its value, its derivatives and what it counted (C11). All losses are
 * minimised, all numbers are float64, and a token's weight contains the whole normaliser: a loss sums, it never averages.
 */
import type { Trajectory } from "../core/trajectory.js";
import type { Derivatives, ParameterSet, Scores, Sequence, Targets } from "../engine/contract.js";

/** What a loss reads beside the log-probs of the response tokens. */
export interface LossWant {
  readonly entropy?: boolean;
  readonly values?: boolean;
  /** Outcomes whose log-probs the loss reads, for the batch row of this index. */
  readonly targets?: (index: number) => Targets | undefined;
}

/** One trajectory of a minibatch, with everything that a loss may depend on. All arrays are [tokens] of its response. */
export interface LossRow {
  /** Index among the rows of the batch: arrays that a term carries with it are read at this index. */
  readonly index: number;
  readonly trajectory: Trajectory;
  /** Under the weights being differentiated. */
  readonly now: Scores;
  /** Log-probs under the conditions of training at the weights of the rollout (C3). */
  readonly old: Float64Array;
  /** Log-probs under the conditions of sampling (C3). */
  readonly behaviour: Float64Array;
  /** 1 where the policy's loss falls. */
  readonly mask: Uint8Array;
  /** The advantage, or whatever credit made of it. */
  readonly coefficient: Float64Array;
  /** Token weights of the resolved aggregation, normaliser and group weight included; 0 outside the mask. */
  readonly weights: Float64Array;
  /** Smallest and largest ratio inside the trust region (0 and Infinity: no bound). */
  readonly low: Float64Array;
  readonly high: Float64Array;
}

/** A number that can be merged over minibatches: a mean as sum and count, or a maximum. */
export type Statistic = { readonly sum: number; readonly count: number } | { readonly max: number };
export type Statistics = { readonly [name: string]: Statistic };

export interface LossResult {
  readonly value: number;
  /** One entry a row, of a loss to be minimised. */
  readonly derivatives: readonly Derivatives[];
  readonly statistics: Statistics;
}

export interface LossFunction {
  readonly name: string;
  readonly want?: LossWant;
  /** What a minibatch must not split; rows are never split. Absent: `row`. */
  readonly unit?: "row" | "group";
  run(rows: readonly LossRow[]): LossResult;
}

/** Bounds of the ratio before any `bounds` stage: the smallest and the largest that keep their gradient. */
export interface RatioBounds {
  readonly low: number;
  readonly high: number;
}

/** The policy's loss. */
export interface Surrogate extends LossFunction {
  /** Which log-probs stand below the ratio (C3). */
  readonly denominator: "old" | "behaviour";
  readonly bounds: RatioBounds;
}

/** A further loss, added to the policy's. It carries its own weights and masks by batch row. */
export interface Term extends LossFunction {
  /** A pass of its own, where the term is not about the policy under its training context: what to run and what receives the gradient (C10). */
  readonly on?: { readonly set: ParameterSet; sequence(index: number): Sequence };
}

/** Statistics of several minibatches as one: sums and counts add up, maxima compete. */
export function mergeStatistics(parts: readonly Statistics[]): Statistics {
  const merged: { [name: string]: Statistic } = {};
  for (const part of parts) {
    for (const [name, next] of Object.entries(part)) {
      const seen = merged[name];
      if (seen === undefined) merged[name] = next;
      else if ("max" in seen && "max" in next) merged[name] = { max: Math.max(seen.max, next.max) };
      else if ("sum" in seen && "sum" in next) merged[name] = { sum: seen.sum + next.sum, count: seen.count + next.count };
      else throw new TypeError(`the statistic ${name} is a mean in one loss and a maximum in another; rename one of them`);
    }
  }
  return merged;
}

/** The numbers behind statistics. A mean over nothing is left out: there is no number for it. */
export function readStatistics(statistics: Statistics): { [name: string]: number } {
  const numbers: { [name: string]: number } = {};
  for (const [name, statistic] of Object.entries(statistics)) {
    if ("max" in statistic) {
      if (statistic.max !== Number.NEGATIVE_INFINITY) numbers[name] = statistic.max;
    } else if (statistic.count > 0) numbers[name] = statistic.sum / statistic.count;
  }
  return numbers;
}
