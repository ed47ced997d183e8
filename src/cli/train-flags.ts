/** From the flags of `touchstone train` and a file to one configuration: the file first, flags over it, --set over both. */
import { type Command, Option } from "commander";
import { parse } from "yaml";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { fallbackName } from "../methods/fallback.js";
import { readConfigFile, type Written } from "../train/config-file.js";
import { loggerNames } from "../train/loggers/catalogue.js";
import { modelHelp } from "../train/model-name.js";
import { verifierNames } from "../verify/catalogue.js";
import { type ChatFlags, chatOptions, type StopFlags, stopOption } from "./chat-flags.js";
import { jsonObject, numberFromZero, positiveNumber, share, someText, someTexts, wholeNumber } from "./flags.js";
import { type LoraFlags, loraOptions } from "./lora-flags.js";
import { trainerOptions } from "./remote-flags.js";

type Options = { readonly [name: string]: Json };

export interface TrainFlags extends ChatFlags, StopFlags, LoraFlags {
  readonly config?: string;
  readonly model?: string;
  readonly out?: string;
  readonly task?: string;
  readonly taskOptions?: Options;
  readonly data?: string;
  readonly promptColumn?: string;
  readonly answerColumn?: string;
  readonly keyColumn?: string;
  readonly evalShare?: number;
  readonly profile?: string;
  readonly verifier?: string;
  readonly verifierOptions?: Options;
  readonly method?: string;
  readonly methodOptions?: Options;
  readonly steps?: number;
  readonly problems?: number;
  readonly group?: number;
  readonly minibatches?: number;
  readonly epochs?: number;
  readonly lr?: number;
  readonly schedule?: string;
  readonly temperature?: number;
  readonly topP?: string;
  readonly topK?: string;
  readonly minP?: string;
  readonly maxTokens?: number;
  readonly evalEvery?: number;
  readonly evalProblems?: number;
  readonly checkpointEvery?: number;
  readonly seed?: number;
  readonly logger?: readonly string[];
  readonly engine?: string;
  readonly baseUrl?: string;
  readonly servedModel?: string;
  readonly keyEnv?: string;
  readonly requestDeadline?: number;
  readonly threads?: number;
  readonly workers?: number;
  readonly verifierWorkers?: number;
  readonly set?: readonly string[];
  readonly resume?: string;
  readonly dryRun?: true;
  readonly view?: true;
  readonly json?: true;
}

/** Adds the flags. */
export function trainOptions(command: Command): Command {
  // Known, so that they are refused with the reason.
  for (const flag of ["--top-p <share>", "--top-k <count>", "--min-p <share>"]) command.addOption(new Option(flag).hideHelp());
  loraOptions(command, "also write the final policy to the run's folder `model`: merged (default with --dtype) or adapter")
    .option("--config <file>", "options from a .yaml, .json or .ts file; flags go over them", someText("--config"))
    .option("--model <model>", `the policy to start from: ${modelHelp}`)
    .option("--out <folder>", "folder of the run; new or empty")
    .option("--task <name>", "task by name (chain, add, pair, calculator, guess), or path of a module that exports one")
    .option("--task-options <json>", "options of the task", jsonObject("--task-options"))
    .option("--data <file>", "JSONL or Parquet file, or data folder, with a prompt and an answer a row; needs --verifier")
    .option("--prompt-column <name>", "its column of prompts (default: prompt)")
    .option("--answer-column <name>", "its column of answers (default: answer)")
    .option("--key-column <name>", "its column of stable keys (default: a hash of the prompt)")
    .option("--eval-share <share>", "share of it that is held out for evaluation (default: 0)", share("--eval-share", "from 0"))
    .option("--profile <file>", "file of touchstone profile, to choose and weight problems by (with --set profile.min_pass=… and the like)")
    .option(
      "--verifier <name>",
      `who judges: ${verifierNames.join(", ")}, or a reward of your own: ./reward.ts, command:…, python:file.py:function, http://… (default: the task's own)`,
    )
    .option("--verifier-options <json>", "options of --verifier", jsonObject("--verifier-options"))
    .option(
      "--method <name>",
      `method: one of touchstone methods, several as in dapo+rloo, or the path of a module that exports one (default: ${fallbackName})`,
    )
    .option("--method-options <json>", "options of --method; of several, each method's under its name", jsonObject("--method-options"))
    .option("--steps <count>", "batches (default: 100)", wholeNumber("--steps", 1))
    .option("--problems <count>", "problems a batch (default: 16)", wholeNumber("--problems", 1))
    .option("--group <count>", "answers a problem (default: 8)", wholeNumber("--group", 1))
    .option("--minibatches <count>", "optimizer steps a batch (default: 1)", wholeNumber("--minibatches", 1))
    .option("--epochs <count>", "passes over each batch (default: 1)", wholeNumber("--epochs", 1))
    .option("--lr <rate>", "peak learning rate (default: 1e-5)", numberFromZero("--lr"))
    .addOption(new Option("--schedule <kind>", "how the rate goes on (default: constant)").choices(["constant", "linear", "cosine"]))
    .option("--temperature <number>", "of training's answers (default: 1)", positiveNumber("--temperature"))
    .option("--max-tokens <count>", "budget of a response (default: the task's)", wholeNumber("--max-tokens", 1));
  return trainerOptions(stopOption(chatOptions(command)), ["onnx", "table"])
    .option("--eval-every <steps>", "steps between evaluations on held-out problems (default: none)", wholeNumber("--eval-every", 0))
    .option("--eval-problems <count>", "problems of an evaluation (default: 200)", wholeNumber("--eval-problems", 1))
    .option("--checkpoint-every <steps>", "steps between checkpoints (default: 25)", wholeNumber("--checkpoint-every", 0))
    .option("--seed <number>", "of all randomness (default: 0)", wholeNumber("--seed", 0))
    .option("--logger <name>", `where numbers also go: ${loggerNames.join(", ")}, or ./mine.ts; may be repeated`, someTexts("--logger"))
    .option("--threads <count>", "threads of each engine process", wholeNumber("--threads", 1))
    .option("--workers <count>", "engine processes", wholeNumber("--workers", 1))
    .option(
      "--verifier-workers <count>",
      "threads that judge; they change no byte; 0 judges in the main one, where nothing stops a check that hangs (default: 1)",
      wholeNumber("--verifier-workers", 0),
    )
    .option("--set <option=value>", "any option by its path, such as eval.greedy=true; may be repeated", (text: string, before: string[] = []) => [
      ...before,
      text,
    ])
    .option("--resume <run>", "go on with a run from its last checkpoint", someText("--resume"))
    .option("--dry-run", "show the resolved options, memory and time, and the first batch; train nothing")
    .option("--json", "print the result as a line of JSON");
}

