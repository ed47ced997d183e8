/** `touchstone reproduce`: what a paper claims, shown or not shown at the scale of this machine, by arms over paired seeds. */
import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { currentCommit } from "../reproduce/commit.js";
import { type FoundDemonstration, findDemonstration } from "../reproduce/find.js";
import { writeWhole } from "../reproduce/part.js";
import { writeReproductionPlot } from "../reproduce/plot.js";
import { recordOf, recordSabotage, writeRecord } from "../reproduce/record.js";
import { type ReproduceOptions, type ReproduceProgress, type Reproduction, reproduce, sabotaged } from "../reproduce/reproduce.js";
import { armRows, claimRows } from "../reproduce/text.js";
import { wholeNumber } from "./flags.js";
import { colours, print, table } from "./output.js";
import { Progress } from "./progress.js";
import { interruptedCode, signals } from "./watch.js";

interface ReproduceFlags {
  readonly seeds?: number;
  readonly quick?: true;
  readonly sabotage?: true;
  readonly out?: string;
  readonly atOnce?: number;
  readonly record?: true;
  readonly remark?: string;
  readonly json?: true;
}

/** Beyond two processes at a time a laptop's memory and caches are what they wait for. */
const usuallyAtOnce = 2;

export function define(command: Command): void {
  command
    .usage("PAPER [options]")
    .argument("<paper>", "number of a paper (P06), its method (hispo), or the path of a demonstration")
    .option("--seeds <count>", "paired seeds (default: the demonstration's, mostly 5)", wholeNumber("--seeds", 1))
    .option("--quick", "numbers of a small run within a minute, and no verdict")
    .option("--sabotage", "instead: the method with its key line neutralised, on two sets of seeds; fails where its claims are shown on both")
    .option("--out <folder>", "folder of runs, numbers and picture (default: runs/reproduce/PAPER)")
    .option("--at-once <count>", "runs at one time, each on one core (default: 2, or 1 where there is one core)", wholeNumber("--at-once", 1))
    .option("--record", "in a clone: also write docs/reproductions/PAPER.json")
    .option("--remark <text>", "with --record: what a reader must know, such as why it may not show at this scale")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      `
Arms of one seed share problems, starter and random keys. A claim is shown where the 95 % interval of its mean over the
seeds, the wider of the paired bootstrap's and of the paired t's, lies on its side alone; all must be for "shown", and one
on the other side is "reversed". The exit code says whether it ran, not what came out.
The same command goes on after an interruption: what is done is kept in --out.

Examples:
  $ touchstone reproduce P06 --quick
  $ touchstone reproduce P06 --seeds 5
  $ touchstone reproduce P06 --sabotage
  $ touchstone reproduce P06 --record && touchstone reproduce P06 --sabotage --record
  $ touchstone reproduce ./my-method/demonstration.ts`,
    )
    .action(run);
}

async function run(paper: string, flags: ReproduceFlags): Promise<void> {
  refuseTogether(flags);
  const found = await findDemonstration(paper);
  if (flags.sabotage && flags.record && recordOf(found.id) === undefined)
    throw new ConfigError({
      place: "option --record",
      cause: `there is no record of ${found.id} yet that what its sabotage shows could be added to`,
      mend: `give touchstone reproduce ${found.id} --record first`,
    });
  const { quick = false, seeds, json = false } = flags;
  const out = resolve(flags.out ?? join("runs", "reproduce", `${found.id}${quick ? "-quick" : ""}`));
  refuseUnlessWritable(out);
  mkdirSync(out, { recursive: true });
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  for (const signal of signals) process.on(signal, onSignal);
  const progress = new Parts(found, json);
  const options: ReproduceOptions = {
    quick,
    out,
    atOnce: flags.atOnce ?? Math.min(usuallyAtOnce, availableParallelism()),
    signal: stop.signal,
    onProgress: (at) => progress.at(at),
    ...(seeds !== undefined && { seeds }),
  };
  try {
    const done = flags.sabotage ? await sabotage(found, options, flags, progress) : await whole(found, options, flags, progress);
    if (done) return;
    progress.end();
    process.stderr.write("Interrupted; the same command goes on.\n");
    process.exitCode = interruptedCode;
  } finally {
    progress.end();
    for (const signal of signals) process.off(signal, onSignal);
  }
}

