/** Digits of all kinds as tokens: grouped, under a bar, raised and lowered, wide and styled ones. */
import { bracketOf } from "./characters.js";
import type { Scan } from "./token.js";

const number = /\d+(?:\.\d+)?(?:[eE][+-]?\d+(?![\p{L}\d.]))?|\.\d+(?:[eE][+-]?\d+(?![\p{L}\d.]))?/uy;
/** Groups of three digits that apostrophes or low lines set off: no base and no prime stands before three digits. */
const groupedDigits = /[1-9]\d{0,2}(?:(?:['’]\d{3})+|(?:_\d{3})+)(?:\.\d+)?(?![\d'’_.]\d|\d)/y;

/** Groups as points set them off before a comma, or two and more of them: "1.234.567,89". */
const pointedDigits = /[1-9]\d{0,2}(?:\.\d{3}){2,20}(?:,\d{1,40})?(?![.,]?\d)/y;
/** Lakhs and crores, told from a list by a group that begins with 0: "1,00,000". */
const indianDigits = /(?=[\d,]{0,30},0)[1-9]\d?(?:,\d{2}){1,10},\d{3}(?:\.\d{1,40})?(?!,?\d)/y;

/** A number, if one stands here. */
export function digits(s: Scan): boolean {
  number.lastIndex = s.at;
  const found = number.exec(s.text)?.[0];
  const before = s.tokens.at(-1);
  if (found === undefined || (found[0] === "." && s.gap === 0 && before?.text === ".")) return false;
  const next = s.text[s.at + found.length];
  if (next === "\u0305" && barred(s)) return true;
  if ((next === "'" || next === "’" || next === "_") && groups(s)) return true;
  if ((next === "." || next === ",") && groupsOfOthers(s)) return true;
  s.emit("number", found[0] === "." ? `0${found}` : found, found.length);
  return true;
}

/** `12'345'678`, `12_345_678`. */
function groups(s: Scan): boolean {
  groupedDigits.lastIndex = s.at;
  const found = groupedDigits.exec(s.text)?.[0];
  if (found === undefined) return false;
  s.emit("number", found.replace(/['’_]/g, ""), found.length, true);
  return true;
}

function groupsOfOthers(s: Scan): boolean {
  pointedDigits.lastIndex = s.at;
  const pointed = pointedDigits.exec(s.text)?.[0];
  indianDigits.lastIndex = s.at;
  const found = pointed ?? indianDigits.exec(s.text)?.[0];
  if (found === undefined) return false;
  s.emit("number", pointed === undefined ? found.replaceAll(",", "") : found.replaceAll(".", "").replace(",", "."), found.length, true);
  return true;
}

/** `0.1\u03056\u0305`: digits under a bar, each with its own piece of it. */
function barred(s: Scan): boolean {
  const pattern = /(\d+\.\d*?)((?:\d\u0305)+)/y;
  pattern.lastIndex = s.at;
  const found = pattern.exec(s.text);
  if (found === null) return false;
  const [all, before = "", under = ""] = found;
  s.emit("number", before.replace(/\.$/, ""), 0);
  if (before.endsWith(".")) s.emit("sign", ".", 0);
  s.emit("command", "overline", 0);
  s.emit("open", "{", 0);
  s.emit("number", under.replaceAll("\u0305", ""), 0);
  s.emit("close", "}", 0);
  s.at += all.length;
  return true;
}

/** Digits as wide as ideographs. */
export function wideDigits(s: Scan): undefined {
  let end = s.at;
  while (end < s.text.length && /[\uff10-\uff19\uff0e]/.test(s.text[end] as string)) end++;
  const digits = [...s.text.slice(s.at, end)].map((each) => String.fromCharCode(each.charCodeAt(0) - 0xfee0)).join("");
  s.emit(/^\d+(?:\.\d+)?$/.test(digits) ? "number" : "sign", digits, end - s.at);
}

/** Digits of a mathematical alphabet, with the point between them. */
export function styledDigits(s: Scan): undefined {
  const pattern = /(?:[\u{1d7ce}-\u{1d7ff}]|\.(?=[\u{1d7ce}-\u{1d7ff}]))+/uy;
  pattern.lastIndex = s.at;
  const found = (pattern.exec(s.text) as RegExpExecArray)[0];
  const digits = found.normalize("NFKC");
  s.emit(/^\d+(?:\.\d+)?$/.test(digits) ? "number" : "sign", digits, found.length);
}

/** Raised or lowered characters in a row, as a braced exponent or index. */
export function script(s: Scan, table: ReadonlyMap<string, string>, sign: "^" | "_"): undefined {
  s.emit("sign", sign, 0);
  s.emit("open", "{", 0);
  let digits = "";
  const flush = (): void => {
    if (digits !== "") s.emit("number", digits, 0);
    digits = "";
  };
  for (;;) {
    const character = table.get(s.text[s.at] ?? "");
    if (character === undefined) break;
    if (/\d/.test(character)) digits += character;
    else {
      flush();
      const bracket = bracketOf.get(character);
      if (bracket !== undefined) s.emit(bracket[0], bracket[1], 0);
      else s.emit(/[a-z]/.test(character) ? "word" : "sign", character, 0);
    }
    s.at++;
  }
  flush();
  s.emit("close", "}", 0);
}

/** "3 x 4", "6.02 x 10^23": a letter between numbers that is a sign, apart from both or before a power of ten. */
export function isTimes(s: Scan): boolean {
  const before = s.tokens.at(-1);
  if (before?.kind !== "number") return false;
  const pattern = s.gap > 0 ? /[xX][ \t]+\d/y : /[xX][ \t]*10[ \t]*(?:\^|\*\*|[⁰¹²³⁴-⁹⁻])/y;
  pattern.lastIndex = s.at;
  return pattern.test(s.text);
}
