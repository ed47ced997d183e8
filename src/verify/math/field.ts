/**
 * Expressions in prime fields: sums, products, quotients, whole powers, i, and square roots of rational numbers. A map of
 * numbers to a prime field that keeps sums and products keeps equations, so two values that differ there differ: one point
 * where they do is a proof. Where k points in k fields agree, expressions of degree d that differ would do so with a
 * probability of at most (d/p)^k (Schwartz 1980, Zippel 1979). π and e stand for unknowns of their own.
 */
import type { Rational } from "../number/rational.js";
import { exact, isWhole } from "./exact.js";
import { draw } from "./points.js";
import type { Budget, Expression } from "./types.js";

/** Primes below 2²⁶ with p = 1 modulo 8·3·5·7·11·13: −1, 2, 3, 5, 7, 11 and 13 are squares there, and products are exact doubles. */
export const primes: readonly number[] = searchPrimes(14);

function searchPrimes(count: number): number[] {
  const found: number[] = [];
  const step = 8 * 3 * 5 * 7 * 11 * 13;
  for (let p = step * Math.floor(2 ** 26 / step) + 1; found.length < count; p -= step) {
    let isPrime = true;
    for (let q = 17; q * q <= p && isPrime; q += 2) isPrime = p % q !== 0;
    if (isPrime) found.push(p);
  }
  return found;
}

/** Whether an expression is of a kind that has a value in fields. */
export function isFieldExpression(expression: Expression, budget: Budget): boolean {
  const all = (parts: readonly Expression[]): boolean => parts.every((part) => isFieldExpression(part, budget));
  budget.spend(1);
  switch (expression.op) {
    case "number":
    case "symbol":
      return true;
    case "constant":
      return expression.name !== "infinity";
    case "add":
      return all(expression.terms);
    case "multiply":
      return all(expression.factors);
    case "divide":
      return all([expression.over, expression.under]);
    case "negate":
      return isFieldExpression(expression.of, budget);
    case "power": {
      const exponent = exact(expression.exponent, budget);
      if (exponent === undefined) return false;
      if (isWhole(exponent)) return exponent.n > -1_000_000n && exponent.n < 1_000_000n && isFieldExpression(expression.base, budget);
      return exponent.d === 2n && squareParts(exact(expression.base, budget)) !== undefined;
    }
    case "function": {
      if (expression.name === "root")
        return isSquareRoot(expression.of[1] as Expression) && squareParts(exact(expression.of[0] as Expression, budget)) !== undefined;
      return exact(expression, budget) !== undefined;
    }
    default:
      return false;
  }
}

const isSquareRoot = (index: Expression): boolean => index.op === "number" && index.value.n === 2n && index.value.d === 1n;

/** Degree of an expression over the unknowns, as a numerator and a denominator together. */
export function degreeOf(expression: Expression): number {
  switch (expression.op) {
    case "symbol":
    case "constant":
      return 1;
    case "add":
      return expression.terms.reduce((sum, term) => sum + degreeOf(term), 0);
    case "multiply":
      return expression.factors.reduce((sum, factor) => sum + degreeOf(factor), 0);
    case "divide":
      return degreeOf(expression.over) + degreeOf(expression.under);
    case "negate":
      return degreeOf(expression.of);
    case "power":
      return degreeOf(expression.base) * (expression.exponent.op === "number" ? Math.max(1, Math.abs(Number(expression.exponent.value.n))) : 1000);
    default:
      return 1;
  }
}

/** √r = (a/b)·√(product of primes): the odd primes of r with the rational factor, where r can be factored. */
interface SquareParts {
  readonly factor: Rational;
  readonly negative: boolean;
  readonly primes: readonly number[];
}

function squareParts(radicand: Rational | undefined): SquareParts | undefined {
  if (radicand === undefined) return undefined;
  let rest = radicand.n * radicand.d;
  const negative = rest < 0n;
  if (negative) rest = -rest;
  if (rest === 0n) return { factor: { n: 0n, d: 1n }, negative: false, primes: [] };
  if (rest >= 2n ** 80n) return undefined;
  let outside = 1n;
  const odd: number[] = [];
  for (let q = 2; q < 1000 && rest > 1n; q += q === 2 ? 1 : 2) {
    if (rest < 2n ** 52n && q * q > Number(rest)) break;
    const divisor = BigInt(q);
    let times = 0;
    while (rest % divisor === 0n) {
      rest /= divisor;
      times++;
    }
    outside *= divisor ** BigInt(times >> 1);
    if (times % 2 === 1) odd.push(q);
  }
  if (rest > 1n) {
    if (rest >= 1_000_000n) return undefined;
    odd.push(Number(rest));
  }
  return { factor: { n: outside, d: radicand.d }, negative, primes: odd };
}

/** One point of one field. NaN is what has no value there: a pole, or a root of what is no square. */
export class FieldPoint {
  private readonly values = new Map<string, number>();
  private readonly roots = new Map<number, number>();

  constructor(
    readonly p: number,
    private readonly trial: number,
    private readonly budget: Budget,
  ) {}

