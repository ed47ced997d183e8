/** One tokenizer for LaTeX, Unicode and calculator syntax. Formatting vanishes here; nothing else of the text does. */
import { bracketOf, commandOf, currencyOf, loweredOf, nameOf, plainLetter, raisedOf, signOf, vulgarOf, withPlainDigits } from "./characters.js";
import { commandMeanings } from "./commands.js";

export type TokenKind = "number" | "word" | "name" | "function" | "command" | "sign" | "open" | "close" | "currency" | "vulgar";

export interface Token {
  readonly kind: TokenKind;
  /** Of a number its digits and point (`.5` is 0.5), of a bracket its shape, of a sign the sign. */
  readonly text: string;
  readonly at: number;
  /** What stands before it: 0 nothing, 1 a thin space, 2 a blank. */
  readonly gap: 0 | 1 | 2;
  /** It stands in running text (`\text{…}`), so a word is a word. */
  readonly plain: boolean;
  /** Of a comma: it stands within a number (`braced`: `{,}`; true: `,\!`). Of a number: its digits were grouped by `comma`, or by something that can mean nothing else. */
  readonly joint?: boolean | "comma" | "braced";
}

const number = /\d+(?:\.\d+)?(?:[eE][+-]?\d+(?![\p{L}\d.]))?|\.\d+(?:[eE][+-]?\d+(?![\p{L}\d.]))?/uy;
/** Groups of three digits that apostrophes or low lines set off: no base and no prime stands before three digits. */
const groupedDigits = /[1-9]\d{0,2}(?:(?:['’]\d{3})+|(?:_\d{3})+)(?:\.\d+)?(?![\d'’_.]\d|\d)/y;
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
  return new Scanner(text).run();
}

class Scanner {
  private readonly tokens: Token[] = [];
  private readonly braces: ("group" | "text" | "labelled")[] = [];
  private at = 0;
  private gap: 0 | 1 | 2 = 0;
  private plain = 0;
  /** The next group has a label behind it, which says nothing: `\underbrace{8}_{\text{total}}`. */
  private labelled = false;

  private readonly text: string;

  constructor(text: string) {
    this.text = withPlainDigits(text);
  }

  run(): Token[] {
    while (this.at < this.text.length) this.step();
    return this.tokens;
  }

  private emit(kind: TokenKind, text: string, length: number, joint?: Token["joint"]): undefined {
    this.tokens.push({ kind, text, at: this.at, gap: this.gap, plain: this.plain > 0, ...(joint && { joint }) });
    this.gap = 0;
    this.at += length;
  }

  private space(size: 1 | 2, length: number): undefined {
    if (size > this.gap) this.gap = size;
    this.at += length;
  }

  private step(): undefined {
    const point = this.text.codePointAt(this.at) as number;
    const wide = point >= 0xff01 && point <= 0xff5e;
    const code = wide ? point - 0xfee0 : point;
    const character = String.fromCodePoint(code);
    if (character === "\\") return this.command();
    if (code <= 32 || code === 0xa0 || (code >= 0x2000 && code <= 0x200a) || code === 0x202f || code === 0x205f || code === 0x3000)
      return this.space(code === 32 || code === 10 || code === 13 || code === 9 ? 2 : 1, 1);
    if (code === 0x60 || (code >= 0x200b && code <= 0x200f) || (code >= 0x2060 && code <= 0x2064) || code === 0xfeff || code === 0xfe0f || code === 0xad) {
      this.at++;
      return;
    }
    if (character === "~" || (code >= 0x2713 && code <= 0x2714) || code === 0x2705 || code === 0x220e || code === 0x25a0) return this.space(1, 1);
    if (!wide && ((code >= 48 && code <= 57) || code === 46) && this.digits()) return;
    if (wide && code >= 48 && code <= 57) return this.wideDigits();
    if (character === "{" || character === "}") return this.brace(character);
    const length = String.fromCodePoint(point).length;
    if ((code >= 65 && code <= 90) || (code >= 97 && code <= 122)) {
      latin.lastIndex = this.at;
      const word = wide ? character : ((latin.exec(this.text) as RegExpExecArray)[0] as string);
      if ((word === "x" || word === "X") && this.isTimes()) return this.emit("sign", "*", 1);
      return this.emit("word", word, word.length);
    }
    const sign = signOf.get(character);
    if (sign !== undefined) return this.emit("sign", sign, length);
    if (code < 128) return this.ascii(character);
    this.other(character, length);
  }

