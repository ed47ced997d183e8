/**
 * The report of a comparison. Arms (a method, or what a label gathers) are compared with the first one, pair by pair: runs of
 * the same seed are a pair, and so are answers to the same held-out problem. The interval over seeds is about methods; the
 * one over problems is about these policies, as they came out.
 */
import { ConfigError } from "../core/errors.js";
import { type PairedInterval, pairedInterval } from "../evaluate/paired.js";
import type { ComparedRun, Tokens } from "./run.js";

export interface Arm {
  readonly label: string;
  readonly runs: readonly ComparedRun[];
}

export interface Mean {
  readonly mean: number;
  /** 95 % over seeds; null: one seed has none. */
  readonly interval: PairedInterval | null;
}

export interface Difference {
  /** This arm less the first one, over the pairs. */
  readonly mean: number;
  /** Runs of both that share a seed; 0: the difference is one of unpaired means. */
  readonly pairs: number;
  /** 95 %; null: fewer than two pairs. */
  readonly seeds: PairedInterval | null;
  /** 95 %; null: scores of single problems are not there, or not of the same problems. */
  readonly problems: PairedInterval | null;
}

export interface Threshold {
  readonly value: number;
  /** Runs that reached it. */
  readonly reached: number;
  /** Median of the first steps measured at or above it; null: half of the runs or more never were. */
  readonly steps: number | null;
}

export interface CurvePoint {
  readonly step: number;
  readonly mean: number;
  /** Lowest and highest run. */
  readonly low: number;
  readonly high: number;
}

export interface ArmReport {
  readonly label: string;
  readonly runs: readonly Omit<ComparedRun, "points" | "problems">[];
  readonly final: Mean;
  /** Null of the first arm. */
  readonly difference: Difference | null;
  /** Mean of the metric over the steps (trapezoids); null: fewer than two points. */
  readonly area: Mean | null;
  readonly area_difference: Omit<Difference, "problems"> | null;
  readonly threshold: Threshold | null;
  /** Means over the runs. */
  readonly tokens: Tokens;
  readonly curve: readonly CurvePoint[];
}

export interface Report {
  readonly metric: string;
  readonly arms: readonly ArmReport[];
  /** What a reader must know to judge the numbers. */
  readonly notes: readonly string[];
}

export interface ReportOptions {
  readonly metric: string;
  readonly threshold?: number;
}

/** Compares two arms or more. Throws ConfigError where a label has two runs of one seed. */
export function reportOf(arms: readonly Arm[], { metric, threshold }: ReportOptions): Report {
  const [first] = arms;
  for (const arm of arms) refuseTwins(arm);
  const reports = arms.map((arm) => {
    const pairs = arm === first ? [] : pairsOf(first, arm);
    const area = meanOf(arm.runs.map(areaOf));
    return {
      label: arm.label,
      runs: arm.runs.map(({ points: _, problems: __, ...run }) => run),
      final: meanOf(arm.runs.map(({ final }) => final)) as Mean,
      difference: arm === first ? null : differenceOf(first, arm, pairs),
      area: area ?? null,
      area_difference: arm === first ? null : areaDifference(pairs),
      threshold: threshold === undefined ? null : thresholdOf(arm.runs, threshold),
      tokens: tokensOf(arm.runs),
      curve: curveOf(arm.runs),
    };
  });
  return { metric, arms: reports, notes: notesOf(arms) };
}

type Pair = readonly [ComparedRun, ComparedRun];

function refuseTwins({ label, runs }: Arm): void {
  const seeds = runs.flatMap(({ seed }) => (seed === undefined ? [] : [seed]));
  const twin = seeds.find((seed, i) => seeds.indexOf(seed) !== i);
  if (twin === undefined) return;
  const folders = runs.filter(({ seed }) => seed === twin).map(({ folder }) => folder);
  throw new ConfigError({
    place: `runs of ${label}`,
    cause: `${folders.length} of them have the seed ${twin} (${folders.join(", ")}), so it is open which is the other side's pair`,
    mend: "give them labels of their own, as in a=RUN,RUN b=RUN,RUN",
  });
}

/** Runs of the same seed; folders of samples, which have none, by their places. */
function pairsOf(first: Arm, arm: Arm): Pair[] {
  return arm.runs.flatMap((run, i): Pair[] => {
    const other = run.seed === undefined ? first.runs[i] : first.runs.find(({ seed }) => seed === run.seed);
    return other && (other.seed === undefined) === (run.seed === undefined) ? [[other, run]] : [];
  });
}

function meanOf(values: readonly (number | undefined)[]): Mean | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : { mean: mean(known), interval: pairedInterval(known) ?? null };
}

