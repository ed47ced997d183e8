/** The smallest parts of expressions: numerals, words and what stands in brackets; names, functions and commands have files of their own. */
import { rational } from "../number/rational.js";
import { bracket } from "./brackets.js";
import { call, numberOf, symbolOf } from "./build.js";
import { command } from "./constructs.js";
import type { Cursor } from "./cursor.js";
import { applied, argument } from "./functions.js";
import { derivativeName, named } from "./names.js";
import { based, numeral } from "./numerals.js";
import type { Token } from "./token.js";
import type { Expression } from "./types.js";
import { partsOfWord, sentenceWords } from "./words.js";

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

const differential = /^d[a-zA-Z]$/;

function word(c: Cursor, token: Token): Expression {
  const text = token.text;
  const under = c.peek(2);
  if (differential.test(text) && c.isSign("/", 1) && under?.kind === "word" && differential.test(under.text)) {
    c.at += 3;
    return symbolOf(derivativeName(text, under.text));
  }
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
