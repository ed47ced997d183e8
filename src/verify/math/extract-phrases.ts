/** Answers that are announced: by a phrase, a marker such as ####, or tags. */

import { formulaAt, sentenceEnd, unwrapped } from "./extract-text.js";
import type { Candidate } from "./extract-types.js";

/** What announces an answer, up to its verb or colon. */
const subject = String.raw`\b(?:answers?|ans(?=[ \t]{0,4}[.:=])|final (?:result|solution|value)|(?:correct|right|best) (?:option|choice|letter|alternative|statement|one)|solution(?=[*_ \t]{0,4}:))`;
const about = String.raw`(?:[ \t]*\([^()\n]{0,60}\))?(?:[ \t]+(?:to|of|for|in|choice|option)\b(?:(?!\b(?:is|are|was|be)\b)[^.:=\n]){0,80})?`;
const verb = String.raw`[*_"'”\x60 \t]*(?:[ \t](?:is|are|was|will be|would be|should be|must be|should read|equals?|becomes|comes out (?:to|as)|to be)\b(?:[ \t]+(?:therefore|thus|then|simply|just|actually|now|indeed|hence|found to be|given by|equal to|exactly|as follows))*[*_ \t]*[:=]?|[:=：]|[-=]+>|→|⇒|—)`;
const others = String.raw`答案(?:是|为|應為|应为|[:：])|答[:：]|答えは|(?:la )?r[ée]ponse(?: finale)?[ \t]*(?:est|:)|(?:la )?respuesta(?: final)?[ \t]*(?:es|:)|(?:die )?antwort[ \t]*(?:ist|lautet|:)|(?:a )?resposta(?: final)?[ \t]*(?:é|:)|ответ[ \t]*[:—-]`;
const announced = new RegExp(`${subject}${about}${verb}|${others}`, "giu");
/** "### Answer" or "**Final Answer**" as a line of its own. */
const heading = /^[ \t]*(?:#{1,6}[ \t]*)?(?:step[ \t]*\d+:?[ \t]*)?[*_]{0,3}(?:the[ \t])?(?:final[ \t])?(?:answer|result)[*_:]{0,4}[ \t]*$/gim;
const markers = /####(?!#)|<\|?answer\|?>/gi;
/** "42 is the answer" */
const behind =
  /(\$[^$\n]{1,200}\$|\\\((?:[^\\\n]|\\(?!\))){1,200}\\\)|\*\*[^*\n]{1,80}\*\*|(?<![\w.,/^*+-])[-−]?\$?\d[\d,./]*%?)[ \t]+(?:is|as|becomes)[ \t]+(?:the|my|our)[ \t]+(?:final |correct )?(?:answer|solution)\b|\b(?:option|choice|answer)[ \t]+[*_]{0,2}(\(?[A-J]\)?)[*_]{0,2}[ \t]+is[ \t]+(?:the[ \t]+)?(?:correct|right|best|answer)\b/gi;
