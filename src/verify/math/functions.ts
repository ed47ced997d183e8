/** Functions that are known, with their exponents, bases and arguments. */
import { bareArgument, exponent, sum } from "./arithmetic.js";
import { atom } from "./atoms.js";
import { add, call, constants, divide, numberOf, power, subtract } from "./build.js";
import type { Cursor } from "./cursor.js";
import { numeral } from "./numerals.js";
import type { Token } from "./token.js";
import type { Expression } from "./types.js";
import { functionsByName, isFunctionName } from "./words.js";

/** Expressions between commas, the opening bracket included. */
export function list(c: Cursor, close: ")" | "\\}" | "}" | "]"): Expression[] {
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
const one = numberOf(1);
const ten = numberOf(10);

/** A function whose name was read: its exponent, its base, its argument. */
export function applied(c: Cursor, spelled: string): Expression {
  const name = functionsByName[spelled];
  if (name === undefined) return c.fail(`the function ${spelled} is not supported`);
  if (name === "sqrt" || name === "cbrt") return root(c, name === "cbrt" ? numberOf(3) : undefined);
  let raised: Expression | undefined;
  if (c.takeSign("^")) raised = c.deeper(() => exponent(c));
  let base = name === "lg" ? ten : undefined;
  if (name === "log" && c.takeSign("_")) base = logBase(c);
  else if (name === "log" && c.peek()?.kind === "number" && c.peek()?.gap === 0 && c.is("open", "(", 1)) base = numeral(c);
  const isInverse = raised?.op === "number" && raised.value.n === -1n && raised.value.d === 1n;
  const of = argumentsOf(c);
  if (of.length > 1 && !manyArguments.has(name)) c.fail(`${name} has one argument`);
  if (of.some(({ op }) => op === "structure")) c.fail(`the argument of ${name} is no number`);
  const [first] = of as [Expression];
  const value = isInverse ? inverseOf(c, name, first) : callOf(c, name, of, base);
  return raised === undefined || isInverse ? value : power(value, raised);
}

/** The inverse of a function, those of sinh and the like by logarithms. */
function inverseOf(c: Cursor, name: string, of: Expression): Expression {
  const withRoot = (size: 1 | -1): Expression => call("ln", add(of, call("root", add(power(of, numberOf(2)), numberOf(size)), numberOf(2))));
  switch (name) {
    case "sin":
      return call("arcsin", of);
    case "cos":
      return call("arccos", of);
    case "tan":
      return call("arctan", of);
    case "sec":
      return call("arccos", divide(one, of));
    case "csc":
      return call("arcsin", divide(one, of));
    case "cot":
      return subtract(divide(constants.pi as Expression, numberOf(2)), call("arctan", of));
    case "sinh":
      return withRoot(1);
    case "cosh":
      return withRoot(-1);
    case "tanh":
      return divide(call("ln", divide(add(one, of), subtract(one, of))), numberOf(2));
    default:
      return c.fail(`the inverse of ${name} is not supported`);
  }
}

function callOf(c: Cursor, name: string, of: readonly Expression[], base: Expression | undefined): Expression {
  const [first, second] = of as [Expression, Expression?];
  switch (name) {
    case "arccot":
    case "arcsec":
    case "arccsc":
    case "arcsinh":
    case "arccosh":
    case "arctanh":
      return inverseOf(c, name.slice(3), first);
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

export function root(c: Cursor, known: Expression | undefined): Expression {
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
export function argument(c: Cursor): Expression {
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
