/**
 * What is claimed for HISPO, on chains with many operations that the policy mostly works wrongly: four optimizer steps a batch,
 * so that ratios move away from 1.
 */
import { defineDemonstration, type TrainedRun } from "../demonstration.js";
import { hispo } from "./hispo.js";

const segmented = (more: { readonly [option: string]: string | number } = {}) => ({ method: { module: hispo, options: { window: 4, ...more } } });

/** Mean share of tokens that are beyond either bound. */
function clipped(trained: TrainedRun): number | undefined {
  const values = ["clip_low", "clip_high"].map((metric) => trained.series(metric));
  return values.some((series) => series.length === 0)
    ? undefined
    : values.reduce((sum, series) => sum + series.reduce((all, { value }) => all + value, 0) / series.length, 0);
}

const heldout = { problems: 300, samples: 8, temperature: 1 } as const;

export default defineDemonstration({
  paper: hispo.paper,
  method: "hispo",
  testbed:
    "Chains of six operations modulo 7, three to five of them products, every line to be right; a policy of 0.1M parameters that works two products in three as sums. 4 optimizer steps a batch (2 epochs of 2), 12 batches, while it still learns fast.",
  shared: {
    model: "starters/chain-100k",
    task: {
      name: "chain",
      options: { modulus: 7, min_operations: 6, max_operations: 6, counts: { operation: "*", weights: [0, 0, 0, 1, 1, 1] }, strict: true },
    },
    steps: 12,
    problems: 16,
    group: 8,
    minibatches: 2,
    epochs: 2,
    lr: 3e-4,
  },
  arms: {
    grpo: { method: "grpo" },
    "token-mean": { about: "GRPO averaged over tokens", method: { name: "grpo", options: { aggregation: "token-mean" } } },
    gspo: { method: "gspo" },
    hispo: { about: "one peak within 4 tokens", ...segmented() },
  },
  metrics: {
    "acc@8": { kind: "avg", ...heldout },
    "pass@8": { kind: "pass", k: 8, ...heldout },
    "clipped tokens": { about: "share of tokens beyond either bound", kind: "own", run: clipped },
    segments: { about: "segments an answer", kind: "training", metric: "hispo.segments" },
  },
  claims: {
    "more problems solved in 8 than by GRPO": { kind: "above", metric: "pass@8", arm: "hispo", than: "grpo" },
    "no fewer than by the mean over tokens": { kind: "notBelow", metric: "pass@8", arm: "hispo", than: "token-mean", margin: 0.01 },
    "no fewer than by GSPO": { kind: "notBelow", metric: "pass@8", arm: "hispo", than: "gspo", margin: 0.01 },
  },
  sabotage: {
    about: "the entropies of each answer stand at other tokens of it, so that segments and their weights mean nothing",
    stands: "hispo",
    arm: segmented({ control: "shuffled" }),
    unshown: ["more problems solved in 8 than by GRPO"],
  },
  quick: { options: { steps: 2, problems: 8, group: 4 }, heldout: { problems: 20 }, seeds: 1 },
  seeds: 10,
  minutes: 12,
  differences: ["Answers have about 30 tokens and three to seven segments; the paper's have thousands of tokens, and peaks at least 64 apart."],
});
