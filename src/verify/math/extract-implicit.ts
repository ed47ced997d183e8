/** Answers without an announcement: a response that is nothing else, a closing sentence, and what a policy may take besides. */

import { type Formula, formulaAt, formulasIn, sentenceEnd, unwrapped } from "./extract-text.js";
import type { Candidate } from "./extract-types.js";

/** Most words, formulas aside, of a response that is an answer and no sentence about one. */
const mostWords = 6;
const words = /(?<![\\A-Za-z])[A-Za-z]{2,}/g;

/** A response that is an answer and nothing else: one line, or one formula, and hardly a word. */
export function wholeOf(text: string, start = 0): Candidate | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const candidate: Candidate = { rule: "whole", start, end: start + text.length, textStart: start, text };
  const inner = unwrapped(trimmed);
  const setOff = /^(?:\$|\\[([]|```)/.test(trimmed);
  if (!setOff && inner.includes("\n") && !/\\\\|&/.test(inner)) return undefined;
  const bare = inner.length > 4000 ? inner : inner.replace(/\\(?:text|mathrm|mbox)\*?\s{0,2}\{[^{}]*\}/g, " ");
  return (bare.match(words)?.length ?? 0) <= mostWords && !/[.!?]\s+[A-Z]|\b[Aa]nswer\b/.test(bare) ? candidate : undefined;
}

/** A last line that is nothing but a value, where the line before it is not one too. */
export function lastLineOf(text: string): Candidate | undefined {
  const end = text.trimEnd().length;
  const start = text.lastIndexOf("\n", end - 1) + 1;
  if (start === 0) return undefined;
  const before = text.slice(0, start).trimEnd();
  const previous = before.slice(before.lastIndexOf("\n") + 1);
  const line = text.slice(start, end);
  if (!isValue(line) || isValue(previous)) return undefined;
  const inner = unwrapped(line);
  const formula = formulaAt(inner, 0);
  return { rule: "conclusion", start, end, textStart: start, text: afterLastEquals(formula?.end === inner.length ? formula.inner : inner) };
}

function isValue(line: string): boolean {
  const inner = unwrapped(line);
  if (inner === "" || inner.length > 200 || /[:?]$|^[=+*/]|^\\(?:begin|end|\])/.test(inner)) return false;
  return (inner.replace(/\\(?:text|mathrm|mbox)\*?\s{0,2}\{[^{}]*\}/g, " ").match(words)?.length ?? 0) === 0;
}

const concluding =
  /^(?:[-*•>\s]|\d{1,2}\.\s)*(?:\*\*)?(?:(?:and|but)[ ,]+)?(?:therefore|so|thus|hence|consequently|accordingly|finally|in (?:total|all|conclusion|summary|the end)|the (?:solutions?|roots?|solution set) (?:is|are)\b|altogether|overall|to conclude|as a result|this (?:means|gives|yields)|that (?:means|gives|makes)|it follows|we (?:conclude|get|find|obtain|have)|∴|⇒|=>|\$?\\(?:therefore|implies|Rightarrow))/i;
/** Whether a text begins as a conclusion does. */
export const concludes = (text: string): boolean => concluding.test(text);

/** What closes a response without saying more. */
const aside = /^\W*(?:check|verif|to (?:check|verify|confirm)|let['’]?s (?:check|verify)|this (?:is|matches|agrees|checks|satisfies)|indeed|note)/i;
const setBold = /\*\*(?=[^\s*])([^*\n]{1,200})\*\*/g;
/** An amount, a fraction, a ratio, a time of day. */
const amount = /[-−]?(?:[$€£¥₹][ \t]?)?\d[\d,]*(?:\.\d+)?(?:(?::\d+)+(?:[ \t]?[ap]\.?m\b\.?)?|(?:[ \t]?\/[ \t]?\d+)?(?:[ \t]?%)?)/gi;
/** What makes another number of the digits beside it. */
const goesOn =
  /^(?:[\^_!xπ°²³√(]|[ \t]{0,2}(?:[*×·÷^+/]|[-−][ \t]?\d)|[ \t](?:hundred|thousand|million|billion|trillion|dozen|and a half|percent|per cent|squared|cubed)\b|[.,:]\d)/i;

/** The result of the closing sentence: set in bold, or in a sentence that draws a conclusion. Sentences that only check it are passed over. */
export function conclusionOf(text: string): Candidate | undefined {
  let end = text.trimEnd().length;
  for (let sentences = 0; end > 0 && sentences < 8; sentences++) {
    const start = sentenceStart(text, end);
    const sentence = text.slice(start, end);
    const found = resultOf(text, start, end);
    if (found !== undefined) {
      if (concluding.test(sentence) || found.bold) return found.candidate;
      if (!aside.test(sentence)) return undefined;
    } else if (/\d|\$|\\[([]/.test(sentence) && !aside.test(sentence)) return undefined;
    end = text.slice(0, start).trimEnd().length;
  }
  return undefined;
}

const states =
  /^[A-Z][^\n]*[ \t](?:is|are|was|were|equals|totals|has|have|had|makes?|costs?|gets?)[ \t]+(?:only |exactly |a total of )?[*$\\(]*[-−]?\d|^(?:It|That|This)['’]s (?:only |exactly )?[*$\\(]*[-−]?\d|^[A-Z][^\n]*=[ \t]*\*\*[^*\n]+\*\*\W*$/;

/** The amount that a response of one short sentence states: "There are 12 apples." */
export function statementOf(text: string): Candidate | undefined {
  const start = text.length - text.trimStart().length;
  const end = text.trimEnd().length;
  return states.test(text.slice(start, end)) ? resultOf(text, start, end)?.candidate : undefined;
}

/** Where the last sentence before `end` begins. A display on lines of its own belongs to the sentence before it. */
function sentenceStart(text: string, end: number): number {
  const open = displayBefore(text, end);
  const stop = open === undefined ? end : text.slice(0, open).trimEnd().length;
  let start = text.lastIndexOf("\n", stop - 1) + 1;
  for (;;) {
    const full = sentenceEnd(text, start, stop);
    const next = full + 1 + (/^["')*_”]{0,4}\s*/.exec(text.slice(full + 1, stop))?.[0].length ?? 0);
    if (full >= stop - 1 || next >= stop) return start;
    start = next;
  }
}

/** Where the display that ends at `end` opens, if one does and begins its line. */
function displayBefore(text: string, end: number): number | undefined {
  const closing = /(?:\\\]|\$\$)[.,;]?$/.exec(text.slice(Math.max(0, end - 4), end))?.[0];
  if (closing === undefined) return undefined;
  const close = end - closing.length;
  const open = close < 1 ? -1 : text.lastIndexOf(closing.startsWith("$") ? "$$" : "\\[", close - 1);
  return open >= 0 && text.slice(text.lastIndexOf("\n", open) + 1, open).trim() === "" ? open : undefined;
}

function resultOf(text: string, start: number, end: number): { readonly candidate: Candidate; readonly bold: boolean } | undefined {
  const sentence = text.slice(start, end);
  const bold = lastBold(sentence);
  if (bold !== undefined && !isBounded(sentence.slice(0, bold.start))) {
    const at = start + bold.start;
    return { candidate: { rule: "conclusion", start: at, end: start + bold.end, textStart: at, text: sentence.slice(bold.start, bold.end) }, bold: true };
  }
  const formula = lastFormula(text, start, end);
  if (bold !== undefined || (formula !== undefined && isBounded(text.slice(start, formula.start)))) return undefined;
  const candidate = formula ?? lastAmount(text, start, end);
  return candidate && { candidate, bold: false };
}

/** The last result in bold; several that only a comma, "and" or "or" keeps apart are one answer. */
function lastBold(sentence: string): { readonly start: number; readonly end: number } | undefined {
  const found = [...sentence.matchAll(setBold)].filter((match) => /[\d\\$]/.test(match[1] as string));
  const last = found.at(-1);
  if (last === undefined) return undefined;
  let start = last.index;
  for (const { index, 0: before } of found.slice(0, -1).reverse()) {
    if (!joins.test(sentence.slice(index + before.length, start))) break;
    start = index;
  }
  return { start, end: last.index + last[0].length };
}

const joins = /^[\s,;]{0,20}(?:and|or)?[\s,;]{0,20}$/i;

/** The last formulas of a sentence; several that only a comma or "and" keeps apart are one answer. */
function lastFormula(text: string, start: number, end: number): Candidate | undefined {
  const formulas: Formula[] = [...formulasIn(text, start, end)];
  const last = formulas.at(-1);
  if (last === undefined) return undefined;
  let first = last;
  for (const before of formulas.slice(0, -1).reverse()) {
    if (!joins.test(text.slice(before.end, first.start))) break;
    first = before;
  }
  const inside = first === last ? afterLastEquals(last.inner) : text.slice(first.start, last.end);
  return { rule: "conclusion", start: first.start, end: last.end, textStart: first.start, text: inside };
}

/** Of a chain of numbers ("3 + 4 = 7") its end; where letters stand before the sign, the whole. */
function afterLastEquals(inner: string): string {
  const at = inner.lastIndexOf("=");
  if (at < 0 || /\\(?:text|mathrm)|[<>]|\\[lg]eq?\b/.test(inner.slice(0, at))) return at < 0 ? inner : inner.slice(at + 1);
  const left = inner.slice(0, at).replace(/\\[A-Za-z]+/g, "");
  const chained = inner.indexOf("=") !== at;
  return /[A-Za-z]/.test(left) && !chained ? inner : inner.slice(at + 1);
}

/** "x = 2 and x = 3", "a = 1, b = 2": values that are named one by one are one answer. */
const namedAmounts =
  /(?<![\w\\}^])[A-Za-z](?:_?\d)?[ \t]{0,4}=[ \t]{0,4}[-−]?\d[\d,./]{0,40}(?:,?[ \t]{1,4}(?:(?:and|or)[ \t]{1,4})?[A-Za-z](?:_?\d)?[ \t]{0,4}=[ \t]{0,4}[-−]?\d[\d./]{0,40}){1,20}(?=[.!]?$|[ \t.,;])/g;

/** "14 < x", "2 <= x < 5", "n ≠ 3". */
const boundsOfName =
  /(?<![\d,./])(?:[-−]?\d[\d,./]{0,40}[ \t]{0,4}(?:[<>]=?|[≤≥])[ \t]{0,4})?(?<![\w\\}^])[A-Za-z](?:_?\d)?[ \t]{0,4}(?:[<>]=?|!=|[≤≥≠])[ \t]{0,4}[-−]?\d[\d,./]{0,40}|(?<![\d,./])[-−]?\d[\d,./]{0,40}[ \t]{0,4}(?:[<>]=?|!=|[≤≥≠])[ \t]{0,4}[A-Za-z](?:_?\d)?(?!\w)/g;

function lastAmount(text: string, start: number, end: number): Candidate | undefined {
  const sentence = text.slice(start, end);
  const named = [...sentence.matchAll(namedAmounts), ...sentence.matchAll(boundsOfName)].sort((a, b) => a.index - b.index).at(-1);
  if (named !== undefined && !/[\d=]/.test(sentence.slice(named.index + named[0].length))) {
    const at = start + named.index;
    return { rule: "conclusion", start: at, end: at + named[0].length, textStart: at, text: named[0] };
  }
  const numbers = [...sentence.matchAll(amount)].filter(
    ({ index, 0: digits }) => !/[A-Za-z_^\d.]$/.test(sentence.slice(0, index)) && !goesOn.test(sentence.slice(index + digits.length)),
  );
  const equals = sentence.lastIndexOf("=");
  const said = [
    ...sentence.matchAll(
      /\b(?:is|are|be|was|were|equals?|totals?|has|have|had|gets?|makes?|costs?|takes?|needs?|earns?|pays?|spends?|sold|sells?|left with)[ \t:]+(?:only |exactly |a total of |about |around )?(?=[-−$€£\d])/gi,
    ),
  ].at(-1);
  const from = equals >= 0 ? equals : (said?.index ?? -1);
  const behind = numbers.filter(({ index }) => index >= from);
  const chosen = from >= 0 ? behind[0] : numbers.length === 1 ? numbers[0] : undefined;
  if (chosen === undefined || (from >= 0 && equals >= 0 && chosen.index > equals + 6)) return undefined;
  if (/\bor\b/i.test(sentence.slice(chosen.index)) && behind.length > 1) return undefined;
  if (further.test(sentence.slice(chosen.index + chosen[0].length))) return undefined;
  if (isBounded(sentence.slice(0, chosen.index)) || isOneOfSeveral(sentence, chosen, behind[1])) return undefined;
  const at = start + chosen.index;
  return { rule: "conclusion", start: at, end: at + chosen[0].length, textStart: at, text: chosen[0] };
}

/** "which we then have to halve": the value is one on the way. */
const further =
  /^[^.!?]{0,40}?[ ,](?:which|that|and|so|but|now|then)\b[^.!?]{0,30}?\b(?:we|i|you|one)\b[^.!?]{0,20}?\b(?:have to|need to|must|should|still|next|then|now|can now|will|can then)\b/i;

/** "more than 17", "between 17 and 20": a number that bounds a value is none. */
const isBounded = (before: string): boolean =>
  /\b(?:more|less|fewer|greater|smaller|larger|other|rather) than[ \t$]*$|\b(?:between|over|under|above|below|not|nearly|almost)[ \t$]*$/i.test(before);

/** "42 apples and 17 pears", "17 to 18 days": two amounts where one is asked. */
function isOneOfSeveral(sentence: string, first: RegExpExecArray, second: RegExpExecArray | undefined): boolean {
  if (second === undefined) return false;
  const between = sentence.slice(first.index + first[0].length, second.index);
  return /^[ \t]*(?:to|or|[-–])[ \t$]*$|^(?:[ \t]+[A-Za-z]+){0,4},?[ \t]+and(?:[ \t]+[A-Za-z]+){0,2}[ \t$]*$|^(?:[ \t]+[A-Za-z]+){1,3},[ \t$]*$/.test(between);
}

/** The last formula between delimiters, else the last number; what stands nearer to the end. */
export function lastOf(text: string): Candidate | undefined {
  let formula: Formula | undefined;
  for (const each of formulasIn(text, 0, text.length)) if (each.inner.trim() !== "") formula = each;
  let number: RegExpExecArray | undefined;
  for (const match of text.matchAll(amount)) number = match;
  if (formula !== undefined && (number === undefined || number.index < formula.end))
    return { rule: "formula", start: formula.start, end: formula.end, textStart: formula.start, text: afterLastEquals(formula.inner) };
  if (number === undefined) return undefined;
  return { rule: "number", start: number.index, end: number.index + number[0].length, textStart: number.index, text: number[0] };
}
