/** `touchstone compare`: runs that are there, or methods x seeds that it makes first; one report with intervals from pairs. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { type PlannedRun, planRuns, runAll } from "../compare/methods.js";
import { type PlotFiles, writePlot } from "../compare/plot.js";
import { type Arm, type Report, reportOf } from "../compare/report.js";
import { evaluationMetric, readRun } from "../compare/run.js";
import { ConfigError } from "../core/errors.js";
import { refuseUnlessWritable } from "../core/writable.js";
import type { TrainOptions } from "../train/train.js";
import { reportLines } from "./compare-text.js";
import { quoted } from "./flags.js";
import { freeFolder } from "./free-folder.js";
import { colours, print } from "./output.js";
import { fileConfig, type TrainFlags, trainOptions, writtenConfig } from "./train-flags.js";
import { checkWritten, placed, placesOf } from "./train-places.js";
import { Watch } from "./watch.js";

interface CompareFlags extends Omit<TrainFlags, "json"> {
  readonly methods?: readonly string[];
  readonly seeds?: readonly number[];
  readonly metric: string;
  readonly threshold?: number;
  readonly json?: true;
}

/** Flags of a single run. */
const single: readonly (readonly [keyof TrainFlags, string])[] = [
  ["method", "give --methods"],
  ["methodOptions", "write the options under method in the file of --config"],
  ["seed", "give --seeds"],
  ["resume", "the same command goes on with what was interrupted"],
  ["dryRun", "see touchstone train --dry-run"],
];

export function define(command: Command): void {
  command.usage("[RUN | LABEL=RUN,RUN …] [options]").argument("[runs...]", "folders of runs; LABEL=RUN,RUN gathers seeds of one method");
  command
    .option("--methods <list>", "instead of RUNs: methods to run and compare, such as grpo,rloo,dapo; one alone gets its curve", names("--methods"))
    .option("--seeds <count or list>", "of each method: 5 is 0 to 4, and 3,8 are those two (default: 3)", seedsOf)
    .option("--metric <name>", "what is compared: eval.score, or a number of training's steps such as reward", evaluationMetric)
    .option("--threshold <value>", "also the steps until the metric is at least this", finite("--threshold"));
  trainOptions(command);
  for (const option of command.options) {
    if (single.some(([name]) => name === option.attributeName())) option.hideHelp();
    if (option.long === "--out")
      option.description = "folder of the report and of the runs that are made (default: runs/compare, or the next free number, for RUNs)";
    if (option.long === "--json") option.description = "print one JSON object";
  }
  command
    .addHelpText(
      "after",
      `
Runs of one seed are pairs, and so are answers to one held-out problem; docs/compare.md says what the intervals mean.
With --methods all flags and files of touchstone train hold for every run, and the same command goes on after an interruption.

Examples:
  $ touchstone compare grpo=runs/g0,runs/g1,runs/g2 dapo=runs/d0,runs/d1,runs/d2 --threshold 0.8
  $ touchstone compare --methods grpo,rloo,dapo --seeds 5 --config base.yaml --out runs/three
  $ touchstone compare --methods grpo --seeds 5 --config base.yaml --out runs/curve`,
    )
    .action(run);
}

async function run(runs: readonly string[], flags: CompareFlags): Promise<void> {
  if (flags.methods === undefined) return compareRuns(runs, flags);
  if (runs.length > 0)
    throw new ConfigError({ place: `argument ${runs[0]}`, cause: "with --methods the runs are made, not given", mend: "leave the runs or --methods out" });
  return compareMethods(flags.methods, flags);
}

async function compareRuns(runs: readonly string[], flags: CompareFlags): Promise<void> {
  const own = ["metric", "threshold", "out", "json"];
  const stray = Object.keys(flags).find((name) => !own.includes(name));
  if (stray !== undefined)
    throw new ConfigError({ place: `option --${dashed(stray)}`, cause: "runs that are there keep their options", mend: "leave it out, or give --methods" });
  const arms = await armsOf(runs, flags.metric);
  const { out = freeFolder("runs/compare") } = flags;
  await tell(arms, out, flags);
}