/** "Wait, it should be 816": a correction announces as well as "the answer" does. */
const corrected =
  /\b(?:actually|wait|correction|i mean|sorry|no|mistake|instead)\b[^.\n]{0,60}?\b(?:it|this|that|the (?:value|total|result|number|sum))(?:['’]s|[ \t](?:is|should be|must be))[ \t]+(?=[-−$\\(*\d])|\bcorrection:[ \t]*/gi;

/** Announcements that are looked at, from the last one back: the last decides, those before it say whether it is one of several. */
const mostAnnounced = 16;

/** The last announcements of a text from `from` on, in order. */
export function announcedIn(text: string, from = 0): Candidate[] {
  const found: (readonly [start: number, read: () => Candidate | undefined])[] = [];
  const each = (pattern: RegExp, reader: (match: RegExpExecArray, after: number) => Candidate | undefined): void => {
    pattern.lastIndex = from;
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      const [at, after] = [match, pattern.lastIndex];
      found.push([match.index, () => reader(at, after)]);
    }
  };
  if (subjects.test(text)) {
    for (const pattern of [announced, heading]) each(pattern, (match, after) => captured(text, "phrase", match.index, after));
    each(behind, ({ index, 1: value, 2: letter }, end) => ({ rule: "phrase", start: index, end, textStart: index, text: (value ?? letter) as string }));
  }
  each(corrected, (match, after) => captured(text, "phrase", match.index, after));
  each(markers, (match, after) => (match[0].startsWith("#") ? captured(text, "marker", match.index, after) : tagged(text, match.index, after)));
  found.sort((a, b) => a[0] - b[0]);
  return found.slice(-mostAnnounced).flatMap(([, read]) => read() ?? []);
}

const subjects = /answer|(?:option|choice|letter|alternative|statement|one) |\bans\b|result|solution|value|答|r[ée]ponse|respuesta|antwort|resposta|ответ/i;

function tagged(text: string, start: number, inside: number): Candidate | undefined {
  const rest = /<\|?\/?answer\|?>/i.exec(text.slice(inside));
  const end = rest === null ? text.length : inside + rest.index;
  // A closing tag of the same spelling (<|answer|>…<|answer|>) or none at all: what stands there is the answer either way.
  const close = rest === null ? end : end + rest[0].length;
  const content = text.slice(inside, end);
  return content.trim() === "" ? undefined : { rule: "tag", start, end: close, textStart: inside, text: content };
}

/** What follows an announcement: the formula or sentence there, or on the next line that is not blank. */
function captured(text: string, rule: Candidate["rule"], start: number, after: number): Candidate | undefined {
  let at = after;
  const skip = /[ \t*_:"“>]*(?:\n[ \t*_>-]*(?:```\w*)?[ \t*_>]*)*/y;
  skip.lastIndex = at;
  const skipped = skip.exec(text)?.[0] ?? "";
  // What only sets the answer stays with it, so that pairs of marks stay pairs.
  at += skipped.length - (/[*_"“]*$/.exec(skipped)?.[0].length ?? 0);
  if (at >= text.length) return undefined;
  const formula = formulaAt(text, at);
  const display = formula !== undefined && (text.startsWith("$$", at) || text.startsWith("\\[", at) || text.startsWith("\\b", at));
  const end = display ? formula.end : sentenceEnd(text, at, text.length);
  const inside = text.slice(at, end);
  return inside.trim() === "" ? undefined : { rule, start, end, textStart: at, text: inside };
}

/** How an answer begins that is no word: a number, formula, bracket, sign, or a letter by itself. */
const mathematical = /^(?:[-+−±–~≈]?[ \t]*[$€£¥₹\\(|[{<√π∞∅ℝ\d.]|[A-Za-z](?:['_^=(<>²³ ]|[^A-Za-z\s]|$)(?!(?:[A-Za-z]+[ ,.]){3})|\d|[½⅓⅔¼¾])/;
/** Words with which a sentence about the answer goes on. */
const aboutIt =
  /^(?:not\b|correct|right|wrong|incorrect|checked|verified|obtained|found|based|given|that|because|when|if|reasonable|consistent|in |on |as |to |simple|clear|still|also|always|only|unique|of course|determined|calculated|derived|what|how|below|above|here|therefore|the (?:same|one|sum of|product of|difference|number of))/i;
const mostWords = 6;

/** Whether a phrase announces an answer, not a remark about one; `worded`: it is words alone. */
export function announces(candidate: Candidate): { readonly worded: boolean } | undefined {
  const text = unwrapped(candidate.text);
  if (text === "") return undefined;
  if (mathematical.test(text)) return { worded: false };
  if (candidate.rule !== "phrase") return { worded: true };
  if (aboutIt.test(text)) return undefined;
  return text.split(/\s+/).length <= mostWords || /^(?:\\text|\*|option|choice|the (?:number|value|letter|option))/i.test(text) ? { worded: true } : undefined;
}

/** Words that begin a clause about an answer and are no part of it. */
const clause =
  /(?:,[ \t]{0,4}|[ \t]{1,4}|[ \t]{0,4}\()(?:because|since|which|as (?:we|the|it|required|shown|can|desired|expected)|when|where|so\b|given|after|using|due|assuming|obtained|and (?:this|that|it|we|the)\b|making|meaning|i\.e\.|according|based|by|if\b|for (?:the|all|each|every|a)\b|from|in (?:total|all|the|this|simplest)|on|at|per|with|left|altogether|remaining|more|than)\b/i;
const plainNumber =
  /^((?:[-−+][ \t]?)?(?:[$€£][ \t]?)?\d[\d,]*(?:\.\d+)?(?:\/\d+)?%?)[ \t]+(?!hundred|thousand|million|billion|trillion|dozen|score|percent|per ?cent|and|or|to|times|plus|minus|over|half|halves|third|quarter|squared|cubed|mod|base|degrees?)([A-Za-z][A-Za-z'’ ,()-]*)$/i;
const lead =
  /^(?:(?:the )?(?:number|value|option|choice|letter|expression|interval|set|point)s?[ \t]+|(?:equal|equals)[ \t]+(?:to[ \t]+)?|(?:approximately|about|exactly|roughly|simply|just|only|indeed)[ \t]+)/i;

/** Readings of what an announcement captured: the whole, then without the clause behind it, then the number before words. */
export function readingsOf(candidate: Candidate): [string, ...string[]] {
  const whole = unwrapped(candidate.text).replace(lead, "");
  if (candidate.rule === "box" || candidate.rule === "whole") return [unwrapped(candidate.text)];
  const texts: [string, ...string[]] = [whole];
  const add = (text: string): void => {
    const clean = unwrapped(text);
    if (clean !== "" && !texts.includes(clean)) texts.push(clean);
  };
  const formula = formulaAt(whole, 0);
  if (formula !== undefined) {
    // Behind a formula only words may stand, and none that offer another answer.
    const rest = whole.slice(formula.end);
    if (!/[\d$\\]|\bor\b|\balternatively\b/i.test(rest)) add(whole.slice(0, formula.end));
    return texts;
  }
  const cut = clause.exec(whole);
  if (cut !== null && !/\bor\b|\balternatively\b/i.test(whole.slice(cut.index))) add(whole.slice(0, cut.index));
  for (const text of [...texts]) {
    const number = plainNumber.exec(text);
    if (number !== null && !/\bor\b/i.test(number[2] as string)) add(number[1] as string);
  }
  return texts;
}
