/** Numbers as they are written: decimals, recurring decimals, mixed numbers, numerals of another base. */
import { add, multiply, type Rational, rational } from "../number/rational.js";
import { numberOf } from "./build.js";
import type { Cursor } from "./cursor.js";
import type { Token } from "./token.js";
import { type Expression, OutOfSteps } from "./types.js";
import { numberInWords } from "./words.js";

/** Digits of a numeral, and powers of ten behind one, that are read. */
const longest = 20_000;

/** The value of a numeral, and how many digits stand behind its point. */
export function decimalOf(text: string): { readonly value: Rational; readonly decimals?: number } {
  if (text.length > longest) throw new OutOfSteps("a numeral is too long");
  if (text.length < 16 && /^\d+$/.test(text)) return { value: { n: BigInt(text), d: 1n } };
  const match = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) as RegExpExecArray;
  const [, whole = "", fraction = "", exponent] = match;
  const raised = Number(exponent ?? 0);
  if (Math.abs(raised) > longest) throw new OutOfSteps("a power of ten is too large");
  const scale = raised - fraction.length;
  const digits = BigInt(whole + fraction);
  const value = scale >= 0 ? { n: digits * 10n ** BigInt(scale), d: 1n } : rational(digits, 10n ** BigInt(-scale));
  return match[2] === undefined && exponent === undefined ? { value } : { value, decimals: -scale };
}

const whole = /^\d+$/;

/** A number with what belongs to it: repeating digits, a fraction that makes it mixed, the base. */
export function numeral(c: Cursor): Expression {
  const token = c.next();
  c.budget.spend(1 + token.text.length / 16);
  const next = c.peek();
  if (next !== undefined) {
    const found = recurring(c, token) ?? (whole.test(token.text) ? (based(c, token.text) ?? mixed(c, token)) : undefined);
    if (found !== undefined) return found;
  }
  const { value, decimals } = decimalOf(token.text);
  return numberOf(value, decimals);
}

/** `0.\overline{36}`, `0.1\overline{6}`, `0.\dot{3}`, `0.(3)`, `0.333…`. */
function recurring(c: Cursor, token: Token): Expression | undefined {
  const { text } = token;
  if (c.isSign("…") && text.includes(".")) {
    const digits = text.slice(text.indexOf(".") + 1);
    const cycle = /^(\d*?)(\d{1,6}?)\2{2,}$/.exec(digits) ?? /^(\d*?)(\d{2,6}?)\2$/.exec(digits);
    if (cycle === null) return undefined;
    c.next();
    return periodic(text.slice(0, text.indexOf(".")), cycle[1] as string, cycle[2] as string);
  }
  const point = whole.test(text) && c.isSign(".") && c.peek()?.gap === 0;
  if (!point && !text.includes(".")) return undefined;
  const ahead = point ? 1 : 0;
  const mark = c.peek(ahead);
  const [before, after = ""] = text.split(".") as [string, string?];
  if (mark?.kind === "command" && (mark.text === "overline" || mark.text === "dot")) {
    const digits = c.is("open", "{", ahead + 1) ? c.peek(ahead + 2) : c.peek(ahead + 1);
    if (digits?.kind !== "number" || !whole.test(digits.text)) return undefined;
    c.at += ahead + (c.is("open", "{", ahead + 1) ? 4 : 2);
    if (c.peek(-1)?.kind !== "close" && c.is("open", "{", -2)) return c.fail("the repeating digits have no end");
    return periodic(before, after, digits.text + (mark.text === "dot" ? toNextDot(c) : ""));
  }
  if (point && mark?.kind === "open" && mark.text === "(" && mark.gap === 0 && c.peek(2)?.kind === "number" && c.is("close", ")", 3)) {
    const digits = (c.peek(2) as Token).text;
    c.at += 4;
    return periodic(before, after, digits);
  }
  return undefined;
}

/** Digits from the first dot to the one over the last: `0.\dot{1}4285\dot{7}`. */
function toNextDot(c: Cursor): string {
  const between = c.peek();
  const ahead = between?.kind === "number" && whole.test(between.text) && between.gap === 0 ? 1 : 0;
  if (!c.is("command", "dot", ahead)) return "";
  const braced = c.is("open", "{", ahead + 1);
  const digits = c.peek(ahead + (braced ? 2 : 1));
  if (digits?.kind !== "number" || !whole.test(digits.text)) return c.fail("a dot over what is no digit");
  c.at += ahead + (braced ? 4 : 2);
  return (ahead === 1 ? (between as Token).text : "") + digits.text;
}

