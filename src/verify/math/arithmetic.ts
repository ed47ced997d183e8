/** Sums, products and powers of what `atom` reads. Multiplication signs may be left out; fractions with a slash go from left to right. */
import { atom } from "./atoms.js";
import { add, call, divide, isConstant, multiply, negate, numberOf, power, structure } from "./build.js";
import type { Cursor } from "./cursor.js";
import { index } from "./names.js";
import type { Token } from "./token.js";
import type { Expression, Value } from "./types.js";
import { isUnit } from "./units.js";
import { isFunctionName, magnitudes, partsOfWord, sentenceWords } from "./words.js";

/** Terms with their signs. */
export function sum(c: Cursor): Expression {
  const terms = [signedTerm(c)];
  while (isAdditive(c.peek())) terms.push(signedTerm(c));
  return add(...terms);
}

const isAdditive = (token: Token | undefined): boolean =>
  token?.kind === "sign" && (token.text === "+" || token.text === "-" || token.text === "±" || token.text === "∓");

function signedTerm(c: Cursor): Expression {
  return signed(c, product);
}

/** Something behind up to three signs. */
function signed(c: Cursor, read: (c: Cursor) => Expression): Expression {
  const signs: string[] = [];
  while (isAdditive(c.peek())) {
    if (signs.length === 3) c.fail("there are too many signs in a row");
    signs.push(c.next().text);
  }
  return signs.reduceRight((of: Expression, sign): Expression => {
    if (sign === "+") return of;
    return sign === "-" ? negate(of) : { op: "plus-minus", upper: sign === "±" ? 1 : -1, of };
  }, read(c));
}

/** Divisions in a row, and signs behind one operand: each is a level of the expression. */
const mostLevels = 200;

function product(c: Cursor): Expression {
  let value = powered(c);
  for (let levels = 0; ; ) {
    if (levels > mostLevels) return c.fail("there are too many divisions in a row");
    if (c.takeSign("*")) value = times(value, signed(c, powered));
    else if (c.isSign("/") || c.isSign("÷")) {
      if (unitFollows(c, 1, value)) return value;
      c.next();
      levels++;
      value = divide(value, signed(c, powered));
    } else if (c.isSign("mod") || (c.is("word", "mod") && !c.ended)) {
      c.next();
      levels++;
      value = call("mod", value, powered(c));
    } else if (c.is("command", "choose") || c.is("word", "choose")) {
      c.next();
      levels++;
      value = call("binomial", value, powered(c));
    } else if (isFactorNext(c, value)) value = times(value, powered(c));
    else return value;
  }
}

function times(a: Expression, b: Expression): Expression {
  return a.op === "multiply" ? { op: "multiply", factors: [...a.factors, b] } : multiply(a, b);
}

const factorCommands: ReadonlySet<string> = new Set("frac sqrt cbrt fourthroot binom sum prod overline vec hat tilde blackboard root".split(" "));

/** Whether the next token goes on with a product after `value`, without a sign between them. */
function isFactorNext(c: Cursor, value: Expression): boolean {
  const token = c.peek();
  if (token === undefined || value.op === "structure") return false;
  switch (token.kind) {
    case "name":
      return !isUnitSign(c, token, value);
    case "function":
      return true;
    case "vulgar":
      return false;
    case "number":
      // "50!50!": nothing but a factorial ends what a digit could continue, and "3+i4": no power and no index is written so of i.
      if (c.isSign("^", 1) || c.isSign("**", 1)) return isRaisedFactor(c, token, value);
      return (value.op === "function" && c.isSign("!", -1)) || (isImaginary(value) && c.peek(-1)?.text === "i" && token.gap === 0 && !c.bound.includes("i"));
    case "word":
      return isFactorWord(c, token, value);
    case "command":
      // "45 \frac{miles}{hour}" is a unit.
      if (token.text === "frac" && c.is("open", "{", 1) && isUnit(c.peek(2)?.text ?? "") && c.peek(2)?.plain === true && isConstant(value)) return false;
      return factorCommands.has(token.text) || (token.text.startsWith("begin:") && token.text !== "begin:cases");
    case "open":
      if (c.is("word", "mod", 1) || c.isSign("mod", 1) || isBaseNote(c)) return false;
      if (token.text === "[" && c.squareCloses) return false;
      return token.text !== "⟨" && token.text !== "\\{" && token.text !== "‖";
    case "sign":
      return token.text === "|" && c.bars === 0 && !c.barParts;
    default:
      return false;
  }
}

