/** What a judge said, read as one of the answers that were declared, and as nothing else: a reply that says more is none. */

import type { Json } from "../../core/json.js";
import { readJson } from "../../core/json-text.js";

export interface ReplyForm {
  /** The reply is a JSON object, and this entry of it the answer; absent: the whole reply is the answer. */
  readonly field?: string;
  /** Words and their scores; absent: the answer is a number. */
  readonly words?: { readonly [word: string]: number };
  /** What a number is worth 0 and 1 at. */
  readonly range?: readonly [number, number];
  /** Where its own thinking ends: it has marks, it began within it, or there is none. */
  readonly thinking: "tags" | "started" | "none";
}

export interface Judged {
  /** From 0 to 1. */
  readonly score: number;
  /** The answer as it was declared. */
  readonly answer: string | number;
  /** What else stands in a JSON object, such as a reason. */
  readonly more: { readonly [name: string]: Json };
}

/** Longest text that is kept of what a judge says beside its answer. */
const longestMore = 500;

/** The sentence that asks for an answer of this form. */
export function askedFor({ field, words, range = [0, 1] }: ReplyForm): string {
  const names = Object.keys(words ?? {});
  const listed = names.length > 1 ? `${names.slice(0, -1).join(", ")} or ${names.at(-1)}` : names[0];
  const value = words ? `one of ${names.map((name) => JSON.stringify(name)).join(", ")}` : `a number from ${range[0]} to ${range[1]}`;
  if (field !== undefined) return `Reply with a JSON object and nothing else, whose entry ${JSON.stringify(field)} is ${value}.`;
  return words ? `Reply with one word and nothing else: ${listed}.` : `Reply with ${value} and nothing else.`;
}

/** Throws an Error that says why the reply is none of the declared answers. */
export function readReply(reply: string, form: ReplyForm): Judged {
  const text = withoutThinking(reply, form.thinking).trim();
  if (text === "") throw new Error("the judge said nothing");
  if (form.field === undefined) return { ...answerOf(text, form), more: {} };
  const { value, fault } = readJson(/^```(?:json)?\s*\n(.*)\n\s*```$/s.exec(text)?.[1] ?? text);
  if (fault !== undefined) throw new Error(`the judge's reply is not JSON (${fault.cause}): ${quoted(text)}`);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`the judge's reply is no JSON object: ${quoted(text)}`);
  const { [form.field]: answer, ...more } = value as { readonly [name: string]: Json };
  if (answer === undefined) throw new Error(`the judge's reply has no entry ${form.field}: ${quoted(text)}`);
  if (!(form.words ? ["string", "boolean"] : ["number"]).includes(typeof answer))
    throw new Error(`the judge's ${form.field} is ${quoted(JSON.stringify(answer))}, not ${form.words ? "a word" : "a number"}`);
  const kept = Object.entries(more).map(([name, each]) => [name, (typeof each === "string" ? each : JSON.stringify(each)).slice(0, longestMore)]);
  return { ...answerOf(String(answer), form), more: Object.fromEntries(kept.slice(0, 8)) };
}

function answerOf(text: string, { words, range = [0, 1] }: ReplyForm): Omit<Judged, "more"> {
  if (words) {
    const said = plain(text);
    const found = Object.keys(words).find((word) => plain(word) === said);
    if (found === undefined) throw new Error(`the judge said ${quoted(text)}, which is none of ${Object.keys(words).join(", ")}`);
    return { score: words[found] as number, answer: found };
  }
  const value = /^[+-]?(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:e[+-]?\d{1,2})?$/i.test(text) ? Number(text) : Number.NaN;
  const [low, high] = range;
  // A number beyond the range is no grade: the nearest end would be a guess.
  if (!(value >= low && value <= high)) throw new Error(`the judge said ${quoted(text)}, which is no number from ${low} to ${high}`);
  return { score: (value - low) / (high - low), answer: value };
}

/** A word as words are compared: case, quotation marks, stress and a full stop aside. */
export const plain = (text: string): string =>
  text
    .trim()
    .replace(/^[*_`"'“”‘’]{1,3}|[*_`"'“”‘’.]{1,4}$/g, "")
    .trim()
    .toLowerCase();

const opened = /^\s*(?:<(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|seed:think)>|◁think▷|\[THINK\])/i;
const mark = /<\/?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|seed:think)>|◁\/?think▷|\[\/?THINK\]/i;
const closed = /<\/(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|seed:think)>|◁\/think▷|\[\/THINK\]/i;

/**
 * The reply behind its thinking part, which must be its beginning. It ends at the first closing mark: a judge that repeats a mark
 * of the response within it leaves a rest that is no answer, and never the response's own.
 */
function withoutThinking(reply: string, thinking: ReplyForm["thinking"]): string {
  if (thinking === "none" || (thinking === "tags" && !opened.test(reply))) return reply;
  const end = closed.exec(reply);
  if (end === null) throw new Error(`the judge did not end its thinking: ${quoted(reply.slice(-60))}`);
  const rest = reply.slice(end.index + end[0].length);
  if (mark.test(rest)) throw new Error("the judge's reply has several thinking parts");
  return rest;
}

const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
