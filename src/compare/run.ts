/** What a comparison reads of one run: its folder alone, live or finished; or a folder of samples, which is the end of a run without its way. */
import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { ConfigError, RunError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { meanScores, metricsOf } from "../evaluate/metrics.js";
import { problemSetId } from "../evaluate/samples.js";
import { readStore } from "../evaluate/store.js";
import { fallbackName } from "../methods/fallback.js";
import { RunReader } from "../train/store/reader.js";
import type { RunEvent } from "../train/store/schema.js";

export interface Point {
  readonly step: number;
  readonly value: number;
}

/** Scores of the last evaluation, one a problem in the order of the set; null: not scored. */
export interface ProblemScores {
  readonly set: string;
  readonly scores: readonly (number | null)[];
}

export interface Tokens {
  /** Drawn for training, what was discarded of it included. */
  readonly sampled: number;
  /** Gone through backward, summed over epochs. */
  readonly trained: number;
  readonly evaluation: number;
}

export interface ComparedRun {
  readonly folder: string;
  /** What the run is called when nobody names it: its method. */
  readonly method: string;
  /** Absent of a folder of samples. */
  readonly seed?: number;
  readonly steps: number;
  /** Hash of what it was trained on. */
  readonly data?: string;
  /** Why it ended; absent: it is running or was stopped. */
  readonly ended?: string;
  /** The metric over the steps, ascending. */
  readonly points: readonly Point[];
  /** The metric at the end. */
  readonly final: number;
  readonly problems?: ProblemScores;
  readonly tokens: Tokens;
}

/** The metric of evaluations; any other is one of training's steps (docs/metrics.md). */
export const evaluationMetric = "eval.score";
/** A metric of training is noisy: its end is the mean over this share of the steps. */
const endShare = 0.1;
/** Reasons after which a run does not go on. */
const unfinished = ["interrupted", "error"];

type Data = { readonly [name: string]: Json };

/** Reads a run folder, or a folder that `touchstone eval --store` wrote. Throws RunError, ConfigError where there is nothing of the metric. */
export async function readRun(folder: string, metric: string): Promise<ComparedRun> {
  if (existsSync(join(folder, "meta.json")) && !existsSync(join(folder, "run.json"))) return samplesAsRun(folder, metric);
  const reader = RunReader.open(folder);
  const config = reader.run.config as Data;
  const events = [...reader.events()];
  const steps = events.filter(({ kind }) => kind === "step");
  const evaluations = events.filter(({ kind, data }) => kind === "evaluation" && typeof data.score === "number");
  const points = metric === evaluationMetric ? evaluations.map(({ step, data }) => ({ step, value: data.score as number })) : ofSteps(steps, metric);
  const last = events.filter(({ kind }) => kind === "end").at(-1);
  const reason = last && last === events.at(-1) ? String(last.data.reason) : undefined;
  const final = metric === evaluationMetric ? points.at(-1)?.value : endOf(points);
  const problems = scoresOf(evaluations.at(-1)?.data);
  if (final === undefined) throw nothing(folder, metric, steps);
  return {
    folder: resolve(folder),
    method: methodName(config),
    seed: Number(config.seed),
    data: reader.run.data,
    steps: steps.at(-1)?.step ?? 0,
    ...(reason !== undefined && !unfinished.includes(reason) && { ended: reason }),
    points,
    final,
    ...(metric === evaluationMetric && problems && { problems }),
    tokens: tokensOf(steps.at(-1)?.data.ledger as Ledger | undefined),
  };
}

/** Whether a run has come to its end, so that it cannot go on. */
export function hasEnded(reader: RunReader): boolean {
  let last: RunEvent | undefined;
  for (const event of reader.events()) last = event;
  return last?.kind === "end" && !unfinished.includes(String(last.data.reason));
}

function ofSteps(steps: readonly RunEvent[], metric: string): Point[] {
  return steps.flatMap(({ step, data }) => {
    const value = (data.metrics as Data)[metric];
    return typeof value === "number" ? [{ step, value }] : [];
  });
}

function endOf(points: readonly Point[]): number | undefined {
  if (points.length === 0) return undefined;
  const part = points.slice(-Math.max(1, Math.round(endShare * points.length)));
  return part.reduce((sum, { value }) => sum + value, 0) / part.length;
}

function nothing(folder: string, metric: string, steps: readonly RunEvent[]): RunError | ConfigError {
  if (steps.length === 0)
    return new RunError({ place: folder, cause: "the run has neither a step nor an evaluation yet", mend: "wait for them, or leave the run out" });
  if (metric === evaluationMetric) {
    const cause = "the run has no evaluation with a score";
    return new ConfigError({ place: folder, cause, mend: "compare what training saw, with --metric reward, or train with --eval-every" });
  }
  const names = Object.keys(steps.at(-1)?.data.metrics as Data).join(", ");
  return new ConfigError({ place: "option --metric", cause: `the steps of ${folder} have no ${metric}`, mend: `choose one of ${evaluationMetric}, ${names}` });
}

function scoresOf(data: Data | undefined): ProblemScores | undefined {
  if (!Array.isArray(data?.scores) || typeof data.problem_set !== "string") return undefined;
  return { set: data.problem_set, scores: data.scores as (number | null)[] };
}

interface Ledger {
  readonly sampled: { readonly train: number; readonly aux: number; readonly discarded: number; readonly evaluation: number };
  readonly trained: number;
}

function tokensOf(ledger: Ledger | undefined): Tokens {
  if (!ledger) return { sampled: 0, trained: 0, evaluation: 0 };
  const { train, aux, discarded, evaluation } = ledger.sampled;
  return { sampled: train + aux + discarded, trained: ledger.trained, evaluation };
}

/** `grpo`, `dapo+rloo`, or `reinforce, then dapo` of stages. */
export function methodName({ method, stages }: { readonly [name: string]: unknown }): string {
  const one = (part: unknown): string => {
    if (Array.isArray(part)) return part.map(one).join("+");
    const name = typeof part === "object" && part !== null ? String((part as { name?: unknown }).name) : String(part ?? fallbackName);
    return name
      .split("+")
      .map((each) => basename(each).replace(/\.[cm]?[jt]s$/, ""))
      .join("+");
  };
  return Array.isArray(stages) ? stages.map((stage: { method?: unknown }) => one(stage.method)).join(", then ") : one(method);
}

async function samplesAsRun(folder: string, metric: string): Promise<ComparedRun> {
  if (metric !== evaluationMetric)
    throw new ConfigError({ place: folder, cause: `samples have scores, and no ${metric}`, mend: `leave --metric ${metric} or the folder out` });
  const { meta, problems, samples } = await readStore(folder);
  const { value } = metricsOf(samples, { k: [1], seed: meta.seed }).estimates[0];
  if (value === null) throw new RunError({ place: folder, cause: "none of its samples has a score", mend: "leave it out" });
  const scores = meanScores(samples);
  return {
    folder: resolve(folder),
    method: basename(resolve(folder)),
    steps: 0,
    ended: "samples",
    points: [],
    final: value,
    problems: { set: problemSetId(problems), scores: problems.map(({ key }) => scores.get(key) ?? null) },
    tokens: { sampled: 0, trained: 0, evaluation: samples.reduce((sum, { ids }) => sum + ids.length, 0) },
  };
}