  /** "3 x 4", "6.02 x 10^23": a letter between numbers that is a sign, apart from both or before a power of ten. */
  private isTimes(): boolean {
    const before = this.tokens.at(-1);
    if (before?.kind !== "number") return false;
    const pattern = this.gap > 0 ? /[xX][ \t]+\d/y : /[xX][ \t]*10[ \t]*(?:\^|\*\*|[⁰¹²³⁴-⁹⁻])/y;
    pattern.lastIndex = this.at;
    return pattern.test(this.text);
  }

  private digits(): boolean {
    number.lastIndex = this.at;
    const found = number.exec(this.text)?.[0];
    const before = this.tokens.at(-1);
    if (found === undefined || (found[0] === "." && this.gap === 0 && before?.text === ".")) return false;
    const next = this.text[this.at + found.length];
    if (next === "\u0305" && this.barred()) return true;
    if ((next === "'" || next === "’" || next === "_") && this.groups()) return true;
    this.emit("number", found[0] === "." ? `0${found}` : found, found.length);
    return true;
  }

  /** `12'345'678`, `12_345_678`. */
  private groups(): boolean {
    groupedDigits.lastIndex = this.at;
    const found = groupedDigits.exec(this.text)?.[0];
    if (found === undefined) return false;
    this.emit("number", found.replace(/['’_]/g, ""), found.length, true);
    return true;
  }

  /** `0.1\u03056\u0305`: digits under a bar, each with its own piece of it. */
  private barred(): boolean {
    const pattern = /(\d+\.\d*?)((?:\d\u0305)+)/y;
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return false;
    const [all, before = "", under = ""] = found;
    this.emit("number", before.replace(/\.$/, ""), 0);
    if (before.endsWith(".")) this.emit("sign", ".", 0);
    this.emit("command", "overline", 0);
    this.emit("open", "{", 0);
    this.emit("number", under.replaceAll("\u0305", ""), 0);
    this.emit("close", "}", 0);
    this.at += all.length;
    return true;
  }

  private wideDigits(): undefined {
    let end = this.at;
    while (end < this.text.length && /[\uff10-\uff19\uff0e]/.test(this.text[end] as string)) end++;
    const digits = [...this.text.slice(this.at, end)].map((each) => String.fromCharCode(each.charCodeAt(0) - 0xfee0)).join("");
    this.emit(/^\d+(?:\.\d+)?$/.test(digits) ? "number" : "sign", digits, end - this.at);
  }

  private brace(character: string): undefined {
    const inText = this.braces.at(-1) === "text";
    if (character === "{") {
      const lone = /\{\s{0,4}([,:=<>+.])\s{0,4}\}/y;
      lone.lastIndex = this.at;
      const sign = lone.exec(this.text);
      if (sign !== null) return this.emit("sign", sign[1] as string, sign[0].length, sign[1] === "," ? "braced" : undefined);
      this.braces.push(inText ? "text" : this.labelled ? "labelled" : "group");
      this.labelled = false;
      if (!inText) return this.emit("open", "{", 1);
    } else {
      const closed = this.braces.pop();
      if (!inText) this.emit("close", "}", 1);
      if (closed === "labelled") this.skip(/\s*[_^]\s*\{(?:[^{}]|\{[^{}]*\}){0,200}\}/y);
      if (!inText) return;
    }
    if (inText) this.plain += character === "{" ? 1 : -1;
    this.at++;
  }

  private ascii(character: string): undefined {
    const bracket = bracketOf.get(character);
    if (bracket !== undefined) return this.emit(bracket[0], bracket[1], 1);
    if (character === "$") return this.emit("sign", this.text[this.at + 1] === "$" ? "$$" : "$", this.text[this.at + 1] === "$" ? 2 : 1);
    const before = this.tokens.at(-1);
    const adjacent = before !== undefined && this.gap === 0 && operand.has(before.kind);
    for (const spelling of combined) {
      if (!this.text.startsWith(spelling, this.at)) continue;
      // "5!=120" is a factorial, "x != 3" an inequality.
      if (spelling === "!=" && adjacent) continue;
      return this.emit("sign", combinedSign[spelling] as string, spelling.length);
    }
    // "+-3" is two numbers, "14+-1i" a sum.
    if (character === "+" && this.text[this.at + 1] === "-" && !(before !== undefined && operand.has(before.kind))) return this.emit("sign", "±", 2);
    this.emit("sign", character, 1);
  }

  private other(character: string, length: number): undefined {
    const bracket = bracketOf.get(character);
    if (bracket !== undefined) return this.emit(bracket[0], bracket[1], length);
    const name = nameOf.get(character);
    if (name !== undefined) return this.emit("name", name, length);
    const command = commandOf.get(character);
    if (command !== undefined) return this.emit("command", command, length);
    const currency = currencyOf.get(character);
    if (currency !== undefined) return this.emit("currency", currency, length);
    const vulgar = vulgarOf.get(character);
    if (vulgar !== undefined) return this.emit("vulgar", vulgar, length);
    const fraction = /([⁰¹²³⁴-⁹]+)[⁄∕/]([₀-₉]+)/y;
    fraction.lastIndex = this.at;
    const parts = fraction.exec(this.text);
    if (parts !== null) return this.emit("vulgar", `${onLine(parts[1] as string, raisedOf)}/${onLine(parts[2] as string, loweredOf)}`, parts[0].length);
    const styled = plainLetter(character);
    if (styled !== undefined && /^[A-Za-z]$/.test(styled)) return this.emit("word", styled, length);
    if (styled !== undefined && /^\d$/.test(styled)) return this.styledDigits();
    if (styled !== undefined && nameOf.has(styled)) return this.emit("name", nameOf.get(styled) as string, length);
    if (raisedOf.has(character)) return this.script(raisedOf, "^");
    if (loweredOf.has(character)) return this.script(loweredOf, "_");
    if (!letter.test(character)) return this.emit("sign", character, length);
    let end = this.at + length;
    while (end < this.text.length && letter.test(this.text[end] as string) && !nameOf.has(this.text[end] as string)) end++;
    this.emit("word", this.text.slice(this.at, end), end - this.at);
  }

  /** Digits of a mathematical alphabet, with the point between them. */
  private styledDigits(): undefined {
    const pattern = /(?:[\u{1d7ce}-\u{1d7ff}]|\.(?=[\u{1d7ce}-\u{1d7ff}]))+/uy;
    pattern.lastIndex = this.at;
    const found = (pattern.exec(this.text) as RegExpExecArray)[0];
    const digits = found.normalize("NFKC");
    this.emit(/^\d+(?:\.\d+)?$/.test(digits) ? "number" : "sign", digits, found.length);
  }

  /** Raised or lowered characters in a row, as a braced exponent or index. */
  private script(table: ReadonlyMap<string, string>, sign: "^" | "_"): undefined {
    this.emit("sign", sign, 0);
    this.emit("open", "{", 0);
    let digits = "";
    const flush = (): void => {
      if (digits !== "") this.emit("number", digits, 0);
      digits = "";
    };
    for (;;) {
      const character = table.get(this.text[this.at] ?? "");
      if (character === undefined) break;
      if (/\d/.test(character)) digits += character;
      else {
        flush();
        const bracket = bracketOf.get(character);
        if (bracket !== undefined) this.emit(bracket[0], bracket[1], 0);
        else this.emit(/[a-z]/.test(character) ? "word" : "sign", character, 0);
      }
      this.at++;
    }
    flush();
    this.emit("close", "}", 0);
  }

  private command(): undefined {
    latin.lastIndex = this.at + 1;
    const letters = latin.exec(this.text)?.[0];
    const name = letters ?? this.text[this.at + 1] ?? "";
    const length = name.length + 1;
    // Math delimiters: \( \) \[ \] set nothing.
    if ("()[]".includes(name) || name === "") return this.space(2, length);
    if (name === "\\" || name === "cr" || name === "tabularnewline") return this.row(length);
    if (name === "left" || name === "right") return this.fence(name, length);
    if (name === "begin" || name === "end") return this.environment(name);
    if (name === "not") return this.negated(length);
    if (name === "underbrace" || name === "overbrace") {
      this.labelled = true;
      this.at += length;
      return;
    }
    if (name === "!" && this.tokens.at(-1)?.text === "," && this.tokens.at(-1)?.kind === "sign") {
      this.tokens.push({ ...(this.tokens.pop() as Token), joint: true });
    }
    const meaning = commandMeanings.get(name);
    if (meaning === undefined) return this.emit("command", name, length);
    switch (meaning.does) {
      case "nothing":
        this.at += length;
        if (name.startsWith("fram") || name === "operatorname") this.skip(/\s*\[[^\]]{0,40}\]/y);
        return;
      case "gap":
        return this.space(1, length);
      case "drop":
        this.at += length;
        this.skip(/\*?\s*(?:\[[^\]]{0,40}\])?\s*\{[^{}]{0,80}\}/y);
        return;
      case "text":
      case "roman":
        return this.open(length);
      default:
        return this.emit(meaning.does, meaning.text, length);
    }
  }

  /** The braces of a command whose argument is words. */
  private open(length: number): undefined {
    this.at += length;
    this.skip(/\*/y);
    if (!this.skip(/\s*\{/y)) return;
    if (this.gap === 0 && this.tokens.at(-1)?.kind === "word" && this.tokens.at(-1)?.plain === false) this.gap = 1;
    this.braces.push("text");
    this.plain++;
    const end = this.at;
    // The closing brace is met by `brace`, which takes one level off.
    this.at = end;
  }

  private skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found !== null) this.at += found[0].length;
    return found !== null;
  }

