/** Expressions with structures in them as values: a structure is its value, and matrices and tuples can be scaled and added. */
import { add, multiply, negate, some } from "./build.js";
import { Unreadable } from "./cursor.js";
import type { Expression, Value } from "./types.js";

/** What an expression is. Throws Unreadable for arithmetic of structures that has no meaning here. */
export function asValue(expression: Expression): Value {
  if (expression.op === "structure") return expression.value;
  if (!some(expression, ({ op }) => op === "structure")) return { kind: "number", expression };
  return arranged(expression);
}

const refuse = (): never => {
  throw new Unreadable("arithmetic with what is no number", 0);
};

function arranged(expression: Expression): Value {
  if (expression.op === "structure") return expression.value;
  switch (expression.op) {
    case "negate": {
      const value = asValue(expression.of);
      if (value.kind === "numeral") return { ...value, negative: !value.negative };
      if (value.kind === "quantity") return { ...value, amount: negate(value.amount) };
      return mapped(value, negate);
    }
    case "multiply": {
      const structures = expression.factors.filter((factor) => some(factor, ({ op }) => op === "structure"));
      const scalars = expression.factors.filter((factor) => !structures.includes(factor));
      const [point, place] = [scalars[0], structures[0]];
      // "P(3, 4)" is a point with its name.
      if (
        scalars.length === 1 &&
        point?.op === "symbol" &&
        /^[A-Z]/.test(point.name) &&
        expression.factors[0] === point &&
        place?.op === "structure" &&
        place.value.kind === "tuple"
      )
        return { kind: "assignment", name: point.name, value: place.value };
      if (structures.length !== 1) return refuse();
      return mapped(asValue(structures[0] as Expression), (entry) => multiply(...scalars, entry));
    }
    case "divide":
      return mapped(asValue(expression.over), (entry) => ({ op: "divide", over: entry, under: expression.under }));
    case "add":
      return difference(expression.terms) ?? expression.terms.map(asValue).reduce(summed);
    default:
      return refuse();
  }
}

/** ℝ − {0}: a set without some of its points. */
function difference(terms: readonly Expression[]): Value | undefined {
  const [from, taken] = terms as [Expression, Expression?];
  if (terms.length !== 2 || from.op !== "structure" || from.value.kind !== "intervals" || taken?.op !== "negate" || taken.of.op !== "structure")
    return undefined;
  const points = taken.of.value.kind === "set" ? taken.of.value.items.flatMap((item) => (item.kind === "number" ? [item.expression] : [])) : [];
  return points.length === 0 || taken.of.value.kind !== "set" || points.length !== taken.of.value.items.length
    ? undefined
    : { ...from.value, without: [...(from.value.without ?? []), ...points] };
}

/** Entry by entry. */
function mapped(value: Value, change: (entry: Expression) => Expression): Value {
  const one = (entry: Value): Value => (entry.kind === "number" ? { kind: "number", expression: change(entry.expression) } : refuse());
  if (value.kind === "matrix" && value.fence === "(") return { ...value, rows: value.rows.map((row) => row.map(one)) };
  if (value.kind === "tuple" && value.open !== "[") return { ...value, items: value.items.map(one) };
  return refuse();
}

function summed(a: Value, b: Value): Value {
  const both = (x: Value | undefined, y: Value | undefined): Value =>
    x?.kind === "number" && y?.kind === "number" ? { kind: "number", expression: add(x.expression, y.expression) } : refuse();
  if (a.kind === "matrix" && b.kind === "matrix" && a.fence === "(" && b.fence === "(" && a.rows.length === b.rows.length)
    return { ...a, rows: a.rows.map((row, i) => (row.length === b.rows[i]?.length ? row.map((entry, j) => both(entry, b.rows[i]?.[j])) : refuse())) };
  if (a.kind === "tuple" && b.kind === "tuple" && a.open === "(" && b.open === "(" && a.items.length === b.items.length)
    return { ...a, items: a.items.map((entry, i) => both(entry, b.items[i])) };
  return refuse();
}
