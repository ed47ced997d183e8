/**
 * DAPO: decoupled clip and dynamic sampling policy optimization (Yu et al. 2025, arXiv 2503.14476).
 *
 *     loss = -(1 / sum_i |y_i|) sum_i sum_t min(r_t A_i, clip(r_t, 1 - clip_low, 1 + clip_high) A_i)              (eq. 8, 10, 12)
 *     a batch holds groups with 0 < number of right answers < G only                                             (eq. 8, 11)
 *     R_i <- R_i + p(|y_i|),  p(n) = 0 to L - C, then ((L - C) - n) / C down to -1 at L                              (eq. 13)
 *
 * L is max_tokens, C the overlong buffer. A_i is GRPO's (eq. 9). The paper drops groups by accuracy, we by the verdicts' rewards,
 * before the punishment. Our choice: as many new problems as are missing are drawn in each refill, `max_refills` times at
 * most; then the batch is trained as it is, and where no group qualifies the first ones come through, so that the run can
 * tell why it learns nothing. What was dropped is booked as discarded tokens. Where another method owns the allocation, it
 * draws what is replaced and what replaces it.
 */
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import type { Group } from "../../core/trajectory.js";
import { trained } from "../../core/trajectory.js";
import { rewardOf } from "../../core/verdict.js";
import { aggregator } from "../../losses/aggregate.js";
import { clip } from "../../losses/clip.js";
import { comparesAnswers, varied } from "../advantages.js";
import { fixedGroups } from "../base.js";
import type { Cell, MethodModule, OneSlots, Settings, Step } from "../contract.js";
import { rowsOf } from "../credit.js";
import { training } from "../needs.js";

export const dapoOptions = z.strictObject({
  clip_low: z.number().min(0).default(0.2).describe("Distance from 1 below which the ratio of a bad answer's token loses its gradient."),
  clip_high: z.number().min(0).default(0.28).describe("Distance from 1 above which the ratio of a good answer's token loses its gradient."),
  dynamic_sampling: z.boolean().default(true).describe("Replace groups in which all rewards are equal by groups of further problems."),
  max_refills: z.int().min(0).default(10).describe("Rounds in which groups are replaced, at most, in one step."),
  overlong_punishment: z.number().min(0).default(1).describe("Largest punishment of a long answer; 0: none."),
  overlong_buffer: z
    .int()
    .min(1)
    .optional()
    .describe("Tokens before max_tokens over which the punishment grows; absent: a fifth of max_tokens, as the paper's 4096 of 20480."),
});
export type DapoOptions = z.output<typeof dapoOptions>;

/** Refills of the last step, and the groups that they replaced. */
export type DapoState = { readonly refills: number; readonly dropped: number };

/** Draws groups, each batch of them by `inner`, until there are enough in which rewards differ, or `most` refills are used up. */
export function dynamicSampling(most: number, state: Cell<DapoState>, inner: OneSlots["allocate"] = fixedGroups): OneSlots["allocate"] {
  const informs = (group: Group): boolean => varied(trained(group).flatMap(({ verdict }) => rewardOf(verdict) ?? []));
  const draw = async (step: Step, problems: number): Promise<Group[]> => {
    const groups: Group[] = [];
    for await (const group of inner.run(forProblems(step, problems))) groups.push(group);
    return groups;
  };
  return {
    appends: inner.appends,
    async *run(step) {
      const { problems } = step.settings;
      const first = await draw(step, problems);
      const kept = first.filter(informs);
      let drawn = first.length;
      let refills = 0;
      while (kept.length < problems && refills < most) {
        const round = await draw(step, problems - kept.length);
        if (round.length === 0) break;
        refills++;
        drawn += round.length;
        kept.push(...round.filter(informs));
      }
      const batch = kept.length > 0 ? kept : first;
      state.set({ refills, dropped: drawn - batch.length });
      yield* batch;
    },
  };
}

/** The same step for a batch of so many problems: proposals, draws and books stay those of the step. */
function forProblems(step: Step, problems: number): Step {
  return Object.create(step, { settings: { value: { ...step.settings, problems } } }) as Step;
}

/** The soft overlong punishment of an answer of n tokens: 0 up to L - C, then falling to -1 at L and staying there (eq. 13). */
export function overlong(n: number, budget: number, buffer: number): number {
  return Math.max(-1, Math.min(0, (budget - buffer - n) / buffer));
}

export const dapo: MethodModule<DapoOptions, DapoState> = {
  name: "dapo",
  paper: "Yu et al. 2025, DAPO, arXiv 2503.14476",
  options: dapoOptions,
  decides: { clip_low: "loss", clip_high: "loss", max_refills: "allocate" },
  initial: { refills: 0, dropped: 0 },
  make(options, state) {
    const { clip_low, clip_high, max_refills, overlong_punishment, overlong_buffer } = options;
    const bufferOf = ({ maxTokens }: Settings): number => overlong_buffer ?? Math.max(1, Math.round(maxTokens / 5));
    return {
      name: "dapo",
      needs: [training],
      ...(options.dynamic_sampling ? { signal: "reward-variance" } : {}),
      check({ maxTokens }) {
        if (overlong_punishment === 0 || (overlong_buffer ?? 0) <= maxTokens) return;
        const cause = `it is ${overlong_buffer}, and an answer has at most ${maxTokens} tokens`;
        throw new ConfigError({ place: "method dapo, option overlong_buffer", cause, mend: "lower it, or raise max_tokens" });
      },
      slots: {
        ...(options.dynamic_sampling
          ? {
              allocate: {
                prefers: dynamicSampling(max_refills, state),
                around: (owner) => dynamicSampling(max_refills, state, owner),
                about: `a fixed number of answers a problem; groups of equal rewards are replaced, ${max_refills} refills at most`,
                check: comparesAnswers("DAPO"),
              },
              observe: { run: () => ({ "dapo.refills": state.get().refills, "dapo.dropped": state.get().dropped }) },
            }
          : {}),
        ...(overlong_punishment > 0
          ? {
              adjust: {
                about: `${-overlong_punishment} at max_tokens, from ${overlong_buffer ?? "a fifth of it"} before`,
                run: (batch, rewards, { settings }) => ({
                  ...rewards,
                  values: rowsOf(batch).map(({ response }, i) => {
                    const value = rewards.values[i];
                    return value === undefined ? undefined : value + overlong_punishment * overlong(response.length, settings.maxTokens, bufferOf(settings));
                  }),
                }),
              },
            }
          : {}),
        loss: { prefers: clip({ clip_low, clip_high }), about: `clip(ratio, 1 - ${clip_low}, 1 + ${clip_high})` },
        aggregate: { prefers: aggregator("token-mean"), about: "token-mean" },
      },
    };
  },
};
