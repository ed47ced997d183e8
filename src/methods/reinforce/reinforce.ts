/**
 * REINFORCE (Williams 1992, "Simple statistical gradient-following algorithms", Machine Learning 8, sec. 4, eq. 11).
 *
 *     A_i  = R_i - b                           b: option baseline
 *     loss = -(1/N) sum_i A_i sum_t l_t        l now; the gradient is that of the expected reward where l is the policy that sampled
 *
 * Our choice: b = 0, or the mean return of the batch's scored episodes, an answer's own included; unscored answers leave b and
 * N. No ratio corrects for further updates on the same batch. It learns from groups in which all rewards are equal.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { reinforce as surrogate } from "../../losses/weighted.js";
import { meanOf, returnsLess } from "../advantages.js";
import type { MethodModule } from "../contract.js";
import { Credit } from "../credit.js";
import { training } from "../needs.js";

export const reinforceOptions = z.strictObject({
  baseline: z.enum(["none", "batch"]).default("none").describe("What is subtracted from a return: nothing, or the mean return of the batch."),
});
export type ReinforceOptions = z.output<typeof reinforceOptions>;

export const reinforce: MethodModule<ReinforceOptions, null> = {
  name: "reinforce",
  paper: "Williams 1992, Machine Learning 8, 229-256",
  options: reinforceOptions,
  decides: { baseline: "credit" },
  initial: null,
  make({ baseline }) {
    return {
      name: "reinforce",
      needs: [training],
      signal: "beyond",
      slots: {
        credit: {
          prefers: (batch, rewards) => Credit.zero(batch).with("trajectory", returnsLess(batch, rewards, baseline === "batch" ? meanOf : () => 0)),
          about: baseline === "batch" ? "R - mean of the batch" : "R",
        },
        loss: { prefers: surrogate(), about: "A log-prob, without a ratio" },
        aggregate: { prefers: aggregator("seq-mean-token-sum"), about: "seq-mean-token-sum" },
      },
    };
  },
};
