/**
 * What is claimed for OC-GRPO, on chains that the policy never works rightly: six operations, four or more of them with a
 * strong wrong habit, and an answer is right only if all of its lines are. Guidance is the beginning of the solution in the
 * prompt, which the policy was taught to read.
 */
import { forms } from "../../tasks/chain/chain.js";
import { defineDemonstration, type SeedNumbers, type TrainedRun } from "../demonstration.js";
import { ocGrpo } from "./oc-grpo.js";

const task = (weights: { readonly [form: string]: number }) => ({
  name: "chain",
  options: {
    modulus: 7,
    fillers: true,
    min_operations: 6,
    max_operations: 6,
    counts: { operation: "*", weights: [0, 0, 0, 0, 1, 1, 1] },
    habit: { operation: "*", as: "+", rate: 0.95 },
    slips: 0.01,
    strict: true,
    forms: weights,
  },
});

const prompts = {
  continue_prompt: forms.begin.replace("{begin}", "{guidance}"),
  verify_prompt: forms.solution.replace("{solution}", "{guidance}"),
};
const guided = (more: { readonly [option: string]: string | number } = {}) => ({ method: { module: ocGrpo, options: { ...prompts, ...more } } });

/** Standard deviation over mean of the gradient norms of all steps with an update. */
function spread(trained: TrainedRun): number | undefined {
  const norms = trained.series("grad_norm").map(({ value }) => value);
  if (norms.length < 2) return undefined;
  const mean = norms.reduce((a, b) => a + b, 0) / norms.length;
  return mean === 0 ? undefined : Math.sqrt(norms.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (norms.length - 1)) / mean;
}

/** How much more is solved than by another arm, or how far beyond 20 % the gradient norms vary less: whichever is larger. */
const betterOrSteadier =
  (than: string) =>
  (arms: SeedNumbers): number | undefined => {
    const of = (arm: string, metric: string): number | undefined => arms[arm]?.[metric];
    const [solved, other] = [of("fixed", "solved without guidance"), of(than, "solved without guidance")];
    const [own, theirs] = [of("fixed", "spread of gradient norms"), of(than, "spread of gradient norms")];
    if (solved === undefined || other === undefined) return undefined;
    const steadier = own === undefined || theirs === undefined ? -1 : 1 - own / theirs - 0.2;
    return Math.max(solved - other, steadier);
  };

export default defineDemonstration({
  paper: ocGrpo.paper,
  method: "oc-grpo",
  testbed:
    "Chains of six operations modulo 7, four to six of them products, every line to be right; a policy of 0.1M parameters that works 95 % of products as sums and takes over the beginning of a solution from its prompt. The problems of 96 of which none of 64 answers is right, 90 steps.",
  shared: { task: task({ plain: 1 }), train_problems: 96, steps: 90, problems: 16, group: 8, minibatches: 2, lr: 3e-4 },
  prepare: {
    per: "demonstration",
    run: async (bench) => ({
      model: await bench.warmStart({ task: task({ plain: 2, begin: 2, solution: 1 }), from: "starters/chain-hints", steps: 200, lr: 1e-3 }),
    }),
  },
  arms: {
    grpo: { about: "the hard problems as they are", ...guided({ guidance: "none" }) },
    "guided, uncorrected": { about: "both sides of the ratio with guidance", ...guided({ correction: "guided" }) },
    "plain, uncorrected": { about: "both sides of the ratio without guidance", ...guided({ correction: "plain" }) },
    fixed: guided(),
    adaptive: guided({ schedule: "adaptive" }),
    "random guidance": { about: "the beginning of another problem's solution", ...guided({ guidance: "random" }) },
  },
  metrics: {
    "solved without guidance": { kind: "avg", problems: 300, temperature: 1 },
    "spread of gradient norms": { about: "standard deviation over mean", kind: "own", run: spread },
    "gradient norm": { kind: "training", metric: "grad_norm" },
    "KL to guided": { about: "KL(guided, unguided) a token", kind: "training", metric: "oc-grpo.kl", last: 20 },
    entropy: { kind: "training", metric: "entropy", last: 20 },
  },
  claims: {
    "GRPO stays at nothing": { kind: "below", metric: "solved without guidance", arm: "grpo", than: 0.02 },
    "more solved than by GRPO": { kind: "above", metric: "solved without guidance", arm: "fixed", than: "grpo", margin: 0.02 },
    "the adaptive schedule solves more than GRPO, too": { kind: "above", metric: "solved without guidance", arm: "adaptive", than: "grpo", margin: 0.02 },
    "more solved or steadier than uncorrected with guidance": { kind: "above", of: betterOrSteadier("guided, uncorrected"), than: 0 },
    "more solved or steadier than uncorrected without": { kind: "above", of: betterOrSteadier("plain, uncorrected"), than: 0 },
    "random guidance is GRPO": { kind: "nullDifference", metric: "solved without guidance", arm: "random guidance", than: "grpo", margin: 0.02 },
  },
  sabotage: {
    about: "the ratio's denominator is the unguided policy, so that nothing is corrected",
    stands: "fixed",
    arm: guided({ correction: "plain" }),
    unshown: ["more solved or steadier than uncorrected without"],
  },
  quick: { options: { steps: 2, train_problems: 16, problems: 8, group: 4 }, heldout: { problems: 20 }, seeds: 1 },
  minutes: 40,
  differences: [
    "Held-out problems are of the same kind as those trained on; they were not tried 64 times one by one.",
    "The share of guidance follows the answers that are trained on, and is not computed anew by further ones.",
  ],
});
