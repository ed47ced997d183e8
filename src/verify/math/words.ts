/** Words of answers: functions and constants by name, numbers in words, and words that are just words. */
import { type Rational, rational } from "../number/rational.js";
import type { FunctionName } from "./types.js";

/** Inverses that are made of other functions. */
export type InverseName = "arccot" | "arcsec" | "arccsc" | "arcsinh" | "arccosh" | "arctanh";

/** Functions by the names that answers give them. `sqrt`, `cbrt`, `log10`… are made of these. */
export const functionsByName: { readonly [name: string]: FunctionName | "sqrt" | "cbrt" | "lg" | "coth" | "cis" | InverseName } = {
  sqrt: "sqrt",
  cbrt: "cbrt",
  exp: "exp",
  ln: "ln",
  log: "log",
  lg: "lg",
  sin: "sin",
  cos: "cos",
  tan: "tan",
  cot: "cot",
  sec: "sec",
  csc: "csc",
  cosec: "csc",
  arcsin: "arcsin",
  arccos: "arccos",
  arctan: "arctan",
  arccot: "arccot",
  arcsec: "arcsec",
  arccsc: "arccsc",
  arcsinh: "arcsinh",
  arsinh: "arcsinh",
  asinh: "arcsinh",
  arccosh: "arccosh",
  arcosh: "arccosh",
  acosh: "arccosh",
  arctanh: "arctanh",
  artanh: "arctanh",
  atanh: "arctanh",
  asin: "arcsin",
  acos: "arccos",
  atan: "arctan",
  sinh: "sinh",
  cosh: "cosh",
  tanh: "tanh",
  coth: "coth",
  cis: "cis",
  abs: "abs",
  Abs: "abs",
  floor: "floor",
  ceil: "ceil",
  ceiling: "ceil",
  factorial: "factorial",
  binom: "binomial",
  binomial: "binomial",
  gcd: "gcd",
  GCD: "gcd",
  lcm: "lcm",
  LCM: "lcm",
  min: "min",
  max: "max",
  Re: "re",
  Im: "im",
};

export const isFunctionName = (word: string): boolean => Object.hasOwn(functionsByName, word);

const greek = new Set(
  "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega Gamma Delta Theta Lambda Sigma Phi Psi Omega".split(
    " ",
  ),
);
const infinities = new Set(["inf", "infty", "infinity", "Infinity", "Inf", "oo"]);

/** A piece of a word: a function, or a symbol or constant. */
export interface WordPart {
  readonly kind: "function" | "name";
  readonly text: string;
}

const compound = /^([A-Za-z]?)(arcsin|arccos|arctan|sqrt|sin|cos|tan|cot|sec|csc|log|exp|ln|pi)([A-Za-z]?)$/;

/** The factors that a word is read as; undefined for a word of a language. */
export function partsOfWord(word: string): readonly WordPart[] | undefined {
  if (word.length === 1) return [{ kind: "name", text: word }];
  if (isFunctionName(word)) return [{ kind: "function", text: word }];
  if (word === "pi" || word === "Pi" || word === "PI") return [{ kind: "name", text: "pi" }];
  if (infinities.has(word)) return [{ kind: "name", text: "infinity" }];
  if (greek.has(word)) return [{ kind: "name", text: word }];
  const match = compound.exec(word);
  if (match !== null && (match[1] === "" || match[3] === "")) {
    const part = (text: string): WordPart[] => (text === "" ? [] : [{ kind: "name", text }]);
    const middle = match[2] as string;
    return [...part(match[1] as string), { kind: middle === "pi" ? "name" : "function", text: middle }, ...part(match[3] as string)];
  }
  if (word.length <= 3 || /^[A-Z]{4,6}$/.test(word) || /^[b-df-hj-np-tv-xz]{4,6}$/.test(word)) return [...word].map((text) => ({ kind: "name", text }));
  return undefined;
}

