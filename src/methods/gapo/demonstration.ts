/**
 * What is claimed for GAPO, on chains of mixed difficulty: half of them the policy nearly always gets wrong. Eight optimizer
 * steps a batch, so that bounds are met.
 */
import { defineMethod } from "../define.js";
import { defineDemonstration } from "../demonstration.js";
import { gapo } from "./gapo.js";

/** Chains by how many of their operations are products; with weights [1, 0, 1, 1] half of them are hard. */
const task = (weights: readonly number[]) => ({
  name: "chain",
  options: { modulus: 7, min_operations: 4, max_operations: 6, counts: { operation: "*", weights: [...weights] }, strict: true },
});

const base = { name: "grpo", options: { std: "population", eps: 1e-6 } };
const bounded = (options: { readonly [option: string]: string | number }) => ({ module: gapo, options });
/** Bounds as they are; answers are told apart as GAPO's are, so that the share of them that is clipped can be compared. */
const fixed = bounded({ k_min: 1, k_max: 1 });

/** The room that GAPO gives to the ratio given to the advantage itself: A <- A times min(max(|A|, 0.5), 3). */
const rescaled = defineMethod({
  name: "rescaled",
  make: () => ({
    slots: {
      shape: {
        level: "trajectory",
        keeps: ["sign", "zero"],
        run: (_, credit) =>
          credit.scaled(
            "trajectory",
            credit.trajectory.map((a) => Math.min(Math.max(Math.abs(a), 0.5), 3)),
          ),
      },
    },
  }),
});

const hard = { problems: 300, samples: 8, temperature: 1, task: task([0, 0, 1, 1]) };

export default defineDemonstration({
  paper: gapo.paper,
  method: "gapo",
  testbed:
    "Chains of four to six operations modulo 7, every line to be right, half of them without a product and half with two or three, which a policy of 0.1M parameters works as sums two times in three: it begins at about one answer in ten there. 8 optimizer steps a batch (2 epochs of 4), 12 batches, while it still learns fast.",
  shared: { model: "starters/chain-100k", task: task([2, 0, 1, 1]), steps: 12, problems: 16, group: 8, minibatches: 4, epochs: 2, lr: 3e-4 },
  arms: {
    fixed: { about: "GRPO with its bounds", method: [base, fixed] },
    gapo: { method: [base, bounded({})] },
    wide: { about: "all bounds as wide as GAPO's are on average", method: [base, bounded({ control: "mean" })] },
    rescaled: { about: "bounds as they are, advantages times the factor", method: [base, fixed, { module: rescaled }] },
    gspo: { about: "ratios of whole answers, bounds as they are", method: [base, "gspo", fixed] },
    "gapo on gspo": { about: "ratios of whole answers", method: [base, "gspo", bounded({})] },
  },
  metrics: {
    "clipped, right answers of hard groups": { about: "groups of which at most a quarter is right", kind: "training", metric: "gapo.hard.up.clipped" },
    "pass@1, hard half": { kind: "avg", ...hard },
    "pass@8, hard half": { kind: "pass", k: 8, ...hard },
    "pass@1": { kind: "avg", problems: 300, temperature: 1 },
  },
  claims: {
    "a third less of what is rare and right is clipped": {
      about: "falls by 30 % or more",
      kind: "atMostRatio",
      ratio: 0.7,
      metric: "clipped, right answers of hard groups",
      arm: "gapo",
      than: "fixed",
    },
    "the same where ratios are of whole answers": {
      kind: "atMostRatio",
      ratio: 0.7,
      metric: "clipped, right answers of hard groups",
      arm: "gapo on gspo",
      than: "gspo",
    },
    "more often right on the hard half": { kind: "above", metric: "pass@1, hard half", arm: "gapo", than: "fixed" },
    "more problems solved in 8 on the hard half": { kind: "above", metric: "pass@8, hard half", arm: "gapo", than: "fixed" },
    "no less often right than with wide bounds for all": { kind: "notBelow", metric: "pass@1, hard half", arm: "gapo", than: "wide", margin: 0.01 },
    "no fewer solved in 8 than with wide bounds for all": { kind: "notBelow", metric: "pass@8, hard half", arm: "gapo", than: "wide", margin: 0.01 },
  },
  sabotage: {
    about: "every answer has the room of an average one, whatever its advantage: the arm `wide` in the place of GAPO",
    stands: "gapo",
    arm: { method: [base, bounded({ control: "mean" })] },
    unshown: ["a third less of what is rare and right is clipped"],
  },
  quick: { options: { steps: 2, problems: 8 }, heldout: { problems: 16 }, seeds: 1 },
  seeds: 10,
  minutes: 18,
  differences: ["Expressions are chains, whose difficulty is the number of products."],
});
