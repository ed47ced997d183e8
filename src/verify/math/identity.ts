/**
 * Whether two expressions are equal: exact values, then values in prime fields, then enclosures at random points. Different
 * is proved at one point. Equal is exact, or the agreement of every point that was tried, with the bound that the reason states.
 */
import { type Rational, rationalText } from "../number/rational.js";
import { partsOf, some, variablesOf, withParts } from "./build.js";
import { isReal } from "./complex.js";
import { Enclosure } from "./enclose.js";
import { exact, order, sameRational } from "./exact.js";
import { degreeOf, FieldPoint, isFieldExpression, primes } from "./field.js";
import { Calls, isAlike, written } from "./prepare.js";
import { different, equal, unsupported } from "./results.js";
import { atPoints, coarse, type Domain, digits, fine, isApart, isSharp } from "./sampling.js";
import type { Budget, Comparison, Expression } from "./types.js";

/** Fields in which expressions must agree. */
const fieldPoints = 3;

/** Whether a = b for all values of their variables for which both are defined. */
export function compareExpressions(a: Expression, b: Expression, budget: Budget, domain: Domain): Comparison {
  if (isAlike(a, b)) return equal("identity", "both are built alike");
  const bases = [a, b].some((side) => some(side, isPlainLog)) ? [constantE, numberTen] : [undefined];
  let first: Comparison | undefined;
  for (const base of bases) {
    const result = compared(base ? withBase(a, base) : a, base ? withBase(b, base) : b, budget, domain);
    if (result.kind === "equal") return result;
    first ??= result;
  }
  return first as Comparison;
}

const constantE: Expression = { op: "constant", name: "e" };
const numberTen: Expression = { op: "number", value: { n: 10n, d: 1n } };
/** A logarithm whose base is not said: natural or common. */
const isPlainLog = (part: Expression): boolean => part.op === "function" && part.name === "log" && part.of.length === 1;

function withBase(expression: Expression, base: Expression): Expression {
  if (!some(expression, isPlainLog)) return expression;
  if (isPlainLog(expression)) return { op: "function", name: "log", of: [withBase(partsOf(expression)[0] as Expression, base), base] };
  return rebuilt(expression, (part) => withBase(part, base));
}

const rebuilt = (expression: Expression, change: (part: Expression) => Expression): Expression => withParts(expression, partsOf(expression).map(change));

function compared(left: Expression, right: Expression, budget: Budget, domain: Domain): Comparison {
  const [x, y] = [exact(left, budget), exact(right, budget)];
  if (x !== undefined && y !== undefined) {
    const shown = `${short(x)} ${sameRational(x, y) ? "=" : "≠"} ${short(y)}`;
    return sameRational(x, y) ? equal("exact value", shown) : different("exact value", shown);
  }
  if (isInfinite(left) || isInfinite(right)) return infinite(left, right);
  const calls = new Calls((p, q) => compareExpressions(p, q, budget, domain).kind === "equal");
  const [a, b] = [calls.named(written(left, budget)), calls.named(written(right, budget))];
  const variables = [...new Set([...variablesOf(a), ...variablesOf(b)])].sort();
  if (variables.length === 0) return compareConstants(a, b, budget);
  if (isFieldExpression(a, budget) && isFieldExpression(b, budget)) {
    const found = inFields(a, b, budget);
    if (found !== undefined) return found;
  }
  return atPoints(a, b, variables, budget, domain);
}

const short = (value: Rational): string => {
  const text = rationalText(value);
  return text.length > 40 ? `${text.slice(0, 37)}…` : text;
};

const isInfinite = (expression: Expression): boolean => some(expression, (part) => part.op === "constant" && part.name === "infinity");

