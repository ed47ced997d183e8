/**
 * GPG: group policy gradient (Chu et al. 2025, arXiv 2504.02546, sec. 2).
 *
 *     A_i   = alpha (R_i - mean R) / F                            F = 1, or the deviation of the group (option norm)
 *     alpha = B / (B - M)                                         B groups, M of them without signal
 *     loss  = -(1 / sum_i |y_i|) sum_i sum_t A_i l_t
 *
 * The policy gradient itself, without ratio, reference or critic. alpha makes up for groups that add tokens to the mean and
 * nothing to the gradient (the paper's accurate gradient estimation). Our choice: groups of which fewer than two answers are
 * scored count in M too. The paper's threshold, below which it collects further groups, is dapo's dynamic sampling here.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { reinforce } from "../../losses/weighted.js";
import { comparesAnswers, groupAdvantages, groupCounts } from "../advantages.js";
import type { MethodModule } from "../contract.js";
import { Credit } from "../credit.js";
import { training } from "../needs.js";

export const gpgOptions = z.strictObject({
  norm: z.enum(["none", "sample"]).default("none").describe("What advantages are divided by: nothing, or the group's deviation (divisor G - 1)."),
  rescale: z.boolean().default(true).describe("Multiply advantages by the share of groups with signal, inverted."),
});
export type GpgOptions = z.output<typeof gpgOptions>;

export const gpg: MethodModule<GpgOptions, null> = {
  name: "gpg",
  paper: "Chu et al. 2025, GPG, arXiv 2504.02546",
  options: gpgOptions,
  decides: { norm: "credit", rescale: "credit" },
  initial: null,
  make({ norm, rescale }) {
    return {
      name: "gpg",
      needs: [training],
      slots: {
        credit: {
          prefers(batch, rewards) {
            const advantages = groupAdvantages(batch, rewards, { std: norm, eps: 1e-6 });
            const { varied } = groupCounts(batch, rewards);
            const alpha = rescale && varied > 0 ? batch.groups.length / varied : 1;
            return Credit.zero(batch).with(
              "trajectory",
              advantages.map((a) => alpha * a),
            );
          },
          about: `${rescale ? "B / (B - M) " : ""}(R - mean)${norm === "sample" ? " / sample deviation" : ""} of the group`,
          check: comparesAnswers("GPG"),
        },
        loss: { prefers: reinforce(), about: "A log-prob, without a ratio" },
        aggregate: { prefers: aggregator("token-mean"), about: "token-mean" },
      },
    };
  },
};