/** "(n+1)2^n", "n2^{n-1}", "2^2 3^3": a number with an exponent is a factor of its own, but where its digits could go on with those before it. */
function isRaisedFactor(c: Cursor, token: Token, value: Expression): boolean {
  const last = value.op === "multiply" ? value.factors.at(-1) : value;
  return c.peek(-1)?.kind !== "number" || (token.gap > 0 && (last?.op === "power" || last?.op === "symbol"));
}

const isImaginary = (value: Expression): boolean => value.op === "constant" && value.name === "i";

/** "5 Ω" and "3 μm" at the end of a number. */
function isUnitSign(c: Cursor, token: Token, value: Expression): boolean {
  const isEnd = (ahead: number): boolean => c.peek(ahead) === undefined || c.isSign(",", ahead) || c.is("close", "}", ahead);
  if (!isConstant(value)) return false;
  if (token.text === "Omega") return isEnd(1);
  const prefixed = c.peek(1);
  return token.text === "mu" && prefixed?.kind === "word" && /^[msgLFCAVWJN]$/.test(prefixed.text) && prefixed.gap === 0 && isEnd(2);
}

/** "(base 5)". */
const isBaseNote = (c: Cursor): boolean => c.is("word", "base", 1);

/** Whether a word goes on with a product: no unit, no word of a language. */
function isFactorWord(c: Cursor, token: Token, value: Expression): boolean {
  const word = token.text;
  if (sentenceWords.has(word) || magnitudes.has(word.toLowerCase())) return false;
  if (token.gap === 0 && /^(?:st|nd|rd|th)$/.test(word) && c.peek(-1)?.kind === "number") return false;
  if ((word === "sq" || word === "cu") && isConstant(value)) return false;
  if (word === "U" && c.peek(1)?.kind === "open" && isIntervalEnd(value)) return false;
  const followed = c.peek(1);
  const bare =
    followed === undefined ||
    followed.kind === "close" ||
    (followed.kind === "sign" && /^[,;.=]$/.test(followed.text)) ||
    // "2 h 15 min": nothing but another amount.
    (followed.kind === "number" && followed.gap > 0 && isUnit(c.peek(2)?.text ?? ""));
  if (token.plain) {
    if (word === "i" || word === "e" || word === "pi") return true;
    if (isFunctionName(word)) return !(bare && isUnit(word));
    return word.length === 1 && !isUnit(word) && !isConstant(value);
  }
  if (word.length === 1) {
    const apart = token.gap === 2 || (c.peek(-1)?.kind === "number" && (c.peek(-1)?.joint !== undefined || /\./.test(c.peek(-1)?.text ?? "")));
    const isCompound = followed?.kind === "word" && followed.text.length > 1 && isUnit(followed.text);
    if (!apart || !isUnit(word) || !isConstant(value) || (!bare && !isCompound && !/^[/^]$/.test(followed?.text ?? ""))) return true;
    c.met.add("letters");
    return c.spelling.letters !== "unit";
  }
  if (isUnit(word) && isConstant(value) && !(isFunctionName(word) && !bare)) {
    if (partsOfWord(word) !== undefined) c.met.add("words");
    return c.spelling.words === "product" && partsOfWord(word) !== undefined;
  }
  return partsOfWord(word) !== undefined;
}

const isIntervalEnd = (value: Expression): boolean => value.op === "structure";

/** Whether the token `ahead` is a unit, so that a slash before it is "per": `5 $/hour`. */
function unitFollows(c: Cursor, ahead: number, value: Expression): boolean {
  const token = c.peek(ahead);
  return token?.kind === "word" && (token.plain || token.text.length > 1) && isUnit(token.text) && isConstant(value) && c.peek(-1)?.kind === "word";
}

