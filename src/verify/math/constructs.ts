/** What commands build: fractions, roots, sums and products, marks over a symbol. */
import { exponent, powered, sum } from "./arithmetic.js";
import { matrix } from "./brackets.js";
import { call, divide, isConstant, numberOf, some, symbolOf } from "./build.js";
import { blackboard } from "./commands.js";
import type { Cursor } from "./cursor.js";
import { argument, root } from "./functions.js";
import { derivativeName, index, named } from "./names.js";
import type { Token } from "./token.js";
import type { Expression } from "./types.js";
import { sentenceWords } from "./words.js";

/** `d`, `dx`, `\partial` at the head of a group. */
function isDifferential(c: Cursor, ahead: number): boolean {
  const token = c.peek(c.is("open", "{", ahead) ? ahead + 1 : ahead);
  return (token?.kind === "word" && /^d[a-zA-Z]?$/.test(token.text)) || (token?.kind === "name" && token.text === "partial");
}

/** `\frac{dy}{dx}`, `\frac{d^2 y}{dx^2}`, `\frac{\partial f}{\partial x}`: an unknown of its own. */
function derivativeAt(c: Cursor): Expression {
  const over = index(c);
  if (!isDifferential(c, 0)) return c.fail("no derivative");
  return symbolOf(derivativeName(over, index(c)));
}

/** What a command stands for, with its arguments. */
export function command(c: Cursor, token: Token): Expression {
  if (token.text.startsWith("begin:")) return c.deeper(() => matrix(c));
  c.next();
  switch (token.text) {
    case "frac": {
      const derivative = isDifferential(c, 0) ? c.attempt(() => derivativeAt(c)) : undefined;
      if (derivative !== undefined) return derivative;
      const over = argument(c);
      const under = argument(c);
      if (c.peek()?.kind === "number" && c.peek()?.gap === 0 && !c.isSign("^", 1)) c.fail("digits touch a fraction");
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
