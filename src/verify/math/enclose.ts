/** Enclosures: boxes of complex numbers that hold the value of an expression, at a precision and with values for its variables. */
import type { Rational } from "../number/rational.js";
import { type Complex, Complexes, imaginaryUnit } from "./complex.js";
import { exact, isWhole } from "./exact.js";
import { floorShift, type Real, Reals, real0, real1, wholeReal } from "./real.js";
import { arctan, pi } from "./transcendental.js";
import { type Budget, type Expression, TooLarge } from "./types.js";

export class Enclosure {
  readonly reals: Reals;
  private readonly complexes: Complexes;
  /** A root or logarithm of a number below 0 was taken. */
  branched = false;

  constructor(
    bits: number,
    private readonly budget: Budget,
    private readonly variables: ReadonlyMap<string, Rational> = new Map(),
  ) {
    this.reals = new Reals(bits, budget);
    this.complexes = new Complexes(this.reals);
  }

  /** The box of an expression; undefined where it has no value, or is not known to have one. Throws TooLarge. */
  of(expression: Expression): Complex | undefined {
    const { complexes, reals } = this;
    this.budget.spend(2);
    switch (expression.op) {
      case "number":
        return { re: reals.rational(expression.value) };
      case "symbol": {
        const value = this.variables.get(expression.name);
        return value && { re: reals.rational(value) };
      }
      case "constant":
        return this.constant(expression.name);
      case "negate": {
        const value = this.of(expression.of);
        return value && complexes.negate(value);
      }
      case "add":
        return this.folded(expression.terms, (a, b) => complexes.add(a, b));
      case "multiply":
        return this.folded(expression.factors, (a, b) => complexes.multiply(a, b));
      case "divide": {
        const over = this.of(expression.over);
        const under = over && this.of(expression.under);
        return over && under && complexes.divide(over, under);
      }
      case "degrees": {
        const value = this.of(expression.of);
        return value && complexes.multiply(value, complexes.divide({ re: pi(reals) }, { re: wholeReal(180) }) as Complex);
      }
      case "power":
        return this.power(expression.base, expression.exponent);
      case "function":
        return this.applied(expression.name, expression.of);
      case "sum":
      case "product": {
        const value = exact(expression, this.budget, this.variables);
        return value && { re: reals.rational(value) };
      }
      default:
        return undefined;
    }
  }

  private constant(name: "pi" | "e" | "i" | "infinity"): Complex | undefined {
    if (name === "infinity") return undefined;
    if (name === "i") return imaginaryUnit;
    return name === "pi" ? { re: pi(this.reals) } : this.complexes.exp({ re: real1 });
  }

  private folded(parts: readonly Expression[], join: (a: Complex, b: Complex) => Complex): Complex | undefined {
    let total: Complex | undefined;
    for (const part of parts) {
      const value = this.of(part);
      if (value === undefined) return undefined;
      total = total === undefined ? value : join(total, value);
    }
    return total;
  }

  private exactly(expression: Expression): Rational | undefined {
    return exact(expression, this.budget, this.variables);
  }

  private power(base: Expression, exponent: Expression): Complex | undefined {
    const { complexes } = this;
    const known = this.exactly(exponent);
    if (known !== undefined && known.n > -(2n ** 53n) && known.n < 2n ** 53n && known.d <= 1000n) {
      const value = this.of(base);
      if (value === undefined) return undefined;
      const times = Number(known.n);
      if (Math.abs(times) <= 4096 || value.im !== undefined || value.re.lo <= 0n) {
        if (Math.abs(times) > 2 ** 30) throw new TooLarge("an exponent is too large");
        const root = known.d === 1n ? value : this.marked(value, complexes.root(value, Number(known.d)));
        return root && complexes.power(root, times);
      }
    }
    const raised = this.of(exponent);
    if (raised === undefined) return undefined;
    if (base.op === "constant" && base.name === "e") return complexes.exp(raised);
    const value = this.of(base);
    const log = value && this.marked(value, complexes.ln(value));
    return log && complexes.exp(complexes.multiply(log, raised));
  }

  /** The result of a function, noted where it took a real number out of the reals. */
  private marked(of: Complex, result: Complex | undefined): Complex | undefined {
    if (of.im === undefined && result?.im !== undefined) this.branched = true;
    return result;
  }

