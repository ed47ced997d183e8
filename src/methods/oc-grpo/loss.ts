/**
 * The policy's loss where some answers were sampled under another context than they are trained under. With
 * rho_t = now(x) / behaviour(x, c) for those, and the clipped surrogate for all others:
 *
 *     token     d loss = -sum_t w_t min(rho_t, rho_max) A d l_t         the weight is truncated, the gradient is not lost (Espeholt et al. 2018)
 *     shaped    loss   = -sum_t w_t A rho_t / (rho_t + gamma)           gamma: the 90 % quantile of the batch's rho at the weights of the rollout
 *     sequence  loss   = -sum_t w_t A prod_u rho_u                      unbiased, and of a variance that grows with the answer's length
 */
import { note } from "../../core/note.js";
import type { Trajectory } from "../../core/trajectory.js";
import { clip } from "../../losses/clip.js";
import { type LossRow, mergeStatistics, type Surrogate } from "../../losses/contract.js";
import { importance } from "../../losses/importance.js";
import { fate, ratioSurrogate } from "../../losses/surrogate.js";
import { sameContext } from "../old.js";

export type Correction = "token" | "shaped" | "sequence";

/** On a trajectory that was sampled off its context: gamma of its batch. */
export const gammaNote = note<number>("oc-grpo.gamma");

/** Whether an answer was sampled under another context than it is trained under. */
export const isOffContext = ({ sampledUnder, trainedUnder }: Trajectory): boolean => !sameContext(sampledUnder, trainedUnder);

const free = { low: 0, high: Number.POSITIVE_INFINITY };

/** min(rho, high) A as value and as slope in the log-prob; below `low` alike. */
const truncated = ratioSurrogate("off-context", { denominator: "behaviour" }, free, (out, r, a, low, high) => {
  const weight = Math.min(Math.max(r, low), high);
  out.value = weight * a;
  out.slope = r === 0 ? 0 : (weight / r) * a;
  out.fate = r > high ? fate.high : r < low ? fate.low : fate.kept;
});

const shaped = (gamma: number): Surrogate =>
  ratioSurrogate("off-context", { denominator: "behaviour" }, free, (out, r, a) => {
    out.value = (a * r) / (r + gamma);
    out.slope = (a * gamma) / (r + gamma) ** 2;
    out.fate = fate.kept;
  });

const sequence = importance({ unit: "sequence", reduce: "sum", denominator: "behaviour" });

/** The loss; `off` for answers that were sampled off their context, the clip of GRPO for the rest. */
export function offContextLoss(correction: Correction, clips: { readonly clip_low: number; readonly clip_high: number }): Surrogate {
  const own = clip(clips);
  const offOf = (rows: readonly LossRow[]): Surrogate =>
    correction === "token" ? truncated : correction === "sequence" ? sequence : shaped(gammaNote.get((rows[0] as LossRow).trajectory) ?? 1);
  return {
    name: "off-context",
    denominator: "behaviour",
    bounds: own.bounds,
    run(rows) {
      const off = rows.filter(({ trajectory }) => isOffContext(trajectory));
      if (off.length === 0) return own.run(rows);
      const on = rows.filter((row) => !off.includes(row));
      const results = [offOf(off).run(off), ...(on.length > 0 ? [own.run(on)] : [])];
      const derivatives = new Map([...off, ...on].map((row, i) => [row, results.flatMap((result) => result.derivatives)[i]]));
      return {
        value: results.reduce((sum, { value }) => sum + value, 0),
        derivatives: rows.map((row) => derivatives.get(row) ?? {}),
        statistics: mergeStatistics(results.map(({ statistics }) => statistics)),
      };
    },
  };
}

/** Ratios exp(old - behaviour) of the trained tokens of answers that were sampled off their context, at the weights of the rollout. */
export function offContextRatios(rows: readonly Trajectory[]): number[] {
  return rows.filter(isOffContext).flatMap(({ old, behaviour, reward }) => {
    const ratios: number[] = [];
    behaviour.values.forEach((b, t) => reward[t] === 1 && ratios.push(Math.exp(((old ?? behaviour).values[t] as number) - b)));
    return ratios;
  });
}

/** The quantile of a list that is not empty, between two entries by linear interpolation. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = q * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)] as number, sorted[Math.ceil(at)] as number];
  return low + (at - Math.floor(at)) * (high - low);
}
