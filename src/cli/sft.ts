/** `touchstone sft`: supervised training of a new or an existing policy, on pairs, on a task's worked solutions, or on rollouts. */
import { type Command, Option } from "commander";
import { ConfigError, DataError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { AdapterSource, LoadRequest } from "../engine/contract.js";
import { adapterCount } from "../engine/onnx/adapter.js";
import type { DecoderConfig } from "../engine/onnx/config.js";
import { type Alternative, availableMemory, estimateMemory, type MemoryEstimate, type MemoryPlan, refuseUnlessFits } from "../engine/onnx/memory.js";
import { defaultPackPlaces } from "../engine/onnx/pack.js";
import { parameterCount } from "../engine/onnx/params.js";
import { startLocal } from "../engine/onnx/start.js";
import { parseSchedule, type Schedule } from "../engine/schedule.js";
import { readLimits } from "../engine/tinker/folder.js";
import { connectTinker } from "../engine/tinker/start.js";
import { startHost } from "../rollout/environment.js";
import { namedTask } from "../tasks/catalogue.js";
import { loadTokenizer, refuseTemplateOptions } from "../tokenizers/load.js";
import type { TrainConfig } from "../train/config.js";
import { serverOptions } from "../train/engines.js";
import { findModel, inspectModel, withTemplateOf } from "../train/find-model.js";
import { saveTokenizer } from "../train/model-files.js";
import { modelHelp } from "../train/model-name.js";
import { alphabetOf, type Pair, pairExamples, readPairs } from "../train/pairs.js";
import { rolloutExamples } from "../train/rollout-examples.js";
import { refuseUnlessSavable, savePolicy } from "../train/save-policy.js";
import { type Example, epochs, type SftStep, sft } from "../train/sft.js";
import { type PolicySize, parametersOf, policyConfig, policySizes, workedBatches } from "../train/starter.js";
import { adapterSource, type LoraForm, loraOf } from "../train/starts.js";
import { workedEpisodes } from "../train/worked-episodes.js";
import { type ChatFlags, chatOf, chatOptions } from "./chat-flags.js";
import { leave } from "./ending.js";
import { jsonObject, positiveNumber, wholeNumber } from "./flags.js";
import { type LoraFlags, loraOptions } from "./lora-flags.js";
import { print } from "./output.js";
import { Progress } from "./progress.js";
import { waiting } from "./read-model.js";
import { isRemote, type RemoteFlags, tinkerServer, trainerOptions } from "./remote-flags.js";
import { interruptedCode, signals } from "./watch.js";

interface SftFlags extends ChatFlags, LoraFlags, RemoteFlags {
  readonly task?: string;
  readonly taskOptions?: { readonly [name: string]: Json };
  readonly data?: string;
  readonly promptColumn: string;
  readonly responseColumn: string;
  readonly messagesColumn: string;
  readonly rollouts?: string;
  readonly accepted?: true;
  readonly perProblem?: number;
  readonly model?: string;
  readonly size?: PolicySize;
  readonly maxLength: number;
  readonly steps: number;
  readonly batchSize: number;
  readonly lr: number;
  readonly schedule: "constant" | "linear" | "cosine";
  readonly warmup?: number;
  readonly seed: number;
  readonly saveEvery: number;
  readonly out: string;
  readonly json?: true;
}

const longestWarmup = 50;

export function define(command: Command): void {
  trainerOptions(loraOptions(chatOptions(command), "form of --out with --lora: adapter (default) or merged"), ["onnx"])
    .option("--task <name>", "learn the worked solutions of a task (chain, add, pair, calculator, guess, or path of a module)")
    .option("--task-options <json>", "options of the task", jsonObject("--task-options"))
    .option("--data <file>", "learn the pairs of a JSONL or Parquet file instead")
    .option("--prompt-column <name>", "its column of prompts: texts or lists of messages", "prompt")
    .option("--response-column <name>", "its column of responses", "response")
    .option("--messages-column <name>", "its column of whole conversations, where rows have neither prompt nor response", "messages")
    .option("--rollouts <path>", "learn rollouts instead: a file of touchstone sample --out, or the folder of a run")
    .option("--accepted", "of the rollouts, those that were accepted alone")
    .option("--per-problem <count>", "of the rollouts, at most so many different ones a problem", wholeNumber("--per-problem", 1))
    .option("--model <folder>", `begin with this policy: ${modelHelp}`)
    .addOption(new Option("--size <name>", "begin with a new policy of this size").choices(Object.keys(policySizes)))
    .option("--max-length <tokens>", "longest prompt with response that a new policy takes", wholeNumber("--max-length", 8), 512)
    .option("--steps <count>", "optimizer steps", wholeNumber("--steps", 1), 1000)
    .option("--batch-size <count>", "examples a step", wholeNumber("--batch-size", 1), 64)
    .option("--lr <rate>", "peak learning rate of AdamW (beta 0.9 and 0.95, no decay)", positiveNumber("--lr"), 1e-3)
    .addOption(new Option("--schedule <kind>", "how the rate falls").choices(["constant", "linear", "cosine"]).default("cosine"))
    .option("--warmup <steps>", "steps in which the rate climbs (default: 50, and of a short run a fourth)", wholeNumber("--warmup", 0))
    .option("--seed <number>", "of initial weights, problems and order", wholeNumber("--seed", 0), 0)
    .option("--save-every <steps>", "save the policy also after each so many steps; 0: at the end alone", wholeNumber("--save-every", 0), 250)
    .requiredOption("--out <folder>", "where the policy is saved: a new or empty folder")
    .option("--json", "print the result as a line of JSON")
    .addHelpText(
      "after",
      `
The loss is the mean over all response tokens of a batch; prompts are not learnt. Of a conversation (a list of messages with
role and content) each turn of the assistant is learnt, with its end token, and nothing else.
Ctrl-C and SIGTERM finish the step in hand and save what is learnt; the exit code is then 130. A second one ends at once.

Examples:
  $ touchstone sft --task chain --size 100k --task-options '{"modulus":7}' --steps 2400 --lr 4e-3 --out starter
  $ touchstone sft --data pairs.jsonl --model starter --steps 200 --lr 1e-4 --out better
  $ touchstone sft --data chats.jsonl --model HuggingFaceTB/SmolLM2-135M-Instruct --steps 200 --batch-size 8 --lr 1e-5 --out better
  $ touchstone sft --data chats.jsonl --model HuggingFaceTB/SmolLM2-135M-Instruct --lora 16 --lr 2e-4 --steps 200 --batch-size 8 --out adapter
  $ touchstone sft --rollouts rollouts.jsonl --accepted --per-problem 4 --model starter --steps 100 --lr 1e-4 --out better`,
    )
    .action(run);
}

async function run(flags: SftFlags): Promise<void> {
  oneOf("what to learn", { "--task": flags.task, "--data": flags.data, "--rollouts": flags.rollouts });
  refuseWithout(flags);
  oneOf("what to begin with", { "--model": flags.model, "--size": flags.size });
  const { steps, lr: rate, seed, batchSize } = flags;
  const { warmup = Math.min(longestWarmup, Math.floor(steps / 4)) } = flags;
  const schedule = parseSchedule(
    { kind: flags.schedule, rate, warmup, ...(flags.schedule === "constant" ? {} : { steps }) },
    "options --schedule, --steps and --warmup",
  );
  const found = flags.task === undefined ? undefined : await namedTask(flags.task, flags.taskOptions, ".", "option --task");
  const task = found?.task;
  const pairs: readonly Pair[] =
    flags.data === undefined ? [] : await readPairs(flags.data, { prompt: flags.promptColumn, response: flags.responseColumn, messages: flags.messagesColumn });
  const elsewhere = isRemote(flags);
  refuseForms(flags, elsewhere);
  const model = flags.model === undefined ? undefined : await findModel(flags.model, { base: flags.base, elsewhere, onProgress: waiting(flags.json === true) });
  const known = model === undefined || elsewhere ? undefined : await inspectModel(model);
  const lora = model && (await loraOf({ lora: loraOption(flags), engine: { name: elsewhere ? "tinker" : "onnx" } }, model));
  if (known) refuseUnlessRoomToLearn(flags, known, lora, flags.model as string);
  const longest = model && elsewhere ? (await readLimits(model.folder)).maxTokens : known === undefined ? flags.maxLength : known.maxPositions;
  const chat = withTemplateOf(model ?? {}, chatOf(flags));
  if (model === undefined) refuseTemplateOptions("option --size", "a new policy has no chat template", chat);
  const own = model === undefined ? undefined : await loadTokenizer(model.folder, chat);
  const tokenizer = own ?? task?.tokenizer ?? (task ? noTokenizer(task.name) : alphabetOf(pairs));
  const config = flags.size === undefined ? undefined : policyConfig(flags.size, tokenizer, flags.maxLength);
  const source: LoadRequest["source"] = model ? { from: "folder", path: model.folder } : { from: "config", config: config as Json, seed };
  // A server keeps the weights: what comes from there is an adapter.
  const parameters = known ? parameterCount(known) : elsewhere ? 0 : parametersOf(flags.size as PolicySize, tokenizer.size);
  const adapter = lora && adapterSource(lora, seed);
  refuseUnlessSavable(flags.out, known && lora && flags.save !== "merged" ? adapterCount(known, lora) : parameters, "option --out");
  // Everything that can be refused is read before the engine starts.
  const fixed = task ? undefined : await examplesOf(flags, pairs, tokenizer, longest);
  const host = task?.environment && (await startHost({ environment: task.environment, ...(found && { source: found.source }) }));
  try {
    const batch: Batches =
      task === undefined
        ? epochs(fixed as readonly Example[], batchSize, seed)
        : host
          ? workedEpisodes(task, { host, tokenizer, batchSize, steps, seed })
          : workedBatches(task, tokenizer, batchSize, steps, seed);
    await firstOf(batch, task?.name);
    await learn(flags, batch, { schedule, source, ...(adapter && { adapter }), tokenizer, parameters, template: chat.template });
  } finally {
    await host?.close();
  }
}

type Batches = (step: number) => readonly Example[] | Promise<readonly Example[]>;

interface Learning {
  readonly schedule: Schedule;
  readonly source: LoadRequest["source"];
  readonly adapter?: AdapterSource;
  readonly tokenizer: Tokenizer;
  readonly parameters: number;
  /** That takes the place of the model's. */
  readonly template: string | undefined;
}

async function learn(flags: SftFlags, batch: Batches, { schedule, source, adapter, tokenizer, parameters, template }: Learning): Promise<void> {
  const { steps, out, saveEvery } = flags;
  const progress = new Progress({ label: "learning", total: steps, silent: flags.json === true });
  progress.waitFor("the engine");
  const stop = new AbortController();
  const onSignal = (): void => {
    if (stop.signal.aborted) leave(interruptedCode);
    stop.abort();
    progress.say("Finishing this step and saving; once more ends at once.");
  };
  const started = performance.now();
  const engine = isRemote(flags)
    ? await connectTinker({
        ...serverOptions(tinkerServer(flags)),
        ...(flags.lora !== undefined && { rank: flags.lora }),
        seed: flags.seed,
        onNotice: (text) => progress.say(text),
      })
    : await startLocal(flags.size === undefined ? Number.POSITIVE_INFINITY : parameters);
  let saved = 0;
  const write = async (folder: string): Promise<void> => {
    const { save: form = "adapter", dtype = "f32" } = flags;
    await engine.weights.save({ role: "policy" }, folder, { form, dtype });
    await saveTokenizer(tokenizer, source.from === "folder" ? source.path : undefined, folder, template);
  };
  const between = async (step: number): Promise<void> => {
    try {
      await savePolicy(out, write, []);
      saved = step;
    } catch (error) {
      progress.say(`The policy of step ${step} could not be saved, and training goes on: ${((error as Error).cause as Error).message}`);
    }
  };
  try {
    await engine.weights.load({ role: "policy", source, ...(adapter && { adapter }), trainable: true });
    progress.waitFor("");
    // Until there is something to save, a signal ends the process as ever.
    for (const signal of signals) process.on(signal, onSignal);
    const reports = await sft(engine, {
      batch,
      steps,
      schedule,
      signal: stop.signal,
      onStep: async ({ step, loss }) => {
        progress.at(step, `loss ${loss.toFixed(3)}`);
        if (saveEvery > 0 && step % saveEvery === 0 && step < steps) await between(step);
      },
    });
    if (reports.length === 0)
      throw new ConfigError({ place: "touchstone sft", cause: "it was stopped before its first step", mend: "there is nothing to save" });
    progress.waitFor("the save");
    if (saved < reports.length) await savePolicy(out, write);
    if (reports.length < steps) process.exitCode = interruptedCode;
    report(flags, reports, performance.now() - started, progress);
  } catch (error) {
    if (saved > 0) progress.say(`The policy of step ${saved} is in ${out}.`);
    throw error;
  } finally {
    progress.end();
    for (const signal of signals) process.off(signal, onSignal);
    await engine.close();
  }
}

/** The options of an adapter, where one is asked for. */
function loraOption({ lora, loraAlpha, loraTargets }: SftFlags): TrainConfig["lora"] {
  if (lora === undefined && loraAlpha === undefined && loraTargets === undefined) return undefined;
  return { ...(lora !== undefined && { rank: lora }), ...(loraAlpha !== undefined && { alpha: loraAlpha }), ...(loraTargets && { targets: loraTargets }) };
}

/** Forms of the policy that there are not. */
function refuseForms(flags: SftFlags, elsewhere: boolean): void {
  const { size, save, dtype } = flags;
  if (elsewhere && size !== undefined)
    throw new ConfigError({ place: "option --size", cause: "a server trains the base that it has, not a new policy", mend: "begin with --model" });
  if (elsewhere && (save === "merged" || dtype === "bf16"))
    throw new ConfigError({
      place: save === "merged" ? "option --save" : "option --dtype",
      cause: "the base's weights are on the server, and its adapters are f32",
      mend: "leave it out",
    });
  if (size !== undefined && loraOption(flags) !== undefined)
    throw new ConfigError({
      place: "option --lora",
      cause: "a new policy has no weights that could stay as they are",
      mend: "leave it out, or begin with --model",
    });
  if (size !== undefined && save === "adapter") throw new ConfigError({ place: "option --save", cause: "a new policy is no adapter", mend: "leave it out" });
  if (dtype === "bf16" && (save ?? (loraOption(flags) && "adapter")) === "adapter")
    throw new ConfigError({ place: "option --dtype", cause: "adapters are always f32", mend: "leave it out, or give --save merged" });
}

/** Throws MemoryError with what would fit, before an engine is started. */
function refuseUnlessRoomToLearn({ batchSize }: SftFlags, model: DecoderConfig, lora: LoraForm | undefined, name: string): void {
  const length = Math.min(model.maxPositions, defaultPackPlaces);
  const estimate = (slots: number, adapter?: MemoryPlan["adapter"]): MemoryEstimate =>
    estimateMemory(model, { kind: "train", slots, length: Math.min(length, slots), activations: "recompute" }, adapter ? { adapter } : {});
  // The longest example is not known yet: a pack of short ones is the least that a step needs.
  const slots = Math.min(defaultPackPlaces, 16 * batchSize);
  const alternatives = (): Alternative[] =>
    lora ? [] : [{ what: "an adapter of rank 16 in place of full training (--lora 16)", estimate: estimate(slots, { rank: 16, targets: "all-linear" }) }];
  refuseUnlessFits(estimate(slots, lora), availableMemory(), `training ${name}`, alternatives);
}

/** What the flags of rollouts need beside them. */
function refuseWithout({ rollouts, accepted, perProblem, size }: SftFlags): void {
  const stray = accepted ? "--accepted" : perProblem === undefined ? undefined : "--per-problem";
  if (rollouts === undefined && stray !== undefined)
    throw new ConfigError({ place: `option ${stray}`, cause: "there are no --rollouts to choose from", mend: "give them, or leave it out" });
  if (rollouts === undefined || size === undefined) return;
  throw new ConfigError({ place: "option --size", cause: "rollouts are token ids, and a new policy has no tokenizer yet", mend: "begin with --model" });
}

async function examplesOf(flags: SftFlags, pairs: readonly Pair[], tokenizer: Tokenizer, longest: number): Promise<readonly Example[]> {
  const { data, rollouts, accepted = false, perProblem, json } = flags;
  if (rollouts === undefined) return pairExamples(pairs, tokenizer, longest, data as string);
  const { examples, total, problems } = await rolloutExamples(rollouts, tokenizer, longest, { accepted, ...(perProblem !== undefined && { perProblem }) });
  if (!json) process.stderr.write(`note: learning ${examples.length} of ${total} rollouts, of ${problems} problems\n`);
  return examples;
}

/** Draws the first batch, so that a model which cannot write the task is refused before an engine starts. */
async function firstOf(batch: Batches, task: string | undefined): Promise<void> {
  try {
    await batch(0);
  } catch (error) {
    if (task === undefined || !(error instanceof DataError)) throw error;
    const cause = `its solutions have no tokens in this model (${error.message})`;
    throw new DataError({ place: `task ${task}`, cause, mend: "give the model that fits the task" }, { cause: error });
  }
}

function report({ json, out, steps }: SftFlags, reports: readonly SftStep[], wallMs: number, progress: Progress): void {
  const last = reports.slice(-20);
  const loss = last.reduce((sum, step) => sum + step.loss, 0) / last.length;
  progress.end();
  if (json) print(JSON.stringify({ out, steps: reports.length, loss, first_loss: reports[0].loss, wall_s: wallMs / 1000 }));
  else
    print(
      `Saved ${out} after ${reports.length} ${reports.length < steps ? `of ${steps} ` : ""}steps in ${(wallMs / 1000).toFixed(0)} s: loss ${reports[0].loss.toFixed(3)} at first, ${loss.toFixed(3)} over the last ${last.length} steps`,
    );
}

function oneOf(place: string, flags: { readonly [flag: string]: unknown }): void {
  const given = Object.keys(flags).filter((flag) => flags[flag] !== undefined);
  if (given.length === 1) return;
  const cause = given.length === 0 ? "nothing is named" : `${given.join(" and ")} are given together`;
  throw new ConfigError({
    place,
    cause,
    mend: `give one of ${Object.keys(flags)
      .join(", ")
      .replace(/, (?=[^,]*$)/, " and ")}`,
  });
}

function noTokenizer(task: string): never {
  throw new ConfigError({ place: `task ${task}`, cause: "it has no tokenizer for a new policy", mend: "give --model, or add `tokenizer` to the task" });
}
