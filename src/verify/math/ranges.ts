/** Sets of real numbers: unions of intervals and points in one form, inequalities as such sets, and their comparison. */
import { intervalOf } from "./brackets.js";
import { isConstant, negate, numberOf, divide as over, substitute, subtract, variablesOf } from "./build.js";
import { exact, floorDivide } from "./exact.js";
import { compareExpressions, orderOf } from "./identity.js";
import { compareNumbers, type Terms } from "./numbers.js";
import { different, equal, unsupported } from "./results.js";
import type { Bound, Budget, Comparison, Expression, Interval, RelationSign, Value } from "./types.js";

export type Intervals = Extract<Value, { kind: "intervals" }>;
type Relation = Extract<Value, { kind: "relation" }>;

const everything: Interval = { low: { closed: false }, high: { closed: false } };
const fails = {
  fail: (): never => {
    throw new Unordered();
  },
};

/** Thrown where ends cannot be put in order. */
class Unordered extends Error {}

function ordered(a: Expression, b: Expression, budget: Budget): -1 | 0 | 1 {
  const result = orderOf(a, b, budget);
  if (result === undefined) throw new Unordered();
  return result;
}

/** Which of two lower ends (side 1: upper ends) is further left. */
function orderBounds(a: Bound, b: Bound, side: -1 | 1, budget: Budget): number {
  if (a.value === undefined || b.value === undefined) return a.value === b.value ? 0 : a.value === undefined ? side : -side;
  const result = ordered(a.value, b.value, budget);
  if (result !== 0 || a.closed === b.closed) return result;
  return a.closed ? side : -side;
}

/** Whether an interval has no number. */
function isEmpty({ low, high }: Interval, budget: Budget): boolean {
  if (low.value === undefined || high.value === undefined) return false;
  const result = ordered(low.value, high.value, budget);
  return result > 0 || (result === 0 && !(low.closed && high.closed));
}

/** Disjoint intervals from left to right, points as closed intervals of one number. */
function arranged(parts: readonly Interval[], budget: Budget): Interval[] {
  const sorted = parts.filter((part) => !isEmpty(part, budget)).sort((a, b) => orderBounds(a.low, b.low, -1, budget));
  const found: Interval[] = [];
  for (const part of sorted) {
    const last = found.at(-1);
    if (last === undefined || !touches(last.high, part.low, budget)) found.push(part);
    else if (orderBounds(last.high, part.high, 1, budget) < 0) found[found.length - 1] = { low: last.low, high: part.high };
  }
  return found;
}

/** Whether nothing lies between an upper end and the lower end of what follows. */
function touches(high: Bound, low: Bound, budget: Budget): boolean {
  if (high.value === undefined || low.value === undefined) return true;
  const result = ordered(high.value, low.value, budget);
  return result > 0 || (result === 0 && (high.closed || low.closed));
}

const pointAt = (value: Expression): Interval => ({ low: { value, closed: true }, high: { value, closed: true } });

/** A set as disjoint intervals. */
function partsOf({ parts, points, without }: Intervals, budget: Budget): Interval[] {
  let found = arranged([...parts, ...points.map(pointAt)], budget);
  for (const hole of without ?? []) {
    found = intersected(
      found,
      [
        { low: { closed: false }, high: { value: hole, closed: false } },
        { low: { value: hole, closed: false }, high: { closed: false } },
      ],
      budget,
    );
  }
  return found;
}

function intersected(a: readonly Interval[], b: readonly Interval[], budget: Budget): Interval[] {
  const found: Interval[] = [];
  for (const x of a)
    for (const y of b)
      found.push({ low: orderBounds(x.low, y.low, -1, budget) >= 0 ? x.low : y.low, high: orderBounds(x.high, y.high, 1, budget) <= 0 ? x.high : y.high });
  return arranged(found, budget);
}

/** What two sets share; undefined where their ends cannot be put in order. */
export function sectionOfIntervals(a: Intervals, b: Intervals, budget: Budget): Intervals | undefined {
  try {
    return { kind: "intervals", parts: intersected(partsOf(a, budget), partsOf(b, budget), budget), points: [] };
  } catch (error) {
    if (error instanceof Unordered) return undefined;
    throw error;
  }
}

/** Whether two sets have the same numbers. Ends with variables are compared in the order given. */
export function compareIntervals(a: Intervals, b: Intervals, terms: Terms): Comparison {
  const { budget } = terms;
  if (a.variable !== undefined && b.variable !== undefined && a.variable !== b.variable) return different("intervals", `${a.variable} is not ${b.variable}`);
  const variables = [a, b].flatMap(endsOf).some((end) => variablesOf(end).size > 0);
  if (variables) return alike(a, b, terms);
  try {
    const [x, y] = [partsOf(a, budget), partsOf(b, budget)];
    if (x.length !== y.length) return different("intervals", `${x.length} intervals against ${y.length}`);
    return sameParts(x, y, terms);
  } catch (error) {
    if (error instanceof Unordered) return unsupported("intervals", "the ends could not be put in order");
    throw error;
  }
}

