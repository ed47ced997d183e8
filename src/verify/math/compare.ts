/**
 * Comparison: whether an answer is the reference, as mathematics. Identity of what was written comes first; then values are
 * taken by their kinds. Total, and bounded by its budget; only declared policies treat the two sides differently.
 */
import { add, isConstant, multiply, negate, numberOf, substitute, symbolOf } from "./build.js";
import { type Compare, compareCollections, compareMatrices, compareTuples, inAnyOrder, inOrder, isCollection, unindexed } from "./collections.js";
import { type Assignment, asRelation, chainOf, compareRelations, namedValue, type Relation } from "./equations.js";
import { compareNumbers, compareQuantities, compareRatios, numeralAndNumber, numeralValue, quantityAndNumber, ratioAndNumber, type Terms } from "./numbers.js";
import type { Policies } from "./policies.js";
import { asIntervals, compareIntervals, solved } from "./ranges.js";
import { identical } from "./read.js";
import { different, equal, unsupported } from "./results.js";
import { hasSigns } from "./signs.js";
import { type Budget, type Comparison, type Expression, OutOfSteps, type Reading, type Value } from "./types.js";

/** Pairs of readings that are tried where spellings are ambiguous. */
const mostReadings = 4;

/** Whether an answer is the reference. */
export function compare(reference: Reading, answer: Reading, policies: Policies, budget: Budget): Comparison {
  if (identical(reference, answer)) return equal("identity", "both are spelled alike");
  for (const [side, name] of [
    [reference, "the reference"],
    [answer, "the answer"],
  ] as const) {
    if (side.kind === "unsupported") return unsupported("reading", `${name} cannot be read: ${side.reason}`);
    if (side.kind === "over-budget") return { kind: "out-of-steps", rule: "reading", reason: side.reason };
  }
  try {
    return compareReadings(reference as Read, answer as Read, { policies, budget, approximate: reference.tokens.includes("≈") });
  } catch (error) {
    if (error instanceof OutOfSteps) return { kind: "out-of-steps", rule: "budget", reason: error.message };
    throw error;
  }
}

type Read = Extract<Reading, { kind: "value" }>;

/** The likeliest readings first, then other readings of either side: never of both, which would take ambiguity for an answer. */
function compareReadings(reference: Read, answer: Read, terms: Terms): Comparison {
  const first = compareValues(reference.value, answer.value, terms);
  if (first.kind === "equal") return first;
  const others = [
    ...answer.others.slice(0, mostReadings).map((other) => [reference.value, other] as const),
    ...reference.others.slice(0, mostReadings).map((other) => [other, answer.value] as const),
  ];
  for (const [a, b] of others) {
    // "12,345" may be two numbers, but no point.
    if ((a.kind === "list" && b.kind === "tuple") || (a.kind === "tuple" && b.kind === "list")) continue;
    const result = compareValues(a, b, terms);
    if (result.kind === "equal") return result;
  }
  return first;
}

const kinds = (a: Value, b: Value): Comparison => different("kinds", `${named(a)} is not ${named(b)}`);

const named = ({ kind }: Value): string => (kind === "intervals" ? "a set of intervals" : `${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}`);

const compareValues: Compare = (a, b, terms) => {
  terms.budget.spend(4);
  if (a.kind === "assignment" || b.kind === "assignment" || a.kind === "relation" || b.kind === "relation") {
    const found = withRelations(a, b, terms);
    if (found !== undefined) return found;
  }
  const range = ranges(a, b, terms);
  if (range !== undefined) return range;
  const names = coordinates(a, b, terms);
  if (names !== undefined) return names;
  if (isCollection(a) || isCollection(b)) return collections(a, b, terms);
  return single(a, b, terms);
};

