/**
 * Whether two expressions are equal: exact values, then values in prime fields, then enclosures at random points. Different
 * is proved at one point. Equal is exact, or the agreement of every point that was tried, with the bound that the reason states.
 */
import { type Rational, rationalText } from "../number/rational.js";
import { partsOf, some, variablesOf, withParts } from "./build.js";
import { type Complex, isReal } from "./complex.js";
import { Enclosure } from "./enclose.js";
import { exact, order, sameRational } from "./exact.js";
import { degreeOf, FieldPoint, isFieldExpression, primes } from "./field.js";
import { draw } from "./points.js";
import { Calls, isAlike, written } from "./prepare.js";
import { type Reals, real0 } from "./real.js";

import { type Budget, type Comparison, type Expression, TooLarge } from "./types.js";

export const equal = (rule: string, reason: string): Comparison => ({ kind: "equal", rule, reason });
export const different = (rule: string, reason: string): Comparison => ({ kind: "different", rule, reason });
export const unsupported = (rule: string, reason: string): Comparison => ({ kind: "unsupported", rule, reason });

/** Bits of a first and of a last enclosure. */
const coarse = 128;
const fine = 448;
/** Fields in which expressions must agree, and points at which enclosures must. */
const fieldPoints = 3;
const realPoints = 6;
const mostTrials = 30;

export interface Domain {
  /** Variables are above 0. */
  readonly positive: boolean;
}

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

const isSharp = (x: Complex, reals: Reals): boolean => reals.isSharp(x.re, reals.bits - 64) && (x.im === undefined || reals.isSharp(x.im, reals.bits - 64));

