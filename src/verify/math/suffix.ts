/** What stands behind an amount: a magnitude, a percent sign, degrees, a unit, or the name of what is counted. */
import { rational } from "../number/rational.js";
import { degreeAhead } from "./arithmetic.js";
import { multiply, numberOf } from "./build.js";
import type { Cursor } from "./cursor.js";
import type { Token } from "./token.js";
import type { Expression, Unit } from "./types.js";
import { combine, isUnit, noUnit, unitOf } from "./units.js";
import { isFunctionName, magnitudes, sentenceWords } from "./words.js";

/** Words of the name of what is counted, at most. */
const mostWords = 5;

/** The amount with its magnitude, and its unit; undefined where nothing of the kind follows. */
export function suffix(c: Cursor, value: Expression): { readonly amount: Expression; readonly unit?: Unit } | undefined {
  let amount = value;
  let changed = false;
  for (let word = magnitudeAt(c); word !== undefined; word = magnitudeAt(c)) {
    amount = multiply(amount, numberOf(word));
    changed = true;
    c.next();
  }
  const unit = degrees(c, amount) ?? percent(c) ?? currency(c) ?? words(c);
  if (unit !== undefined) return "amount" in unit ? unit : { amount, unit };
  return changed ? { amount } : undefined;
}

function magnitudeAt(c: Cursor): bigint | undefined {
  const token = c.peek();
  return token?.kind === "word" ? magnitudes.get(token.text.toLowerCase()) : undefined;
}

/** An amount that ends in a degree sign is an angle, or a temperature. */
function degrees(c: Cursor, amount: Expression): { readonly amount: Expression; readonly unit: Unit } | undefined {
  const inner = amount.op === "negate" && amount.of.op === "degrees" ? { ...amount, of: amount.of.of } : amount.op === "degrees" ? amount.of : undefined;
  const temperature = (): Unit | undefined => {
    const scale = c.is("word", "C")
      ? "celsius"
      : c.is("word", "F")
        ? "fahrenheit"
        : c.is("word", "Celsius") || c.is("word", "Fahrenheit")
          ? c.peek()?.text
          : undefined;
    if (scale === undefined) return undefined;
    c.next();
    return unitOf(scale);
  };
  if (inner !== undefined) return { amount: inner, unit: temperature() ?? unitOf("degree") };
  const ahead = c.isSign("^") ? degreeAhead(c) : c.isSign("°") ? 1 : 0;
  if (ahead === 0) return undefined;
  c.at += ahead;
  return { amount, unit: temperature() ?? unitOf("degree") };
}

/** What a percentage may be of. */
const percentNouns: ReadonlySet<string> = new Set("increase decrease discount off profit loss gain chance probability more less".split(" "));

function percent(c: Cursor): Unit | undefined {
  if (c.takeSign("%") || c.take("word", "percent") || c.take("word", "percentage") || c.take("word", "pct")) {
    const noun = c.peek();
    if (noun?.kind !== "word" || !percentNouns.has(noun.text.toLowerCase())) return unitOf("percent");
    c.next();
    return combine(unitOf("percent"), unitOf(noun.text), 1);
  }
  if (c.is("word", "per") && c.is("word", "cent", 1)) {
    c.at += 2;
    return unitOf("percent");
  }
  return undefined;
}

function currency(c: Cursor): Unit | undefined {
  return c.peek()?.kind === "currency" ? unitOf(c.next().text) : undefined;
}

/** Units with their powers, multiplied and divided. */
function words(c: Cursor): Unit | undefined {
  let unit = noUnit;
  let sign = 1;
  let terms = 0;
  // "$18 per day" has its unit before it.
  if (c.take("word", "per")) sign = -1;
  else if (c.is("command", "frac") && c.is("open", "{", 1)) return quotient(c);
  for (;;) {
    const term = unitTerm(c, terms > 0 && sign === 1 ? unit : undefined);
    if (term === undefined) return terms === 0 && sign === 1 ? undefined : sign === -1 ? c.fail("a unit is missing behind a slash") : unit;
    unit = combine(unit, term.unit, term.power * sign);
    if (++terms > mostWords) return c.fail("a unit has too many words");
    sign = 1;
    if (c.isSign("/") || (c.is("word", "per") && !c.is("word", "cent", 1))) {
      c.next();
      sign = -1;
    } else if ((c.isSign("*") || (c.isSign("-") && c.peek()?.gap === 0)) && isUnitWord(c.peek(1))) c.next();
  }
}

