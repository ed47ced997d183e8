/** Numbers, quantities, numerals and ratios against each other, with the policies on percentages, rounding, units and fractions. */
import { add, divide, multiply, negate, type Rational, rational } from "../number/rational.js";
import { numberOf, divide as over, substitute, subtract, add as sumOf, multiply as times, variablesOf } from "./build.js";
import { absolute, exact, order } from "./exact.js";
import { compareExpressions, orderOf } from "./identity.js";
import { draw } from "./points.js";
import type { Policies } from "./policies.js";
import { different, equal } from "./results.js";
import type { Budget, Comparison, Expression, Unit, Value } from "./types.js";
import { isCurrency, isDegree, isPercent, isPlain, sameDimension } from "./units.js";

export interface Terms {
  readonly policies: Policies;
  readonly budget: Budget;
  /** The reference says that it is approximate. */
  readonly approximate: boolean;
}

type Quantity = Extract<Value, { kind: "quantity" }>;

/** Whether an answer is the reference as an expression, exactly or by the policy on rounding. */
export function compareNumbers(reference: Expression, answer: Expression, terms: Terms): Comparison {
  const { policies, budget } = terms;
  if (policies["unreduced-fraction"] === "reject" && isUnreduced(answer)) return different("unreduced-fraction", "the fraction is not in lowest terms");
  if (isReordered(reference, answer)) return different("letters", "capital letters stand in another order");
  const result = compareExpressions(reference, answer, budget, { positive: policies["assume-positive-variables"] === "yes" });
  if (result.kind !== "different") return result;
  return antiderivatives(reference, answer, terms) ?? rounded(reference, answer, terms) ?? result;
}

/** Capital letters side by side, and nothing else, in another order: HT is not TH, and AB not BA where these are matrices. */
function isReordered(a: Expression, b: Expression): boolean {
  const [x, y] = [a, b].map((side) =>
    side.op === "multiply" && side.factors.every((factor) => factor.op === "symbol" && /^[A-Z]$/.test(factor.name))
      ? side.factors.map((factor) => (factor.op === "symbol" ? factor.name : "")).join("")
      : undefined,
  );
  return x !== undefined && y !== undefined && x !== y && x.length === y.length;
}

/** Letters of a constant of integration. */
const constantLetters: ReadonlySet<string> = new Set(["C", "c", "K", "k", "C_1", "C_0", "c_1"]);

/** Two expressions that end in + C, each with its letter: equal where they differ by a number. Undefined for others. */
function antiderivatives(a: Expression, b: Expression, { budget, policies }: Terms): Comparison | undefined {
  const [x, y] = [withoutConstant(a), withoutConstant(b)];
  if (x === undefined || y === undefined) return undefined;
  const point = new Map([...variablesOf(x), ...variablesOf(y)].map((name) => [name, numberOf(rational(BigInt(3 + (draw(`constant ${name}`, 0) % 50)), 7n))]));
  const change = (of: Expression): Expression => subtract(of, substitute(of, point));
  const result = compareExpressions(change(x), change(y), budget, { positive: policies["assume-positive-variables"] === "yes" });
  return result.kind === "equal" ? equal("constant of integration", `without their constants ${result.reason}`) : undefined;
}

/** A sum without its constant of integration, which stands nowhere else in it. */
function withoutConstant(expression: Expression): Expression | undefined {
  if (expression.op !== "add") return undefined;
  const rest = expression.terms.filter((term) => !(term.op === "symbol" && constantLetters.has(term.name)));
  if (rest.length !== expression.terms.length - 1 || rest.length === 0) return undefined;
  const left = sumOf(...rest);
  return variablesOf(left).size > 0 && ![...variablesOf(left)].some((name) => constantLetters.has(name)) ? left : undefined;
}

function isUnreduced(expression: Expression): boolean {
  if (expression.op === "negate") return isUnreduced(expression.of);
  if (expression.op !== "divide") return false;
  const [top, bottom] = [expression.over, expression.under].map((side) => (side.op === "negate" ? side.of : side)) as [Expression, Expression];
  if (top.op !== "number" || bottom.op !== "number" || top.value.d !== 1n || bottom.value.d !== 1n || bottom.value.n === 0n) return false;
  return absolute(rational(top.value.n, bottom.value.n)).d !== absolute(bottom.value).n;
}

/** A decimal as it is written: its value, what its last digit stands for, and how many significant digits it has. */
interface Written {
  readonly value: Rational;
  readonly unit: Rational;
  readonly digits: number;
}

