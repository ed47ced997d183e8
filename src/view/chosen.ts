/** What a comparison shows unasked, for the page and for a page in one file, which must hold it. */
import type { Comparison, Home } from "./shapes.js";

/** Runs that are compared where none is named. */
const mostUnasked = 40;

export interface Comparable {
  readonly id: string;
  readonly name: string;
}

/** Runs and samples that a comparison can be of. */
export function comparable({ runs, samples }: Home): Comparable[] {
  return [...runs.filter(({ standing }) => standing !== "fault" && standing !== "waiting"), ...samples];
}

/** Of runs of several problem sets those of the set that most are of, since numbers of different problems say nothing about methods; samples may be of any. */
export function unasked(home: Home): string[] {
  const all = comparable(home);
  const setOf = ({ id }: Comparable): string | undefined => home.runs.find((run) => run.id === id)?.problems;
  const tally = new Map<string, number>();
  for (const each of all) tally.set(setOf(each) ?? "", (tally.get(setOf(each) ?? "") ?? 0) + (setOf(each) === undefined ? 0 : 1));
  const [[set, count] = ["", 0]] = [...tally].sort(([, a], [, b]) => b - a);
  return all
    .filter((each) => count < 2 || [undefined, set].includes(setOf(each)))
    .slice(0, mostUnasked)
    .map(({ id }) => id);
}

/** The held-out score where there is one. */
export const metricUnasked = ({ runs, samples }: Home): string => (samples.length > 0 || runs.some(({ score }) => score !== null) ? "eval.score" : "reward");

/** The runs with those of a side first: what comes first is what the others are compared with. */
export function withFirst(side: Comparison["arms"][number] | undefined, chosen: readonly string[]): string[] {
  const first = side?.runs ?? [];
  return [...first, ...chosen.filter((id) => !first.includes(id))];
}

/** By what a page in one file finds a comparison. */
export const askedOf = (runs: readonly string[], metric: string): string => `${runs.join(",")}|${metric}`;
