/**
 * TIS: truncated importance sampling between sampler and trainer (Yao et al. 2025, "Your efficient RL framework secretly brings
 * you off-policy RL training"; truncation after Ionides 2008, J. Comput. Graph. Stat. 17, 295-311).
 *
 *     A_t <- min(exp(o_t - m_t), cap) A_t          o: the trainer's log-prob of a sampled token at the weights of the rollout, m: the sampler's
 *
 * For composition, as in `grpo+tis`: it scores the rollouts once more with the trainer, at the weights that the batch is
 * about to train, so that the ratio of the loss is between trainer and trainer, and weighs each coefficient by what the
 * sampler was off by. Under overlap that is also the distance of the weights: the ratio's centre is then the present policy
 * and the cap bounds what stale answers may weigh (decoupled, as Hilton et al. 2022, arXiv 2110.00641, have it). `limits.gap` still stops a run whose sampler
 * is far off: raise it where the correction is meant to carry that. Forced and observed tokens have weight 1, and so have
 * answers that were sampled under another context: what that changed is the matter of the method that did it.
 */
import { z } from "zod";
import type { Batch, Trajectory } from "../../core/trajectory.js";
import type { MethodModule } from "../contract.js";
import { rowsOf } from "../credit.js";
import { training } from "../needs.js";
import { sameContext, withOld } from "../old.js";

export const tisOptions = z.strictObject({
  cap: z.number().gt(0).default(2).describe("Largest weight of a token."),
});
export type TisOptions = z.output<typeof tisOptions>;

/** min(exp(old - behaviour), cap) for sampled tokens, 1 for the others and for an answer that was sampled under another context. [tokens] */
export function truncatedWeights({ old, behaviour, sampled, sampledUnder, trainedUnder }: Trajectory, cap: number): Float64Array {
  const told = sameContext(sampledUnder, trainedUnder);
  return behaviour.values.map((m, t) => (told && sampled[t] ? Math.min(Math.exp(((old ?? behaviour).values[t] as number) - m), cap) : 1));
}

/** Mean weight over the sampled tokens of a batch, and the share that the cap cut. */
function weightMetrics(batch: Batch, cap: number): { [name: string]: number } {
  let [tokens, sum, cut] = [0, 0, 0];
  for (const row of rowsOf(batch)) {
    truncatedWeights(row, cap).forEach((weight, t) => {
      if (!row.sampled[t]) return;
      tokens++;
      sum += weight;
      if (weight === cap) cut++;
    });
  }
  return tokens === 0 ? {} : { "tis.weight": sum / tokens, "tis.truncated": cut / tokens };
}

export const tis: MethodModule<TisOptions, null> = {
  name: "tis",
  paper: "Yao et al. 2025, Your efficient RL framework secretly brings you off-policy RL training",
  options: tisOptions,
  initial: null,
  make({ cap }) {
    return {
      name: "tis",
      needs: [training, { for: "the trainer's log-probs of what was sampled", oneOf: [{ capabilities: ["score"] }] }],
      slots: {
        enrich: {
          late: true,
          about: "the trainer's log-probs of each answer",
          run: (groups, step) => withOld(groups, step, ({ purpose, old }) => purpose === "train" && old === undefined),
        },
        shape: {
          level: "token",
          keeps: ["sign", "zero"],
          about: `times min(trainer / sampler, ${cap})`,
          run: (batch, credit) =>
            credit.scaled(
              "token",
              rowsOf(batch).map((row) => truncatedWeights(row, cap)),
            ),
        },
        observe: { run: ({ batch }) => weightMetrics(batch, cap) },
      },
    };
  },
};
