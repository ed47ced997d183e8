/** Boxes of complex numbers. Without an imaginary part a number is known to be real. */
import { most, type Real, type Reals, real0, real1, wholeReal } from "./real.js";
import { arctan, exp, ln, pi, sinCos } from "./transcendental.js";

export interface Complex {
  readonly re: Real;
  readonly im?: Real;
}

const isZero = ({ lo, hi }: Real): boolean => lo === 0n && hi === 0n;
const box = (re: Real, im: Real): Complex => (isZero(im) ? { re } : { re, im });
export const imaginaryUnit: Complex = { re: real0, im: real1 };
export const isReal = (z: Complex): boolean => z.im === undefined;

/** Arithmetic of boxes. What is undefined, or not known to be defined, is undefined. */
export class Complexes {
  constructor(readonly reals: Reals) {}

  add(a: Complex, b: Complex): Complex {
    const re = this.reals.add(a.re, b.re);
    return a.im === undefined && b.im === undefined ? { re } : box(re, this.reals.add(a.im ?? real0, b.im ?? real0));
  }

  negate(a: Complex): Complex {
    return a.im === undefined ? { re: this.reals.negate(a.re) } : { re: this.reals.negate(a.re), im: this.reals.negate(a.im) };
  }

  subtract(a: Complex, b: Complex): Complex {
    return this.add(a, this.negate(b));
  }

  multiply(a: Complex, b: Complex): Complex {
    const { reals } = this;
    if (a.im === undefined && b.im === undefined) return { re: reals.multiply(a.re, b.re) };
    if (a.im === undefined) return box(reals.multiply(a.re, b.re), reals.multiply(a.re, b.im as Real));
    if (b.im === undefined) return box(reals.multiply(a.re, b.re), reals.multiply(a.im, b.re));
    return box(reals.subtract(reals.multiply(a.re, b.re), reals.multiply(a.im, b.im)), reals.add(reals.multiply(a.re, b.im), reals.multiply(a.im, b.re)));
  }

  divide(a: Complex, b: Complex): Complex | undefined {
    const { reals } = this;
    if (b.im === undefined) {
      const re = reals.divide(a.re, b.re);
      const im = a.im && reals.divide(a.im, b.re);
      return re && (a.im === undefined ? { re } : im && box(re, im));
    }
    const size = this.squaredSize(b);
    const over = this.multiply(a, this.conjugate(b));
    const re = reals.divide(over.re, size);
    const im = reals.divide(over.im ?? real0, size);
    return re && im && box(re, im);
  }

  conjugate(a: Complex): Complex {
    return a.im === undefined ? a : { re: a.re, im: this.reals.negate(a.im) };
  }

  squaredSize(a: Complex): Real {
    const square = this.reals.power(a.re, 2);
    return a.im === undefined ? square : this.reals.add(square, this.reals.power(a.im, 2));
  }

  size(a: Complex): Real {
    return a.im === undefined ? this.reals.absolute(a.re) : (this.reals.root(this.squaredSize(a), 2) as Real);
  }

  power(a: Complex, n: number): Complex | undefined {
    if (n < 0) {
      const raised = this.power(a, -n);
      return raised && this.divide({ re: real1 }, raised);
    }
    if (a.im === undefined) return { re: this.reals.power(a.re, n) };
    let result: Complex = { re: real1 };
    let square = a;
    for (let rest = n; rest > 0; rest = Math.floor(rest / 2)) {
      if (rest % 2 === 1) result = this.multiply(result, square);
      if (rest > 1) square = this.multiply(square, square);
    }
    return result;
  }

  /** The principal square root; of real numbers around 0 a box with both kinds. */
  squareRoot(a: Complex): Complex | undefined {
    const { reals } = this;
    if (a.im === undefined) {
      const { lo, hi, e } = a.re;
      if (lo >= 0n) return { re: reals.root(a.re, 2) as Real };
      const below = reals.root({ lo: hi <= 0n ? -hi : 0n, hi: -lo, e }, 2) as Real;
      return { re: hi <= 0n ? real0 : { ...(reals.root({ lo: 0n, hi, e }, 2) as Real) }, im: below };
    }
    return this.root(a, 2);
  }