/** `\frac{\text{miles}}{\text{hour}}`. */
function quotient(c: Cursor): Unit | undefined {
  c.next();
  const [over, under] = [0, 1].map(() => {
    c.expect("open", "{");
    const unit = words(c);
    c.expect("close", "}");
    return unit;
  });
  return over === undefined || under === undefined ? c.fail("a unit is missing") : combine(over, under, -1);
}

const isUnitWord = (token: Token | undefined): boolean => token?.kind === "word" && isUnit(token.text);

const ordinals: ReadonlySet<string> = new Set(["st", "nd", "rd", "th"]);

/** One word of a unit with its power, or a noun. */
function unitTerm(c: Cursor, before: Unit | undefined): { readonly unit: Unit; readonly power: number } | undefined {
  const token = c.peek();
  if (token?.kind === "name" && token.text === "Omega") {
    c.next();
    return { unit: unitOf("ohm"), power: 1 };
  }
  if (token?.kind === "name" && token.text === "mu" && c.peek(1)?.kind === "word" && isUnit(c.peek(1)?.text ?? "") && c.peek(1)?.gap === 0) {
    c.next();
    const unit = unitOf(c.next().text);
    return { unit: { ...unit, factor: rational(unit.factor.n, unit.factor.d * 1_000_000n), name: `µ${unit.name}` }, power: powerBehind(c) };
  }
  if (token?.kind !== "word" || sentenceWords.has(token.text.toLowerCase())) return undefined;
  const prefix = { square: 2, sq: 2, cubic: 3, cu: 3 }[token.text.toLowerCase()];
  if (prefix !== undefined && c.peek(1) !== undefined) {
    c.next();
    c.takeSign(".");
    const next = c.peek();
    if (next?.kind !== "word") return c.fail("a unit is missing");
    c.next();
    return { unit: unitOf(next.text), power: prefix };
  }
  // "degrees Celsius" is one unit.
  if (/^degrees?$/.test(token.text) && c.peek(1)?.kind === "word" && /^(?:celsius|fahrenheit|[CF])$/i.test(c.peek(1)?.text ?? "")) {
    c.next();
    return { unit: unitOf(c.next().text.toLowerCase().startsWith("c") ? "celsius" : "fahrenheit"), power: 1 };
  }
  const isKnown = isUnit(token.text);
  if (!isKnown && !isNoun(token, before)) return undefined;
  c.next();
  // An abbreviation such as "in." has its own point.
  if (c.isSign(".") && c.peek(1)?.kind === "word") c.next();
  return { unit: unitOf(token.text), power: powerBehind(c) };
}

/** A word that may name what is counted: no function, and set apart from the number where it is no plain text. */
function isNoun(token: Token, before: Unit | undefined): boolean {
  if (isFunctionName(token.text)) return false;
  if (ordinals.has(token.text)) return before === undefined;
  return token.text.length > 1 && (token.plain || (token.gap > 0 && token.text.length > 3) || before !== undefined);
}

/** `^2`, `^{2}`, `²`, `^{-1}`, "squared" behind a unit. */
function powerBehind(c: Cursor): number {
  if (c.take("word", "squared")) return 2;
  if (c.take("word", "cubed")) return 3;
  if (!c.isSign("^")) return 1;
  const braced = c.is("open", "{", 1);
  const negative = c.isSign("-", braced ? 2 : 1);
  const ahead = (braced ? 2 : 1) + (negative ? 1 : 0);
  const digits = c.peek(ahead);
  if (digits?.kind !== "number" || !/^[1-9]$/.test(digits.text) || (braced && !c.is("close", "}", ahead + 1))) return c.fail("the power of a unit");
  c.at += ahead + (braced ? 2 : 1);
  return Number(digits.text) * (negative ? -1 : 1);
}
