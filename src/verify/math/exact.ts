/** Exact values of expressions: fractions of whole numbers, where an expression has one that can be found within the budget. */
import { add, divide, multiply, negate, type Rational, rational } from "../number/rational.js";
import type { Budget, Expression } from "./types.js";

/** Bits of a number that is written out. */
const largest = 80_000;

export const zero: Rational = { n: 0n, d: 1n };
export const one: Rational = { n: 1n, d: 1n };
export const isWhole = ({ d }: Rational): boolean => d === 1n;
export const sameRational = (a: Rational, b: Rational): boolean => a.n === b.n && a.d === b.d;
/** −1, 0 or 1 as a is below, at or above b. */
export const order = (a: Rational, b: Rational): number => {
  const [x, y] = [a.n * b.d, b.n * a.d];
  return x < y ? -1 : x > y ? 1 : 0;
};
export const absolute = (a: Rational): Rational => (a.n < 0n ? negate(a) : a);

/** Bits of |x|, one too many at most. */
export function bitsOf(x: bigint): number {
  const size = x < 0n ? -x : x;
  const near = Number(size);
  if (near < 2 ** 50) return near === 0 ? 0 : Math.floor(Math.log2(near)) + 1;
  return Number.isFinite(near) ? Math.floor(Math.log2(near)) + 2 : size.toString(16).length * 4;
}

const isSmall = ({ n, d }: Rational): boolean => n > -(2n ** 31n) && n < 2n ** 31n && d === 1n;
const sizeOf = ({ n, d }: Rational): number => bitsOf(n) + bitsOf(d);

/** Values of variables. */
export type Bindings = ReadonlyMap<string, Rational>;
const none: Bindings = new Map();

/** The exact value of an expression; undefined where it has none or is not known to. Throws OutOfSteps. */
export function exact(expression: Expression, budget: Budget, bindings: Bindings = none): Rational | undefined {
  budget.spend(1);
  const of = (part: Expression): Rational | undefined => exact(part, budget, bindings);
  switch (expression.op) {
    case "number":
      return expression.value;
    case "symbol":
      return bindings.get(expression.name);
    case "negate": {
      const value = of(expression.of);
      return value && negate(value);
    }
    case "add":
      return folded(expression.terms, of, add, budget);
    case "multiply":
      return folded(expression.factors, of, multiply, budget);
    case "divide": {
      const over = of(expression.over);
      const under = over && of(expression.under);
      if (over === undefined || under === undefined || under.n === 0n) return undefined;
      budget.spend((sizeOf(over) + sizeOf(under)) >> 5);
      return divide(over, under);
    }
    case "power": {
      const base = of(expression.base);
      const exponent = base && of(expression.exponent);
      return base && exponent && power(base, exponent, budget);
    }
    case "function":
      return applied(expression.name, expression.of, of, budget);
    case "sum":
    case "product":
      return series(expression, budget, bindings);
    default:
      return undefined;
  }
}

function folded(
  parts: readonly Expression[],
  of: (part: Expression) => Rational | undefined,
  join: (a: Rational, b: Rational) => Rational,
  budget: Budget,
): Rational | undefined {
  let total: Rational | undefined;
  for (const part of parts) {
    const value = of(part);
    if (value === undefined) return undefined;
    if (total === undefined) total = value;
    else {
      const size = sizeOf(total) + sizeOf(value);
      if (size > largest * 2) return undefined;
      budget.spend(size >> 5);
      total = join(total, value);
    }
  }
  return total;
}

/** baseᵉ for a fraction e: exact where the root is. A negative base has the real root of an odd index. */
export function power(base: Rational, exponent: Rational, budget: Budget): Rational | undefined {
  if (!isWhole(exponent)) {
    if (exponent.d > 1000n) return undefined;
    const root = rootOf(base, Number(exponent.d), budget);
    return root && power(root, { n: exponent.n, d: 1n }, budget);
  }
  if (base.n === 0n) return exponent.n > 0n ? zero : exponent.n === 0n ? undefined : undefined;
  if (base.d === 1n && (base.n === 1n || base.n === -1n)) return base.n === 1n || exponent.n % 2n === 0n ? one : base;
  const times = exponent.n < 0n ? -exponent.n : exponent.n;
  if (times > 1_000_000n || Number(times) * sizeOf(base) > largest) return undefined;
  budget.spend((Number(times) * sizeOf(base)) >> 4);
  const [n, d] = [base.n ** times, base.d ** times];
  return exponent.n < 0n ? (n < 0n ? { n: -d, d: -n } : { n: d, d: n }) : { n, d };
}

/** The exact root, where there is one. */
export function rootOf(base: Rational, index: number, budget: Budget): Rational | undefined {
  if (base.n < 0n) {
    const root = index % 2 === 1 ? rootOf(negate(base), index, budget) : undefined;
    return root && negate(root);
  }
  budget.spend(2 + (sizeOf(base) >> 3));
  const n = floorRoot(base.n, index);
  if (n ** BigInt(index) !== base.n) return undefined;
  const d = floorRoot(base.d, index);
  return d ** BigInt(index) === base.d ? { n, d } : undefined;
}

