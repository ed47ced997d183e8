/**
 * RLOO: REINFORCE leave-one-out (Ahmadian et al. 2024, Back to Basics, arXiv 2402.14740, sec. 3; Kool et al. 2019).
 *
 *     R_i <- R_i - kl_coef sum_t (o_t - f_t)                     f under the reference, o at the weights of the rollout
 *     A_i  = R_i - 1/(G - 1) sum over j != i of R_j              over the scored members of the group
 *     loss = -(1/N) sum_i A_i sum_t l_t                          surrogate `reinforce`: the paper's
 *     loss = -(1/N) sum_i min(q_i A_i, clip(q_i) A_i)            surrogate `sequence-clip`: q_i = exp(sum_t (l_t - o_t))
 *
 * Our choice: kl_coef is 0 unless set (the paper has 0.03 and 0.1 for preferences). `sequence-clip`, which TRL has too, bounds
 * the ratio of the whole answer and so stands several updates on one batch.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { clip } from "../../losses/clip.js";
import { reinforce } from "../../losses/weighted.js";
import { comparesAnswers, leaveOneOut } from "../advantages.js";
import type { MethodModule } from "../contract.js";
import { Credit } from "../credit.js";
import { klSlots } from "../kl.js";
import { training } from "../needs.js";

export const rlooOptions = z.strictObject({
  surrogate: z.enum(["reinforce", "sequence-clip"]).default("reinforce").describe("The paper's loss without a ratio, or the clipped ratio of whole answers."),
  clip_low: z.number().min(0).default(0.2).describe("Of sequence-clip: distance from 1 below which the ratio of a bad answer loses its gradient."),
  clip_high: z.number().min(0).default(0.2).describe("Of sequence-clip: distance from 1 above which the ratio of a good answer loses its gradient."),
  kl_coef: z.number().min(0).default(0).describe("Weight of the KL to the role `reference` in the reward; 0 needs no reference."),
});
export type RlooOptions = z.output<typeof rlooOptions>;

export const rloo: MethodModule<RlooOptions, null> = {
  name: "rloo",
  paper: "Ahmadian et al. 2024, Back to Basics, arXiv 2402.14740",
  options: rlooOptions,
  decides: { surrogate: "loss", clip_low: "loss", clip_high: "loss" },
  initial: null,
  make({ surrogate, clip_low, clip_high, kl_coef }) {
    const kl = klSlots({ coefficient: kl_coef, estimator: "k1", place: "reward" });
    const plain = surrogate === "reinforce";
    return {
      name: "rloo",
      needs: [training, ...kl.needs],
      slots: {
        credit: {
          prefers: (batch, rewards) => Credit.zero(batch).with("trajectory", leaveOneOut(batch, rewards)),
          about: "R - mean of the others of the group",
          check: comparesAnswers("RLOO"),
        },
        loss: plain
          ? { prefers: reinforce(), about: "A log-prob, without a ratio" }
          : { prefers: clip({ clip_low, clip_high, unit: "sequence", reduce: "sum" }), about: `clip(ratio of the answer, 1 - ${clip_low}, 1 + ${clip_high})` },
        aggregate: plain
          ? { prefers: aggregator("seq-mean-token-sum"), about: "seq-mean-token-sum" }
          : { prefers: aggregator("seq-mean-token-mean"), about: "seq-mean-token-mean: 1/N an answer" },
        ...kl.slots,
      },
    };
  },
};
