/**
 * Numbers in running text. A number is read whole or not at all: what its neighbours say (sign, percent, exponent, base,
 * operator, letter, clock) is understood or makes it unreadable, so that no answer is a part of what was written.
 */
import type { RejectReason } from "../contract.js";
import { add, divide, multiply, negate, type Rational, rational, readDecimal } from "./rational.js";

/** What to make of a percent sign and of a currency sign. */
export interface Signs {
  /** `ignore`: 20 % is 20; `fraction`: 20 % is 1/5; `refuse`: unreadable. */
  readonly percent: "ignore" | "fraction" | "refuse";
  readonly currency: "ignore" | "refuse";
}

/** A number as it stands in a text: its value, or why it has none. */
export interface NumberAt {
  readonly start: number;
  readonly end: number;
  readonly value: Rational | RejectReason;
}

const numeral = String.raw`[.,]?\d[\d.,]*(?:[eE][+-]?\d+(?![A-Za-z0-9]))?`;
const slash = String.raw`[ \t]{0,2}[/⁄∕][ \t]{0,2}`;
const expression = new RegExp(`(${numeral})(?:(?<=\\d)${slash}(${numeral})|(?<=\\d)[ \\t]{1,2}(\\d+)${slash}(\\d+))?`, "g");

/** How far around a number its neighbours are looked at, in characters. */
const reach = 24;

