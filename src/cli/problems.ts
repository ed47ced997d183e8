/** Which problems a command poses and who judges the answers: a task, a data file, or prompts from the command line. */
import { type Command, Option } from "commander";
import { ConfigError } from "../core/errors.js";
import { hashJson, type Json } from "../core/json.js";
import { parseOptions } from "../core/options.js";
import type { Problem } from "../core/problem.js";
import { unscored } from "../core/verdict.js";
import type { HostOptions } from "../rollout/environment.js";
import { namedTask } from "../tasks/catalogue.js";
import { posedBy, type Split, splits, type Task } from "../tasks/contract.js";
import { dataTask } from "../tasks/data.js";
import { dataOptions } from "../tasks/data-options.js";
import { type Part, partOf } from "../train/config.js";
import { namedVerifier, verifierNames } from "../verify/catalogue.js";
import type { Verifier } from "../verify/contract.js";
import { verifierOf } from "../verify/simple.js";
import type { VerifierSource } from "../verify/source.js";
import { jsonObject, someText, wholeNumber } from "./flags.js";
import { Progress } from "./progress.js";
import { runOf } from "./run-of.js";

export interface ProblemFlags {
  readonly task?: string;
  readonly taskOptions?: { readonly [name: string]: Json };
  readonly data?: string;
  readonly dataOptions?: { readonly [name: string]: Json };
  readonly promptColumn?: string;
  readonly answerColumn?: string;
  readonly prompt?: readonly string[];
  /** --prompt is a user message, and not the text as the model sees it. */
  readonly chat?: true;
  readonly answer?: string;
  readonly split?: Split;
  readonly nProblems?: number;
  readonly verifier?: string;
  readonly verifierOptions?: { readonly [name: string]: Json };
  readonly json?: true;
}

export interface Posed {
  readonly problems: readonly Problem[];
  readonly verifier: Verifier;
  /** Where a worker thread finds the verifier; absent where it is made here. */
  readonly source?: VerifierSource;
  /** Present where an answer is a conversation. */
  readonly environment?: HostOptions;
  /** Absent for prompts. */
  readonly task?: { readonly name: string; readonly id: string; readonly split: Split };
  readonly maxTokens?: number;
  /** Prompts are taken as they are, without the chat template. */
  readonly raw?: boolean;
  readonly notes: readonly string[];
}

/** Adds the flags of tasks, data files and verifiers. */
export function problemOptions(command: Command): Command {
  return command
    .option("--task <name>", "task by name (chain, add, pair, calculator, guess), or path of a module that exports one")
    .option("--task-options <json>", "options of the task", jsonObject("--task-options"))
    .option("--data <file>", "JSONL or Parquet file, or data folder, with a prompt and an answer a row; needs --verifier")
    .option("--prompt-column <name>", "its column of prompts (default: prompt)", someText("--prompt-column"))
    .option("--answer-column <name>", "its column of answers (default: answer)", someText("--answer-column"))
    .option("--data-options <json>", "more of it (key_column, system, split, where, bad_rows)", jsonObject("--data-options"))
    .addOption(new Option("--split <name>", "split of the task or file (default: eval)").choices(splits))
    .option("--n-problems <count>", "how many problems", wholeNumber("--n-problems", 1))
    .option(
      "--verifier <name>",
      `who judges instead of the task's own: ${verifierNames.join(", ")}, or a reward of your own (./reward.ts, command:…, python:file.py:function, http://…)`,
    )
    .option("--verifier-options <json>", "options of --verifier", jsonObject("--verifier-options"));
}

/** The flags with the problems and the verifier of the run that `model` names, where the flags name none themselves. */
export function withProblemsOfRun<F extends ProblemFlags>(model: string, flags: F): F {
  if (flags.task !== undefined || flags.data !== undefined || flags.prompt !== undefined) return flags;
  const run = runOf(model);
  if (run === undefined) return flags;
  const { task, data, verifier } = run.config as {
    readonly task?: Part;
    readonly data?: { readonly [name: string]: Json };
    readonly verifier?: Part;
  };
  // Of a file that the run held nothing of there is only what it was trained on.
  const whole = data !== undefined && data.eval_split === undefined && !data.eval_share && flags.dataOptions === undefined && flags.split === undefined;
  const judge = flags.verifier === undefined && verifier !== undefined ? partOf(verifier) : undefined;
  return {
    ...flags,
    ...(whole ? { split: "train" as const } : {}),
    ...(task === undefined ? {} : { task: partOf(task).name, taskOptions: flags.taskOptions ?? partOf(task).options }),
    ...(typeof data?.file !== "string"
      ? {}
      : { data: data.file, dataOptions: flags.dataOptions ?? Object.fromEntries(Object.entries(data).filter(([name]) => name !== "file")) }),
    ...(judge === undefined ? {} : { verifier: judge.name, verifierOptions: flags.verifierOptions ?? judge.options }),
  };
}

/** The verifier that --verifier names, if it is given. */
export async function chosenVerifier({ verifier, verifierOptions }: ProblemFlags): Promise<{ verifier: Verifier; source?: VerifierSource } | undefined> {
  if (verifier !== undefined) return namedVerifier(verifier, verifierOptions, "option --verifier");
  if (verifierOptions === undefined) return undefined;
  throw new ConfigError({ place: "option --verifier-options", cause: "there is no --verifier to take them", mend: "name the verifier, or leave them out" });
}