/** Values of one thing. */
function single(a: Value, b: Value, terms: Terms): Comparison {
  if (a.kind === "number" && b.kind === "number") return compareNumbers(a.expression, b.expression, terms);
  if (a.kind === "quantity" || b.kind === "quantity") {
    if (a.kind === "quantity" && b.kind === "quantity") return compareQuantities(a, b, terms);
    if (a.kind === "quantity" && b.kind === "number") return quantityAndNumber(a, b.expression, terms, true);
    if (b.kind === "quantity" && a.kind === "number") return quantityAndNumber(b, a.expression, terms, false);
    return kinds(a, b);
  }
  if (a.kind === "choice" || b.kind === "choice") return choices(a, b, terms);
  if (a.kind === "tuple" && b.kind === "tuple" && !isNested(a) && !isNested(b)) return compareTuples(a, b, compareValues, terms);
  if ((a.kind === "matrix" || a.kind === "tuple") && (b.kind === "matrix" || b.kind === "tuple")) return compareMatrices(a, b, compareValues, terms);
  if (a.kind === "matrix" || b.kind === "matrix") return determinants(a, b, terms);
  if (a.kind === "numeral" || b.kind === "numeral") return numerals(a, b, terms);
  if (a.kind === "ratio" || b.kind === "ratio" || a.kind === "time" || b.kind === "time") return clocksAndRatios(a, b, terms);
  if (a.kind === "text" && b.kind === "text") return a.text === b.text ? equal("text", "the words agree") : different("text", "the words differ");
  return kinds(a, b);
}

const isNested = (value: Value): boolean => value.kind === "tuple" && value.items.some(({ kind }) => kind === "tuple");

/** Equations, inequalities and named values; undefined where the kinds of the values themselves decide. */
function withRelations(a: Value, b: Value, terms: Terms): Comparison | undefined {
  if (a.kind === "assignment" && b.kind === "assignment") return assignments(a, b, terms);
  for (const [x, y, turned] of [
    [a, b, false],
    [b, a, true],
  ] as const) {
    const decide = (value: Value): Comparison => (turned ? compareValues(y, value, terms) : compareValues(value, y, terms));
    if (x.kind === "relation" && y.kind !== "relation" && y.kind !== "assignment") {
      const chain = chainOf(x, terms);
      if (chain === null) return different("relations", "a chain of equations does not hold");
      if (chain !== undefined) return best(chain.map((expression) => decide({ kind: "number", expression })));
      const value = namedValue(x);
      if (value !== undefined && y.kind !== "list" && y.kind !== "set") return decide({ kind: "number", expression: value });
      if (y.kind === "number" && !isConstant(y.expression)) return expressionAndEquation(x, y, terms);
    }
    if (x.kind === "assignment" && y.kind === "number") {
      const count = combinations(x);
      if (count !== undefined) return decide({ kind: "number", expression: count });
    }
    if (x.kind === "assignment" && x.value.kind === "relation") {
      const chain = chainOf(x.value, terms);
      if (chain === null || chain === undefined) return different("relations", "a chain of equations does not hold");
      return best(chain.map((expression) => decide({ kind: "assignment", name: x.name, value: { kind: "number", expression } })));
    }
  }
  const [p, q] = [asRelation(a), asRelation(b)];
  if (p !== undefined && q !== undefined) {
    const result = compareRelations(p, q, terms);
    if (result.kind === "equal" || terms.policies["set-versus-inequality"] === "reject") return result;
    const [left, right] = [solved(p, terms.budget), solved(q, terms.budget)];
    return left !== undefined && right !== undefined ? compareIntervals(left, right, terms) : result;
  }
  return undefined;
}

/** C(5, 2) and P(5, 2), which are points beside points, and counts beside numbers. */
function combinations({ name, value }: Assignment): Expression | undefined {
  if ((name !== "C" && name !== "P") || value.kind !== "tuple" || value.items.length !== 2) return undefined;
  const of = value.items.flatMap((item) => (item.kind === "number" ? [item.expression] : []));
  return of.length === 2 ? { op: "function", name: name === "C" ? "binomial" : "permutations", of } : undefined;
}

