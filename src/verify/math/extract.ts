/**
 * The first stage of the verifier `math`: where a response commits itself to an answer, or why it does not.
 *
 * Nothing is read inside of thinking parts. Among boxes, markers, tags and announcing phrases the last one decides, wherever
 * it stands; neighbours that only a comma or an "and" keeps apart are one answer with several parts. Hedges, retractions and
 * many different answers are none. Without any of them a response that is nothing but an answer counts, then its closing
 * sentence. No rule looks at a part of the response only.
 */
import type { AnswerRange, RejectReason } from "../contract.js";
import { afterThinking, commitments, insideThinking, isCorrected, type Place, type Thinking } from "../extract.js";
import { boxesIn } from "./extract-boxes.js";
import { concludes, conclusionOf, lastLineOf, lastOf, statementOf, wholeOf } from "./extract-implicit.js";
import { announcedIn, announces, readingsOf } from "./extract-phrases.js";
import { formulaAt, unwrapped } from "./extract-text.js";
import type { Candidate, ExtractFault, Extraction } from "./extract-types.js";
import { isSupposed, isTakenBack, isUncertain, offersAnother } from "./extract-words.js";

export interface ExtractOptions {
  /** `response`: the answer is looked for; `answer`: the text is the answer, but for what sets it; `auto`: as a response where the text commits itself like one. */
  readonly kind: "response" | "answer" | "auto";
  readonly thinking: Thinking;
  /** Where the answer is declared to stand; absent: wherever it is committed. */
  readonly from?: Place;
  /** Only a committed answer counts; else the last formula or number does too. */
  readonly committed: boolean;
  /** What stands in a thinking part that never ends counts. */
  readonly unfinished: boolean;
  /** A box without its closing brace counts. */
  readonly unclosed: boolean;
}

/** Different committed answers without a word of correction, after which a response is a list of guesses. */
const mostDifferent = 4;

/** The answer that a response commits itself to. Total, and linear in the length of the response. */
export function extractAnswer(response: string, options: ExtractOptions): Extraction {
  const answer = afterThinking(response, options.thinking) ?? (options.unfinished ? insideThinking(response) : undefined);
  if (answer === undefined) return none("unfinished-thinking", "a thinking part has no end");
  const offset = response.length - answer.length;
  const text = withoutEnd(answer);
  const found = options.from !== undefined ? declared(text, options.from) : find(text, options);
  return offset === 0 ? found : moved(found, offset);
}

/** The reason for which a response without an answer is rejected. */
export const reasonOf = (fault: ExtractFault): RejectReason => (fault === "unclosed" ? "no-answer" : fault);

/** Without the blanks and the tokens of a chat template that stand behind the last word. */
function withoutEnd(text: string): string {
  let trimmed = text.trimEnd();
  while (trimmed.endsWith(">")) {
    const token = endToken.exec(trimmed.slice(-20));
    if (token === null) break;
    trimmed = trimmed.slice(0, -token[0].length).trimEnd();
  }
  return trimmed;
}

const endToken = /(?:<\|?(?:im_end|eot_id|endoftext|end_of_text|end|return|eos)\|?>|<\/s>)$/;

const none = (fault: ExtractFault, why: string, candidates: readonly Candidate[] = []): Extraction => ({ kind: "none", fault, why, candidates });

function find(text: string, options: ExtractOptions): Extraction {
  if (text.trim() === "") return none("no-answer", "there is no text");
  const explicit = options.kind === "answer" ? [] : explicitIn(text);
  if (explicit.length > 0) return decide(text, explicit, options);
  const whole: Candidate = { rule: "whole", start: 0, end: text.length, textStart: 0, text };
  if (options.kind === "answer") return asAnswer(text, whole, options);
  if (emptyBox.test(text)) return none("no-answer", "the box is empty");
  const alone = concludes(text) ? undefined : wholeOf(text);
  const stated = alone && statementOf(text);
  if (stated !== undefined) return checked(text, [stated], [stated]);
  if (alone !== undefined) return settled(text, [alone]);
  const closing = lastLineOf(text) ?? conclusionOf(text);
  if (closing !== undefined) return checked(text, [closing], [closing]);
  if (options.kind === "auto" && !isProse(text)) return settled(text, [whole]);
  const last = options.committed ? undefined : lastOf(text);
  return last === undefined
    ? none("no-answer", options.committed ? "nothing is committed" : "there is no formula and no number")
    : checked(text, [last], [last]);
}

const emptyBox = /\\(?:boxed|fbox)\s{0,4}\{\s*\}/;

/** A text that is given as an answer: what announces or boxes it is taken off, and all the rest belongs to it. */
function asAnswer(text: string, whole: Candidate, options: ExtractOptions): Extraction {
  const explicit = explicitIn(text);
  const first = explicit[0];
  const covers = first !== undefined && leads.test(text.slice(0, Math.min(first.start, 40)));
  if (first !== undefined && (covers || explicit.some(({ rule }) => rule === "box"))) return decide(text, explicit, options);
  return emptyBox.test(text) ? none("no-answer", "the box is empty") : settled(text, [whole]);
}

