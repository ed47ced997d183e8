/**
 * H2SD: self-distillation that reweights what worked and corrects what failed (P57). The teacher is the policy under another context.
 *
 *     success: context c = x, the verified answer y, and the request to say it in other words; y is only scored again
 *              gap_t = log pi_T(y_t | c, y_<t) - log pi_old(y_t | x, y_<t)
 *              A_t   = A [(1 - lambda) + lambda clip(exp(sign(A) gap_t), 1 - clip, 1 + clip)]          RLSD (src/methods/rlsd.ts; the constants are its own)
 *     failure: context h = x and a hint with the key steps and the verified answer; out of the policy's loss
 *              loss += mu mean_t KL(pi(. | x, y_<t) || pi_T(. | h, y_<t))                              (the paper, as a third party tells it)
 *
 * A is whoever's it is, over the whole group: groups of successes alone teach nothing, groups of failures teach by the hint.
 * Our choice: lambda stays as it is; an answer is a success when its verdict has the whole score; the mean over tokens is that of the
 * resolved aggregation, so that each answer weighs alike in either branch; the ids of top-k are the teacher's; an answer that
 * does not fit beside its hint is left as it is in the first branch and teaches nothing in the second.
 */
import type { Batch, Trajectory } from "../../core/trajectory.js";
import { scoreOf } from "../../core/verdict.js";
import type { Term } from "../../losses/contract.js";
import type { Lab, Method, MethodModule, RoleWish, TermMask } from "../contract.js";
import { rowsOf } from "../credit.js";
import { hintContext, refuseUnlessHinted, scoresUnder } from "../hints.js";
import { keepTokens } from "../keep.js";
import { training } from "../needs.js";
import { klFormOn, klNeed, refuseUnlessSmall, teacherKl } from "../reverse-kl.js";
import { linearly, rlsdFactor } from "../rlsd.js";
import { type H2sdOptions, h2sdOptions } from "./options.js";

export { type H2sdOptions, h2sdOptions } from "./options.js";

type Branch = "success" | "failure";

const place = "h2sd";

/** Which branch a row belongs to; undefined without a score. */
export function branchOf({ verdict }: Trajectory): Branch | undefined {
  const score = scoreOf(verdict);
  return score === undefined ? undefined : score >= 1 ? "success" : "failure";
}

/** The teacher as a role, and how it follows the policy; undefined where it is the policy itself. */
function selfRole({ teacher, refresh_every, decay }: H2sdOptions): RoleWish | undefined {
  if (teacher === "current") return undefined;
  const average = teacher === "refreshed" ? { of: "policy", decay: 0, every: refresh_every } : { of: "policy", decay, every: 1 };
  return { name: "self", average };
}

