/** Relations against each other: equations and inequalities that are scaled, rearranged or solved for a variable, congruences, and chains of equal values. */
import { isConstant, multiply, numberOf, partsOf, some, substitute, subtract, symbolOf, variablesOf } from "./build.js";
import { exact } from "./exact.js";
import { compareExpressions, haveSameRoots, orderOf } from "./identity.js";
import { compareNumbers, type Terms } from "./numbers.js";
import { draw } from "./points.js";
import { different, equal, unsupported } from "./results.js";
import type { Comparison, Expression, RelationSign, Value } from "./types.js";

export type Relation = Extract<Value, { kind: "relation" }>;
export type Assignment = Extract<Value, { kind: "assignment" }>;

/** `name = value` as an equation, where the value is a number. */
export function asRelation(value: Value): Relation | undefined {
  if (value.kind === "relation") return value;
  if (value.kind !== "assignment" || value.value.kind !== "number") return undefined;
  const call = /^(\w)\((.+)\)$/.exec(value.name);
  const name: Expression = call === null ? symbolOf(value.name) : { op: "apply", name: call[1] as string, to: (call[2] as string).split(",").map(symbolOf) };
  return value.name.startsWith("(") ? undefined : { kind: "relation", sides: [name, value.value.expression], signs: ["="] };
}

const turned: { readonly [sign in RelationSign]: RelationSign } = {
  "=": "=",
  "≠": "≠",
  "<": ">",
  "≤": "≥",
  ">": "<",
  "≥": "≤",
  "≈": "≈",
  "∼": "∼",
  "≡": "≡",
  "∥": "∥",
  "⊥": "⊥",
  "∈": "∈",
};

/** Whether two relations say the same. */
export function compareRelations(a: Relation, b: Relation, terms: Terms): Comparison {
  if (a.signs.length !== b.signs.length) return different("relations", `${a.signs.length} signs against ${b.signs.length}`);
  if (a.modulus !== undefined || b.modulus !== undefined) return congruence(a, b, terms);
  if (a.signs.length > 1) return chains(a, b, terms);
  const [sign, other] = [a.signs[0] as RelationSign, b.signs[0] as RelationSign];
  if (sign === "∼" || sign === "∥" || sign === "⊥" || sign === "≈" || sign === "≡") return sideBySide(a, b, terms);
  if (other !== sign && other !== turned[sign]) return different("relations", `${sign} is not ${other}`);
  const [p, q] = [a, b].map(({ sides }) => subtract(sides[0] as Expression, sides[1] as Expression)) as [Expression, Expression];
  return proportional(p, q, sign, other, terms);
}

/** Relations that are compared side by side, in either order. */
function sideBySide(a: Relation, b: Relation, terms: Terms): Comparison {
  if (a.signs[0] !== b.signs[0]) return different("relations", `${a.signs[0]} is not ${b.signs[0]}`);
  const pair = (x: readonly Expression[], y: readonly Expression[]): Comparison =>
    both(compareNumbers(x[0] as Expression, y[0] as Expression, terms), () => compareNumbers(x[1] as Expression, y[1] as Expression, terms));
  const straight = pair(a.sides, b.sides);
  return straight.kind === "equal" ? straight : pair(a.sides, [...b.sides].reverse());
}

const both = (first: Comparison, second: () => Comparison): Comparison => (first.kind === "equal" ? second() : first);

/** Chains such as 1 < x ≤ 3, from either end. */
function chains(a: Relation, b: Relation, terms: Terms): Comparison {
  const matches = (sides: readonly Expression[], signs: readonly RelationSign[]): Comparison => {
    if (a.signs.some((sign, i) => sign !== signs[i])) return different("relations", "the signs differ");
    return a.sides.reduce<Comparison>(
      (result, side, i) => both(result, () => compareNumbers(side, sides[i] as Expression, terms)),
      equal("relations", "side by side"),
    );
  };
  const straight = matches(b.sides, b.signs);
  if (straight.kind === "equal") return straight;
  const back = matches(
    [...b.sides].reverse(),
    [...b.signs].reverse().map((sign) => turned[sign]),
  );
  return back.kind === "equal" ? back : straight;
}

