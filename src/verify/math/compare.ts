/**
 * Comparison: whether an answer is the reference, as mathematics. Identity of what was written comes first; then values are
 * taken by their kinds. Total, and bounded by its budget; only declared policies treat the two sides differently.
 */
import { type Compare, compareCollections, inOrder, isCollection } from "./collections.js";
import { coordinates, withRelations } from "./compare-named.js";
import { single } from "./compare-single.js";
import type { Terms } from "./numbers.js";
import type { Policies } from "./policies.js";
import { asIntervals, compareIntervals, solved } from "./ranges.js";
import { identical } from "./read.js";
import { different, equal, kinds, unsupported } from "./results.js";
import { type Budget, type Comparison, OutOfSteps, type Reading, type Value } from "./types.js";

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

const compareValues: Compare = (a, b, terms) => {
  terms.budget.spend(4);
  if (a.kind === "assignment" || b.kind === "assignment" || a.kind === "relation" || b.kind === "relation") {
    const found = withRelations(a, b, terms, compareValues);
    if (found !== undefined) return found;
  }
  const range = ranges(a, b, terms);
  if (range !== undefined) return range;
  const names = coordinates(a, b, terms, compareValues);
  if (names !== undefined) return names;
  if (isCollection(a) || isCollection(b)) return collections(a, b, terms);
  return single(a, b, terms, compareValues);
};

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
