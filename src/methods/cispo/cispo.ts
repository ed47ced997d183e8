/**
 * CISPO: clipped importance-sampling weights (MiniMax 2025, MiniMax-M1, arXiv 2506.13585).
 *
 *     w_t  = sg[clip(r_t, 1 - clip_low, 1 + clip_high)],   r_t = exp(l_t - o_t)                                        (eq. 5)
 *     loss = -(1 / sum_i |y_i|) sum_i sum_t w_t A_i l_t                                                                (eq. 4)
 *
 * The weight is bounded, not the update: no token loses its gradient. A_i is GRPO's. The paper has no lower bound and does not
 * print its upper one; 4, a weight of at most 5, is our choice (ScaleRL, arXiv 2510.13786, found little difference around it).
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { cispo as surrogate } from "../../losses/weighted.js";
import type { MethodModule } from "../contract.js";
import { training } from "../needs.js";

export const cispoOptions = z.strictObject({
  clip_low: z.number().min(0).max(1).optional().describe("Distance from 1 of the smallest weight; absent: no lower bound, as in the paper."),
  clip_high: z.number().min(0).default(4).describe("Distance from 1 of the largest weight."),
});
export type CispoOptions = z.output<typeof cispoOptions>;

export const cispo: MethodModule<CispoOptions, null> = {
  name: "cispo",
  paper: "MiniMax 2025, MiniMax-M1, arXiv 2506.13585",
  options: cispoOptions,
  decides: { clip_low: "loss", clip_high: "loss" },
  initial: null,
  make({ clip_low, clip_high }) {
    return {
      name: "cispo",
      needs: [training],
      slots: {
        loss: {
          prefers: surrogate({ clip_high, ...(clip_low === undefined ? {} : { clip_low }) }),
          about: `A log-prob, weighed by the ratio in [${clip_low === undefined ? 0 : `1 - ${clip_low}`}, 1 + ${clip_high}]`,
        },
        aggregate: { prefers: aggregator("token-mean"), about: "token-mean" },
      },
    };
  },
};