const endsOf = ({ parts, points, without }: Intervals): Expression[] => [
  ...parts.flatMap(({ low, high }) => [low.value, high.value].filter((end) => end !== undefined)),
  ...points,
  ...(without ?? []),
];

function alike(a: Intervals, b: Intervals, terms: Terms): Comparison {
  if (a.parts.length !== b.parts.length || a.points.length !== b.points.length || (a.without?.length ?? 0) !== (b.without?.length ?? 0))
    return different("intervals", "they have other parts");
  const results = [sameParts(a.parts, b.parts, terms)];
  const [x, y] = [
    [...a.points, ...(a.without ?? [])],
    [...b.points, ...(b.without ?? [])],
  ];
  for (const [i, end] of x.entries()) results.push(compareNumbers(end, y[i] as Expression, terms));
  return results.find(({ kind }) => kind === "different") ?? results.find(({ kind }) => kind !== "equal") ?? (results[0] as Comparison);
}

function sameParts(x: readonly Interval[], y: readonly Interval[], terms: Terms): Comparison {
  for (const [i, part] of x.entries()) {
    const other = y[i] as Interval;
    for (const [p, q] of [
      [part.low, other.low],
      [part.high, other.high],
    ] as const) {
      if ((p.value === undefined) !== (q.value === undefined)) return different("intervals", "an end is infinite");
      if (p.closed !== q.closed) return different("intervals", "an end belongs to one alone");
      if (p.value === undefined || q.value === undefined) continue;
      const result = compareNumbers(p.value, q.value, terms);
      if (result.kind !== "equal") return { ...result, rule: "intervals" };
    }
  }
  return equal("intervals", "the ends agree");
}

/** A pair as the interval that it could be; a pair whose first number is larger is a point. */
export function asIntervals(value: Value, budget: Budget): Intervals | undefined {
  if (value.kind === "intervals") return value;
  if (value.kind === "set") {
    const points = value.items.flatMap((item) => (item.kind === "number" ? [item.expression] : []));
    return points.length === value.items.length ? { kind: "intervals", parts: [], points } : undefined;
  }
  if (value.kind !== "tuple" || value.items.length !== 2 || value.open === "⟨") return undefined;
  const [low, high] = value.items as [Value, Value];
  if (low.kind !== "number" || high.kind !== "number") return undefined;
  if (isConstant(low.expression) && isConstant(high.expression) && orderOf(low.expression, high.expression, budget) === 1) return undefined;
  return { kind: "intervals", parts: [intervalOf(fails, low.expression, high.expression, value.open === "[", value.close === "]")], points: [] };
}

const flipped: { readonly [sign in RelationSign]?: RelationSign } = { "<": ">", "≤": "≥", ">": "<", "≥": "≤", "≠": "≠", "=": "=" };

/** The set that inequalities say a variable is in; undefined where they are no linear inequalities of one variable. */
export function solved(value: Value, budget: Budget): Intervals | undefined {
  try {
    if (value.kind === "assignment" && value.value.kind === "number")
      return { kind: "intervals", parts: [pointAt(value.value.expression)], points: [], variable: value.name };
    if (value.kind === "assignment" && value.value.kind === "intervals") return { ...value.value, variable: value.name };
    if (value.kind === "relation") return value.modulus === undefined ? chain(value, budget) : undefined;
    if (value.kind !== "list") return undefined;
    const sets = value.items.map((item) => solved(item, budget));
    if (sets.some((set) => set === undefined)) return undefined;
    const found = sets as Intervals[];
    const [first] = found as [Intervals];
    if (found.some(({ variable }) => variable !== first.variable)) return undefined;
    const parts = found.map((set) => partsOf(set, budget));
    // "x < 1 or x > 3" is a union, "x > 1 and x < 3" a section; a comma is either, as the two meet or not.
    const section = parts.reduce((a, b) => intersected(a, b, budget));
    const isUnion = value.word === "or" || (value.word === undefined && section.length === 0);
    return {
      kind: "intervals",
      parts: isUnion ? arranged(parts.flat(), budget) : section,
      points: [],
      ...(first.variable !== undefined && { variable: first.variable }),
    };
  } catch (error) {
    if (error instanceof Unordered) return undefined;
    throw error;
  }
}

/** Whole numbers that are listed, at most. */
const mostListed = 200;