function writtenDecimal(expression: Expression): Written | undefined {
  const inner = expression.op === "negate" ? expression.of : expression;
  const scientific = inner.op === "multiply" && inner.factors.length === 2 ? inner.factors : undefined;
  const mantissa = scientific?.[0] ?? inner;
  if (mantissa.op !== "number" || mantissa.decimals === undefined) return undefined;
  const power = scientific?.[1];
  let scale = -mantissa.decimals;
  if (power !== undefined) {
    if (power.op !== "power" || power.base.op !== "number" || power.base.value.n !== 10n || power.base.value.d !== 1n) return undefined;
    const { exponent } = power;
    const raised = exponent.op === "number" ? exponent.value : exponent.op === "negate" && exponent.of.op === "number" ? negate(exponent.of.value) : undefined;
    if (raised === undefined || raised.d !== 1n || raised.n > 1000n || raised.n < -1000n) return undefined;
    scale += Number(raised.n);
  }
  const unit: Rational = scale >= 0 ? { n: 10n ** BigInt(scale), d: 1n } : { n: 1n, d: 10n ** BigInt(-scale) };
  const size = absolute(multiply(mantissa.value, { n: 10n ** BigInt(Math.max(0, mantissa.decimals)), d: 1n })).n;
  const value = power === undefined ? mantissa.value : multiply(mantissa.value, multiply(unit, { n: 10n ** BigInt(Math.max(0, mantissa.decimals)), d: 1n }));
  return { value: expression.op === "negate" ? negate(value) : value, unit, digits: String(size).length };
}

/** Whether a constant lies within `width` of a decimal. */
function isWithin(decimal: Written, constant: Expression, width: Rational, budget: Budget): boolean {
  const [low, high] = [add(decimal.value, negate(width)), add(decimal.value, width)];
  const known = exact(constant, budget);
  if (known !== undefined) return order(low, known) <= 0 && order(known, high) <= 0;
  return orderOf(numberOf(low), constant, budget) === -1 && orderOf(constant, numberOf(high), budget) === -1;
}

const half = (unit: Rational): Rational => rational(unit.n, unit.d * 2n);

/** Equal by the policy on rounding; undefined where it has nothing to say. */
function rounded(reference: Expression, answer: Expression, { policies, budget, approximate }: Terms): Comparison | undefined {
  const policy = policies.rounding;
  if (policy === "exact") return undefined;
  const [gold, given] = [writtenDecimal(reference), writtenDecimal(answer)];
  const accept = (why: string): Comparison => equal("rounding", why);
  if (gold !== undefined && (approximate || policy === "reference" || policy === "either") && isWithin(gold, answer, half(gold.unit), budget))
    return accept("within half a unit of the last digit of the reference");
  if (given !== undefined && policy === "either" && given.digits >= 3 && isWithin(given, reference, half(given.unit), budget))
    return accept("the reference, rounded to the digits that the answer has");
  return (given && fullPrecision(given, reference, budget)) ?? (gold && fullPrecision(gold, answer, budget));
}

/** Ten digits or more, all right, of a number that no decimal is. */
function fullPrecision(decimal: Written, of: Expression, budget: Budget): Comparison | undefined {
  if (decimal.digits < 10) return undefined;
  const known = exact(of, budget);
  if (known !== undefined && isTerminating(known)) {
    // 0.30000000000000004 is 0.3 as a double has it; a whole number is itself alone.
    const noise =
      (decimal.digits === 16 || decimal.digits === 17) && known.d !== 1n ? multiply(decimal.unit, { n: 10n ** BigInt(decimal.digits - 15), d: 2n }) : undefined;
    return noise !== undefined && isWithin(decimal, of, noise, budget) ? equal("rounding", "the reference, to the precision of doubles") : undefined;
  }
  // Doubles have 15 digits that can be relied on.
  const width = decimal.digits > 15 ? multiply(decimal.unit, { n: 10n ** BigInt(decimal.digits - 15), d: 1n }) : decimal.unit;
  return isWithin(decimal, of, width, budget) ? equal("rounding", `all ${Math.min(decimal.digits, 15)} digits are right`) : undefined;
}

function isTerminating({ d }: Rational): boolean {
  let rest = d;
  for (const prime of [2n, 5n]) while (rest % prime === 0n) rest /= prime;
  return rest === 1n;
}

/** A quantity against a quantity. */
export function compareQuantities(a: Quantity, b: Quantity, terms: Terms): Comparison {
  const { policies } = terms;
  if (isPlain(a.unit) || isPlain(b.unit)) {
    if (isPlain(a.unit) && isPlain(b.unit)) return compareNumbers(a.amount, b.amount, terms);
    return isPlain(a.unit) ? quantityAndNumber(b, a.amount, terms, false) : quantityAndNumber(a, b.amount, terms, true);
  }
  if (sameDimension(a.unit, b.unit)) {
    const scale = divide(b.unit.factor, a.unit.factor);
    if (scale.n === scale.d) return compareNumbers(a.amount, b.amount, terms);
    if (policies["unit-conversion"] === "reject") return different("unit-conversion", `${a.unit.name} and ${b.unit.name} are other units`);
    return converted(compareNumbers(a.amount, times(b.amount, numberOf(scale)), terms), a.unit, b.unit);
  }
  const angle = isDegree(a.unit) && isRadian(b.unit) ? [b, a] : isDegree(b.unit) && isRadian(a.unit) ? [a, b] : undefined;
  if (angle !== undefined && policies["unit-conversion"] === "accept") {
    const [radians, degrees] = angle as [Quantity, Quantity];
    return converted(compareNumbers(radians.amount, { op: "degrees", of: degrees.amount }, terms), a.unit, b.unit);
  }
  // A pound is a weight or a currency, as the other side has it.
  if ([a, b].some(({ unit }) => /^pounds?$/.test(unit.name)) && [a, b].some(({ unit }) => unit.powers.GBP === 1 && Object.keys(unit.powers).length === 1))
    return compareNumbers(a.amount, b.amount, terms);
  const isNamed = isNamedAlike(a.unit, b.unit);
  if (isNamed || policies["unit-conflict"] === "ignore") return compareNumbers(a.amount, b.amount, terms);
  return different("units", `${a.unit.name} is not ${b.unit.name}`);
}

