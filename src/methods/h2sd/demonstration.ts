/**
 * What is claimed for H2SD, on chains that the policy mostly gets wrong. It was taught to read hints: the answer, the result
 * of each line, or a whole solution.
 */
import { forms } from "../../tasks/chain/chain.js";
import { defineDemonstration, type TrainedRun } from "../demonstration.js";
import { h2sd } from "./h2sd.js";

/** Prompts with these forms, and for `plain` alone those of training, which tell nothing. */
const task = (weights: { readonly [form: string]: number }) => ({
  name: "chain",
  options: {
    modulus: 7,
    min_operations: 4,
    max_operations: 6,
    habit: { operation: "*", as: "+", rate: 0.9 },
    slips: 0.03,
    fillers: true,
    forms: weights,
    strict: true,
  },
});

const rephrase = forms.solution.replace("{solution}", "{response}");
const distilled = (more: { readonly [option: string]: string | number } = {}) => ({
  method: { module: h2sd, options: { rephrase_prompt: rephrase, hint_prompt: forms.steps, ...more } },
});

/** Highest mean of two neighbouring held-out scores less the last, so that a lucky one makes no peak. */
function fall(trained: TrainedRun): number | undefined {
  const values = trained.evaluations.map(({ value }) => value);
  const smooth = values.slice(1).map((value, i) => (value + (values[i] as number)) / 2);
  return smooth.length === 0 ? undefined : Math.max(...smooth) - (values.at(-1) as number);
}

export default defineDemonstration({
  paper: h2sd.paper,
  method: "h2sd",
  testbed:
    "Chains of four to six operations modulo 7, every line to be right; a policy of 0.1M parameters that works 90 % of products as sums and takes over what a hint tells: the answer, the result of each line, or a solution. 60 steps.",
  shared: { task: task({ plain: 1 }), steps: 60, problems: 16, group: 8, minibatches: 2, lr: 3e-4, eval: { every: 10, problems: 300, temperature: 1 } },
  prepare: {
    per: "demonstration",
    run: async (bench) => ({
      model: await bench.warmStart({
        task: task({ plain: 3, answer: 1, steps: 2, solution: 1 }),
        from: "starters/chain-hints",
        steps: 300,
        lr: 1e-3,
      }),
    }),
  },
  arms: {
    grpo: { method: "grpo" },
    rlsd: { about: "all answers reweighted by the policy that sees the steps", ...distilled({ rephrase_prompt: forms.steps, failure: "reweight" }) },
    opsd: { about: "all answers matched to the policy that sees the steps", ...distilled({ success: "match" }) },
    h2sd: distilled(),
    "answer alone": { about: "the hint tells no steps", ...distilled({ hint_prompt: forms.answer }) },
  },
  metrics: {
    accuracy: { kind: "avg", problems: 500, temperature: 1 },
    "fall from the peak": { about: "highest mean of two neighbouring evaluations less the last", kind: "own", run: fall },
    tokens: { kind: "training", metric: "tokens_mean", last: 10 },
    "gradient norm": { kind: "training", metric: "grad_norm" },
    "KL to the hinted policy": { kind: "training", metric: "h2sd.kl", last: 10 },
  },
  claims: {
    "above GRPO": { kind: "above", metric: "accuracy", arm: "h2sd", than: "grpo" },
    "above reweighting alone": { kind: "above", metric: "accuracy", arm: "h2sd", than: "rlsd" },
    "above matching alone": { kind: "above", metric: "accuracy", arm: "h2sd", than: "opsd" },
    "a hint of the answer alone is clearly worse": { kind: "below", metric: "accuracy", arm: "answer alone", than: "h2sd", margin: 0.02 },
    "matching alone falls further from its peak": { kind: "above", metric: "fall from the peak", arm: "opsd", than: "h2sd" },
  },
  sabotage: {
    about: "the hint is empty",
    stands: "h2sd",
    arm: distilled({ hint_prompt: forms.plain }),
    unshown: ["above GRPO", "a hint of the answer alone is clearly worse"],
  },
  quick: { options: { steps: 2, problems: 4, group: 4, eval: { every: 2, problems: 20, temperature: 1 } }, heldout: { problems: 20 }, seeds: 1 },
  minutes: 25,
  differences: ["The policy reads hints because its warm start taught it to, and believes them in 95 of 100 lines."],
});