function infinite(a: Expression, b: Expression): Comparison {
  const sign = (expression: Expression): 1 | -1 | 0 | undefined => {
    if (expression.op === "negate") {
      const of = sign(expression.of);
      return of === 1 ? -1 : of === -1 ? 1 : of;
    }
    if (expression.op === "constant" && expression.name === "infinity") return 1;
    return isInfinite(expression) ? undefined : 0;
  };
  const [x, y] = [sign(a), sign(b)];
  if (x === undefined || y === undefined) return unsupported("infinity", "arithmetic with infinity has no value");
  return x === y ? equal("infinity", "both are infinite") : different("infinity", "one is infinite");
}

function compareConstants(a: Expression, b: Expression, budget: Budget): Comparison {
  const inField = isFieldExpression(a, budget) && isFieldExpression(b, budget);
  for (const bits of [coarse, fine]) {
    const enclosure = new Enclosure(bits, budget);
    const [x, y] = [enclosure.of(a), enclosure.of(b)];
    if (x === undefined || y === undefined) continue;
    if (isApart(x, y, enclosure.reals)) return different("enclosures", `the values differ at ${bits} bits`);
    if (inField) {
      const found = inFields(a, b, budget);
      if (found !== undefined) return found;
    }
    if (bits === fine && isSharp(x, enclosure.reals) && isSharp(y, enclosure.reals)) return equal("enclosures", `the values agree to ${digits(bits)} digits`);
  }
  return unsupported("enclosures", "a value is undefined, or could not be found closely enough");
}

/** Undefined where too few fields have a value for both. */
function inFields(a: Expression, b: Expression, budget: Budget): Comparison | undefined {
  let agreed = 0;
  for (let i = 0; i < primes.length && agreed < fieldPoints; i++) {
    const point = new FieldPoint(primes[i] as number, i, budget);
    const [x, y] = [point.evaluate(a), point.evaluate(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) continue;
    if (x !== y) return different("prime fields", `they differ modulo ${point.p} at a random point`);
    agreed++;
  }
  if (agreed < fieldPoints) return undefined;
  const bound = fieldPoints * Math.log2(Math.max(1, degreeOf(a) + degreeOf(b)) / 2 ** 25.9);
  return equal("prime fields", `they agree at random points of ${fieldPoints} prime fields; if they differed, the chance is below 2^${Math.ceil(bound)}`);
}

/** Whether the numerators of two differences of sides are each other's multiple, so that they are 0 together wherever both are defined. */
export function haveSameRoots(a: Expression, b: Expression, budget: Budget): boolean {
  if (!isFieldExpression(a, budget) || !isFieldExpression(b, budget)) return false;
  let agreed = 0;
  for (let i = 0; i < primes.length && agreed < fieldPoints; i++) {
    const [first, second] = [new FieldPoint(primes[i] as number, i, budget), new FieldPoint(primes[i] as number, i + primes.length, budget)];
    const [x, y, z, w] = [first.fraction(a)[0], first.fraction(b)[0], second.fraction(a)[0], second.fraction(b)[0]];
    if (Number.isNaN(x + y + z + w)) continue;
    if ((x * w) % first.p !== (y * z) % first.p || x === 0 || y === 0) return false;
    agreed++;
  }
  return agreed === fieldPoints;
}

/** −1, 0 or 1 as one constant is below, equal to or above another; undefined where it is not known. */
export function orderOf(a: Expression, b: Expression, budget: Budget): -1 | 0 | 1 | undefined {
  const [p, q] = [exact(a, budget), exact(b, budget)];
  if (p !== undefined && q !== undefined) return Math.sign(order(p, q)) as -1 | 0 | 1;
  const result = compareExpressions(a, b, budget, { positive: false });
  if (result.kind === "equal") return 0;
  if (result.kind !== "different") return undefined;
  for (const bits of [coarse, fine]) {
    const enclosure = new Enclosure(bits, budget);
    const [x, y] = [enclosure.of(a), enclosure.of(b)];
    if (x === undefined || y === undefined || !isReal(x) || !isReal(y)) continue;
    const order = enclosure.reals.compare(x.re, y.re);
    if (order === 1 || order === -1) return order;
  }
  return undefined;
}
