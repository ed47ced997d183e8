/**
 * `touchstone start`, the main job: the starter policy that ships with the package, which has learnt a common
 * misconception, is trained by GRPO on verified answers and measured on problems that neither training has seen.
 */
import type { Command } from "commander";
import { shellWord } from "../core/shell.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { refuseUnlessNew } from "../train/store/fresh.js";
import { type TrainHooks, type TrainResult, train } from "../train/train.js";
import { wholeNumber } from "./flags.js";
import { freeFolder } from "./free-folder.js";
import { invocation } from "./invocation.js";
import { heldOut, mainJob, rightAnswers, type Score, starterFolder } from "./main-job.js";
import { colours, print } from "./output.js";
import { interruptedCode, percent, Watch } from "./watch.js";

interface StartFlags {
  readonly steps: number;
  readonly seed: number;
  readonly out?: string;
  readonly json?: true;
}

export function define(command: Command): void {
  command
    .option("--steps <count>", "batches of 24 problems with 8 answers each", wholeNumber("--steps", 1), 150)
    .option("--seed <number>", "of training", wholeNumber("--seed", 0), 0)
    .option("--out <folder>", "folder of the run; new or empty (default: runs/start, or the next free number)")
    .option("--json", "print the result as a line of JSON")
    .addHelpText(
      "after",
      `
The starter policy works chains of operations modulo 11 line by line, but has learnt to work "*" as "+" more often than
not. Training rewards right answers only. Before and after, ${heldOut} problems are answered that are in neither training.

Example:
  $ touchstone start --seed 1 --out runs/second`,
    )
    .action(run);
}

interface Scores {
  readonly sampled: Score;
  readonly greedy: Score;
}

/** What the run measures itself, at temperature 1, by step: so it is in the run too, and the same as `touchstone eval` says. */
class Measured {
  private readonly scores = new Map<number, Score>();

  /** The hooks of a run, with evaluations kept on their way. */
  along({ onProgress, ...hooks }: TrainHooks): TrainHooks {
    return {
      ...hooks,
      onProgress: (progress) => {
        if (progress.kind === "evaluation") {
          const estimates = progress.data.estimates as readonly { readonly name: string; readonly value: number | null; readonly interval: Interval | null }[];
          const { value, interval } = estimates.find(({ name }) => name === "avg") ?? {};
          if (value != null && interval != null) this.scores.set(progress.step, { value, interval: [interval.low, interval.high] });
        }
        onProgress?.(progress);
      },
    };
  }

  /** Of a step; measured now where the run did not. */
  async at(step: number, model: string, silent: boolean): Promise<Score> {
    return this.scores.get(step) ?? (await rightAnswers(model, false, silent));
  }
}

interface Interval {
  readonly low: number;
  readonly high: number;
}

async function run({ steps, seed, out = freeFolder("runs/start"), json }: StartFlags): Promise<void> {
  refuseUnlessNew(out);
  refuseUnlessWritable(out);
  const started = performance.now();
  const silent = json === true;
  const paint = colours(process.stdout);
  const say = (text: string): void => {
    if (!silent) print(text);
  };
  const greedy = await rightAnswers(starterFolder, true, silent);
  say(`${paint.bold("before")}  ${withInterval(greedy)} greedy, of ${heldOut} held-out problems`);
  const watch = new Watch(silent);
  const measured = new Measured();
  let result: TrainResult;
  try {
    result = await train({ ...mainJob(steps), eval: { every: steps, problems: heldOut }, out, seed, ...measured.along(watch.hooks) });
  } finally {
    watch.end();
  }
  const picture = watch.picture();
  if (picture.length > 0) for (const line of [paint.bold("right answers of each batch"), ...picture]) say(line);
  if (result.reason === "interrupted") {
    // The message names the folder; what is half trained is not measured.
    if (json) print(JSON.stringify({ interrupted: result.message, steps: result.steps }));
    else print(`${result.message.charAt(0).toUpperCase()}${result.message.slice(1)}.`);
    process.exitCode = interruptedCode;
    return;
  }
  const before: Scores = { sampled: await measured.at(0, starterFolder, silent), greedy };
  const after: Scores = { sampled: await measured.at(result.steps, result.model, silent), greedy: await rightAnswers(result.model, true, silent) };
  say(`${paint.bold("before")}  ${row(before)}`);
  say(`${paint.bold("after")}   ${row(after)}`);
  const wall = (performance.now() - started) / 1000;
  if (json) print(JSON.stringify(jsonOf(before, after, result.steps, wall)));
  else for (const line of nextSteps(out, result, wall)) print(line);
}

const row = ({ sampled, greedy }: Scores): string =>
  `${withInterval(sampled)} at temperature 1, ${withInterval(greedy)} greedy, of ${heldOut} held-out problems`;
const withInterval = ({ value, interval: [low, high] }: Score): string => `${percent(value)} right (${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})`;

function jsonOf(before: Scores, after: Scores, steps: number, wall: number): { readonly [key: string]: unknown } {
  return {
    before: before.sampled.value,
    after: after.sampled.value,
    before_ci: before.sampled.interval,
    after_ci: after.sampled.interval,
    greedy_before: before.greedy.value,
    greedy_after: after.greedy.value,
    n: heldOut,
    steps,
    wall_s: Math.round(10 * wall) / 10,
  };
}

/** The smallest of those that load (docs/models.md). */
const realModel = "HuggingFaceTB/SmolLM2-135M-Instruct";

function nextSteps(out: string, { reason, message, steps, model }: TrainResult, wall: number): string[] {
  return [
    ...(reason === "done" ? [] : [message]),
    `${steps} steps, ${wall.toFixed(0)} s in all. The policy is in ${model}`,
    "",
    "Look at the run:",
    `  ${invocation()} view ${shellWord(out)}`,
    'A real model on data of your own (my.jsonl: {"question": "…", "answer": 42} a line), from the hub, a GGUF file or a folder:',
    `  ${invocation()} train --model ${realModel} --lora 16 --data my.jsonl --prompt-column question --verifier number --max-tokens 256 --out ${freeFolder("runs/mine")}`,
    "A task and data of your own, in a folder that trains at once:",
    `  ${invocation()} init ${freeFolder("my-task")}`,
  ];
}