  private row(length: number): undefined {
    this.emit("sign", "\\\\", length);
    this.skip(/\*?\s*\[\s*-?[\d.]{1,6}\s*(?:pt|em|ex|cm|mm|in)\s*\]/y);
  }

  private fence(name: string, length: number): undefined {
    this.at += length;
    this.skip(/\s*/y);
    const next = this.text[this.at] ?? "";
    const side = name === "left" ? "open" : "close";
    if (next === ".") this.at++;
    else if (next === "|") this.emit(side, "|", 1);
    else if (next === "<" || next === ">") this.emit(side, next === "<" ? "⟨" : "⟩", 1);
    else if (this.text.startsWith("\\|", this.at)) this.emit(side, "‖", 2);
    else if (this.text.startsWith("\\vert", this.at)) this.emit(side, "|", 5);
    // A reversed bracket, as of an open interval, closes or opens by its place, not by its shape.
    else if (next === "]" || next === ")" || next === "[" || next === "(") this.emit(side, next, 1);
  }

  private environment(name: string): undefined {
    const pattern = /\\(?:begin|end)\s*\{\s*([A-Za-z]+)\*?\s*\}/y;
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return this.emit("command", name, name.length + 1);
    // These set a formula and part nothing.
    if (/^(?:equation|displaymath|math|center)$/.test(found[1] as string)) return this.space(2, found[0].length);
    this.emit("command", `${name}:${found[1]}`, found[0].length);
    if (name === "begin" && found[1] === "array") this.skip(/\s*(?:\[[^\]]{0,10}\])?\s*\{[^{}]{0,80}\}/y);
  }

  private negated(length: number): undefined {
    const pattern = /\s*(=|\\in(?![A-Za-z])|\\equiv(?![A-Za-z]))/y;
    pattern.lastIndex = this.at + length;
    const found = pattern.exec(this.text);
    if (found === null) return this.emit("command", "not", length);
    this.emit("sign", found[1] === "=" ? "≠" : found[1] === "\\in" ? "∉" : "≢", length + found[0].length);
  }
}
