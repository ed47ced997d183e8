/**
 * Formulas that an answer states, in a grammar of their own: numbers, named quantities, + − * / ^, brackets and a few
 * functions. They are parsed to a tree and evaluated in float64; nothing of an answer is ever run as a program.
 */

/** A formula as a tree. */
export type Expression =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "call"; readonly name: string; readonly of: readonly Expression[] }
  | { readonly kind: "binary"; readonly operator: "+" | "-" | "*" | "/" | "^"; readonly left: Expression; readonly right: Expression };

const functions: { readonly [name: string]: { readonly arity: number; readonly run: (...values: number[]) => number } } = {
  sqrt: { arity: 1, run: Math.sqrt },
  ln: { arity: 1, run: Math.log },
  log: { arity: 1, run: Math.log },
  log10: { arity: 1, run: Math.log10 },
  exp: { arity: 1, run: Math.exp },
  abs: { arity: 1, run: Math.abs },
  round: { arity: 1, run: Math.round },
  floor: { arity: 1, run: Math.floor },
  ceil: { arity: 1, run: Math.ceil },
  min: { arity: 2, run: Math.min },
  max: { arity: 2, run: Math.max },
};

/** Longest formula, in characters, and deepest nesting: what bounds the work. */
const longest = 2000;
const deepest = 100;

const token = /\s*(?:(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|([\p{L}_][\p{L}\p{N}_]*)|(\*\*|[-+*/^(),]))/uy;

/** The tree of a formula; what stands before an equals sign ("bmi = …") is its name and no part of it. Undefined for what is none, in whole or in part. */
export function parseFormula(text: string): Expression | undefined {
  const plain = text
    .replace(/^[^=]*=(?!=)/, "")
    .replace(/[×·⋅]/g, "*")
    .replace(/[÷∕]/g, "/")
    .replace(/[−–]/g, "-")
    .replace(/²/g, "^2")
    .replace(/³/g, "^3")
    .trim();
  if (plain === "" || plain.length > longest) return undefined;
  const tokens: string[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < plain.length) {
    const match = token.exec(plain);
    if (match === null) return undefined;
    tokens.push(match[0].trim());
  }
  const reader = new Reader(tokens);
  const tree = reader.sum(0);
  return tree !== undefined && reader.done ? tree : undefined;
}

class Reader {
  private at = 0;

  constructor(private readonly tokens: readonly string[]) {}

  get done(): boolean {
    return this.at === this.tokens.length;
  }

  private take(...any: readonly string[]): string | undefined {
    const next = this.tokens[this.at];
    if (next === undefined || !any.includes(next)) return undefined;
    this.at++;
    return next;
  }

  sum(depth: number): Expression | undefined {
    return this.chain(["+", "-"], () => this.product(depth));
  }

  private product(depth: number): Expression | undefined {
    return this.chain(["*", "/"], () => this.signed(depth));
  }

  private chain(operators: readonly ("+" | "-" | "*" | "/")[], part: () => Expression | undefined): Expression | undefined {
    let left = part();
    while (left !== undefined) {
      const operator = this.take(...operators) as (typeof operators)[number] | undefined;
      if (operator === undefined) return left;
      const right = part();
      left = right && { kind: "binary", operator, left, right };
    }
    return undefined;
  }

  /** A sign binds weaker than a power: −x² is −(x²). */
  private signed(depth: number): Expression | undefined {
    const sign = this.take("+", "-");
    if (sign === undefined) return this.power(depth);
    if (depth > deepest) return undefined;
    const of = this.signed(depth + 1);
    if (of === undefined || sign === "+") return of;
    return { kind: "binary", operator: "-", left: { kind: "number", value: 0 }, right: of };
  }

  private power(depth: number): Expression | undefined {
    const base = this.atom(depth);
    if (base === undefined || this.take("^", "**") === undefined) return base;
    if (depth > deepest) return undefined;
    const exponent = this.signed(depth + 1);
    return exponent && { kind: "binary", operator: "^", left: base, right: exponent };
  }

  private atom(depth: number): Expression | undefined {
    const next = this.tokens[this.at];
    if (next === undefined || depth > deepest) return undefined;
    if (/^[\d.]/.test(next)) {
      this.at++;
      return { kind: "number", value: Number(next) };
    }
    if (next === "(") {
      this.at++;
      const inside = this.sum(depth + 1);
      return this.take(")") === undefined ? undefined : inside;
    }
    if (!/^[\p{L}_]/u.test(next)) return undefined;
    this.at++;
    return this.tokens[this.at] === "(" ? this.call(next.toLowerCase(), depth) : { kind: "name", name: nameOf(next) };
  }

  private call(name: string, depth: number): Expression | undefined {
    this.at++;
    const of: Expression[] = [];
    do {
      const argument = this.sum(depth + 1);
      if (argument === undefined) return undefined;
      of.push(argument);
    } while (this.take(",") !== undefined);
    const known = Object.hasOwn(functions, name) ? functions[name] : undefined;
    return this.take(")") !== undefined && known?.arity === of.length ? { kind: "call", name, of } : undefined;
  }
}

/** Names of quantities without regard to case. */
export const nameOf = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, "_");

/** The value for given quantities; NaN where one is missing or the arithmetic has none. */
export function evaluate(tree: Expression, values: ReadonlyMap<string, number>): number {
  switch (tree.kind) {
    case "number":
      return tree.value;
    case "name":
      return values.get(tree.name) ?? (tree.name === "pi" || tree.name === "π" ? Math.PI : Number.NaN);
    case "call":
      return (functions[tree.name] as (typeof functions)[string]).run(...tree.of.map((each) => evaluate(each, values)));
    case "binary": {
      const [a, b] = [evaluate(tree.left, values), evaluate(tree.right, values)];
      if (tree.operator === "+") return a + b;
      if (tree.operator === "-") return a - b;
      if (tree.operator === "*") return a * b;
      return tree.operator === "/" ? a / b : a ** b;
    }
  }
}

/** The quantities that a formula names, constants aside. */
export function namesIn(tree: Expression, found: Set<string> = new Set()): Set<string> {
  if (tree.kind === "name" && tree.name !== "pi" && tree.name !== "π") found.add(tree.name);
  if (tree.kind === "call") for (const each of tree.of) namesIn(each, found);
  if (tree.kind === "binary") for (const each of [tree.left, tree.right]) namesIn(each, found);
  return found;
}
