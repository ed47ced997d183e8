/** Exact answers to audit verifiers with: values of eight forms, drawn from a seed, and how a reference spells them. */
import { randomKey, Stream } from "../core/random.js";
import { type Rational, rational } from "../verify/number/rational.js";

/** The forms of answers. */
export const forms = ["integer", "fraction", "decimal", "radical", "polynomial", "tuple", "set", "interval"] as const;
export type Form = (typeof forms)[number];

/** A value, held exactly. */
export type Exact =
  | { readonly kind: "rational"; readonly value: Rational }
  /** plus + times √root, whole numbers, root without a square in it. */
  | { readonly kind: "radical"; readonly plus: bigint; readonly times: bigint; readonly root: bigint }
  /** Coefficients of x⁰, x¹ and so on. */
  | { readonly kind: "polynomial"; readonly coefficients: readonly bigint[] }
  | { readonly kind: "tuple" | "set"; readonly items: readonly Rational[] }
  /** An end without a value is infinite. */
  | { readonly kind: "interval"; readonly low?: bigint; readonly high?: bigint; readonly closed: readonly [boolean, boolean] };

/** A reference: its value, and its spelling as data sets have it. */
export interface Gold {
  readonly form: Form;
  readonly value: Exact;
  readonly text: string;
}

/** References drawn from a seed: a third are whole numbers, of one to twelve digits. No two are spelled alike. */
export function drawGolds(count: number, seed: number): Gold[] {
  const random = new Stream(randomKey({ seed, purpose: "audit/golds" }));
  const found = new Map<string, Gold>();
  while (found.size < count) {
    const form = random.pick(shares);
    const value = draw(form, random);
    const text = spelled(form, value);
    if (!found.has(text)) found.set(text, { form, value, text });
  }
  return [...found.values()];
}

const shares: readonly Form[] = [
  ...Array<Form>(6).fill("integer"),
  ...Array<Form>(3).fill("fraction"),
  ...Array<Form>(2).fill("decimal"),
  ...Array<Form>(3).fill("radical"),
  ...Array<Form>(2).fill("polynomial"),
  ...Array<Form>(2).fill("tuple"),
  "set",
  "interval",
];
const squareFree: readonly bigint[] = [2n, 3n, 5n, 6n, 7n, 10n, 11n, 13n, 14n, 15n];

function draw(form: Form, random: Stream): Exact {
  const signed = (most: number): bigint => BigInt(random.int(most) + 1) * (random.int(2) === 0 ? 1n : -1n);
  const distinct = (count: number): Rational[] => {
    const all = new Set<bigint>();
    while (all.size < count) all.add(signed(30));
    return [...all].map((n) => rational(n, 1n));
  };
  switch (form) {
    case "integer":
      return { kind: "rational", value: rational(signed(10 ** (1 + random.int(12))), 1n) };
    case "fraction":
      for (;;) {
        const value = rational(signed(40), BigInt(2 + random.int(30)));
        if (value.d > 1n) return { kind: "rational", value };
      }
    case "decimal":
      for (;;) {
        const value = rational(signed(5000), 10n ** BigInt(1 + random.int(3)));
        if (value.d > 1n) return { kind: "rational", value };
      }
    case "radical":
      return { kind: "radical", plus: random.int(2) === 0 ? 0n : signed(12), times: signed(6), root: random.pick(squareFree) };
    case "polynomial": {
      const degree = 1 + random.int(3);
      const coefficients: bigint[] = [];
      for (let i = 0; i < degree; i++) coefficients.push(random.int(4) === 0 ? 0n : signed(9));
      if (!coefficients.some((c) => c !== 0n)) coefficients[0] = signed(9);
      return { kind: "polynomial", coefficients: [...coefficients, signed(9)] };
    }
    case "tuple":
      return { kind: "tuple", items: distinct(2 + random.int(2)) };
    case "set":
      return { kind: "set", items: distinct(2 + random.int(3)) };
    case "interval": {
      const low = signed(20);
      const high = low + BigInt(1 + random.int(15));
      const side = random.int(4);
      const closed: [boolean, boolean] = [side !== 0 && random.int(2) === 0, side !== 1 && random.int(2) === 0];
      return { kind: "interval", ...(side !== 0 && { low }), ...(side !== 1 && { high }), closed };
    }
  }
}

function spelled(form: Form, value: Exact): string {
  switch (value.kind) {
    case "rational":
      return form === "decimal" ? decimalText(value.value) : fractionText(value.value, "\\frac");
    case "radical":
      return radicalText(value);
    case "polynomial":
      return polynomialText(value.coefficients);
    case "tuple":
      return `(${value.items.map(({ n }) => String(n)).join(", ")})`;
    case "set":
      return `\\{${value.items.map(({ n }) => String(n)).join(", ")}\\}`;
    case "interval":
      return intervalText(value);
  }
}

const sized = (n: bigint): bigint => (n < 0n ? -n : n);

/** `-\frac{3}{4}`, or the number where it is whole. */
export function fractionText({ n, d }: Rational, command: string): string {
  return d === 1n ? String(n) : `${n < 0n ? "-" : ""}${command}{${sized(n)}}{${d}}`;
}

/** A fraction that ends, as a decimal. Undefined of others. */
export function terminating({ n, d }: Rational): string | undefined {
  let scale = 1n;
  for (let digits = 0; digits <= 12; digits++, scale *= 10n) {
    if (scale % d !== 0n) continue;
    const whole = String(sized(n) * (scale / d)).padStart(digits + 1, "0");
    const split = whole.length - digits;
    return `${n < 0n ? "-" : ""}${whole.slice(0, split)}${digits > 0 ? `.${whole.slice(split)}` : ""}`;
  }
  return undefined;
}

const decimalText = (value: Rational): string => terminating(value) as string;

/** Terms with their signs, the first without a plus. */
export const joined = (terms: readonly string[]): string => terms.map((term, i) => (i > 0 && !term.startsWith("-") ? `+${term}` : term)).join("");

const coefficient = (c: bigint): string => (c === 1n ? "" : c === -1n ? "-" : String(c));

export function radicalTerms({ plus, times, root }: Exact & { kind: "radical" }): string[] {
  return [...(plus === 0n ? [] : [String(plus)]), `${coefficient(times)}\\sqrt{${root}}`];
}

const radicalText = (value: Exact & { kind: "radical" }): string => joined(radicalTerms(value));

/** Terms from the highest power down. */
export function polynomialTerms(coefficients: readonly bigint[]): string[] {
  const term = (c: bigint, power: number): string => {
    if (power === 0) return String(c);
    return `${coefficient(c)}x${power === 1 ? "" : `^${power}`}`;
  };
  return coefficients.flatMap((c, power) => (c === 0n ? [] : [term(c, power)])).reverse();
}

export const polynomialText = (coefficients: readonly bigint[]): string => joined(polynomialTerms(coefficients)) || "0";

export function intervalText({ low, high, closed }: Exact & { kind: "interval" }): string {
  return `${closed[0] ? "[" : "("}${low ?? "-\\infty"}, ${high ?? "\\infty"}${closed[1] ? "]" : ")"}`;
}
