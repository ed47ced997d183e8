/**
 * SAPO: soft adaptive policy optimization (Gao et al. 2025, arXiv 2511.20347).
 *
 *     f_t  = (4 / tau_i) sigmoid(tau_i (r_t - 1)),   tau_i = tau_pos where A_i > 0, else tau_neg;   r_t = exp(l_t - o_t)
 *     loss = -(1/N) sum_i (1/|y_i|) sum_t f_t A_i
 *
 * A gate that fades with the ratio's distance from 1 takes the place of a bound; the slope at 1 is A_i for any tau. A_i is
 * GRPO's. The larger tau for bad answers damps the updates that push up the many tokens that were not drawn.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { softGate } from "../../losses/gate.js";
import type { MethodModule } from "../contract.js";
import { training } from "../needs.js";

export const sapoOptions = z.strictObject({
  tau_pos: z.number().gt(0).default(1).describe("Sharpness of the gate for tokens with a positive advantage; larger is narrower."),
  tau_neg: z.number().gt(0).default(1.05).describe("Sharpness of the gate for the others."),
});
export type SapoOptions = z.output<typeof sapoOptions>;

export const sapo: MethodModule<SapoOptions, null> = {
  name: "sapo",
  paper: "Gao et al. 2025, Soft Adaptive Policy Optimization, arXiv 2511.20347",
  options: sapoOptions,
  decides: { tau_pos: "loss", tau_neg: "loss" },
  initial: null,
  make({ tau_pos, tau_neg }) {
    return {
      name: "sapo",
      needs: [training],
      slots: {
        loss: { prefers: softGate({ tau_pos, tau_neg }), about: `soft gate of the ratio, tau ${tau_pos} and ${tau_neg}` },
        aggregate: { prefers: aggregator("seq-mean-token-mean"), about: "seq-mean-token-mean" },
      },
    };
  },
};
