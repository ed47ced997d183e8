/** The numbers of a step's event, and what a first batch gives away. Metrics are computed on what is trained. */
import type { Json } from "../core/json.js";
import type { Trajectory } from "../core/trajectory.js";
import { rewardOf } from "../core/verdict.js";
import { readStatistics } from "../losses/contract.js";
import { groupCounts } from "../methods/advantages.js";
import { type Coefficients, groupsWithoutCoefficient } from "../methods/coefficients.js";
import { causeOf } from "../verify/faults.js";
import { sourceMetrics, turnMetrics } from "./data-statistics.js";
import type { UpdateResult } from "./update.js";

/**
 * What each number means (docs/metrics.md has all of them):
 * `reward`: mean score of scored answers, after `reward` and before `adjust` it is the verdict's own; `reward_max`, `reward_min`.
 * `groups`, `groups_silent`: number of groups, share of them without any coefficient. `rows_trained`: share of answers that went through backward.
 * `entropy`: mean entropy a sampled token, nats. `tokens_mean`, `tokens_max`: response lengths; `truncated`: share cut off by the budget.
 * `gap_mean`, `gap_max`, `gap_kl`: sampler against trainer on the same tokens at the same weights. `loss`: its value (0 on-policy is usual; the gradient is what counts).
 * `grad_norm`: mean norm before clipping over the batch's updates, `grad_clipped`: share of updates that were scaled down, `lr`: rate of the last update.
 * `reward.SOURCE` and the like, `turns` and the like: see data-statistics.ts.
 * `clip_low`, `clip_high`, `ratio_max`, `kl_k1`, `kl_k3`, `kl_reference`: from the loss. `unscored`: share of answers without a score.
 */
export function metricsOf(c: Coefficients, u: UpdateResult): { [name: string]: number } {
  const rows = c.rows;
  const scores = rows.flatMap(({ verdict }) => rewardOf(verdict) ?? []);
  const lengths = rows.map(({ response }) => response.length);
  const entropy = mean(rows.flatMap((row) => [...row.entropy].filter((_, t) => row.sampled[t] === 1)));
  return clean({
    reward: mean(scores),
    reward_min: scores.length > 0 ? Math.min(...scores) : undefined,
    reward_max: scores.length > 0 ? Math.max(...scores) : undefined,
    unscored: share(rows, ({ verdict }) => verdict.kind === "unscored"),
    groups: c.batch.groups.length,
    ...causesOf(c),
    groups_silent: c.batch.groups.length === 0 ? undefined : groupsWithoutCoefficient(c).length / c.batch.groups.length,
    rows: rows.length,
    rows_trained: rows.length === 0 ? undefined : u.rows / rows.length,
    entropy,
    tokens_mean: mean(lengths),
    tokens_max: lengths.length > 0 ? Math.max(...lengths) : undefined,
    truncated: share(rows, ({ stop }) => stop === "length"),
    ...sourceMetrics(c),
    ...turnMetrics(rows),
    loss: u.loss,
    updates: u.steps,
    grad_norm: mean(u.gradNorms),
    grad_clipped: u.steps === 0 ? undefined : u.clipped / u.steps,
    ...u.gap.metrics(),
    ...readStatistics(u.statistics),
  });
}

/** Shares of groups without a comparison to learn from, by cause. */
function causesOf({ batch, rewards }: Coefficients): { [name: string]: number } {
  const { equal, oneScored, unscored } = groupCounts(batch, rewards);
  const all = Math.max(1, batch.groups.length);
  return { "groups.equal": equal / all, "groups.one_scored": oneScored / all, "groups.unscored": unscored / all };
}

/** Reasons that are counted by their names; a verifier may make up one for each answer. */
const mostReasons = 32;

