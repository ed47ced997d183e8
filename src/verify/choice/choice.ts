/**
 * The verifier `choice`: the option of a multiple-choice problem that a response commits itself to.
 *
 * Reads a letter from A to J in the place of the answer (`B`, `(B)`, `B.`, `Option B`, `\text{(B)}`, `B) its text`), or the
 * full text of one option, as listed in the reference or the prompt. A letter anywhere else counts for nothing, and so does
 * one that begins a sentence ("A simple sum"). A letter with the text of another option is ambiguous.
 */
import { z } from "zod";
import type { Json } from "../../core/json.js";
import { parseOptions } from "../../core/options.js";
import { accept, type Verdict } from "../../core/verdict.js";
import { rejectFor, type Verifier } from "../contract.js";
import { placeSchema, thinkingSchema } from "../extract.js";
import { extractAnswer, reasonOf } from "../math/extract.js";
import { unwrapped } from "../math/extract-text.js";
import { letters, optionsInPrompt, readReference } from "./options.js";

export const choiceOptions = z.strictObject({
  from: placeSchema.optional().describe("Where the answer stands; absent: wherever it is committed (docs/verifiers.md)."),
  thinking: thinkingSchema.default("tags").describe("How thinking parts are known; no answer is read in them."),
  texts: z.boolean().default(true).describe("Whether the full text of an option is as good as its letter."),
  truncated: z.enum(["reject", "read"]).default("reject").describe("Whether a response that was cut off by its budget can be right."),
});
export type ChoiceOptions = z.output<typeof choiceOptions>;

const longestEvidence = 200;

/** The verifier `choice`, with its options. */
export function choice(options: z.input<typeof choiceOptions> = {}): Verifier {
  const resolved = parseOptions(choiceOptions, options, "choice()");
  return {
    name: "choice",
    version: "1",
    options: resolved as { readonly [name: string]: Json },
    deterministic: true,
    checkReference: (reference) => {
      const read = readReference(reference);
      return typeof read === "string" ? read : undefined;
    },
    verify({ reference, response, problem, truncated }): Verdict {
      const expected = readReference(reference);
      if (typeof expected === "string") throw new TypeError(`the reference was not checked: ${expected}`);
      if (truncated && resolved.truncated === "reject") return rejectFor("truncated");
      const found = commit(response, resolved);
      if (found.kind === "none") return rejectFor(reasonOf(found.fault), { evidence: { expected: expected.right, why: found.why } });
      const [text] = found.texts;
      const evidence = { expected: expected.right, text: text.slice(0, longestEvidence), rule: found.rule };
      if (truncated && found.atEnd) return rejectFor("truncated", { evidence });
      const read = lettersIn(text, resolved.texts ? (expected.texts ?? optionsInPrompt(problem.prompt)) : []);
      if (read === "unreadable" || read === "ambiguous") return rejectFor(read, { evidence });
      return read === expected.right ? accept({ evidence: { ...evidence, read } }) : rejectFor("wrong", { evidence: { ...evidence, read } });
    },
    extract(response) {
      const found = commit(response, resolved);
      if (found.kind === "none") return undefined;
      const read = lettersIn(found.texts[0], []);
      return read === "ambiguous" ? undefined : read === "unreadable" ? plain(found.texts[0]) || undefined : read;
    },
    same: (a, b) => a === b,
    locate(response) {
      const found = commit(response, resolved);
      return found.kind === "found" ? found.span : undefined;
    },
  };
}

const commit = (response: string, { from, thinking }: ChoiceOptions) =>
  extractAnswer(response, { kind: "response", thinking, ...(from !== undefined && { from }), committed: true, unfinished: false, unclosed: false });

const wrapper = /^\\(?:text|textbf|textit|mathrm|mathbf|textrm|mbox|bf)\s{0,2}\{([^{}]*)\}$/;
const single = /^(?:(?:the\s+)?(?:option|choice|answer|letter)\s+)?[([{]?([A-J])[)\]}]?(?:\s*(?:[.:,–—-]|(?<=\)|\]))\s*(\S[\s\S]*))?$/i;

/** The letters of an answer in order, where it is nothing else; with the texts of the options also their full texts. */
export function lettersIn(answer: string, texts: readonly string[]): string {
  let text = unwrapped(answer.replace(/^\$+|\$+$|\\[()]/g, ""));
  for (let inner = wrapper.exec(text); inner !== null; inner = wrapper.exec(text)) text = (inner[1] as string).trim();
  text = text.replace(/\\(?:text|textbf|mathrm|mathbf)\s{0,2}\{([^{}]*)\}/g, "$1").trim();
  const byText = texts.flatMap((option, i) => (plain(option) !== "" && plain(option) === plain(text) ? [letters[i] as string] : []));
  if (byText.length === 1) return byText[0] as string;
  const listed = text.split(/\s*(?:,|;|&|\band\b)\s*/i).map((part) => /^[([]?([A-J])[)\].]?$/.exec(part.trim())?.[1]);
  if (listed.length > 1 && listed.every((letter) => letter !== undefined)) return [...new Set(listed)].sort().join("");
  if (listed.length > 1 && /^[A-J]\s*(?:\bor\b|\/)/.test(text)) return "ambiguous";
  const match = single.exec(text);
  // A small letter is one only by itself or in brackets.
  if (match === null || (match[2] !== undefined && !/[A-J]/.test(match[1] as string)))
    return /^[([]?[A-J][)\]]?\s+or\s/.test(text) ? "ambiguous" : "unreadable";
  const letter = (match[1] as string).toUpperCase();
  const said = plain(match[2] ?? "");
  const other = texts.findIndex((option, i) => letters[i] !== letter && plain(option) === said);
  return said !== "" && other >= 0 ? "ambiguous" : letter;
}

/** A text as options are compared: case, blanks, delimiters and the sentence's punctuation aside. */
const plain = (text: string): string =>
  unwrapped(text)
    .normalize("NFKC")
    .toLowerCase()
    .replace(/\\[,!;: ]|[\s$]|\\(?:left|right|displaystyle)\b/g, "")
    .replace(/\\[dt]frac/g, "\\frac");
