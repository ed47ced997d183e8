/**
 * Rewritings that keep a value by construction, and changes that do not. Each rule says to which category it belongs; each
 * pair that it gives is read again by `read.ts`, and none without that certificate is ever judged.
 */
import { multiply, type Rational, rational } from "../verify/number/rational.js";
import { agree, peeled } from "./read.js";
import { type Exact, fractionText, type Gold, intervalText, joined, polynomialTerms, polynomialText, radicalTerms, terminating } from "./value.js";

/** What a rewriting changes. */
export const categories = [
  "identity",
  "whitespace",
  "punctuation",
  "delimiters",
  "number form",
  "fraction form",
  "radical form",
  "commuted",
  "parentheses",
  "set order",
  "assignment",
  "percent",
] as const;
export type Category = (typeof categories)[number];

/** How a variant is shown: as it is, between dollar signs, or as its rule sets it. */
export type Setting = "bare" | "delimited";

/** A reference and a text that is known to say the same, or something else. */
export interface Pair {
  readonly gold: Gold;
  readonly text: string;
  readonly rule: string;
  readonly category: Category;
  readonly setting: Setting;
  readonly equal: boolean;
}

/** A rule: the texts that it makes of a reference; empty where it has nothing to change. */
interface Rule {
  readonly rule: string;
  readonly category: Category;
  /** Delimiters of its own, put around what was certified. */
  readonly set?: (inner: string) => string;
  readonly make: (gold: Gold) => string | undefined;
}

const same = ({ text }: Gold): string => text;
const number = (gold: Gold): Rational | undefined => (gold.value.kind === "rational" ? gold.value.value : undefined);
const whole = (gold: Gold): bigint | undefined => (number(gold)?.d === 1n ? number(gold)?.n : undefined);
const proper = (gold: Gold): Rational | undefined => (gold.form === "fraction" ? number(gold) : undefined);
const of = <T, R>(value: T | undefined, make: (value: T) => R | undefined): R | undefined => (value === undefined ? undefined : make(value));
const sized = (n: bigint): bigint => (n < 0n ? -n : n);
const minus = (n: bigint): string => (n < 0n ? "-" : "");
const grouped = (digits: string, comma: string): string => digits.replace(/\B(?=(?:\d{3})+$)/g, comma);
const set = (rule: string, frame: (inner: string) => string): Rule => ({ rule, category: "delimiters", set: frame, make: same });
const rule = (category: Category, name: string, make: Rule["make"]): Rule => ({ rule: name, category, make });
const isTerms = (terms: readonly string[]): string | undefined => (terms.length > 1 ? joined([...terms].reverse()) : undefined);
const radical = ({ value }: Gold): (Exact & { kind: "radical" }) | undefined => (value.kind === "radical" ? value : undefined);
const plus = (n: bigint): string => (n === 0n ? "" : String(n));