/** Two differences of sides that are each other's multiple, by a number whose sign keeps or turns the relation. */
function proportional(p: Expression, q: Expression, sign: RelationSign, other: RelationSign, { budget, policies }: Terms): Comparison {
  const domain = { positive: policies["assume-positive-variables"] === "yes" };
  const variables = [...new Set([...variablesOf(p), ...variablesOf(q)])].sort();
  if (variables.length === 0) return unsupported("relations", "a relation between numbers is no answer");
  const isTrivial = (side: Expression): boolean => compareExpressions(side, numberOf(0), budget, domain).kind !== "different";
  if (isTrivial(p) || isTrivial(q)) return unsupported("relations", "a relation that always holds is no answer");
  for (let trial = 0; trial < 8; trial++) {
    const point = new Map(variables.map((name) => [name, numberOf(1 + (draw(`scale ${name}`, trial) % 97))]));
    const [x, y] = [substitute(p, point), substitute(q, point)];
    const [signX, signY] = [orderOf(x, numberOf(0), budget), orderOf(y, numberOf(0), budget)];
    if (signX === undefined || signY === undefined || signX === 0 || signY === 0) continue;
    const result = compareExpressions(multiply(p, y), multiply(q, x), budget, domain);
    if (result.kind !== "equal") {
      const isEquation = other === sign && (sign === "=" || sign === "≠");
      return isEquation && haveSameRoots(p, q, budget) ? equal("relations", "the numerators are each other's multiple") : result;
    }
    const keeps = signX === signY;
    if (other === sign && (sign === "=" || sign === "≠" || keeps)) return equal("relations", "one is a multiple of the other");
    if (other === turned[sign] && !keeps) return equal("relations", "one is a multiple of the other, turned");
    return different("relations", "the relation is turned");
  }
  return compareExpressions(p, q, budget, domain);
}

/** x ≡ a (mod m): one modulus, and remainders that agree. */
function congruence(a: Relation, b: Relation, terms: Terms): Comparison {
  if (a.modulus === undefined || b.modulus === undefined) return different("congruence", "one has a modulus");
  const modulus = compareNumbers(a.modulus, b.modulus, terms);
  if (modulus.kind !== "equal") return modulus;
  const [left, right] = [
    compareNumbers(a.sides[0] as Expression, b.sides[0] as Expression, terms),
    [a.sides[1] as Expression, b.sides[1] as Expression],
  ] as const;
  if (left.kind !== "equal") return left;
  const remainders = right.map((side) => exact({ op: "function", name: "mod", of: [side, a.modulus as Expression] }, terms.budget));
  if (remainders[0] === undefined || remainders[1] === undefined) return compareNumbers(right[0] as Expression, right[1] as Expression, terms);
  return remainders[0].n === remainders[1].n ? equal("congruence", "the remainders agree") : different("congruence", "the remainders differ");
}

/** The sides of a chain of equations between constants that are all equal, the exact one first; undefined where it is none, null where it is false. */
export function chainOf({ sides, signs, modulus }: Relation, terms: Terms): readonly Expression[] | undefined | null {
  if (modulus !== undefined || !signs.every((sign) => sign === "=" || sign === "≈")) return undefined;
  const isNumeric = sides.every(isConstant);
  if (!isNumeric && sides.length < 3 && !isExpanded(sides)) return undefined;
  const lax: Terms = { ...terms, approximate: true };
  for (const [i, sign] of signs.entries()) {
    const [x, y] = [sides[i] as Expression, sides[i + 1] as Expression];
    const isEqual = compareNumbers(y, x, sign === "≈" ? lax : terms).kind === "equal" || (sign === "≈" && compareNumbers(x, y, lax).kind === "equal");
    if (!isEqual) return isNumeric ? null : undefined;
  }
  return signs.includes("≈") ? sides : [sides.at(-1) as Expression];
}

/** "(x+1)^2 = x^2+2x+1" rewrites an expression; "y = x" does not. */
const isExpanded = (sides: readonly Expression[]): boolean => sides.every((side) => side.op !== "symbol" && side.op !== "number" && side.op !== "apply");

/** Letters that name coordinates, so that an equation of them is no name of a value. */
const coordinates: ReadonlySet<string> = new Set(["x", "y", "z"]);

/** The value that an equation such as a + b = 7 gives to what it names; undefined for others. */
export function namedValue({ sides, signs }: Relation): Expression | undefined {
  if (sides.length !== 2 || signs[0] !== "=") return undefined;
  const [a, b] = sides as [Expression, Expression];
  const isName = (side: Expression): boolean =>
    side.op === "apply" || (side.op === "function" && side.name === "abs" && side.of[0]?.op === "symbol" && side.of[0].name === "z") || isNameOf(side);
  const isNameOf = (side: Expression): boolean =>
    !some(side, (part) => part.op === "number" || part.op === "constant" || (part.op === "function" && part.name !== "abs")) &&
    [...variablesOf(side)].every((name) => !coordinates.has(name)) &&
    partsOf(side).length > 0;
  if (isName(a) && isConstant(b)) return b;
  return isName(b) && isConstant(a) ? a : undefined;
}
