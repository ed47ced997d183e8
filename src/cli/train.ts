/** `touchstone train`: reinforcement on verified answers, with a progress line, a curve at the end, and a run folder. */
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import { resume, type TrainOptions, type TrainResult, train } from "../train/train.js";
import { curve } from "./curve.js";
import { colours, print } from "./output.js";
import { showDryRun } from "./train-dry-run.js";
import { fileConfig, type TrainFlags, trainOptions, writtenConfig } from "./train-flags.js";
import { checkWritten, placed, placesOf } from "./train-places.js";
import { percent, Watch } from "./watch.js";

export function define(command: Command): void {
  trainOptions(command)
    .addHelpText(
      "after",
      `
Ctrl-C finishes the step in hand and saves; a second one ends at once, and the last checkpoint stands.

Examples:
  $ touchstone train --model starter --task chain --steps 100 --lr 1e-4 --eval-every 25 --out runs/first
  $ touchstone train --model my-model --data train.jsonl --prompt-column question --verifier number --eval-share 0.1 --out runs/mine
  $ touchstone train --config run.yaml --set method.options.clip_high=0.28 --dry-run
  $ touchstone train --resume runs/first`,
    )
    .action(run);
}

async function run(flags: TrainFlags): Promise<void> {
  if (flags.resume !== undefined) refuseBeside(flags);
  const file = await fileConfig(flags);
  const placeOf = placesOf(flags, file);
  const written = flags.resume === undefined ? await writtenConfig(flags, file) : undefined;
  if (written) checkWritten(written, placeOf);
  try {
    await follow(flags, written as TrainOptions | undefined);
  } catch (error) {
    throw placed(error, placeOf);
  }
}

async function follow(flags: TrainFlags, config: TrainOptions | undefined): Promise<void> {
  if (config && flags.dryRun) return showDryRun(config, flags.json === true);
  const watch = new Watch(flags.json === true);
  try {
    const result = config ? await train({ ...config, ...watch.hooks }) : await resume(flags.resume as string, watch.hooks);
    watch.end();
    if (flags.json) print(JSON.stringify({ ...result, rewards: watch.rewards }));
    else report(result, watch);
    if (result.reason === "no-signal") process.exitCode = 1;
  } finally {
    watch.end();
  }
}

/** A resumed run goes on as it began: its options are in its folder. */
function refuseBeside(flags: TrainFlags): void {
  const other = Object.keys(flags).find((name) => name !== "resume" && name !== "json");
  if (other === undefined) return;
  const flag = `--${other.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw new ConfigError({ place: `option ${flag}`, cause: "a resumed run keeps the options that it began with", mend: `leave it out beside --resume` });
}

function report(result: TrainResult, { rewards, scores }: Watch): void {
  const paint = colours(process.stdout);
  if (rewards.length > 1) {
    print(paint.bold("reward a step"));
    for (const line of curve(rewards, { low: Math.min(0, ...rewards), high: Math.max(1, ...rewards) })) print(line);
  }
  const [first] = scores;
  const last = scores.at(-1);
  if (first && last && first !== last) print(`held-out: ${percent(first.score)} at step ${first.step}, ${percent(last.score)} at step ${last.step}`);
  print(`${result.message.charAt(0).toUpperCase()}${result.message.slice(1)}.`);
  print(`The policy is in ${result.model}`);
  if (result.reason === "done") print(`  touchstone sample ${result.folder}@last --help     touchstone eval ${result.folder}@last --help`);
}
