/** Exponential, logarithm, sine, cosine and arctangent of intervals, and π: series on reduced arguments, with what they may be off added to the interval. */
import { bitsOf } from "./exact.js";
import { ceilShift, floorShift, type Real, type Reals, real0, real1 } from "./real.js";
import { TooLarge } from "./types.js";

/** Bits beyond those asked for that series carry; their last 2^slack units are given away as error. */
const guard = 40;
const slack = 20;

const piCache = new Map<number, bigint>();
const ln2Cache = new Map<number, bigint>();

/** Σ 1/((2k+1)·x^(2k+1)), with alternating signs or not: arctan(1/x) or artanh(1/x), times 2^bits. */
function inverseTangent(x: bigint, bits: number, alternating: boolean): bigint {
  let term = (1n << BigInt(bits)) / x;
  let sum = term;
  const square = x * x;
  for (let k = 3n, sign = alternating ? -1n : 1n; term > 0n; k += 2n) {
    term /= square;
    sum += (sign * term) / k;
    if (alternating) sign = -sign;
  }
  return sum;
}

/** π·2^bits, off by less than 2^10 (Machin 1706). */
export function piFixed(bits: number): bigint {
  let pi = piCache.get(bits);
  if (pi === undefined) {
    pi = 4n * (4n * inverseTangent(5n, bits, true) - inverseTangent(239n, bits, true));
    piCache.set(bits, pi);
  }
  return pi;
}

/** ln 2 · 2^bits, off by less than 2^10. */
function ln2Fixed(bits: number): bigint {
  let ln2 = ln2Cache.get(bits);
  if (ln2 === undefined) {
    ln2 = 18n * inverseTangent(26n, bits, false) - 2n * inverseTangent(4801n, bits, false) + 8n * inverseTangent(8749n, bits, false);
    ln2Cache.set(bits, ln2);
  }
  return ln2;
}

/** A precision in steps, so that few constants are kept. */
const stepped = (bits: number): number => Math.ceil(bits / 64) * 64;

function around(value: bigint, e: number, reals: Reals, lost = 0): Real {
  const off = 1n << BigInt(slack + lost);
  return reals.rounded(value - off, value + off, e);
}

export function pi(reals: Reals): Real {
  const bits = stepped(reals.bits + guard);
  return around(piFixed(bits), -bits, reals);
}

/** Whether the number may be beyond 2^limit, on either side of 0. */
function isBeyond({ lo, hi, e }: Real, limit: number): boolean {
  return bitsOf(-lo > hi ? -lo : hi) + e > limit;
}

/** Taylor's series of eʳ for a small r, fixed point. */
function expSeries(r: bigint, bits: number): bigint {
  // e^r = (e^(r/2^s))^(2^s)
  const halvings = 8;
  const small = r >> BigInt(halvings);
  const shift = BigInt(bits);
  let term = 1n << shift;
  let sum = term;
  for (let k = 1n; term !== 0n && term !== -1n; k++) {
    term = (term * small) >> shift;
    term /= k;
    sum += term;
  }
  for (let i = 0; i < halvings; i++) sum = (sum * sum) >> shift;
  return sum;
}

/** e^(x·2^e) of one number. */
function expPoint(x: bigint, e: number, reals: Reals): Real {
  if (x === 0n) return real1;
  const magnitude = bitsOf(x) + e;
  if (magnitude > 34) throw new TooLarge("an exponent is too large");
  const bits = stepped(reals.bits + guard + Math.max(0, magnitude));
  reals.budget.spend(bits >> 1);
  const fixed = floorShift(x, -(bits + e));
  const ln2 = ln2Fixed(bits);
  const k = fixed / ln2;
  const value = expSeries(fixed - k * ln2, bits);
  return around(value, Number(k) - bits, reals, Math.max(0, magnitude));
}

export function exp(a: Real, reals: Reals): Real {
  const low = expPoint(a.lo, a.e, reals);
  if (a.lo === a.hi) return low;
  const width: Real = { lo: 0n, hi: a.hi - a.lo, e: a.e };
  // e^w ≤ 1 + 2w for w ≤ 1
  if (!isBeyond(width, 0)) return reals.multiply(low, reals.add(real1, { ...width, hi: 2n * width.hi }));
  return reals.hull(low, expPoint(a.hi, a.e, reals));
}

/** ln(x·2^e) of one number above 0: Halley's steps y + 2(x − eʸ)/(x + eʸ) from a double. */
function lnPoint(x: bigint, e: number, reals: Reals): Real {
  const size = bitsOf(x);
  const power = size + e;
  const lost = bitsOf(BigInt(Math.abs(power)));
  const bits = stepped(reals.bits + guard + lost);
  reals.budget.spend(bits * 2);
  // x = m·2^power with m from 1/4 to 1
  const m = floorShift(x, size - bits);
  let y = BigInt(Math.round(Math.log(Number(m >> BigInt(bits - 52)) / 2 ** 52) * 2 ** 50)) << BigInt(bits - 50);
  for (let known = 40; known < bits; known *= 3) {
    const raised = expSeries(y, bits);
    y += ((2n * (m - raised)) << BigInt(bits)) / (m + raised);
  }
  return around(y + BigInt(power) * ln2Fixed(bits), -bits, reals, lost);
}

