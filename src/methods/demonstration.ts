/**
 * Demonstrations (C26): what a paper claims, at a scale that a laptop's processor can show or fail to show. One is data and
 * functions, the default export of `src/methods/NAME/demonstration.ts`, which its folder alone makes known. Arms differ in
 * few options, run over paired seeds, yield numbers by metric, and claims about those numbers are stated before anything
 * runs. `touchstone reproduce` runs it and judges with one rule for all papers.
 */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { suggestion } from "../core/options.js";
import type { Problem } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Group, Trajectory } from "../core/trajectory.js";
import type { Engine } from "../engine/contract.js";
import type { Async, MethodModule } from "./contract.js";

/** A method module whatever its options and state. */
export type AnyModule = MethodModule<object, Json>;

/** One method of an arm: a name, a name with options, a module, or a module with options. A list of them is composed. */
export type MethodSpec =
  | string
  | AnyModule
  | { readonly name: string; readonly options?: Json }
  | { readonly module: AnyModule; readonly options?: { readonly [option: string]: Json } };

/**
 * Options of a training run, as `train` reads and checks them (docs/configuration.md). A model of a run or role that begins
 * with `starters/` is that of the package; other paths are as written. `seed`, `out`, `method` and the engine's threads are set for each run.
 */
export interface TrainingOptions {
  readonly model?: string;
  /** A name, a name with options, the path of a module, or a task as an object. */
  readonly task?: unknown;
  readonly steps?: number;
  readonly problems?: number;
  readonly group?: number;
  readonly minibatches?: number;
  readonly epochs?: number;
  readonly lr?: number;
  readonly temperature?: number;
  readonly roles?: { readonly [role: string]: { readonly [option: string]: Json } };
  readonly [option: string]: unknown;
}

/** Numbers of one arm and seed, by metric. Undefined: this run has none (no group of that kind came up), so the pair is left out. */
export type Numbers = { readonly [metric: string]: number | undefined };

/** An arm that is one training run. */
export interface TrainingArm {
  /** What it is, in a phrase; absent: its name says it. */
  readonly about?: string;
  readonly method?: MethodSpec | readonly MethodSpec[];
  /** What differs from the options that all arms share: each key replaces the shared one whole. */
  readonly options?: TrainingOptions;
}

/** An arm that is no plain training run: the audit of a population, several runs, an exact computation. It returns all metrics itself (`bench.numbers` computes those of a run). */
export interface MeasuredArm {
  readonly about?: string;
  run(bench: Bench): Promise<Numbers>;
}

export type Arm = TrainingArm | MeasuredArm;

/** How held-out answers are drawn. Metrics of one arm that agree in this share their answers. */
export interface Heldout {
  /** Problems of the split `eval`; the same for all arms of a seed. */
  readonly problems: number;
  /** Answers a problem; default 1. */
  readonly samples?: number;
  /** Default 1. */
  readonly temperature?: number;
  /** The most likely answer instead; samples is then 1. */
  readonly greedy?: boolean;
  /** Another task than the run's, such as problems longer than those trained on. */
  readonly task?: unknown;
  /** Which of the problems count, as in a hard half by its tags. Asked of more problems until there are enough. */
  readonly keep?: (problem: Problem) => boolean;
}

export type Metric = { readonly about?: string } & (
  | ({ /** Mean score of all answers: avg@samples; with one answer a problem pass@1. */ readonly kind: "avg" } & Heldout)
  | ({ /** At least one of k answers is right, unbiased from `samples` answers. */ readonly kind: "pass"; readonly k: number } & Heldout)
  | ({ /** The most frequent of k answers is right. */ readonly kind: "maj"; readonly k: number } & Heldout)
  | {
      /** Mean of a metric of training's steps (docs/metrics.md): over steps `from` to `to`, or the `last` ones; absent: all. */
      readonly kind: "training";
      readonly metric: string;
      readonly from?: number;
      readonly to?: number;
      readonly last?: number;
    }
  | { /** Area under the held-out score while it trained, a step: needs `eval.every` among the options. */ readonly kind: "area" }
  | { /** A function of its own over the finished run. */ readonly kind: "own"; run(trained: TrainedRun, bench: Bench): Async<number | undefined> }
  | { /** What an arm that is a function returns under the metric's name; training runs have none. */ readonly kind: "returned" }
);

/** All numbers of one seed, by arm. */
export type SeedNumbers = { readonly [arm: string]: Numbers };

