/** Which rows of a batch make which optimizer step. */
import { ConfigError } from "../core/errors.js";
import { type RandomKey, Stream } from "../core/random.js";
import type { Coefficients } from "../methods/coefficients.js";
import { rowsByGroup } from "../methods/credit.js";

/**
 * Rows on which some loss can act: those with a place in the policy's loss and a coefficient, and, where there are terms,
 * all with a place in those. The others would be passed through the model for gradients that are exactly 0 (C20).
 */
export function activeRows(c: Coefficients): number[] {
  return c.rows.flatMap((_, i) => {
    if (!c.mask.rows[i]) return [];
    return loud(c, i) || (c.terms.length > 0 && c.mask.terms[i].includes(1)) ? [i] : [];
  });
}

const loud = (c: Coefficients, row: number): boolean => c.mask.policy[row].some((m, t) => m === 1 && c.credit.token[row][t] !== 0);

/** Whether some loss on the policy's own pass can act on these rows: while a critic alone learns, the policy is neither run nor stepped. */
export function policyActs(c: Coefficients, rows: readonly number[]): boolean {
  return c.terms.some(({ on }) => on === undefined) || rows.some((row) => loud(c, row));
}

/**
 * The active rows in at most n parts of nearly equal size, shuffled by key. Groups stay whole where a loss needs it, and
 * where there are enough of them, so that good and bad answers to one problem pull in the same step. Fewer active units than
 * n give fewer steps; none give none.
 */
export function minibatches(c: Coefficients, n: number, key: RandomKey): number[][] {
  const active = new Set(activeRows(c));
  const groups = rowsByGroup(c.batch)
    .map((rows) => rows.filter((i) => active.has(i)))
    .filter((rows) => rows.length > 0);
  const whole = [c.surrogate, ...c.terms].find(({ unit }) => unit === "group");
  if (whole !== undefined && c.batch.groups.length < n) {
    throw new ConfigError({
      place: "minibatches",
      cause: `it is ${n}, a batch has ${c.batch.groups.length} groups, and the loss ${whole.name} keeps groups whole`,
      mend: "lower minibatches, or raise problems",
    });
  }
  const units = whole !== undefined || groups.length >= n ? groups : groups.flat().map((i) => [i]);
  const order = n === 1 ? units : new Stream(key).shuffle(units);
  const parts = Math.min(n, units.length);
  return Array.from({ length: parts }, (_, p) =>
    order
      .slice(Math.floor((p * order.length) / parts), Math.floor(((p + 1) * order.length) / parts))
      .flat()
      .sort((a, b) => a - b),
  );
}

/** Rows in pieces of at most `size`; a piece ends with a group where groups must stay whole. */
export function pieces(c: Coefficients, rows: readonly number[], size: number | undefined): number[][] {
  if (size === undefined || rows.length <= size) return rows.length === 0 ? [] : [[...rows]];
  const whole = [c.surrogate, ...c.terms].some(({ unit }) => unit === "group");
  const own = new Set(rows);
  const units = whole ? rowsByGroup(c.batch).map((group) => group.filter((i) => own.has(i))) : rows.map((i) => [i]);
  const result: number[][] = [];
  for (const unit of units) {
    if (unit.length === 0) continue;
    const last = result.at(-1);
    if (last !== undefined && last.length + unit.length <= size) last.push(...unit);
    else result.push([...unit]);
  }
  return result;
}
