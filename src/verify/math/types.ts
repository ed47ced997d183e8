/** What the two stages of reading and comparing hand to each other: expressions, values, readings, comparisons, and the budget of both. */
import type { Rational } from "../number/rational.js";

/** Functions of real or complex numbers that are known by name. */
export type FunctionName =
  | "root"
  | "exp"
  | "ln"
  | "log"
  | "sin"
  | "cos"
  | "tan"
  | "cot"
  | "sec"
  | "csc"
  | "arcsin"
  | "arccos"
  | "arctan"
  | "sinh"
  | "cosh"
  | "tanh"
  | "abs"
  | "floor"
  | "ceil"
  | "factorial"
  | "double-factorial"
  | "binomial"
  | "permutations"
  | "gcd"
  | "lcm"
  | "min"
  | "max"
  | "mod"
  | "conjugate"
  | "re"
  | "im";

export type ConstantName = "pi" | "e" | "i" | "infinity";

/** An expression. `root` has the radicand and the index, `log` the argument and the base, `±` the sign that its upper reading has. */
export type Expression =
  | { readonly op: "number"; readonly value: Rational /** Digits after the point as written, where there is one. */; readonly decimals?: number }
  | { readonly op: "symbol"; readonly name: string }
  | { readonly op: "constant"; readonly name: ConstantName }
  | { readonly op: "add"; readonly terms: readonly Expression[] }
  | { readonly op: "multiply"; readonly factors: readonly Expression[] }
  | { readonly op: "divide"; readonly over: Expression; readonly under: Expression }
  | { readonly op: "negate"; readonly of: Expression }
  | { readonly op: "power"; readonly base: Expression; readonly exponent: Expression }
  | { readonly op: "plus-minus"; readonly upper: 1 | -1; readonly of: Expression }
  | { readonly op: "degrees"; readonly of: Expression }
  | { readonly op: "function"; readonly name: FunctionName; readonly of: readonly Expression[] }
  | { readonly op: "apply"; readonly name: string; readonly to: readonly Expression[] }
  | {
      readonly op: "sum" | "product";
      readonly variable: string;
      readonly from: Expression;
      readonly to: Expression;
      readonly body: Expression;
    }
  /** Within reading only: something between brackets that is no number. */
  | { readonly op: "structure"; readonly value: Value };

export type RelationSign = "=" | "≠" | "<" | "≤" | ">" | "≥" | "≈" | "∼" | "≡" | "∥" | "⊥" | "∈";

/** Powers of base units (`m`, `kg`, `s`, `USD`, or a noun), and what one of the unit is in them. */
export interface Unit {
  readonly powers: { readonly [base: string]: number };
  readonly factor: Rational;
  readonly name: string;
}

/** An end of an interval; without a value it is infinite. */
export interface Bound {
  readonly value?: Expression;
  readonly closed: boolean;
}

export interface Interval {
  readonly low: Bound;
  readonly high: Bound;
}

/** What an answer can be. */
export type Value =
  | { readonly kind: "number"; readonly expression: Expression }
  | { readonly kind: "quantity"; readonly amount: Expression; readonly unit: Unit }
  | { readonly kind: "list"; readonly items: readonly Value[]; readonly word?: "and" | "or" }
  | { readonly kind: "tuple"; readonly items: readonly Value[]; readonly open: "(" | "[" | "⟨" | "]"; readonly close: ")" | "]" | "⟩" | "[" }
  | { readonly kind: "set"; readonly items: readonly Value[] }
  | {
      readonly kind: "intervals";
      readonly parts: readonly Interval[];
      readonly points: readonly Expression[];
      readonly variable?: string;
      readonly without?: readonly Expression[];
    }
  | { readonly kind: "matrix"; readonly rows: readonly (readonly Value[])[]; readonly fence: "" | "(" | "|" | "{" }
  | { readonly kind: "relation"; readonly sides: readonly Expression[]; readonly signs: readonly RelationSign[]; readonly modulus?: Expression }
  | { readonly kind: "assignment"; readonly name: string; readonly value: Value }
  | { readonly kind: "numeral"; readonly digits: string; readonly negative: boolean; readonly base: number }
  | { readonly kind: "time"; readonly parts: readonly string[]; readonly half?: "am" | "pm" }
  | { readonly kind: "ratio"; readonly parts: readonly Expression[] }
  | { readonly kind: "choice"; readonly letter: string; readonly text: string }
  | { readonly kind: "text"; readonly text: string };

/** A text as it was read: whole, or not at all. `tokens` is its normalised spelling, empty where the text says nothing. */
export type Reading =
  | {
      readonly kind: "value";
      readonly value: Value /** Other readings of an ambiguous spelling, the likelier first. */;
      readonly others: readonly Value[];
      readonly tokens: string;
    }
  | { readonly kind: "unsupported"; readonly reason: string /** Character of the text. */; readonly at: number; readonly tokens: string }
  | { readonly kind: "over-budget"; readonly reason: string; readonly tokens: string };

export type ComparisonKind = "equal" | "different" | "unsupported" | "out-of-steps";

/** The outcome of a comparison: the rule that decided, and one clause that explains it. */
export interface Comparison {
  readonly kind: ComparisonKind;
  readonly rule: string;
  readonly reason: string;
}

/** Thrown within the two stages when the budget is used up; `read` and `compare` turn it into their results. */
export class OutOfSteps extends Error {}

/** Thrown where a number is beyond what is computed: at a random point another point will do. */
export class TooLarge extends OutOfSteps {}

/** Steps that reading and comparing may take; the same input takes the same number everywhere. */
export class Budget {
  private left: number;
  constructor(readonly steps = 400_000) {
    this.left = steps;
  }

  /** Takes steps off. Throws OutOfSteps where there are not enough. */
  spend(steps: number): void {
    this.left -= steps;
    if (!(this.left >= 0)) throw new OutOfSteps(`more than ${this.steps} steps`);
  }

  get spent(): number {
    return Math.min(this.steps, this.steps - this.left);
  }
}
