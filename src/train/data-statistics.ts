/** Numbers of a batch by where its problems come from, and of its conversations (docs/metrics.md). */
import type { Problem } from "../core/problem.js";
import { type Trajectory, trained } from "../core/trajectory.js";
import { rewardOf } from "../core/verdict.js";
import { type Coefficients, groupsWithoutCoefficient } from "../methods/coefficients.js";

/** Sources beyond these get no numbers of their own: a tag may be another one for each problem. */
const mostSources = 32;

/** Where a problem comes from: the source of a mixture, else what its data calls `data_source`. */
export function sourceOf({ tags }: Problem): string | undefined {
  const source = tags?.source ?? tags?.data_source;
  return source === undefined ? undefined : String(source);
}

/** Of each source in the batch: `reward.SOURCE` (mean of the scored answers), `unscored.SOURCE`, `rows.SOURCE` (its share of the answers), `groups_silent.SOURCE`. */
export function sourceMetrics(c: Coefficients): { [name: string]: number | undefined } {
  const { groups } = c.batch;
  const names = firstSources(groups.map(({ problem }) => problem));
  if (names.length === 0) return {};
  const silent = new Set(groupsWithoutCoefficient(c));
  const numbers: { [name: string]: number | undefined } = {};
  for (const name of names) {
    const own = groups.flatMap((group, g) => (sourceOf(group.problem) === name ? [{ group, silent: silent.has(g) }] : []));
    const rows = own.flatMap(({ group }) => trained(group));
    numbers[`reward.${name}`] = mean(rows.flatMap(({ verdict }) => rewardOf(verdict) ?? []));
    numbers[`unscored.${name}`] = mean(rows.map(({ verdict }) => (verdict.kind === "unscored" ? 1 : 0)));
    numbers[`rows.${name}`] = rows.length / Math.max(1, c.rows.length);
    numbers[`groups_silent.${name}`] = mean(own.map((each) => (each.silent ? 1 : 0)));
  }
  return numbers;
}

/** `eval.score.SOURCE`: mean score of each source's problems, from the mean score of each problem. */
export function sourceScores(problems: readonly Problem[], scores: ReadonlyMap<string, number>): { [name: string]: number } {
  return Object.fromEntries(
    firstSources(problems).flatMap((name) => {
      const score = mean(problems.flatMap((problem) => (sourceOf(problem) === name ? (scores.get(problem.key) ?? []) : [])));
      return score === undefined ? [] : [[`eval.score.${name}`, score] as const];
    }),
  );
}

/**
 * Of conversations alone. `turns`, `turns_max`: actions an answer; `turns_faults`: share of actions that the environment failed at;
 * `observed`: share of the response tokens that were observed; `observed_cut`: share of observations that their budget cut;
 * `info.NAME`: mean over the turns of a number that the environment gives.
 */
export function turnMetrics(rows: readonly Trajectory[]): { [name: string]: number | undefined } {
  const conversations = rows.filter(({ turns }) => turns !== undefined);
  if (conversations.length === 0) return {};
  const turns = conversations.flatMap((row) => row.turns ?? []);
  const counts = conversations.map((row) => row.turns?.length ?? 0);
  const tokens = conversations.reduce((sum, { response }) => sum + response.length, 0);
  const drawn = conversations.reduce((sum, { sampled }) => sum + sampled.reduce((a, b) => a + b, 0), 0);
  const infos = [...new Set(turns.flatMap(({ info }) => Object.keys(info)))].sort();
  return {
    turns: mean(counts),
    turns_max: Math.max(...counts),
    turns_faults: mean(turns.map(({ fault }) => (fault === undefined ? 0 : 1))),
    observed: tokens === 0 ? undefined : 1 - drawn / tokens,
    observed_cut: mean(turns.map(({ cut = 0 }) => (cut > 0 ? 1 : 0))),
    ...Object.fromEntries(infos.map((name) => [`info.${name}`, mean(turns.flatMap(({ info }) => info[name] ?? []))])),
  };
}

/** Their names in alphabetical order; none where there are too many to be sources. */
function firstSources(problems: readonly Problem[]): string[] {
  const names = [...new Set(problems.flatMap((problem) => sourceOf(problem) ?? []))].sort();
  return names.length > mostSources ? [] : names;
}

function mean(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0) / values.length;
}
