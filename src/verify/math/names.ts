/** Symbols with their indices and primes, constants, sets by name, and functions without a known meaning. */
import { call, constants, numberOf, structure, symbolOf } from "./build.js";
import type { Cursor } from "./cursor.js";
import { argument, list } from "./functions.js";
import { spelling } from "./settle.js";
import type { Token } from "./token.js";
import type { Expression, Value } from "./types.js";

const sets: { readonly [name: string]: Value } = {
  Reals: { kind: "intervals", parts: [{ low: { closed: false }, high: { closed: false } }], points: [] },
  emptyset: { kind: "set", items: [] },
};
const otherSets: ReadonlySet<string> = new Set(["Integers", "Naturals", "Rationals", "Complexes"]);
/** Letters that name functions wherever a bracket follows them. */
const functionLetters: ReadonlySet<string> = new Set(["f", "g", "h"]);

/** A symbol with its index and primes, a constant, or a function without a known meaning. */
export function named(c: Cursor): Expression {
  const token = c.next();
  let name = token.text;
  if (name in sets) {
    const half = name === "Reals" ? halfLine(c) : undefined;
    if (half !== undefined) return structure(half);
    if (!c.isSign("^") && !c.isSign("_")) return structure(sets[name] as Value);
  }
  if (otherSets.has(name)) return structure({ kind: "text", text: `${name}${c.attempt(() => positive(c)) ?? ""}` });
  if (name === "P" || name === "E") {
    const probability = c.attempt(() => conditional(c, name));
    if (probability !== undefined) return probability;
  }
  if (/^[CAP]$/.test(name) && c.isSign("_")) {
    const counted = c.attempt(() => countedBelow(c, name));
    if (counted !== undefined) return counted;
  }
  if (c.isSign("_")) {
    c.next();
    name += `_${index(c)}`;
  }
  while (c.isSign("'") && (c.peek()?.gap ?? 0) === 0) {
    c.next();
    name += "'";
  }
  if (functionLetters.has(token.text)) {
    if (c.isSign("^") && c.is("open", "{", 1) && c.isSign("-", 2) && c.is("number", "1", 3) && c.is("close", "}", 4) && c.is("open", "(", 5)) {
      c.at += 5;
      name += "^-1";
    }
    if (c.is("open", "(") && c.peek()?.gap !== 2) return { op: "apply", name, to: list(c, ")") };
  }
  if (Object.hasOwn(constants, name) && !c.bound.includes(name)) return constants[name] as Expression;
  return symbolOf(name);
}

/** `C_5^2`, `A_5^2`, where they are read as counts. */
function countedBelow(c: Cursor, name: string): Expression {
  c.next();
  const of = argument(c);
  if (!c.takeSign("^")) return c.fail("no count");
  c.met.add("counts");
  if (c.spelling.counts !== true) return c.fail("a power");
  return call(name === "C" ? "binomial" : "permutations", of, argument(c));
}

/** The sign behind ℤ⁺ and the like. */
function positive(c: Cursor): string {
  if (!c.takeSign("^") && !c.takeSign("_")) return c.fail("no sign");
  const braced = c.take("open", "{");
  const sign = c.next().text;
  if (braced) c.expect("close", "}");
  return sign === "+" || sign === "*" ? "+" : c.fail("another set");
}

/** ℝ⁺, ℝ_{>0}, ℝ_{≥0}, ℝ⁻: what an index or exponent leaves of the real numbers; undefined for others. */
function halfLine(c: Cursor): Value | undefined {
  if (!c.isSign("^") && !c.isSign("_")) return undefined;
  return c.attempt(() => {
    c.next();
    const braced = c.take("open", "{");
    let sign = c.next().text;
    if (/^[<>≤≥≠]$/.test(sign)) {
      if (!c.take("number", "0")) return c.fail("another set");
    } else if (sign === "+" || sign === "-") sign = sign === "+" ? ">" : "<";
    else if (sign === "*") sign = "≠";
    else return c.fail("another set");
    if (braced) c.expect("close", "}");
    const zero = numberOf(0);
    const infinite = { closed: false };
    const below = { low: infinite, high: { value: zero, closed: sign === "≤" } };
    const above = { low: { value: zero, closed: sign === "≥" }, high: infinite };
    const parts = sign === "≠" ? [below, above] : sign === "<" || sign === "≤" ? [below] : [above];
    return { kind: "intervals", parts, points: [] };
  });
}

/** `P(A | B)`, whose bar is no size. */
function conditional(c: Cursor, name: string): Expression {
  if (!c.take("open", "(") || c.peek(-1)?.gap === 2) return c.fail("no bracket");
  const tokens: Token[] = [];
  let bars = 0;
  for (let depth = 1; ; ) {
    const token = c.next();
    if (token.kind === "open") depth++;
    else if (token.kind === "close" && --depth === 0) break;
    if (token.text === "|" && depth === 1) bars++;
    tokens.push(token);
  }
  return bars === 1 ? symbolOf(`${name}(${spelling(tokens)})`) : c.fail("no condition");
}

/** One name for a derivative, however it is written. */
export const derivativeName = (over: string, under: string): string => `${over.replaceAll("partial", "∂")}/${under.replaceAll("partial", "∂")}`;

/** What stands lowered behind a name, as text. */
export function index(c: Cursor): string {
  if (!c.take("open", "{")) return c.next().text;
  const tokens: Token[] = [];
  for (let depth = 1; ; ) {
    const token = c.next();
    if (token.kind === "open") depth++;
    else if (token.kind === "close" && --depth === 0) break;
    tokens.push(token);
  }
  return spelling(tokens).replaceAll(" ", "");
}