/** What is compared: a metric of an arm less that of another arm or a number; or a number computed from all arms of a seed. */
type Compared =
  | { readonly metric: string; readonly arm: string; readonly than: string | number }
  | { readonly of: (arms: SeedNumbers) => number | undefined; readonly than: number };

/**
 * A statement that an outcome can contradict. Each is judged by the 95 % interval of the mean over seeds:
 * - `above`, `below`: the difference lies beyond the margin (default 0);
 * - `notBelow`, `notAbove`: it lies beyond the margin on the other side, at most `margin` worse (no default: say how much is little);
 * - `atLeastRatio`, `atMostRatio`: arm - ratio x than lies above (below) 0, as in "falls by 30 % or more": atMostRatio 0.7;
 * - `nullDifference`: the whole interval lies within the margin around 0, so that the two are shown to be equal to within it.
 */
export type Claim = { readonly about?: string } & (
  | ({ readonly kind: "above" | "below"; readonly margin?: number } & Compared)
  | ({ readonly kind: "notBelow" | "notAbove" | "nullDifference"; readonly margin: number } & Compared)
  | { readonly kind: "atLeastRatio" | "atMostRatio"; readonly ratio: number; readonly metric: string; readonly arm: string; readonly than: string }
);

/** One group of a finished run. */
export interface StoredAnswers {
  readonly group: Group;
  readonly rollouts: readonly {
    readonly trajectory: Trajectory;
    readonly numbers: { readonly [name: string]: number | null };
    readonly columns: { readonly [name: string]: Float64Array };
  }[];
}

/** A finished training run, from its folder. */
export interface TrainedRun {
  readonly folder: string;
  /** Model folder of the last checkpoint's policy. */
  readonly model: string;
  readonly steps: number;
  /** One metric of training's steps, ascending; steps that lack it are left out. */
  series(metric: string): readonly { readonly step: number; readonly value: number }[];
  /** Held-out scores while it trained. */
  readonly evaluations: readonly { readonly step: number; readonly value: number }[];
  /** The groups of a step as they were stored, with the numbers (reward, advantage) and columns (coefficients after each stage) of each trajectory. */
  groups(step: number): Promise<readonly StoredAnswers[]>;
  /** Held-out answers of its last policy. */
  measure(heldout: Heldout): Promise<Answers>;
}

/** Judged answers to held-out problems. */
export interface Answers {
  readonly problems: readonly Problem[];
  /** In the order of problems and members. `score`: undefined where the verifier could not judge. */
  readonly answers: readonly { readonly problem: string; readonly member: number; readonly text: string; readonly tokens: number; readonly score?: number }[];
  readonly avg: number | undefined;
  pass(k: number): number | undefined;
  maj(k: number): number | undefined;
}

/** Supervised training on a task's worked solutions: a starter or a teacher that the package does not have. Equal recipes are made once for all arms and seeds. */
export interface WarmStart {
  /** A name or a name with options; the habits of its worked solutions are what the policy learns. */
  readonly task: string | { readonly name: string; readonly options?: Json };
  /** Of a new policy; default "100k". */
  readonly size?: "60k" | "100k" | "1M" | "4M";
  /** The model to begin with instead of a new one: other habits for a policy that knows the task take a few hundred steps. */
  readonly from?: string;
  readonly steps: number;
  readonly lr: number;
  /** Longest sequence of the policy; default 128. */
  readonly maxLength?: number;
  readonly seed?: number;
}

/** What an arm has at hand. Everything runs on one thread, so that arms of one seed can run beside each other with the same bytes. */
export interface Bench {
  readonly arm: string;
  /** The same for all arms of a pair. Use it in every random key. */
  readonly seed: number;
  /** Whether the numbers of `quick` hold. */
  readonly quick: boolean;
  /** This arm's own folder; what is in it survives an interruption. */
  readonly folder: string;
  /** What all arms share, with what `prepare` gave and, where it is quick, with `quick.options`. */
  readonly options: TrainingOptions;
  /** A training run; `options` are laid over the shared ones. An interrupted one goes on. `name` tells several of one arm apart. */
  train(arm: TrainingArm, name?: string): Promise<TrainedRun>;
  /** The demonstration's metrics of a run, as an arm that is one has them. */
  numbers(trained: TrainedRun): Promise<Numbers>;
  /** Held-out answers of any model folder. */
  measure(model: string, heldout: Heldout): Promise<Answers>;
  /** The folder of a policy warm-started by the recipe. */
  warmStart(recipe: WarmStart): Promise<string>;
  /** An engine with a policy from a folder, for what none of these do. */
  open(model: string): Promise<{ readonly engine: Engine; readonly tokenizer: Tokenizer; close(): Promise<void> }>;
}