  evaluate(expression: Expression): number {
    this.budget.spend(2);
    switch (expression.op) {
      case "number":
        return this.rational(expression.value);
      case "symbol":
        return this.unknown(expression.name);
      case "constant":
        return expression.name === "i" ? this.root(-1) : this.unknown(`\\${expression.name}`);
      case "add": {
        let total = 0;
        for (const term of expression.terms) total += this.evaluate(term);
        return total % this.p;
      }
      case "multiply": {
        let product = 1;
        for (const factor of expression.factors) product = (product * this.evaluate(factor)) % this.p;
        return product;
      }
      case "divide":
        return (this.evaluate(expression.over) * this.inverse(this.evaluate(expression.under))) % this.p;
      case "negate":
        return (this.p - this.evaluate(expression.of)) % this.p;
      case "power": {
        const exponent = exact(expression.exponent, this.budget) as Rational;
        if (!isWhole(exponent)) return this.raised(this.square(exact(expression.base, this.budget)), Number(exponent.n));
        return this.raised(this.evaluate(expression.base), Number(exponent.n));
      }
      case "function": {
        const known = exact(expression, this.budget);
        return known === undefined ? this.square(exact(expression.of[0] as Expression, this.budget)) : this.rational(known);
      }
      default:
        return Number.NaN;
    }
  }

  /** A numerator and a denominator, without common factors taken out. */
  fraction(expression: Expression): readonly [over: number, under: number] {
    const { p } = this;
    switch (expression.op) {
      case "add": {
        let [over, under] = [0, 1];
        for (const term of expression.terms) {
          const [a, b] = this.fraction(term);
          [over, under] = b === under ? [(over + a) % p, under] : [(((over * b) % p) + ((a * under) % p)) % p, (under * b) % p];
        }
        return [over, under];
      }
      case "multiply": {
        let [over, under] = [1, 1];
        for (const factor of expression.factors) {
          const [a, b] = this.fraction(factor);
          [over, under] = [(over * a) % p, (under * b) % p];
        }
        return [over, under];
      }
      case "divide": {
        const [[a, b], [c, d]] = [this.fraction(expression.over), this.fraction(expression.under)];
        return [(a * d) % p, (b * c) % p];
      }
      case "negate": {
        const [a, b] = this.fraction(expression.of);
        return [(p - a) % p, b];
      }
      default:
        return [this.evaluate(expression), 1];
    }
  }

  private unknown(name: string): number {
    let value = this.values.get(name);
    if (value === undefined) {
      value = 2 + (draw(`field ${this.p} ${name}`, this.trial) % (this.p - 3));
      this.values.set(name, value);
    }
    return value;
  }

  private whole(n: bigint): number {
    const rest = n >= -9007199254740991n && n <= 9007199254740991n ? Number(n) % this.p : Number(n % BigInt(this.p));
    return rest < 0 ? rest + this.p : rest;
  }

  private rational({ n, d }: Rational): number {
    return d === 1n ? this.whole(n) : (this.whole(n) * this.inverse(this.whole(d))) % this.p;
  }

  private raised(base: number, exponent: number): number {
    let square = exponent < 0 ? this.inverse(base) : base;
    let result = 1;
    this.budget.spend(8);
    for (let rest = Math.abs(exponent); rest > 0; rest = Math.floor(rest / 2)) {
      if (rest % 2 === 1) result = (result * square) % this.p;
      square = (square * square) % this.p;
    }
    return exponent === 0 ? base ** 0 + 0 * base : result;
  }

  private inverse(value: number): number {
    if (!(value > 0)) return Number.NaN;
    this.budget.spend(2);
    let [a, b, x, y] = [value, this.p, 1, 0];
    while (b !== 0) {
      const quotient = Math.floor(a / b);
      [a, b] = [b, a - quotient * b];
      [x, y] = [y, x - quotient * y];
    }
    return x < 0 ? x + this.p : x;
  }

  private square(radicand: Rational | undefined): number {
    const parts = squareParts(radicand);
    if (parts === undefined) return Number.NaN;
    let value = this.rational(parts.factor);
    if (parts.negative) value = (value * this.root(-1)) % this.p;
    for (const q of parts.primes) value = (value * this.root(q)) % this.p;
    return value;
  }

  /** One square root of a prime or of −1, the same one at each call; NaN where there is none (Tonelli 1891, Shanks 1973). */
  private root(q: number): number {
    let root = this.roots.get(q);
    if (root === undefined) {
      root = this.searchRoot(((q % this.p) + this.p) % this.p);
      this.roots.set(q, root);
    }
    return root;
  }

  private searchRoot(q: number): number {
    const { p } = this;
    this.budget.spend(40);
    if (q === 0 || this.raised(q, (p - 1) / 2) !== 1) return Number.NaN;
    let odd = p - 1;
    let twos = 0;
    while (odd % 2 === 0) {
      odd /= 2;
      twos++;
    }
    let nonSquare = 2;
    while (this.raised(nonSquare, (p - 1) / 2) === 1) nonSquare++;
    let c = this.raised(nonSquare, odd);
    let root = this.raised(q, (odd + 1) / 2);
    let t = this.raised(q, odd);
    for (let m = twos; t !== 1; ) {
      let i = 0;
      for (let square = t; square !== 1; i++) square = (square * square) % p;
      const b = this.raised(c, 2 ** (m - i - 1));
      root = (root * b) % p;
      c = (b * b) % p;
      t = (t * c) % p;
      m = i;
    }
    return root;
  }
}
