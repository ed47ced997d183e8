import { DivergenceError } from "../core/errors.js";
import { trained } from "../core/trajectory.js";
import type { Invariant } from "./contract.js";
import { type Credit, rowsByGroup } from "./credit.js";

/** Relative difference that rounding may make of a sum. */
const tolerance = 1e-9;

/** Checks what a stage promised of coefficients, over the tokens inside the mask; throws with the trajectory that breaks it. */
export function checkInvariants(from: string, keeps: readonly Invariant[], before: Credit, after: Credit, mask: readonly Uint8Array[]): void {
  if (keeps.length === 0) return;
  const rows = before.batch.groups.flatMap(trained);
  const broken = (invariant: Invariant, where: string, was: number, is: number) =>
    new DivergenceError({
      place: `shape stage of ${from}, ${where}`,
      cause: `it promises to keep ${invariant}, and made ${is} of ${was}`,
      mend: "correct the stage, or take the promise out of its `keeps`",
      data: { method: from, invariant },
    });
  rows.forEach((row, i) => {
    const old = before.token[i] as Float64Array;
    const now = after.token[i] as Float64Array;
    let sumOld = 0;
    let sumNow = 0;
    let size = 0;
    for (let t = 0; t < old.length; t++) {
      if (!mask[i]?.[t]) continue;
      const a = old[t] as number;
      const b = now[t] as number;
      if (keeps.includes("sign") && a * b < 0) throw broken("sign", `token ${t} of ${row.key}`, a, b);
      if (keeps.includes("zero") && a === 0 && b !== 0) throw broken("zero", `token ${t} of ${row.key}`, a, b);
      sumOld += a;
      sumNow += b;
      size += Math.abs(a) + Math.abs(b);
    }
    if (keeps.includes("sum") && Math.abs(sumOld - sumNow) > tolerance * Math.max(1, size)) throw broken("sum", row.key, sumOld, sumNow);
  });
  if (!keeps.includes("group-sum")) return;
  rowsByGroup(before.batch).forEach((indices, g) => {
    const sum = (credit: Credit) => indices.reduce((s, i) => s + (credit.trajectory[i] as number), 0);
    const was = sum(before);
    const is = sum(after);
    const size = indices.reduce((s, i) => s + Math.abs(before.trajectory[i] as number) + Math.abs(after.trajectory[i] as number), 0);
    if (Math.abs(was - is) > tolerance * Math.max(1, size)) throw broken("group-sum", `group ${before.batch.groups[g]?.key}`, was, is);
  });
}
