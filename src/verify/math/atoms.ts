/** The smallest parts of expressions: numerals, names, functions with their arguments, fractions, roots, and what stands in brackets. */
import { rational } from "../number/rational.js";
import { bareArgument, exponent, powered, sum } from "./arithmetic.js";
import { bracket, matrix } from "./brackets.js";
import { call, constants, divide, isConstant, numberOf, power, some, symbolOf } from "./build.js";
import { blackboard } from "./commands.js";
import type { Cursor } from "./cursor.js";
import { based, numeral } from "./numerals.js";
import { spelling } from "./settle.js";
import type { Token } from "./token.js";
import type { Expression, Value } from "./types.js";
import { functionsByName, isFunctionName, partsOfWord, sentenceWords } from "./words.js";

export const structure = (value: Value): Expression => ({ op: "structure", value });

/** One operand. */
export function atom(c: Cursor): Expression {
  const token = c.peek();
  if (token === undefined) return c.fail("it ends where an operand should stand");
  const letters = lettersOfNumeral(c);
  if (letters !== undefined) return letters;
  switch (token.kind) {
    case "number":
      return numeral(c);
    case "vulgar": {
      const [over, under] = c.next().text.split("/") as [string, string];
      return numberOf(rational(BigInt(over), BigInt(under)));
    }
    case "name":
      return named(c);
    case "word":
      return word(c, token);
    case "function":
      return applied(c, c.next().text);
    case "command":
      return command(c, token);
    case "open":
    case "close":
      return (
        counted(c) ??
        numeralInBrackets(
          c,
          c.deeper(() => bracket(c)),
        )
      );
    case "sign":
      if (token.text === "|" || token.text === "<") return c.deeper(() => bracket(c));
      if (token.text === "_" || token.text === "^") {
        const count = counted(c);
        if (count !== undefined) return count;
      }
      if ((token.text === "∠" || token.text === "△") && c.peek(1)?.kind === "word") {
        c.next();
        return symbolOf(`${token.text}${c.next().text}`);
      }
      return c.fail(`“${token.text}” stands where an operand should`);
    default:
      return c.fail(`“${token.text}” stands where an operand should`);
  }
}

/** `(1011)_2`. */
function numeralInBrackets(c: Cursor, inner: Expression): Expression {
  const isNumeral = c.isSign("_") && inner.op === "number" && inner.value.d === 1n && inner.value.n >= 0n && inner.decimals === undefined;
  return (isNumeral ? based(c, String(inner.value.n)) : undefined) ?? inner;
}

/** `{}_{10}C_3`, `^{10}C_3`, `_{10}P_{3}`: choices and arrangements. */
function counted(c: Cursor): Expression | undefined {
  const from = c.is("open", "{") && c.is("close", "}", 1) ? 2 : 0;
  if (!c.isSign("_", from) && !c.isSign("^", from)) return undefined;
  return c.attempt(() => {
    c.at += from + 1;
    const of = argument(c);
    const name = c.next().text;
    if (name !== "C" && name !== "P") return c.fail("an index without a letter");
    c.expect("sign", "_");
    return call(name === "C" ? "binomial" : "permutations", of, argument(c));
  });
}

/** A numeral with digits above nine: `A3_{16}`. */
function lettersOfNumeral(c: Cursor): Expression | undefined {
  let digits = "";
  let ahead = 0;
  for (; ahead < 40; ahead++) {
    const token = c.peek(ahead);
    if (token === undefined || (token.kind !== "number" && token.kind !== "word") || (ahead > 0 && token.gap > 0) || !/^(?:\d+|[A-Fa-f]+)$/.test(token.text))
      break;
    digits += token.text;
  }
  if (ahead === 0 || !c.isSign("_", ahead) || /^\d+$/.test(digits) || !/\d|^[A-F]{2,}$/.test(digits)) return undefined;
  return c.attempt(() => {
    c.at += ahead;
    return based(c, digits);
  });
}

function word(c: Cursor, token: Token): Expression {
  const text = token.text;
  if (sentenceWords.has(text)) return c.fail(`“${text}” is a word`);
  const parts = partsOfWord(text);
  if (parts === undefined) return c.fail(`“${text}” is a word`);
  if (parts.length === 1 && parts[0]?.kind === "function") {
    c.next();
    return applied(c, text);
  }
  c.replace(...parts.map((part, i): Token => ({ ...token, kind: part.kind, text: part.text, gap: i === 0 ? token.gap : 0, plain: false })));
  return atom(c);
}