/** The problems that the flags name; `count` is how many there are without --n-problems, as far as the split has them; `folderSplit` is read of a data folder unless the options name another. Throws before anything is sampled. */
export async function posedProblems(flags: ProblemFlags, seed: number, count: number, folderSplit: "train" | "test" = "train"): Promise<Posed> {
  const named = [flags.task && "--task", flags.data && "--data", flags.prompt && "--prompt"].filter((flag) => flag !== undefined);
  if (named.length !== 1) {
    const cause = named.length === 0 ? "no problems are named" : `${named.join(" and ")} are given together`;
    throw new ConfigError({ place: "problems", cause, mend: "give one of --task NAME, --data FILE or, for touchstone sample, --prompt TEXT" });
  }
  const unused = (flag: string, value: unknown, needed: string): void => {
    if (value !== undefined) throw new ConfigError({ place: `option ${flag}`, cause: `it goes with ${needed}, not with ${named[0]}`, mend: "leave it out" });
  };
  if (flags.task === undefined) unused("--task-options", flags.taskOptions, "--task");
  if (flags.data === undefined) {
    unused("--data-options", flags.dataOptions, "--data");
    unused("--prompt-column", flags.promptColumn, "--data");
    unused("--answer-column", flags.answerColumn, "--data");
  }
  if (flags.prompt === undefined) {
    unused("--answer", flags.answer, "--prompt");
    unused("--chat", flags.chat, "--prompt");
  } else for (const [flag, value] of [["--split", flags.split] as const, ["--n-problems", flags.nProblems] as const]) unused(flag, value, "--task or --data");
  const chosen = await chosenVerifier(flags);
  if (flags.prompt !== undefined) return { ...fromPrompts(flags.prompt, flags.answer, chosen), raw: flags.chat !== true };
  if (flags.task !== undefined) {
    const { task, source } = await namedTask(flags.task, flags.taskOptions, ".", "option --task");
    const environment = task.environment && { environment: { environment: task.environment, source } };
    return { ...(await fromTask(task, flags, seed, count)), ...(chosen ?? { verifier: task.verifier, source }), ...environment, notes: [] };
  }
  if (chosen === undefined) {
    throw new ConfigError({
      place: "option --data",
      cause: "a file says the answers, not how they are compared",
      mend: `give --verifier (${verifierNames.join(", ")}, or a reward of your own)`,
    });
  }
  // The whole file unless a share of it was held out.
  const share = flags.dataOptions?.eval_split === undefined ? { eval_share: 1 } : {};
  const options = parseOptions(dataOptions, { ...share, ...flags.dataOptions, ...columnsOf(flags), file: flags.data }, "option --data-options");
  const { task, notes } = await dataTask(options, chosen.verifier, { split: folderSplit, place: "option --data-options" });
  return { ...(await fromTask(task, flags, seed, count)), ...chosen, notes };
}

function columnsOf({ promptColumn, answerColumn }: ProblemFlags): { readonly [name: string]: string } {
  return { ...(promptColumn !== undefined && { prompt_column: promptColumn }), ...(answerColumn !== undefined && { answer_column: answerColumn }) };
}

async function fromTask(
  task: Task,
  { split = "eval", nProblems, json }: ProblemFlags,
  seed: number,
  count: number,
): Promise<Pick<Posed, "problems" | "task" | "maxTokens">> {
  const { name, id, maxTokens } = task;
  const total = nProblems ?? count;
  const progress = new Progress({ label: "drawing problems", total, silent: json === true });
  const problems = await posedBy(task, split, total, seed, (found) => progress.at(found)).finally(() => progress.end());
  if (problems.length === 0) {
    const cause = `it has no problem in the split ${split}`;
    throw new ConfigError({ place: `task ${name}`, cause, mend: "name another with --split, or change the task's shares (docs/data.md)" });
  }
  if (nProblems !== undefined && problems.length < nProblems) {
    const cause = `it is ${nProblems}, and ${name} has ${problems.length} different problems in the split ${split}`;
    throw new ConfigError({ place: "option --n-problems", cause, mend: `give at most ${problems.length}, or leave it out` });
  }
  return { problems, task: { name, id, split }, ...(maxTokens === undefined ? {} : { maxTokens }) };
}

function fromPrompts(prompts: readonly string[], answer: string | undefined, chosen: { verifier: Verifier; source?: VerifierSource } | undefined): Posed {
  if ((answer === undefined) !== (chosen === undefined)) {
    const [given, missing] = answer === undefined ? ["--verifier", "--answer"] : ["--answer", "--verifier"];
    throw new ConfigError({ place: `option ${given}`, cause: `it needs ${missing} beside --prompt`, mend: "give both, or neither" });
  }
  const fault = answer === undefined ? undefined : chosen?.verifier.checkReference(answer);
  if (fault !== undefined) throw new ConfigError({ place: "option --answer", cause: fault, mend: `give an answer that ${chosen?.verifier.name} reads` });
  if (prompts.some((prompt) => prompt.trim() === "")) throw new ConfigError({ place: "option --prompt", cause: "it is empty", mend: "give a text" });
  const problems = prompts.map((content): Problem => {
    const reference = answer === undefined ? ({ state: "none", version: 0 } as const) : ({ state: "gold", answer, version: 0 } as const);
    return { key: hashJson({ prompt: content }).slice(0, 20), prompt: [{ role: "user", content }], reference };
  });
  return { problems, ...(chosen ?? { verifier: verifierOf("none", () => unscored("no-reference"), "1") }), notes: [] };
}
