/**
 * Losses of the policy that are functions of the ratio: one loop over tokens and units, and one small function a family
 * (clip.ts, importance.ts, gate.ts) with the objective of a token and its slope. With r the ratio of the token's unit, A
 * its coefficient, w its weight:
 *
 *     loss = -sum_t w_t f(r_t, A_t)        dloss/dl_t = -share_t r_t sum over j in the unit of w_j f'(r_j, A_j)
 *
 * For single tokens, and with gradient "own", the inner sum is the token's own addend.
 */
import { DivergenceError } from "../core/errors.js";
import { note } from "../core/note.js";
import type { LossResult, LossRow, RatioBounds, Statistics, Surrogate } from "./contract.js";
import { type RatioOptions, type Ratios, ratiosOf, type Unit } from "./ratio.js";

/** What became of a token: kept, or cut off at the lower, upper or dual bound. */
export const fate = { kept: 0, low: 1, high: 2, dual: 3 } as const;

/** Objective of one token, written into `out` so that the inner loop allocates nothing. */
export interface Piece {
  value: number;
  /** d value / d ratio. */
  slope: number;
  fate: number;
}

export type TokenObjective = (out: Piece, ratio: number, coefficient: number, low: number, high: number) => void;

/** Options that all families share. */
export interface FamilyOptions {
  /** What shares a ratio. Default: token. */
  readonly unit?: Unit;
  /** How log-ratios of a unit combine. Default: mean. */
  readonly reduce?: "mean" | "sum";
  /** Whether the gradient of a unit's ratio reaches all its tokens. Default: unit. */
  readonly gradient?: "unit" | "own";
  /** Which log-probs stand below the ratio. Default: old. */
  readonly denominator?: "old" | "behaviour";
}

export function ratioOptions(options: FamilyOptions): RatioOptions {
  const { unit = "token", reduce = "mean", gradient = "unit", denominator = "old" } = options;
  return { unit, reduce, gradient, denominator };
}

/** A surrogate from the objective of a token. */
export function ratioSurrogate(name: string, options: FamilyOptions, bounds: RatioBounds, objective: TokenObjective): Surrogate {
  const resolved = ratioOptions(options);
  return {
    name,
    denominator: resolved.denominator,
    bounds,
    run(rows) {
      const count = new Counter();
      const piece: Piece = { value: 0, slope: 0, fate: 0 };
      let value = 0;
      const derivatives = rows.map((row) => {
        const ratios = ratiosOf(row, resolved);
        count.row(row);
        const { ratio, share, units } = ratios;
        const tokens = row.mask.length;
        const dLogp = new Float64Array(tokens);
        const slopes = new Float64Array(resolved.gradient === "unit" ? ratios.unitCount : 0);
        for (let t = 0; t < tokens; t++) {
          if (!row.mask[t]) continue;
          const w = row.weights[t] as number;
          objective(piece, ratio[t] as number, row.coefficient[t] as number, row.low[t] as number, row.high[t] as number);
          value -= w * piece.value;
          const slope = w * piece.slope * (ratio[t] as number);
          if (resolved.gradient === "own") dLogp[t] = -slope * (share[t] as number);
          else slopes[units[t] as number] = (slopes[units[t] as number] as number) + slope;
          count.token(ratios, t, piece.fate);
        }
        if (resolved.gradient === "unit") {
          for (let t = 0; t < tokens; t++) if (row.mask[t]) dLogp[t] = -(share[t] as number) * (slopes[units[t] as number] as number);
        }
        count.clamped += ratios.clamped;
        return { dLogp };
      });
      return finite(name, rows, { value, derivatives, statistics: count.statistics() });
    },
  };
}

/** On a trajectory: a class whose tokens beyond a bound are counted apart too, as the statistic CLASS.clipped. */
export const clipClass = note<string>("clip.class");

/** Counts what every surrogate reports, over the tokens inside the mask. */
export class Counter {
  clamped = 0;
  private readonly classes = new Map<string, { sum: number; count: number }>();
  private own: { sum: number; count: number } | undefined;
  private tokens = 0;
  private readonly fates = [0, 0, 0, 0];
  private ratioSum = 0;
  private ratioMax = Number.NEGATIVE_INFINITY;
  private k1 = 0;
  private k3 = 0;

  /** Begins with a row: its tokens come next. */
  row({ trajectory }: LossRow): void {
    const name = clipClass.get(trajectory);
    this.own = undefined;
    if (name === undefined) return;
    this.own = this.classes.get(name) ?? { sum: 0, count: 0 };
    this.classes.set(name, this.own);
  }

  token(ratios: Ratios, t: number, fateOfToken: number): void {
    this.tokens++;
    if (this.own) {
      this.own.count++;
      if (fateOfToken !== fate.kept) this.own.sum++;
    }
    this.fates[fateOfToken] = (this.fates[fateOfToken] as number) + 1;
    const ratio = ratios.ratio[t] as number;
    const log = ratios.log[t] as number;
    this.ratioSum += ratio;
    this.ratioMax = Math.max(this.ratioMax, ratio);
    this.k1 -= log;
    this.k3 += Math.expm1(Math.min(log, 20)) - log;
  }

  /** `clip_low`, `clip_high`, `clip_dual`: shares of tokens; `ratio`, `ratio_max`; `kl_k1`, `kl_k3`: KL(denominator, now) estimated on the sampled tokens; `ratio_clamped`; `CLASS.clipped`. */
  statistics(): Statistics {
    const mean = (sum: number) => ({ sum, count: this.tokens });
    return {
      clip_low: mean(this.fates[fate.low] as number),
      clip_high: mean(this.fates[fate.high] as number),
      clip_dual: mean(this.fates[fate.dual] as number),
      ratio: mean(this.ratioSum),
      ratio_max: { max: this.ratioMax },
      ratio_clamped: mean(this.clamped),
      kl_k1: mean(this.k1),
      kl_k3: mean(this.k3),
      ...Object.fromEntries([...this.classes].map(([name, counted]) => [`${name}.clipped`, counted])),
    };
  }
}

/** Passes a result on, or stops with the trajectory whose numbers are to blame. */
export function finite(name: string, rows: readonly LossRow[], result: LossResult): LossResult {
  if (Number.isFinite(result.value)) {
    const sum = result.derivatives.reduce((s, d) => s + [d.dLogp, d.dEntropy, d.dValue].reduce((x, a) => x + (a?.reduce((y, z) => y + z, 0) ?? 0), 0), 0);
    if (Number.isFinite(sum)) return result;
  }
  for (const row of rows) {
    for (let t = 0; t < row.mask.length; t++) {
      if (!row.mask[t]) continue;
      const numbers = { "log-prob": row.now.logp[t], "old log-prob": row.old[t], coefficient: row.coefficient[t], weight: row.weights[t] };
      for (const [what, number] of Object.entries(numbers)) {
        if (Number.isFinite(number)) continue;
        throw new DivergenceError({
          place: `loss ${name}, trajectory ${row.trajectory.key}, token ${t}`,
          cause: `the ${what} is ${number}`,
          mend: "lower the learning rate, or look at the reward or shaping that made it",
          data: { trajectory: row.trajectory.key, token: t, what },
        });
      }
    }
  }
  throw new DivergenceError({ place: `loss ${name}`, cause: `its value is ${result.value}`, mend: "lower the learning rate or the coefficients" });
}
