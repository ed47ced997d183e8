/**
 * GAPO: the ratio of an answer has room in proportion to the answer's advantage, so that rare successes are not cut short (arXiv 2609.00444).
 *
 *     k_i  = min(max(|A_i| / a_ref, k_min), k_max)
 *     low  = 1 - min(clip_low k_i, max_low),  high = 1 + clip_high k_i            clips: those of the loss that the run has
 *     or   low = exp(-eta |A_i| / a_ref),  high = exp(eta |A_i| / a_ref),  eta = ln(1 + clip_high)           form exponential
 *
 * Derived from the abstract: that the threshold alone changes, and grows with |A|. The reason: the maximum of
 * E[A] - KL(p, o) / eta has p / o in proportion to exp(eta A), so log-ratios in proportion to A. Both forms and their numbers
 * are our choice: a_ref = 1 (|A| of a group that is half right), k from 0.5 to 3, max_low = 0.8. A_i is read at the level
 * of answers, whatever stages make of tokens; where there are only tokens' coefficients, it is the mean of their sizes. A
 * bound that the loss does not have stays away. Ratios must move: one optimizer step a batch, on its own weights, is refused.
 */
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import type { Batch } from "../../core/trajectory.js";
import { clipClass } from "../../losses/surrogate.js";
import type { MethodModule } from "../contract.js";
import { type Credit, rowsByGroup, rowsOf } from "../credit.js";
import { training } from "../needs.js";

export const gapoOptions = z.strictObject({
  a_ref: z.number().gt(0).default(1).describe("Size of the advantage that has the bounds of the loss as they are."),
  k_min: z.number().min(0).default(0.5).describe("Smallest factor of a bound's distance from 1."),
  k_max: z.number().gt(0).default(3).describe("Largest factor of a bound's distance from 1."),
  max_low: z.number().gt(0).lt(1).default(0.8).describe("Largest distance of the lower bound from 1."),
  form: z.enum(["linear", "exponential"]).default("linear").describe("How room grows with |A|; exponential: without k_min and k_max."),
  sides: z.enum(["both", "positive"]).default("both").describe("Which answers get bounds of their own: all, or those with a positive advantage."),
  control: z
    .enum(["none", "mean"])
    .default("none")
    .describe(
      "For comparison: `mean` gives each answer the mean room of the batch's answers, so that the bounds are as wide on average and know nothing of |A|.",
    ),
});
export type GapoOptions = z.output<typeof gapoOptions>;

interface Bound {
  readonly low: number;
  readonly high: number;
}

/** The bounds of an answer whose advantage has this size, from those of the loss. */
export function boundsFor(size: number, base: Bound, options: GapoOptions): Bound {
  const { a_ref, max_low, form } = options;
  const [low, high] = [1 - base.low, base.high - 1];
  const within = (distance: number): number => (base.low <= 0 ? base.low : 1 - Math.min(distance, Math.max(max_low, low)));
  if (form === "exponential") {
    if (high === Number.POSITIVE_INFINITY) return base;
    const reach = (Math.log1p(high) * size) / a_ref;
    return { low: within(-Math.expm1(-reach)), high: Math.exp(reach) };
  }
  const k = factorOf(size, options);
  return k === 1 ? base : { low: within(low * k), high: 1 + high * k };
}

const factorOf = (size: number, { a_ref, k_min, k_max }: GapoOptions): number => Math.min(Math.max(size / a_ref, k_min), k_max);

/** The mean of the bounds of answers with these sizes, for each pair of bounds that a loss has. */
function meanBounds(sizes: readonly number[], options: GapoOptions): (base: Bound) => Bound {
  const known = new Map<string, Bound>();
  return (base) => {
    const key = `${base.low}|${base.high}`;
    const all = known.has(key) ? [] : sizes.map((size) => boundsFor(size, base, options));
    const mean = (side: keyof Bound): number => all.reduce((sum, each) => sum + each[side], 0) / all.length;
    if (all.length > 0) known.set(key, { low: mean("low"), high: mean("high") });
    return known.get(key) ?? base;
  };
}

/** Advantages of answers; where something wrote tokens' alone, the mean size of those on which a reward may fall. [rows] */
function advantages(batch: Batch, credit: Credit): Float64Array {
  if (credit.wrote("trajectory") || credit.wrote("group")) return credit.trajectory;
  return Float64Array.from(rowsOf(batch), ({ reward }, i) => {
    const sizes = credit.token[i].filter((_, t) => reward[t] === 1);
    return sizes.reduce((sum, a) => sum + Math.abs(a), 0) / Math.max(1, sizes.length);
  });
}

/** Says on each answer how often its group is right (up to a quarter: hard, from three on: easy), and whether it is pushed up or down. */
function classify(batch: Batch, advantage: Float64Array): void {
  const rows = rowsOf(batch);
  for (const indices of rowsByGroup(batch)) {
    const scored = indices.filter((i) => rows[i].verdict.kind !== "unscored");
    const share = scored.filter((i) => rows[i].verdict.kind === "accept").length / Math.max(1, scored.length);
    const group = share <= 1 / 4 ? "hard" : share >= 3 / 4 ? "easy" : "middle";
    for (const i of scored) if (advantage[i] !== 0) clipClass.set(rows[i], `gapo.${group}.${advantage[i] > 0 ? "up" : "down"}`);
  }
}

export const gapo: MethodModule<GapoOptions, null> = {
  name: "gapo",
  paper: "P24 GAPO, arXiv 2609.00444",
  options: gapoOptions,
  initial: null,
  make(options) {
    const { a_ref, k_min, k_max, form, sides, control } = options;
    if (k_min > k_max)
      throw new ConfigError({ place: "method gapo, options k_min and k_max", cause: `${k_min} is above ${k_max}`, mend: "give the smaller factor as k_min" });
    return {
      name: "gapo",
      needs: [training],
      writes: [clipClass],
      check({ updates, overlap = 0 }) {
        if (updates !== 1 || overlap > 0) return;
        throw new ConfigError({
          place: "method gapo",
          cause: "there is one optimizer step a batch, so all ratios are 1 and no bound is ever met",
          mend: "set minibatches or epochs to 2 or more (4 is usual)",
        });
      },
      slots: {
        bounds: {
          level: "trajectory",
          about: form === "linear" ? `distances from 1 times |A| / ${a_ref}, ${k_min} to ${k_max}` : `exp of ln(upper bound) |A| / ${a_ref} either way`,
          run: (batch, credit, bounds) => {
            const advantage = advantages(batch, credit);
            classify(batch, advantage);
            const adapts = (a: number): boolean => sides === "both" || a > 0;
            const shared = control === "mean" ? meanBounds([...advantage].filter((a) => a !== 0 && adapts(a)).map(Math.abs), options) : undefined;
            return bounds.map((each, i) => {
              const a = advantage[i];
              if (!adapts(a)) return each;
              const own = Array.from(each.low, (low, t) => {
                const base = { low, high: each.high[t] };
                return shared ? shared(base) : boundsFor(Math.abs(a), base, options);
              });
              return { low: Float64Array.from(own, ({ low }) => low), high: Float64Array.from(own, ({ high }) => high) };
            });
          },
        },
        ...(form === "linear"
          ? {
              observe: {
                run: ({ batch, credit }): { [name: string]: number } => {
                  const sizes = [...advantages(batch, credit)].filter((a) => a !== 0).map(Math.abs);
                  return sizes.length === 0 ? {} : { "gapo.factor": sizes.reduce((sum, a) => sum + factorOf(a, options), 0) / sizes.length };
                },
              },
            }
          : {}),
      },
    };
  },
};