/** Whether two boxes have nothing in common. */
function isApart(x: Complex, y: Complex, reals: Reals): boolean {
  const order = reals.compare(x.re, y.re);
  if (order === 1 || order === -1) return true;
  if (x.im === undefined && y.im === undefined) return false;
  const other = reals.compare(x.im ?? real0, y.im ?? real0);
  return other === 1 || other === -1;
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

/** Sizes and signs of the points that are tried, in turn; 0 is a size beyond all numbers of the expressions. */
const plan: readonly (readonly [size: number, signs: "+" | "-" | "±"])[] = [
  [1, "+"],
  [3, "±"],
  [0, "+"],
  [0, "-"],
  [0.5, "+"],
  [8, "±"],
  [40, "±"],
  [2, "-"],
  [1, "±"],
  [4, "+"],
];

/** A point: whole and above 0 for variables that count, else a fraction. */
function pointOf(variables: readonly string[], counting: ReadonlySet<string>, trial: number, beyond: number, domain: Domain): Map<string, Rational> {
  const point = new Map<string, Rational>();
  const [size, signs] = plan[trial % plan.length] as (typeof plan)[number];
  for (const name of variables) {
    const random = draw(`point ${name}`, trial);
    if (counting.has(name)) point.set(name, { n: BigInt(1 + (random % 12)), d: 1n });
    else {
      const negative = !domain.positive && (signs === "-" || (signs === "±" && (random & 1) === 1));
      const share = size === 0 ? 0.5 + (random >>> 1) / 2 ** 32 : ((random >>> 1) + 1) / 2 ** 31;
      const whole = Math.round(share * (size || beyond) * 2 ** 20) + 1;
      point.set(name, { n: BigInt(negative ? -whole : whole), d: 2n ** 20n });
    }
  }
  return point;
}

/** The largest size of a number in an expression, up to a million. */
function largestIn(expression: Expression): number {
  if (expression.op === "number") return Math.min(1e6, Math.abs(Number(expression.value.n) / Number(expression.value.d)) || 0);
  return Math.max(0, ...partsOf(expression).map(largestIn));
}

/** Variables that stand where only whole numbers make sense. */
function countingOf(expression: Expression, found: Set<string>): Set<string> {
  if (expression.op === "function" && counted.has(expression.name)) for (const part of expression.of) variablesOf(part, found);
  if (expression.op === "power" && isNegative(expression.base)) variablesOf(expression.exponent, found);
  if (expression.op === "sum" || expression.op === "product") for (const end of [expression.from, expression.to]) variablesOf(end, found);
  for (const part of partsOf(expression)) countingOf(part, found);
  return found;
}

const counted: ReadonlySet<string> = new Set(["factorial", "binomial", "permutations", "gcd", "lcm", "mod"]);
const isNegative = (expression: Expression): boolean => expression.op === "negate" || (expression.op === "number" && expression.value.n < 0n);

/** Functions whose values on one side of a point say nothing of the other side. */
const isPiecewise = (part: Expression): boolean => part.op === "function" && pieces.has(part.name);
const pieces: ReadonlySet<string> = new Set(["abs", "floor", "ceil", "min", "max"]);

function atPoints(a: Expression, b: Expression, variables: readonly string[], budget: Budget, domain: Domain): Comparison {
  const counting = countingOf(b, countingOf(a, new Set()));
  const any = (test: (part: Expression) => boolean): boolean => some(a, test) || some(b, test);
  const usesI = any((part) => part.op === "constant" && part.name === "i");
  const piecewise = any(isPiecewise);
  const needed = piecewise ? realPoints * 2 : realPoints;
  const beyond = 3 * Math.max(largestIn(a), largestIn(b), 4);
  let agreed = 0;
  let outside = 0;
  let apartOutside: Comparison | undefined;
  for (let trial = 0; trial < mostTrials && agreed < needed; trial++) {
    const point = pointOf(variables, counting, trial, beyond, domain);
    const at = compareAt(a, b, point, budget);
    if (at === undefined) continue;
    // Roots and logarithms of what is below 0 have several values: such points tell little, but where a size is taken.
    if (at.branched && !usesI) {
      if (piecewise && at.sizesDiffer) return differentAt(point);
      if (at.apart) apartOutside ??= differentAt(point);
      else outside++;
    } else if (at.apart) return differentAt(point);
    else if (at.sharp) agreed++;
  }
  if (agreed >= needed) return equal("random points", `they agree at ${agreed} random points, to ${digits(coarse)} digits or more`);
  if (agreed === 0 && apartOutside !== undefined) return apartOutside;
  if (agreed === 0 && outside >= needed) return equal("random points", `they agree at ${outside} random points, to ${digits(coarse)} digits or more`);
  return unsupported("random points", "too few points have a value that is known");
}

const digits = (bits: number): number => Math.floor((bits - 64) * Math.LOG10E * Math.LN2);

interface AtPoint {
  readonly branched: boolean;
  readonly apart: boolean;
  readonly sharp: boolean;
  readonly sizesDiffer: boolean;
}

/** Both values at a point; undefined where one has none, or none that is known. */
function compareAt(a: Expression, b: Expression, point: ReadonlyMap<string, Rational>, budget: Budget): AtPoint | undefined {
  let found: AtPoint | undefined;
  for (const bits of [coarse, fine]) {
    const enclosure = new Enclosure(bits, budget, point);
    try {
      const x = enclosure.of(a);
      const y = x && enclosure.of(b);
      if (x === undefined || y === undefined) return found;
      const { reals } = enclosure;
      const sharp = isSharp(x, reals) && isSharp(y, reals);
      const apart = isApart(x, y, reals);
      const sizes = apart ? reals.compare(sizeOf(x, reals), sizeOf(y, reals)) : 0;
      const branched = enclosure.branched || (isReal(x) !== isReal(y) && apart);
      found = { branched, apart, sharp, sizesDiffer: sizes === 1 || sizes === -1 };
      if (apart || sharp) return found;
    } catch (error) {
      if (error instanceof TooLarge) return undefined;
      throw error;
    }
  }
  return found;
}

function sizeOf(x: Complex, reals: Reals) {
  return reals.add(reals.power(x.re, 2), x.im === undefined ? real0 : reals.power(x.im, 2));
}

function differentAt(point: ReadonlyMap<string, Rational>): Comparison {
  const shown = [...point].map(([name, { n, d }]) => `${name} = ${(Number(n) / Number(d)).toPrecision(5)}`).join(", ");
  return different("random points", `they differ at ${shown}`);
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
