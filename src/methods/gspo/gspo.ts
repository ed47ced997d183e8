/**
 * GSPO: group sequence policy optimization (Zheng et al. 2025, arXiv 2507.18071).
 *
 *     s_i  = exp((1/|y_i|) sum_t (l_t - o_t))                          geometric mean of the tokens' ratios (eq. 7)
 *     loss = -(1/N) sum_i min(s_i A_i, clip(s_i, 1 - clip_low, 1 + clip_high) A_i)                                     (eq. 5)
 *     GSPO-token: s_t = sg[s_i] exp(l_t - sg[l_t]) in place of s_i, averaged over an answer's tokens              (eq. 13-14)
 *
 * A_i is GRPO's. GSPO-token has the same value and, for one advantage an answer, the same gradient; it is there for methods
 * that give each token an advantage of its own. The bounds are the paper's (sec. 5.1), far narrower than GRPO's.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { clip } from "../../losses/clip.js";
import type { MethodModule } from "../contract.js";
import { training } from "../needs.js";

export const gspoOptions = z.strictObject({
  clip_low: z.number().min(0).default(3e-4).describe("Distance from 1 below which the ratio of a bad answer loses its gradient."),
  clip_high: z.number().min(0).default(4e-4).describe("Distance from 1 above which the ratio of a good answer loses its gradient."),
  token: z.boolean().default(false).describe("GSPO-token: each token has the answer's ratio and its own advantage and gradient."),
});
export type GspoOptions = z.output<typeof gspoOptions>;

export const gspo: MethodModule<GspoOptions, null> = {
  name: "gspo",
  paper: "Zheng et al. 2025, Group Sequence Policy Optimization, arXiv 2507.18071",
  options: gspoOptions,
  decides: { clip_low: "loss", clip_high: "loss", token: "loss" },
  initial: null,
  make({ clip_low, clip_high, token }) {
    return {
      name: "gspo",
      needs: [training],
      slots: {
        loss: {
          prefers: clip({ clip_low, clip_high, unit: "sequence", gradient: token ? "own" : "unit" }),
          about: `clip(ratio of the answer, 1 - ${clip_low}, 1 + ${clip_high})${token ? ", gradient a token" : ""}`,
        },
        aggregate: { prefers: aggregator("seq-mean-token-mean"), about: "seq-mean-token-mean: 1/N an answer" },
      },
    };
  },
};