/** Undefined where the number may be 0 or below. */
export function ln(a: Real, reals: Reals): Real | undefined {
  if (a.lo <= 0n) return undefined;
  const low = lnPoint(a.lo, a.e, reals);
  if (a.lo === a.hi) return low;
  // ln(hi) ≤ ln(lo) + (hi − lo)/lo
  const width = a.hi - a.lo;
  if (width < a.lo) {
    const bits = BigInt(reals.bits + guard);
    return reals.add(low, { lo: 0n, hi: (width << bits) / a.lo + 1n, e: -Number(bits) });
  }
  return reals.hull(low, lnPoint(a.hi, a.e, reals));
}

/** Sine and cosine. */
export function sinCos(a: Real, reals: Reals): { readonly sin: Real; readonly cos: Real } {
  const anything: Real = { lo: -1n, hi: 1n, e: 0 };
  const width = { lo: 0n, hi: a.hi - a.lo, e: a.e };
  if (isBeyond(width, 2)) return { sin: anything, cos: anything };
  const middle = a.lo + a.hi;
  const e = a.e - 1;
  if (middle === 0n && a.lo === 0n) return { sin: real0, cos: real1 };
  const magnitude = middle === 0n ? 0 : bitsOf(middle) + e;
  if (magnitude > 4096) throw new TooLarge("an angle is too large");
  // A small angle keeps its digits.
  const bits = stepped(reals.bits + guard + Math.min(Math.abs(magnitude), 4096));
  reals.budget.spend(bits >> 1);
  const x = floorShift(middle, -(bits + e));
  const half = piFixed(bits) >> 1n;
  const quarter = half >> 1n;
  const turns = (x >= 0n ? x + quarter : x - quarter) / half;
  const [s, c] = sinCosSeries(x - turns * half, bits);
  const quadrant = Number(((turns % 4n) + 4n) % 4n);
  const [sin, cos] = (
    [
      [s, c],
      [c, -s],
      [-s, -c],
      [-c, s],
    ] as const
  )[quadrant as 0 | 1 | 2 | 3] as readonly [bigint, bigint];
  const spread = ceilShift(width.hi, -(bits + a.e)) + (1n << BigInt(slack)) + (bitsOf(turns) > 0 ? (turns < 0n ? -turns : turns) << 12n : 0n);
  const off = (value: bigint): Real => reals.rounded(value - spread, value + spread, -bits);
  return { sin: off(sin), cos: off(cos) };
}

function sinCosSeries(x: bigint, bits: number): readonly [bigint, bigint] {
  const shift = BigInt(bits);
  const square = (x * x) >> shift;
  const series = (first: bigint, from: bigint): bigint => {
    let term = first;
    let sum = first;
    for (let k = from; term !== 0n && term !== -1n; k += 2n) {
      term = -((term * square) >> shift) / (k * (k + 1n));
      sum += term;
    }
    return sum;
  };
  return [series(x, 2n), series(1n << shift, 1n)];
}

/** Arctangent of one number: halved angles, then its series. */
function arctanPoint(x: bigint, e: number, reals: Reals): Real {
  if (x === 0n) return real0;
  const negative = x < 0n;
  const size = negative ? -x : x;
  const magnitude = bitsOf(size) + e;
  const bits = stepped(reals.bits + guard + Math.min(Math.max(0, -magnitude), 4096));
  reals.budget.spend(bits);
  const unit = 1n << BigInt(bits);
  // arctan x = π/2 − arctan 1/x beyond 1
  const isLarge = magnitude > 0;
  let t = 0n;
  if (!isLarge) t = floorShift(size, -(bits + e));
  else if (magnitude <= bits) t = (unit * unit) / floorShift(size, -(bits + e));
  const halvings = 4;
  for (let i = 0; i < halvings; i++) t = (t << BigInt(bits)) / (unit + rootFixed(unit * unit + t * t));
  const square = (t * t) >> BigInt(bits);
  let term = t;
  let sum = t;
  for (let k = 3n; term !== 0n && term !== -1n; k += 2n) {
    term = -((term * square) >> BigInt(bits));
    sum += term / k;
  }
  let value = sum << BigInt(halvings);
  if (isLarge) value = (piFixed(bits) >> 1n) - value;
  return around(negative ? -value : value, -bits, reals);
}

function rootFixed(n: bigint): bigint {
  const bits = bitsOf(n);
  const shift = Math.max(0, (bits - 100) >> 1);
  let x = (BigInt(Math.ceil(Math.sqrt(Number(n >> BigInt(2 * shift))) * (1 + 1e-12))) + 1n) << BigInt(shift);
  for (;;) {
    const next = (x + n / x) >> 1n;
    if (next >= x) return x;
    x = next;
  }
}

export function arctan(a: Real, reals: Reals): Real {
  const low = arctanPoint(a.lo, a.e, reals);
  if (a.lo === a.hi) return low;
  return reals.hull(low, arctanPoint(a.hi, a.e, reals));
}
