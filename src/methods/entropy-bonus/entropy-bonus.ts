/**
 * Entropy bonus (Williams and Peng 1991, Connection Science 3; Mnih et al. 2016, A3C, arXiv 1602.01783, sec. 4).
 *
 *     loss <- loss - coef sum_t w_t H_t          H_t: entropy in nats of the distribution before token t, w: weights of the aggregation
 *
 * For composition, as in `grpo+entropy-bonus`: a further term of the loss over all scored answers, groups without signal
 * included. Our choice: 0.001, where A3C has 0.01 for games: a vocabulary is large, and its tail cheap to raise.
 */
import { z } from "zod";
import { entropyTerm } from "../../losses/entropy.js";
import type { MethodModule } from "../contract.js";
import { training } from "../needs.js";

export const entropyBonusOptions = z.strictObject({
  coef: z.number().default(0.001).describe("Weight of the entropy; negative: entropy is punished."),
});
export type EntropyBonusOptions = z.output<typeof entropyBonusOptions>;

export const entropyBonus: MethodModule<EntropyBonusOptions, null> = {
  name: "entropy-bonus",
  paper: "Mnih et al. 2016, A3C, arXiv 1602.01783",
  options: entropyBonusOptions,
  initial: null,
  make({ coef }) {
    return {
      name: "entropy-bonus",
      needs: [training, { for: "the gradient of entropies", oneOf: [{ capabilities: ["train.entropy"] }] }],
      slots: {
        terms: { about: `${coef} entropy`, run: (_, { weights }) => [entropyTerm({ coefficient: coef, weights })] },
      },
    };
  },
};
