/** The verifier of the task `pair`: two numbers with one blank between them, in any order, and nothing else. */
import { accept } from "../../core/verdict.js";
import { rejectFor, type Verifier } from "../../verify/contract.js";

const number = "(?:0|[1-9]\\d{0,2})";
const form = new RegExp(`^(${number}) (${number})$`);

/** The two numbers, the smaller first: answers of one class are written alike. */
function answerOf(response: string, modulus: number): string | undefined {
  const numbers = form.exec(response)?.slice(1).map(Number);
  if (numbers === undefined || numbers.some((each) => each >= modulus)) return undefined;
  return numbers.sort((a, b) => a - b).join(" ");
}

/** Accepts what is among the reference's answers, in either order. `extract` gives the class of an answer, right or wrong. */
export function pairVerifier(modulus: number): Verifier {
  const isAnswer = (value: unknown): boolean => {
    if (typeof value !== "string" || answerOf(value, modulus) !== value) return false;
    const [a, b] = value.split(" ");
    return a !== b;
  };
  return {
    name: "pair",
    version: "1",
    options: { modulus },
    deterministic: true,
    checkReference: (reference) =>
      Array.isArray(reference) && reference.length > 0 && reference.every(isAnswer)
        ? undefined
        : `a list of answers is needed, each two different numbers below ${modulus}, the smaller first`,
    verify: ({ reference, response, truncated }) => {
      if (truncated) return rejectFor("truncated");
      if (response === "") return rejectFor("no-answer");
      const answer = answerOf(response, modulus);
      if (answer === undefined) return rejectFor("format");
      const finding = { evidence: { read: answer } };
      return (reference as readonly string[]).includes(answer) ? accept(finding) : rejectFor("wrong", finding);
    },
    extract: (response) => answerOf(response, modulus),
    same: (a, b) => a === b,
    locate: (response) => (answerOf(response, modulus) === undefined ? undefined : { start: 0, end: response.length }),
  };
}
