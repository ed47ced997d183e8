/**
 * The verifier `number`: the last number that a response commits itself to, compared exactly as a fraction of whole numbers.
 *
 * Reads 18, 1,234, 1.50, .5, −3, 3/4, 2 1/2, 1e3, $18, 20 %, 5 million, 18 apples; in LaTeX \frac{3}{4}, \$18, 1{,}234.
 * An answer that is corrected in words ("wait, it is") gives way to the later one. Several different numbers, a hedge or a
 * retraction in the place of the answer are `ambiguous`. Units are not compared. A number
 * that is part of something else (2x, 12:00, 204_5, 9*9, x > 5) is `unreadable`, never read in part.
 */
import { z } from "zod";
import type { Json } from "../../core/json.js";
import { parseOptions } from "../../core/options.js";
import { accept, type Finding, partial, type Verdict } from "../../core/verdict.js";
import { type AnswerRange, type RejectReason, rejectFor, type Verifier } from "../contract.js";
import { afterThinking, commitments, isCorrected, isRetracted, lastPlace, type Place, placeSchema, thinkingSchema } from "../extract.js";
import { type HybridOptions, hybridOptions, hybridReward } from "./hybrid.js";
import { add, divide, negate, type Rational, rationalFromText, rationalText, readDecimal, within } from "./rational.js";
import { lastNumbers, type NumberAt, numbersIn, plainText, type Signs } from "./read.js";

export const numberOptions = z.strictObject({
  from: z
    .union([z.literal("last-number"), placeSchema])
    .default("last-number")
    .describe("Where the answer stands: the last number of the response, or a place that may hold but one number."),
  thinking: thinkingSchema.default("tags").describe("How thinking parts are known; no answer is read in them."),
  percent: z.enum(["ignore", "fraction", "refuse"]).default("ignore").describe("20 % is 20, 1/5, or unreadable; on both sides alike."),
  currency: z.enum(["ignore", "refuse"]).default("ignore").describe("$18 is 18, or unreadable; on both sides alike."),
  tolerance: z
    .string()
    .regex(/^\d+(?:\.\d+)?$/, "a decimal number such as 0.01")
    .default("0")
    .describe("Largest absolute difference that still counts as equal, as decimal text; 0 compares exactly."),
  hybrid: hybridOptions.optional().describe("Pays near answers in part: soft precision behind a hard gate; `tolerance` then has no say."),
  truncated: z.enum(["reject", "read"]).default("reject").describe("Whether a response that was cut off by its budget can be right."),
  reference_after: z.string().min(1).optional().describe("The reference is a text with the answer behind the last such marker (#### in GSM8K)."),
});
export type NumberOptions = z.output<typeof numberOptions>;

const longestEvidence = 200;
/** Numbers looked at in the place of an answer, and behind it: more of them are no answer. */
const mostInPlace = 64;
const mostBehind = 1000;

/** The verifier `number`, with its options. */
export function number(options: z.input<typeof numberOptions> = {}): Verifier {
  const resolved = parseOptions(numberOptions, options, "number()");
  const tolerance = readDecimal(resolved.tolerance) as Rational;
  return {
    name: "number",
    version: "2",
    options: resolved as { readonly [name: string]: Json },
    deterministic: true,
    checkReference: (reference) => {
      const value = readReference(reference, resolved);
      return typeof value === "string" ? value : undefined;
    },
    verify({ reference, response, truncated }): Verdict {
      const expected = readReference(reference, resolved);
      if (typeof expected === "string") throw new TypeError(`the reference was not checked: ${expected}`);
      if (truncated && resolved.truncated === "reject") return rejectFor("truncated");
      const found = commit(response, resolved);
      const evidence = { expected: rationalText(expected), ...(found.text === undefined ? {} : { text: found.text.slice(0, longestEvidence) }) };
      if (typeof found.value === "string") return rejectFor(found.value, { evidence });
      if (truncated && found.atEnd) return rejectFor("truncated", { evidence });
      const finding = { evidence: { ...evidence, read: rationalText(found.value) } };
      if (resolved.hybrid !== undefined) return graded(found.value, expected, resolved.hybrid, finding);
      return within(found.value, expected, tolerance) ? accept(finding) : rejectFor("wrong", finding);
    },
    extract(response) {
      const { value } = commit(response, resolved);
      return typeof value === "string" ? undefined : rationalText(value);
    },
    same: (a, b) => within(rationalFromText(a), rationalFromText(b), tolerance),
    ...(resolved.from === "whole" ? {} : { locate: (response: string) => locate(response, resolved) }),
  };
}

