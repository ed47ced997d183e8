/** Comparison of equations, inequalities and named values with each other and with values alone. */
import { isConstant, numberOf, substitute, symbolOf } from "./build.js";
import { type Compare, inAnyOrder, inOrder, unindexed } from "./collections.js";
import { type Assignment, asRelation, chainOf, compareRelations, namedValue, type Relation } from "./equations.js";
import type { Terms } from "./numbers.js";
import { compareIntervals, solved } from "./ranges.js";
import { different, kinds } from "./results.js";
import { hasSigns } from "./signs.js";
import type { Comparison, Expression, Value } from "./types.js";

/** Equations, inequalities and named values; undefined where the kinds of the values themselves decide. */
export function withRelations(a: Value, b: Value, terms: Terms, compare: Compare): Comparison | undefined {
  if (a.kind === "assignment" && b.kind === "assignment") return assignments(a, b, terms, compare);
  for (const [x, y, turned] of [
    [a, b, false],
    [b, a, true],
  ] as const) {
    const decide = (value: Value): Comparison => (turned ? compare(y, value, terms) : compare(value, y, terms));
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

function assignments(a: Assignment, b: Assignment, terms: Terms, compare: Compare): Comparison {
  const renamed = withVariablesOf(a, b);
  if (renamed !== undefined) return compare(a.value, renamed, terms);
  const isSame = a.name === b.name || ((a.name === "y" || b.name === "y") && functionName.test(a.name) && functionName.test(b.name));
  if (isSame) return compare(a.value, b.value, terms);
  const tuples = a.name.startsWith("(") && b.name.startsWith("(") ? permuted(a, b, terms, compare) : undefined;
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
function permuted(a: Assignment, b: Assignment, terms: Terms, compare: Compare): Comparison | undefined {
  const [x, y] = [listed(a), listed(b)];
  return x === undefined || y === undefined ? undefined : inAnyOrder(x, y, compare, terms, "names");
}

/** The assignments that one of a tuple stands for. */
function listed(value: Assignment): readonly Assignment[] | undefined {
  if (!value.name.startsWith("(") || value.value.kind !== "tuple") return undefined;
  const names = value.name.slice(1, -1).split(",");
  const { items } = value.value;
  return names.length === items.length ? names.map((name, i) => ({ kind: "assignment", name, value: items[i] as Value })) : undefined;
}

/** Values of several names, "x = 1, y = 2", against tuples and against each other; undefined where none is one. */
export function coordinates(a: Value, b: Value, terms: Terms, compare: Compare): Comparison | undefined {
  const [x, y] = [namesOf(a), namesOf(b)];
  if (x !== undefined && y !== undefined) return inAnyOrder(x, y, compare, terms, "names");
  if (x === undefined && y === undefined) {
    if (a.kind === "assignment") return compare(a.value, b, terms);
    return b.kind === "assignment" ? compare(a, b.value, terms) : undefined;
  }
  const named = x ?? (y as readonly Assignment[]);
  const values = named.map(({ value }) => value);
  const other = x === undefined ? a : b;
  // Numbered roots are a list of solutions.
  const isOfOne = new Set(named.map(({ name }) => unindexed(name))).size === 1;
  if (isOfOne && (other.kind === "list" || other.kind === "set" || hasSigns(other))) return undefined;
  if (other.kind !== "tuple" && other.kind !== "list") return x === undefined ? kinds(a, b) : kinds(a, b);
  return x === undefined ? inOrder(other.items, values, compare, terms, "names") : inOrder(values, other.items, compare, terms, "names");
}

function namesOf(value: Value): readonly Assignment[] | undefined {
  if (value.kind === "assignment") return listed(value);
  if (value.kind !== "list" || value.items.length < 2 || !value.items.every((item) => item.kind === "assignment")) return undefined;
  const items = value.items as readonly Assignment[];
  return new Set(items.map(({ name }) => name)).size === items.length ? items : undefined;
}