/** Words before "answer" that say nothing. */
const leads = /^\W*(?:(?:so|thus|hence|therefore|and|then|the|my|our|final|correct)\b\W*)*$/i;

/** Sentences, not an answer of some words. */
const isProse = (text: string): boolean => (text.match(/(?<![\\A-Za-z])[A-Za-z]{2,}/g)?.length ?? 0) > 6;

/** Boxes, and what is announced outside of them, in order. */
function explicitIn(text: string): Candidate[] {
  const boxes: Candidate[] = text.includes("box") || text.includes("oxed") ? boxesIn(text) : [];
  const announcements = announcedIn(text, boxes[0]?.end).filter((candidate) => {
    if (boxes.some((box) => box.start < candidate.end && box.end > candidate.start)) return false;
    if (
      candidate.rule === "phrase" &&
      isSupposed(text.slice(Math.max(0, candidate.start - 120), candidate.start), text.slice(candidate.start, candidate.textStart))
    )
      return false;
    const said = announces(candidate);
    // Words behind a box are about it; before it, or without one, they may be the answer.
    return said !== undefined && !(said.worded && candidate.rule === "phrase" && boxes.length > 0);
  });
  const all = outsideComments(
    text,
    boxes.concat(announcements).sort((a, b) => a.start - b.start),
  );
  // An announcement within another ("Final answer: the answer is 5") is the nearer one.
  return all.filter(({ end }, i) => {
    const next = all[i + 1];
    return next === undefined || next.end > end || next.rule === "box";
  });
}

/** Without what stands in comments of HTML, which no reader sees. Candidates come in order. */
function outsideComments(text: string, all: Candidate[]): Candidate[] {
  let open = text.indexOf("<!--");
  if (open < 0) return all;
  const endFrom = (from: number): number => {
    const close = text.indexOf("-->", from);
    return close < 0 ? text.length : close;
  };
  let end = endFrom(open);
  return all.filter(({ start }) => {
    while (open >= 0 && end < start) {
      open = text.indexOf("<!--", end);
      end = open < 0 ? end : endFrom(open);
    }
    return open < 0 || start < open;
  });
}

function declared(text: string, place: Place): Extraction {
  const found = commitments(text, place);
  if (found === "format") return none("format", "the tags are not opened and closed in turn");
  if (typeof found === "string") return none("no-answer", "nothing stands in the declared place");
  const candidates = found.map(
    ({ start, text: piece, rest }): Candidate => ({ rule: "declared", start, end: text.length - rest.length, textStart: start, text: piece }),
  );
  const last = candidates.at(-1) as Candidate;
  const inner = explicitIn(last.text).filter(({ rule }) => rule === "box");
  return checked(text, inner.length > 0 ? inner.map((each) => shift(each, last.textStart)) : [last], candidates);
}

function decide(text: string, explicit: readonly Candidate[], options: ExtractOptions): Extraction {
  const last = explicit.at(-1) as Candidate & { readonly closed?: boolean };
  if (last.closed === false && !options.unclosed) return none("unclosed", "the last box is not closed", explicit);
  // A tag may hold a whole response of its own.
  if (last.rule === "tag") {
    const inner = find(last.text, { ...options, kind: "auto" });
    if (inner.kind === "none") return { ...inner, candidates: explicit };
    return faultAround(text, [last], explicit) ?? { ...moved(inner, last.textStart), candidates: explicit };
  }
  const parts: Candidate[] = [last];
  for (let i = explicit.length - 2; i >= 0; i--) {
    const before = explicit[i] as Candidate;
    const next = parts[0] as Candidate;
    if (before.rule !== last.rule || !isSeparator(text.slice(before.end, next.start)) || isCorrected(text.slice(before.end, next.textStart))) break;
    parts.unshift(before);
  }
  return checked(text, parts, explicit);
}

/** Nothing between two answers that would make them two statements: commas, an "and", the names of unknowns. */
const isSeparator = (between: string): boolean =>
  between.length < 80 &&
  /^(?:\s|[,;&$.|*]|\\[\])([,;:! ]|\\(?:text|mathrm|quad|qquad)\b|[{}]|\b(?:and|or|so|the|my|final)\b|\b[A-Za-z](?:_\{?\d\}?)?\s*=|\\(?:lor|vee|land|wedge)\b)*$/i.test(
    between,
  );

function checked(text: string, parts: readonly Candidate[], all: readonly Candidate[]): Extraction {
  const last = parts.at(-1) as Candidate;
  const again = parts.length === 1 && last.rule === "box" ? restated(text, last) : undefined;
  const found = again === undefined ? parts : [again];
  return faultAround(text, found, all) ?? settled(text, found, all);
}

const restatement =
  /^[\s$*)\]\\]{0,6},?[ \t]*\(?or(?: equivalently,?|( about| approximately| roughly))?[ \t]+\$?([-−]?\d[\d,]*(?:\.\d+|\/\d+|(?=[ \t]?\\?%))(?:[ \t]?\\?%)?)\$?\)?(?=[.\s]|$)/;

