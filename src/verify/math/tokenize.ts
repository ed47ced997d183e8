/** One tokenizer for LaTeX, Unicode and calculator syntax. Formatting vanishes here; nothing else of the text does. */
import { bracketOf, commandOf, currencyOf, loweredOf, nameOf, plainLetter, raisedOf, signOf, vulgarOf, withPlainDigits } from "./characters.js";
import { Scan, type Token, type TokenKind } from "./token.js";
import { command } from "./tokenize-commands.js";
import { digits, isTimes, script, styledDigits, wideDigits } from "./tokenize-digits.js";

const latin = /[A-Za-z]+/y;
const letter = /^\p{L}$/u;
const combined = ["<=>", "+/-", "...", "<=", ">=", "!=", "==", "**", "->", "=>", "=<"];
const combinedSign: { readonly [spelling: string]: string } = {
  "<=>": "⇔",
  "+/-": "±",
  "...": "…",
  "<=": "≤",
  "=<": "≤",
  ">=": "≥",
  "!=": "≠",
  "==": "=",
  "**": "**",
  "->": "→",
  "=>": "⇒",
};
const operand: ReadonlySet<TokenKind> = new Set(["number", "word", "name", "close", "vulgar"]);

const onLine = (digits: string, table: ReadonlyMap<string, string>): string => [...digits].map((digit) => table.get(digit)).join("");

/** The tokens of a text, in order. Any string has some; what no rule knows becomes a sign of itself. */
export function tokenize(text: string): Token[] {
  const scan = new Scan(withPlainDigits(text));
  while (scan.at < scan.text.length) step(scan);
  return scan.tokens;
}

function step(s: Scan): undefined {
  const point = s.text.codePointAt(s.at) as number;
  const wide = point >= 0xff01 && point <= 0xff5e;
  const code = wide ? point - 0xfee0 : point;
  const character = String.fromCodePoint(code);
  if (character === "\\") return command(s);
  if (code <= 32 || code === 0xa0 || (code >= 0x2000 && code <= 0x200a) || code === 0x202f || code === 0x205f || code === 0x3000)
    return s.space(code === 32 || code === 10 || code === 13 || code === 9 ? 2 : 1, 1);
  if (code === 0x60 || (code >= 0x200b && code <= 0x200f) || (code >= 0x2060 && code <= 0x2064) || code === 0xfeff || code === 0xfe0f || code === 0xad) {
    s.at++;
    return;
  }
  if (character === "~" || (code >= 0x2713 && code <= 0x2714) || code === 0x2705 || code === 0x220e || code === 0x25a0) return s.space(1, 1);
  if (!wide && ((code >= 48 && code <= 57) || code === 46) && digits(s)) return;
  if (wide && code >= 48 && code <= 57) return wideDigits(s);
  if (character === "{" || character === "}") return brace(s, character);
  const length = String.fromCodePoint(point).length;
  if ((code >= 65 && code <= 90) || (code >= 97 && code <= 122)) {
    latin.lastIndex = s.at;
    const word = wide ? character : ((latin.exec(s.text) as RegExpExecArray)[0] as string);
    if ((word === "x" || word === "X") && isTimes(s)) return s.emit("sign", "*", 1);
    return s.emit("word", word, word.length);
  }
  const sign = signOf.get(character);
  if (sign !== undefined) return s.emit("sign", sign, length);
  if (code < 128) return ascii(s, character);
  other(s, character, length);
}

function brace(s: Scan, character: string): undefined {
  const inText = s.braces.at(-1) === "text" || s.at === s.textAt;
  if (character === "{") {
    const lone = /\{\s{0,4}([,:=<>+.])\s{0,4}\}/y;
    lone.lastIndex = s.at;
    const sign = lone.exec(s.text);
    if (sign !== null) return s.emit("sign", sign[1] as string, sign[0].length, sign[1] === "," ? "braced" : undefined);
    s.braces.push(inText ? "text" : s.labelled ? "labelled" : "group");
    s.labelled = false;
    if (!inText) return s.emit("open", "{", 1);
  } else {
    const closed = s.braces.pop();
    if (!inText) s.emit("close", "}", 1);
    if (closed === "labelled") s.skip(/\s*[_^]\s*\{(?:[^{}]|\{[^{}]*\}){0,200}\}/y);
    if (!inText) return;
  }
  if (inText) s.plain += character === "{" ? 1 : -1;
  s.at++;
}

function ascii(s: Scan, character: string): undefined {
  const bracket = bracketOf.get(character);
  if (bracket !== undefined) return s.emit(bracket[0], bracket[1], 1);
  if (character === "$") return s.emit("sign", s.text[s.at + 1] === "$" ? "$$" : "$", s.text[s.at + 1] === "$" ? 2 : 1);
  const before = s.tokens.at(-1);
  const adjacent = before !== undefined && s.gap === 0 && operand.has(before.kind);
  for (const spelling of combined) {
    if (!s.text.startsWith(spelling, s.at)) continue;
    // "5!=120" is a factorial, "x != 3" an inequality.
    if (spelling === "!=" && adjacent) continue;
    return s.emit("sign", combinedSign[spelling] as string, spelling.length);
  }
  // "+-3" is two numbers, "14+-1i" a sum.
  if (character === "+" && s.text[s.at + 1] === "-" && !(before !== undefined && operand.has(before.kind))) return s.emit("sign", "±", 2);
  s.emit("sign", character, 1);
}

function other(s: Scan, character: string, length: number): undefined {
  const bracket = bracketOf.get(character);
  if (bracket !== undefined) return s.emit(bracket[0], bracket[1], length);
  const name = nameOf.get(character);
  if (name !== undefined) return s.emit("name", name, length);
  const command = commandOf.get(character);
  if (command !== undefined) return s.emit("command", command, length);
  const currency = currencyOf.get(character);
  if (currency !== undefined) return s.emit("currency", currency, length);
  const vulgar = vulgarOf.get(character);
  if (vulgar !== undefined) return s.emit("vulgar", vulgar, length);
  const fraction = /([⁰¹²³⁴-⁹]+)[⁄∕/]([₀-₉]+)/y;
  fraction.lastIndex = s.at;
  const parts = fraction.exec(s.text);
  if (parts !== null) return s.emit("vulgar", `${onLine(parts[1] as string, raisedOf)}/${onLine(parts[2] as string, loweredOf)}`, parts[0].length);
  const styled = plainLetter(character);
  if (styled !== undefined && /^[A-Za-z]$/.test(styled)) return s.emit("word", styled, length);
  if (styled !== undefined && /^\d$/.test(styled)) return styledDigits(s);
  if (styled !== undefined && nameOf.has(styled)) return s.emit("name", nameOf.get(styled) as string, length);
  if (raisedOf.has(character)) return script(s, raisedOf, "^");
  if (loweredOf.has(character)) return script(s, loweredOf, "_");
  if (!letter.test(character)) return s.emit("sign", character, length);
  let end = s.at + length;
  while (end < s.text.length && letter.test(s.text[end] as string) && !nameOf.has(s.text[end] as string)) end++;
  s.emit("word", s.text.slice(s.at, end), end - s.at);
}
