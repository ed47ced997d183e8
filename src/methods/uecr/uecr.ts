/**
 * UECR-GRPO: a verifier and a teacher in one update, in which the teacher ranks answers beside the verifier and moves credit
 * between an answer's tokens, but changes neither total nor sign of the verifier's credit (arXiv 2609.28385).
 *
 *     delta_t = log pi_T(y_t) - log pi_old(y_t)   both at temperature 1;  RT_i = mean over the answer of delta
 *     A_i     = (R_i + alpha RT_i - mean) / (s + eps)              s: population deviation of R + alpha RT in the group
 *     A_i     = Atask_i + alpha AT_i,  Atask_i = (R_i - mean R) / (s + eps)
 *     d_t     = tanh(sign(Atask_i) delta_t / (2 tau_gap)),  c_t = exp(-H_t / tau_entropy)     H: the teacher's entropy over the vocabulary
 *     q_t     = c_t (d_t - sum c d / sum c) / 2                    sums to 0, |q| <= 1
 *     A_i,t   = A_i + rho Atask_i q_t                              the verifier's part is Atask (1 + rho q), of the same sum and sign
 *
 * then the clipped loss, and kl_coef times k3 to the reference. The paper's, as a third party tells it, with alpha = 1 and a rollout
 * at temperature 0.7. Our choice: tau_gap = tau_entropy = 1, rho = 0.5, kl_coef = 0.001, eps = 1e-6. Where the rollout has
 * another temperature, the policy is asked once more for its log-probs at 1, of a batch that was drawn ahead at the weights
 * that train it. Answers of several rows have one RT. A group whose R are equal is still ranked by the teacher.
 */
import { z } from "zod";
import { note } from "../../core/note.js";
import { byGroup, comparesAnswers, groupAdvantages, meanOf } from "../advantages.js";
import type { Method, MethodModule, Rewards } from "../contract.js";
import { Credit, rowsOf } from "../credit.js";
import { klSlots } from "../kl.js";
import { training } from "../needs.js";
import { controls, redistribution, scoresOf, told } from "./teacher.js";

export const uecrOptions = z.strictObject({
  alpha: z.number().min(0).default(1).describe("Weight of the teacher's score of an answer beside its reward; 0: the teacher ranks nothing."),
  rho: z.number().min(0).lt(1).default(0.5).describe("How far the verifier's credit is shared out anew between tokens; 0: not at all."),
  tau_gap: z.number().gt(0).default(1).describe("Gap between teacher and policy, in nats, over which the direction of a token saturates (tau_delta)."),
  tau_entropy: z.number().gt(0).default(1).describe("Entropy of the teacher, in nats, over which its confidence falls by e (tau_H)."),
  kl_coef: z.number().min(0).default(1e-3).describe("Weight of the k3 KL to the role `reference` in the loss; 0 needs no reference."),
  eps: z.number().gt(0).default(1e-6).describe("Added to the deviation."),
  control: z
    .enum(controls)
    .default("none")
    .describe("For comparison: `noise` has the teacher's gaps at other tokens of the batch, `entropies` its entropies at other tokens of the answer."),
});
export type UecrOptions = z.output<typeof uecrOptions>;

/** On a trajectory: the verifier's part of its advantage, and the teacher's score. */
export const taskNote = note<number>("uecr.task", 0);
export const scoreNote = note<number>("uecr.score");

export const uecr: MethodModule<UecrOptions, null> = {
  name: "uecr",
  paper: "P01 UECR-GRPO, arXiv 2609.28385",
  options: uecrOptions,
  initial: null,
  make(options): Method {
    const { alpha, rho, kl_coef, eps, control } = options;
    const taught = alpha > 0 || rho > 0;
    const kl = klSlots({ coefficient: kl_coef, estimator: "k3", place: "loss" });
    return {
      name: "uecr",
      needs: [
        training,
        ...(taught ? [{ for: "the teacher's log-probs", oneOf: [{ capabilities: ["score", "score.entropy", "roles"], roles: ["teacher"] }] } as const] : []),
        ...kl.needs,
      ],
      writes: [taskNote, scoreNote],
      ...(alpha > 0 ? { signal: "beyond" } : {}),
      slots: {
        credit: {
          about:
            alpha > 0
              ? `(R + ${alpha} teacher's score - mean) / (population deviation + ${eps}) of the group`
              : `(R - mean) / (population deviation + ${eps}) of the group`,
          check: comparesAnswers("UECR-GRPO"),
          owns: async (batch, rewards, lab) => {
            const rows = rowsOf(batch);
            const scores = taught ? scoresOf(batch, await told(batch, lab, control)) : new Float64Array(rows.length);
            const utility: Rewards = { ...rewards, values: rewards.values.map((r, i) => (r === undefined ? undefined : r + alpha * scores[i])) };
            const centred = groupAdvantages(batch, rewards, { std: "none", eps });
            const spread = byGroup(batch, utility, (returns) => () => deviationOf(returns) + eps);
            rows.forEach((row, i) => {
              if (taught) scoreNote.set(row, scores[i]);
              taskNote.set(row, spread[i] === 0 ? 0 : centred[i] / spread[i]);
            });
            return Credit.zero(batch).with("trajectory", groupAdvantages(batch, utility, { std: "population", eps }));
          },
        },
        ...(rho > 0
          ? {
              shape: {
                level: "token",
                keeps: ["sum"],
                about: `the verifier's part towards tokens of which the teacher is surer, by ${rho} at most`,
                run: async (batch, credit, lab) => {
                  const all = await told(batch, lab, control);
                  const tokens = rowsOf(batch).map((row, i) => {
                    const task = taskNote.get(row) ?? 0;
                    const q = redistribution(all[i], Math.sign(task), options);
                    return credit.token[i].map((a, t) => a + rho * task * q[t]);
                  });
                  return credit.with("token", tokens);
                },
              },
            }
          : {}),
        ...kl.slots,
        observe: {
          run: ({ batch, credit, mask }): { [name: string]: number } => {
            const counted = [...rowsOf(batch).entries()].filter(([i]) => mask.rows[i] === 1);
            if (counted.length === 0 || !taught) return {};
            const turned = counted.filter(([i, row]) => credit.trajectory[i] * (taskNote.get(row) ?? 0) < 0);
            return { "uecr.score": meanOf(counted.map(([, row]) => scoreNote.get(row) ?? 0)), "uecr.turned": turned.length / counted.length };
          },
        },
      },
    };
  },
};

/** Population deviation. */
function deviationOf(returns: readonly number[]): number {
  const mean = meanOf(returns);
  return Math.sqrt(returns.reduce((sum, r) => sum + (r - mean) ** 2, 0) / returns.length);
}