/** ⌊n^(1/k)⌋ for n ≥ 0, by Newton's iteration from above. */
export function floorRoot(n: bigint, k: number): bigint {
  if (n < 2n || k === 1) return n;
  const bits = bitsOf(n);
  if (bits <= k) return 1n;
  const index = BigInt(k);
  // A start from the leading digits, a little too large.
  const shift = Math.max(0, Math.ceil((bits - 100) / k));
  let x = (BigInt(Math.ceil((Number(n >> BigInt(shift * k)) + 1) ** (1 / k) * (1 + 1e-12))) + 1n) << BigInt(shift);
  for (;;) {
    const next = k === 2 ? (x + n / x) >> 1n : ((index - 1n) * x + n / x ** (index - 1n)) / index;
    if (next >= x) return x;
    x = next;
  }
}

function applied(
  name: Extract<Expression, { op: "function" }>["name"],
  parts: readonly Expression[],
  of: (part: Expression) => Rational | undefined,
  budget: Budget,
): Rational | undefined {
  const values: Rational[] = [];
  for (const part of parts) {
    const value = of(part);
    if (value === undefined) return undefined;
    values.push(value);
  }
  const [a, b] = values as [Rational, Rational];
  switch (name) {
    case "root":
      return isWhole(b) && b.n > 0n && b.n <= 1000n ? rootOf(a, Number(b.n), budget) : undefined;
    case "log":
      return b === undefined ? undefined : logarithm(a, b, budget);
    case "abs":
      return absolute(a);
    case "floor":
      return { n: floorDivide(a.n, a.d), d: 1n };
    case "ceil":
      return { n: -floorDivide(-a.n, a.d), d: 1n };
    case "factorial":
      return isWhole(a) ? falling(a.n, a.n, budget) : undefined;
    case "double-factorial":
      return isWhole(a) && a.n >= 0n ? falling(a.n, (a.n + 1n) / 2n, budget, 2n) : undefined;
    case "permutations":
      return isWhole(a) && isWhole(b) && b.n <= a.n ? falling(a.n, b.n, budget) : undefined;
    case "binomial":
      return binomial(a, b, budget);
    case "gcd":
    case "lcm":
      return values.every(isWhole) ? { n: values.map(({ n }) => (n < 0n ? -n : n)).reduce(name === "gcd" ? gcd : lcm), d: 1n } : undefined;
    case "min":
    case "max":
      return values.reduce((x, y) => (order(x, y) < 0 === (name === "min") ? x : y));
    case "mod":
      return isWhole(a) && isWhole(b) && b.n > 0n ? { n: a.n - b.n * floorDivide(a.n, b.n), d: 1n } : undefined;
    case "conjugate":
    case "re":
      return a;
    case "im":
      return zero;
    default:
      return undefined;
  }
}

export function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}
const lcm = (a: bigint, b: bigint): bigint => (a === 0n || b === 0n ? 0n : (a / gcd(a, b)) * b);

/** a (a − step) (a − 2 step) … of `times` factors. */
function falling(a: bigint, times: bigint, budget: Budget, step = 1n): Rational | undefined {
  if (a < 0n || times < 0n) return undefined;
  budget.spend(Number(times));
  let product = 1n;
  for (let i = 0n; i < times; i++) {
    product *= a - i * step;
    if ((i & 63n) === 63n) budget.spend(bitsOf(product) >> 4);
  }
  return { n: product, d: 1n };
}

function binomial(a: Rational, b: Rational, budget: Budget): Rational | undefined {
  if (!isWhole(a) || !isWhole(b) || a.n < 0n) return undefined;
  if (b.n < 0n || b.n > a.n) return zero;
  const times = b.n * 2n > a.n ? a.n - b.n : b.n;
  const over = falling(a.n, times, budget) as Rational;
  const under = falling(times, times, budget) as Rational;
  return { n: over.n / under.n, d: 1n };
}

/** log_b a where it is a whole number. */
function logarithm(a: Rational, b: Rational, budget: Budget): Rational | undefined {
  if (a.n <= 0n || b.n <= 0n || sameRational(b, one)) return undefined;
  if (sameRational(a, one)) return zero;
  const log = ({ n, d }: Rational): number => logOf(n) - logOf(d);
  const near = log(a) / log(b);
  for (const under of [1n, 2n, 3n]) {
    const over = Math.round(near * Number(under));
    if (Math.abs(over) > 20_000) return undefined;
    const left = power(b, { n: BigInt(over), d: 1n }, budget);
    const right = power(a, { n: under, d: 1n }, budget);
    if (left && right && sameRational(left, right)) return rational(BigInt(over), under);
  }
  return undefined;
}

const logOf = (x: bigint): number => {
  const shift = Math.max(0, bitsOf(x) - 60);
  return Math.log(Number(x >> BigInt(shift))) + shift * Math.LN2;
};

function series(expression: Extract<Expression, { op: "sum" | "product" }>, budget: Budget, bindings: Bindings): Rational | undefined {
  const from = exact(expression.from, budget, bindings);
  const to = from && exact(expression.to, budget, bindings);
  if (from === undefined || to === undefined || !isWhole(from) || !isWhole(to)) return undefined;
  const isSum = expression.op === "sum";
  let total = isSum ? zero : one;
  const inner = new Map(bindings);
  for (let i = from.n; i <= to.n; i++) {
    inner.set(expression.variable, { n: i, d: 1n });
    const value = exact(expression.body, budget, inner);
    if (value === undefined) return undefined;
    budget.spend(4 + ((sizeOf(total) + sizeOf(value)) >> 5));
    if (isSmall(total) && isSmall(value)) total = { n: isSum ? total.n + value.n : total.n * value.n, d: 1n };
    else total = isSum ? add(total, value) : multiply(total, value);
  }
  return total;
}
