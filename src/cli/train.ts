/** `touchstone train`: reinforcement on verified answers, with a progress line, a curve at the end, and a run folder. */
import type { Command } from "commander";
import { ConfigError, EngineError } from "../core/errors.js";
import { shellWord } from "../core/shell.js";
import { RunReader } from "../train/store/reader.js";
import { resume, type TrainOptions, type TrainResult, train } from "../train/train.js";
import { invocation, relativePath } from "./invocation.js";
import { colours, print } from "./output.js";
import { showDryRun } from "./train-dry-run.js";
import { fileConfig, type TrainFlags, trainOptions, writtenConfig } from "./train-flags.js";
import { checkWritten, placed, placesOf } from "./train-places.js";
import { type BesideRun, viewBeside } from "./view-process.js";
import { interruptedCode, percent, signals, Watch } from "./watch.js";

export function define(command: Command): void {
  command.usage("[CONFIG] [options]").argument("[config]", "options from a .yaml, .json or .ts file; the same as --config");
  trainOptions(command)
    .option("--view", "show the run in the browser while it trains, in a process of its own (touchstone view)")
    .addHelpText(
      "after",
      `
Ctrl-C, SIGTERM and a closed terminal finish the step in hand, cut an evaluation short, and save; the exit code is then 130.
A second one ends at once, and the last checkpoint stands. The exit code is 1 where a run stopped by itself for want of signal.

Examples:
  $ touchstone train --model starter --task chain --steps 100 --lr 1e-4 --eval-every 25 --out runs/first
  $ touchstone train --model my-model --data train.jsonl --prompt-column question --verifier number --eval-share 0.1 --out runs/mine
  $ touchstone train --model HuggingFaceTB/SmolLM2-135M-Instruct --lora 16 --data train.jsonl --verifier number --out runs/lora
  $ touchstone train run.yaml --set method.options.clip_high=0.28 --dry-run
  $ touchstone train --engine tinker --base-url http://127.0.0.1:8000 --model Qwen/Qwen3-8B --data train.jsonl --verifier math --out runs/remote
  $ touchstone train run.yaml --view
  $ touchstone train --resume runs/first`,
    )
    .action((config: string | undefined, flags: TrainFlags) => run(withConfig(config, flags)));
}

function withConfig(config: string | undefined, flags: TrainFlags): TrainFlags {
  if (config === undefined) return flags;
  if (flags.config === undefined) return { ...flags, config };
  throw new ConfigError({ place: `argument ${config}`, cause: "--config names a file too", mend: "give one of them" });
}

async function run(flags: TrainFlags): Promise<void> {
  if (flags.resume !== undefined) refuseBeside(flags);
  const file = await fileConfig(flags);
  const placeOf = placesOf(flags, file);
  const written = flags.resume === undefined ? await writtenConfig(flags, file) : undefined;
  if (written) checkWritten(written, placeOf);
  const folder = flags.resume ?? (written?.out as string | undefined);
  const beside = flags.view && !flags.dryRun && folder !== undefined ? await viewBeside(folder) : undefined;
  try {
    await follow(flags, written as TrainOptions | undefined);
    if (beside && process.stdout.isTTY && !flags.json) await stay(beside);
  } catch (error) {
    throw resumable(placed(error, placeOf), folder);
  } finally {
    beside?.end();
  }
}

/** Whoever sits before a terminal looks at the run when it is done. */
async function stay({ address, ended }: BesideRun): Promise<void> {
  if (address === undefined) return;
  process.stderr.write(`The view stays at ${address} until Ctrl-C.\n`);
  const asked = new Promise<void>((stop) => {
    for (const signal of signals) process.once(signal, () => stop());
  });
  await Promise.race([ended, asked]);
}

/** An engine that was lost takes nothing with it but the steps since the last checkpoint: the error says how to go on. */
function resumable(error: unknown, folder: string | undefined): unknown {
  if (!(error instanceof EngineError) || folder === undefined) return error;
  const step = lastCheckpoint(folder);
  if (step === undefined) return error;
  const command = `${invocation()} train --resume ${shellWord(folder)}`;
  const mend = `${error.mend.replace(/(; )?start a new engine.*$/, "$1")}go on from the checkpoint of step ${step} with: ${command}`;
  const cause = error.message.slice(`${error.place}: `.length, -`; ${error.mend}`.length);
  return new EngineError({ place: error.place, cause, mend, data: error.data }, { cause: error });
}

function lastCheckpoint(folder: string): number | undefined {
  try {
    return RunReader.open(folder).checkpoints.steps().at(-1);
  } catch {
    // The engine was lost before there was a run.
    return undefined;
  }
}

async function follow(flags: TrainFlags, config: TrainOptions | undefined): Promise<void> {
  if (config && flags.dryRun) return showDryRun(config, flags.json === true);
  const watch = new Watch(flags.json === true);
  try {
    const result = config
      ? await train({ ...config, ...watch.hooks })
      : await resume(flags.resume as string, { ...watch.hooks, ...(flags.baseUrl !== undefined && { baseUrl: flags.baseUrl }) });
    watch.end();
    if (flags.json) print(JSON.stringify({ ...result, rewards: watch.rewards, messages: watch.messages }));
    else report(result, watch);
    if (result.reason === "no-signal") process.exitCode = 1;
    if (result.reason === "interrupted") process.exitCode = interruptedCode;
  } finally {
    watch.end();
  }
}

/** A resumed run goes on as it began: its options are in its folder. */
function refuseBeside(flags: TrainFlags): void {
  const other = Object.keys(flags).find((name) => !["resume", "json", "view", "baseUrl"].includes(name));
  if (other === undefined) return;
  const flag = `--${other.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw new ConfigError({ place: `option ${flag}`, cause: "a resumed run keeps the options that it began with", mend: `leave it out beside --resume` });
}

function report(result: TrainResult, watch: Watch): void {
  const paint = colours(process.stdout);
  const picture = watch.picture();
  if (picture.length > 0) for (const line of [paint.bold("reward a step"), ...picture]) print(line);
  const { scores } = watch;
  const [first] = scores;
  const last = scores.at(-1);
  if (first && last && first !== last) print(`held-out: ${percent(first.score)} at step ${first.step}, ${percent(last.score)} at step ${last.step}`);
  print(`${result.message.charAt(0).toUpperCase()}${result.message.slice(1)}.`);
  print(`The policy is in ${result.model}`);
  if (result.reason !== "done") return;
  const policy = shellWord(`${relativePath(result.folder)}@last`);
  print(`  ${invocation()} sample ${policy} --n-problems 3`);
  print(`  ${invocation()} eval ${policy}`);
}
