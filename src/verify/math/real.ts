/** Intervals of real numbers [lo, hi]·2^e with whole lo and hi of about `bits` bits: results hold every result of what they were made of. */
import type { Rational } from "../number/rational.js";
import { bitsOf, floorDivide, floorRoot } from "./exact.js";
import { type Budget, TooLarge } from "./types.js";

export interface Real {
  readonly lo: bigint;
  readonly hi: bigint;
  readonly e: number;
}

export const real0: Real = { lo: 0n, hi: 0n, e: 0 };
export const real1: Real = { lo: 1n, hi: 1n, e: 0 };
export const wholeReal = (n: number): Real => ({ lo: BigInt(n), hi: BigInt(n), e: 0 });

/** Powers of two beyond which nothing is computed. */
const largestExponent = 2 ** 40;

/** a / 2^s, rounded down or up; a·2^−s where s is below 0. */
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
export const most = (a: bigint, b: bigint): bigint => (a > b ? a : b);

export const floorShift = (a: bigint, s: number): bigint => (s >= 0 ? a >> BigInt(s) : a << BigInt(-s));
export const ceilShift = (a: bigint, s: number): bigint => (s >= 0 ? -(-a >> BigInt(s)) : a << BigInt(-s));

const sizeOf = ({ lo, hi }: Real): bigint => (-lo > hi ? -lo : hi);

/** Arithmetic with a precision, at the cost of a budget. */
export class Reals {
  constructor(
    readonly bits: number,
    readonly budget: Budget,
  ) {}

  rounded(lo: bigint, hi: bigint, e: number): Real {
    if (!(Math.abs(e) < largestExponent)) throw new TooLarge("a number is too large");
    const excess = bitsOf(-lo > hi ? -lo : hi) - this.bits;
    return excess <= 24 ? { lo, hi, e } : { lo: floorShift(lo, excess), hi: ceilShift(hi, excess), e: e + excess };
  }

  rational({ n, d }: Rational): Real {
    if (d === 1n) return this.rounded(n, n, 0);
    const shift = Math.max(0, this.bits + 8 + bitsOf(d) - bitsOf(n));
    const lo = floorDivide(n << BigInt(shift), d);
    return this.rounded(lo, lo + 1n, -shift);
  }

  add(a: Real, b: Real): Real {
    this.budget.spend(3);
    if (a.lo === 0n && a.hi === 0n) return b;
    if (b.lo === 0n && b.hi === 0n) return a;
    const [low, high] = a.e <= b.e ? [a, b] : [b, a];
    const apart = high.e - low.e;
    if (apart > this.bits * 2 + 64 + bitsOf(sizeOf(low))) {
      // The smaller one is less than a last digit of the larger one.
      const shift = this.bits + 32;
      const [lo, hi] = [high.lo << BigInt(shift), high.hi << BigInt(shift)];
      return this.rounded(lo - (low.lo < 0n ? 1n : 0n), hi + (low.hi > 0n ? 1n : 0n), high.e - shift);
    }
    const shift = BigInt(apart);
    return this.rounded((high.lo << shift) + low.lo, (high.hi << shift) + low.hi, low.e);
  }

  negate = ({ lo, hi, e }: Real): Real => ({ lo: -hi, hi: -lo, e });

  subtract(a: Real, b: Real): Real {
    return this.add(a, this.negate(b));
  }

  multiply(a: Real, b: Real): Real {
    this.budget.spend(3 + (this.bits >> 6));
    const e = a.e + b.e;
    if (a.lo >= 0n && b.lo >= 0n) return this.rounded(a.lo * b.lo, a.hi === a.lo && b.hi === b.lo ? a.lo * b.lo : a.hi * b.hi, e);
    const products = [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi];
    let [lo, hi] = [products[0] as bigint, products[0] as bigint];
    for (const product of products) {
      if (product < lo) lo = product;
      if (product > hi) hi = product;
    }
    return this.rounded(lo, hi, e);
  }