const sets: { readonly [name: string]: Value } = {
  Reals: { kind: "intervals", parts: [{ low: { closed: false }, high: { closed: false } }], points: [] },
  emptyset: { kind: "set", items: [] },
};
const otherSets: ReadonlySet<string> = new Set(["Integers", "Naturals", "Rationals", "Complexes"]);
/** Letters that name functions wherever a bracket follows them. */
const functionLetters: ReadonlySet<string> = new Set(["f", "g", "h"]);

/** A symbol with its index and primes, a constant, or a function without a known meaning. */
function named(c: Cursor): Expression {
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

/** What stands lowered behind a name, as text. */
function index(c: Cursor): string {
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

/** Expressions between commas, the opening bracket included. */
function list(c: Cursor, close: ")" | "\\}" | "}" | "]"): Expression[] {
  c.next();
  return c.inside(() => {
    const items = [sum(c)];
    while (c.takeSign(",")) items.push(sum(c));
    c.expect("close", close);
    return items;
  });
}

const closing: { readonly [open: string]: ")" | "\\}" | "}" | "]" } = { "(": ")", "{": "}", "[": "]", "\\{": "\\}" };
const manyArguments: ReadonlySet<string> = new Set(["gcd", "lcm", "min", "max", "binomial", "log"]);
const inverse: { readonly [name: string]: "arcsin" | "arccos" | "arctan" } = { sin: "arcsin", cos: "arccos", tan: "arctan" };
const ten = numberOf(10);

/** A function whose name was read: its exponent, its base, its argument. */
function applied(c: Cursor, spelled: string): Expression {
  const name = functionsByName[spelled];
  if (name === undefined) return c.fail(`the function ${spelled} is not supported`);
  if (name === "sqrt" || name === "cbrt") return root(c, name === "cbrt" ? numberOf(3) : undefined);
  let raised: Expression | undefined;
  if (c.takeSign("^")) raised = c.deeper(() => exponent(c));
  let base = name === "lg" ? ten : undefined;
  if (name === "log" && c.takeSign("_")) base = logBase(c);
  else if (name === "log" && c.peek()?.kind === "number" && c.peek()?.gap === 0 && c.is("open", "(", 1)) base = numeral(c);
  const isInverse = raised?.op === "number" && raised.value.n === -1n && raised.value.d === 1n;
  if (isInverse && inverse[name] === undefined) c.fail(`the inverse of ${name} is not supported`);
  const of = argumentsOf(c);
  if (of.length > 1 && !manyArguments.has(name)) c.fail(`${name} has one argument`);
  if (of.some(({ op }) => op === "structure")) c.fail(`the argument of ${name} is no number`);
  const [first] = of as [Expression];
  const value = isInverse ? call(inverse[name] as "arcsin", first) : callOf(c, name, of, base);
  return raised === undefined || isInverse ? value : power(value, raised);
}

function callOf(c: Cursor, name: string, of: readonly Expression[], base: Expression | undefined): Expression {
  const [first, second] = of as [Expression, Expression?];
  switch (name) {
    case "arccot":
      return { op: "add", terms: [divide(constants.pi as Expression, numberOf(2)), { op: "negate", of: call("arctan", first) }] };
    case "cis":
      return { op: "add", terms: [call("cos", first), { op: "multiply", factors: [constants.i as Expression, call("sin", first)] }] };
    case "coth":
      return divide(call("cosh", first), call("sinh", first));
    case "lg":
    case "log":
      return base !== undefined || second !== undefined ? call("log", first, base ?? (second as Expression)) : call("log", first);
    case "binomial":
      return second === undefined ? c.fail("a binomial coefficient has two arguments") : call("binomial", first, second);
    default:
      return call(name as "sin", ...of);
  }
}

function logBase(c: Cursor): Expression {
  const token = c.peek();
  if (token?.kind === "open") return atom(c);
  // "\log_28" is the logarithm of 8 to the base 2.
  if (token?.kind === "number" && !/^\d+$/.test(token.text)) return c.fail("a base that is no whole number");
  if (token?.kind === "number" && token.text.length > 1 && !startsArgument(c.peek(1))) {
    c.replace({ ...token, text: token.text[0] as string }, { ...token, text: token.text.slice(1), gap: 1 });
    return numeral(c);
  }
  if (token?.kind === "number") return numberOf(BigInt(c.next().text.replace(/\D.*/, "")));
  return atom(c);
}

const startsArgument = (token: Token | undefined): boolean => token !== undefined && token.kind !== "sign" && token.kind !== "close";

function argumentsOf(c: Cursor): Expression[] {
  const token = c.peek();
  const close = token?.kind === "open" ? closing[token.text] : undefined;
  return close === undefined ? [c.deeper(() => bareArgument(c))] : list(c, close);
}

function root(c: Cursor, known: Expression | undefined): Expression {
  let degree = known;
  if (degree === undefined && c.is("open", "[")) {
    c.next();
    degree = c.inside(() => sum(c));
    c.expect("close", "]");
  }
  const of = c.is("open", "(")
    ? (list(c, ")")[0] as Expression)
    : c.deeper(() => (c.peek()?.kind === "word" && !isFunctionName(c.peek()?.text ?? "") ? argument(c) : atom(c)));
  if (of.op === "structure") return c.fail("the root of what is no number");
  return call("root", of, degree ?? numberOf(2));
}

/** The argument of a command: a group, or the one character that follows. */
function argument(c: Cursor): Expression {
  const token = c.peek();
  if (token?.kind === "number" && token.text.length > 1) {
    if (!/^\d+$/.test(token.text)) return c.fail("a decimal without braces");
    c.replace({ ...token, text: token.text[0] as string }, { ...token, text: token.text.slice(1), gap: 0 });
    return numberOf(BigInt(c.next().text));
  }
  if (token?.kind === "word" && token.text.length > 1 && !token.plain) {
    c.replace({ ...token, text: token.text[0] as string }, { ...token, text: token.text.slice(1), gap: 0 });
  }
  return c.deeper(() => atom(c));
}

/** `d`, `dx`, `\partial` at the head of a group. */
function isDifferential(c: Cursor, ahead: number): boolean {
  const token = c.peek(c.is("open", "{", ahead) ? ahead + 1 : ahead);
  return (token?.kind === "word" && /^d[a-zA-Z]?$/.test(token.text)) || (token?.kind === "name" && token.text === "partial");
}

function command(c: Cursor, token: Token): Expression {
  if (token.text.startsWith("begin:")) return c.deeper(() => matrix(c));
  c.next();
  switch (token.text) {
    case "frac": {
      const isDerivative = isDifferential(c, 0);
      const over = argument(c);
      if (isDerivative && isDifferential(c, 0)) return c.fail("a derivative is not supported");
      const under = argument(c);
      if (c.peek()?.kind === "number" && c.peek()?.gap === 0) c.fail("digits touch a fraction");
      return divide(over, under);
    }
    case "binom": {
      const of = argument(c);
      return call("binomial", of, argument(c));
    }
    case "sqrt":
      return root(c, undefined);
    case "cbrt":
      return root(c, numberOf(3));
    case "fourthroot":
      return root(c, numberOf(4));
    case "sum":
    case "prod":
      return c.deeper(() => series(c, token.text === "sum" ? "sum" : "product"));
    case "blackboard": {
      const letter = index(c);
      const name = blackboard[letter];
      if (name === undefined) return symbolOf(`\\mathbb{${letter}}`);
      c.at--;
      c.replace({ ...token, kind: "name", text: name });
      return named(c);
    }
    case "overline":
    case "vec":
    case "hat":
    case "tilde":
      return accented(c, token.text);
    default:
      return c.fail(`\\${token.text} is not supported`);
  }
}

/** A symbol with a mark over it is another symbol; over a complex number a bar is its conjugate. */
function accented(c: Cursor, accent: string): Expression {
  const at = c.at;
  const of = c.attempt(() => argument(c));
  if (
    accent === "overline" &&
    of !== undefined &&
    (some(of, (part) => part.op === "constant" && part.name === "i") || (of.op === "symbol" && /^[zw]$/.test(of.name)))
  )
    return call("conjugate", of);
  if (of !== undefined && isConstant(of)) return c.fail(`\\${accent} over a number is not supported`);
  c.at = at;
  return symbolOf(`\\${accent}{${index(c)}}`);
}

/** A sum or product with its limits. */
function series(c: Cursor, op: "sum" | "product"): Expression {
  let variable: string | undefined;
  let from: Expression | undefined;
  let to: Expression | undefined;
  for (let i = 0; i < 2; i++) {
    if (variable === undefined && c.takeSign("_")) {
      c.expect("open", "{");
      variable = c.next().text;
      if (!/^[A-Za-z]+$/.test(variable)) c.fail("a sum without a variable");
      c.expect("sign", "=");
      from = c.inside(() => sum(c));
      c.expect("close", "}");
    } else if (to === undefined && c.takeSign("^")) to = c.deeper(() => exponent(c));
  }
  if (variable === undefined || from === undefined || to === undefined) return c.fail("a sum without limits is not supported");
  c.bound.push(variable);
  let body = powered(c);
  while (c.peek()?.kind === "name" || c.peek()?.kind === "word" || c.peek()?.kind === "open" || c.is("command", "frac") || c.isSign("*")) {
    c.takeSign("*");
    if (c.peek()?.kind === "word" && sentenceWords.has(c.peek()?.text ?? "")) break;
    body = { op: "multiply", factors: [body, powered(c)] };
  }
  c.bound.pop();
  return { op, variable, from, to, body };
}
