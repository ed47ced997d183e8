/** Where a parser stands in the tokens of an answer, and what it may still do. */
import type { Token, TokenKind } from "./token.js";
import type { Budget } from "./types.js";

/** Thrown where tokens are no answer; `read` turns it into a reading. */
export class Unreadable extends Error {
  constructor(
    readonly reason: string,
    readonly at: number,
  ) {
    super(reason);
  }
}

/** How words that may be units or variables are taken. */
export interface Spelling {
  /** `unit`: a known unit behind a number is one (`12 cm`). `product`: its letters are variables. */
  readonly words: "unit" | "product";
  /** Whether a letter that stands apart behind a number is a unit (`12 m`). */
  readonly letters: "unit" | "variable";
  /** Whether `C_5^2` and `A_5^2` count choices and arrangements of 2 from 5, or are powers. */
  readonly counts?: true;
}

/** Steps that a failed attempt costs. */
const failure = 100;

/** Brackets within brackets that are read. */
const deepest = 48;

export class Cursor {
  at = 0;
  /** Bars that are open, so that the next one closes. */
  bars = 0;
  private depth = 0;
  /** A square bracket closes here, whichever way it faces: an interval such as ]0, 1[. */
  squareCloses = false;
  /** A bar parts here, as in {x | x > 0}. */
  barParts = false;
  /** Variables that a sum or product binds, `i` among them. */
  readonly bound: string[] = [];
  /** Kinds of ambiguity that were met. */
  readonly met = new Set<"words" | "letters" | "counts">();

  private readonly tokens: Token[];

  constructor(
    tokens: readonly Token[],
    readonly budget: Budget,
    readonly spelling: Spelling,
  ) {
    this.tokens = [...tokens];
  }

  /** Puts other tokens in the place of the next one. */
  replace(...tokens: Token[]): void {
    this.budget.spend(tokens.length);
    this.tokens.splice(this.at, 1, ...tokens);
  }

  peek(ahead = 0): Token | undefined {
    return this.tokens[this.at + ahead];
  }

  next(): Token {
    this.budget.spend(1);
    const token = this.tokens[this.at];
    if (token === undefined) return this.fail("it ends too early");
    this.at++;
    return token;
  }

  get ended(): boolean {
    return this.at >= this.tokens.length;
  }

  is(kind: TokenKind, text: string, ahead = 0): boolean {
    const token = this.tokens[this.at + ahead];
    return token !== undefined && token.kind === kind && token.text === text;
  }

  isSign(text: string, ahead = 0): boolean {
    return this.is("sign", text, ahead);
  }

  take(kind: TokenKind, text: string): boolean {
    if (!this.is(kind, text)) return false;
    this.next();
    return true;
  }

  takeSign(text: string): boolean {
    return this.take("sign", text);
  }

  expect(kind: TokenKind, text: string): void {
    if (!this.take(kind, text)) this.fail(`“${text}” is missing`);
  }

  /** Position in the text. */
  get position(): number {
    return this.tokens[this.at]?.at ?? (this.tokens.at(-1)?.at ?? -1) + 1;
  }

  fail(reason: string): never {
    throw new Unreadable(reason, this.position);
  }

  /** Reads something inside of something; bars of outside are closed to it. */
  inside<T>(read: () => T): T {
    if (++this.depth > deepest) this.fail(`it is nested more than ${deepest} deep`);
    const { bars, squareCloses, barParts } = this;
    this.bars = 0;
    this.squareCloses = false;
    this.barParts = false;
    const result = read();
    [this.bars, this.squareCloses, this.barParts] = [bars, squareCloses, barParts];
    this.depth--;
    return result;
  }

  /** One level deeper, for recursion that no bracket marks. */
  deeper<T>(read: () => T): T {
    if (++this.depth > deepest) this.fail(`it is nested more than ${deepest} deep`);
    const result = read();
    this.depth--;
    return result;
  }

  /** Goes back to where `read` began when it fails. */
  attempt<T>(read: () => T): T | undefined {
    const { at, bars, depth, squareCloses, barParts } = this;
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      [this.at, this.bars, this.depth, this.squareCloses, this.barParts] = [at, bars, depth, squareCloses, barParts];
      // Attempts within attempts that all fail double with every level.
      this.budget.spend(failure);
      return undefined;
    }
  }
}