  /** Undefined where the divisor may be 0. */
  divide(a: Real, b: Real): Real | undefined {
    if (b.lo <= 0n && b.hi >= 0n) return undefined;
    if (b.hi < 0n) return this.divide(this.negate(a), this.negate(b));
    this.budget.spend(6 + (this.bits >> 5));
    const size = sizeOf(a);
    if (size === 0n) return real0;
    const shift = Math.max(0, this.bits + 8 + bitsOf(b.hi) - bitsOf(size));
    const lo = floorDivide(a.lo << BigInt(shift), a.lo >= 0n ? b.hi : b.lo);
    const hi = -floorDivide(-(a.hi << BigInt(shift)), a.hi >= 0n ? b.lo : b.hi);
    return this.rounded(lo, hi, a.e - b.e - shift);
  }

  /** The root of an index from 2 on; undefined where the number may be below 0. */
  root(a: Real, index: number): Real | undefined {
    if (a.lo < 0n) return undefined;
    if (a.hi === 0n) return real0;
    this.budget.spend(20 + (this.bits >> 3));
    let shift = Math.max(0, index * (this.bits + 4) - bitsOf(a.hi));
    const rest = (((a.e - shift) % index) + index) % index;
    shift += rest;
    const low = floorRoot(a.lo << BigInt(shift), index);
    const isExact = a.lo === a.hi && low ** BigInt(index) === a.lo << BigInt(shift);
    const high = isExact ? low : a.lo === a.hi ? low + 1n : floorRoot(a.hi << BigInt(shift), index) + 1n;
    return this.rounded(low, high, (a.e - shift) / index);
  }

  /** aⁿ for a whole n from 0 on. */
  power(a: Real, n: number): Real {
    let result = real1;
    let square = a;
    for (let rest = n; rest > 0; rest = Math.floor(rest / 2)) {
      if (rest % 2 === 1) result = this.multiply(result, square);
      if (rest > 1) square = this.multiply(square, square);
    }
    // An even power is never below 0.
    return n % 2 === 0 && result.lo < 0n ? { ...result, lo: 0n } : result;
  }

  absolute(a: Real): Real {
    if (a.lo >= 0n) return a;
    return a.hi <= 0n ? this.negate(a) : { lo: 0n, hi: sizeOf(a), e: a.e };
  }

  /** The least interval with both. */
  hull(a: Real, b: Real): Real {
    const e = Math.min(a.e, b.e);
    if (Math.abs(a.e - b.e) > 100_000) throw new TooLarge("numbers of very different sizes");
    const at = (x: bigint, from: number): bigint => x << BigInt(from - e);
    return this.rounded(least(at(a.lo, a.e), at(b.lo, b.e)), most(at(a.hi, a.e), at(b.hi, b.e)), e);
  }

  /** −1 or 1 where all of a is below or above all of b, 0 where they are one number, undefined where it is not known. */
  compare(a: Real, b: Real): -1 | 0 | 1 | undefined {
    const difference = this.subtract(a, b);
    if (difference.lo > 0n) return 1;
    if (difference.hi < 0n) return -1;
    return difference.lo === 0n && difference.hi === 0n ? 0 : undefined;
  }

  /** Whether it is known to `bits` of its own or of an absolute size of 1. */
  isSharp(a: Real, bits: number): boolean {
    const width = a.hi - a.lo;
    if (width === 0n) return true;
    const size = bitsOf(sizeOf(a));
    return bitsOf(width) + a.e <= Math.max(size + a.e, 0) - bits;
  }
}

/** A double inside an interval, or near it. */
export function nearest({ lo, hi, e }: Real): number {
  const middle = lo + hi;
  const shift = Math.max(0, bitsOf(middle) - 60);
  return Number(middle >> BigInt(shift)) * 2 ** Math.max(-1100, Math.min(1100, e + shift - 1));
}
