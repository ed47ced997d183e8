/**
 * REINFORCE++ (Hu et al. 2025, arXiv 2501.03262).
 *
 *     baseline none:   A_t = R_i - kl_coef sum over s >= t of (o_s - f_s)        f under the reference, o at the rollout
 *     baseline group:  A_t = R_i - mean of the group, and kl_coef (l_t - f_t)^2 / 2 enters the loss (k2)
 *     then             A  <- (A - mean) / max(std, eps)                          over all trained tokens of the batch, divisor n
 *     loss = -(1 / sum_i |y_i|) sum_i sum_t min(r_t A_t, clip(r_t, 1 - clip_low, 1 + clip_high) A_t)
 *
 * Normalising over the batch, not the group, keeps a problem's own deviation out of its advantages. Our choice: kl_coef is 0
 * unless set; a batch whose returns are all equal has A = 0 exactly. Without the group's baseline it learns from groups in which all
 * rewards are equal, and needs one answer a problem only.
 */
import { z } from "zod";
import type { Batch } from "../../core/trajectory.js";
import { aggregator } from "../../losses/aggregate.js";
import { clip } from "../../losses/clip.js";
import { comparesAnswers, groupAdvantages } from "../advantages.js";
import type { MethodModule, Rewards } from "../contract.js";
import { Credit, rowsOf } from "../credit.js";
import { scoredTokens } from "../keep.js";
import { klSlots } from "../kl.js";
import { training } from "../needs.js";
import { returnsToGo } from "../rewards.js";

export const reinforcePpOptions = z.strictObject({
  baseline: z.enum(["none", "group"]).default("none").describe("What is subtracted before normalising: nothing, or the group's mean (REINFORCE++-baseline)."),
  eps: z.number().gt(0).default(1e-8).describe("Smallest deviation that advantages are divided by."),
  clip_low: z.number().min(0).default(0.2).describe("Distance from 1 below which the ratio of a bad answer's token loses its gradient."),
  clip_high: z.number().min(0).default(0.2).describe("Distance from 1 above which the ratio of a good answer's token loses its gradient."),
  kl_coef: z
    .number()
    .min(0)
    .default(0)
    .describe("Weight of the KL to the role `reference`, in the reward or, with the group's baseline, in the loss; 0: none."),
});
export type ReinforcePpOptions = z.output<typeof reinforcePpOptions>;

/** Credit from values of each token, normalised over the trained tokens of scored rows; at the trajectory level where all tokens of each row are alike. */
export function normalised(batch: Batch, rewards: Rewards, values: readonly Float64Array[], eps: number): Credit {
  const mask = scoredTokens(rowsOf(batch), rewards).policy;
  const inside = values.flatMap((row, i) => [...row].filter((_, t) => mask[i]?.[t] === 1));
  const first = inside[0];
  if (first === undefined || inside.every((x) => x === first)) return Credit.zero(batch);
  const mean = inside.reduce((sum, x) => sum + x, 0) / inside.length;
  const spread = Math.max(eps, Math.sqrt(inside.reduce((sum, x) => sum + (x - mean) ** 2, 0) / inside.length));
  const tokens = values.map((row, i) => row.map((x, t) => (mask[i]?.[t] === 1 ? (x - mean) / spread : 0)));
  const alike = tokens.map((row, i) => [...new Set(row.filter((_, t) => mask[i]?.[t] === 1))]);
  if (alike.some((distinct) => distinct.length > 1)) return Credit.zero(batch).with("token", tokens);
  return Credit.zero(batch).with(
    "trajectory",
    Float64Array.from(alike, ([only]) => only ?? 0),
  );
}

export const reinforcePp: MethodModule<ReinforcePpOptions, null> = {
  name: "reinforce-pp",
  paper: "Hu et al. 2025, REINFORCE++, arXiv 2501.03262",
  options: reinforcePpOptions,
  decides: { baseline: "credit", eps: "credit", clip_low: "loss", clip_high: "loss" },
  initial: null,
  make({ baseline, eps, clip_low, clip_high, kl_coef }) {
    const grouped = baseline === "group";
    const kl = klSlots({ coefficient: kl_coef, estimator: grouped ? "k2" : "k1", place: grouped ? "loss" : "reward" });
    return {
      name: "reinforce-pp",
      needs: [training, ...kl.needs],
      ...(grouped ? {} : { signal: "beyond" }),
      slots: {
        credit: {
          prefers(batch, rewards) {
            if (!grouped) return normalised(batch, rewards, returnsToGo(batch, rewards), eps);
            const own = groupAdvantages(batch, rewards, { std: "none", eps: 0 });
            const values = rowsOf(batch).map(({ response }, i) => new Float64Array(response.length).fill(own[i] as number));
            return normalised(batch, rewards, values, eps);
          },
          about: `${grouped ? "R - mean of the group" : "returns to go"}, normalised over the tokens of the batch`,
          ...(grouped ? { check: comparesAnswers("REINFORCE++-baseline") } : {}),
        },
        loss: { prefers: clip({ clip_low, clip_high }), about: `clip(ratio, 1 - ${clip_low}, 1 + ${clip_high})` },
        aggregate: { prefers: aggregator("token-mean"), about: "token-mean" },
        ...kl.slots,
      },
    };
  },
};