const best = (results: readonly Comparison[]): Comparison => results.find(({ kind }) => kind === "equal") ?? (results[0] as Comparison);

function expressionAndEquation(relation: Relation, number: Extract<Value, { kind: "number" }>, terms: Terms): Comparison {
  if (terms.policies["expression-versus-equation"] === "reject") return different("expression-versus-equation", "one is an equation");
  return compareRelations(relation, { kind: "relation", sides: [number.expression, numberOf(0)], signs: ["="] }, terms);
}

/** Names that stand for the value of a function: y, and f(x) for any f. */
const functionName = /^(?:y|[A-Za-z](?:'|\^-1|_\w+)?\([A-Za-z](?:,[A-Za-z])*\))$/;

function assignments(a: Assignment, b: Assignment, terms: Terms): Comparison {
  const renamed = withVariablesOf(a, b);
  if (renamed !== undefined) return compareValues(a.value, renamed, terms);
  const isSame = a.name === b.name || ((a.name === "y" || b.name === "y") && functionName.test(a.name) && functionName.test(b.name));
  if (isSame) return compareValues(a.value, b.value, terms);
  const tuples = a.name.startsWith("(") && b.name.startsWith("(") ? permuted(a, b, terms) : undefined;
  if (tuples !== undefined) return tuples;
  const [p, q] = [asRelation(a), asRelation(b)];
  const isNumeric = [a, b].some(({ value }) => value.kind === "number" && isConstant(value.expression));
  return p === undefined || q === undefined || isNumeric ? different("names", `${a.name} is not ${b.name}`) : compareRelations(p, q, terms);
}

/** The value of b in the variables of a, where both say what one function is, each in letters of its own; "f ≡ 0" has none. */
function withVariablesOf(a: Assignment, b: Assignment): Value | undefined {
  const [x, y] = [a, b].map(({ name }) => /^([^()]+)(?:\(([^()]+)\))?$/.exec(name));
  if (x == null || y == null || x[1] !== y[1] || a.name === b.name || b.value.kind !== "number") return undefined;
  if (x[2] === undefined || y[2] === undefined) return isConstant(b.value.expression) ? b.value : undefined;
  const [to, from] = [x[2].split(","), y[2].split(",")];
  if (to.length !== from.length || !from.every((name) => /^[A-Za-z]\w*$/.test(name))) return undefined;
  return { kind: "number", expression: substitute(b.value.expression, new Map(from.map((name, i) => [name, symbolOf(to[i] as string)]))) };
}

/** (x, y) = (1, 2) against (y, x) = (2, 1). */
function permuted(a: Assignment, b: Assignment, terms: Terms): Comparison | undefined {
  const [x, y] = [listed(a), listed(b)];
  return x === undefined || y === undefined ? undefined : inAnyOrder(x, y, compareValues, terms, "names");
}

/** The assignments that one of a tuple stands for. */
function listed(value: Assignment): readonly Assignment[] | undefined {
  if (!value.name.startsWith("(") || value.value.kind !== "tuple") return undefined;
  const names = value.name.slice(1, -1).split(",");
  const { items } = value.value;
  return names.length === items.length ? names.map((name, i) => ({ kind: "assignment", name, value: items[i] as Value })) : undefined;
}

/** Values of several names, "x = 1, y = 2", against tuples and against each other; undefined where none is one. */
function coordinates(a: Value, b: Value, terms: Terms): Comparison | undefined {
  const [x, y] = [namesOf(a), namesOf(b)];
  if (x !== undefined && y !== undefined) return inAnyOrder(x, y, compareValues, terms, "names");
  if (x === undefined && y === undefined) {
    if (a.kind === "assignment") return compareValues(a.value, b, terms);
    return b.kind === "assignment" ? compareValues(a, b.value, terms) : undefined;
  }
  const named = x ?? (y as readonly Assignment[]);
  const values = named.map(({ value }) => value);
  const other = x === undefined ? a : b;
  // Numbered roots are a list of solutions.
  const isOfOne = new Set(named.map(({ name }) => unindexed(name))).size === 1;
  if (isOfOne && (other.kind === "list" || other.kind === "set" || hasSigns(other))) return undefined;
  if (other.kind !== "tuple" && other.kind !== "list") return x === undefined ? kinds(a, b) : kinds(a, b);
  return x === undefined ? inOrder(other.items, values, compareValues, terms, "names") : inOrder(values, other.items, compareValues, terms, "names");
}

function namesOf(value: Value): readonly Assignment[] | undefined {
  if (value.kind === "assignment") return listed(value);
  if (value.kind !== "list" || value.items.length < 2 || !value.items.every((item) => item.kind === "assignment")) return undefined;
  const items = value.items as readonly Assignment[];
  return new Set(items.map(({ name }) => name)).size === items.length ? items : undefined;
}

/** Intervals and inequalities; undefined where neither is one. */
function ranges(a: Value, b: Value, terms: Terms): Comparison | undefined {
  const isRange = (value: Value): boolean => value.kind === "intervals" || isInequality(value);
  if (!isRange(a) && !isRange(b)) return undefined;
  const isBoth = isInequality(a) === isInequality(b);
  if (!isBoth && terms.policies["set-versus-inequality"] === "reject" && a.kind !== b.kind)
    return different("set-versus-inequality", "one is a set, the other an inequality");
  const [x, y] = [a, b].map((value) => (isInequality(value) ? solved(value, terms.budget) : asIntervals(unwrapped(value), terms.budget)));
  if (x !== undefined && y !== undefined) return compareIntervals(x, y, terms);
  if (a.kind === "list" && b.kind === "list") return undefined;
  return kinds(a, b);
}

const unwrapped = (value: Value): Value => (value.kind === "assignment" ? value.value : value);

/** "x < 1 or x = 2" is a set as inequalities are. */
const isInequality = (value: Value): boolean =>
  value.kind === "relation"
    ? value.signs.some((sign) => /[<≤>≥≠]/.test(sign))
    : value.kind === "list" &&
      value.items.some(isInequality) &&
      value.items.every(
        (item) =>
          isInequality(item) ||
          (value.word === "or" && item.kind === "assignment" && item.value.kind === "number") ||
          (item.kind === "assignment" && item.value.kind === "intervals"),
      );

function collections(a: Value, b: Value, terms: Terms): Comparison {
  const tuple = [a, b].find(({ kind }) => kind === "tuple");
  if (tuple !== undefined && !isPlainCollection(a, b)) {
    const other = tuple === a ? b : a;
    if (other.kind === "list" && tuple.kind === "tuple")
      return tuple === a ? inOrder(tuple.items, other.items, compareValues, terms, "tuple") : inOrder(other.items, tuple.items, compareValues, terms, "tuple");
    if (other.kind === "set" && tuple.kind === "tuple" && !other.items.some(({ kind }) => kind === "tuple")) {
      if (terms.policies["tuple-versus-set"] === "reject") return different("tuple-versus-set", "one is a tuple, the other a set");
      const list = (value: Value): Value => (value.kind === "tuple" ? { kind: "set", items: value.items } : value);
      return compareCollections(list(a), list(b), compareValues, terms);
    }
  }
  return compareCollections(a, b, compareValues, terms);
}

/** Whether a tuple is an entry of the other side rather than a spelling of it. */
const isPlainCollection = (a: Value, b: Value): boolean =>
  [a, b].some((value) => (value.kind === "list" || value.kind === "set") && value.items.some(({ kind }) => kind === "tuple"));

function choices(a: Value, b: Value, terms: Terms): Comparison {
  const letter = (value: Value): string | undefined => {
    if (value.kind === "choice") return value.letter;
    if (value.kind === "text") return value.text.toUpperCase();
    return value.kind === "number" && value.expression.op === "symbol" ? value.expression.name : undefined;
  };
  const [x, y] = [letter(a), letter(b)];
  if (x !== undefined && x === y) return equal("choice", "the letters agree");
  const [choice, other] = a.kind === "choice" ? [a, b] : [b as Extract<Value, { kind: "choice" }>, a];
  if (other.kind === "text" && choice.text === other.text) return equal("choice", "the text of the option agrees");
  terms.budget.spend(1);
  return different("choice", `${x ?? named(a)} is not ${y ?? named(b)}`);
}

/** A matrix against what is none: of one entry it is that entry, between bars it is its determinant. */
function determinants(a: Value, b: Value, terms: Terms): Comparison {
  const [x, y] = [a, b].map((value) => (value.kind === "matrix" ? (soleNumber(value) ?? value) : value)) as [Value, Value];
  return x === a && y === b ? kinds(a, b) : compareValues(x, y, terms);
}

function soleNumber({ rows, fence }: Extract<Value, { kind: "matrix" }>): Value | undefined {
  if (rows.length === 1 && rows[0]?.length === 1) return rows[0][0];
  if (fence !== "|" || rows.length > 4 || rows.some((row) => row.length !== rows.length)) return undefined;
  const entries = rows.map((row) => row.flatMap((entry) => (entry.kind === "number" ? [entry.expression] : [])));
  return entries.some((row) => row.length !== rows.length) ? undefined : { kind: "number", expression: determinant(entries) };
}

/** By the first row. */
function determinant(rows: readonly (readonly Expression[])[]): Expression {
  const [first, ...rest] = rows as [readonly Expression[], ...(readonly Expression[])[]];
  if (rest.length === 0) return first[0] as Expression;
  return add(
    ...first.map((entry, i) => {
      const term = multiply(entry, determinant(rest.map((row) => row.filter((_, j) => j !== i))));
      return i % 2 === 0 ? term : negate(term);
    }),
  );
}

function numerals(a: Value, b: Value, terms: Terms): Comparison {
  if (a.kind === "numeral" && b.kind === "numeral") {
    if (a.base !== b.base) return different("numerals", `base ${a.base} is not base ${b.base}`);
    return numeralValue(a) === numeralValue(b) ? equal("numerals", "the digits agree") : different("numerals", "the digits differ");
  }
  if (a.kind === "numeral" && b.kind === "number") return numeralAndNumber(a, b.expression, terms);
  if (b.kind === "numeral" && a.kind === "number") return numeralAndNumber(b, a.expression, terms);
  return kinds(a, b);
}

function clocksAndRatios(a: Value, b: Value, terms: Terms): Comparison {
  if (a.kind === "time" && b.kind === "time") return sameTime(a, b) ? equal("time", "the times agree") : different("time", "the times differ");
  if (a.kind === "ratio" && b.kind === "ratio") return compareRatios(a.parts, b.parts, terms);
  if (a.kind === "ratio" && b.kind === "number") return ratioAndNumber(a.parts, b.expression, terms);
  if (b.kind === "ratio" && a.kind === "number") return ratioAndNumber(b.parts, a.expression, terms);
  return kinds(a, b);
}

type Time = Extract<Value, { kind: "time" }>;

/** Whether two times agree. Of 24 hours where one has its half of the day and the other an hour that names it. */
function sameTime(a: Time, b: Time): boolean {
  const told = ({ parts, half }: Time): boolean => half !== undefined || Number(parts[0]) > 12 || Number(parts[0]) === 0;
  const clock = ({ parts, half }: Time): string => {
    const [hour = 0, minute = 0, second = 0] = parts.map(Number);
    return `${half === undefined ? hour % 24 : (hour % 12) + (half === "pm" ? 12 : 0)}:${minute}:${second}`;
  };
  return told(a) === told(b) && clock(a) === clock(b);
}
