/** One spelling of a value: what was read, for people and for classes of equal answers. */
import { rationalText } from "../number/rational.js";
import type { Bound, Expression, Interval, Reading, Value } from "./types.js";

/** The spelling of what was read, or the tokens where nothing could be. */
export const spell = (reading: Reading): string => (reading.kind === "value" ? spellValue(reading.value) : reading.tokens);

const join = (items: readonly Value[], by = ", "): string => items.map(spellValue).join(by);

/** A value in plain text. */
export function spellValue(value: Value): string {
  switch (value.kind) {
    case "number":
      return spellExpression(value.expression);
    case "quantity":
      return `${spellExpression(value.amount, 2)}${value.unit.name === "percent" || value.unit.name === "%" ? "%" : ` ${value.unit.name}`}`.trimEnd();
    case "list":
      return join(value.items);
    case "tuple":
      return `${value.open}${join(value.items)}${value.close}`;
    case "set":
      return `{${join(value.items)}}`;
    case "intervals": {
      const parts = value.parts.map(spellInterval);
      if (value.points.length > 0) parts.push(`{${value.points.map((point) => spellExpression(point)).join(", ")}}`);
      const without = value.without === undefined ? "" : ` ∖ {${value.without.map((point) => spellExpression(point)).join(", ")}}`;
      return `${parts.join(" ∪ ") || "{}"}${without}`;
    }
    case "matrix":
      return `[${value.rows.map((row) => `[${join(row)}]`).join(", ")}]`;
    case "relation":
      return `${value.sides.map((side, i) => `${i > 0 ? ` ${value.signs[i - 1]} ` : ""}${spellExpression(side)}`).join("")}${value.modulus ? ` (mod ${spellExpression(value.modulus)})` : ""}`;
    case "assignment":
      return `${value.name} = ${spellValue(value.value)}`;
    case "numeral":
      return `${value.negative ? "-" : ""}${value.digits}_${value.base}`;
    case "time":
      return `${value.parts.join(":")}${value.half === undefined ? "" : ` ${value.half}`}`;
    case "ratio":
      return value.parts.map((part) => spellExpression(part, 2)).join(":");
    case "choice":
      return `(${value.letter})${value.text === "" ? "" : ` ${value.text}`}`;
    case "text":
      return value.text;
  }
}

const end = (bound: Bound, infinite: string): string => (bound.value === undefined ? infinite : spellExpression(bound.value));
const spellInterval = ({ low, high }: Interval): string => `${low.closed ? "[" : "("}${end(low, "-∞")}, ${end(high, "∞")}${high.closed ? "]" : ")"}`;

/** Levels of binding: 0 sum, 1 product, 2 power, 3 operand. */
const level = (expression: Expression): number => {
  switch (expression.op) {
    case "add":
    case "negate":
    case "plus-minus":
      return 0;
    case "number":
      return expression.value.n < 0n ? 0 : expression.value.d === 1n ? 3 : 1;
    case "multiply":
    case "divide":
    case "sum":
    case "product":
      return 1;
    case "power":
    case "degrees":
      return 2;
    default:
      return 3;
  }
};

/** An expression in plain text, in brackets where it binds less than its place asks. */
export function spellExpression(expression: Expression, least = 0): string {
  const text = bare(expression);
  return level(expression) < least ? `(${text})` : text;
}

function bare(expression: Expression): string {
  switch (expression.op) {
    case "number":
      return rationalText(expression.value);
    case "symbol":
      return expression.name;
    case "constant":
      return { pi: "π", e: "e", i: "i", infinity: "∞" }[expression.name];
    case "add":
      return expression.terms.map((term, i) => spellTerm(term, i === 0)).join("");
    case "multiply":
      return expression.factors.map((factor) => spellExpression(factor, 2)).join("·");
    case "divide":
      return `${spellExpression(expression.over, 1)}/${spellExpression(expression.under, 2)}`;
    case "negate":
      return `-${spellExpression(expression.of, 1)}`;
    case "power":
      return `${spellExpression(expression.base, 3)}^${spellExpression(expression.exponent, 3)}`;
    case "plus-minus":
      return `${expression.upper === 1 ? "±" : "∓"}${spellExpression(expression.of, 1)}`;
    case "degrees":
      return `${spellExpression(expression.of, 3)}°`;
    case "function":
      return `${expression.name}(${expression.of.map((of) => spellExpression(of)).join(", ")})`;
    case "apply":
      return `${expression.name}(${expression.to.map((of) => spellExpression(of)).join(", ")})`;
    case "sum":
    case "product":
      return `${expression.op}(${expression.variable} = ${spellExpression(expression.from)}..${spellExpression(expression.to)}, ${spellExpression(expression.body)})`;
    case "structure":
      return spellValue(expression.value);
  }
}

function spellTerm(term: Expression, first: boolean): string {
  if (term.op === "negate") return `${first ? "-" : " - "}${spellExpression(term.of, 1)}`;
  if (term.op === "plus-minus") return `${first ? "" : " "}${term.upper === 1 ? "±" : "∓"}${first ? "" : " "}${spellExpression(term.of, 1)}`;
  if (term.op === "number" && term.value.n < 0n) return `${first ? "-" : " - "}${rationalText({ n: -term.value.n, d: term.value.d })}`;
  return `${first ? "" : " + "}${spellExpression(term, 1)}`;
}
