/** What extraction finds: which rule, where, and what stands there. */
import type { AnswerRange } from "../contract.js";

/** Rules by which an answer is found. The first six are commitments; the last two are not, and only a policy reads them. */
export const extractRules = {
  whole: "the text is the answer, whole",
  declared: "the place that the option from declares",
  box: "a box",
  marker: "what follows #### or the like",
  tag: "what stands between <answer> and </answer>",
  phrase: "what a phrase such as “the final answer is” announces",
  conclusion: "the closing sentence, which begins with a word such as “therefore” or sets its result in bold",
  formula: "the last formula between delimiters",
  number: "the last number",
} as const;
export type ExtractRule = keyof typeof extractRules;

/** Why there is no answer to compare. */
export const extractFaults = {
  "no-answer": "nothing is committed",
  ambiguous: "a hedge, a retraction, or several answers",
  "unfinished-thinking": "the response ends within its thinking part",
  unclosed: "the box is not closed",
  format: "the declared tags are not opened and closed in turn",
} as const;
export type ExtractFault = keyof typeof extractFaults;

/** One place that could be the answer. Positions are characters of the response; `start` to `end` has what opens and closes it. */
export interface Candidate extends AnswerRange {
  readonly rule: ExtractRule;
  readonly text: string;
  /** Where the text itself begins. */
  readonly textStart: number;
}

/** An answer, or why there is none. */
export type Extraction =
  | {
      readonly kind: "found";
      readonly rule: ExtractRule;
      /** Where it stands, what closes it included. */
      readonly span: AnswerRange;
      /** What stands there, without markup; then the same without the clause that follows it, where there is one. */
      readonly texts: readonly [string, ...string[]];
      readonly candidates: readonly Candidate[];
      /** Nothing follows, so that a response that was cut off may have been cut within it. */
      readonly atEnd: boolean;
    }
  | { readonly kind: "none"; readonly fault: ExtractFault; readonly why: string; readonly candidates: readonly Candidate[] };