/** The verdict of an answer that may be near. Exact answers are told exactly; the part that a near one earns is a double. */
function graded(value: Rational, expected: Rational, options: HybridOptions, finding: Finding): Verdict {
  if (sameValue(value, expected)) return accept({ ...finding, parts: { error: 0 } });
  const error = expected.n === 0n ? Number.POSITIVE_INFINITY : Math.abs(ratio(add(value, negate(expected)), expected)) / options.relative;
  const score = hybridReward(error, options);
  const more = { ...finding, ...(Number.isFinite(error) && { parts: { error } }) };
  return score <= 0 ? rejectFor("wrong", more) : score >= 1 ? accept(more) : partial(score, more);
}

/** a / b as a double, without an overflow on the way where the quotient has none. */
function ratio(a: Rational, b: Rational): number {
  const { n, d } = divide(a, b);
  const scaled = (n * 10n ** 18n) / d;
  return Number(scaled) / 1e18;
}

/** What a response committed itself to; `atEnd`: the number's digits end where the response does. */
interface Committed {
  readonly value: Rational | RejectReason;
  readonly text?: string;
  readonly atEnd?: boolean;
}

function locate(response: string, options: NumberOptions): AnswerRange | undefined {
  const { from, thinking } = options;
  if (from !== "last-number") return lastPlace(response, thinking, from);
  const answer = afterThinking(response, thinking);
  if (answer === undefined) return undefined;
  const offset = response.length - answer.length;
  if (plainText(answer) === answer) {
    const { last } = lastNumbers(answer, options);
    return last && { start: offset + last.start, end: offset + last.end };
  }
  // Spellings were made one, which moves positions: the last word with a digit then counts as a whole.
  const word = [...answer.matchAll(/\S*\d\S*/g)].at(-1);
  return word && { start: offset + word.index, end: offset + word.index + word[0].length };
}

function commit(response: string, options: NumberOptions): Committed {
  const answer = afterThinking(response, options.thinking);
  if (answer === undefined) return { value: "unfinished-thinking" };
  const text = plainText(answer);
  return options.from === "last-number" ? commitLast(text, options) : commitPlace(text, options.from, options);
}

