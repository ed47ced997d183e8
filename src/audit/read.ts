/**
 * A second opinion on what the audit writes: a small reader of LaTeX answers that knows nothing of the rules which made them,
 * nor of the math verifier. It computes in fractions; roots to 60 digits. A pair counts as certified where both sides, read
 * so at five points, agree to 50 digits, or differ.
 */
import { randomKey, Stream } from "../core/random.js";
import { add, divide, multiply, negate, type Rational, rational, readDecimal, within } from "../verify/number/rational.js";

/** What was read: the shape in words, and the numbers in it. */
interface Shape {
  readonly shape: string;
  readonly values: readonly Rational[];
}

class Unread extends Error {}

const rootDigits = 10n ** 60n;
const agreement = rational(1n, 10n ** 50n);
const one = rational(1n, 1n);
/** Values of the variable at which expressions are compared. */
const points: readonly Rational[] = (() => {
  const random = new Stream(randomKey({ seed: 0, purpose: "audit/points" }));
  return Array.from({ length: 5 }, () => rational(BigInt(random.int(100_000) + 2), BigInt(random.int(1000) + 1)));
})();

/** Whether two texts say the same value; undefined where one of them cannot be read. */
export function agree(a: string, b: string): boolean | undefined {
  // Without a variable all points are one.
  for (const x of /x/.test(a + b) ? points : points.slice(0, 1)) {
    const [left, right] = [readAt(a, x), readAt(b, x)];
    if (left === undefined || right === undefined) return undefined;
    if (left.shape !== right.shape || left.values.length !== right.values.length) return false;
    if (!left.values.every((value, i) => near(value, right.values[i] as Rational))) return false;
  }
  return true;
}

/** Whether a text can be read. */
export const readable = (text: string): boolean => readAt(text, points[0] as Rational) !== undefined;

function near(a: Rational, b: Rational): boolean {
  const size = rational(a.n < 0n ? -a.n : a.n, a.d);
  return within(a, b, size.n > size.d ? multiply(size, agreement) : agreement);
}

