/** One entry of an answer: an expression or structure with its unit, a chain of relations, a ratio. */
import { sum } from "./arithmetic.js";
import { add, multiply, negate, numberOf, structure, symbolOf } from "./build.js";
import type { Cursor } from "./cursor.js";
import { relationOf, sectionOf, unionOf } from "./relate.js";
import { suffix } from "./suffix.js";
import type { Token } from "./token.js";
import type { Expression, RelationSign, Unit, Value } from "./types.js";
import { combine, isCurrency, isDegree, isUnit, noUnit, sameDimension, unitOf } from "./units.js";

export const isSeparator = (token: Token | undefined): boolean =>
  (token?.kind === "sign" && (token.text === "," || token.text === ";" || token.text === "∧" || token.text === "∨") && token.joint === undefined) ||
  (token?.kind === "word" && (token.text === "and" || token.text === "or"));

/** Takes a separator, "and" or "or" behind a comma with it; the word, where there is one. */
export function takeSeparator(c: Cursor): "and" | "or" | undefined {
  let word: "and" | "or" | undefined;
  for (let i = 0; i < 2 && isSeparator(c.peek()); i++) {
    const { text } = c.next();
    if (text === "and" || text === "or") word = text;
    else if (text === "∧" || text === "∨") word = text === "∧" ? "and" : "or";
    else if (i === 1) return c.fail("an entry of a list is missing");
  }
  return word;
}

const relations: ReadonlySet<string> = new Set(["=", "≠", "<", "≤", ">", "≥", "≈", "∼", "≡", "∥", "⊥", "∈"]);

/** An entry. What is no plain expression comes as a structure. */
export function entry(c: Cursor): Expression {
  if (c.isSign("=") || c.isSign("≈")) c.next();
  const mapping = mappingAt(c);
  if (mapping !== undefined) return mapping;
  if (c.isSign("…") && (c.peek(1) === undefined || isSeparator(c.peek(1)) || c.peek(1)?.kind === "close")) return symbolOf(c.next().text);
  const first = chance(c) ?? quotient(c, headOf(c) ?? side(c));
  if (c.isSign(":")) return ratio(c, first, () => c.takeSign(":"));
  if (c.is("word", "to") && c.peek(1) !== undefined) return ratio(c, first, () => c.take("word", "to"));
  const signs: RelationSign[] = [];
  const sides = [first];
  let isIn = false;
  for (;;) {
    const sign = c.peek();
    if (sign?.kind !== "sign" || !relations.has(sign.text) || isIn) break;
    c.next();
    isIn = sign.text === "∈";
    signs.push(sign.text as RelationSign);
    sides.push(side(c));
  }
  if (signs.length === 0) return first;
  if (signs.length === 1 && signs[0] === "≡" && isSeparator(c.peek())) {
    const residues = c.attempt(() => residuesAt(c, sides as [Expression, Expression]));
    if (residues !== undefined) return residues;
  }
  return relationOf(c, sides, signs, signs.includes("≡") ? modulus(c) : undefined);
}

/** "1 in 6", "5 out of 8". */
function chance(c: Cursor): Expression | undefined {
  const ahead = c.is("word", "in", 1) ? 2 : c.is("word", "out", 1) && c.is("word", "of", 2) ? 3 : 0;
  const [over, under, after] = [c.peek(), c.peek(ahead), c.peek(ahead + 1)];
  const isWhole = (token: Token | undefined): boolean => token?.kind === "number" && /^\d{1,12}$/.test(token.text);
  if (ahead === 0 || !isWhole(over) || !isWhole(under) || /^0+$/.test((under as Token).text) || !(after === undefined || isSeparator(after))) return undefined;
  c.at += ahead + 1;
  c.budget.spend(ahead + 1);
  return { op: "divide", over: numberOf(BigInt((over as Token).text)), under: numberOf(BigInt((under as Token).text)) };
}

/** a \over b, which divides all that stands between the same brackets. */
function quotient(c: Cursor, over: Expression): Expression {
  if (!c.take("command", "over")) return over;
  const under = sum(c);
  return over.op === "structure" || under.op === "structure" ? c.fail("a part of a fraction is no number") : { op: "divide", over, under };
}

function ratio(c: Cursor, first: Expression, more: () => boolean): Expression {
  const parts = [first];
  while (more()) parts.push(side(c));
  if (parts.some(({ op }) => op === "structure")) return c.fail("a part of a ratio is no number");
  return structure({ kind: "ratio", parts });
}

/** `f(x)` before an equals sign, whatever letter the function has. */
function headOf(c: Cursor): Expression | undefined {
  const isName = (token: Token | undefined): boolean => token !== undefined && (token.kind === "name" || (token.kind === "word" && token.text.length === 1));
  if (!isName(c.peek()) || !c.is("open", "(", 1)) return undefined;
  const to: Expression[] = [];
  for (let ahead = 2; isName(c.peek(ahead)); ahead += 2) {
    to.push(symbolOf((c.peek(ahead) as Token).text));
    if (c.isSign(",", ahead + 1)) continue;
    if (!c.is("close", ")", ahead + 1) || !c.isSign("=", ahead + 2)) return undefined;
    const name = c.next().text;
    c.at += ahead;
    c.budget.spend(ahead);
    c.at = c.at + 1;
    return { op: "apply", name, to };
  }
  return undefined;
}