function differenceOf(first: Arm, arm: Arm, pairs: readonly Pair[]): Difference {
  if (pairs.length === 0) {
    const ends = ({ runs }: Arm): number => mean(runs.map(({ final }) => final));
    return { mean: ends(arm) - ends(first), pairs: 0, seeds: null, problems: null };
  }
  const differences = pairs.map(([a, b]) => b.final - a.final);
  return { mean: mean(differences), pairs: pairs.length, seeds: pairedInterval(differences) ?? null, problems: overProblems(pairs) };
}

/** Interval over problems of the difference of each, averaged over the pairs of runs; a problem without a score on any side is left out. */
function overProblems(pairs: readonly Pair[]): PairedInterval | null {
  const set = pairs[0][0].problems?.set;
  if (set === undefined || pairs.some((pair) => pair.some(({ problems }) => problems?.set !== set))) return null;
  const columns = pairs.map((pair) => pair.map(({ problems }) => problems?.scores ?? []));
  const differences = columns[0][0].flatMap((_, place) => {
    const each = columns.flatMap(([a, b]) => (a[place] === null || b[place] === null ? [] : [(b[place] as number) - (a[place] as number)]));
    return each.length === pairs.length ? [mean(each)] : [];
  });
  return pairedInterval(differences) ?? null;
}

function areaDifference(pairs: readonly Pair[]): ArmReport["area_difference"] {
  const differences = pairs.flatMap(([a, b]) => {
    const [before, after] = [areaOf(a), areaOf(b)];
    return before === undefined || after === undefined ? [] : [after - before];
  });
  if (differences.length === 0) return null;
  return { mean: mean(differences), pairs: differences.length, seeds: pairedInterval(differences) ?? null };
}

function areaOf({ points }: ComparedRun): number | undefined {
  const [from, to] = [points[0], points.at(-1)];
  if (from === undefined || to === undefined || to.step === from.step) return undefined;
  const area = points.slice(1).reduce((sum, { step, value }, i) => sum + ((step - points[i].step) * (value + points[i].value)) / 2, 0);
  return area / (to.step - from.step);
}

function thresholdOf(runs: readonly ComparedRun[], value: number): Threshold {
  const first = runs.map(({ points }) => points.find((point) => point.value >= value)?.step ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b);
  const middle = (first[Math.floor((first.length - 1) / 2)] + first[Math.ceil((first.length - 1) / 2)]) / 2;
  return { value, reached: first.filter(Number.isFinite).length, steps: Number.isFinite(middle) ? middle : null };
}

function tokensOf(runs: readonly ComparedRun[]): Tokens {
  const of = (name: keyof Tokens): number => mean(runs.map(({ tokens }) => tokens[name]));
  return { sampled: of("sampled"), trained: of("trained"), evaluation: of("evaluation") };
}

/** Steps at which every run was measured. */
function curveOf(runs: readonly ComparedRun[]): CurvePoint[] {
  const byStep = runs.map(({ points }) => new Map(points.map(({ step, value }) => [step, value])));
  return [...(byStep[0]?.keys() ?? [])].flatMap((step) => {
    const values = byStep.map((run) => run.get(step)).filter((value) => value !== undefined);
    if (values.length < runs.length) return [];
    return [{ step, mean: mean(values), low: Math.min(...values), high: Math.max(...values) }];
  });
}

function notesOf(arms: readonly Arm[]): string[] {
  const [first, ...others] = arms;
  const runs = arms.flatMap(({ runs }) => runs);
  const going = runs.filter(({ ended }) => ended === undefined);
  const early = runs.filter(({ ended }) => ended !== undefined && ended !== "done" && ended !== "samples");
  const notes = going.map(({ folder, steps }) => `${folder} has not ended: its last numbers are of step ${steps} or before`);
  notes.push(...early.map(({ folder, steps, ended }) => `${folder} stopped by itself after step ${steps} (${ended})`));
  if (going.length === 0 && early.length === 0 && new Set(runs.map(({ steps }) => steps)).size > 1) notes.push("the runs have different numbers of steps");
  for (const arm of others) {
    const pairs = pairsOf(first, arm);
    const names = `${first.label} and ${arm.label}`;
    if (pairs.length === 0) notes.push(`${names} have no seed in common: their difference is one of unpaired means, without an interval`);
    else if (pairs.length === 1)
      notes.push(`${names} have one seed in common, so there is no interval over seeds: another seed may turn the difference around`);
    const left = first.runs.length + arm.runs.length - 2 * pairs.length;
    if (pairs.length > 0 && left > 0)
      notes.push(
        left === 1 ? `one run of ${names} has no pair and counts in the mean alone` : `${left} runs of ${names} have no pair and count in the means alone`,
      );
    if (pairs.some(([a, b]) => a.data !== b.data)) notes.push(`${names} were trained on different problems`);
  }
  return notes;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
