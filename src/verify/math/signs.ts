/** Families written with ±, as the values that they stand for. */
import { negate, partsOf, some, withParts } from "./build.js";
import type { Budget, Expression, Value } from "./types.js";

/** Signs that are chosen apart, at most. */
const mostChoices = 6;

const isChoice = ({ op }: Expression): boolean => op === "plus-minus";

/** Expressions of a value, in order. */
function expressionsOf(value: Value): readonly Expression[] {
  switch (value.kind) {
    case "number":
      return [value.expression];
    case "quantity":
      return [value.amount];
    case "tuple":
      return value.items.flatMap(expressionsOf);
    case "assignment":
      return expressionsOf(value.value);
    case "relation":
      return value.sides;
    default:
      return [];
  }
}

export const hasSigns = (value: Value): boolean => expressionsOf(value).some((expression) => some(expression, isChoice));

function choicesIn(expression: Expression): { count: number; lower: boolean } {
  let count = expression.op === "plus-minus" ? 1 : 0;
  let lower = expression.op === "plus-minus" && expression.upper === -1;
  for (const part of partsOf(expression)) {
    const inner = choicesIn(part);
    count += inner.count;
    lower ||= inner.lower;
  }
  return { count, lower };
}

/** The expression with signs chosen: `signs` gives the sign of ± for each place in turn. */
function chosen(expression: Expression, next: () => 1 | -1): Expression {
  if (!some(expression, isChoice)) return expression;
  if (expression.op === "plus-minus") {
    const sign = next() * expression.upper;
    const of = chosen(expression.of, next);
    return sign === 1 ? of : negate(of);
  }
  return withParts(
    expression,
    partsOf(expression).map((part) => chosen(part, next)),
  );
}

function mapped(value: Value, change: (expression: Expression) => Expression): Value {
  switch (value.kind) {
    case "number":
      return { ...value, expression: change(value.expression) };
    case "quantity":
      return { ...value, amount: change(value.amount) };
    case "tuple":
      return { ...value, items: value.items.map((item) => mapped(item, change)) };
    case "assignment":
      return { ...value, value: mapped(value.value, change) };
    case "relation":
      return { ...value, sides: value.sides.map(change) };
    default:
      return value;
  }
}

/** The families that a value with ± may be: all its signs alike, and, where no ∓ ties them, each sign apart. */
export function familiesOf(value: Value, budget: Budget): readonly (readonly Value[])[] {
  const found = expressionsOf(value).map(choicesIn);
  const count = found.reduce((sum, each) => sum + each.count, 0);
  if (count === 0) return [[value]];
  const linked = ([1, -1] as const).map((sign) => mapped(value, (expression) => chosen(expression, () => sign)));
  if (count === 1 || count > mostChoices || found.some(({ lower }) => lower)) return [linked];
  const apart: Value[] = [];
  for (let choice = 0; choice < 2 ** count; choice++) {
    budget.spend(50);
    let place = 0;
    apart.push(mapped(value, (expression) => chosen(expression, () => ((choice >> place++) & 1 ? -1 : 1))));
  }
  return [apart, linked];
}