function periodic(before: string, after: string, cycle: string): Expression {
  if (before.length + after.length + cycle.length > 1000) throw new OutOfSteps("a numeral is too long");
  const head = rational(BigInt(before + after), 10n ** BigInt(after.length));
  const tail = rational(BigInt(cycle), (10n ** BigInt(cycle.length) - 1n) * 10n ** BigInt(after.length));
  return numberOf(add(head, tail));
}

/** `204_5`, `204_{5}`, `204_{\text{five}}`, `204 (base 5)`. */
export function based(c: Cursor, digits: string): Expression | undefined {
  const at = c.at;
  let base: number | undefined;
  if (c.isSign("_")) {
    c.next();
    base = baseIn(c);
    if (base === undefined) return c.fail("an index behind a number is no base");
  } else if (c.is("word", "base") || (c.is("open", "(") && c.is("word", "base", 1))) {
    const bracket = c.take("open", "(");
    c.next();
    base = baseIn(c);
    if (bracket && !c.take("close", ")")) base = undefined;
    if (base === undefined) c.at = at;
  }
  if (base === undefined) return undefined;
  const numeral = digits.toUpperCase();
  const valid = [...numeral].every((digit) => Number.parseInt(digit, 36) < (base as number));
  if (!valid) return c.fail(`${digits} is no numeral of base ${base}`);
  return { op: "structure", value: { kind: "numeral", digits: numeral.replace(/^0+(?=.)/, ""), negative: false, base } };
}

function baseIn(c: Cursor): number | undefined {
  const bracket = c.take("open", "{") ? "}" : c.take("open", "(") ? ")" : undefined;
  const inner = bracket === "}" && c.take("open", "(") ? ")" : undefined;
  const token = c.peek();
  let base: number | undefined;
  if (token?.kind === "number" && whole.test(token.text)) base = Number(token.text);
  else if (token?.kind === "word") base = Number(numberInWords([token.text])?.n ?? 0n);
  c.next();
  if (inner !== undefined && !c.take("close", inner)) return undefined;
  if (bracket !== undefined && !c.take("close", bracket)) return undefined;
  return base !== undefined && base >= 2 && base <= 36 ? base : undefined;
}

/** A whole number and a proper fraction of whole numbers behind it. */
function mixed(c: Cursor, token: Token): Expression | undefined {
  const next = c.peek() as Token;
  const start = { n: BigInt(token.text.length > longest ? 0 : token.text), d: 1n };
  if (next.kind === "vulgar") {
    c.next();
    const [over, under] = next.text.split("/") as [string, string];
    return numberOf(add(start, rational(BigInt(over), BigInt(under))));
  }
  if (next.kind === "command" && next.text === "frac") {
    const fraction = plainFraction(c);
    if (fraction === undefined) return undefined;
    return numberOf(add(start, proper(c, fraction.over, fraction.under, fraction.length)));
  }
  const slash = c.peek(1);
  const under = c.peek(2);
  if (next.kind !== "number" || next.gap === 0 || !whole.test(next.text) || slash?.kind !== "sign" || slash.text !== "/") return undefined;
  if (under?.kind !== "number" || !whole.test(under.text)) return undefined;
  return numberOf(add(start, proper(c, next.text, under.text, 3)));
}

function proper(c: Cursor, over: string, under: string, length: number): Rational {
  const [top, bottom] = [BigInt(over.slice(0, 1000)), BigInt(under.slice(0, 1000))];
  if (top >= bottom || top === 0n) return c.fail("a whole number stands before an improper fraction");
  c.at += length;
  c.budget.spend(length);
  return multiply(rational(top, 1n), rational(1n, bottom));
}

/** Digits of a `\frac` of two whole numbers that begins here, and how many tokens it has; braces may be missing. */
function plainFraction(c: Cursor): { readonly over: string; readonly under: string; readonly length: number } | undefined {
  const parts: string[] = [];
  let ahead = 1;
  while (parts.length < 2) {
    const token = c.peek(ahead);
    if (token?.kind === "open" && token.text === "{") {
      const digits = c.peek(ahead + 1);
      if (digits?.kind !== "number" || !whole.test(digits.text) || !c.is("close", "}", ahead + 2)) return undefined;
      parts.push(digits.text);
      ahead += 3;
    } else if (
      token?.kind === "number" &&
      whole.test(token.text) &&
      token.text.length === (parts.length === 0 && c.peek(ahead + 1)?.kind !== "open" && token.text.length === 2 ? 2 : 1)
    ) {
      parts.push(...token.text);
      ahead++;
    } else return undefined;
  }
  return { over: parts[0] as string, under: parts[1] as string, length: ahead };
}