const rules: readonly Rule[] = [
  rule("identity", "as it is", same),
  rule("whitespace", "blank before", ({ text }) => ` ${text}`),
  rule("whitespace", "blank behind", ({ text }) => `${text} `),
  rule("whitespace", "newlines around", ({ text }) => `\n${text}\n`),
  rule("whitespace", "tab behind", ({ text }) => `${text}\t`),
  rule("whitespace", "no-break space behind", ({ text }) => `${text}\u00a0`),
  rule("whitespace", "thin spaces around", ({ text }) => `\\,${text}\\,`),
  rule("whitespace", "doubled blanks", ({ text }) => (/\S \S/.test(text) ? text.replaceAll(" ", "  ") : undefined)),
  rule("whitespace", "no blanks", ({ text }) => (/, /.test(text) ? text.replaceAll(", ", ",") : undefined)),
  rule("punctuation", "full stop", ({ text }) => `${text}.`),
  rule("punctuation", "comma", ({ text }) => `${text},`),
  rule("punctuation", "semicolon", ({ text }) => `${text};`),
  { rule: "full stop behind dollars", category: "punctuation", set: (inner) => `$${inner}$.`, make: same },
  set("round brackets", (inner) => `\\(${inner}\\)`),
  set("square brackets", (inner) => `\\[${inner}\\]`),
  set("double dollars", (inner) => `$$${inner}$$`),
  set("box", (inner) => `\\boxed{${inner}}`),
  set("box in dollars", (inner) => `$\\boxed{${inner}}$`),
  {
    rule: "text",
    category: "delimiters",
    set: (inner) => `\\text{${inner}}`,
    make: (gold) => (gold.form === "integer" || gold.form === "decimal" ? gold.text : undefined),
  },
  rule("number form", "commas", (gold) => of(whole(gold), (n) => (sized(n) > 999n ? minus(n) + grouped(String(sized(n)), ",") : undefined))),
  rule("number form", "braced commas", (gold) => of(whole(gold), (n) => (sized(n) > 999n ? minus(n) + grouped(String(sized(n)), "{,}") : undefined))),
  rule("number form", "plus sign", (gold) => of(whole(gold), (n) => (n > 0n ? `+${n}` : undefined))),
  rule("number form", "leading zeros", (gold) => of(whole(gold), (n) => `${minus(n)}00${sized(n)}`)),
  rule("number form", "zeros behind", (gold) => of(whole(gold), (n) => `${n}.00`) ?? (gold.form === "decimal" ? `${gold.text}0` : undefined)),
  rule("number form", "power of ten", (gold) => of(whole(gold), (n) => scientific(n, (digits, power) => `${digits} \\times 10^{${power}}`))),
  rule("number form", "exponent", (gold) => of(whole(gold), (n) => scientific(n, (digits, power) => `${digits}e${power}`))),
  rule("number form", "Unicode minus", (gold) => (gold.text.includes("-") ? gold.text.replaceAll("-", "−") : undefined)),
  rule("fraction form", "slash", (gold) => of(proper(gold), ({ n, d }) => `${n}/${d}`)),
  rule("fraction form", "dfrac", (gold) => of(proper(gold), (value) => fractionText(value, "\\dfrac"))),
  rule("fraction form", "sign above", (gold) => of(proper(gold), ({ n, d }) => (n < 0n ? `\\frac{${n}}{${d}}` : `-\\frac{-${n}}{${d}}`))),
  rule("fraction form", "unreduced", (gold) => of(proper(gold), ({ n, d }) => `${minus(n)}\\frac{${3n * sized(n)}}{${3n * d}}`)),
  rule("fraction form", "mixed", (gold) =>
    of(proper(gold), ({ n, d }) => (sized(n) > d ? `${minus(n)}${sized(n) / d}\\frac{${sized(n) % d}}{${d}}` : undefined)),
  ),
  rule("fraction form", "decimal", (gold) => of(proper(gold), terminating)),
  rule("fraction form", "fraction of a decimal", (gold) => (gold.form === "decimal" ? of(number(gold), (value) => fractionText(value, "\\frac")) : undefined)),
  rule("radical form", "under the root", (gold) =>
    of(radical(gold), ({ plus: p, times, root }) => joined([...(p === 0n ? [] : [String(p)]), `${minus(times)}\\sqrt{${times * times * root}}`])),
  ),
  rule("radical form", "half power", (gold) =>
    of(radical(gold), ({ plus: p, times, root }) => joined([...(p === 0n ? [] : [String(p)]), `${times}\\cdot ${root}^{1/2}`])),
  ),
  rule("radical form", "root below", (gold) =>
    of(radical(gold), ({ plus: p, times, root }) =>
      joined([...(p === 0n ? [] : [String(p)]), `${minus(times)}\\frac{${sized(times) * root}}{\\sqrt{${root}}}`]),
    ),
  ),
  rule("commuted", "sum", (gold) => {
    if (gold.value.kind === "polynomial") return isTerms(polynomialTerms(gold.value.coefficients));
    return of(radical(gold), (value) => isTerms(radicalTerms(value)));
  }),
  rule("commuted", "product", (gold) =>
    of(radical(gold), ({ plus: p, times, root }) => (times > 1n ? joined([...(p === 0n ? [] : [String(p)]), `\\sqrt{${root}} \\cdot ${times}`]) : undefined)),
  ),
  rule("commuted", "Horner", ({ value }) => (value.kind === "polynomial" && value.coefficients.length > 2 ? horner(value.coefficients) : undefined)),
  rule("parentheses", "round", (gold) => (scalarForms.has(gold.form) ? `(${gold.text})` : undefined)),
  rule("parentheses", "sized", ({ form, text }) => (scalarForms.has(form) ? `\\left(${text}\\right)` : /^[([]/.test(text) ? sizedFence(text) : undefined)),
  rule("set order", "reversed", ({ value }) =>
    value.kind === "set"
      ? `\\{${value.items
          .map(({ n }) => String(n))
          .reverse()
          .join(", ")}\\}`
      : undefined,
  ),
  rule("assignment", "named", (gold) => (number(gold) !== undefined || gold.form === "radical" ? `y = ${gold.text}` : undefined)),
  rule("percent", "percentage", (gold) =>
    of(number(gold), (value) => of(terminating(multiply(value, rational(100n, 1n))), (text) => (value.d > 1n ? `${text}\\%` : undefined))),
  ),
];

const scalarForms: ReadonlySet<string> = new Set(["integer", "fraction", "decimal", "radical", "polynomial"]);
const sizedFence = (text: string): string => `\\left${text.slice(0, -1)}\\right${text.at(-1)}`;

function scientific(n: bigint, write: (digits: string, power: number) => string): string | undefined {
  const digits = String(sized(n)).replace(/0+$/, "");
  const power = String(sized(n)).length - 1;
  return power < 3 ? undefined : write(`${minus(n)}${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ""}`, power);
}

function horner(coefficients: readonly bigint[]): string {
  const [constant = 0n, ...above] = coefficients;
  return joined([`x(${polynomialText(above)})`, ...(constant === 0n ? [] : [String(constant)])]);
}

/** All certified variants of a reference, bare and between dollar signs. Throws for one that its own reading contradicts. */
export function variantsOf(gold: Gold): Pair[] {
  return rules.flatMap(({ rule: name, category, set: frame, make }) => {
    const inner = make(gold);
    if (inner === undefined) return [];
    certify(gold, inner, name, true);
    const pair = { gold, rule: name, category, equal: true };
    if (frame !== undefined) return [{ ...pair, text: frame(inner), setting: "delimited" as const }];
    return [
      { ...pair, text: inner, setting: "bare" as const },
      { ...pair, text: `$${inner}$`, setting: "delimited" as const },
    ];
  });
}

/** Changes of the value that leave its spelling close: certified to be another value, bare and between dollar signs. */
export function mutantsOf(gold: Gold): Pair[] {
  return changes(gold).flatMap(([name, inner]) => {
    certify(gold, inner, name, false);
    const pair = { gold, rule: name, category: "identity" as const, equal: false };
    return [
      { ...pair, text: inner, setting: "bare" as const },
      { ...pair, text: `$${inner}$`, setting: "delimited" as const },
    ];
  });
}

function changes(gold: Gold): [string, string][] {
  const { value } = gold;
  switch (value.kind) {
    case "rational": {
      const { n, d } = value.value;
      const write = (changed: Rational): string => (gold.form === "decimal" ? (terminating(changed) as string) : fractionText(changed, "\\frac"));
      const all: [string, Rational][] = [
        ["one more", rational(n + d, d)],
        ["one less", rational(n - d, d)],
        ["other sign", rational(-n, d)],
        ["ten times", rational(10n * n, d)],
        ["a hundred times", rational(100n * n, d)],
        ["a hundredth", rational(n, 100n * d)],
      ];
      const swapped: [string, string][] = gold.form === "fraction" && n * n !== d * d ? [["upside down", fractionText(rational(d, n), "\\frac")]] : [];
      return [...all.map(([name, changed]): [string, string] => [name, name === "a hundredth" ? fractionText(changed, "\\frac") : write(changed)]), ...swapped];
    }
    case "radical":
      return [
        ["root and one", joined([...(value.plus === 0n ? [] : [plus(value.plus)]), `${value.times}\\sqrt{${value.root + 1n}}`])],
        ["root dropped", joined([...(value.plus === 0n ? [] : [plus(value.plus)]), String(value.times)])],
        ["other sign", joined([...(value.plus === 0n ? [] : [plus(value.plus)]), `${-value.times}\\sqrt{${value.root}}`])],
      ];
    case "polynomial": {
      const [constant = 0n, ...above] = value.coefficients;
      const other: [string, string][] = [["one more", polynomialText([constant + 1n, ...above])]];
      const leading = [...value.coefficients.slice(0, -1)];
      if (leading.some((c) => c !== 0n)) other.push(["term dropped", polynomialText(leading)]);
      return other;
    }
    case "tuple":
      return [
        [
          "swapped",
          `(${value.items
            .map(({ n }) => String(n))
            .reverse()
            .join(", ")})`,
        ],
        ["entry and one", `(${value.items.map(({ n }, i) => String(i === 0 ? n + 1n : n)).join(", ")})`],
      ];
    case "set":
      return [
        [
          "element dropped",
          `\\{${value.items
            .slice(1)
            .map(({ n }) => String(n))
            .join(", ")}\\}`,
        ],
        ["element and a hundred", `\\{${value.items.map(({ n }, i) => String(i === 0 ? n + 100n : n)).join(", ")}\\}`],
      ];
    case "interval": {
      const { low, high, closed } = value;
      return [
        low === undefined
          ? ["end opened or closed", intervalText({ ...value, closed: [closed[0], !closed[1]] })]
          : ["end opened or closed", intervalText({ ...value, closed: [!closed[0], closed[1]] })],
        ["end moved", intervalText(high === undefined ? { ...value, low: (low as bigint) + 1n } : { ...value, high: high + 1n })],
      ];
    }
  }
}

function certify({ text }: Gold, inner: string, name: string, equal: boolean): void {
  const bare = peeled(inner);
  if (equal && bare === text) return;
  if (agree(text, bare) === equal) return;
  throw new Error(`audit, rule ${name}: ${JSON.stringify(inner)} is not certified to be ${equal ? "" : "other than "}${text}`);
}
