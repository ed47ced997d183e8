/**
 * ThinkPrior: problems that are likely to have answers of both kinds, from the first step on (P11, arXiv 2609.09075).
 *
 *     U(p)      = 1 - p^G - (1 - p)^G                                          a group of G has right and wrong answers
 *     U_beta(x) = 1 - (a)_G / (a + b)_G - (b)_G / (a + b)_G                    its expectation for p ~ Beta(a, b), (a)_G = a (a + 1) ... (a + G - 1)
 *     a = kappa phi + eps,  b = kappa (1 - phi) + eps                          phi: share of k answers of another model, the anchor, that are right
 *     a <- a + C,  b <- b + G - C                                              C: right answers of a group that was drawn
 *     each step takes the B problems with the largest U_beta, ties in the order of the pool
 *                                                              (all of it the paper, as a detailed note tells it, and its numbers)
 *
 * Loss and optimizer are GRPO's or whoever's. Groups that dynamic sampling drops teach the posterior too, and what replaces
 * them are the next in the order of U_beta. Our choice: unscored answers count for nothing, a partial score for its share on
 * either side; without any scored answer of the anchor phi is 1/2; its answers have the run's temperature; a step does
 * not take a problem twice. In a mixture the source of each place is drawn as ever, and the place goes to the best of that
 * source. A share of the places can be drawn evenly, against problems that an anchor's rate of 0 or 1 locks out. A profile that
 * was made with another model and engine can stand in for the anchor's pass.
 */
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import { hashJson } from "../../core/json.js";
import { Stream } from "../../core/random.js";
import type { Lab, Method, MethodModule } from "../contract.js";
import { training } from "../needs.js";
import { anchorRates, anchorRole, profileRates } from "./prior.js";
import { initialState, mostLearnable, type ThinkPriorState } from "./select.js";

export { expectedLearnability, learnability } from "./learnability.js";
export { posterior } from "./select.js";

export const thinkpriorOptions = z.strictObject({
  prior: z
    .enum(["anchor", "flat", "shuffled"])
    .default("anchor")
    .describe("anchor: the pass rate of the role `anchor` or of a profile; for comparison flat: Beta(1, 1); shuffled: the anchor's rate of another problem."),
  profile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "A file of touchstone profile, made with any model and engine, in place of the anchor's answers; a relative path begins where the run is started.",
    ),
  samples: z.int().min(1).default(16).describe("Answers of the anchor to each problem, before step 1."),
  kappa: z.number().gt(0).default(4).describe("How many answers of the policy the anchor's pass rate is worth."),
  epsilon: z.number().gt(0).default(1e-3).describe("Added to both parameters, so that a rate of 0 or 1 is not certain."),
  explore: z.number().min(0).max(1).default(0).describe("Share of the places that go to any problem."),
});
export type ThinkPriorOptions = z.output<typeof thinkpriorOptions>;

const place = "method thinkprior";

async function ratesOf(lab: Lab, { prior, profile, samples }: ThinkPriorOptions): Promise<ThinkPriorState["prior"]> {
  const problems = Array.from({ length: lab.problems.size }, (_, i) => lab.problems.get(i));
  if (profile === undefined && lab.conversational) {
    const cause = "answers are conversations, and the anchor's are single answers";
    throw new ConfigError({ place, cause, mend: "give the option profile, or take a task of plain answers" });
  }
  const rates = profile === undefined ? await anchorRates(problems, lab, samples) : profileRates(problems, profile);
  const dealt = prior === "shuffled" ? new Stream(lab.key({ purpose: "thinkprior/shuffle" })).shuffle(rates) : rates;
  return Object.fromEntries(problems.map(({ key }, i) => [key, dealt[i] as number | null]));
}

export const thinkprior: MethodModule<ThinkPriorOptions, ThinkPriorState> = {
  name: "thinkprior",
  paper: "P11 ThinkPrior, arXiv 2609.09075",
  options: thinkpriorOptions,
  initial: initialState,
  make(options, state): Method {
    const { prior, profile, samples, kappa, epsilon, explore } = options;
    const flat = prior === "flat";
    if (flat && profile !== undefined)
      throw new ConfigError({ place: `${place}, option profile`, cause: "the prior is flat and does not read it", mend: "leave one of the two out" });
    const source = profile === undefined ? `${samples} answers of the anchor` : "a profile";
    return {
      name: "thinkprior",
      needs: [training, ...(flat || profile !== undefined ? [] : [{ for: "the prior", oneOf: [{ capabilities: ["roles"], roles: [anchorRole] }] } as const])],
      references: "judged",
      slots: {
        setup: {
          about: flat ? "nothing is known of a problem" : `pass rates by ${source}${prior === "shuffled" ? ", dealt out at random" : ""}`,
          run: async (lab) => {
            if (lab.problems.weights !== undefined) {
              const cause = "problems have weights, which say how often each comes up, and thinkprior decides that by their learnability";
              throw new ConfigError({ place, cause, mend: "set profile.weight to equal" });
            }
            if (flat) return;
            const pool = Array.from({ length: lab.problems.size }, (_, i) => lab.problems.get(i));
            const content = hashJson([pool.map(({ key, prompt }) => [key, prompt.map((message) => ({ ...message }))]), prior, profile ?? null, samples]);
            if (state.get().content === content) return;
            state.set({ ...state.get(), content, prior: await ratesOf(lab, options) });
          },
        },
        select: {
          owns: mostLearnable(state, { kappa, epsilon, flat }, explore),
          about: `the problems most likely to have right and wrong answers${explore > 0 ? `, and ${explore} of the places any` : ""}`,
        },
        observe: {
          run: () => {
            const { spent, taken } = state.get();
            return {
              "thinkprior.generated": spent.generated,
              "thinkprior.used": spent.used,
              "thinkprior.silent": spent.silent,
              "thinkprior.learnability": taken.expected,
            };
          },
        },
      },
    };
  },
};
