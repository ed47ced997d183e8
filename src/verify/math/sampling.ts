/** Expressions at random points, in enclosures: apart at one point, they differ; as close as is known at every one, they are taken for equal. */
import type { Rational } from "../number/rational.js";
import { add, multiply, partsOf, some, substitute, symbolOf, variablesOf } from "./build.js";
import { type Complex, isReal } from "./complex.js";
import { Enclosure } from "./enclose.js";
import { draw } from "./points.js";
import { type Real, type Reals, real0 } from "./real.js";
import { different, equal, unsupported } from "./results.js";
import { type Budget, type Comparison, type Expression, TooLarge } from "./types.js";

/** Bits of a first and of a last enclosure. */
export const coarse = 128;
export const fine = 448;
/** Points at which enclosures must agree, and points that are tried. */
const realPoints = 6;
const mostTrials = 30;

export interface Domain {
  /** Variables are above 0. */
  readonly positive: boolean;
}

export const isSharp = (x: Complex, reals: Reals): boolean =>
  reals.isSharp(x.re, reals.bits - 64) && (x.im === undefined || reals.isSharp(x.im, reals.bits - 64));

/** Whether two boxes have nothing in common. */
export function isApart(x: Complex, y: Complex, reals: Reals): boolean {
  const order = reals.compare(x.re, y.re);
  if (order === 1 || order === -1) return true;
  if (x.im === undefined && y.im === undefined) return false;
  const other = reals.compare(x.im ?? real0, y.im ?? real0);
  return other === 1 || other === -1;
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
  if (expression.op === "function" && (expression.name === "floor" || expression.name === "ceil") && some(expression, ({ op }) => op === "divide"))
    for (const name of variablesOf(expression)) if (countingLetter.test(name)) found.add(name);
  if (expression.op === "power" && isNegative(expression.base)) variablesOf(expression.exponent, found);
  if (expression.op === "sum" || expression.op === "product") for (const end of [expression.from, expression.to]) variablesOf(end, found);
  for (const part of partsOf(expression)) countingOf(part, found);
  return found;
}

/** Letters that count where a quotient of them is rounded: ⌊n²/4⌋. */
const countingLetter = /^[nmkN]$/;
const counted: ReadonlySet<string> = new Set(["factorial", "double-factorial", "binomial", "permutations", "gcd", "lcm", "mod"]);
const isNegative = (expression: Expression): boolean => expression.op === "negate" || (expression.op === "number" && expression.value.n < 0n);

/** Functions that make a difference between real and complex variables. */
const isOfComplex = (part: Expression): boolean => part.op === "function" && (part.name === "conjugate" || part.name === "re" || part.name === "im");

/** Whether two expressions agree at random points for their variables. */
export function atPoints(a: Expression, b: Expression, variables: readonly string[], budget: Budget, domain: Domain): Comparison {
  const isComplex = some(a, isOfComplex) || some(b, isOfComplex);
  return isComplex ? atComplexPoints(a, b, variables, budget, domain) : atRealPoints(a, b, variables, budget, domain, false);
}

/** Every variable as x + iy, with a y of its own. */
function atComplexPoints(a: Expression, b: Expression, variables: readonly string[], budget: Budget, domain: Domain): Comparison {
  const i: Expression = { op: "constant", name: "i" };
  const parts = new Map(variables.map((name) => [name, add(symbolOf(name), multiply(i, symbolOf(`${name} imaginary`)))]));
  const names = variables.flatMap((name) => [name, `${name} imaginary`]);
  return atRealPoints(substitute(a, parts), substitute(b, parts), names, budget, domain, true);
}

/** Functions whose values on one side of a point say nothing of the other side. */
const isPiecewise = (part: Expression): boolean => part.op === "function" && pieces.has(part.name);
const pieces: ReadonlySet<string> = new Set(["abs", "floor", "ceil", "min", "max"]);

function atRealPoints(a: Expression, b: Expression, variables: readonly string[], budget: Budget, domain: Domain, isComplex: boolean): Comparison {
  const counting = countingOf(b, countingOf(a, new Set()));
  const any = (test: (part: Expression) => boolean): boolean => some(a, test) || some(b, test);
  const usesI = isComplex || any((part) => part.op === "constant" && part.name === "i");
  const piecewise = any(isPiecewise);
  const needed = piecewise ? realPoints * 2 : realPoints;
  const beyond = 3 * Math.max(largestIn(a), largestIn(b), 4);
  let agreed = 0;
  let outside = 0;
  let apartOutside: Comparison | undefined;
  for (let trial = 0; trial < mostTrials && agreed < needed; trial++) {
    const point = pointOf(variables, counting, trial, beyond, domain);
    const at = compareAt(a, b, point, agreed === 0, budget);
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

export const digits = (bits: number): number => Math.floor((bits - 64) * Math.LOG10E * Math.LN2);

interface AtPoint {
  readonly branched: boolean;
  readonly apart: boolean;
  readonly sharp: boolean;
  readonly sizesDiffer: boolean;
}

/** Both values at a point, as closely as is done where asked; undefined where one has none, or none that is known. */
function compareAt(a: Expression, b: Expression, point: ReadonlyMap<string, Rational>, closely: boolean, budget: Budget): AtPoint | undefined {
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
      if (apart || (sharp && !closely)) return found;
    } catch (error) {
      if (error instanceof TooLarge) return undefined;
      throw error;
    }
  }
  return found;
}

function sizeOf(x: Complex, reals: Reals): Real {
  return reals.add(reals.power(x.re, 2), x.im === undefined ? real0 : reals.power(x.im, 2));
}

function differentAt(point: ReadonlyMap<string, Rational>): Comparison {
  const shown = [...point].map(([name, { n, d }]) => `${name} = ${(Number(n) / Number(d)).toPrecision(5)}`).join(", ");
  return different("random points", `they differ at ${shown}`);
}
