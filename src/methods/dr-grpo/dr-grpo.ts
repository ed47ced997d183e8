/**
 * Dr. GRPO: GRPO without its two biases (Liu et al. 2025, Understanding R1-Zero-Like Training, arXiv 2503.20783, sec. 3).
 *
 *     A_i  = R_i - mean R                                        no division by the deviation, which favours easy and hard problems
 *     loss = -(1/(N L)) sum_i sum_t min(r_t A_i, clip(r_t) A_i)  L a constant, where GRPO's 1/|y_i| favours long wrong answers
 *
 * L is the response budget unless `constant` says otherwise, as in the paper. The clipped ratio is GRPO's; `grpo+dr-grpo` takes
 * its bounds from GRPO's options.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { comparesAnswers, groupAdvantages } from "../advantages.js";
import type { MethodModule } from "../contract.js";
import { Credit } from "../credit.js";
import { training } from "../needs.js";

export const drGrpoOptions = z.strictObject({
  constant: z.number().gt(0).optional().describe("What the sum over tokens is divided by; absent: the response budget max_tokens."),
});
export type DrGrpoOptions = z.output<typeof drGrpoOptions>;

export const drGrpo: MethodModule<DrGrpoOptions, null> = {
  name: "dr-grpo",
  paper: "Liu et al. 2025, Understanding R1-Zero-Like Training, arXiv 2503.20783",
  options: drGrpoOptions,
  decides: { constant: "aggregate" },
  initial: null,
  make({ constant }) {
    return {
      name: "dr-grpo",
      needs: [training],
      slots: {
        credit: {
          prefers: (batch, rewards) => Credit.zero(batch).with("trajectory", groupAdvantages(batch, rewards, { std: "none", eps: 0 })),
          about: "R - mean of the group",
          check: comparesAnswers("Dr. GRPO"),
        },
        aggregate: {
          prefers: (batch, mask, { maxTokens }) => aggregator("seq-mean-token-sum", constant ?? maxTokens)(batch, mask),
          about: `seq-mean-token-sum over ${constant ?? "max_tokens"}`,
        },
      },
    };
  },
};
