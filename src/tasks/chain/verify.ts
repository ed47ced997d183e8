/** The verifier of the task `chain`: lines of the agreed form, then `#` and the answer as the last line, and nothing else. */
import type { Verdict } from "../../core/verdict.js";
import { rejectFor, type Verifier, type VerifierInput } from "../../verify/contract.js";
import { linesVerifier } from "../lines.js";
import { readAsked } from "./forms.js";
import { apply, type Operation, readLine, readPhrased } from "./notation.js";

export interface ChainVerifierOptions {
  /** Every line must be right. */
  readonly strict?: boolean | undefined;
  /** Lines may begin with a phrase. */
  readonly fillers?: boolean | undefined;
  /** References may be the choices `A` and `B`. */
  readonly choices?: boolean;
}

/**
 * Accepts by the answer alone; the lines before it must have the form, not the right results, unless it is strict. How many
 * of them are right, each measured from the result written before it, is the part `lines` (0 to 1); the evidence names the
 * first wrong one. A choice is accepted as one letter alone.
 */
export function chainVerifier(modulus: number, { strict = false, fillers = false, choices = false }: ChainVerifierOptions = {}): Verifier {
  const isNumber = (reference: unknown): boolean => typeof reference === "string" && /^(?:0|[1-9]\d*)$/.test(reference) && Number(reference) < modulus;
  const lines = linesVerifier<Operation & { readonly result: number }>({
    name: "chain",
    version: "1",
    // What is off is left out: the verifier of plain chains has the identity that it had before there were options.
    options: { modulus, ...(strict && { strict }), ...(fillers && { fillers }), ...(choices && { choices }) },
    strict,
    checkReference: (reference) =>
      isNumber(reference) || (choices && isChoice(reference)) ? undefined : `a whole number below ${modulus} as text${choices ? ", or A or B," : ""} is needed`,
    readLine: fillers ? readPhrased : readLine,
    right: (problem, written) => {
      const { start, operations } = readAsked(problem.prompt.at(-1)?.content ?? "")?.chain ?? { start: 0, operations: [] };
      let before = start;
      return Array.from({ length: Math.max(written.length, operations.length) }, (_, i) => {
        const line = written[i];
        const asked = operations[i];
        if (line === undefined || asked === undefined) return false;
        const good = line.operator === asked.operator && line.operand === asked.operand && line.result === apply(line.operator, before, line.operand, modulus);
        before = line.result;
        return good;
      });
    },
  });
  return choices ? { ...lines, verify: (input) => (isChoice(input.reference) ? verdictOfChoice(input.reference, input) : lines.verify(input)) } : lines;
}

const isChoice = (value: unknown): value is "A" | "B" => value === "A" || value === "B";

function verdictOfChoice(reference: "A" | "B", { response, truncated }: Pick<VerifierInput, "response" | "truncated">): Verdict {
  if (truncated) return rejectFor("truncated");
  if (response === "") return rejectFor("no-answer");
  if (!isChoice(response)) return rejectFor("format");
  const finding = { evidence: { read: response } };
  return response === reference ? { kind: "accept", ...finding } : rejectFor("wrong", finding);
}
