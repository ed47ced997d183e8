/**
 * PPO: proximal policy optimization with a critic (Schulman et al. 2017, arXiv 1707.06347).
 *
 *     A_t    = generalised advantage of the critic's values, gamma and lambda          (arXiv 1506.02438; src/methods/gae.ts)
 *     r_t    = exp(l_t - o_t)
 *     loss   = -mean_t min(r_t A_t, clip(r_t, 1 - clip_low, 1 + clip_high) A_t) + value_coef mean_t (V_t - G_t)^2 / 2     (eq. 7, 9)
 *     G_t    = A_t + V_t with critic_lambda
 *
 * The critic is a role of its own with a value head, which starts as the policy does, or a value head on the policy. Length-adaptive
 * lambda and critic_lambda 1 are VAPO's (arXiv 2504.05118). Our choice: answers that the budget cut off end there with their
 * verdict (`truncated: terminal`), since that is their last word; advantages are whitened over the batch's tokens as reference
 * codes do. With `policy: frozen` the critic alone learns (value pre-training, as a stage before the other).
 */
import { z } from "zod";
import type { Batch } from "../../core/trajectory.js";
import { aggregator } from "../../losses/aggregate.js";
import { clip } from "../../losses/clip.js";
import { readStatistics } from "../../losses/contract.js";
import { explainedVariance, valueTerm } from "../../losses/value.js";
import type { Lab, Method, MethodModule } from "../contract.js";
import { Credit, rowsOf } from "../credit.js";
import { lengthAdaptiveLambda, tokenAdvantages } from "../gae.js";
import { training } from "../needs.js";

export const ppoOptions = z.strictObject({
  clip_low: z.number().min(0).default(0.2).describe("Distance from 1 below which the ratio of a bad token loses its gradient."),
  clip_high: z.number().min(0).default(0.2).describe("Distance from 1 above which the ratio of a good token loses its gradient."),
  gamma: z.number().min(0).max(1).default(1).describe("Discount a token."),
  lambda: z.number().min(0).max(1).default(0.95).describe("Of the advantages: 0 trusts the critic, 1 the return."),
  length_adaptive: z
    .number()
    .gt(0)
    .optional()
    .describe("alpha: lambda becomes 1 - 1 / (alpha tokens), within 0 and 1, instead (VAPO: 0.05; 1 for short answers)."),
  critic_lambda: z.number().min(0).max(1).default(1).describe("Of the critic's targets."),
  critic: z.enum(["role", "head"]).default("role").describe("The role `critic`, with weights and optimizer of its own, or a value head on the policy."),
  value_coef: z.number().min(0).default(0.5).describe("Weight of the value loss."),
  value_clip: z.number().gt(0).optional().describe("How far a value may move in one batch before its loss stops pulling; absent: any way."),
  whiten: z.boolean().default(true).describe("Advantages less their mean, over their deviation, in the batch."),
  truncated: z.enum(["terminal", "bootstrap"]).default("terminal").describe("What follows an answer that the budget cut off: nothing, or the critic's value."),
  policy: z.enum(["train", "frozen"]).default("train").describe("frozen: the critic alone learns."),
});
export type PpoOptions = z.output<typeof ppoOptions>;

const critic = "critic";

/** Values before each token of each row and after the last, at the weights of the rollout. [rows][tokens + 1] */
async function valuesOf(batch: Batch, lab: Lab, role: string): Promise<Float64Array[]> {
  const sequences = rowsOf(batch).map(({ trainedUnder: context, response }) => ({ context, response, weights: { role }, temperature: 1 }));
  return (await lab.score(sequences, { values: true })).map(({ values }) => values as Float64Array);
}

