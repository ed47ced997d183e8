/**
 * What is claimed for OM-GRPO, on arithmetic whose majority is wrong on three problems in ten: there the policy ends most of
 * its answers with one popular number whatever its lines say. It was also taught to say which of two answers is right.
 */
import { forms } from "../../tasks/chain/chain.js";
import { defineDemonstration, type TrainedRun } from "../demonstration.js";
import { omGrpo } from "./om-grpo.js";

/** The popular answer ends 60 % of answers to two in seven problems; what is left of the habit makes few others wrong. */
const worked = {
  modulus: 7,
  min_operations: 3,
  max_operations: 3,
  habit: { operation: "*", as: "+", rate: 0.05 },
  slips: 0.01,
  popular: { answer: 5, below: 2, rate: 0.6 },
};

const free = (more: { readonly [option: string]: string | number | boolean }) => ({
  method: { module: omGrpo, options: { judge_prompt: forms.judge, ...more } },
});

/** Change from the mean of the first steps to that of the last. */
const rise =
  (metric: string) =>
  (trained: TrainedRun): number | undefined => {
    const values = trained.series(metric).map(({ value }) => value);
    const n = Math.ceil(values.length / 20);
    const mean = (some: readonly number[]): number => some.reduce((a, b) => a + b, 0) / some.length;
    return values.length < 2 ? undefined : mean(values.slice(-n)) - mean(values.slice(0, n));
  };

export default defineDemonstration({
  paper: omGrpo.paper,
  method: "om-grpo",
  testbed:
    "Chains of three operations modulo 7; a policy of 0.1M parameters that works nine in ten rightly but, where the start value is below 2, ends 60 % of its answers with 5, whatever its lines say. No references in training but in the arm that has them; 125 steps of 4 updates.",
  shared: {
    task: { name: "chain", options: { ...worked, forms: {} } },
    train_problems: 2000,
    steps: 125,
    problems: 16,
    group: 8,
    minibatches: 4,
    lr: 3e-4,
    eval: { every: 25, problems: 500, temperature: 1 },
  },
  prepare: {
    per: "demonstration",
    // Better lines, so that what majorities do to the answer is not hidden by what they do for the lines.
    run: async (bench) => ({
      model: await bench.warmStart({
        task: { name: "chain", options: { ...worked, forms: { plain: 1, judge: 3 } } },
        from: "starters/chain-judge",
        steps: 150,
        lr: 1e-3,
      }),
    }),
  },
  arms: {
    "hard vote": free({ reward: "hard", mask: false }),
    references: { about: "GRPO with verdicts", method: "grpo" },
    "soft vote": free({ reward: "soft", mask: false }),
    "soft vote, masked": free({ reward: "soft" }),
    full: free({}),
  },
  metrics: {
    accuracy: { kind: "avg", problems: 500, temperature: 1 },
    "fall from the peak": {
      about: "highest evaluation less the last",
      kind: "own",
      run: ({ evaluations }) => {
        const values = evaluations.map(({ value }) => value);
        return values.length === 0 ? undefined : Math.max(...values) - (values.at(-1) as number);
      },
    },
    "rise of agreement": { kind: "own", run: rise("om-grpo.agreement") },
    "fall of answer entropy": {
      kind: "own",
      run: (trained) => {
        const change = rise("om-grpo.answer_entropy")(trained);
        return change === undefined ? undefined : -change;
      },
    },
  },
  claims: {
    "hard votes agree more and more": { kind: "above", metric: "rise of agreement", arm: "hard vote", than: 0, margin: 0.05 },
    "hard votes lose accuracy after its peak": { kind: "above", metric: "fall from the peak", arm: "hard vote", than: 0.02 },
    "the full method ends 3 points above hard votes": { kind: "above", metric: "accuracy", arm: "full", than: "hard vote", margin: 0.03 },
    "the full method ends within 2 points of its own peak": { kind: "below", metric: "fall from the peak", arm: "full", than: 0.02 },
  },
  sabotage: {
    about: "the answer is trained on and no pair is judged: hard votes, as in majority voting",
    stands: "full",
    arm: free({ reward: "hard", mask: false }),
    unshown: ["the full method ends 3 points above hard votes"],
  },
  quick: {
    options: { steps: 4, train_problems: 64, problems: 4, group: 4, eval: { every: 2, problems: 20, temperature: 1 } },
    heldout: { problems: 20 },
    seeds: 1,
  },
  minutes: 25,
  differences: ["The base policy's majority is wrong by a habit of its warm start, not by what it could not learn."],
});