/** Answers by kind of verdict and, for what was not accepted, by reason; what is beyond the first 32 reasons counts as `other`. */
export function verdictsOf(rows: readonly Trajectory[]): { readonly [kind: string]: Json } {
  const kinds: { [kind: string]: number } = { accept: 0, reject: 0, partial: 0, unscored: 0 };
  const reasons: { [reason: string]: number } = {};
  for (const { verdict } of rows) {
    kinds[verdict.kind]++;
    if (!("reason" in verdict)) continue;
    const reason = Object.hasOwn(reasons, verdict.reason) || Object.keys(reasons).length < mostReasons ? verdict.reason : "other";
    reasons[reason] = (reasons[reason] ?? 0) + 1;
  }
  return { ...kinds, reasons };
}

/** What the scores of the first batch warn of, in a sentence; undefined where they vary. */
export function firstBatchWarning(c: Pick<Coefficients, "rows" | "rewards">): string | undefined {
  const { rows } = c;
  const scores = scoresOf(c);
  if (scores.length === 0) return `no answer of the first batch has a score (${topReason(rows)})`;
  if (scores.length < 2 || scores.some((score) => score !== scores[0])) return undefined;
  return `all ${scores.length} answers of the first batch have the score ${scores[0]}${scores[0] === 0 ? ` (${topReason(rows)})` : ""}; nothing can be learnt from equal scores`;
}

/** Why N batches in a row taught nothing, and what to do. */
export function silenceExplained(c: Pick<Coefficients, "rows" | "rewards">, batches: number): string {
  const { rows } = c;
  const scores = scoresOf(c);
  const start = `${batches === 1 ? "the only batch" : `${batches} batches in a row`} brought no signal: in every group all answers have the same score`;
  if (scores.length === 0) return `${start}, or none (${topReason(rows)}); mend the verifier or its references`;
  if (rows.every(({ verdict }) => verdict.kind === "unscored"))
    return `${start}; give problems on which answers differ, larger groups, or a higher temperature`;
  if (scores.every((score) => score === 1))
    return `${start}, in the last batch 1; the problems are too easy for this policy now: give harder ones, or be content`;
  if (scores.every((score) => score === 0)) {
    return `${start}, in the last batch 0 (${topReason(rows)}); the problems are too hard, or the prompt does not ask for what the verifier reads: look at the rollouts, give easier problems or larger groups`;
  }
  return `${start}; give problems that are solved sometimes, larger groups, or a higher temperature`;
}

/** The scores of a batch's answers: their verdicts', or where all lack a reference what the method made up for them. */
function scoresOf({ rows, rewards }: Pick<Coefficients, "rows" | "rewards">): number[] {
  const unlabelled = rows.every(({ verdict }) => verdict.kind === "unscored" && verdict.reason === "no-reference");
  return unlabelled ? rewards.values.filter((value) => value !== undefined) : rows.flatMap(({ verdict }) => rewardOf(verdict) ?? []);
}

/** Of answers with a score where there are any: what has none does not explain the scores. */
function topReason(all: readonly Trajectory[]): string {
  const scored = all.filter(({ verdict }) => verdict.kind !== "unscored");
  const rows = scored.length > 0 ? scored : all;
  const { reasons } = verdictsOf(rows) as { readonly reasons: { readonly [reason: string]: number } };
  const [top] = Object.entries(reasons).sort(([, a], [, b]) => b - a);
  if (top === undefined) return "no reason was given";
  const first = rows.find(({ verdict }) => "reason" in verdict && verdict.kind === "unscored" && verdict.reason === top[0]);
  const cause = first && causeOf(first.verdict);
  return `most often: ${top[0]}${cause === undefined ? "" : `, first because ${cause}`}`;
}

function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0) / values.length;
}

function share(rows: readonly Trajectory[], test: (row: Trajectory) => boolean): number | undefined {
  return rows.length === 0 ? undefined : rows.filter(test).length / rows.length;
}

/** Numbers that exist; what is not finite never reaches an event. */
function clean(numbers: { readonly [name: string]: number | undefined }): { [name: string]: number } {
  return Object.fromEntries(Object.entries(numbers).filter((entry): entry is [string, number] => entry[1] !== undefined && Number.isFinite(entry[1])));
}