/** (A - mean) / (deviation + 1e-8) over the tokens that count. */
export function whitened(advantages: readonly Float64Array[], masks: readonly Uint8Array[]): Float64Array[] {
  const all = advantages.flatMap((row, i) => [...row].filter((_, t) => masks[i][t] === 1));
  const mean = all.reduce((sum, a) => sum + a, 0) / Math.max(1, all.length);
  const spread = Math.sqrt(all.reduce((sum, a) => sum + (a - mean) ** 2, 0) / Math.max(1, all.length));
  return advantages.map((row, i) => row.map((a, t) => (masks[i][t] === 1 ? (a - mean) / (spread + 1e-8) : 0)));
}

export const ppo: MethodModule<PpoOptions, null> = {
  name: "ppo",
  paper: "Schulman et al. 2017, arXiv 1707.06347",
  options: ppoOptions,
  decides: { clip_low: "loss", clip_high: "loss" },
  initial: null,
  make(options): Method {
    const { gamma, lambda, length_adaptive, critic_lambda, clip_low, clip_high, truncated } = options;
    const own = options.critic === "role";
    const role = own ? critic : "policy";
    const policyLambda = (steps: number) => (length_adaptive === undefined ? lambda : lengthAdaptiveLambda(length_adaptive, steps));
    /** What `credit` found, for `terms` of the same batch. */
    const found = new WeakMap<Batch, { readonly old: readonly Float64Array[]; readonly targets: readonly Float64Array[] }>();
    return {
      name: "ppo",
      needs: [training, { for: "the critic", oneOf: [{ capabilities: ["score.values", "train.values"], ...(own ? { roles: [critic] } : {}) }] }],
      roles: [{ name: role, valueHead: true, ...(own ? { trainable: true } : {}) }],
      signal: "beyond",
      slots: {
        credit: {
          owns: async (batch, rewards, lab) => {
            const values = await valuesOf(batch, lab, role);
            const common = { gamma, truncated };
            const forCritic = tokenAdvantages(batch, rewards, values, { ...common, lambda: () => critic_lambda });
            found.set(batch, { old: values.map((row) => row.slice(0, -1)), targets: forCritic.map((row, i) => row.map((a, t) => a + values[i][t])) });
            if (options.policy === "frozen") return Credit.zero(batch);
            const advantages = tokenAdvantages(batch, rewards, values, { ...common, lambda: policyLambda });
            const masks = rowsOf(batch).map(({ reward, loss }, i) => reward.map((m, t) => (rewards.values[i] === undefined ? 0 : m & loss[t])));
            return Credit.zero(batch).with("token", options.whiten ? whitened(advantages, masks) : advantages);
          },
          about: `generalised advantages, lambda ${length_adaptive === undefined ? lambda : `1 - 1 / (${length_adaptive} tokens)`}, of ${own ? "the critic" : "the policy's value head"}`,
        },
        loss: { prefers: clip({ clip_low, clip_high }), about: `clip(ratio, 1 - ${clip_low}, 1 + ${clip_high})` },
        aggregate: { prefers: aggregator("token-mean"), about: "token-mean" },
        terms: {
          about: `${options.value_coef} squared error of the values`,
          run: (batch, { weights }) => {
            const { old, targets } = found.get(batch) as { old: Float64Array[]; targets: Float64Array[] };
            const rows = rowsOf(batch);
            const sequence = (i: number) => ({ context: rows[i].trainedUnder, response: rows[i].response, weights: { role }, temperature: 1 });
            return [
              valueTerm({
                coefficient: options.value_coef,
                targets,
                old,
                weights: weights.map((row, i) => row.map((w, t) => (rows[i].reward[t] === 1 ? w : 0))),
                ...(options.value_clip === undefined ? {} : { clip: options.value_clip }),
                ...(own ? { on: { set: `role:${critic}` as const, sequence } } : {}),
              }),
            ];
          },
        },
        observe: {
          run: ({ statistics }): { [name: string]: number } => {
            const explained = explainedVariance(readStatistics(statistics));
            return explained === undefined ? {} : { value_explained: explained };
          },
        },
      },
    };
  },
};