/** A denial at most two words before the number. */
const negation = /(?:\bnot|\bnever|n['’]t)\b[^\p{L}\d]{1,3}(?:\p{L}+[^\p{L}\d]{1,3}){0,2}$/iu;
const alternative = /\b(?:or|either|neither|maybe|perhaps|possibly|alternatively|versus|vs)\b/i;
const hedge = /\b(?:or|either|neither|not|never|maybe|perhaps|possibly|between|except|versus|vs)\b|n['’]t\b/i;

function commitLast(text: string, signs: Signs): Committed {
  const { last, before } = lastNumbers(text, signs);
  if (last === undefined) return { value: "no-answer" };
  const found: Committed = { value: last.value, text: text.slice(last.start, last.end), atEnd: last.end === text.length };
  if (typeof last.value === "string") return found;
  if (/(?![0-9])\p{Nd}/u.test(text.slice(last.end))) return { ...found, value: "unreadable" };
  const since = Math.max(before?.end ?? 0, last.start - 80);
  const lead = text
    .slice(since, last.start)
    .split(/[.!?]\s|\n/)
    .at(-1) as string;
  if (negation.test(lead) || isRetracted(text.slice(last.end), () => false)) return { ...found, value: "ambiguous" };
  if (before !== undefined && before.end >= since && !equal(before, last) && isListed(text.slice(before.end, last.start)))
    return { ...found, value: "ambiguous" };
  return found;
}

/** Whether two neighbouring numbers stand as a list or as alternatives. */
function isListed(between: string): boolean {
  if (/^[\s,;&|/$€£*]*(?:and|or|to)?[\s,;&|/$€£*]*$/i.test(between)) return true;
  return !/[.!?]\s/.test(between) && alternative.test(between);
}

function commitPlace(text: string, place: Place, signs: Signs): Committed {
  const places = commitments(text, place);
  if (typeof places === "string") return { value: places };
  let found: (Committed & { readonly end: number }) | undefined;
  for (const { start, text: piece } of places) {
    const next = readOne(piece, signs);
    const replaced = found === undefined || sameValue(found.value, next.value) || isCorrected(text.slice(found.end, start));
    if (!replaced) return { value: "ambiguous", text: piece };
    found = { ...next, end: start + (next.end ?? piece.length) };
  }
  const { value, text: piece, end } = found as Committed & { readonly end: number };
  if (typeof value === "string") return { value, text: piece };
  const rest = text.slice(end);
  const another = (tail: string): boolean => {
    let count = 0;
    for (const number of numbersIn(tail, signs)) if (!sameValue(number.value, value) || ++count > mostBehind) return true;
    return false;
  };
  return { value: isRetracted(rest, another) ? "ambiguous" : value, text: piece, atEnd: rest === "" };
}

/** The one number of a piece of text: of its first sentence that has one. */
function readOne(piece: string, signs: Signs): Committed & { readonly end?: number } {
  const numbers: NumberAt[] = [];
  for (const number of numbersIn(piece, signs)) {
    if (numbers.push(number) > mostInPlace) return { value: "over-budget", text: piece };
  }
  const [first] = numbers;
  if (first === undefined) return { value: piece.trim() === "" ? "no-answer" : "unreadable", text: piece };
  const stop = /[.!?](?:\s|\*|$)/.exec(piece.slice(first.end));
  const end = stop === null ? piece.length : first.end + stop.index;
  const sentence = piece.slice(0, end);
  const committed = numbers.filter((number) => number.start < end);
  const at = { text: sentence.trim(), end: first.end };
  const fault = committed.find((number) => typeof number.value === "string");
  if (fault !== undefined) return { value: fault.value, ...at };
  if (committed.some((number) => !equal(number, first)) || hedge.test(sentence)) return { value: "ambiguous", ...at };
  // A command left over would change the number; a numeral of another script or a fraction sign is one more number.
  if (/\\(?!(?:boxed|fbox)[ \t{])[A-Za-z]+/.test(sentence) || otherNumerals.test(sentence)) return { value: "unreadable", ...at };
  return { value: first.value, ...at };
}

/** Numerals that are not read (other scripts, Roman, fractions, powers); a power of a unit (`cm²`) is none. */
const otherNumerals = /(?![0-9])\p{Nd}|\p{Nl}|(?<!\p{L})[²³]|(?![²³])\p{No}/u;

const equal = (a: NumberAt, b: NumberAt): boolean => sameValue(a.value, b.value);

function sameValue(a: Rational | RejectReason, b: Rational | RejectReason): boolean {
  return typeof a === "string" || typeof b === "string" ? a === b : a.n === b.n && a.d === b.d;
}

/** The value of a reference, or what is wrong with it. */
function readReference(reference: Json, options: NumberOptions): Rational | string {
  if (typeof reference === "number") {
    const exact = Number.isFinite(reference) && (!Number.isInteger(reference) || Number.isSafeInteger(reference));
    if (!exact) return `the number ${reference} is not exact; write it as text`;
  } else if (typeof reference !== "string") return `a number or a text is needed, got ${JSON.stringify(reference).slice(0, 40)}`;
  const full = String(reference);
  const marker = options.reference_after;
  const from = marker === undefined ? 0 : full.lastIndexOf(marker);
  if (from < 0) return `${JSON.stringify(marker)} does not occur in it`;
  const text = plainText(full.slice(from + (marker?.length ?? 0))).trim();
  const { value } = readOne(text, options);
  return typeof value === "string" ? `${JSON.stringify(text.slice(0, 60))} is not one number (${value})` : value;
}