function readAt(text: string, x: Rational): Shape | undefined {
  try {
    return shapeOf(text, x);
  } catch (error) {
    if (error instanceof Unread || error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Blanks at the ends, one sign of punctuation, and a name before an equals sign are no part of a value. */
export function peeled(text: string): string {
  return text
    .replace(/(?:\\,|~)/g, " ")
    .trim()
    .replace(/[.,;]$/, "")
    .replace(/^[a-z] = /, "")
    .replace(/−/g, "-");
}

function shapeOf(text: string, x: Rational): Shape {
  const plain = text.replace(/\\left|\\right/g, "").trim();
  const set = /^\\\{(.*)\\\}$/s.exec(plain);
  if (set) return { shape: "set", values: split(set[1] as string, x).sort((a, b) => (within(a, b, rational(0n, 1n)) ? 0 : a.n * b.d < b.n * a.d ? -1 : 1)) };
  const fenced = /^([([])(.*)([)\]])$/s.exec(plain);
  if (fenced && parts(fenced[2] as string).length > 1) {
    const [, open, inside = "", close] = fenced;
    const ends = parts(inside).map((part) => part.trim());
    const shape = ends.map((end) => (/^-?\\infty$/.test(end) ? end : "")).join("|");
    return { shape: `${open}${shape}${close}`, values: ends.filter((end) => !end.includes("\\infty")).map((end) => scalar(end, x)) };
  }
  return { shape: "number", values: [scalar(plain, x)] };
}

const split = (inside: string, x: Rational): Rational[] => parts(inside).map((part) => scalar(part, x));

/** Parts between commas that set entries off; one with exactly three digits behind it belongs to a number. */
function parts(inside: string): string[] {
  return inside.split(/,(?!\d{3}(?!\d))/);
}

const scalar = (text: string, x: Rational): Rational => new Reader(text, x).whole();

class Reader {
  private at = 0;
  private readonly text: string;
  constructor(
    text: string,
    private readonly x: Rational,
  ) {
    this.text = text.trim();
  }

  whole(): Rational {
    const value = this.sum();
    if (this.at < this.text.length) throw new Unread(`${this.text.slice(this.at)} is left over`);
    return value;
  }

  private skip(): void {
    while (/\s/.test(this.text[this.at] ?? "")) this.at++;
  }

  private take(pattern: RegExp): string | undefined {
    this.skip();
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  private expect(pattern: RegExp): void {
    if (this.take(pattern) === undefined) throw new Unread(`${pattern.source} is missing`);
  }

  private sum(): Rational {
    let value = rational(0n, 1n);
    let sign = this.take(/[+-]/y) ?? "+";
    for (;;) {
      const term = this.product();
      value = add(value, sign === "-" ? negate(term) : term);
      const next = this.take(/[+-]/y);
      if (next === undefined) return value;
      sign = next;
    }
  }

  private product(): Rational {
    let value = this.factor();
    for (;;) {
      if (this.take(/\\cdot|\\times|\*/y) !== undefined) value = multiply(value, this.factor());
      else if (this.take(/\//y) !== undefined) value = divide(value, nonZero(this.factor()));
      else if (this.take(/\\%/y) !== undefined) value = divide(value, rational(100n, 1n));
      else if (this.take(/(?=\\sqrt|\\[dt]?frac|[a-z(])/y) !== undefined) value = multiply(value, this.factor());
      else return value;
    }
  }

  private factor(): Rational {
    const base = this.atom();
    if (this.take(/\^/y) === undefined) return base;
    const exponent = this.take(/\{/y) === undefined ? this.number() : this.closed(/\}/y);
    if (exponent.d === 2n) return power(root(base), exponent.n);
    if (exponent.d !== 1n) throw new Unread("an exponent that is no half");
    return power(base, exponent.n);
  }

  private closed(end: RegExp): Rational {
    const value = this.sum();
    this.expect(end);
    return value;
  }

  private atom(): Rational {
    if (this.take(/\(/y) !== undefined) return this.closed(/\)/y);
    if (this.take(/\\[dt]?frac\{/y) !== undefined) return this.fraction();
    if (this.take(/\\sqrt\{/y) !== undefined) return root(this.closed(/\}/y));
    if (this.take(/x(?![a-z])/y) !== undefined) return this.x;
    const whole = this.number();
    // A whole number right before a fraction is a mixed number.
    return this.take(/\\[dt]?frac\{/y) === undefined ? whole : add(whole, this.fraction());
  }

  private fraction(): Rational {
    const over = this.closed(/\}/y);
    this.expect(/\{/y);
    return divide(over, nonZero(this.closed(/\}/y)));
  }

  private number(): Rational {
    const written = this.take(/(?:\d{1,3}(?:(?:,|\{,\})\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?/y);
    const value = written === undefined ? "unreadable" : readDecimal(written.replaceAll(/[{},]/g, ""));
    if (typeof value === "string") throw new Unread("a number is missing");
    return value;
  }
}

function nonZero(value: Rational): Rational {
  if (value.n === 0n) throw new Unread("a division by zero");
  return value;
}

function power(base: Rational, exponent: bigint): Rational {
  if (exponent < 0n) return divide(one, nonZero(power(base, -exponent)));
  if (exponent > 400n) throw new Unread("a large exponent");
  return { n: base.n ** exponent, d: base.d ** exponent };
}

/** The root to 60 digits, exact where it is. */
function root({ n, d }: Rational): Rational {
  if (n < 0n) throw new Unread("the root of a negative number");
  const [over, under] = [wholeRoot(n), wholeRoot(d)];
  if (over * over === n && under * under === d) return rational(over, under);
  return rational(wholeRoot((n * rootDigits * rootDigits) / d), rootDigits);
}

/** ⌊√n⌋ by Newton's iteration from above. */
function wholeRoot(n: bigint): bigint {
  if (n < 2n) return n;
  let guess = 1n << BigInt((n.toString(2).length + 1) >> 1);
  for (;;) {
    const next = (guess + n / guess) >> 1n;
    if (next >= guess) return guess;
    guess = next;
  }
}
