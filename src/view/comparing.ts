/** Runs beside each other for the page: the report of `touchstone compare`, and the held-out problems one by one. */

import { type Arm, reportOf } from "../compare/report.js";
import { type ComparedRun, readRun } from "../compare/run.js";
import { ArgumentError, TouchstoneError } from "../core/errors.js";
import { readStore } from "../evaluate/store.js";
import type { Found } from "./find.js";
import type { ComparedProblem, Comparison } from "./shapes.js";
import type { WatchedRun } from "./watched.js";

export interface Compared {
  readonly found: Found;
  readonly watched?: WatchedRun;
}

/** `seed-3` of `grpo/seed-3`. */
const seedFolder = /^(.*)\/seed-\d+$/;

/** What gathers runs of several seeds: the folders that they lie in, else the method; beside such folders a run has its own name. */
function labelsOf(compared: readonly Compared[]): string[] {
  const folders = compared.map(({ found }) => seedFolder.exec(found.name)?.[1]);
  const some = folders.some((folder) => folder !== undefined);
  return compared.map(({ found, watched }, i) => folders[i] ?? ((some ? undefined : watched?.card().method) || found.name));
}

/** Paths without the folders that all of them lie in. */
function withoutCommon(labels: readonly string[]): readonly string[] {
  const heads = new Set(labels.map((label) => (label.includes("/") ? label.slice(0, label.indexOf("/")) : "")));
  return heads.size === 1 && !heads.has("") ? withoutCommon(labels.map((label) => label.slice(label.indexOf("/") + 1))) : labels;
}

/** Runs into arms: those of one label are one arm if their seeds differ. */
function armsOf(compared: readonly Compared[]): { label: string; members: Compared[] }[] {
  const byLabel = new Map<string, Compared[]>();
  const labels = withoutCommon(labelsOf(compared));
  compared.forEach((each, i) => {
    byLabel.set(labels[i], [...(byLabel.get(labels[i]) ?? []), each]);
  });
  return [...byLabel].flatMap(([label, members]) => {
    const seeds = members.map(({ watched }) => watched?.card().seed);
    const twins = new Set(seeds).size < seeds.length;
    return twins ? members.map((each) => ({ label: each.found.name, members: [each] })) : [{ label, members }];
  });
}

/** Compares runs by a metric. Throws ArgumentError where fewer than two sides have it. */
export async function compare(compared: readonly Compared[], metric: string): Promise<Comparison> {
  const missing: string[] = [];
  const arms: { label: string; members: Compared[]; runs: ComparedRun[] }[] = [];
  for (const { label, members } of armsOf(compared)) {
    const [kept, runs]: [Compared[], ComparedRun[]] = [[], []];
    for (const member of members) {
      try {
        runs.push(await readRun(member.found.folder, metric));
        kept.push(member);
      } catch (error) {
        if (!(error instanceof TouchstoneError)) throw error;
        missing.push(error.message);
      }
    }
    if (runs.length > 0) arms.push({ label, members: kept, runs });
  }
  if (arms.length === 0) throw new ArgumentError({ place: "comparison", cause: missing[0] ?? "no run was named", mend: "choose runs that have this metric" });
  const report = reportOf(
    arms.map(({ label, runs }): Arm => ({ label, runs })),
    { metric },
  );
  const { problems, why } = await problemsOf(arms);
  if (why !== undefined) missing.push(why);
  return {
    report,
    arms: arms.map(({ label, members }) => ({ label, runs: members.map(({ found }) => found.id) })),
    problems,
    missing,
  };
}

interface Side {
  readonly members: readonly Compared[];
  readonly runs: readonly ComparedRun[];
}

/** Problem by problem, of the sides that were measured on the same ones as most; in words, why there is none, or that some are left out. */
async function problemsOf(arms: readonly Side[]): Promise<{ readonly problems: readonly ComparedProblem[]; readonly why?: string }> {
  const setOf = ({ runs }: Side): string | undefined => {
    const sets = new Set(runs.map(({ problems }) => problems?.set));
    return sets.size === 1 ? [...sets][0] : undefined;
  };
  const sets = arms.map(setOf);
  const tally = new Map<string, number>();
  for (const set of sets) if (set !== undefined) tally.set(set, (tally.get(set) ?? 0) + 1);
  const [common] = [...tally].sort(([, a], [, b]) => b - a);
  if (common === undefined) return { problems: [], why: "problems cannot be compared one by one: no side has their scores (they are of evaluations alone)" };
  const [set, count] = common;
  if (count < 2) return { problems: [], why: "problems cannot be compared one by one: the sides were measured on different ones" };
  const alike = arms.filter((_, i) => sets[i] === set);
  const names = await namesOf(alike.flatMap(({ members }) => members));
  const problems = (alike[0].runs[0].problems?.scores ?? []).map((_, place) => ({
    key: names[place]?.key ?? `problem ${place + 1}`,
    text: names[place]?.text ?? "",
    scores: arms.map((arm) => {
      const scores = alike.includes(arm) ? arm.runs.flatMap(({ problems: of }) => of?.scores[place] ?? []) : [];
      return scores.length === 0 ? null : scores.reduce((a, b) => a + b, 0) / scores.length;
    }),
  }));
  return { problems, ...(count < arms.length && { why: "single problems are of the sides that were measured on the same ones" }) };
}

/** What the problems are: of the first run or folder of samples that kept it. */
async function namesOf(members: readonly Compared[]): Promise<readonly { readonly key: string; readonly text: string }[]> {
  for (const { found, watched } of members) {
    if (watched && watched.heldout.length > 0) return watched.heldout;
    if (found.kind === "samples") {
      const { problems } = await readStore(found.folder);
      return problems.map(({ key, prompt }) => ({ key, text: prompt.at(-1)?.content.slice(0, 160) ?? "" }));
    }
  }
  return [];
}
