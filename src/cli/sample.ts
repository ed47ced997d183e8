/** `touchstone sample`: responses of a policy with their verdicts, to be looked at or written as JSONL. */

import { once } from "node:events";
import { createWriteStream, mkdirSync, statSync } from "node:fs";
import { rename } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { Problem } from "../core/problem.js";
import type { Turn } from "../core/trajectory.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { type EvaluatedSample, publicProblem } from "../evaluate/samples.js";
import { type StoreConditions, sampleJson } from "../evaluate/store.js";
import { modelHelp } from "../train/model-name.js";
import { withChatOfRun } from "./chat-flags.js";
import { type DecoderFlags, decoderOptions, measure, truncationOf } from "./measure.js";
import { colours, print } from "./output.js";
import { type ProblemFlags, posedProblems, problemOptions, withProblemsOfRun } from "./problems.js";
import { verdictText } from "./verdict-text.js";

interface SampleFlags extends ProblemFlags, DecoderFlags {
  readonly out?: string;
  readonly json?: true;
}

export function define(command: Command): void {
  command.usage("MODEL [options]").argument("<model>", modelHelp);
  command
    .option("--prompt <text>", "a text to go on with, just as the model sees it; may be repeated", (text: string, before: readonly string[] = []) => [
      ...before,
      text,
    ])
    .option("--chat", "put --prompt into the chat template, as a user message")
    .option("--answer <text>", "reference answer of --prompt, for --verifier");
  decoderOptions(problemOptions(command))
    .option("--out <file>", "write one JSON object a response to a file")
    .option("--json", "print one JSON object a response")
    .addHelpText(
      "after",
      `
Of a task one problem is posed, of a data file all, unless --n-problems says otherwise. An object has the prompt and the
response as token ids (prompt_ids, ids), the log-prob of each token under what was drawn from (logprobs) and their sum (logp;
rawLogp: of the whole distribution at temperature 1), the response as text, why it stopped (stop: eos, stop, length), the
problem with its reference, the verdict, and the decoder. A stop string is part of the response that it ends. Rules of a
restricted draw act in the order --top-k, --top-p, --min-p. In --prompt without --chat the names of special tokens are these
tokens. What a run was trained with (--chat-template-kwargs, --tools, --system, --stop) is taken of it unless given here.

Examples:
  $ touchstone sample runs/first@best --task chain --n 3
  $ touchstone sample my-model --prompt "The capital of France is" --greedy --max-tokens 32 --json
  $ touchstone sample my-model --prompt "How much is 7 + 5?" --chat --system "Be brief." --temperature 0.7 --top-p 0.95
  $ touchstone sample my-model --prompt $'Q: 7+5\nA:' --stop $'\nQ:' --answer 12 --verifier number
  $ touchstone sample my-model --data test.jsonl --verifier number --n 8 --out rollouts.jsonl
  $ touchstone sft --rollouts rollouts.jsonl --accepted --model my-model --steps 100 --lr 1e-4 --out better`,
    )
    .action((model: string, flags: SampleFlags) =>
      sample(model, withChatOfRun(model, withProblemsOfRun(model, flags), flags.prompt !== undefined && !flags.chat)),
    );
}

async function sample(model: string, flags: SampleFlags): Promise<void> {
  const { out, json } = flags;
  if (out !== undefined && json) throw new ConfigError({ place: "option --json", cause: "it prints what --out writes", mend: "give one of the two" });
  if (flags.greedy && (flags.n ?? 1) > 1)
    throw new ConfigError({ place: "option --greedy", cause: `${flags.n} samples a problem would all be the same`, mend: "give --n 1, or leave --greedy out" });
  const truncation = truncationOf(flags);
  if (out !== undefined) refuseUnlessFile(out);
  const posed = await posedProblems(flags, flags.seed ?? 0, flags.task === undefined ? Number.MAX_SAFE_INTEGER : 1);
  const { evaluation, conditions, contextOf } = await measure({
    model,
    posed,
    flags,
    truncation,
    k: [1],
    logprobs: json === true || out !== undefined,
    silent: json === true,
  });
  for (const line of posed.notes) process.stderr.write(`note: ${line}\n`);
  const problems = new Map(posed.problems.map((problem) => [problem.key, problem]));
  const { samples, metrics } = evaluation;
  const lines = (): string[] => samples.map((each) => JSON.stringify(rolloutJson(problems.get(each.problem)!, each, conditions, contextOf)));
  if (json) print(lines().join("\n"));
  else if (out !== undefined) {
    await writeWhole(out, lines());
    print(`${samples.length} responses to ${metrics.problems} problems are in ${out}: ${metrics.verdicts.accept} accepted, ${metrics.unscored} unscored`);
  } else print(rolloutsText(posed.problems, samples).join("\n"));
}

/** With the tokenizer and the prompt as token ids, so that it can be learnt as it was sampled, and how it was drawn. */
function rolloutJson(
  problem: Problem,
  sample: EvaluatedSample,
  { tokenizer, decoder }: Pick<StoreConditions, "tokenizer" | "decoder">,
  contextOf: (problem: Problem) => Int32Array,
): Json {
  const own = sampleJson(sample) as { [key: string]: Json };
  return {
    prompt_ids: [...contextOf(problem)],
    ...own,
    problem: publicProblem(problem) as unknown as Json,
    tokenizer,
    decoder: decoder as unknown as Json,
  };
}

/** A file that could not be written would be told after all the samples were drawn. */
function refuseUnlessFile(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found !== undefined) {
    const cause = found.isDirectory() ? "it is a folder" : "it exists";
    throw new ConfigError({ place: `option --out ${file}`, cause, mend: "give a new name, or remove it" });
  }
  refuseUnlessWritable(dirname(resolve(file)));
}

/** Writes lines beside a file and renames it, so that it is there whole or not at all. */
async function writeWhole(file: string, lines: readonly string[]): Promise<void> {
  const beside = `${file}.${process.pid}.part`;
  mkdirSync(dirname(file), { recursive: true });
  const stream = createWriteStream(beside);
  for (const line of lines) if (!stream.write(`${line}\n`)) await once(stream, "drain");
  stream.end();
  await once(stream, "close");
  await rename(beside, file);
}

function rolloutsText(problems: readonly Problem[], samples: readonly EvaluatedSample[]): string[] {
  const paint = colours(process.stdout);
  const indented = (text: string): string[] => text.split("\n").map((line) => `    ${line}`);
  return problems.flatMap(({ key, prompt, reference }) => [
    paint.bold(`problem ${key}${reference.answer === undefined ? "" : `, reference ${JSON.stringify(reference.answer)}`}`),
    ...prompt.flatMap(({ role, content }) => [`  ${role}`, ...indented(content)]),
    ...samples
      .filter(({ problem }) => problem === key)
      .flatMap((each) => [
        `  ${each.member}: ${verdictText(each.verdict, each.answer, paint)}, ${each.ids.length} tokens, log-prob ${each.logp?.toFixed(2) ?? "unknown"}, ended by ${each.stop}`,
        ...(each.turns ? each.turns.flatMap(turnText) : [each.text]).flatMap(indented),
      ]),
    "",
  ]);
}

/** What was said, and what came back. */
function turnText({ action, observation, fault }: Turn): string[] {
  return [`> ${action}`, ...(observation === "" ? [] : [`< ${observation}`]), ...(fault === undefined ? [] : [`! ${fault}`])];
}