/** What `atom` reads, with factorials, degrees and powers behind it. */
export function powered(c: Cursor): Expression {
  let value = atom(c);
  for (let levels = 0; ; levels++) {
    if (levels > mostLevels) return c.fail("there are too many signs behind an operand");
    if ((c.is("word", "squared") || c.is("word", "cubed")) && !isUnit(c.peek(1)?.text ?? "")) {
      value = power(value, numberOf(c.next().text === "squared" ? 2 : 3));
    } else if (c.isSign("!")) {
      c.next();
      const isDouble = c.isSign("!") && c.peek()?.gap === 0;
      if (isDouble) c.next();
      if (c.isSign("!")) c.fail("a factorial of more steps is not supported");
      value = call(isDouble ? "double-factorial" : "factorial", value);
    } else if (c.isSign("°") || (c.isSign("∘") && c.peek()?.gap === 0)) {
      if (isTemperature(c)) return value;
      c.next();
      value = { op: "degrees", of: value };
    } else if (value.op === "structure" && c.isSign("^")) {
      value = structure(transposedAt(c, value.value));
    } else if (c.isSign("^") || c.isSign("**")) {
      if (c.isSign("**") && (c.peek(1) === undefined || (isAdditive(c.peek(1)) === false && c.peek(1)?.kind === "sign"))) return value;
      if (degreeAhead(c, isConstant(value)) > 0) {
        c.at += degreeAhead(c, isConstant(value));
        c.budget.spend(3);
        value = { op: "degrees", of: value };
      } else {
        c.next();
        value = power(
          value,
          c.deeper(() => exponent(c)),
        );
      }
    } else return value;
  }
}

/** A matrix, or a tuple as a row, behind which a raised T stands. */
function transposedAt(c: Cursor, value: Value): Value {
  c.next();
  const mark = index(c);
  if (mark !== "T" && mark !== "⊤" && mark !== "t" && mark !== "'") return c.fail("a power of what is no number");
  if (value.kind === "tuple") return { kind: "matrix", rows: value.items.map((item) => [item]), fence: "(" };
  if (value.kind !== "matrix" || value.fence !== "(") return c.fail("what is no matrix is transposed");
  const [first = []] = value.rows;
  return { ...value, rows: first.map((_, i) => value.rows.map((row) => row[i] as Value)) };
}

/** Whether a degree sign here is that of a temperature. */
const isTemperature = (c: Cursor): boolean => c.is("word", "C", 1) || c.is("word", "F", 1);

/** Tokens of `^\circ` or `^{\circ}` from here on, where it is not the degree of a temperature; 0 where there are none. */
export function degreeAhead(c: Cursor, ofNumber = false): number {
  // A raised letter o stands for the sign.
  const isMark = (ahead: number): boolean => c.isSign("∘", ahead) || c.isSign("°", ahead) || (ofNumber && c.is("word", "o", ahead));
  if (isMark(1)) return 2;
  return c.is("open", "{", 1) && isMark(2) && c.is("close", "}", 3) ? 4 : 0;
}

/** What stands raised: a group, or the next thing with its own exponent. */
export function exponent(c: Cursor): Expression {
  return signed(c, (inner) => {
    const base = atom(inner);
    if (!inner.isSign("^") && !inner.isSign("**")) return base;
    inner.next();
    return power(
      base,
      inner.deeper(() => exponent(inner)),
    );
  });
}

/** The argument of a function without brackets: factors without signs between them, up to the next function. */
export function bareArgument(c: Cursor): Expression {
  const negative = c.takeSign("-");
  let value = powered(c);
  for (;;) {
    const token = c.peek();
    const goes =
      token !== undefined &&
      (token.kind === "name" ||
        (token.kind === "command" && (token.text === "sqrt" || token.text === "frac")) ||
        (token.kind === "word" && !token.plain && isFactorWord(c, token, value) && partsOfWord(token.text)?.[0]?.kind === "name"));
    if (!goes) return negative ? negate(value) : value;
    value = times(value, powered(c));
  }
}
