/** The verifier of the task `chain`: lines of the agreed form, then `#` and the answer as the last line, and nothing else. */
import { accept, type Finding, type Verdict } from "../../core/verdict.js";
import { rejectFor, type Verifier, type VerifierInput } from "../../verify/contract.js";
import { apply, readChain, readLine } from "./notation.js";

/**
 * Accepts by the answer alone; the lines before it must have the form, not the right results. How many of them are right,
 * each measured from the result written before it, is the part `lines` (0 to 1); the evidence names the first wrong one.
 */
export function chainVerifier(modulus: number): Verifier {
  return {
    name: "chain",
    version: "1",
    options: { modulus },
    deterministic: true,
    checkReference: (reference) =>
      typeof reference === "string" && /^(?:0|[1-9]\d*)$/.test(reference) && Number(reference) < modulus
        ? undefined
        : `a whole number below ${modulus} as text is needed`,
    verify: (input) => verdictOf(input, modulus),
    extract: answerOf,
    same: (a, b) => a === b,
    locate: (response) => {
      const answer = answerOf(response);
      return answer === undefined ? undefined : { start: response.length - answer.length, end: response.length };
    },
  };
}

/** The answer of a response of the agreed form. */
function answerOf(response: string): string | undefined {
  const lines = response.split("\n");
  const answer = /^#(0|[1-9]\d{0,3})$/.exec(lines.pop() as string)?.[1];
  return lines.every((line) => readLine(line) !== undefined) ? answer : undefined;
}

function verdictOf({ reference, response, problem, truncated }: VerifierInput, modulus: number): Verdict {
  if (truncated) return rejectFor("truncated");
  const marks = response.split("#").length - 1;
  if (marks === 0) return rejectFor("no-answer");
  if (marks > 1) return rejectFor("ambiguous");
  const answer = answerOf(response);
  if (answer === undefined) return rejectFor("format");
  const finding = findingOf(response, answer, problem, modulus);
  return answer === reference ? accept(finding) : rejectFor("wrong", finding);
}

/** Part `lines`: the share of the asked operations whose line is the asked one, worked rightly from the result before it. */
function findingOf(response: string, answer: string, problem: VerifierInput["problem"], modulus: number): Finding {
  const chain = readChain(problem.prompt.at(-1)?.content ?? "") ?? { start: 0, operations: [] };
  const lines = response.split("\n").slice(0, -1).map(readLine);
  let before = chain.start;
  const right = Array.from({ length: Math.max(lines.length, chain.operations.length) }, (_, i) => {
    const line = lines[i];
    const asked = chain.operations[i];
    if (line === undefined || asked === undefined) return false;
    const good = line.operator === asked.operator && line.operand === asked.operand && line.result === apply(line.operator, before, line.operand, modulus);
    before = line.result;
    return good;
  });
  const wrong = right.indexOf(false);
  return {
    parts: { lines: right.length === 0 ? 1 : right.filter(Boolean).length / right.length },
    evidence: { read: answer, ...(wrong < 0 ? {} : { first_wrong_line: wrong + 1 }) },
  };
}
