/** What stands in brackets: groups, tuples, sets, intervals, absolute values, floors, and matrices. */
import { sum } from "./arithmetic.js";
import { call, structure } from "./build.js";
import type { Cursor } from "./cursor.js";
import { entry, isSeparator, side, takeSeparator } from "./entry.js";
import { wholeNumbersIn } from "./ranges.js";
import { intervalsOf } from "./relate.js";
import type { Expression, Interval, Value } from "./types.js";
import { asValue } from "./value.js";

/** Something in brackets, whichever open here. */
export function bracket(c: Cursor): Expression {
  const token = c.next();
  switch (token.text) {
    case "{":
      return group(c);
    case "(":
    case "[":
    case "]":
      return round(c, token.text);
    case "\\{":
      return set(c);
    case "⟨":
      return vector(c, () => c.take("close", "⟩"));
    case "<":
      return vector(c, () => c.takeSign(">"));
    case "⌊":
    case "⌈":
      return rounded(c, token.text);
    case "|":
      return token.kind === "close" ? c.fail("a bar closes nothing") : absolute(c, token.kind === "open");
    default:
      return c.fail(`“${token.text}” stands where an operand should`);
  }
}

/** Entries between separators, up to what `isEnd` sees. */
function entries(c: Cursor, isEnd: () => boolean): Expression[] {
  const found: Expression[] = [];
  if (isEnd()) return found;
  found.push(entry(c));
  while (isSeparator(c.peek())) {
    takeSeparator(c);
    found.push(entry(c));
  }
  return found;
}

function group(c: Cursor): Expression {
  return c.inside(() => {
    const found = entries(c, () => c.is("close", "}"));
    c.expect("close", "}");
    return found.length === 1 ? (found[0] as Expression) : structure({ kind: "set", items: found.map(asValue) });
  });
}

/** ( … ), [ … ), ] … [ and the like: one expression is itself, several are a tuple, unequal brackets an interval. */
function round(c: Cursor, open: "(" | "[" | "]"): Expression {
  const read = (squareCloses: boolean) => (): Expression =>
    c.inside(() => {
      c.squareCloses = squareCloses;
      const found = entries(c, () => false);
      const last = c.next();
      const shape = last.text;
      if (!(last.kind === "close" && (shape === ")" || shape === "]")) && !(squareCloses && shape === "[")) return c.fail("a bracket is not closed");
      return closed(c, open, shape as ")" | "]" | "[", found);
    });
  if (open === "(") return read(false)();
  return (open === "[" ? c.attempt(read(false)) : undefined) ?? read(true)();
}

function closed(c: Cursor, open: "(" | "[" | "]", close: ")" | "]" | "[", found: readonly Expression[]): Expression {
  const [first, second] = found as [Expression, Expression?];
  if (second === undefined) {
    if ((open === "(") !== (close === ")") || open === "]") return c.fail("brackets do not match");
    if (first.op === "structure" && first.value.kind === "matrix" && first.value.fence === "") return structure({ ...first.value, fence: "(" });
    return first;
  }
  const same = (open === "(" && close === ")") || (open === "[" && close === "]");
  if (same) return structure({ kind: "tuple", items: found.map(asValue), open, close } as Value);
  if (found.length !== 2) return c.fail("brackets do not match");
  return structure({ kind: "intervals", parts: [intervalOf(c, first, second, open === "[", close === "]")], points: [] });
}

/** The interval between two ends; an infinite end is open. */
export function intervalOf(c: Pick<Cursor, "fail">, low: Expression, high: Expression, lowClosed: boolean, highClosed: boolean): Interval {
  if (low.op === "structure" || high.op === "structure") return c.fail("an end of an interval is no number");
  return {
    low: isInfinite(low, -1) ? { closed: false } : { value: low, closed: lowClosed },
    high: isInfinite(high, 1) ? { closed: false } : { value: high, closed: highClosed },
  };
}