  private applied(name: Extract<Expression, { op: "function" }>["name"], parts: readonly Expression[]): Complex | undefined {
    const { complexes, reals } = this;
    const known = discrete.has(name) ? exact({ op: "function", name, of: parts }, this.budget, this.variables) : undefined;
    if (known !== undefined) return { re: reals.rational(known) };
    if (name === "root") return this.root(parts[0] as Expression, parts[1] as Expression);
    const values: Complex[] = [];
    for (const part of parts) {
      const value = this.of(part);
      if (value === undefined) return undefined;
      values.push(value);
    }
    const [a, b] = values as [Complex, Complex?];
    switch (name) {
      case "exp":
        return complexes.exp(a);
      case "ln":
        return this.marked(a, complexes.ln(a));
      case "log": {
        const log = this.marked(a, complexes.ln(a));
        const base = log && complexes.ln(b ?? { re: wholeReal(10) });
        return log && base && complexes.divide(log, base);
      }
      case "sin":
        return complexes.sinCos(a).sin;
      case "cos":
        return complexes.sinCos(a).cos;
      case "tan":
      case "cot": {
        const { sin, cos } = complexes.sinCos(a);
        return name === "tan" ? complexes.divide(sin, cos) : complexes.divide(cos, sin);
      }
      case "sec":
        return complexes.divide({ re: real1 }, complexes.sinCos(a).cos);
      case "csc":
        return complexes.divide({ re: real1 }, complexes.sinCos(a).sin);
      case "arctan":
        return a.im === undefined ? { re: arctan(a.re, reals) } : undefined;
      case "arcsin":
        return complexes.arcsin(a);
      case "arccos": {
        const angle = complexes.arcsin(a);
        return angle && complexes.subtract({ re: { ...pi(reals), e: pi(reals).e - 1 } }, angle);
      }
      case "sinh":
      case "cosh":
      case "tanh":
        return this.hyperbolic(name, a);
      case "abs":
        return { re: complexes.size(a) };
      case "conjugate":
        return complexes.conjugate(a);
      case "re":
        return { re: a.re };
      case "im":
        return { re: a.im ?? real0 };
      case "min":
      case "max":
        return this.extreme(name, values);
      case "floor":
      case "ceil":
        return this.rounded(name, a);
      default:
        return undefined;
    }
  }

  private root(radicand: Expression, index: Expression): Complex | undefined {
    const known = this.exactly(index);
    if (known === undefined || !isWhole(known) || known.n < 2n || known.n > 1000n)
      return this.power(radicand, { op: "divide", over: { op: "number", value: { n: 1n, d: 1n } }, under: index });
    const value = this.of(radicand);
    return value && this.marked(value, this.complexes.root(value, Number(known.n)));
  }

  private hyperbolic(name: "sinh" | "cosh" | "tanh", a: Complex): Complex | undefined {
    const { complexes } = this;
    const [up, down] = [complexes.exp(a), complexes.exp(complexes.negate(a))];
    const half = (z: Complex): Complex => ({ re: { ...z.re, e: z.re.e - 1 }, ...(z.im && { im: { ...z.im, e: z.im.e - 1 } }) });
    const sinh = half(complexes.subtract(up, down));
    const cosh = half(complexes.add(up, down));
    return name === "sinh" ? sinh : name === "cosh" ? cosh : complexes.divide(sinh, cosh);
  }

  private extreme(name: "min" | "max", values: readonly Complex[]): Complex | undefined {
    let best: Real | undefined;
    for (const { re, im } of values) {
      if (im !== undefined) return undefined;
      const order = best === undefined ? 1 : this.reals.compare(re, best);
      if (order === undefined) return undefined;
      if (best === undefined || order === (name === "max" ? 1 : -1)) best = re;
    }
    return best && { re: best };
  }

  /** Undefined where the interval has a whole number in it, or begins with one. */
  private rounded(name: "floor" | "ceil", { re, im }: Complex): Complex | undefined {
    if (im !== undefined) return undefined;
    if (re.e > 10_000) throw new TooLarge("a number is too large");
    const down = (x: bigint): bigint => floorShift(x, -re.e);
    const [low, high] = name === "floor" ? [down(re.lo), down(re.hi)] : [-down(-re.lo), -down(-re.hi)];
    return low === high ? { re: this.reals.rational({ n: low, d: 1n }) } : undefined;
  }
}

const discrete: ReadonlySet<string> = new Set(["factorial", "double-factorial", "permutations", "binomial", "gcd", "lcm", "mod", "floor", "ceil"]);
