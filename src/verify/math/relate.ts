/** What a chain of relations says: an assignment, a membership, or a relation between expressions; and unions of sets. */
import { intervalOf } from "./brackets.js";
import { isConstant, some, structure, variablesOf } from "./build.js";
import type { Cursor } from "./cursor.js";
import { sectionOfIntervals } from "./ranges.js";
import { familiesOf } from "./signs.js";
import type { Expression, RelationSign, Value } from "./types.js";
import { asValue } from "./value.js";

/** The structure of a chain of relations between sides. */
export function relationOf(c: Cursor, sides: readonly Expression[], signs: readonly RelationSign[], modulus: Expression | undefined): Expression {
  if (signs.includes("∈")) return membership(c, sides, signs);
  const [head, zero] = sides as [Expression, Expression];
  // "f ≡ 0" says what a function is.
  if (signs.length === 1 && signs[0] === "≡" && modulus === undefined && head.op === "symbol" && zero.op === "number")
    return structure({ kind: "assignment", name: head.name, value: asValue(zero) });
  const shared = sharedValue(sides, signs);
  if (shared !== undefined) return shared;
  if (signs.every((sign) => sign === "=" || sign === "≈")) {
    const assigned = assignment(c, sides, signs);
    if (assigned !== undefined) return assigned;
  }
  if (signs.length === 1 && signs[0] === "≠" && sides.some((side) => some(side, ({ op }) => op === "plus-minus"))) {
    const [both = []] = familiesOf({ kind: "relation", sides, signs }, c.budget);
    return structure({ kind: "list", items: both, word: "and" });
  }
  if (sides.some(({ op }) => op === "structure")) return c.fail("a side of a relation is no expression");
  const last = sides.at(-1) as Expression;
  // "x ≡ 1 mod 4" is a congruence, whatever sets the "mod".
  if (modulus === undefined && signs.at(-1) === "≡" && last.op === "function" && last.name === "mod")
    return structure({ kind: "relation", sides: [...sides.slice(0, -1), last.of[0] as Expression], signs, modulus: last.of[1] as Expression });
  return structure({ kind: "relation", sides, signs, ...(modulus !== undefined && { modulus }) });
}

function membership(c: Cursor, sides: readonly Expression[], signs: readonly RelationSign[]): Expression {
  const [left, right] = sides as [Expression, Expression];
  const name = nameOf(left);
  if (signs.length > 1 || name === undefined || right.op !== "structure") return c.fail("this membership is not supported");
  const { value } = right;
  const isPair = value.kind === "tuple" && value.items.length === 2 && left.op === "symbol";
  const within: Value = isPair ? (intervalsOf(c, value) ?? value) : value;
  return structure({ kind: "assignment", name, value: within });
}

/** The name that a side gives: a symbol, a function of symbols, a tuple of symbols. */
export function nameOf(side: Expression): string | undefined {
  if (side.op === "symbol") return side.name;
  if (side.op === "apply") {
    const names = side.to.map((each) => (each.op === "symbol" ? each.name : undefined));
    return names.includes(undefined) ? undefined : `${side.name}(${names.join(",")})`;
  }
  if (side.op !== "structure" || (side.value.kind !== "tuple" && side.value.kind !== "matrix")) return undefined;
  const items = side.value.kind === "matrix" ? side.value.rows.flat() : side.value.items;
  const names = items.map((item) => (item.kind === "number" && item.expression.op === "symbol" ? item.expression.name : undefined));
  return names.includes(undefined) ? undefined : `(${names.join(",")})`;
}

/** A name and what it is: on either side, with expressions in between that the last one must equal. */
function assignment(c: Cursor, sides: readonly Expression[], signs: readonly RelationSign[]): Expression | undefined {
  const [first, second] = sides as [Expression, Expression];
  const named = nameOf(first);
  const last = sides.at(-1) as Expression;
  if (named === undefined) {
    const flipped = sides.length === 2 ? nameOf(last) : undefined;
    return flipped === undefined || !isFree(flipped, first) ? undefined : structure({ kind: "assignment", name: flipped, value: asValue(first) });
  }
  if (sides.slice(1).some((side) => !isFree(named, side))) return undefined;
  if (sides.length === 2) return structure({ kind: "assignment", name: named, value: asValue(second) });
  if (sides.slice(1).some(({ op }) => op === "structure")) return c.fail("a chain of equations between structures is not supported");
  return structure({ kind: "assignment", name: named, value: { kind: "relation", sides: sides.slice(1), signs: signs.slice(1) } });
}

/** a = b = c = 1: the value of several names. */
function sharedValue(sides: readonly Expression[], signs: readonly RelationSign[]): Expression | undefined {
  const names = sides.slice(0, -1).flatMap((side) => (side.op === "symbol" ? [side.name] : []));
  const last = sides.at(-1) as Expression;
  if (sides.length < 3 || names.length !== sides.length - 1 || new Set(names).size !== names.length || !signs.every((sign) => sign === "=")) return undefined;
  if (last.op === "structure" || !isConstant(last)) return undefined;
  return structure({ kind: "list", items: names.map((name): Value => ({ kind: "assignment", name, value: asValue(last) })), word: "and" });
}

/** Whether a side says something about a name without using it. */
function isFree(name: string, side: Expression): boolean {
  return side.op === "structure" || !variablesOf(side).has(name);
}

/** A tuple of two as the interval that it could be; unions and intervals of points as they are. */
export function intervalsOf(c: Pick<Cursor, "fail">, value: Value): Extract<Value, { kind: "intervals" }> | undefined {
  if (value.kind === "intervals") return value;
  if (value.kind === "set") {
    const points = value.items.flatMap((item) => (item.kind === "number" ? [item.expression] : []));
    return points.length === value.items.length ? { kind: "intervals", parts: [], points } : undefined;
  }
  if (value.kind !== "tuple" || value.items.length !== 2 || value.open === "⟨") return undefined;
  const [low, high] = value.items as [Value, Value];
  if (low.kind !== "number" || high.kind !== "number") return undefined;
  return { kind: "intervals", parts: [intervalOf(c, low.expression, high.expression, value.open === "[", value.close === "]")], points: [] };
}

/** a ∪ b, or a ∖ b where b is a set of points. */
export function unionOf(c: Cursor, a: Expression, b: Expression, without: boolean): Expression {
  const left = a.op === "structure" ? a.value : undefined;
  const right = b.op === "structure" ? b.value : undefined;
  if (left === undefined || right === undefined) return c.fail("a union of what is no set");
  if (left.kind === "set" && right.kind === "set" && !without) return structure({ kind: "set", items: [...left.items, ...right.items] });
  const [x, y] = [intervalsOf(c, left), intervalsOf(c, right)];
  if (x === undefined || y === undefined) return c.fail("this union is not supported");
  if (without) {
    if (y.parts.length > 0) return c.fail("the difference of intervals is not supported");
    return structure({ ...x, without: [...(x.without ?? []), ...y.points] });
  }
  if (x.without !== undefined || y.without !== undefined) return c.fail("this union is not supported");
  return structure({ kind: "intervals", parts: [...x.parts, ...y.parts], points: [...x.points, ...y.points] });
}

/** a ∩ b of intervals. */
export function sectionOf(c: Cursor, a: Expression, b: Expression): Expression {
  const [x, y] = [a, b].map((side) => (side.op === "structure" ? intervalsOf(c, side.value) : undefined));
  const found = x && y && sectionOfIntervals(x, y, c.budget);
  return found === undefined ? c.fail("this intersection is not supported") : structure(found);
}
