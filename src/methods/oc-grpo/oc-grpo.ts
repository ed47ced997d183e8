/**
 * OC-GRPO: hard problems sampled with guidance in the prompt, trained towards the prompt without it (P55).
 *
 *     y ~ pi_old(. | x, c)         c: the first share of the reference solution, cut back to a word
 *     rho_t = pi(y_t | x, y_<t) / pi_old(y_t | x, c, y_<t)    in the clipped loss of GRPO, in place of the usual ratio (derived from the abstract)
 *     A     = GRPO's, over the guided answers of the group                                                        (derived from the abstract)
 *     fixed:    the smallest share with one success under the policy as it starts                 (the paper, as a third party tells it)
 *     hard set: problems of which none of 64 answers at temperature 0.7 and top-p 0.95 is right   (the paper, as a third party tells it)
 *
 * Our choice: a guided answer's ratio has no lower bound and counts at most `rho_max` (loss.ts has the other corrections); the
 * adaptive share, which the paper computes anew at each step, goes down where `ease` of a group's answers are right and up
 * where none is, from the fixed one, so that it costs no further answers; a problem that no share helps gets the largest.
 * Answers without guidance are GRPO's in every respect.
 */
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import { hashJson } from "../../core/json.js";
import type { Context, Problem } from "../../core/problem.js";
import { trained } from "../../core/trajectory.js";
import type { Lab, Method, MethodModule, Request } from "../contract.js";
import { rowsOf } from "../credit.js";
import { training } from "../needs.js";
import { Guidance, solutionOf } from "./guidance.js";
import { hardProblems, refuseUnlessRoom, smallestLevels } from "./hard.js";
import { gammaNote, isOffContext, offContextLoss, offContextRatios, quantile } from "./loss.js";
import { epochsOver, type OcGrpoState } from "./source.js";

export const ocGrpoOptions = z.strictObject({
  schedule: z.enum(["fixed", "adaptive"]).default("fixed").describe("Whether a problem's guidance stays what it was before step 1, or follows its answers."),
  correction: z
    .enum(["token", "shaped", "sequence", "plain", "guided"])
    .default("token")
    .describe(
      "token: the ratio to the guided distribution, at most rho_max; shaped: ratio / (ratio + gamma); sequence: the product over the answer, unbiased; uncorrected: plain: both sides of the ratio without guidance, guided: both with it.",
    ),
  guidance: z.enum(["solution", "random", "none"]).default("solution").describe("Of the problem's own solution, of another problem's, or none at all."),
  place: z
    .enum(["prompt", "response"])
    .default("prompt")
    .describe("Where guidance stands: in the prompt, or as forced tokens at the start of the response, which are not trained on."),
  levels: z.array(z.number().gt(0).max(1)).min(1).default([0.2, 0.4, 0.6, 0.8, 1]).describe("Shares of the solution, ascending."),
  rho_max: z.number().gt(0).default(2).describe("Largest ratio of a guided answer's token, of the correction token."),
  gamma_quantile: z.number().min(0).max(1).default(0.9).describe("Of the correction shaped: which quantile of the batch's ratios gamma is."),
  hard_samples: z
    .int()
    .min(0)
    .default(64)
    .describe("Answers without guidance that a problem is tried with before step 1: those with none right are trained on; 0: all are."),
  hard_temperature: z.number().gt(0).default(0.7).describe("Temperature of these answers."),
  hard_top_p: z.number().gt(0).max(1).default(0.95).describe("Nucleus of these answers, where the engine can draw from one."),
  level_samples: z.int().min(1).optional().describe("Answers that each share is tried with before step 1; absent: as many as a group has."),
  ease: z.number().gt(0).max(1).default(0.5).describe("Of the adaptive schedule: share of right answers from which on a problem gets less guidance."),
  clip_low: z.number().min(0).default(0.2).describe("Distance from 1 below which the ratio of an unguided bad answer's token loses its gradient."),
  clip_high: z.number().min(0).default(0.2).describe("Distance from 1 above which the ratio of an unguided good answer's token loses its gradient."),
  continue_prompt: z
    .string()
    .includes("{guidance}")
    .default("{problem}\n\nA solution begins like this:\n{guidance}\n\nContinue it to the end, and give the whole solution.")
    .describe("The last message with a part of a solution; {problem} is what it said."),
  verify_prompt: z
    .string()
    .includes("{guidance}")
    .default("{problem}\n\nThis is a solution:\n{guidance}\n\nVerify it, and give the whole solution.")
    .describe("The last message with a whole solution."),
});
export type OcGrpoOptions = z.output<typeof ocGrpoOptions>;

const place = "method oc-grpo";

