/** The verifier of work in lines: lines of an agreed form, then `#` and the answer as the last line, and nothing else. */
import type { Json } from "../core/json.js";
import { accept, type Finding, type Verdict } from "../core/verdict.js";
import { rejectFor, type Verifier, type VerifierInput } from "../verify/contract.js";

/** What is a task's own in such work. */
export interface Work<L> {
  readonly name: string;
  readonly version: string;
  readonly options: { readonly [name: string]: Json };
  readonly checkReference: Verifier["checkReference"];
  /** One line of work; undefined where it does not have the form. */
  readonly readLine: (text: string) => L | undefined;
  /** Whether each asked or written line is the asked one, worked rightly from what was written before it. */
  readonly right: (problem: VerifierInput["problem"], lines: readonly (L | undefined)[]) => readonly boolean[];
  /** Every line must be right, and not the answer alone. */
  readonly strict?: boolean;
}

/** Whole numbers as they are written, without leading zeros. */
const answerLine = /^#(0|[1-9]\d{0,8})$/;

/**
 * Accepts by the answer alone, or where it is strict by the lines too; lines must have the form. How many of them are right
 * is the part `lines` (0 to 1); the evidence names the first wrong one.
 */
export function linesVerifier<L>(work: Work<L>): Verifier {
  const { name, version, options, checkReference } = work;
  /** The answer of a response of the agreed form. */
  const answerOf = (response: string): string | undefined => {
    const lines = response.split("\n");
    const answer = answerLine.exec(lines.pop() as string)?.[1];
    return lines.every((line) => work.readLine(line) !== undefined) ? answer : undefined;
  };
  return {
    name,
    version,
    options,
    deterministic: true,
    checkReference,
    verify: ({ reference, response, problem, truncated }): Verdict => {
      if (truncated) return rejectFor("truncated");
      const marks = response.split("#").length - 1;
      if (marks === 0) return rejectFor("no-answer");
      if (marks > 1) return rejectFor("ambiguous");
      const answer = answerOf(response);
      if (answer === undefined) return rejectFor("format");
      const right = work.right(problem, response.split("\n").slice(0, -1).map(work.readLine));
      const finding = findingOf(right, answer);
      return answer === reference && !(work.strict && right.includes(false)) ? accept(finding) : rejectFor("wrong", finding);
    },
    extract: answerOf,
    same: (a, b) => a === b,
    locate: (response) => {
      const answer = answerOf(response);
      return answer === undefined ? undefined : { start: response.length - answer.length, end: response.length };
    },
  };
}

function findingOf(right: readonly boolean[], answer: string): Finding {
  const wrong = right.indexOf(false);
  return {
    parts: { lines: right.length === 0 ? 1 : right.filter(Boolean).length / right.length },
    evidence: { read: answer, ...(wrong < 0 ? {} : { first_wrong_line: wrong + 1 }) },
  };
}