const isRadian = (unit: Unit): boolean => unit.powers.radian === 1 && Object.keys(unit.powers).length === 1;

const converted = (result: Comparison, a: Unit, b: Unit): Comparison =>
  result.kind === "equal" ? equal("unit-conversion", `${b.name} in ${a.name}: ${result.reason}`) : result;

/** Whether two units differ in nouns alone, and one has all nouns of the other: "apples" and "red apples". */
function isNamedAlike(a: Unit, b: Unit): boolean {
  const nouns = ({ powers }: Unit): string[] => Object.keys(powers).filter((base) => base.startsWith("#"));
  const measured = ({ powers, factor, name }: Unit): Unit => ({
    factor,
    name,
    powers: Object.fromEntries(Object.entries(powers).filter(([base]) => !base.startsWith("#"))),
  });
  const [x, y] = [nouns(a), nouns(b)];
  return (
    sameDimension(measured(a), measured(b)) &&
    a.factor.n * b.factor.d === b.factor.n * a.factor.d &&
    (x.every((noun) => y.includes(noun)) || y.every((noun) => x.includes(noun)))
  );
}

/** A quantity against a bare number. `isReference`: the quantity is the reference. */
export function quantityAndNumber(quantity: Quantity, number: Expression, terms: Terms, isReference: boolean): Comparison {
  const { policies } = terms;
  const { unit, amount } = quantity;
  const against = (x: Expression): Comparison => (isReference ? compareNumbers(x, number, terms) : compareNumbers(number, x, terms));
  if (isPercent(unit)) {
    const policy = policies["percent-number"];
    const results = [
      ...(policy === "either" || policy === "number" ? [against(amount)] : []),
      ...(policy === "either" || policy === "fraction" ? [against(over(amount, numberOf(100)))] : []),
    ];
    return results.find(({ kind }) => kind === "equal") ?? results[0] ?? different("percent-number", "one is a percentage");
  }
  if (isCurrency(unit) && policies["currency-ignored"] === "reject") return different("currency-ignored", "one has a currency");
  const plain = against(amount);
  // "50 cents" is 0.50 too.
  if (plain.kind !== "equal" && isCurrency(unit) && unit.factor.d !== 1n) return against(times(amount, numberOf(unit.factor)));
  if (plain.kind === "equal" || !isDegree(unit) || policies["unit-conversion"] === "reject") return plain;
  // An angle without a unit is in radians.
  const radians = against({ op: "degrees", of: amount });
  return radians.kind === "equal" ? radians : plain;
}

type Numeral = Extract<Value, { kind: "numeral" }>;

export function numeralValue({ digits, base, negative }: Numeral): bigint {
  let value = 0n;
  for (const digit of digits) value = value * BigInt(base) + BigInt(Number.parseInt(digit, 36));
  return negative ? -value : value;
}

/** A numeral with a base against a bare number: its digits, where the base may be left out. */
export function numeralAndNumber(numeral: Numeral, number: Expression, { policies, budget }: Terms): Comparison {
  if (numeral.base === 10) return compareExpressions(numberOf(numeralValue(numeral)), number, budget, { positive: false });
  if (policies["base-optional"] === "reject") return different("base-optional", "one has a base");
  const value = exact(number, budget);
  const digits = `${numeral.negative ? "-" : ""}${numeral.digits}`;
  const isSame = value !== undefined && value.d === 1n && String(value.n) === digits;
  return isSame ? equal("base-optional", "the digits agree") : different("numerals", `${digits} in base ${numeral.base} is another numeral`);
}

/** a : b : c against d : e : f, in proportion. */
export function compareRatios(a: readonly Expression[], b: readonly Expression[], terms: Terms): Comparison {
  if (a.length !== b.length) return different("ratio", `${a.length} parts against ${b.length}`);
  for (let i = 1; i < a.length; i++) {
    for (let j = 0; j < i; j++) {
      const result = compareNumbers(times(a[i] as Expression, b[j] as Expression), times(b[i] as Expression, a[j] as Expression), terms);
      if (result.kind !== "equal") return result;
    }
  }
  return equal("ratio", "the parts are in proportion");
}

/** A ratio of two against a number that is written as a fraction. */
export function ratioAndNumber(parts: readonly Expression[], number: Expression, terms: Terms): Comparison {
  const [a, b] = parts as [Expression, Expression];
  const value = exact(number, terms.budget);
  const isFraction = number.op === "divide" || (value !== undefined && value.d !== 1n);
  if (parts.length !== 2 || !isFraction) return different("kinds", "a ratio is no number");
  return compareNumbers(over(a, b), number, terms);
}
