/** What `touchstone show` tells of a run beyond its numbers: whether it learns, and the groups that went worst. */
import { TouchstoneError } from "../core/errors.js";
import type { RunReader } from "../train/store/reader.js";
import { Rollouts } from "../view/rollouts.js";
import type { GroupRow, Insight } from "../view/shapes.js";
import { WatchedRun } from "../view/watched.js";
import { table } from "./output.js";

/** What the view says of the run in words. */
export async function insightOf(folder: string): Promise<Insight> {
  const run = new WatchedRun("run", folder, folder);
  await run.refresh();
  return run.overview().insight;
}

const marks = { good: "+", note: "·", bad: "!" };

/** The headline, then what is bad first. */
export function insightLines({ headline, remarks }: Insight, bold: (text: string) => string): string[] {
  const order = { bad: 0, note: 1, good: 2 };
  const sorted = [...remarks].sort((a, b) => order[a.level] - order[b.level]);
  return [bold(headline), ...sorted.map(({ level, text }) => `  ${marks[level]} ${text}`)];
}

export interface WorstGroup {
  readonly step: number;
  readonly group: number;
  readonly problem: string;
  readonly text: string;
  /** Mean reward of the scored answers; null: none has a score. */
  readonly mean: number | null;
  readonly answers: number;
  /** Answers by verdict and reason. */
  readonly verdicts: { readonly [verdict: string]: number };
}

/** Groups that are looked at, from the end of the run, and those that are told. */
const lookedAt = 100;
const told = 5;

/** The groups of the last steps with the lowest mean reward; first those where nothing could be judged. Undefined: rollouts are damaged, and `why` says how. */
export async function worstGroups(reader: RunReader, to: number): Promise<{ readonly groups: readonly WorstGroup[]; readonly why?: string }> {
  try {
    const shelf = new Rollouts(reader);
    const { rows, groups } = shelf.index();
    const later = rows.filter(({ step }) => step > to).reduce((sum, row) => sum + row.groups, 0);
    const end = groups - later;
    const first = Math.max(0, end - lookedAt);
    const { rows: found, damage } = await shelf.window({ group: first }, end - first);
    const worst = found
      .filter(({ members }) => members.length > 0)
      .map(groupOf)
      .sort((a, b) => (a.mean ?? -1e9) - (b.mean ?? -1e9) || b.step - a.step || a.group - b.group)
      .slice(0, told);
    return { groups: worst, ...(damage !== undefined && { why: damage }) };
  } catch (error) {
    if (!(error instanceof TouchstoneError)) throw error;
    return { groups: [], why: error.message };
  }
}

function groupOf({ step, index, problem, text, members }: GroupRow): WorstGroup {
  const rewards = members.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  const verdicts: { [verdict: string]: number } = {};
  for (const { kind, reason } of members) {
    const name = reason === undefined ? kind : `${kind} (${reason})`;
    verdicts[name] = (verdicts[name] ?? 0) + 1;
  }
  const mean = rewards.length === 0 ? null : rewards.reduce((a, b) => a + b, 0) / rewards.length;
  return { step, group: index, problem, text, mean, answers: members.length, verdicts };
}

/** Characters of a problem that a line has room for. */
const room = 48;

export function worstLines({ groups, why }: Awaited<ReturnType<typeof worstGroups>>, bold: (text: string) => string): string[] {
  if (groups.length === 0) return why === undefined ? [] : ["", `rollouts cannot be read: ${why}`];
  const rows = groups.map(({ step, group, mean, verdicts, text }) => [
    `${step}·${group}`,
    mean === null ? "–" : Number(mean.toPrecision(3)).toString(),
    Object.entries(verdicts)
      .map(([name, count]) => `${count} ${name}`)
      .join(", "),
    plain(text),
  ]);
  return ["", bold("worst groups of the last steps"), ...table([["group", "reward", "answers", "problem"], ...rows], [1])];
}

/** A problem in one line of a terminal, which must not take it for commands. */
function plain(text: string): string {
  const line = text.replace(/\s+/g, " ").replace(/[\p{Cc}\p{Cf}]/gu, "?");
  return line.length > room ? `${line.slice(0, room - 1)}…` : line;
}
