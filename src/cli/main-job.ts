/** The main job: its starter policy, the settings that train it and the measurement before and after (docs/starters.md says how they were found). */
import { fileURLToPath } from "node:url";
import { RunError } from "../core/errors.js";
import type { TrainOptions } from "../train/train.js";
import { measure } from "./measure.js";
import { posedProblems } from "./problems.js";

/** The starter policy: 1M parameters, 4.2 MB. docs/starters.md has the command that makes it again. */
export const starterFolder = fileURLToPath(new URL("../../starters/chain-1M", import.meta.url));

const task = "chain";
const minibatches = 4;

/** Settings of a run of so many batches. The rate climbs in 16 updates, of a very short run in fewer, and falls to 0. */
export function mainJob(steps: number): Omit<TrainOptions, "out"> {
  return {
    model: starterFolder,
    task,
    steps,
    problems: 24,
    group: 8,
    minibatches,
    lr: 1.5e-4,
    schedule: { kind: "linear", warmup: Math.min(16, steps * minibatches - 1) },
    checkpoint: { every: 50 },
  };
}

/** Problems of the evaluation before and after: those of `touchstone eval` without flags. */
export const heldOut = 1000;
const evaluationSeed = 0;

export interface Score {
  readonly value: number;
  /** 95 %. */
  readonly interval: readonly [number, number];
}

/** The part of right answers as `touchstone eval MODEL --task chain` measures it. */
export async function rightAnswers(model: string, greedy: boolean, silent: boolean): Promise<Score> {
  const posed = await posedProblems({ task, nProblems: heldOut }, evaluationSeed, heldOut);
  const flags = { n: 1, seed: evaluationSeed, ...(greedy ? { greedy: true as const } : {}) };
  const { evaluation } = await measure({ model, posed, flags, k: [1], silent });
  const { value, interval } = evaluation.metrics.estimates.find(({ name }) => name === "avg") ?? {};
  if (value == null || interval == null) {
    throw new RunError({ place: `evaluation of ${model}`, cause: "no answer could be scored", mend: "see touchstone eval, which names the reasons" });
  }
  return { value, interval: [interval.low, interval.high] };
}
