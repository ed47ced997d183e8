/** Comparison of values of one thing: numbers, quantities, choices, tuples, matrices, numerals, times, ratios, words. */
import { add, multiply, negate } from "./build.js";
import { type Compare, compareMatrices, compareTuples } from "./collections.js";
import { compareNumbers, compareQuantities, compareRatios, numeralAndNumber, numeralValue, quantityAndNumber, ratioAndNumber, type Terms } from "./numbers.js";
import { different, equal, kinds, named } from "./results.js";
import type { Comparison, Expression, Value } from "./types.js";

/** Values of one thing. */
export function single(a: Value, b: Value, terms: Terms, compare: Compare): Comparison {
  if (a.kind === "number" && b.kind === "number") return compareNumbers(a.expression, b.expression, terms);
  if (a.kind === "quantity" || b.kind === "quantity") {
    if (a.kind === "quantity" && b.kind === "quantity") return compareQuantities(a, b, terms);
    if (a.kind === "quantity" && b.kind === "number") return quantityAndNumber(a, b.expression, terms, true);
    if (b.kind === "quantity" && a.kind === "number") return quantityAndNumber(b, a.expression, terms, false);
    return kinds(a, b);
  }
  if (a.kind === "choice" || b.kind === "choice") return choices(a, b, terms);
  if (a.kind === "tuple" && b.kind === "tuple" && !isNested(a) && !isNested(b)) return compareTuples(a, b, compare, terms);
  if ((a.kind === "matrix" || a.kind === "tuple") && (b.kind === "matrix" || b.kind === "tuple")) return compareMatrices(a, b, compare, terms);
  if (a.kind === "matrix" || b.kind === "matrix") return determinants(a, b, terms, compare);
  if (a.kind === "numeral" || b.kind === "numeral") return numerals(a, b, terms);
  if (a.kind === "ratio" || b.kind === "ratio" || a.kind === "time" || b.kind === "time") return clocksAndRatios(a, b, terms);
  if (a.kind === "text" && b.kind === "text") return a.text === b.text ? equal("text", "the words agree") : different("text", "the words differ");
  return kinds(a, b);
}

const isNested = (value: Value): boolean => value.kind === "tuple" && value.items.some(({ kind }) => kind === "tuple");

function choices(a: Value, b: Value, terms: Terms): Comparison {
  const letter = (value: Value): string | undefined => {
    if (value.kind === "choice") return value.letter;
    if (value.kind === "text") return value.text.toUpperCase();
    return value.kind === "number" && value.expression.op === "symbol" ? value.expression.name : undefined;
  };
  const [x, y] = [letter(a), letter(b)];
  if (x !== undefined && x === y) return equal("choice", "the letters agree");
  const [choice, other] = a.kind === "choice" ? [a, b] : [b as Extract<Value, { kind: "choice" }>, a];
  if (other.kind === "text" && choice.text === other.text) return equal("choice", "the text of the option agrees");
  terms.budget.spend(1);
  return different("choice", `${x ?? named(a)} is not ${y ?? named(b)}`);
}

/** A matrix against what is none: of one entry it is that entry, between bars it is its determinant. */
function determinants(a: Value, b: Value, terms: Terms, compare: Compare): Comparison {
  const [x, y] = [a, b].map((value) => (value.kind === "matrix" ? (soleNumber(value) ?? value) : value)) as [Value, Value];
  return x === a && y === b ? kinds(a, b) : compare(x, y, terms);
}

function soleNumber({ rows, fence }: Extract<Value, { kind: "matrix" }>): Value | undefined {
  if (rows.length === 1 && rows[0]?.length === 1) return rows[0][0];
  if (fence !== "|" || rows.length > 4 || rows.some((row) => row.length !== rows.length)) return undefined;
  const entries = rows.map((row) => row.flatMap((entry) => (entry.kind === "number" ? [entry.expression] : [])));
  return entries.some((row) => row.length !== rows.length) ? undefined : { kind: "number", expression: determinant(entries) };
}

/** By the first row. */
function determinant(rows: readonly (readonly Expression[])[]): Expression {
  const [first, ...rest] = rows as [readonly Expression[], ...(readonly Expression[])[]];
  if (rest.length === 0) return first[0] as Expression;
  return add(
    ...first.map((entry, i) => {
      const term = multiply(entry, determinant(rest.map((row) => row.filter((_, j) => j !== i))));
      return i % 2 === 0 ? term : negate(term);
    }),
  );
}

function numerals(a: Value, b: Value, terms: Terms): Comparison {
  if (a.kind === "numeral" && b.kind === "numeral") {
    if (a.base !== b.base) return different("numerals", `base ${a.base} is not base ${b.base}`);
    return numeralValue(a) === numeralValue(b) ? equal("numerals", "the digits agree") : different("numerals", "the digits differ");
  }
  if (a.kind === "numeral" && b.kind === "number") return numeralAndNumber(a, b.expression, terms);
  if (b.kind === "numeral" && a.kind === "number") return numeralAndNumber(b, a.expression, terms);
  return kinds(a, b);
}

function clocksAndRatios(a: Value, b: Value, terms: Terms): Comparison {
  if (a.kind === "time" && b.kind === "time") return sameTime(a, b) ? equal("time", "the times agree") : different("time", "the times differ");
  if (a.kind === "ratio" && b.kind === "ratio") return compareRatios(a.parts, b.parts, terms);
  if (a.kind === "ratio" && b.kind === "number") return ratioAndNumber(a.parts, b.expression, terms);
  if (b.kind === "ratio" && a.kind === "number") return ratioAndNumber(b.parts, a.expression, terms);
  return kinds(a, b);
}

type Time = Extract<Value, { kind: "time" }>;

/** Whether two times agree. Of 24 hours where one has its half of the day and the other an hour that names it. */
function sameTime(a: Time, b: Time): boolean {
  const told = ({ parts, half }: Time): boolean => half !== undefined || Number(parts[0]) > 12 || Number(parts[0]) === 0;
  const clock = ({ parts, half }: Time): string => {
    const [hour = 0, minute = 0, second = 0] = parts.map(Number);
    return `${half === undefined ? hour % 24 : (hour % 12) + (half === "pm" ? 12 : 0)}:${minute}:${second}`;
  };
  return told(a) === told(b) && clock(a) === clock(b);
}
