/** What keeps a verifier from judging, told when it first happens: answers without a score are left out silently otherwise. */
import type { Verdict } from "../core/verdict.js";
import type { JudgePool } from "./pool.js";

/** What is no fault: a reward that gives no score on purpose, and a pool that was told to end. */
const meant: readonly string[] = ["no-score", "no-reference", "pool-closed"];
/** Reasons that are told; a verifier may make up one for each answer. */
const mostTold = 5;
const longest = 500;

/** What the evidence of an unscored verdict says happened. */
export function causeOf({ evidence = {} }: Verdict): string | undefined {
  const { message, fault, deadlineMs } = evidence;
  if (message !== undefined || fault !== undefined) return String(message ?? fault).slice(0, longest);
  return deadlineMs === undefined ? undefined : `it did not end within ${String(deadlineMs)} ms and was stopped`;
}

/** The fault of a verdict in a sentence; undefined where there is none. */
export function faultText(verifier: string, verdict: Verdict): string | undefined {
  if (verdict.kind !== "unscored" || meant.includes(verdict.reason)) return undefined;
  const cause = causeOf(verdict);
  const at = verdict.evidence?.at;
  const place = at === undefined ? "" : `, ${String(at)}`;
  return `verifier ${verifier}${place}: ${verdict.reason}${cause === undefined ? "" : ` (${cause})`}; answers without a score are left out`;
}

/** The same pool; `tell` hears of the first answer that has no score for each reason. */
export function telling(pool: JudgePool, verifier: string, tell: (text: string) => void): JudgePool {
  const told = new Set<string>();
  return {
    async judge(problem, response, truncated) {
      const verdict = await pool.judge(problem, response, truncated);
      const text = faultText(verifier, verdict);
      if (text !== undefined && "reason" in verdict && told.size < mostTold && !told.has(verdict.reason)) {
        told.add(verdict.reason);
        tell(text);
      }
      return verdict;
    },
    get starved() {
      return pool.starved;
    },
    close: () => pool.close(),
  };
}