function refuseTogether({ quick, sabotage, record, remark }: ReproduceFlags): void {
  const place = "touchstone reproduce";
  if (quick && sabotage) throw new ConfigError({ place, cause: "--quick gives no verdict, and --sabotage is about one", mend: "leave one of the two out" });
  if (quick && record) throw new ConfigError({ place, cause: "a quick run is too small to be recorded", mend: "leave --quick or --record out" });
  if (record && !/^[0-9a-f]{40}/.test(currentCommit()))
    throw new ConfigError({ place: "option --record", cause: "the sources are no clone of the repository", mend: "leave it out" });
  if (record && currentCommit().endsWith("+changes"))
    throw new ConfigError({ place: "option --record", cause: "the sources differ from their commit", mend: "commit them, or run in a clone of the commit" });
  if (remark !== undefined && !record)
    throw new ConfigError({ place: "option --remark", cause: "nothing is recorded", mend: "give --record, or leave it out" });
}

async function whole(found: FoundDemonstration, options: ReproduceOptions, { record, remark, json }: ReproduceFlags, progress: Parts): Promise<boolean> {
  const reproduction = await reproduce(found, options);
  if (reproduction === undefined) return false;
  progress.end();
  const { out } = options;
  const { missing, ...files } = await writeReproductionPlot(out, reproduction);
  const path = join(out, "reproduction.json");
  writeWhole(path, reproduction);
  const recorded = record ? writeRecord(reproduction, remark) : undefined;
  if (json) {
    print(JSON.stringify({ ...reproduction, files: { json: path, ...files, ...(recorded && { record: recorded }) } }));
    return true;
  }
  for (const line of reproductionLines(reproduction)) print(line);
  for (const each of missing) process.stderr.write(`note: ${each}\n`);
  print(`\nThe numbers are in ${path}${files.svg ? `, the picture is ${files.png ?? files.svg}` : ""}${recorded ? `; recorded in ${recorded}` : ""}`);
  return true;
}

async function sabotage(found: FoundDemonstration, options: ReproduceOptions, { record, json }: ReproduceFlags, progress: Parts): Promise<boolean> {
  const { quick: _, ...rest } = options;
  const result = await sabotaged(found, rest);
  if (result === undefined) return false;
  progress.end();
  writeWhole(join(options.out, "sabotage.json"), result);
  if (record) recordSabotage(found.id, { about: result.about, outcomes: result.sets.map(({ outcome }) => outcome) });
  if (json) print(JSON.stringify(result));
  else {
    const { bold } = colours(process.stdout);
    for (const set of result.sets)
      for (const line of [bold(`sabotage: ${result.about}; seeds ${set.seeds[0]} to ${set.seeds.at(-1)}`), ...claimLines(set), ""]) print(line);
    print(
      result.caught
        ? "The claims are not shown for the sabotaged method on both sets of seeds, as it must be."
        : "The claims are shown for the sabotaged method on both sets of seeds: the demonstration cannot tell it from the method.",
    );
  }
  if (!result.caught) process.exitCode = 1;
  return true;
}

/** A reproduction in the terminal. */
export function reproductionLines(reproduction: Reproduction): string[] {
  const { bold } = colours(process.stdout);
  const { id, paper, testbed, seeds, arms, outcome, failed, minutes } = reproduction;
  const words = arms.flatMap(({ arm, about }) => (about === undefined ? [] : [`${arm}: ${about}`]));
  return [
    bold(paper.startsWith(id) ? paper : `${id}: ${paper}`),
    testbed,
    ...words,
    "",
    bold(`means over ${seeds.length} ${seeds.length === 1 ? "seed" : "seeds"}, with 95 % intervals`),
    ...table(armRows(reproduction)),
    "",
    ...claimLines(reproduction),
    ...failed.map(({ arm, seed, why }) => `${arm}, seed ${seed}, yielded nothing: ${why}`),
    "",
    outcome === null ? `A quick run of ${minutes} minutes of work: no verdict.` : bold(`${outcome}, in ${minutes} minutes of work`),
  ];
}

const claimLines = (reproduction: Pick<Reproduction, "claims">): string[] => table(claimRows(reproduction), [2, 4]);

/** The progress line over parts. */
class Parts {
  private progress: Progress | undefined;

  constructor(
    private readonly found: FoundDemonstration,
    private readonly silent: boolean,
  ) {}

  at({ done, total, part }: ReproduceProgress): void {
    if (part === undefined) {
      this.progress?.end();
      this.progress = new Progress({ label: this.found.id, total, first: done, silent: this.silent });
      if (done > 0) this.progress.say(`${done} of ${total} parts are done and are kept.`);
    }
    this.progress?.at(done, part ? `${part.arm}, seed ${part.seed}: ${part.seconds} s` : "");
  }

  end(): void {
    this.progress?.end();
    this.progress = undefined;
  }
}