export interface Demonstration {
  /** Number, name and source, as the method's own `paper`: "P06 HISPO, arXiv 2609.15471". */
  readonly paper: string;
  /** Name of the method that it is about; of an audit without one, its folder. */
  readonly method: string;
  /** The small problem in words: task, policy, what it can and cannot do at the start, how many steps. */
  readonly testbed: string;
  /** Options of all training arms. */
  readonly shared?: TrainingOptions;
  /** Further shared options that must be made first: starters, teachers. Run once in all, or once a seed; paths in what it returns must be those that the bench gave. */
  readonly prepare?: { readonly per: "demonstration" | "seed"; run(bench: Bench): Promise<TrainingOptions> };
  /** By name; the first is the baseline of the printed differences. */
  readonly arms: { readonly [arm: string]: Arm };
  readonly metrics: { readonly [metric: string]: Metric };
  /** By name. All must be shown for the paper to be shown. */
  readonly claims: { readonly [claim: string]: Claim };
  /** The method with its key line neutralised, in the place of the arm `stands`: a demonstration that shows its claims for it shows nothing. */
  readonly sabotage?: {
    readonly about: string;
    readonly stands: string;
    readonly arm: Arm;
    /** Claims that must not all be shown for it; absent: all. */
    readonly unshown?: readonly string[];
  };
  /** Smaller numbers, so that all arms of `seeds` seeds (default 2) end within a minute on two busy cores. `heldout` is laid over every held-out metric. */
  readonly quick: { readonly options?: TrainingOptions; readonly heldout?: { readonly problems?: number; readonly samples?: number }; readonly seeds?: number };
  /** Paired seeds of a full run; default 5. */
  readonly seeds?: number;
  /** What a full run takes, in minutes, two arms at a time on two cores. */
  readonly minutes: number;
  /** Known differences from the paper's setting, a sentence each. */
  readonly differences?: readonly string[];
}

/** Seeds of a full run unless the demonstration says otherwise. */
export const defaultSeeds = 5;

/** A demonstration, checked by the compiler and, for the names in its claims, at once. Throws ConfigError. */
export function defineDemonstration(demonstration: Demonstration): Demonstration {
  checkDemonstration(demonstration);
  return demonstration;
}

/** Whether an arm is a function rather than one training run. */
export function isMeasured(arm: Arm): arm is MeasuredArm {
  return "run" in arm;
}

/** Throws ConfigError where a claim names what is not there, or an arm cannot yield a metric. */
export function checkDemonstration({ paper, arms, metrics, claims, sabotage }: Demonstration): void {
  const place = `demonstration of ${paper}`;
  const refuse = (cause: string, mend: string): never => {
    throw new ConfigError({ place, cause, mend });
  };
  const known = (kind: string, name: string, names: readonly string[], by: string): void => {
    if (!names.includes(name)) refuse(`${by} names the ${kind} "${name}"`, suggestion(name, names, `the ${kind}s are`));
  };
  const [armNames, metricNames, claimNames] = [Object.keys(arms), Object.keys(metrics), Object.keys(claims)];
  if (armNames.length === 0) refuse("it has no arm", "give at least one");
  if (claimNames.length === 0) refuse("it claims nothing", "state what must come out, before it runs");
  for (const [name, claim] of Object.entries(claims)) {
    if ("of" in claim) continue;
    known("metric", claim.metric, metricNames, `claim ${name}`);
    known("arm", claim.arm, armNames, `claim ${name}`);
    if (typeof claim.than === "string") known("arm", claim.than, armNames, `claim ${name}`);
    const trained = [claim.arm, claim.than].find((arm) => typeof arm === "string" && !isMeasured(arms[arm] as Arm));
    if (metrics[claim.metric]?.kind === "returned" && trained !== undefined)
      refuse(
        `claim ${name} compares ${claim.metric}, which the training run ${trained} does not return`,
        "give the metric another kind, or make the arm a function",
      );
  }
  if (sabotage) {
    known("arm", sabotage.stands, armNames, "the sabotage");
    for (const name of sabotage.unshown ?? []) known("claim", name, claimNames, "the sabotage");
  }
}