  /** The root of an index: the real one of a real number where there is one, else the principal one. */
  root(a: Complex, index: number): Complex | undefined {
    const { reals } = this;
    if (a.im === undefined) {
      if (index === 2) return this.squareRoot(a);
      if (a.re.lo >= 0n) return { re: reals.root(a.re, index) as Real };
      if (index % 2 === 1) {
        if (a.re.hi <= 0n) return { re: reals.negate(reals.root(reals.negate(a.re), index) as Real) };
        const reach = reals.root({ lo: 0n, hi: most(a.re.hi, -a.re.lo), e: a.re.e }, index) as Real;
        return { re: { lo: -reach.hi, hi: reach.hi, e: reach.e } };
      }
      if (a.re.hi >= 0n) return undefined;
    }
    const log = this.ln(a);
    return log && this.exp(this.divide(log, { re: wholeReal(index) }) as Complex);
  }

  exp(a: Complex): Complex {
    const size = exp(a.re, this.reals);
    if (a.im === undefined) return { re: size };
    const { sin, cos } = sinCos(a.im, this.reals);
    return box(this.reals.multiply(size, cos), this.reals.multiply(size, sin));
  }

  /** The principal logarithm. */
  ln(a: Complex): Complex | undefined {
    if (a.im === undefined && a.re.lo > 0n) {
      const re = ln(a.re, this.reals);
      return re && { re };
    }
    const size = ln(this.squaredSize(a), this.reals);
    const angle = size && this.argument(a);
    return size && angle && { re: { ...size, e: size.e - 1 }, im: angle };
  }

  /** The angle of a number from −π to π; undefined around 0 and across the negative axis. */
  argument(a: Complex): Real | undefined {
    const { reals } = this;
    const { re, im } = a;
    if (im === undefined) return re.lo > 0n ? real0 : re.hi < 0n ? pi(reals) : undefined;
    if (re.lo > 0n) return arctan(reals.divide(im, re) as Real, reals);
    const isAbove = im.lo > 0n;
    if (!isAbove && !(im.hi < 0n)) return undefined;
    // arg z = ±π/2 − arctan(re/im)
    const half: Real = { ...pi(reals), e: pi(reals).e - 1 };
    return reals.subtract(isAbove ? half : reals.negate(half), arctan(reals.divide(re, im) as Real, reals));
  }

  sinCos(a: Complex): { readonly sin: Complex; readonly cos: Complex } {
    const { reals } = this;
    const { sin, cos } = sinCos(a.re, reals);
    if (a.im === undefined) return { sin: { re: sin }, cos: { re: cos } };
    const { sinh, cosh } = this.hyperbolic(a.im);
    return {
      sin: box(reals.multiply(sin, cosh), reals.multiply(cos, sinh)),
      cos: box(reals.multiply(cos, cosh), reals.negate(reals.multiply(sin, sinh))),
    };
  }

  hyperbolic(a: Real): { readonly sinh: Real; readonly cosh: Real } {
    const { reals } = this;
    const [up, down] = [exp(a, reals), exp(reals.negate(a), reals)];
    const half = (x: Real): Real => ({ ...x, e: x.e - 1 });
    return { sinh: half(reals.subtract(up, down)), cosh: half(reals.add(up, down)) };
  }

  /** Arcsine of a real number from −1 to 1: arctan(x/√(1 − x²)), and ±π/2 at the ends. */
  arcsin(a: Complex): Complex | undefined {
    const { reals } = this;
    if (a.im !== undefined) return undefined;
    const rest = reals.subtract(real1, reals.power(a.re, 2));
    if (rest.hi < 0n) return undefined;
    const half: Real = { ...pi(reals), e: pi(reals).e - 1 };
    if (isZero(rest)) return { re: a.re.lo > 0n ? half : reals.negate(half) };
    const leg = reals.root({ ...rest, lo: rest.lo < 0n ? 0n : rest.lo }, 2) as Real;
    const quotient = reals.divide(a.re, leg);
    if (quotient !== undefined) return { re: arctan(quotient, reals) };
    // Close to an end: arcsin x = ±(π/2 − arctan(leg/|x|))
    const size = reals.absolute(a.re);
    const angle = size.lo > 0n ? reals.divide(leg, size) : undefined;
    if (angle === undefined) return undefined;
    const near = reals.subtract(half, arctan(angle, reals));
    return { re: a.re.lo > 0n ? near : reals.negate(near) };
  }
}
