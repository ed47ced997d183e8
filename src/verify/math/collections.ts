/** Lists, sets, tuples and matrices: what belongs together, in which order, by which policy. */

import type { Terms } from "./numbers.js";
import { different, equal } from "./results.js";
import { familiesOf, hasSigns } from "./signs.js";
import type { Comparison, Value } from "./types.js";

export type Compare = (reference: Value, answer: Value, terms: Terms) => Comparison;
type Tuple = Extract<Value, { kind: "tuple" }>;
type Matrix = Extract<Value, { kind: "matrix" }>;

/** Pairs of items that are compared, at most. */
const mostPairs = 20_000;

/** All of them equal; the first that is different decides, else the first that is not known. */
export function all(results: Iterable<Comparison>, rule: string, reason: string): Comparison {
  let unknown: Comparison | undefined;
  for (const result of results) {
    if (result.kind === "different") return { ...result, reason: result.reason };
    if (result.kind !== "equal") unknown ??= result;
  }
  return unknown ?? equal(rule, reason);
}

/** Items against items in the order given. */
export function inOrder(a: readonly Value[], b: readonly Value[], compare: Compare, terms: Terms, rule: string): Comparison {
  if (a.length !== b.length) return different(rule, `${a.length} entries against ${b.length}`);
  const results = function* (): Generator<Comparison> {
    for (const [i, item] of a.entries()) yield compare(item, b[i] as Value, terms);
  };
  return all(results(), rule, `all ${a.length} entries agree`);
}

/** Items against items, each with a partner of its own. */
export function inAnyOrder(a: readonly Value[], b: readonly Value[], compare: Compare, terms: Terms, rule: string): Comparison {
  if (a.length !== b.length) return different(rule, `${a.length} entries against ${b.length}`);
  const free = [...b];
  let unknown: Comparison | undefined;
  let pairs = 0;
  for (const item of a) {
    let partner = -1;
    for (const [i, other] of free.entries()) {
      if (++pairs > mostPairs) terms.budget.spend(Number.POSITIVE_INFINITY);
      const result = compare(item, other, terms);
      if (result.kind === "equal") {
        partner = i;
        break;
      }
      if (result.kind !== "different") unknown ??= result;
    }
    if (partner < 0) return unknown ?? different(rule, "an entry has no partner");
    free.splice(partner, 1);
  }
  return equal(rule, `all ${a.length} entries have a partner`);
}

/** Each value once. */
export function distinct(items: readonly Value[], compare: Compare, terms: Terms): Value[] {
  const found: Value[] = [];
  for (const item of items) if (!found.some((other) => compare(other, item, terms).kind === "equal")) found.push(item);
  return found;
}

/** What a value holds as a collection of solutions: its items with ± written out, and the names of one variable left away. Several, where ± can be read in several ways. */
export function solutionsOf(value: Value, terms: Terms): readonly (readonly Value[])[] {
  const items = value.kind === "list" || value.kind === "set" ? value.items : [value];
  let readings: Value[][] = [[]];
  for (const item of items) {
    const isNested = (item.kind === "set" || item.kind === "list") && value.kind !== "set";
    const inner = isNested || item.kind === "assignment" ? solutionsOf(item.kind === "assignment" ? bare(item) : item, terms) : familiesOf(item, terms.budget);
    const kept = item.kind === "assignment" ? inner.map((family) => family.map((each): Value => ({ ...item, value: each }))) : inner;
    readings = readings.flatMap((before) => kept.map((family) => [...before, ...family])).slice(0, 16);
  }
  return readings.map(unnamed);
}

const bare = (item: Extract<Value, { kind: "assignment" }>): Value =>
  item.value.kind === "set" || item.value.kind === "list" || hasSigns(item.value) ? item.value : ({ kind: "list", items: [item.value] } as const);

/** x of x₁: roots of an equation have numbers. */
export const unindexed = (name: string): string => name.replace(/_\d+$/, "");

/** Values without their name, where all have the same one. */
function unnamed(items: readonly Value[]): readonly Value[] {
  const [first] = items;
  if (first?.kind !== "assignment" || !items.every((item) => item.kind === "assignment" && unindexed(item.name) === unindexed(first.name))) return items;
  return items.map((item) => (item as Extract<Value, { kind: "assignment" }>).value);
}

export const isCollection = (value: Value): boolean =>
  value.kind === "list" || value.kind === "set" || hasSigns(value) || (value.kind === "assignment" && isCollection(value.value));

/** A collection against another, or against one value. */
export function compareCollections(a: Value, b: Value, compare: Compare, terms: Terms): Comparison {
  const isSet = [a, b].some(({ kind }) => kind === "set");
  const isList = [a, b].every(({ kind }) => kind === "list");
  // Each value counts once in a set, a family, or where "or" gives one value in several spellings; "3, 3" is no 3.
  const once = isSet || hasSigns(a) || hasSigns(b) || [a, b].some((value) => value.kind === "list" && value.word === "or");
  let first: Comparison | undefined;
  for (const x of solutionsOf(a, terms)) {
    for (const y of solutionsOf(b, terms)) {
      const [left, right] = once ? [distinct(x, compare, terms), distinct(y, compare, terms)] : [x, y];
      const ordered = isList && terms.policies["list-order"] === "same";
      const rule = isSet ? "set" : "list";
      const result = ordered ? inOrder(left, right, compare, terms, rule) : inAnyOrder(left, right, compare, terms, rule);
      if (result.kind === "equal") return result;
      first ??= result;
    }
  }
  return first as Comparison;
}

/** The brackets of a pair tell an interval from a point; those of more entries are a matter of taste. */
export function compareTuples(a: Tuple, b: Tuple, compare: Compare, terms: Terms): Comparison {
  const isPair = a.items.length === 2 && b.items.length === 2;
  const vectors = a.open === "⟨" || b.open === "⟨";
  if (isPair && !vectors && (a.open !== b.open || a.close !== b.close)) return different("tuple", "the brackets differ");
  return inOrder(a.items, b.items, compare, terms, "tuple");
}

/** A tuple of tuples of one length as the matrix that it spells; a tuple of entries as a column. */
function matrixOf(tuple: Tuple): Matrix {
  const rows = tuple.items.map((item) => (item.kind === "tuple" ? item.items : [item]));
  return { kind: "matrix", rows, fence: "(" };
}

const isVector = ({ rows }: Matrix): boolean => rows.length === 1 || rows.every((row) => row.length === 1);

/** Matrices, and tuples that spell one. A tuple of numbers has no orientation. */
export function compareMatrices(a: Value, b: Value, compare: Compare, terms: Terms): Comparison {
  const [x, y] = [a, b].map((value) => (value.kind === "tuple" ? matrixOf(value) : value)) as [Matrix, Matrix];
  if ((x.fence === "|") !== (y.fence === "|")) return different("matrix", "one is a determinant");
  const flat = isVector(x) && isVector(y) && (a.kind === "tuple" || b.kind === "tuple" || terms.policies["vector-orientation"] === "free");
  if (flat) return inOrder(x.rows.flat(), y.rows.flat(), compare, terms, "vector");
  if (x.rows.length !== y.rows.length || x.rows[0]?.length !== y.rows[0]?.length)
    return different("matrix", `${x.rows.length}×${x.rows[0]?.length} against ${y.rows.length}×${y.rows[0]?.length}`);
  return inOrder(x.rows.flat(), y.rows.flat(), compare, terms, "matrix");
}