/** The configuration as written, from file and flags; not yet checked. `file`: that of the file, where it was read before. */
export async function writtenConfig(flags: TrainFlags, file?: Written): Promise<Written> {
  const config: Written = { ...(file ?? (await fileConfig(flags))) };
  for (const [path, value] of pairs(flags)) if (value !== undefined) put(config, path, value);
  for (const text of flags.set ?? []) {
    const at = text.indexOf("=");
    if (at < 1) throw new ConfigError({ place: "option --set", cause: `got ${JSON.stringify(text)}`, mend: "write OPTION=VALUE, such as eval.every=10" });
    put(config, text.slice(0, at).trim().split("."), yamlValue(text.slice(at + 1)));
  }
  return config;
}

/** What the file alone says; nothing without one. */
export async function fileConfig({ config }: TrainFlags): Promise<Written> {
  return config === undefined ? {} : readConfigFile(config);
}

/** A value as YAML reads it, where 1e-4 is a number too. Of numbers the decimal ones alone, as in all flags. */
function yamlValue(text: string): unknown {
  if (/^\s*[+-]?0[xob]/i.test(text)) return text;
  try {
    return parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Paths in the configuration with the flags that set them. */
function pairs(flags: TrainFlags): [string[], unknown][] {
  const named = (name: string | undefined, options: Options | undefined): unknown => (name !== undefined && options !== undefined ? { name, options } : name);
  for (const [flag, options, name] of [
    ["--task-options", flags.taskOptions, flags.task],
    ["--verifier-options", flags.verifierOptions, flags.verifier],
  ] as const) {
    if (options !== undefined && name === undefined) {
      throw new ConfigError({ place: `option ${flag}`, cause: `there is no ${flag.replace("-options", "")} to take them`, mend: "name it, or leave them out" });
    }
  }
  return [
    [["model"], flags.model],
    [["base"], flags.base],
    [["lora", "rank"], flags.lora],
    [["lora", "alpha"], flags.loraAlpha],
    [["lora", "targets"], flags.loraTargets],
    [["save", "form"], flags.save],
    [["save", "dtype"], flags.dtype],
    [["out"], flags.out],
    [["task"], named(flags.task, flags.taskOptions)],
    [["data", "file"], flags.data],
    [["data", "prompt_column"], flags.promptColumn],
    [["data", "answer_column"], flags.answerColumn],
    [["data", "key_column"], flags.keyColumn],
    [["data", "eval_share"], flags.evalShare],
    [["profile", "file"], flags.profile],
    [["verifier"], named(flags.verifier, flags.verifierOptions)],
    [["method"], flags.methodOptions === undefined ? flags.method : { name: flags.method ?? fallbackName, options: flags.methodOptions }],
    [["steps"], flags.steps],
    [["problems"], flags.problems],
    [["group"], flags.group],
    [["minibatches"], flags.minibatches],
    [["epochs"], flags.epochs],
    [["lr"], flags.lr],
    [["schedule", "kind"], flags.schedule],
    [["chat_template"], flags.chatTemplate],
    [["chat_template_kwargs"], flags.chatTemplateKwargs],
    [["tools"], flags.tools],
    [["system"], flags.system],
    [["stop"], flags.stop],
    [["temperature"], flags.temperature],
    [["top_p"], flags.topP],
    [["top_k"], flags.topK],
    [["min_p"], flags.minP],
    [["max_tokens"], flags.maxTokens],
    [["eval", "every"], flags.evalEvery],
    [["eval", "problems"], flags.evalProblems],
    [["checkpoint", "every"], flags.checkpointEvery],
    [["seed"], flags.seed],
    [["loggers"], flags.logger],
    [["engine", "name"], flags.engine],
    [["engine", "base_url"], flags.baseUrl],
    [["engine", "served_model"], flags.servedModel],
    [["engine", "key_env"], flags.keyEnv],
    [["engine", "deadline_s"], flags.requestDeadline],
    [["engine", "threads"], flags.threads],
    [["engine", "workers"], flags.workers],
    [["verifier_workers"], flags.verifierWorkers],
  ];
}

function put(config: Written, [key, ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    own(config, key, value);
    return;
  }
  const inside = Object.hasOwn(config, key) ? config[key] : undefined;
  // A part by its name alone becomes one with options, so that `method.options.clip_high=0.3` can be set.
  const next: Written =
    typeof inside === "object" && inside !== null && !Array.isArray(inside) ? { ...inside } : typeof inside === "string" ? { name: inside } : {};
  own(config, key, next);
  put(next, rest, value);
}

/** Sets a key of the object itself: `__proto__` is an unknown option like any other. */
function own(config: Written, key: string, value: unknown): void {
  Object.defineProperty(config, key, { value, writable: true, enumerable: true, configurable: true });
}