/** The whole numbers, from `least` on, that meet inequalities; undefined where they are many or not known. */
export function wholeNumbersIn(value: Value, least: number | undefined, budget: Budget): Expression[] | undefined {
  const found = solved(value, budget);
  if (found === undefined || endsOf(found).some((end) => !isConstant(end))) return undefined;
  try {
    const numbers: Expression[] = [];
    for (const { low, high } of partsOf(found, budget)) {
      const [from, to] = [low.value === undefined ? undefined : exact(low.value, budget), high.value === undefined ? undefined : exact(high.value, budget)];
      const start = from === undefined ? (low.value === undefined && least !== undefined ? BigInt(least) : undefined) : -floorDivide(-from.n, from.d);
      if (start === undefined || to === undefined) return undefined;
      const end = floorDivide(to.n, to.d);
      if (end - start > BigInt(mostListed)) return undefined;
      for (let n = start; n <= end; n++) {
        const isEnd = (bound: Bound): boolean => bound.value !== undefined && !bound.closed && ordered(bound.value, numberOf(n), budget) === 0;
        if (!isEnd(low) && !isEnd(high) && (least === undefined || n >= BigInt(least))) numbers.push(numberOf(n));
      }
    }
    return numbers;
  } catch (error) {
    if (error instanceof Unordered) return undefined;
    throw error;
  }
}

/** |u| < c as −c < u < c, |u| > c as u < −c or u > c; undefined for others. */
function withoutSize({ sides, signs }: Relation): Value | undefined {
  const [left, right] = sides as [Expression, Expression];
  const [size, limit, sign] = left.op === "function" && left.name === "abs" ? [left, right, signs[0]] : [right, left, flipped[signs[0] as RelationSign]];
  if (sides.length !== 2 || size.op !== "function" || size.name !== "abs" || sign === undefined || !isConstant(limit)) return undefined;
  const of = size.of[0] as Expression;
  if (sign === "<" || sign === "≤") return { kind: "relation", sides: [negate(limit), of, limit], signs: [sign, sign] };
  if (sign !== ">" && sign !== "≥") return undefined;
  const parts = [[of, sign, limit] as const, [negate(limit), sign, of] as const];
  return { kind: "list", items: parts.map(([a, between, b]) => ({ kind: "relation", sides: [a, b], signs: [between] })), word: "or" };
}

function chain(relation: Relation, budget: Budget): Intervals | undefined {
  const plain = withoutSize(relation);
  if (plain !== undefined) return solved(plain, budget);
  const { sides, signs } = relation;
  const names = [...new Set(sides.flatMap((side) => [...variablesOf(side)]))];
  const [variable] = names;
  if (variable === undefined) return undefined;
  let found: Interval[] = [everything];
  for (const [i, sign] of signs.entries()) {
    const set = linear(subtract(sides[i] as Expression, sides[i + 1] as Expression), sign, variableOf(sides, variable, names), budget);
    if (set === undefined) return undefined;
    if (signs.length === 1) return { kind: "intervals", parts: set, points: [], variable: variableOf(sides, variable, names) };
    found = intersected(found, set, budget);
  }
  return { kind: "intervals", parts: found, points: [], variable: variableOf(sides, variable, names) };
}

/** The one variable of a chain, or the side that is a variable alone where other sides have variables of their own. */
function variableOf(sides: readonly Expression[], first: string, names: readonly string[]): string {
  if (names.length === 1) return first;
  const lone = sides.filter((side) => side.op === "symbol");
  return lone.length === 1 && lone[0]?.op === "symbol" ? lone[0].name : first;
}

/** Where a·x + b stands in a relation to 0. */
function linear(difference: Expression, sign: RelationSign, variable: string, budget: Budget): Interval[] | undefined {
  if (flipped[sign] === undefined || sign === "=") return undefined;
  const at = (x: number): Expression => substitute(difference, new Map([[variable, numberOf(x)]]));
  if (variablesOf(at(0)).size > 0) return undefined;
  const slope = subtract(at(1), at(0));
  const straight: Expression = { op: "add", terms: [{ op: "multiply", factors: [slope, { op: "symbol", name: variable }] }, at(0)] };
  if (compareExpressions(difference, straight, budget, { positive: false }).kind !== "equal") return undefined;
  const rises = orderOf(slope, numberOf(0), budget);
  if (rises === undefined || rises === 0) return undefined;
  const root = over({ op: "negate", of: at(0) }, slope);
  const known = exact(root, budget);
  const end = known === undefined ? root : numberOf(known);
  const way = rises === 1 ? sign : (flipped[sign] as RelationSign);
  const below: Interval = { low: { closed: false }, high: { value: end, closed: way === "≤" } };
  const above: Interval = { low: { value: end, closed: way === "≥" }, high: { closed: false } };
  return way === "≠" ? [below, above] : way === "<" || way === "≤" ? [below] : [above];
}
