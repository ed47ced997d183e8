/**
 * JSON that people and programs write into files. What is wrong is told with its place and in the same words on every
 * version of Node; what JSON.parse lets pass and would be lost or harmful later (a key twice, a number beyond all
 * numbers, endless nesting) is refused too.
 */
import type { Json } from "./json.js";

export interface JsonFault {
  /** Index into the text, in UTF-16 units. */
  readonly at: number;
  readonly cause: string;
}

/** Deeper values would exhaust the stack of those who walk through them; no configuration or problem comes near. */
export const deepest = 100;

/** The value of a text, or the first fault in it. */
export function readJson(text: string): { readonly value: Json; readonly fault?: undefined } | { readonly value?: undefined; readonly fault: JsonFault } {
  const fault = faultOf(text);
  return fault === undefined ? { value: JSON.parse(text) as Json } : { fault };
}

/** Line and column of an index, both counted from 1, the column in characters. */
export function placeIn(text: string, at: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, at).split("\n");
  return { line: before.length, column: [...(before.at(-1) as string)].length + 1 };
}

/** What may come next. */
type State = "value" | "value or ]" | "key" | "key or }" | "colon" | "comma";

function faultOf(text: string): JsonFault | undefined {
  /** The keys of each open object; undefined for a list. */
  const open: (Set<string> | undefined)[] = [];
  let state: State = "value";
  let done = false;
  for (let at = 0; ; ) {
    while (isBlank(text.charCodeAt(at))) at++;
    if (at >= text.length) return done ? undefined : { at, cause: open.length === 0 ? "there is no value" : `it ends before ${open.at(-1) ? "}" : "]"}` };
    if (done) return { at, cause: `${shown(text, at)} stands behind the value` };
    const character = text[at] as string;
    const inside = open.at(-1);
    let closed = false;
    if (state === "colon" || (state === "comma" && character === ",")) {
      if (character !== (state === "colon" ? ":" : ",")) return { at, cause: `${shown(text, at)} stands where : is due` };
      state = state === "colon" ? "value" : inside ? "key" : "value";
      at++;
      continue;
    }
    if ((state === "comma" || state === "key or }") && inside && character === "}") closed = true;
    else if ((state === "comma" || state === "value or ]") && !inside && character === "]") closed = true;
    else if (state === "comma") return { at, cause: `${shown(text, at)} stands where , or ${inside ? "}" : "]"} is due` };
    if (closed) {
      open.pop();
      at++;
    } else if (state === "key" || state === "key or }") {
      if (character !== '"') return { at, cause: `${shown(text, at)} stands where a key in double quotes is due` };
      const end = endOfText(text, at);
      if (typeof end !== "number") return end;
      const key = JSON.parse(text.slice(at, end)) as string;
      if (inside?.has(key)) return { at, cause: `the key ${JSON.stringify(key.slice(0, 60))} is there twice` };
      inside?.add(key);
      at = end;
      state = "colon";
      continue;
    } else if (character === "{" || character === "[") {
      if (open.length === deepest) return { at, cause: `it is nested more than ${deepest} deep` };
      open.push(character === "{" ? new Set() : undefined);
      state = character === "{" ? "key or }" : "value or ]";
      at++;
      continue;
    } else {
      const end = character === '"' ? endOfText(text, at) : endOfWord(text, at);
      if (typeof end !== "number") return end;
      at = end;
    }
    state = "comma";
    done = open.length === 0;
  }
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;

/** The index behind a text that begins at `from`, or what is wrong in it. */
function endOfText(text: string, from: number): number | JsonFault {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at + 1;
    if (code < 0x20) return { at, cause: `${shown(text, at)} stands in a text, where it must be escaped` };
    if (code !== 0x5c) continue;
    const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
    escaped.lastIndex = at;
    if (!escaped.test(text)) return at + 1 >= text.length ? { at: from, cause: "a text is not closed" } : { at, cause: `\\${text[at + 1]} is no escape` };
    at = escaped.lastIndex - 1;
  }
  return { at: from, cause: "a text is not closed" };
}

/** The index behind a number, true, false or null that begins at `from`, or what is wrong with it. */
function endOfWord(text: string, from: number): number | JsonFault {
  const word = /[^\s,:[\]{}"]+/y;
  word.lastIndex = from;
  const [found] = word.exec(text) ?? [""];
  if (["true", "false", "null"].includes(found)) return from + found.length;
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(found)) {
    return Number.isFinite(Number(found)) ? from + found.length : { at: from, cause: `the number ${found.slice(0, 30)} is too large` };
  }
  return { at: from, cause: `${/^[\p{C}\p{Z}]|^$/u.test(found) ? shown(text, from) : cut(found)} stands where a value is due` };
}

function shown(text: string, at: number): string {
  const code = text.codePointAt(at) as number;
  if (code < 0x20) return code === 0x09 ? "a tab" : code === 0x0a ? "a line end" : `the control character ${code}`;
  const character = String.fromCodePoint(code);
  // What cannot be seen, such as a byte order mark or a hard space, by its number.
  return /[\p{C}\p{Z}]/u.test(character) ? `the character U+${code.toString(16).toUpperCase().padStart(4, "0")}` : character;
}

const cut = (word: string): string => (word.length > 30 ? `${word.slice(0, 30)}…` : word);
