/** Tokens of an answer, and where a scan for them stands. */

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

/** A text on its way into tokens. */
export class Scan {
  readonly tokens: Token[] = [];
  readonly braces: ("group" | "text" | "labelled")[] = [];
  at = 0;
  gap: 0 | 1 | 2 = 0;
  /** Braces of running text that are open. */
  plain = 0;
  /** For each \left that is open, the token that it gave; -1 where it gave none. */
  readonly fences: number[] = [];
  /** Where a brace opens running text without a command before it. */
  textAt = -1;
  /** The next group has a label behind it, which says nothing: `\underbrace{8}_{\text{total}}`. */
  labelled = false;

  constructor(readonly text: string) {}

  /** A token of what stands here, `length` characters long. */
  emit(kind: TokenKind, text: string, length: number, joint?: Token["joint"]): undefined {
    this.tokens.push({ kind, text, at: this.at, gap: this.gap, plain: this.plain > 0, ...(joint && { joint }) });
    this.gap = 0;
    this.at += length;
  }

  /** A blank, or something that is one. */
  space(size: 1 | 2, length: number): undefined {
    if (size > this.gap) this.gap = size;
    this.at += length;
  }

  /** Passes over what a sticky pattern finds here. */
  skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found !== null) this.at += found[0].length;
    return found !== null;
  }
}