/** The text with spellings made one: full-width digits, thin spaces between groups of digits, LaTeX's signs and fractions. */
export function plainText(text: string): string {
  return text
    .replace(/[\u200b-\u200f\u2060\ufeff]/g, "")
    .replace(/[\uff10-\uff19]/g, (digit) => String.fromCharCode(digit.charCodeAt(0) - 0xff10 + 48))
    .replace(
      /\\[dt]?frac\s{0,2}(?:\{([^{}]{1,1000})\}\s{0,2}\{([^{}]{1,1000})\}|(\d)\s?(\d))/g,
      (_, a, b, c, d, at, all) => `${/\d/.test(all[at - 1] ?? "") ? " " : ""}${a ?? c}/${b ?? d}`,
    )
    .replace(/\\(?:text|mathrm|textbf|mathbf|textrm)\s{0,2}\{([^{}]{0,1000})\}/g, " $1 ")
    .replace(/\{,\}|,\\!/g, ",")
    .replace(
      /(?<![\p{L}\\])(mm|cm|dm|km|m|in|inch|ft|feet|foot|yd|mi|units?)[ \t]?\^[ \t]?(?:\{([23])\}|([23])(?!\d))/gu,
      (_, unit, a, b) => unit + ((a ?? b) === "2" ? "²" : "³"),
    )
    .replace(/[ \t]?\^[ \t]?(?:\{\\circ\}|\\circ(?![A-Za-z]))/g, "°")
    .replace(/\\!/g, "")
    .replace(/\\,/g, "\u2009")
    .replace(/\\(?:[ ;:]|quad|qquad|left|right|displaystyle)(?![A-Za-z])/g, " ")
    .replace(/\\approx(?![A-Za-z])/g, "≈")
    .replace(/\\([%$#&])/g, "$1")
    .replace(/\\[()[\]]/g, " ")
    .replace(/(\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))/g, "$1,")
    .replace(/[\u00a0\u2009\u202f]/g, " ");
}

/** The numbers of a text that went through `plainText`, in order, read when asked for; digits within a word (`x2`) are none. */
export function* numbersIn(text: string, signs: Signs): Generator<NumberAt> {
  for (const match of positions(text)) yield read(text, match, signs);
}

/** The last number of a text and the one before it, without reading the others. */
export function lastNumbers(text: string, signs: Signs): { readonly last?: NumberAt; readonly before?: NumberAt } {
  let before: RegExpExecArray | undefined;
  let last: RegExpExecArray | undefined;
  for (const match of positions(text)) [before, last] = [last, match];
  return { last: last && read(text, last, signs), before: before && read(text, before, signs) };
}

function* positions(text: string): Generator<RegExpExecArray> {
  for (const match of text.matchAll(expression)) {
    if (!/[\p{L}_]$/u.test(text.slice(Math.max(0, match.index - 2), match.index))) yield match;
  }
}

function read(text: string, match: RegExpExecArray, signs: Signs): NumberAt {
  const [whole, first, denominator, mixedTop, mixedBottom] = match as unknown as [string, string, string?, string?, string?];
  // A point or comma that no digit follows ends a sentence or a clause; a second point before one is an ellipsis.
  const end = match.index + whole.replace(/[.,]+$/, "").length;
  const ellipsis = /^[.,]/.test(whole) && (whole[0] === "," || text[match.index - 1] === ".");
  const start = match.index + (ellipsis ? 1 : 0);
  const at = (value: Rational | RejectReason): NumberAt => ({ start, end, value });

  const parts = [first.slice(ellipsis ? 1 : 0).replace(/[.,]+$/, ""), denominator?.replace(/[.,]+$/, ""), mixedTop, mixedBottom];
  const value = combine(parts as [string, string?, string?, string?]);
  if (typeof value === "string") return at(value);
  const prefix = readPrefix(text.slice(Math.max(0, start - reach), start), signs);
  const suffix = readSuffix(text.slice(end, end + reach), signs);
  if (typeof prefix === "string" || typeof suffix === "string") return at("unreadable");
  return at(multiply(prefix.negative ? negate(value) : value, suffix.factor));
}

function combine([first, denominator, mixedTop, mixedBottom]: [string, string?, string?, string?]): Rational | RejectReason {
  const [a, b] = [readDecimal(first), readDecimal(denominator ?? mixedTop ?? "1")];
  const c = readDecimal(mixedBottom ?? "1");
  for (const part of [a, b, c]) if (typeof part === "string") return part;
  const [x, y, z] = [a, b, c] as [Rational, Rational, Rational];
  if (denominator !== undefined) return y.n === 0n ? "unreadable" : divide(x, y);
  if (mixedTop === undefined) return x;
  const proper = x.d === 1n && y.n < z.n && z.n !== 0n;
  return proper ? add(x, divide(y, z)) : "unreadable";
}

/** Words that make another number of the one behind them. */
const changesNext =
  /(?:^|[^\p{L}])(?:(?:half|third|quarter|square|cube|root|factorial|logarithm|reciprocal)[ \t]of(?:[ \t]the)?|twice|thrice|double|triple|log|ln|sin|cos|tan|exp|sqrt|(?:less|more|fewer|greater|larger|smaller)[ \t]than|\d[ \t]{0,2}x)[ \t]{1,2}[$€£¥₹]?$/iu;

/** Sign and currency before a number; `unreadable` behind an operator, a relation, a function, a root or half a clock. */
function readPrefix(before: string, signs: Signs): { readonly negative: boolean } | "unreadable" {
  let rest = before.replace(/\\(?:boxed|fbox)[ \t]{0,8}\{[ \t\n]{0,3}$/, "");
  // What stands before a box or a bracket would change what is in it.
  if (rest !== before && /[\p{N})\]}]$/u.test(rest)) return "unreadable";
  if (/[-+−–±∓~^][ \t]{0,2}[([{|⌊⌈][([{|⌊⌈ \t]{0,3}$/.test(rest) || (rest !== before && /[-+−–±∓^][ \t]{0,2}$/.test(rest))) return "unreadable";
  const take = (pattern: RegExp): string => {
    const found = pattern.exec(rest)?.[0] ?? "";
    rest = rest.slice(0, rest.length - found.length);
    return found;
  };
  const inner = take(/[-+−–±∓]$/);
  const currency = take(/[$€£¥₹][ \t]{0,2}$/);
  const lead = take(inner !== "" && currency === "" ? /$/ : /[-+−–±∓][ \t]{0,3}$/);
  if (currency !== "" && signs.currency === "refuse") return "unreadable";
  const sign = lead.trim() + inner;
  if (sign.length > 1 || /[±∓]/.test(sign) || (sign !== "" && /[-+−–±∓]$/.test(rest))) return "unreadable";
  if (sign !== "") {
    // "Total - 18": between words a dash is punctuation; anywhere else a sign apart from its number could be either.
    if (currency === "" && lead.length > 1) return sign !== "+" && /\p{L}{2}[ \t:*]{1,3}$/u.test(rest) ? { negative: false } : "unreadable";
    if (/[\p{L}\p{N})\]}%]$/u.test(rest) || /[\p{N})\]}%][ \t]{1,3}$/u.test(rest)) return "unreadable";
    return { negative: sign !== "+" };
  }
  if (changesNext.test(rest)) return "unreadable";
  const word = /(?:^|[^\p{L}])(negative|minus|plus|times|over|divided by|multiplied by)[ \t]$/iu.exec(before)?.[1]?.toLowerCase();
  if (word === "negative") return { negative: true };
  if (word === "minus" && !/\d[ \t]*minus[ \t]$/i.test(before)) return { negative: true };
  if (word !== undefined) return "unreadable";
  if (/(?:^|[^*])\*[ \t]{0,3}$/.test(rest) && /[\p{L}\p{N})][ \t]{0,3}\*[ \t]{0,3}$/u.test(rest)) return "unreadable";
  if (/[×·⋅÷^/⁄√_≤≥≠][ \t]{0,3}$/.test(rest)) return "unreadable";
  // "<b>18" is a tag and "-> 18" an arrow, "x > 18" a relation.
  if (/[<>][ \t]{0,3}$/.test(rest) && !/(?:<\/?[A-Za-z]{1,12}>|[-=]>)[ \t]{0,3}$|\d>>$/.test(rest)) return "unreadable";
  if (/(?:\d[:'’°]|\\[A-Za-z]{1,20}[ {]{0,2}|[\p{L}\p{N}]\(|[\p{Nl}\p{No}√∛∜∑∏∫∞])$/u.test(rest + currency)) return "unreadable";
  if (/(?:^|[\s=:])—$/.test(rest)) return "unreadable"; // a long dash where a minus could stand
  return { negative: false };
}

const magnitudes: { readonly [word: string]: bigint } = { hundred: 100n, thousand: 1_000n, million: 1_000_000n, billion: 10n ** 9n, trillion: 10n ** 12n };
const one = rational(1n, 1n);

/** Words that make another number of the one before them. */
const changesLast =
  /^[ \t](?:squared|cubed|factorial|hundredths?|thousandths?|tenths?|millionths?|k|bn|mn|and[ \t](?:a|one|two|three)[ \t-](?:half|thirds?|quarters?|fifths?)|below[ \t]zero|x[ \t]{0,2}\d)(?!\p{L})/iu;

/** Percent sign, magnitude and unit behind a number; `unreadable` where what follows changes the value in a way not understood. */
function readSuffix(after: string, signs: Signs): { readonly factor: Rational } | "unreadable" {
  const percent = /^[ \t]?(?:%|per ?cent\b)/i.exec(after);
  if (percent !== null) {
    if (signs.percent === "refuse" || /^[ \t]{0,3}[*×·÷+^/\d(]/.test(after.slice(percent[0].length).replace(/^\*\*/, ""))) return "unreadable";
    return { factor: signs.percent === "fraction" ? rational(1n, 100n) : one };
  }
  const magnitude = /^[ \t-]?(hundred|thousand|million|billion|trillion)s?\b/i.exec(after);
  if (magnitude !== null) return { factor: rational(magnitudes[(magnitude[1] as string).toLowerCase()] as bigint, 1n) };
  if (/^[$€£¥₹]/.test(after) && signs.currency === "refuse") return "unreadable";
  // A unit may touch its number; one letter could be a variable, and the others change what the number means.
  const letters = /^[\p{L}]+/u.exec(after)?.[0];
  if (letters !== undefined && (letters.length < 2 || /^(?:st|nd|rd|th|am|pm|pi)$/i.test(letters) || /^[\d_^]/.test(after.slice(letters.length))))
    return "unreadable";
  if (/^[ \t]{0,3}(?:[×·⋅÷+^⁄!]|[/*](?!\*))[ \t]{0,3}[\p{L}\p{N}(\\.$]/u.test(after) && !/^[ \t]?\/[ \t]?\p{L}/u.test(after)) return "unreadable";
  if (/^[ \t]{0,3}[-−–][ \t]{0,3}[\d.$]/.test(after) || /^[ \t]{0,2}(?:mod|modulo|times|plus|minus|divided by|choose)\b/i.test(after)) return "unreadable";
  if (/^(?:[_^!({′″+]|[)\]}|][ \t]?[_^!])|^[:'’]\d|^[ \t]?°[ \t]?\d|^[ \t]?\\[A-Za-z]|^[ \t]?[π√]/.test(after)) return "unreadable";
  if (changesLast.test(after)) return "unreadable";
  if (/^[\p{Nl}\p{No}]/u.test(after)) return "unreadable";
  return { factor: one };
}
