/** Numbers of an evaluation, over scored samples alone: unscored ones are left out and counted. */
import type { StopReason } from "../core/trajectory.js";
import { scoreOf, type Verdict } from "../core/verdict.js";
import { type Interval, meanInterval } from "./interval.js";
import { type AnswerClass, majAtK, passAtK } from "./passk.js";
import { byProblem, type EvaluatedSample } from "./samples.js";

/**
 * A mean over problems. `avg`: the mean score of a problem's samples, partial scores included; `pass`: at least one of k
 * is accepted; `maj`: the most frequent answer of k is accepted.
 */
export interface Estimate {
  readonly name: "avg" | "pass" | "maj";
  readonly k: number;
  /** Fewest and most scored samples of the problems that count. */
  readonly n: { readonly min: number; readonly max: number };
  /** Null where no problem has enough scored samples. */
  readonly value: number | null;
  readonly interval: Interval | null;
  /** Problems that count, and those that have fewer than k scored samples (for `avg`: none). */
  readonly problems: number;
  readonly leftOut: number;
}

export interface Metrics {
  readonly problems: number;
  readonly samples: number;
  readonly scored: number;
  readonly unscored: number;
  readonly estimates: readonly Estimate[];
  /** Samples by kind of verdict. */
  readonly verdicts: { readonly [kind in Verdict["kind"]]: number };
  /** Rejected and unscored samples by reason. */
  readonly reasons: { readonly [reason: string]: number };
  readonly stops: { readonly [stop in StopReason]?: number };
  /** Response tokens. */
  readonly tokens: { readonly total: number; readonly mean: number; readonly max: number };
  /** Mean entropy a token, in nats; null where the engine does not tell it. */
  readonly entropy: number | null;
}

/** One problem's scored samples, counted. */
interface Counted {
  readonly n: number;
  readonly right: number;
  readonly mean: number;
  readonly classes: readonly AnswerClass[];
  readonly abstained: number;
}

/** avg over all samples, and pass@k and maj@k for each k (maj from 2 on), with 95 % intervals whose bootstrap is keyed by `seed`. */
export function metricsOf(samples: readonly EvaluatedSample[], options: { readonly k: readonly number[]; readonly seed: number }): Metrics {
  const counted = [...byProblem(samples).values()].map(count);
  const most = Math.max(0, ...counted.map(({ n }) => n));
  const estimate = (name: Estimate["name"], k: number, least: number, measure: (problem: Counted) => number): Estimate => {
    const enough = counted.filter(({ n }) => n >= least);
    const values = enough.map(measure);
    const sizes = enough.map(({ n }) => n);
    return {
      name,
      k,
      n: { min: values.length ? Math.min(...sizes) : 0, max: Math.max(0, ...sizes) },
      value: values.length ? values.reduce((a, b) => a + b, 0) / values.length : null,
      interval:
        meanInterval(
          values,
          options.seed,
          sizes.every((n) => n === 1),
        ) ?? null,
      problems: values.length,
      leftOut: counted.length - values.length,
    };
  };
  const ks = [...new Set(options.k)].sort((a, b) => a - b);
  const lengths = samples.map(({ ids }) => ids.length);
  const tokens = lengths.reduce((a, b) => a + b, 0);
  const verdicts = { accept: 0, reject: 0, partial: 0, unscored: 0, ...tally(samples.map(({ verdict }) => verdict.kind)) };
  return {
    problems: counted.length,
    samples: samples.length,
    scored: samples.length - verdicts.unscored,
    unscored: verdicts.unscored,
    estimates: [
      estimate("avg", most, 1, ({ mean }) => mean),
      ...ks.map((k) => estimate("pass", k, k, ({ n, right }) => passAtK(n, right, k))),
      ...ks.filter((k) => k > 1).map((k) => estimate("maj", k, k, ({ classes, abstained }) => majAtK(classes, abstained, k))),
    ],
    verdicts,
    reasons: tally(samples.flatMap(({ verdict }) => ("reason" in verdict ? [verdict.reason] : []))),
    stops: tally(samples.map(({ stop }) => stop)),
    tokens: { total: tokens, mean: samples.length ? tokens / samples.length : 0, max: lengths.reduce((a, b) => Math.max(a, b), 0) },
    entropy: samples.some(({ entropy }) => entropy === null)
      ? null
      : tokens
        ? samples.reduce((sum, { entropy, ids }) => sum + (entropy ?? 0) * ids.length, 0) / tokens
        : 0,
  };
}

function count(samples: readonly EvaluatedSample[]): Counted {
  const scored = samples.flatMap(({ verdict, vote }) => {
    const score = scoreOf(verdict);
    return score === undefined ? [] : [{ score, vote }];
  });
  const classes = new Map<number, { count: number; right: number }>();
  for (const { score, vote } of scored) {
    if (vote === null) continue;
    const own = classes.get(vote) ?? { count: 0, right: 0 };
    classes.set(vote, { count: own.count + 1, right: own.right + (score === 1 ? 1 : 0) });
  }
  return {
    n: scored.length,
    right: scored.filter(({ score }) => score === 1).length,
    mean: scored.reduce((sum, { score }) => sum + score, 0) / Math.max(1, scored.length),
    classes: [...classes.values()],
    abstained: scored.filter(({ vote }) => vote === null).length,
  };
}

/** Mean score of each problem's scored samples, by key; a problem without any has none. */
export function meanScores(samples: readonly EvaluatedSample[]): Map<string, number> {
  const scored = [...byProblem(samples)].map(([key, of]) => [key, count(of)] as const).filter(([, { n }]) => n > 0);
  return new Map(scored.map(([key, { mean }]) => [key, mean]));
}

/** How often each name occurs, in the order of the names. */
export function tally(names: readonly string[]): { [name: string]: number } {
  const counts: { [name: string]: number } = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** The estimate of a name and k; undefined where it was not asked for. */
export function estimateOf(metrics: Metrics, name: Estimate["name"], k?: number): Estimate | undefined {
  return metrics.estimates.find((estimate) => estimate.name === name && (k === undefined || estimate.k === k));
}
