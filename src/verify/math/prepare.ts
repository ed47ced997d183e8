/** Expressions made ready for evaluation: finite sums written out, functions without a known meaning as unknowns. */
import { add, multiply, partsOf, some, substitute, withParts } from "./build.js";
import { exact, isWhole } from "./exact.js";
import { type Budget, type Expression, OutOfSteps } from "./types.js";

/** Terms of a sum or product that are written out. */
const mostTerms = 400;

/** Sums and products with whole limits, and a body that is no number, as their terms. */
export function written(expression: Expression, budget: Budget): Expression {
  if (!some(expression, ({ op }) => op === "sum" || op === "product")) return expression;
  if (expression.op === "sum" || expression.op === "product") {
    const value = exact(expression, budget);
    if (value !== undefined) return { op: "number", value };
    const from = exact(expression.from, budget);
    const to = exact(expression.to, budget);
    if (from === undefined || to === undefined || !isWhole(from) || !isWhole(to)) return expression;
    if (to.n - from.n >= BigInt(mostTerms)) throw new OutOfSteps("a sum has too many terms");
    const terms: Expression[] = [];
    for (let i = from.n; i <= to.n; i++) {
      budget.spend(50);
      terms.push(written(substitute(expression.body, new Map([[expression.variable, { op: "number", value: { n: i, d: 1n } }]])), budget));
    }
    const empty: Expression = { op: "number", value: { n: expression.op === "sum" ? 0n : 1n, d: 1n } };
    return terms.length === 0 ? empty : expression.op === "sum" ? add(...terms) : multiply(...terms);
  }
  return withParts(
    expression,
    partsOf(expression).map((part) => written(part, budget)),
  );
}

/** Numbers calls of unknown functions: two calls of one function with equal arguments are one unknown. */
export class Calls {
  private readonly known: { readonly name: string; readonly to: readonly Expression[]; readonly symbol: Expression }[] = [];

  constructor(private readonly isEqual: (a: Expression, b: Expression) => boolean) {}

  named(expression: Expression): Expression {
    if (!some(expression, ({ op }) => op === "apply")) return expression;
    const inner = withParts(
      expression,
      partsOf(expression).map((part) => this.named(part)),
    );
    if (inner.op !== "apply") return inner;
    const { name, to } = inner;
    const found = this.known.find(
      (call) => call.name === name && call.to.length === to.length && call.to.every((part, i) => this.isEqual(part, to[i] as Expression)),
    );
    if (found !== undefined) return found.symbol;
    const symbol: Expression = { op: "symbol", name: `${name}(${this.known.length})` };
    this.known.push({ name, to, symbol });
    return symbol;
  }
}

/** Whether two expressions are built alike. */
export function isAlike(a: Expression, b: Expression): boolean {
  if (a === b) return true;
  if (a.op !== b.op) return false;
  switch (a.op) {
    case "number":
      return b.op === "number" && a.value.n === b.value.n && a.value.d === b.value.d;
    case "symbol":
    case "constant":
      return a.name === (b as typeof a).name;
    case "plus-minus":
      if (a.upper !== (b as typeof a).upper) return false;
      break;
    case "function":
    case "apply":
      if (a.name !== (b as typeof a).name) return false;
      break;
    case "sum":
    case "product":
      if (a.variable !== (b as typeof a).variable) return false;
      break;
    case "structure":
      return false;
  }
  const [left, right] = [partsOf(a), partsOf(b)];
  return left.length === right.length && left.every((part, i) => isAlike(part, right[i] as Expression));
}
