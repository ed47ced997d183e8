/**
 * GRPO: group relative policy optimization (Shao et al. 2024, DeepSeekMath, arXiv 2402.03300).
 *
 *     A_i  = (R_i - mean R) / (std R + eps)                                  over the scored members of the group (sec. 4.1.2)
 *     r_t  = exp(l_t - o_t)                                                  l now, o at the weights of the rollout
 *     loss = -(1/N) sum_i (1/|y_i|) sum_t [ min(r_t A_i, clip(r_t, 1 - clip_low, 1 + clip_high) A_i) - kl_coef KL_t ]     (eq. 3)
 *     KL_t = exp(f_t - l_t) - (f_t - l_t) - 1                                f under the reference (eq. 4)
 *
 * Our choice: unscored members leave mean, deviation and N (coefficient 0, masked); a group whose rewards are all equal, or
 * of which one member is scored, has A = 0 exactly; statistics count episodes, not rows (C2); kl_coef is 0 unless set, and
 * where it is, the KL acts on all scored trajectories, groups without signal included.
 */
import { z } from "zod";
import { aggregations, aggregator } from "../../losses/aggregate.js";
import { clip } from "../../losses/clip.js";
import { klEstimators } from "../../losses/kl.js";
import { comparesAnswers, deviations, groupAdvantages } from "../advantages.js";
import { fixedGroups, plainAnswers, verdictReward } from "../base.js";
import type { Method, MethodModule } from "../contract.js";
import { Credit } from "../credit.js";
import { type EpochsState, shuffledEpochs } from "../epochs.js";
import { klSlots } from "../kl.js";
import { training } from "../needs.js";

export const grpoOptions = z.strictObject({
  clip_low: z.number().min(0).default(0.2).describe("Distance from 1 below which the ratio of a bad answer's token loses its gradient."),
  clip_high: z.number().min(0).default(0.2).describe("Distance from 1 above which the ratio of a good answer's token loses its gradient."),
  dual_clip: z.number().gt(1).optional().describe("Largest ratio that a bad answer's token still answers for (dual clip); absent: none."),
  std: z.enum(deviations).default("sample").describe("Deviation that advantages are divided by: with divisor G - 1, with divisor G, or not at all."),
  eps: z.number().gt(0).default(1e-4).describe("Added to the deviation."),
  kl_coef: z.number().min(0).default(0).describe("Weight of the KL to the role `reference`; 0 needs no reference."),
  kl_estimator: z.enum(klEstimators).default("k3").describe("k1, k2 or k3; k1 in the loss has a gradient of expectation zero."),
  kl_place: z
    .enum(["loss", "reward"])
    .default("loss")
    .describe("Where the KL goes: a term of the loss, or a penalty in the reward at the log-probs of the rollout."),
  aggregation: z.enum(aggregations).default("seq-mean-token-mean").describe("How tokens are averaged into one loss."),
  aggregation_constant: z.number().gt(0).default(1).describe("Fixed divisor of seq-mean-token-sum and token-sum."),
});
export type GrpoOptions = z.output<typeof grpoOptions>;

/** GRPO as a method; it answers every slot that others leave open. */
export const grpo: MethodModule<GrpoOptions, EpochsState> = {
  name: "grpo",
  paper: "Shao et al. 2024, DeepSeekMath, arXiv 2402.03300",
  options: grpoOptions,
  decides: {
    clip_low: "loss",
    clip_high: "loss",
    dual_clip: "loss",
    std: "credit",
    eps: "credit",
    aggregation: "aggregate",
    aggregation_constant: "aggregate",
  },
  initial: { cursor: 0 },
  make(options, state): Method {
    const { clip_low, clip_high, dual_clip, std, aggregation, aggregation_constant } = options;
    const kl = klSlots({ coefficient: options.kl_coef, estimator: options.kl_estimator, place: options.kl_place });
    return {
      name: "grpo",
      needs: [training, ...kl.needs],
      slots: {
        select: { prefers: shuffledEpochs(state), about: "shuffled epochs" },
        allocate: { prefers: fixedGroups, about: "a fixed number of answers a problem" },
        expand: { prefers: plainAnswers, about: "one plain answer" },
        reward: { prefers: verdictReward, about: "accept 1, reject 0" },
        credit: {
          prefers: (batch, rewards) => Credit.zero(batch).with("trajectory", groupAdvantages(batch, rewards, options)),
          about: std === "none" ? "R - mean of the group" : `(R - mean) / (${std} deviation + ${options.eps}) of the group`,
          check: comparesAnswers("GRPO"),
        },
        loss: { prefers: clip({ clip_low, clip_high, dual_clip }), about: `clip(ratio, 1 - ${clip_low}, 1 + ${clip_high})` },
        aggregate: { prefers: aggregator(aggregation, aggregation_constant), about: aggregation },
        parametrisation: { prefers: { module: "identity", options: {} }, about: "all weights, or all of an adapter" },
        optimizer: { prefers: { module: "adamw", options: {} }, about: "AdamW" },
        ...kl.slots,
      },
    };
  },
};