async function compareMethods(methods: readonly string[], flags: CompareFlags): Promise<void> {
  for (const [name, mend] of single) {
    if (flags[name] !== undefined) throw new ConfigError({ place: `option --${dashed(name)}`, cause: "it is of a single run", mend });
  }
  const { methods: _, seeds = [0, 1, 2], metric, threshold, json, ...rest } = flags;
  const trainFlags: TrainFlags = rest;
  const file = await fileConfig(trainFlags);
  const placeOf = placesOf(trainFlags, file);
  const { out, ...config } = await writtenConfig(trainFlags, file);
  if (typeof out !== "string") throw new ConfigError({ place: "option --out", cause: "it is missing", mend: "give the folder for the runs and the report" });
  checkWritten({ ...config, out }, placeOf);
  refuseUnlessWritable(out);
  const silent = json === true;
  const note = (text: string): void => {
    process.stderr.write(`${text}\n`);
  };
  let planned: PlannedRun[];
  try {
    planned = await planRuns({ methods, seeds, config: config as Omit<TrainOptions, "out">, out });
  } catch (error) {
    throw placed(error, placeOf);
  }
  const kept = planned.filter(({ state }) => state === "kept").length;
  if (kept > 0 && !silent) note(`${kept} of ${planned.length} runs are done and are kept.`);
  let watch: Watch | undefined;
  try {
    const ended = await runAll(
      planned,
      ({ label, seed, state }, number) => {
        watch?.end();
        if (!silent) note(`${label}, seed ${seed} (run ${number} of ${planned.length})${state === "resume" ? ", resumed" : ""}`);
        watch = new Watch(silent);
        return watch.hooks;
      },
      note,
    );
    watch?.end();
    if (!ended) {
      note("Interrupted; the same command goes on.");
      process.exitCode = 130;
      return;
    }
  } finally {
    watch?.end();
  }
  const labels = [...new Set(planned.map(({ label }) => label))];
  const arms: Arm[] = [];
  for (const label of labels) {
    const folders = planned.filter((each) => each.label === label).map(({ options }) => options.out);
    arms.push({ label, runs: await Promise.all(folders.map((folder) => readRun(folder, metric))) });
  }
  await tell(arms, out, { metric, ...(threshold !== undefined && { threshold }), ...(json && { json }) });
}

/** Reports and writes `compare.json` and the plot into the folder. */
async function tell(arms: readonly Arm[], out: string, { metric, threshold, json }: Pick<CompareFlags, "metric" | "threshold" | "json">): Promise<void> {
  const report = reportOf(arms, { metric, ...(threshold !== undefined && { threshold }) });
  refuseUnlessWritable(out);
  mkdirSync(out, { recursive: true });
  const { missing, ...files } = await writePlot(out, report);
  const whole: Report & { readonly files: Omit<PlotFiles, "missing"> } = { ...report, notes: [...report.notes, ...missing], files };
  const text = JSON.stringify(whole);
  writeFileSync(join(out, "compare.json"), `${text}\n`);
  if (json) return print(text);
  for (const line of reportLines(whole, colours(process.stdout).bold)) print(line);
  print(`\nThe report is in ${join(out, "compare.json")}${files.svg ? `, the curves are in ${[files.svg, files.png].filter(Boolean).join(" and ")}` : ""}`);
}

/** `a=RUN,RUN` is an arm of that label; a bare RUN is one of its own, called by its method, or by its folder where that says more. */
async function armsOf(texts: readonly string[], metric: string): Promise<Arm[]> {
  const given = texts.map((text) => {
    // A folder's name may hold "=", too.
    const at = existsSync(text) ? -1 : text.indexOf("=");
    const folders = (at < 0 ? [text] : text.slice(at + 1).split(",")).filter((folder) => folder !== "");
    if (at === 0 || folders.length === 0)
      throw new ConfigError({ place: `argument ${text}`, cause: "it is no LABEL=RUN,RUN", mend: "write a label and folders of runs" });
    return { label: at < 0 ? undefined : text.slice(0, at), folders };
  });
  const arms: { label: string | undefined; runs: Arm["runs"] }[] = [];
  for (const { label, folders } of given) arms.push({ label, runs: await Promise.all(folders.map((folder) => readRun(folder, metric))) });
  if (arms.length < 2)
    throw new ConfigError({
      place: "touchstone compare",
      cause: `it got ${arms.length === 0 ? "no run" : "one side"}`,
      mend: "give two runs or labels or more, or --methods",
    });
  const methods = arms.map(({ label, runs }) => label ?? runs[0].method);
  const named = arms.map(({ label, runs }, i) => {
    const known = methods.filter((method) => method === methods[i]).length === 1;
    return { label: label ?? (known ? methods[i] : basename(runs[0].folder)), runs };
  });
  const twin = named.find(({ label }, i) => named.findIndex((other) => other.label === label) !== i);
  if (twin) throw new ConfigError({ place: `argument ${twin.label}`, cause: "two sides have this name", mend: "give each a label, as in a=RUN b=RUN" });
  return named;
}

const dashed = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

function names(flag: string): (text: string) => string[] {
  return (text) => {
    const list = text.split(",").map((name) => name.trim());
    if (list.every((name) => name !== "")) return list;
    throw new ConfigError({ place: `option ${flag}`, cause: `got ${quoted(text)}`, mend: "give names with commas between them" });
  };
}

function seedsOf(text: string): number[] {
  const numbers = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  const whole = numbers.every((number) => Number.isSafeInteger(number) && number >= 0) && new Set(numbers).size === numbers.length;
  if (whole && numbers.length > 1) return numbers;
  if (whole && numbers[0] >= 1 && numbers[0] <= 1000) return Array.from({ length: numbers[0] }, (_, seed) => seed);
  throw new ConfigError({
    place: "option --seeds",
    cause: `got ${quoted(text)}`,
    mend: "give how many, such as 5, or different seeds with commas between them",
  });
}

function finite(flag: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isFinite(value)) return value;
    throw new ConfigError({ place: `option ${flag}`, cause: `got ${quoted(text)}`, mend: "give a number" });
  };
}
