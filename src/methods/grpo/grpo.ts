/**
 * GRPO: group relative policy optimization (Shao et al. 2024, DeepSeekMath, arXiv 2402.03300).
 *
 *     A_i  = (R_i - mean R) / (std R + eps)                                  over the scored members of the group (sec. 4.1.2)
 *     r_t  = exp(l_t - o_t)                                                  l now, o at the weights of the rollout
 *     loss = -(1/N) sum_i (1/|y_i|) sum_t [ min(r_t A_i, clip(r_t, 1 - clip_low, 1 + clip_high) A_i) - kl_coef KL_t ]     (eq. 3)
 *     KL_t = exp(f_t - l_t) - (f_t - l_t) - 1                                f under the reference (eq. 4)
 *
 * Our choice: unscored members leave mean, deviation and N (coefficient 0, masked); a group whose rewards are all equal, or
 * of which one member is scored, has A = 0 exactly; statistics count episodes, not rows (C2); kl_coef is 0 unless set, and
 * where it is, the KL acts on all scored trajectories, groups without signal included.
 */
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import type { Batch } from "../../core/trajectory.js";
import { aggregations, aggregator } from "../../losses/aggregate.js";
import { clip } from "../../losses/clip.js";
import { klEstimators } from "../../losses/kl.js";
import { fixedGroups, plainAnswers, verdictReward } from "../base.js";
import type { Method, MethodModule, Rewards } from "../contract.js";
import { Credit, perGroup, rowsByGroup, rowsOf } from "../credit.js";
import { type EpochsState, shuffledEpochs } from "../epochs.js";
import { klSlots } from "../kl.js";
import { episodesOf } from "../rewards.js";

export const grpoOptions = z.strictObject({
  clip_low: z.number().min(0).default(0.2).describe("Distance from 1 below which the ratio of a bad answer's token loses its gradient."),
  clip_high: z.number().min(0).default(0.2).describe("Distance from 1 above which the ratio of a good answer's token loses its gradient."),
  dual_clip: z.number().gt(1).optional().describe("Largest ratio that a bad answer's token still answers for (dual clip); absent: none."),
  std: z
    .enum(["sample", "population", "none"])
    .default("sample")
    .describe("Deviation that advantages are divided by: with divisor G - 1, with divisor G, or not at all."),
  eps: z.number().gt(0).default(1e-4).describe("Added to the deviation."),
  kl_coef: z.number().min(0).default(0).describe("Weight of the KL to the role `reference`; 0 needs no reference."),
  kl_estimator: z.enum(klEstimators).default("k3").describe("k1, k2 or k3; k1 in the loss has a gradient of expectation zero."),
  kl_place: z
    .enum(["loss", "reward"])
    .default("loss")
    .describe("Where the KL goes: a term of the loss, or a penalty in the reward at the log-probs of the rollout."),
  aggregation: z.enum(aggregations).default("seq-mean-token-mean").describe("How tokens are averaged into one loss."),
  aggregation_constant: z.number().gt(0).default(1).describe("Fixed divisor of seq-mean-token-sum and token-sum."),
});
export type GrpoOptions = z.output<typeof grpoOptions>;

/** Advantages of the rows of one batch: (R - mean) / (std + eps) over the scored episodes of each group; 0 for unscored rows. [rows] */
export function groupAdvantages(batch: Batch, rewards: Rewards, options: Pick<GrpoOptions, "std" | "eps">): Float64Array {
  const rows = rowsOf(batch);
  const advantages = perGroup(batch, (indices) => {
    const episodes = episodesOf(indices, rows, rewards);
    const returns = [...episodes.values()];
    const mean = returns.reduce((sum, r) => sum + r, 0) / returns.length;
    const spread = deviation(returns, mean, options.std);
    return indices.map((i) => {
      const own = episodes.get((rows[i] as (typeof rows)[number]).episode);
      if (own === undefined || spread === undefined) return 0;
      return options.std === "none" ? own - mean : (own - mean) / (spread + options.eps);
    });
  });
  return Float64Array.from(advantages);
}

/** undefined where a group carries no signal: fewer than two scored episodes, or all equal (tested exactly, not by a sum that rounding spoils). */
function deviation(returns: readonly number[], mean: number, kind: GrpoOptions["std"]): number | undefined {
  if (returns.length < 2 || returns.every((r) => r === returns[0])) return undefined;
  const squares = returns.reduce((sum, r) => sum + (r - mean) ** 2, 0);
  return Math.sqrt(squares / (kind === "sample" ? returns.length - 1 : returns.length));
}

/** Shares of groups without signal, by cause: `groups.equal`, `groups.one_scored`, `groups.unscored`. */
export function groupCauses(batch: Batch, rewards: Rewards): { [name: string]: number } {
  const rows = rowsOf(batch);
  const counts = { "groups.equal": 0, "groups.one_scored": 0, "groups.unscored": 0 };
  for (const indices of rowsByGroup(batch)) {
    const returns = [...episodesOf(indices, rows, rewards).values()];
    if (returns.length === 0) counts["groups.unscored"]++;
    else if (returns.length === 1) counts["groups.one_scored"]++;
    else if (returns.every((r) => r === returns[0])) counts["groups.equal"]++;
  }
  return Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, n / Math.max(1, batch.groups.length)]));
}

/** GRPO as a method; it answers every slot that others leave open. */
export const grpo: MethodModule<GrpoOptions, EpochsState> = {
  name: "grpo",
  paper: "Shao et al. 2024, DeepSeekMath, arXiv 2402.03300",
  options: grpoOptions,
  initial: { cursor: 0 },
  make(options, state): Method {
    const { clip_low, clip_high, dual_clip, std, aggregation, aggregation_constant } = options;
    const kl = klSlots({ coefficient: options.kl_coef, estimator: options.kl_estimator, place: options.kl_place });
    return {
      name: "grpo",
      needs: [{ for: "training", oneOf: [{ capabilities: ["sample", "train"] }] }, ...kl.needs],
      check(settings) {
        if (settings.group >= 2) return;
        throw new ConfigError({
          place: "group",
          cause: `it is ${settings.group}, and GRPO compares the answers to one problem with each other: alone, an answer has advantage 0 and nothing is learnt`,
          mend: "set group to 2 or more (8 is usual), or take a method without a group baseline",
        });
      },
      slots: {
        select: { prefers: shuffledEpochs(state), about: "shuffled epochs" },
        allocate: { prefers: fixedGroups, about: "a fixed number of answers a problem" },
        expand: { prefers: plainAnswers, about: "one plain answer" },
        reward: { prefers: verdictReward, about: "accept 1, reject 0" },
        credit: {
          prefers: (batch, rewards) => Credit.zero(batch).with("trajectory", groupAdvantages(batch, rewards, options)),
          about: std === "none" ? "R - mean of the group" : `(R - mean) / (${std} deviation + ${options.eps}) of the group`,
        },
        loss: { prefers: clip({ clip_low, clip_high, dual_clip }), about: `clip(ratio, 1 - ${clip_low}, 1 + ${clip_high})` },
        aggregate: { prefers: aggregator(aggregation, aggregation_constant), about: aggregation },
        parametrisation: { prefers: { module: "identity", options: {} }, about: "all weights" },
        optimizer: { prefers: { module: "adamw", options: {} }, about: "AdamW" },
        observe: { run: (view) => groupCauses(view.batch, view.rewards) },
        ...kl.slots,
      },
    };
  },
};