/** ∞ with a sign. */
export function isInfinite(expression: Expression, sign: 1 | -1): boolean {
  if (expression.op === "negate") return isInfinite(expression.of, sign === 1 ? -1 : 1);
  return sign === 1 && expression.op === "constant" && expression.name === "infinity";
}

/** Whether a name with a condition behind it stands here: what has none is not tried as one. */
function isBuilder(c: Cursor): boolean {
  if (c.peek()?.kind !== "word" && c.peek()?.kind !== "name") return false;
  for (let ahead = 1; ahead < 8; ahead++) {
    if (c.isSign("∈", ahead) || c.isSign("|", ahead) || c.isSign(":", ahead)) return true;
    if (c.isSign(",", ahead)) return false;
  }
  return false;
}

function set(c: Cursor): Expression {
  const built = isBuilder(c) ? c.attempt(() => builder(c)) : undefined;
  if (built !== undefined) return built;
  return c.inside(() => {
    const found = entries(c, () => c.is("close", "\\}"));
    c.expect("close", "\\}");
    return structure({ kind: "set", items: found.map(asValue) });
  });
}

/** { x | x > 0 }, { x ∈ ℝ : x > 0 }. */
function builder(c: Cursor): Expression {
  return c.inside(() => {
    c.barParts = true;
    const element = side(c);
    const domain = c.takeSign("∈") ? asValue(side(c)) : undefined;
    if (!c.takeSign("|") && !c.takeSign(":")) return c.fail("no condition");
    c.barParts = false;
    const conditions = [entry(c)];
    let word: "and" | "or" = "and";
    while (isSeparator(c.peek())) {
      word = takeSeparator(c) ?? word;
      conditions.push(entry(c));
    }
    c.expect("close", "\\}");
    if (element.op !== "symbol") return c.fail("a set of more than one variable is not supported");
    const items = conditions.map(asValue);
    const condition: Value = items.length === 1 ? (items[0] as Value) : { kind: "list", items, word };
    return structure(domain === undefined || isEverything(domain) ? condition : within(c, element.name, domain, condition));
  });
}

const isEverything = (value: Value): boolean =>
  value.kind === "intervals" && value.without === undefined && value.parts.some(({ low, high }) => low.value === undefined && high.value === undefined);

/** What of a domain meets a condition: whole numbers one by one where they are few, else both side by side. */
function within(c: Cursor, name: string, domain: Value, condition: Value): Value {
  const least = domain.kind === "text" ? { Integers: undefined, "Integers+": 1 }[domain.text] : null;
  const found = least === null || (domain.kind === "text" && !/^Integers\+?$/.test(domain.text)) ? undefined : wholeNumbersIn(condition, least, c.budget);
  if (found !== undefined) return { kind: "set", items: found.map((expression): Value => ({ kind: "number", expression })) };
  return {
    kind: "list",
    items: [{ kind: "assignment", name, value: domain.kind === "tuple" ? (intervalsOf(c, domain) ?? domain) : domain }, condition],
    word: "and",
  };
}

function vector(c: Cursor, close: () => boolean): Expression {
  return c.inside(() => {
    const items = [sum(c)];
    while (c.takeSign(",")) items.push(sum(c));
    if (!close()) return c.fail("a bracket is not closed");
    return structure({ kind: "tuple", items: items.map(asValue), open: "⟨", close: "⟩" });
  });
}

function rounded(c: Cursor, open: "⌊" | "⌈"): Expression {
  const of = c.inside(() => {
    const inner = sum(c);
    c.expect("close", open === "⌊" ? "⌋" : "⌉");
    return inner;
  });
  return call(open === "⌊" ? "floor" : "ceil", of);
}

function absolute(c: Cursor, sided: boolean): Expression {
  const of = c.inside(() => {
    c.bars = sided ? 0 : 1;
    const inner = sum(c);
    if (!(sided ? c.take("close", "|") || c.takeSign("|") : c.takeSign("|"))) c.fail("a bar is not closed");
    return inner;
  });
  return of.op === "structure" ? c.fail("the size of what is no number is not supported") : call("abs", of);
}

