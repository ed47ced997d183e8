/** Delimiters, Markdown and sentences around an answer: where formulas and sentences end, and texts without what only sets them. */
import { insideBox } from "./extract-boxes.js";

/** A formula between delimiters. */
export interface Formula {
  readonly start: number;
  readonly end: number;
  readonly inner: string;
}

const environments = /\\begin\{(equation|align|aligned|gather|multline|displaymath|math|eqnarray)(\*?)\}/y;

/** The formula whose opening delimiter stands at `at`; undefined where none does, or where it is not closed. A dollar sign before an amount is currency. */
export function formulaAt(text: string, at: number): Formula | undefined {
  const first = text[at];
  if (first === "$") {
    const double = text[at + 1] === "$";
    const open = at + (double ? 2 : 1);
    const close = nearby(text, double ? "$$" : "$", open);
    if (close <= open) return undefined;
    const inner = text.slice(open, close);
    return double || !isProse(inner) ? { start: at, end: close + (double ? 2 : 1), inner } : undefined;
  }
  if (first !== "\\") return undefined;
  const next = text[at + 1];
  if (next === "(" || next === "[") {
    const close = nearby(text, next === "(" ? "\\)" : "\\]", at + 2);
    return close < 0 ? undefined : { start: at, end: close + 2, inner: text.slice(at + 2, close) };
  }
  if (next !== "b") return undefined;
  environments.lastIndex = at;
  const match = environments.exec(text);
  if (match === null) return undefined;
  const closing = `\\end{${match[1]}${match[2]}}`;
  const close = nearby(text, closing, environments.lastIndex);
  return close < 0 ? undefined : { start: at, end: close + closing.length, inner: text.slice(environments.lastIndex, close) };
}

/** A formula longer than this, in characters, is none: what bounds the search for its end. */
const longestFormula = 20_000;

function nearby(text: string, what: string, from: number): number {
  const at = text.slice(from, from + longestFormula).indexOf(what);
  return at < 0 ? -1 : from + at;
}

/** Words between two dollar signs mean that these are amounts, or belong to other pairs. */
function isProse(inner: string): boolean {
  if (/\n[ \t]*\n/.test(inner)) return true;
  const plain = inner.length > 400 ? inner.slice(0, 400) : inner;
  const bare = plain.replace(/\\(?:text|mathrm|mbox|textbf|operatorname)\*?\s{0,2}\{[^{}]*\}/g, "");
  return /(?:^|[\s,.;:])(?![\\])[A-Za-z]{2,}[\s,.;:]+[A-Za-z]{2,}(?:[\s,.;:]|$)/.test(bare) || /^[\d,.]*\d[\s,.;:]+[A-Za-z]{2,}\s/.test(bare);
}

/** All formulas of a text from `from` to `to`, in order. */
export function* formulasIn(text: string, from: number, to: number): Generator<Formula> {
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    if (code !== 36 && code !== 92) continue;
    const formula = formulaAt(text, at);
    if (formula !== undefined && formula.end <= to) {
      yield formula;
      at = formula.end - 1;
    } else if (code === 92) at++;
  }
}

/** Where the sentence that begins at `from` ends: at a line's end, or behind its full stop, formulas aside; at most `limit`. */
export function sentenceEnd(text: string, from: number, limit: number): number {
  for (let at = from; at < limit; at++) {
    switch (text[at]) {
      case "\n":
      case "。":
        return at;
      case "$":
      case "\\": {
        const formula = formulaAt(text, at);
        if (formula !== undefined && formula.end <= limit) at = formula.end - 1;
        else if (text[at] === "\\") at++;
        break;
      }
      case "!":
      case "?":
      case ".":
        // "3.5", "i.e." and "0.333..." go on; a factorial stands at its number and is followed by more of the formula.
        if (
          /^[.!?]["')*_”]{0,4}(?:\s+[^\s\d]|\s*$)/.test(text.slice(at, Math.min(limit, at + 12))) &&
          !/\b(?:i\.e|e\.g|approx|vs|no|ca)$/i.test(text.slice(Math.max(from, at - 7), at))
        )
          return at;
    }
  }
  return limit;
}

/** A text without what only sets it: Markdown, quotation marks, boxes, the sentence's punctuation, and blanks. */
export function unwrapped(text: string): string {
  let inner = text.trim();
  for (let layers = 0; layers < 6; layers++) {
    const before = inner;
    inner = insideBox(inner)
      .replace(/^(?:(?:[-*+•>]|\d{1,2}\.) )?\s*(?:```(?:math|latex|text|tex)?\s*\n|~~~\n)/, "")
      .replace(/\n\s*(?:```|~~~)$/, "")
      .trim();
    for (const [open, close] of wrappers) {
      if (
        inner.length > open.length + close.length &&
        inner.startsWith(open) &&
        inner.endsWith(close) &&
        !inner.slice(open.length, -close.length).includes(open)
      )
        inner = inner.slice(open.length, -close.length).trim();
    }
    inner = inner
      .replace(/^(?:[*•>+]|-(?= \S)) +/, "")
      .replace(bold, "$1$2")
      .replace(/^\*\*(?=\s*\S)|(?<=\S)\*\*$/g, "")
      .trim();
    inner = withoutStop(inner);
    if (inner === before) break;
  }
  return inner;
}

const wrappers: readonly (readonly [string, string])[] = [
  ["***", "***"],
  ["**", "**"],
  ["__", "__"],
  ["`", "`"],
  ["“", "”"],
  ['"', '"'],
  ["「", "」"],
  ["<", ">"],
];
const bold = /(^|[\s(:])\*{2,3}(?=[^\s*])([^*\n]*[^\s*])\*{2,3}(?=$|[\s.,;:!?)])/g;

/** A text without the punctuation that ends its sentence; dots that go on ("0.333…") stay. */
function withoutStop(text: string): string {
  const last = text.at(-1);
  if (last === undefined || !".,;:。".includes(last)) return text;
  if (last === "." && /(?:\.\.|\\\.)$/.test(text)) return text;
  return text.slice(0, -1).trimEnd();
}