/** "\boxed{1/2}, or 50 %": the same in another form, which is compared too; a whole number behind "or" is another answer. */
function restated(text: string, box: Candidate): Candidate | undefined {
  const found = restatement.exec(text.slice(box.end, box.end + 80));
  if (found === null) return restatedFormula(text, box);
  const [all, about, value] = found as unknown as [string, string | undefined, string];
  return { ...box, end: box.end + all.length, text: `${box.text} ${about === undefined ? "\\text{ or }" : "\\approx"} ${value}` };
}

const equivalently = /^[\s$*)\]\\]{0,6},?[ \t]*\(?(?:or,?[ \t]+equivalently|equivalently)[,:]?[ \t]+/i;

/** "\boxed{y = 2x + 1}, or equivalently $2x - y + 1 = 0$": both are to be right. */
function restatedFormula(text: string, box: Candidate): Candidate | undefined {
  const lead = equivalently.exec(text.slice(box.end, box.end + 60));
  const formula = lead === null ? undefined : formulaAt(text, box.end + lead[0].length);
  return formula && { ...box, end: formula.end, text: `${box.text} \\text{ or } ${formula.inner}` };
}

/** What makes a commitment none: words before it, between it and another, or behind it. */
function faultAround(text: string, parts: readonly Candidate[], all: readonly Candidate[]): Extraction | undefined {
  const [first, last] = [parts[0] as Candidate, parts.at(-1) as Candidate];
  const ambiguous = (why: string): Extraction => none("ambiguous", why, all);
  const lead = text.slice(Math.max(0, first.start - 80), first.start);
  if (isUncertain(lead, text.slice(last.end, last.end + 2))) return ambiguous("it is denied, or asked");
  const before = all.filter((candidate) => candidate.end <= first.start);
  const nearest = before.at(-1);
  if (nearest !== undefined && plain(nearest) !== plain(last)) {
    if (offersAnother(text.slice(nearest.end, first.start)) && !isCorrected(text.slice(nearest.end, first.start)))
      return ambiguous("it is offered beside another");
    const different = new Set(before.concat(last).map(plain));
    if (different.size > mostDifferent && !all.some((each, i) => i > 0 && isCorrected(text.slice((all[i - 1] as Candidate).end, each.start))))
      return ambiguous(`${different.size} different answers are committed`);
  }
  return isTakenBack(text.slice(last.end)) ? ambiguous("it is taken back") : undefined;
}

const plain = ({ text }: Candidate): string =>
  unwrapped(text)
    .replace(/\\[,!; ]|[\s$]|\\(?:left|right|displaystyle)\b/g, "")
    .replace(/\\[dt]frac/g, "\\frac");

function settled(text: string, parts: readonly Candidate[], candidates: readonly Candidate[] = parts): Extraction {
  const [first, last] = [parts[0] as Candidate, parts.at(-1) as Candidate];
  const distinct = parts.filter((part, i) => parts.findIndex((other) => plain(other) === plain(part)) === i);
  const texts: readonly [string, ...string[]] = distinct.length === 1 ? readingsOf(last) : [distinct.map((part) => readingsOf(part)[0]).join(", ")];
  if (texts[0] === "") return none("no-answer", "nothing stands in the place of the answer", candidates);
  const around = distinct.length === 1 && last.rule === "box" ? besideBox(text, last, texts[0]) : texts[0];
  return {
    kind: "found",
    rule: last.rule,
    span: { start: first.start, end: last.end },
    texts: [around, ...texts.slice(1)],
    candidates,
    atEnd: last.end >= text.length,
  };
}

/** A box with what touches it: a sign, factor or exponent outside of a box would change the answer, so it belongs to it. */
function besideBox(text: string, { start, end }: Candidate, inner: string): string {
  const line = text.slice(text.lastIndexOf("\n", start - 1) + 1, start);
  const sign = /(?:^|[^\s*_-])[ \t]*[-−+/^_]$|(?:[$([{=]|\\[[(])[ \t]*[-−±]$|(?<![\w\\])\d+$/.exec(line.slice(-12));
  const behind = /^[ \t]?\\?%|^(?:[\^_!]\{?[\w-]+\}?)/.exec(text.slice(end, end + 12));
  const before = sign === null ? "" : (/[-−+/^_±]$|\d+$/.exec(sign[0])?.[0] ?? "");
  if (before === "" && behind === null) return inner;
  const percent = behind?.[0].includes("%") === true;
  return `${before}${before !== "" || !percent ? `(${inner})` : inner}${behind?.[0] ?? ""}`;
}

function shift<T extends Candidate>(candidate: T, by: number): T {
  return { ...candidate, start: candidate.start + by, end: candidate.end + by, textStart: candidate.textStart + by };
}

function moved(found: Extraction, by: number): Extraction {
  const candidates = found.candidates.map((each) => shift(each, by));
  if (found.kind === "none") return { ...found, candidates };
  const span: AnswerRange = { start: found.span.start + by, end: found.span.end + by };
  return { ...found, span, candidates };
}
