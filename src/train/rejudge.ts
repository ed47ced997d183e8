/**
 * Whether a run's answers would be judged today as they were: the files of a program do not tell it all (packages that it
 * imports, closures of a calling program), and two rewards in one run would be told by nothing.
 */
import { RunError } from "../core/errors.js";
import { rewardOf, type Verdict } from "../core/verdict.js";
import type { Verifier } from "../verify/contract.js";
import type { JudgePool } from "../verify/pool.js";
import { RunReader } from "./store/reader.js";
import type { StoredGroup } from "./store/record.js";

/** Answers that are judged again at most. */
const tried = 64;

export interface Rejudged {
  readonly judges: JudgePool;
  readonly verifier: Verifier;
}

/** Throws RunError where answers of the last step up to a checkpoint get other verdicts now. Of conversations, of verifiers that promise no repetition, and of rollouts that are gone it says nothing. */
export async function refuseOtherVerdicts(folder: string, step: number, { judges, verifier }: Rejudged): Promise<void> {
  if (verifier.deterministic !== true) return;
  const rollouts = (await lastGroups(folder, step)).flatMap(({ group }) => group.trajectories.map((trajectory) => ({ problem: group.problem, trajectory })));
  const asked = rollouts.filter(({ trajectory }) => trajectory.turns === undefined && trajectory.verdict.kind !== "unscored").slice(0, tried);
  const verdicts = await Promise.all(asked.map(({ problem, trajectory }) => judges.judge(problem, trajectory.text, trajectory.stop === "length")));
  const others = asked.flatMap(({ problem, trajectory }, i) => {
    const [was, is] = [trajectory.verdict, verdicts[i] as Verdict];
    // What a deadline decides depends on the load.
    const alike = is.kind === was.kind && rewardOf(is) === rewardOf(was);
    return alike || (is.kind === "unscored" && is.reason === "starved") ? [] : [{ key: problem.key, text: trajectory.text, was, is }];
  });
  const [first] = others;
  if (first === undefined) return;
  const text = JSON.stringify(first.text.length > 60 ? `${first.text.slice(0, 60)}…` : first.text);
  throw new RunError({
    place: folder,
    cause: `${others.length} of ${asked.length} earlier answers would be judged otherwise now (the first: ${text} to problem ${first.key} was ${said(first.was)} and is ${said(first.is)})`,
    mend: `put the task or verifier back as it was, or go on in a new run: touchstone train --model ${folder}@${step}`,
    data: { answers: asked.length, others: others.length },
  });
}

/** The groups of the last step up to another that has any; none where they cannot be read, which a resume tells by itself. */
async function lastGroups(folder: string, step: number): Promise<readonly StoredGroup[]> {
  try {
    const reader = RunReader.open(folder);
    const row = reader.rolloutIndex().findLast((each) => each.step <= step);
    return row === undefined ? [] : await reader.groups(row.step);
  } catch {
    return [];
  }
}

function said(verdict: Verdict): string {
  const reward = rewardOf(verdict);
  return `${verdict.kind}${"reason" in verdict ? ` (${verdict.reason})` : ""}${reward === undefined ? "" : `, reward ${reward}`}`;
}
