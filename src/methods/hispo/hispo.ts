/**
 * HISPO: importance correction by segments that end at peaks of the entropy, between GRPO's tokens and GSPO's answers (arXiv 2609.15471).
 *
 *     H~_1 = H_1,  H~_t = a H_t + (1 - a) H~_(t-1)                H: entropies of the rollout, which stay as they are
 *     peaks: 1 < t < T, H~_t >= q_H quantile of the answer, H~_(t-1) <= H~_t > H~_(t+1), largest of the window Delta around it,
 *            from left to right at least Delta apart; a segment S_k ends with each, and the last with the answer
 *     w_k  = softmax_k (mean of H over S_k)                       saliency
 *     m_k  = exp(mean over S_k of l_t - o_t)                      l now, o at the weights of the rollout
 *     loss = -(1/N) sum_i sum_k w_k min(m_k A_i, clip(m_k, 1 - clip_low, 1 + clip_high) A_i)
 *
 * The formulas and Delta = 64 are the paper's; A_i is GRPO's. Our choice: a = 0.3, q_H = 0.8 and both clips 0.2, which it
 * leaves open; observed tokens are left out before segments are cut; tokens that another method masks leave their
 * segment's mean, and a segment without any the softmax. Answers of some 30 tokens want a window of about 4.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { clip } from "../../losses/clip.js";
import type { MethodModule, OneSlots } from "../contract.js";
import { rowsOf } from "../credit.js";
import { training } from "../needs.js";
import { controls, entropiesOf, saliency, segmentsNote, segmentsOf } from "./segments.js";

export const hispoOptions = z.strictObject({
  window: z.int().min(1).default(64).describe("Tokens within which there is one peak (Delta)."),
  smoothing: z.number().gt(0).max(1).default(0.3).describe("Weight of a token's own entropy in the moving average (alpha)."),
  quantile: z.number().min(0).max(1).default(0.8).describe("Quantile of an answer's smoothed entropies that a peak reaches (q_H)."),
  clip_low: z.number().min(0).default(0.2).describe("Distance from 1 below which the ratio of a bad answer's segment loses its gradient."),
  clip_high: z.number().min(0).default(0.2).describe("Distance from 1 above which the ratio of a good answer's segment loses its gradient."),
  control: z
    .enum(controls)
    .default("none")
    .describe("For comparison: `shuffled` has an answer's entropies at other tokens of it, `whole` takes an answer for one segment (GSPO)."),
});
export type HispoOptions = z.output<typeof hispoOptions>;

const means = aggregator("seq-mean-token-mean");

export const hispo: MethodModule<HispoOptions, null> = {
  name: "hispo",
  paper: "P06 HISPO, arXiv 2609.15471",
  options: hispoOptions,
  decides: { clip_low: "loss", clip_high: "loss" },
  initial: null,
  make(options) {
    const { clip_low, clip_high, control } = options;
    const unit = (row: Parameters<typeof segmentsOf>[0]): Int32Array => segmentsOf(row, options, control);

    /** Weights of which those of a segment sum to its saliency over the number of answers. */
    const salient: OneSlots["aggregate"] = (batch, mask) => {
      const rows = rowsOf(batch);
      return means(batch, mask).map((weights, i) => {
        const row = rows[i];
        const segments = unit(row);
        const { parts, sum, sizes } = saliency(segments, entropiesOf(row, control), mask.tokens[i]);
        const tokens = sizes.reduce((a, b) => a + b, 0);
        return weights.map((w, t) => (w === 0 ? 0 : (w * (parts[segments[t]] * tokens)) / (sum * sizes[segments[t]])));
      });
    };

    const about = control === "whole" ? "the answer" : "the segment";
    return {
      name: "hispo",
      needs: [training],
      writes: [segmentsNote],
      slots: {
        loss: { owns: clip({ clip_low, clip_high, unit }), about: `clip(ratio of ${about}, 1 - ${clip_low}, 1 + ${clip_high})` },
        aggregate: { owns: salient, about: "saliency of the segment, 1/N an answer" },
        observe: {
          run: ({ batch, mask }): { [name: string]: number } => {
            const rows = rowsOf(batch).filter((_, i) => mask.rows[i] === 1);
            if (rows.length === 0) return {};
            return { "hispo.segments": rows.reduce((sum, row) => sum + (segmentsNote.get(row)?.length ?? 1), 0) / rows.length };
          },
        },
      },
    };
  },
};
