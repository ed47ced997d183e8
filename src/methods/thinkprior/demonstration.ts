/**
 * What is claimed for ThinkPrior, on a pool of chains of graded difficulty: from none to four products, which the policy mostly
 * works wrongly. The anchor is a smaller policy with the same habit, made from another seed.
 */
import { type Bench, defineDemonstration, type TrainedRun } from "../demonstration.js";
import { thinkprior } from "./thinkprior.js";

const habit = { habit: { operation: "*", as: "+", rate: 0.65 }, slips: 0.03 };
const dapo = { name: "dapo", options: { overlong_punishment: 0 } };
const prior = (options: { readonly [option: string]: string } = {}) => ({ module: thinkprior, options });

/** Answers of steps `from` to `to`: drawn, and those of groups that taught nothing, dropped ones included. */
function answers(trained: TrainedRun, { options }: Bench, to = trained.steps): { readonly drawn: number; readonly wasted: number } {
  const at = (metric: string) => new Map(trained.series(metric).map(({ step, value }) => [step, value]));
  const [rows, silent, dropped] = [at("rows"), at("groups_silent"), at("dapo.dropped")];
  let [drawn, wasted] = [0, 0];
  for (let step = 1; step <= to; step++) {
    const lost = (options.group ?? 0) * (dropped.get(step) ?? 0);
    drawn += (rows.get(step) ?? 0) + lost;
    wasted += (rows.get(step) ?? 0) * (silent.get(step) ?? 0) + lost;
  }
  return { drawn, wasted };
}

export default defineDemonstration({
  paper: thinkprior.paper,
  method: "thinkprior",
  testbed:
    "250 chains of four to six operations modulo 7, every line to be right, as many without a product as with one, two, three and four; a policy of 0.1M parameters and an anchor of 0.06M that work two products in three as sums. 8 problems x 8 answers a step, 60 steps.",
  shared: {
    model: "starters/chain-100k",
    task: { name: "chain", options: { modulus: 7, min_operations: 4, max_operations: 6, counts: { operation: "*", weights: [1, 1, 1, 1, 1] }, strict: true } },
    train_problems: 250,
    steps: 60,
    problems: 8,
    group: 8,
    minibatches: 2,
    lr: 3e-4,
  },
  prepare: {
    per: "demonstration",
    run: async (bench) => ({
      roles: {
        anchor: { model: await bench.warmStart({ task: { name: "chain", options: { modulus: 7, ...habit } }, size: "60k", steps: 2400, lr: 4e-3, seed: 1 }) },
      },
    }),
  },
  arms: {
    flat: { about: "nothing is known at first: Beta(1, 1), learnt while it trains", method: prior({ prior: "flat" }), options: { roles: {} } },
    uniform: { about: "GRPO", method: "grpo", options: { roles: {} } },
    thinkprior: { method: prior() },
    dapo: { about: "groups without signal are replaced", method: dapo, options: { roles: {} } },
    "dapo, thinkprior": { about: "the same, in the order of the prior", method: [dapo, prior()] },
  },
  metrics: {
    "silent, steps 1 to 10": { about: "share of groups", kind: "training", metric: "groups_silent", from: 1, to: 10 },
    "wasted to step 30": {
      about: "answers of groups without signal",
      kind: "own",
      run: (trained, bench) => answers(trained, bench, Math.min(30, trained.steps)).wasted,
    },
    drawn: { about: "answers, dropped ones included", kind: "own", run: (trained, bench) => answers(trained, bench).drawn },
    accuracy: { kind: "avg", problems: 300, temperature: 1 },
  },
  claims: {
    "at most half as many silent groups at first as without a prior": {
      kind: "atMostRatio",
      ratio: 0.5,
      metric: "silent, steps 1 to 10",
      arm: "thinkprior",
      than: "flat",
    },
    "less waste to step 30 than without a prior": { kind: "below", metric: "wasted to step 30", arm: "thinkprior", than: "flat" },
    "no difference in accuracy to GRPO": { kind: "nullDifference", metric: "accuracy", arm: "thinkprior", than: "uniform", margin: 0.03 },
    "dynamic sampling draws fewer answers": { kind: "below", metric: "drawn", arm: "dapo, thinkprior", than: "dapo" },
  },
  sabotage: {
    about: "each problem has the anchor's rate of another one",
    stands: "thinkprior",
    arm: { method: prior({ prior: "shuffled" }) },
    unshown: ["at most half as many silent groups at first as without a prior"],
  },
  quick: { options: { steps: 2, train_problems: 24, problems: 4, group: 4 }, heldout: { problems: 20 }, seeds: 1 },
  seeds: 16,
  minutes: 25,
  differences: ["The anchor differs from the policy in size and seed; the paper's is another model."],
});
