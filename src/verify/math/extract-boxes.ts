/** Boxes of a response: `\boxed{…}`, `\fbox{…}`, `\framebox{…}`, with nested braces, a blank before the brace, or no brace at all. */
import type { Candidate } from "./extract-types.js";

/** `\b` of a badly escaped text is a backspace; some writers leave the backslash out. */
const command = /(?:\\(?:boxed|fbox|framebox)|[\b]oxed|(?<![A-Za-z\\])boxed(?=\{))(?![A-Za-z])[ \t]{0,8}/g;
/** What a box without braces can hold: a number, a fraction, a letter. */
const unbraced = /(?:[-+−]?(?:\d[\d,.]*\d|\d)|[-+−]?\\[dt]?frac(?:\d\d|\{[^{}\n]{1,100}\}\{[^{}\n]{1,100}\})|\\pi(?![A-Za-z])|[A-Za-z](?![A-Za-z]))/y;
/** Instructions that are repeated, not answers: nothing in the box, or a placeholder. */
const placeholder =
  /^(?:[\s.…_?$]|\\(?:l|c)?dots|\\ )*$|^[\s$]*(?:\\(?:text|mathrm|textbf|textit)\{)?[\s[<({]*(?:the |your |my |insert |put )?(?:final |correct )?(?:answer|solution|result|number|value|letter|option|choice|expression|content|ans)(?: here| letter)?[\s\]>)}]*$/i;

/** A box; `closed` is false where its brace never ends, which is then the end of the text. */
export interface Box extends Candidate {
  readonly closed: boolean;
}

/** The outermost boxes of a text from `from` on, in order, in one pass; those that repeat an instruction are left out. */
export function boxesIn(text: string, from = 0): Box[] {
  const found: Box[] = [];
  command.lastIndex = from;
  let ends: Int32Array | undefined;
  let base = from;
  for (let match = command.exec(text); match !== null; match = command.exec(text)) {
    const at = command.lastIndex;
    const open = text[at] === "{" ? at : braceOnNextLine(text, at);
    if (open < 0) {
      const bare = withoutBrace(text, match.index, at);
      if (bare !== undefined) found.push(bare);
      continue;
    }
    if (ends === undefined) [ends, base] = [closingBraces(text, open), open];
    const close = ends[open - base] as number;
    const closed = close > 0;
    const end = closed ? close : text.length;
    const inside = text.slice(open + 1, end);
    // Where a box has no end, a later one may lie inside of it, and is looked for.
    if (!placeholder.test(inside)) found.push({ rule: "box", start: match.index, end: closed ? end + 1 : end, textStart: open + 1, text: inside, closed });
    if (closed) command.lastIndex = end + 1;
  }
  // Of boxes without an end only one behind all others counts, and of several the innermost.
  return found.filter((box, i) => box.closed || i === found.length - 1);
}

function braceOnNextLine(text: string, at: number): number {
  if (text[at] !== "\n") return -1;
  let next = at;
  while (next < at + 8 && /\s/.test(text[next] ?? "")) next++;
  return text[next] === "{" ? next : -1;
}

function withoutBrace(text: string, start: number, at: number): Box | undefined {
  unbraced.lastIndex = at;
  const match = unbraced.exec(text);
  if (match === null) return undefined;
  const end = at + match[0].length;
  // "\boxed A number" and "\boxed 12 and" are words of an instruction or a formula, only the last of a line is an answer.
  if (!/^[ \t]*(?:\$|\\[)\]]|[.!]?[ \t]*(?:\n|$)|[.!] )/.test(text.slice(end, end + 16))) return undefined;
  return { rule: "box", start, end, textStart: at, text: match[0], closed: true };
}

/** For each opening brace its closing one, 0 for those without: by offset from `from`. An escaped brace is a character. */
function closingBraces(text: string, from: number): Int32Array {
  const ends = new Int32Array(text.length - from);
  const open: number[] = [];
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 92) at++;
    else if (code === 123) open.push(at);
    else if (code === 125) {
      const start = open.pop();
      if (start !== undefined) ends[start - from] = at;
    }
  }
  return ends;
}

/** The content of a text that is nothing but a box, and of boxes within. */
export function insideBox(text: string): string {
  let inner = text.trim();
  for (let depth = 0; depth < 8; depth++) {
    const [box] = /^(?:\\(?:boxed|fbox|framebox)|[\b]oxed|boxed)(?![A-Za-z])/.test(inner) ? boxesIn(inner) : [];
    if (box === undefined || !box.closed || box.start !== 0 || box.end !== inner.length) return inner;
    inner = box.text.trim();
  }
  return inner;
}
