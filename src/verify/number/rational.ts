/** Exact fractions of whole numbers without limit. */

/** n / d in lowest terms, d above 0. */
export interface Rational {
  readonly n: bigint;
  readonly d: bigint;
}

/** Longest numeral, in characters, and largest exponent of ten that are read: what bounds the work. */
export const longestNumeral = 1000;

export function rational(n: bigint, d: bigint): Rational {
  const sign = d < 0n ? -1n : 1n;
  const divisor = gcd(n < 0n ? -n : n, d < 0n ? -d : d);
  return { n: (sign * n) / divisor, d: (sign * d) / divisor };
}

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

export const add = (a: Rational, b: Rational): Rational => rational(a.n * b.d + b.n * a.d, a.d * b.d);
export const multiply = (a: Rational, b: Rational): Rational => rational(a.n * b.n, a.d * b.d);
export const negate = (a: Rational): Rational => ({ n: -a.n, d: a.d });
/** a / b; b is not 0. */
export const divide = (a: Rational, b: Rational): Rational => rational(a.n * b.d, a.d * b.n);

/** Whether |a − b| ≤ tolerance. */
export function within(a: Rational, b: Rational, tolerance: Rational): boolean {
  const difference = add(a, negate(b));
  const size = difference.n < 0n ? -difference.n : difference.n;
  return size * tolerance.d <= tolerance.n * difference.d;
}

/** `3`, `-3/4`. */
export const rationalText = (a: Rational): string => (a.d === 1n ? String(a.n) : `${a.n}/${a.d}`);

/** The inverse of `rationalText`. */
export function rationalFromText(text: string): Rational {
  const [n, d = "1"] = text.split("/") as [string, string?];
  return rational(BigInt(n), BigInt(d));
}

const decimal = /^(\d+|\d{1,3}(?:,\d{3})+)?(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** A decimal numeral without sign: digits, or groups of three set off by commas; a fraction; an exponent of ten. */
export function readDecimal(text: string): Rational | "unreadable" | "over-budget" {
  if (text.length > longestNumeral) return "over-budget";
  const match = decimal.exec(text);
  const [, whole = "", fraction = "", exponent = "0"] = match ?? [];
  if (match === null || whole + fraction === "") return "unreadable";
  const power = Number(exponent);
  if (Math.abs(power) > longestNumeral) return "over-budget";
  const digits = BigInt(whole.replaceAll(",", "") + fraction);
  const scale = power - fraction.length;
  return scale >= 0 ? rational(digits * 10n ** BigInt(scale), 1n) : rational(digits, 10n ** BigInt(-scale));
}
