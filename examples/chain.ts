/**
 * The run of from-scratch.ts by the library: the task, the method and the loop are Touchstone's, and the run can be resumed.
 *
 *     npm run examples chain -- starters/chain-1M --steps 100 --out runs/chain
 */
import { parseArgs } from "node:util";
import { chain, train } from "touchstone-rl";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    steps: { type: "string", default: "100" },
    out: { type: "string", default: "runs/chain" },
    seed: { type: "string", default: "0" },
    modulus: { type: "string", default: "11" },
    "eval-problems": { type: "string", default: "200" },
  },
});

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
let first: number | undefined;
const result = await train({
  model: positionals[0] ?? "starters/chain-1M",
  out: values.out,
  task: chain({ modulus: Number(values.modulus) }),
  steps: Number(values.steps),
  problems: 16,
  group: 8,
  minibatches: 2,
  lr: 1e-4,
  seed: Number(values.seed),
  eval: { every: 25, problems: Number(values["eval-problems"]) },
  onProgress: (progress) => {
    if (progress.kind === "step") console.log(`step ${progress.step}: reward ${progress.metrics.reward?.toFixed(3)}`);
    if (progress.kind !== "evaluation" || progress.score === undefined) return;
    first ??= progress.score;
    console.log(`step ${progress.step}: ${percent(progress.score)} of ${progress.data.problems} held-out problems`);
  },
});
console.log(
  `held-out: ${percent(first ?? 0)} at step 0, ${percent(result.evaluation["eval.score"] ?? 0)} at step ${result.steps}\nThe policy is in ${result.model}`,
);