/** `f: x ↦ x²`. */
function mappingAt(c: Cursor): Expression | undefined {
  const isLetter = (ahead: number): boolean => c.peek(ahead)?.kind === "word" && c.peek(ahead)?.text.length === 1;
  if (!isLetter(0) || !c.isSign(":", 1) || !isLetter(2) || !c.isSign("→", 3)) return undefined;
  return c.attempt(() => {
    const name = c.next().text;
    c.next();
    const variable = c.next().text;
    c.next();
    return structure({ kind: "assignment", name: `${name}(${variable})`, value: { kind: "number", expression: sum(c) } });
  });
}

/** n ≡ 0, 1 (mod 4): one of several congruences. */
function residuesAt(c: Cursor, [of, first]: readonly [Expression, Expression]): Expression {
  const values = [first];
  while (isSeparator(c.peek())) {
    takeSeparator(c);
    values.push(side(c));
  }
  const by = modulus(c);
  if (by === undefined || values.some(({ op }) => op === "structure")) return c.fail("residues without a modulus");
  return structure({
    kind: "list",
    items: values.map((value): Value => ({ kind: "relation", sides: [of, value], signs: ["≡"], modulus: by })),
    word: "or",
  });
}

/** (mod n), behind a congruence. */
function modulus(c: Cursor): Expression | undefined {
  if (c.take("command", "pmod")) return sum(c);
  const bracket = c.is("open", "(") && (c.is("word", "mod", 1) || c.isSign("mod", 1));
  if (bracket) c.next();
  if (!c.take("word", "mod") && !c.takeSign("mod")) return undefined;
  const value = sum(c);
  if (bracket) c.expect("close", ")");
  return value;
}

/** A side of a relation: unions of sets, or an amount with its unit. */
export function side(c: Cursor): Expression {
  const first = amount(c);
  if (first.op !== "structure") return first;
  let value: Expression = first;
  for (;;) {
    const isLetter = (c.is("word", "U") || c.is("word", "u")) && c.peek(1)?.kind === "open";
    const sign = c.peek();
    if (!isLetter && !(sign?.kind === "sign" && /^[∪∖∩]$/.test(sign.text))) return value;
    c.next();
    value = sign?.text === "∩" ? sectionOf(c, value, amount(c)) : unionOf(c, value, amount(c), sign?.text === "∖");
  }
}

/** Whether a token is a unit of time, length or weight, of which "3 hours and 20 minutes" has two. */
const isMeasured = (token: Token | undefined): boolean => token?.kind === "word" && token.text.length > 1 && isUnit(token.text);

/** "Rs. 500", "USD 5", "US$5": the word of a currency before its amount. */
function leadingCurrency(c: Cursor): Unit | undefined {
  const token = c.peek();
  if (token?.kind !== "word" || !/^(?:Rs|US|USD|EUR|GBP|INR|JPY|CNY|RMB)$/.test(token.text)) return undefined;
  const point = c.isSign(".", 1) ? 1 : 0;
  if (token.text === "US" ? c.peek(1)?.kind !== "currency" : c.peek(1 + point)?.kind !== "number") return undefined;
  c.next();
  if (point === 1) c.next();
  return token.text === "US" ? undefined : unitOf(token.text === "RMB" ? "CNY" : token.text);
}

/** Minutes and seconds behind degrees: 37°30′15″. */
function arc(c: Cursor, unit: Unit): Unit | undefined {
  if (!isDegree(unit)) return undefined;
  if (c.takeSign('"')) return unitOf("arcsecond");
  if (!c.takeSign("'")) return undefined;
  return c.takeSign("'") ? unitOf("arcsecond") : unitOf("arcminute");
}

function amount(c: Cursor): Expression {
  let currency: Unit | undefined = leadingCurrency(c);
  let negative = false;
  if (c.peek()?.kind === "currency" || ((c.isSign("-") || c.isSign("+")) && c.peek(1)?.kind === "currency")) {
    negative = c.takeSign("-");
    c.takeSign("+");
    currency = unitOf(c.next().text);
  }
  const value = sum(c);
  if (value.op === "structure" && value.value.kind !== "quantity") return currency === undefined ? value : c.fail("a currency before what is no number");
  const ending = suffix(c, value);
  let unit = ending?.unit;
  let total = ending?.amount ?? value;
  if (currency !== undefined) unit = unit === undefined || (isCurrency(unit) && sameDimension(unit, currency)) ? currency : combine(currency, unit, 1);
  if (negative) total = negate(total);
  if (unit === undefined) return total;
  // "5 ft 3 in", "2 hours 30 minutes": amounts of one dimension add up.
  const addend = (): boolean => c.peek()?.kind === "number" || (c.is("word", "and") && c.peek(1)?.kind === "number" && isMeasured(c.peek(2)));
  while (addend() && !Object.keys(unit.powers).some((base) => base.startsWith("#"))) {
    c.take("word", "and");
    const more = sum(c);
    const minutes = arc(c, unit);
    const next = minutes === undefined ? suffix(c, more) : { amount: more, unit: minutes };
    if (next?.unit === undefined || !sameDimension(next.unit, unit)) return c.fail("amounts of different kinds stand side by side");
    const scale = numberOf({ n: next.unit.factor.n * unit.factor.d, d: next.unit.factor.d * unit.factor.n });
    total = add(total, multiply(next.amount, scale));
  }
  return structure({ kind: "quantity", amount: total, unit: unit ?? noUnit });
}