const ones = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(" ");
const tens = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const small = new Map<string, number>([...ones.map((word, i) => [word, i] as const), ...tens.map((word, i) => [word, 20 + 10 * i] as const)]);
export const magnitudes: ReadonlyMap<string, bigint> = new Map([
  ["dozen", 12n],
  ["hundred", 100n],
  ["thousand", 1000n],
  ["million", 10n ** 6n],
  ["billion", 10n ** 9n],
  ["trillion", 10n ** 12n],
  ["lakh", 10n ** 5n],
  ["crore", 10n ** 7n],
  ...["万", "萬", "만"].map((word): [string, bigint] => [word, 10n ** 4n]),
  ...["亿", "億", "억"].map((word): [string, bigint] => [word, 10n ** 8n]),
]);
const parts = new Map<string, number>([
  ["half", 2],
  ["halves", 2],
  ["third", 3],
  ["quarter", 4],
  ["fourth", 4],
  ["fifth", 5],
  ["sixth", 6],
  ["seventh", 7],
  ["eighth", 8],
  ["ninth", 9],
  ["tenth", 10],
]);

/** The number that words say (`twenty-one`, `two thirds`, `five thousand three hundred`), or undefined. */
export function numberInWords(words: readonly string[]): Rational | undefined {
  if (words.length === 0 || words.length > 12) return undefined;
  const lower = words.map((word) => word.toLowerCase());
  const negative = lower[0] === "minus" || lower[0] === "negative";
  const body = negative ? lower.slice(1) : lower;
  const last = body.at(-1) ?? "";
  const under = parts.get(last) ?? (last.endsWith("s") ? parts.get(last.slice(0, -1)) : undefined);
  const value =
    withHalf(body) ??
    (under !== undefined
      ? fraction(body.slice(0, -1), under, last.startsWith("quarter"))
      : whole(body[0] === "a" && magnitudes.has(body[1] ?? "") ? ["one", ...body.slice(1)] : body));
  if (value === undefined) return undefined;
  return negative ? { n: -value.n, d: value.d } : value;
}

const places = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth".split(" ");

/** The place that an ordinal word names, from 1; undefined for others. */
export function placeInWords(word: string): number | undefined {
  const at = places.indexOf(word.toLowerCase());
  return at < 0 ? undefined : at + 1;
}

/** "two and a half". */
function withHalf(words: readonly string[]): Rational | undefined {
  const under = parts.get(words.at(-1) ?? "");
  const size = words.length - 3;
  if (under === undefined || size < 1 || words[size] !== "and" || (words[size + 1] !== "a" && words[size + 1] !== "one")) return undefined;
  const before = whole(words.slice(0, size));
  return before === undefined ? undefined : rational(before.n * BigInt(under) + 1n, BigInt(under));
}

function fraction(over: readonly string[], under: number, isQuarter: boolean): Rational | undefined {
  // A part alone is one by its place: "fourth".
  if (over.length === 0 && under !== 2 && !isQuarter) return undefined;
  const top = over.length === 0 || (over.length === 1 && over[0] === "a") ? rational(1n, 1n) : whole(over);
  return top === undefined ? undefined : rational(top.n, BigInt(under));
}

function whole(words: readonly string[]): Rational | undefined {
  let total = 0n;
  let group = 0n;
  let previous: "one" | "ten" | "magnitude" | undefined;
  for (const word of words) {
    if (word === "and" && previous === "magnitude") continue;
    const value = small.get(word);
    const magnitude = magnitudes.get(word);
    if (value !== undefined) {
      const kind = value >= 20 ? "ten" : "one";
      if (previous === "one" || (previous === "ten" && (kind === "ten" || value > 9))) return undefined;
      group += BigInt(value);
      previous = kind;
    } else if (magnitude !== undefined && previous !== undefined) {
      if (magnitude === 100n) group *= 100n;
      else {
        total += group * magnitude;
        group = 0n;
      }
      previous = "magnitude";
    } else return undefined;
  }
  return previous === undefined ? undefined : rational(total + group, 1n);
}

/** Words that join sentences, so that what they stand in is no unit. */
export const sentenceWords: ReadonlySet<string> = new Set(
  "is are was were be been has have had not no yes because since if then else when where which that this these those with without for from it its they we you he she him her answer or and but so thus hence therefore maybe perhaps about approximately either both neither can cannot could should would will may might must do does did only than into onto there here what who how why equals equal plus minus times to per".split(
    " ",
  ),
);
