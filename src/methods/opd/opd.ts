/**
 * On-policy distillation: the reverse KL to a teacher on the policy's own answers (Agarwal et al. 2024, GKD, arXiv 2306.13649;
 * as a policy gradient: Lu and Thinking Machines 2025, "On-Policy Distillation").
 *
 *     A_t  = -kl_coef (o_t - f_t)          o at the weights of the rollout, f under the teacher: minus the reverse KL, on the token drawn
 *     loss = -mean_t r_t A_t               r_t = exp(l_t - o_t)
 *
 * No token answers for what follows it (discount 0, as in the second source). Our choice: with reward_coef the group's
 * advantage (R - mean) is added to every token; at 0 verdicts are recorded and teach nothing, so unscored answers count too.
 */
import { z } from "zod";
import { aggregator } from "../../losses/aggregate.js";
import { importance } from "../../losses/importance.js";
import { groupAdvantages } from "../advantages.js";
import type { Method, MethodModule } from "../contract.js";
import { Credit, rowsOf } from "../credit.js";
import { referenceLogp } from "../kl.js";
import { training } from "../needs.js";

export const opdOptions = z.strictObject({
  kl_coef: z.number().gt(0).default(1).describe("Weight of the reverse KL to the role `teacher`."),
  reward_coef: z.number().min(0).default(0).describe("Weight of the group's advantage R - mean beside it."),
});
export type OpdOptions = z.output<typeof opdOptions>;

export const opd: MethodModule<OpdOptions, null> = {
  name: "opd",
  paper: "Agarwal et al. 2024, GKD, arXiv 2306.13649",
  options: opdOptions,
  initial: null,
  make({ kl_coef, reward_coef }): Method {
    return {
      name: "opd",
      needs: [training, { for: "the teacher's log-probs", oneOf: [{ capabilities: ["score", "roles"], roles: ["teacher"] }] }],
      signal: "beyond",
      slots: {
        ...(reward_coef === 0 ? { reward: { owns: (batch) => ({ values: rowsOf(batch).map(() => 0) }), about: "none: the teacher alone" } } : {}),
        credit: {
          owns: async (batch, rewards, lab) => {
            const teacher = await referenceLogp(batch, lab, "teacher");
            const shared = reward_coef === 0 ? undefined : groupAdvantages(batch, rewards, { std: "none", eps: 1 });
            const tokens = rowsOf(batch).map((row, i) => {
              const old = (row.old ?? row.behaviour).values;
              return old.map((logp, t) => kl_coef * (teacher[i][t] - logp) + (shared === undefined ? 0 : reward_coef * shared[i]));
            });
            return Credit.zero(batch).with("token", tokens);
          },
          about: `${kl_coef} (teacher's log-prob - own)${reward_coef === 0 ? "" : ` + ${reward_coef} (R - mean of the group)`}`,
        },
        loss: { prefers: importance(), about: "ratio A, without a trust region" },
        aggregate: { prefers: aggregator("token-mean"), about: "token-mean" },
        observe: {
          run: ({ batch, credit, mask }): { [name: string]: number } => {
            if (reward_coef !== 0) return {};
            const kls = rowsOf(batch).flatMap((_, i) => [...credit.token[i]].filter((_, t) => mask.policy[i][t] === 1).map((a) => -a / kl_coef));
            return kls.length === 0 ? {} : { kl_teacher: kls.reduce((sum, kl) => sum + kl, 0) / kls.length };
          },
        },
      },
    };
  },
};