export const ocGrpo: MethodModule<OcGrpoOptions, OcGrpoState> = {
  name: "oc-grpo",
  paper: "P55 OC-GRPO",
  options: ocGrpoOptions,
  initial: { epochs: { cursor: 0 }, content: "", levels: null },
  make(options, state): Method {
    const { correction, schedule, levels, rho_max, gamma_quantile, hard_samples, ease, place: where } = options;
    if (levels.some((level, i) => i > 0 && level <= (levels[i - 1] as number)))
      throw new ConfigError({ place: `${place}, option levels`, cause: `they are ${levels.join(", ")}`, mend: "give shares in ascending order" });
    const guidance = new Guidance(options);
    const guides = options.guidance !== "none";
    const corrects = correction === "token" || correction === "shaped" || correction === "sequence";
    const about = {
      token: `min(ratio to the guided policy, ${rho_max}) A`,
      shaped: "ratio / (ratio + gamma) A",
      sequence: "product of the answer's ratios, A",
    };
    const level = (problem: Problem): number => state.get().levels?.[problem.key] ?? 0;
    const epochs = epochsOver(state);

    /** What a problem is sampled under at a level; undefined where that is no guidance. */
    const guided = (problem: Problem, at: number, lab: Lab): { context?: Context; forced?: Int32Array } | undefined => {
      const text = guidance.text(problem, at, lab);
      if (text === "") return undefined;
      if (where === "prompt") return { context: guidance.context(problem, at, text, lab) };
      return { forced: lab.tokenizer.encode(text).subarray(0, lab.settings.maxTokens - 1) };
    };

    return {
      name: "oc-grpo",
      needs: [
        training,
        { for: "log-probs without guidance", oneOf: [{ capabilities: ["score"] }] },
        ...(where === "response" ? [{ for: "guidance in the response", oneOf: [{ capabilities: ["sample.forced"] }] } as const] : []),
      ],
      references: "needed",
      writes: [gammaNote],
      slots: {
        setup: {
          about: `${hard_samples === 0 ? "all problems" : `problems without a right answer of ${hard_samples}`}, and the guidance that each needs`,
          run: async (lab) => {
            if (lab.conversational) throw new ConfigError({ place, cause: "answers are conversations", mend: "take a task of plain answers" });
            const all = Array.from({ length: lab.problems.size }, (_, i) => lab.problems.get(i));
            const content = hashJson([all.map(({ key }) => key), JSON.parse(JSON.stringify(options))]);
            if (state.get().content === content) return;
            if (guides) for (const problem of all) solutionOf(problem);
            const hard = await hardProblems(all, lab, options);
            if (guides) await refuseUnlessRoom(hard, lab, (problem) => levels.map((_, i) => guided(problem, i + 1, lab)?.context));
            const plain = (problem: Problem): Context => lab.render(problem.prompt);
            const samples = options.level_samples ?? lab.settings.group;
            const found = guides
              ? await smallestLevels(hard, lab, samples, levels.length, (problem, at) => ({ context: plain(problem), ...guided(problem, at, lab) }))
              : hard.map(() => 0);
            state.set({ ...state.get(), content, levels: Object.fromEntries(hard.map(({ key }, i) => [key, found[i] as number])) });
          },
        },
        select: { prefers: epochs, about: "shuffled epochs over the hard problems" },
        ...(guides
          ? {
              prepare: {
                about: `a part of ${options.guidance === "random" ? "another" : "the"} solution in the ${where}, ${schedule} for each problem`,
                run: (request, lab): Request => {
                  const added = guided(request.problem, level(request.problem), lab);
                  if (added === undefined) return request;
                  return { ...request, ...added, ...(correction === "guided" && added.context ? { trainedUnder: added.context } : {}) };
                },
              },
            }
          : {}),
        ...(guides && schedule === "adaptive"
          ? {
              enrich: {
                about: `less guidance from ${ease} right answers on, more where none is right`,
                run: async (groups) => {
                  const next = { ...state.get().levels };
                  for (const group of groups) {
                    const { key } = group.problem;
                    const scored = trained(group).filter(({ verdict }) => verdict.kind !== "unscored");
                    const right = scored.filter(({ verdict }) => verdict.kind === "accept").length;
                    const now = next[key];
                    if (now === undefined || scored.length === 0) continue;
                    if (right === 0) next[key] = Math.min(levels.length, now + 1);
                    else if (right >= ease * scored.length) next[key] = Math.max(0, now - 1);
                  }
                  state.set({ ...state.get(), levels: next });
                  return [...groups];
                },
              },
            }
          : {}),
        ...(corrects
          ? {
              bounds: {
                about: correction === "token" ? `0 to ${rho_max} for guided answers` : "none for guided answers",
                run: (batch, _, bounds) => {
                  const rows = rowsOf(batch);
                  const ratios = correction === "shaped" ? offContextRatios(rows) : [];
                  const gamma = ratios.length === 0 ? undefined : quantile(ratios, gamma_quantile);
                  const high = correction === "token" ? rho_max : Number.POSITIVE_INFINITY;
                  return bounds.map((each, i) => {
                    const row = rows[i] as (typeof rows)[number];
                    if (!isOffContext(row)) return each;
                    if (gamma !== undefined) gammaNote.set(row, gamma);
                    return { low: new Float64Array(each.low.length), high: new Float64Array(each.high.length).fill(high) };
                  });
                },
              },
              loss: { owns: offContextLoss(correction, options), about: `${about[correction]} for guided answers, clip for others` },
            }
          : {}),
        observe: {
          run: ({ batch }) => {
            const rows = rowsOf(batch);
            const off = rows.filter(isOffContext);
            const logs = offContextRatios(rows).map(Math.log);
            const shares = batch.groups.map(({ problem }) => (guides ? (levels[level(problem) - 1] ?? 0) : 0));
            return {
              "oc-grpo.guided": off.length / Math.max(1, rows.length),
              "oc-grpo.level": shares.reduce((a, b) => a + b, 0) / Math.max(1, shares.length),
              ...(logs.length > 0 ? { "oc-grpo.kl": -logs.reduce((a, b) => a + b, 0) / logs.length } : {}),
            };
          },
        },
      },
    };
  },
};
