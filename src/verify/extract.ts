/** Where an answer stands in a response: rules that several verifiers share. Each rule finds what was committed, or says why not. */
import { z } from "zod";
import type { AnswerRange, RejectReason } from "./contract.js";

/** Rules that end in a piece of text. */
export const placeSchema = z.union([
  z.literal("whole").describe("The whole response."),
  z.literal("last-line").describe("The last line that is not blank."),
  z.literal("boxed").describe("The content of \\boxed{…} or \\fbox{…}."),
  z.strictObject({ after: z.string().min(1) }).describe("What follows a marker, to the end of its line; upper and lower case are one."),
  z.strictObject({ between: z.tuple([z.string().min(1), z.string().min(1)]) }).describe("What stands between an opening and a closing tag."),
]);
export type Place = z.output<typeof placeSchema>;

/** How thinking parts are known. `tags`: as they appear; `started`: the prompt already opened one; `none`: the text has none. */
export const thinkingSchema = z.enum(["tags", "started", "none"]);
export type Thinking = z.output<typeof thinkingSchema>;

/** One committed piece of text, where it starts, and what follows it in the response. */
export interface Commitment {
  readonly start: number;
  readonly text: string;
  readonly rest: string;
}

/** Marks around thinking parts, as published models write them. */
const word = "(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|seed:think)";
const opened = new RegExp(`<${word}>|◁think▷|\\[THINK\\]|<\\|begin_of_thought\\|>|<\\|channel\\|>(?:analysis|commentary)[^<]{0,80}<\\|message\\|>`, "gi");
const closed = new RegExp(`</${word}>|◁/think▷|\\[/THINK\\]|<\\|end_of_thought\\|>|<\\|channel\\|>final[^<]{0,80}<\\|message\\|>`, "gi");

/** The response after its last thinking part; undefined while one is open. */
export function afterThinking(response: string, thinking: Thinking): string | undefined {
  if (thinking === "none") return response;
  const end = endOfLast(closed, response, 0);
  if (end < 0) return thinking === "started" || endOfLast(opened, response, 0) >= 0 ? undefined : response;
  return endOfLast(opened, response, end) >= 0 ? undefined : response.slice(end);
}

/** What stands in the thinking part that is still open, else the whole response. */
export function insideThinking(response: string): string {
  return response.slice(Math.max(0, endOfLast(opened, response, 0)));
}

function endOfLast(mark: RegExp, text: string, from: number): number {
  let end = -1;
  mark.lastIndex = from;
  while (mark.exec(text) !== null) end = mark.lastIndex;
  return end;
}

/** All commitments of a text under a rule, in order; a name of the reject reasons where there is none. */
export function commitments(text: string, place: Place): Commitment[] | RejectReason {
  const found = find(text, place);
  if (typeof found === "string") return found;
  const filled = found.filter((commitment) => commitment.text.trim() !== "");
  return filled.length === 0 ? "no-answer" : filled;
}

/** Where the last commitment of a response stands, white space at its ends aside, and what closes it included; undefined without one. */
export function lastPlace(response: string, thinking: Thinking, place: Place): AnswerRange | undefined {
  const answer = afterThinking(response, thinking);
  const found = answer === undefined ? "unfinished-thinking" : commitments(answer, place);
  if (answer === undefined || typeof found === "string") return undefined;
  const { start, text, rest } = found.at(-1) as Commitment;
  const from = response.length - answer.length + start + (text.length - text.trimStart().length);
  const closed = place === "boxed" || (typeof place === "object" && "between" in place);
  return { start: from, end: closed ? response.length - rest.length : from + text.trim().length };
}

function find(text: string, place: Place): Commitment[] | RejectReason {
  if (place === "whole") return [{ start: 0, text, rest: "" }];
  if (place === "last-line") {
    const trimmed = text.trimEnd();
    const start = trimmed.lastIndexOf("\n") + 1;
    return [{ start, text: trimmed.slice(start), rest: "" }];
  }
  if (place === "boxed") return boxes(text);
  return "after" in place ? afterMarkers(text, place.after) : betweenTags(text, ...place.between);
}

