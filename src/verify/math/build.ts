/** Small expressions, and questions about expressions. */
import { type Rational, rational } from "../number/rational.js";
import type { Expression, FunctionName, Value } from "./types.js";

export const numberOf = (value: Rational | bigint | number, decimals?: number): Expression => ({
  op: "number",
  value: typeof value === "object" ? value : rational(BigInt(value), 1n),
  ...(decimals !== undefined && { decimals }),
});
export const symbolOf = (name: string): Expression => ({ op: "symbol", name });
export const add = (...terms: Expression[]): Expression => (terms.length === 1 ? (terms[0] as Expression) : { op: "add", terms });
export const multiply = (...factors: Expression[]): Expression => (factors.length === 1 ? (factors[0] as Expression) : { op: "multiply", factors });
export const divide = (over: Expression, under: Expression): Expression => ({ op: "divide", over, under });
export const power = (base: Expression, exponent: Expression): Expression => ({ op: "power", base, exponent });
export const call = (name: FunctionName, ...of: Expression[]): Expression => ({ op: "function", name, of });
/** Something that is no number, within reading. */
export const structure = (value: Value): Expression => ({ op: "structure", value });
export const subtract = (a: Expression, b: Expression): Expression => add(a, negate(b));

/** −a, with the sign of a plain number taken into it. */
export function negate(of: Expression): Expression {
  if (of.op === "number") return { ...of, value: { n: -of.value.n, d: of.value.d } };
  return of.op === "negate" ? of.of : { op: "negate", of };
}

/** Constants by the names of words and commands. */
export const constants: { readonly [name: string]: Expression } = {
  pi: { op: "constant", name: "pi" },
  e: { op: "constant", name: "e" },
  i: { op: "constant", name: "i" },
  infinity: { op: "constant", name: "infinity" },
};

/** The parts of an expression, one level down. */
export function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.op) {
    case "add":
      return expression.terms;
    case "multiply":
      return expression.factors;
    case "divide":
      return [expression.over, expression.under];
    case "power":
      return [expression.base, expression.exponent];
    case "negate":
    case "plus-minus":
    case "degrees":
      return [expression.of];
    case "function":
      return expression.of;
    case "apply":
      return expression.to;
    case "sum":
    case "product":
      return [expression.from, expression.to, expression.body];
    default:
      return [];
  }
}

/** The same expression with other parts, given in the order of `partsOf`. */
export function withParts(expression: Expression, parts: readonly Expression[]): Expression {
  const [a, b, c] = parts as [Expression, Expression, Expression];
  switch (expression.op) {
    case "add":
      return { op: "add", terms: parts };
    case "multiply":
      return { op: "multiply", factors: parts };
    case "divide":
      return divide(a, b);
    case "power":
      return power(a, b);
    case "negate":
      return negate(a);
    case "plus-minus":
    case "degrees":
      return { ...expression, of: a };
    case "function":
      return { ...expression, of: parts };
    case "apply":
      return { ...expression, to: parts };
    case "sum":
    case "product":
      return { ...expression, from: a, to: b, body: c };
    default:
      return expression;
  }
}

/** Whether some part of an expression, or it itself, is of a kind. */
export function some(expression: Expression, test: (part: Expression) => boolean): boolean {
  return test(expression) || partsOf(expression).some((part) => some(part, test));
}

/** Adds the free variables of an expression to `names`. */
export function variablesOf(expression: Expression, names: Set<string> = new Set()): Set<string> {
  if (expression.op === "symbol") names.add(expression.name);
  else if (expression.op === "sum" || expression.op === "product") {
    const inner = variablesOf(expression.body);
    inner.delete(expression.variable);
    for (const name of inner) names.add(name);
    variablesOf(expression.from, names);
    variablesOf(expression.to, names);
  } else for (const part of partsOf(expression)) variablesOf(part, names);
  return names;
}

export const isConstant = (expression: Expression): boolean => variablesOf(expression).size === 0 && !some(expression, ({ op }) => op === "apply");

/** The expression with expressions for variables. */
export function substitute(expression: Expression, values: ReadonlyMap<string, Expression>): Expression {
  if (expression.op === "symbol") return values.get(expression.name) ?? expression;
  const parts = partsOf(expression);
  return parts.length === 0
    ? expression
    : withParts(
        expression,
        parts.map((part) => substitute(part, values)),
      );
}