export const h2sd: MethodModule<H2sdOptions, null> = {
  name: "h2sd",
  paper: "P57 H2SD",
  options: h2sdOptions,
  initial: null,
  make(options): Method {
    const { success, failure, mu, lambda, lambda_end = lambda } = options;
    const does = { success, failure };
    const reweights = (row: Trajectory): boolean => does[branchOf(row) ?? "success"] === "reweight" && branchOf(row) !== undefined;
    const matches = (row: Trajectory): boolean => {
      const branch = branchOf(row);
      return branch !== undefined && (does[branch] === "match" || does[branch] === "both");
    };
    const reweighting = success === "reweight" || failure === "reweight";
    const matching = success === "match" || failure === "match" || failure === "both";
    const hints = matching || failure === "reweight";
    const role = reweighting || matching ? selfRole(options) : undefined;
    const weights = (lab: Lab) => (role === undefined ? lab.policy : { role: role.name });
    /** Of the batch in hand, for its metrics: what was to be scored under another context, and could not be. */
    const counts = new WeakMap<Batch, Counts>();
    const count = (batch: Batch): Counts => {
      const so = counts.get(batch) ?? { asked: 0, skipped: 0, gap: 0, tokens: 0 };
      counts.set(batch, so);
      return so;
    };

    const contextOf = (batch: Batch, lab: Lab) => {
      const problems = new Map(batch.groups.map(({ problem }) => [problem.key, problem]));
      return (row: Trajectory, template: string, label: string) => {
        const problem = problems.get(row.problem);
        return problem && hintContext(problem, template, label, lab, place, row.text);
      };
    };

    const klOf = async (batch: Batch, mask: TermMask, lab: Lab): Promise<Term[]> => {
      const rows = rowsOf(batch);
      const context = contextOf(batch, lab);
      const items = rows.map((row) => ({ row, context: matches(row) ? context(row, options.hint_prompt, "hinted") : undefined }));
      const form = klFormOn(lab.engine, options.divergence);
      const { term, skipped } = await teacherKl(items, weights(lab), lab, {
        name: "h2sd.kl",
        form,
        topK: options.top_k,
        coefficient: mu,
        weights: mask.weights,
      });
      const so = count(batch);
      so.asked += items.filter((item) => item.context !== undefined).length;
      so.skipped += skipped;
      return [term];
    };

    return {
      name: "h2sd",
      needs: [
        training,
        ...(reweighting ? [{ for: "the weights of right answers", oneOf: [{ capabilities: ["score"] }] } as const] : []),
        ...(role ? [{ for: "the teacher's snapshot", oneOf: [{ capabilities: ["roles", "weights.tensors"], roles: [role.name] }] } as const] : []),
        ...(matching ? [klNeed(options.divergence, "the KL to the hinted teacher")] : []),
      ],
      ...(role ? { roles: [role] } : {}),
      ...(matching && mu > 0 ? { signal: "beyond" } : {}),
      references: "needed",
      slots: {
        ...(hints
          ? {
              setup: {
                about: "every problem has what the hint tells",
                run: async (lab) => {
                  if (matching && klFormOn(lab.engine, options.divergence) === "full") await refuseUnlessSmall(lab, `method ${place}, option divergence`);
                  await refuseUnlessHinted([options.hint_prompt], lab, place);
                },
              },
            }
          : {}),
        ...(reweighting
          ? {
              shape: {
                level: "token",
                keeps: ["sign", "zero"],
                about: `A [1 - ${lambda} + ${lambda} clip(exp(sign(A) gap), ${1 - options.weight_clip}, ${1 + options.weight_clip})] of ${[success === "reweight" ? "right" : "", failure === "reweight" ? "wrong" : ""].filter(Boolean).join(" and ")} answers`,
                run: async (batch, credit, lab) => {
                  const context = contextOf(batch, lab);
                  const items = rowsOf(batch).map((row) => {
                    if (!reweights(row)) return { row, context: undefined };
                    const right = branchOf(row) === "success";
                    return { row, context: right ? context(row, options.rephrase_prompt, "rephrased") : context(row, options.hint_prompt, "hinted") };
                  });
                  const scores = await scoresUnder(items, weights(lab), lab);
                  const factor = { lambda: linearly(lab.step, lambda, lambda_end, options.lambda_steps), clip: options.weight_clip };
                  const so = count(batch);
                  const tokens = credit.token.map((coefficients, i) => {
                    const { row, context: asked } = items[i] as (typeof items)[number];
                    const score = scores[i];
                    if (asked !== undefined) so.asked++;
                    if (score === undefined) {
                      if (asked !== undefined) so.skipped++;
                      return coefficients;
                    }
                    const old = (row.old ?? row.behaviour).values;
                    return coefficients.map((a, t) => {
                      if (!row.reward[t]) return a;
                      const gap = (score.logp[t] as number) - (old[t] as number);
                      so.gap += gap;
                      so.tokens++;
                      return a * rlsdFactor(a, gap, factor);
                    });
                  });
                  return credit.with("token", tokens);
                },
              },
            }
          : {}),
        ...(matching
          ? {
              keep: {
                about: "matched answers are out of the policy's loss",
                run: (batch) => keepTokens(batch, (row) => !(matches(row) && does[branchOf(row) as Branch] === "match")),
              },
              terms: { about: `${mu} KL to the policy that sees the hint, on ${success === "match" ? "all" : "wrong"} answers`, run: klOf },
            }
          : {}),
        observe: {
          run: ({ batch }) => {
            const rows = rowsOf(batch);
            const { asked, skipped, gap, tokens } = count(batch);
            return {
              "h2sd.failures": rows.filter((row) => branchOf(row) === "failure").length / Math.max(1, rows.length),
              "h2sd.skipped": skipped / Math.max(1, asked),
              ...(tokens > 0 ? { "h2sd.gap": gap / tokens } : {}),
            };
          },
        },
      },
    };
  },
};

interface Counts {
  asked: number;
  skipped: number;
  gap: number;
  tokens: number;
}