/** What follows each marker on its line, or on the next line where nothing does; it ends before the next marker. */
function afterMarkers(text: string, marker: string): Commitment[] {
  const pattern = new RegExp(marker.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "giu");
  const matches = [...text.matchAll(pattern)];
  return matches.map((match, i) => {
    const limit = matches[i + 1]?.index ?? text.length;
    let start = match.index + match[0].length;
    let end = endOfLine(text, start, limit);
    if (/^[\s:*]*$/.test(text.slice(start, end))) {
      start = nextFilled(text, end, limit);
      end = endOfLine(text, start, limit);
    }
    return { start, text: text.slice(start, end), rest: text.slice(end) };
  });
}

function endOfLine(text: string, start: number, limit: number): number {
  const newline = text.slice(start, limit).indexOf("\n");
  return newline < 0 ? limit : start + newline;
}

/** First character from `from` on that is not white space. */
function nextFilled(text: string, from: number, limit: number): number {
  let at = from;
  while (at < limit && /\s/.test(text[at] as string)) at++;
  return at;
}

/** Contents of boxes, by matching braces; an unclosed box is none. A box within a box belongs to it. */
function boxes(text: string): Commitment[] {
  const found: Commitment[] = [];
  const pattern = /\\(?:boxed|fbox)[ \t]{0,8}\{/g;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const end = closingBrace(text, pattern.lastIndex);
    // Where one box has no end, a later one lies inside of it.
    if (end === undefined) break;
    found.push({ start: pattern.lastIndex, text: text.slice(pattern.lastIndex, end), rest: text.slice(end + 1) });
    pattern.lastIndex = end + 1;
  }
  return found;
}

function closingBrace(text: string, from: number): number | undefined {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (character === "\\") at++;
    else if (character === "{") depth++;
    else if (character === "}" && --depth === 0) return at;
  }
  return undefined;
}

/** Contents of tags that are well formed: opened and closed in turn. Anything else has no answer, so that near misses earn nothing. */
function betweenTags(text: string, opening: string, closing: string): Commitment[] | RejectReason {
  const found: Commitment[] = [];
  let at = 0;
  for (;;) {
    const start = text.indexOf(opening, at);
    const stray = text.indexOf(closing, at);
    if (start < 0) return stray < 0 ? found : "format";
    const inside = start + opening.length;
    const end = text.indexOf(closing, inside);
    const again = text.indexOf(opening, inside);
    if (stray < start || end < 0 || (again >= 0 && again < end && opening !== closing)) return "format";
    at = end + closing.length;
    found.push({ start: inside, text: text.slice(inside, end), rest: text.slice(at) });
  }
}

/** Words by which a writer takes back what came before, in favour of what comes. */
const correction =
  /\b(?:wait|actually|correction|hold on|my mistake|sorry|i mean|on second thought|wrong|incorrect|not right|not correct|scratch that|ignore that|disregard)\b|(?:^|[\n.!?])\s{0,8}no\b/i;
/** Words by which a writer offers another answer beside the first. */
const alternative = /\b(?:alternatively|or (?:maybe|perhaps|possibly|else|rather))\b|(?:^|[\n.!?])\s{0,8}or\b/i;
/** Words that take the answer back without giving another. */
const withdrawal = /\b(?:wrong|incorrect|not right|not correct|scratch that|ignore that|disregard)\b/i;

/** Whether the text between two different commitments makes the second replace the first. Otherwise the two are a list, and no answer. */
export function isCorrected(between: string): boolean {
  return correction.test(between) && !alternative.test(between);
}

/** Whether the last commitment is taken back by what follows: withdrawn in words, or `another` finds a different answer behind a correction or an alternative. */
export function isRetracted(rest: string, another: (text: string) => boolean): boolean {
  if (withdrawal.test(rest)) return true;
  const starts = [correction, alternative].flatMap((pattern) => pattern.exec(rest)?.index ?? []);
  return starts.length > 0 && another(rest.slice(Math.min(...starts)));
}
