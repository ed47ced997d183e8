/**
 * OPD, then RL: distil from a teacher on the policy's own answers, then go over to the verifier's reward altogether (P16, arXiv 2609.04108).
 *
 *     A_t = d_t  in the first phase,  A  afterwards; the loss stays the same                        (the paper, as a third party tells it)
 *     d_t = log pi_T(y_t | x, y_<t) - log pi_old(y_t | x, y_<t)                                     on-policy distillation; the end token is masked where it is none of the teacher's
 *
 * or, of the first phase, the reverse KL to the teacher over the vocabulary as a term. The paper switches at step 60 of 120 to
 * 150 and names the validation score of the first phase as the signal; our choice: a plateau is `patience` evaluations without
 * a rise by `improvement`. A is whoever's it is, GRPO's by default; after the switch no teacher is asked.
 * What the paper compares with are the other modes, in one step each:
 *
 *     additive   A + beta d                   annealed  beta goes linearly to beta_end
 *     masked     A + beta d where A d > 0     (what is masked: our choice)
 *     modulated  A [(1 - lambda) + lambda clip(exp(sign(A) d), 1 - clip, 1 + clip)]                 RLSD (src/methods/rlsd.ts)
 *
 * and `first: sft`, supervised learning on the teacher's answers in place of distillation.
 */
import { ConfigError } from "../../core/errors.js";
import type { Batch, Trajectory } from "../../core/trajectory.js";
import type { Term } from "../../losses/contract.js";
import type { Lab, Method, MethodModule, TermMask } from "../contract.js";
import { rowsOf } from "../credit.js";
import { keepTokens } from "../keep.js";
import { training } from "../needs.js";
import { klFormOn, klNeed, refuseUnlessSmall, teacherKl } from "../reverse-kl.js";
import { linearly, rlsdFactor } from "../rlsd.js";
import { imitationTerm } from "./imitation.js";
import { type OpdThenRlOptions, opdThenRlOptions } from "./options.js";
import { advanced, beforeSwitch, type SwitchState } from "./switch.js";
import { type Distance, type Distils, distanceTo } from "./teacher.js";

export { type OpdThenRlOptions, opdThenRlOptions } from "./options.js";

const place = "method opd-then-rl";

export const opdThenRl: MethodModule<OpdThenRlOptions, SwitchState> = {
  name: "opd-then-rl",
  paper: "P16 OPD-then-RL, arXiv 2609.04108",
  options: opdThenRlOptions,
  initial: beforeSwitch,
  make(options, state): Method {
    const { mode, first, switch_at, divergence, beta, teacher_eos, shared_top_k } = options;
    const joint = mode !== "switch";
    const taught = joint || switch_at !== 0;
    /** Whether the teacher has a part in the step in hand. */
    const teaches = (): boolean => joint || (switch_at !== 0 && state.get().switched === null);
    const byTerm = !joint && (first === "sft" || divergence !== "sampled");
    const ends = (row: Trajectory, t: number): boolean =>
      teacher_eos !== undefined && row.stop === "eos" && t === row.response.length - 1 && !teacher_eos.includes(row.response[t] as number);
    const distils: Distils = (row, t) => row.reward[t] === 1 && !ends(row, t);
    /** Of the batch in hand. */
    const distances = new WeakMap<Batch, Distance>();

    const withTeacher = (a: number, d: number, step: number): number => {
      switch (mode) {
        case "switch":
          return d;
        case "additive":
          return a + beta * d;
        case "masked":
          return a * d > 0 ? a + beta * d : a;
        case "annealed":
          return a + linearly(step, beta, options.beta_end, options.anneal_steps) * d;
        case "modulated":
          return a * rlsdFactor(a, d, { lambda: options.lambda, clip: options.weight_clip });
      }
    };

    const klOf = async (batch: Batch, mask: TermMask, lab: Lab): Promise<Term> => {
      const rows = rowsOf(batch);
      const weights = mask.weights.map((row, i) => row.map((w, t) => (ends(rows[i] as Trajectory, t) ? 0 : w)));
      const items = rows.map((row) => ({ row, context: row.trainedUnder }));
      const form = klFormOn(lab.engine, divergence);
      return (await teacherKl(items, { role: "teacher" }, lab, { name: "opd-then-rl.kl", form, topK: options.top_k, coefficient: 1, weights })).term;
    };

    return {
      name: "opd-then-rl",
      needs: [
        training,
        ...(taught ? [{ for: "the teacher's log-probs", oneOf: [{ capabilities: ["score", "roles"], roles: ["teacher"] }] } as const] : []),
        ...(taught && byTerm && first === "opd" ? [klNeed(divergence, "the KL to the teacher")] : []),
        ...(taught && shared_top_k > 0 ? [{ for: "the probability that is shared", oneOf: [{ capabilities: ["score.top-k"] }] } as const] : []),
      ],
      ...(taught ? { signal: "beyond" } : {}),
      check: ({ evaluateEvery = 0 }) => {
        if (joint || switch_at !== "plateau" || evaluateEvery > 0) return;
        throw new ConfigError({
          place: `${place}, option switch_at`,
          cause: "it is plateau, and the run measures no score in which one could be seen",
          mend: "set eval.every, or give the number of steps",
        });
      },
      slots: {
        ...(taught && byTerm && first === "opd" && divergence === "full"
          ? { setup: { about: "the vocabulary is small enough for the whole KL", run: (lab) => refuseUnlessSmall(lab, `${place}, option divergence`) } }
          : {}),
        ...(taught
          ? {
              shape: {
                level: "token",
                about: joint
                  ? `the advantage and the teacher: ${mode}`
                  : `${first} until ${typeof switch_at === "number" ? `step ${switch_at}` : switch_at}, then the advantage`,
                run: async (batch, credit, lab) => {
                  if (!teaches()) return credit;
                  const distance = await distanceTo("teacher", batch, lab, distils, shared_top_k);
                  distances.set(batch, distance);
                  if (byTerm)
                    return credit.with(
                      "token",
                      credit.token.map((row) => new Float64Array(row.length)),
                    );
                  return credit.with(
                    "token",
                    credit.token.map((row, i) => row.map((a, t) => withTeacher(a, distance.gaps[i]?.[t] as number, lab.step))),
                  );
                },
              },
            }
          : {}),
        ...(taught && !joint && teacher_eos !== undefined
          ? {
              keep: {
                about: "ends that are none of the teacher's are not distilled",
                run: (batch) => keepTokens(batch, (row, t) => !teaches() || !ends(row, t)),
              },
            }
          : {}),
        ...(taught && byTerm
          ? {
              terms: {
                about: first === "sft" ? "the teacher's answers, supervised, in the first phase" : "the reverse KL to the teacher in the first phase",
                run: async (batch, mask, lab) => (teaches() ? [first === "sft" ? await imitationTerm(batch, mask, lab) : await klOf(batch, mask, lab)] : []),
              },
            }
          : {}),
        observe: {
          run: ({ step, batch, metrics, evaluatedAt, announce }) => {
            const { kl, shared } = distances.get(batch) ?? {};
            const before = state.get();
            const was = taught && !teaches();
            if (!joint) {
              const next = advanced(before, step, { score: metrics[options.score], at: evaluatedAt }, options);
              state.set(next);
              if (taught && before.switched === null && next.reason !== null) announce(next.reason);
            }
            return {
              ...(joint ? {} : { "opd-then-rl.rl": was || !taught ? 1 : 0 }),
              ...(kl === undefined ? {} : { kl_teacher: kl }),
              ...(shared === undefined ? {} : { "opd-then-rl.shared_mass": shared }),
            };
          },
        },
      },
    };
  },
};