const fences: { readonly [environment: string]: "" | "(" | "|" | "{" } = {
  matrix: "(",
  pmatrix: "(",
  bmatrix: "(",
  Bmatrix: "(",
  smallmatrix: "(",
  psmallmatrix: "(",
  bsmallmatrix: "(",
  array: "",
  vmatrix: "|",
  cases: "{",
  aligned: "{",
  align: "{",
  gathered: "{",
  split: "{",
};

/** An environment of rows and cells. */
export function matrix(c: Cursor): Expression {
  const name = c.next().text.slice("begin:".length);
  const fence = fences[name];
  if (fence === undefined) return c.fail(`the environment ${name} is not supported`);
  const end = (): boolean => c.is("command", `end:${name}`);
  const rows: Value[][] = [];
  c.inside(() => {
    while (!end()) {
      rows.push(row(c, fence === "{" ? "cases" : "cells"));
      if (!c.takeSign("\\\\") && !end()) c.fail("a row of a matrix does not end");
    }
  });
  c.next();
  if (rows.length === 0) return c.fail("a matrix has no rows");
  if (fence === "{") {
    if (rows.every((cells) => cells.length === 1)) return structure({ kind: "list", items: rows.map((cells) => cells[0] as Value), word: "and" });
    if (rows.some((cells) => cells.length !== 2)) return c.fail("a case has no condition");
    return structure({ kind: "set", items: rows.map((items): Value => ({ kind: "tuple", items, open: "(", close: ")" })) });
  }
  if (rows.some((cells) => cells.length !== rows[0]?.length)) return c.fail("the rows of a matrix have different lengths");
  return structure({ kind: "matrix", rows, fence });
}

function row(c: Cursor, style: "cells" | "cases"): Value[] {
  if (style === "cases") return caseAt(c);
  const cells: Value[] = [];
  for (;;) {
    cells.push(asValue(entry(c)));
    if (!c.takeSign("&")) return cells;
  }
}

const endsRow = (c: Cursor, ahead = 0): boolean => c.isSign("\\\\", ahead) || c.peek(ahead)?.text.startsWith("end:") === true;

/** One of several equations, or a value and the condition under which it holds. */
function caseAt(c: Cursor): Value[] {
  removeMarks(c);
  const value = asValue(entry(c));
  c.takeSign(",");
  if (endsRow(c)) return [value];
  if (value.kind === "assignment" || value.kind === "relation") return c.fail("two equations stand in a row");
  const marked = c.takeSign("&");
  const led = c.take("word", "if") || c.take("word", "for") || c.take("word", "when") || c.take("word", "where");
  if (!marked && !led) return c.fail("a case has no condition");
  if (c.take("word", "otherwise") || c.take("word", "else") || c.take("word", "elsewhere")) {
    c.takeSign(".");
    return [value, { kind: "text", text: "otherwise" }];
  }
  const conditions = [asValue(entry(c))];
  while (isSeparator(c.peek()) && !endsRow(c, 1)) {
    takeSeparator(c);
    conditions.push(asValue(entry(c)));
  }
  c.takeSign(".");
  c.takeSign(",");
  return [value, conditions.length === 1 ? (conditions[0] as Value) : { kind: "list", items: conditions, word: "and" }];
}

/** Takes the marks that align equations out of a row; those between a value and its condition stay. */
function removeMarks(c: Cursor): void {
  const { at } = c;
  const isRelation = (ahead: number): boolean => c.peek(ahead)?.kind === "sign" && /^[=<>≤≥≠≈≡]$/.test(c.peek(ahead)?.text ?? "");
  while (c.peek() !== undefined && !c.isSign("\\\\") && !c.peek()?.text.startsWith("end:")) {
    if (c.isSign("&") && (c.at === at || isRelation(1) || isRelation(-1))) c.replace();
    else c.next();
  }
  c.at = at;
}
