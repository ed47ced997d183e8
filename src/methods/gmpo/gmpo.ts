/**
 * GMPO: geometric-mean policy optimization (Zhao et al. 2025, arXiv 2507.20673).
 *
 *     loss = -(1/N) sum_i A_i (prod_t rho_t)^(1/|y_i|),   rho_t = min(r_t, exp(clip_high)) for A_i > 0, max(r_t, exp(-clip_low)) else
 *
 * with r_t = exp(l_t - o_t). Unlike the arithmetic mean of GRPO a single token's ratio moves an answer little, and unlike GSPO tokens are
 * bounded one by one, in the logarithm, before the mean. A_i is GRPO's; the bounds (e^-0.4, e^0.4) are the paper's.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { geometric } from "../../losses/geometric.js";
import type { MethodModule } from "../contract.js";
import { training } from "../needs.js";

export const gmpoOptions = z.strictObject({
  clip_low: z.number().min(0).default(0.4).describe("Distance below 0 of the smallest log-ratio of a bad answer's token."),
  clip_high: z.number().min(0).default(0.4).describe("Distance above 0 of the largest log-ratio of a good answer's token."),
});
export type GmpoOptions = z.output<typeof gmpoOptions>;

export const gmpo: MethodModule<GmpoOptions, null> = {
  name: "gmpo",
  paper: "Zhao et al. 2025, Geometric-Mean Policy Optimization, arXiv 2507.20673",
  options: gmpoOptions,
  decides: { clip_low: "loss", clip_high: "loss" },
  initial: null,
  make({ clip_low, clip_high }) {
    return {
      name: "gmpo",
      needs: [training],
      slots: {
        loss: { prefers: geometric({ clip_low, clip_high }), about: `geometric mean of clip(ratio, exp(-${clip_low}), exp(${clip_high}))` },
        aggregate: { prefers: aggregator("seq-mean-token-mean"), about: "seq-mean-token-mean: 1/N an answer" },
      },
    };
  },
};
