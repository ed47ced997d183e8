/** `touchstone start`: a new policy learns the task chain from worked solutions, then answers problems that it has not seen. */
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Command } from "commander";
import { saveAlphabet } from "../core/alphabet.js";
import { plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { scoreOf } from "../core/verdict.js";
import type { Engine } from "../engine/contract.js";
import { startLocal } from "../engine/onnx/start.js";
import { chain, misconception } from "../tasks/chain/chain.js";
import type { Task } from "../tasks/contract.js";
import { sft } from "../train/sft.js";
import { parametersOf, policyConfig, workedBatches } from "../train/starter.js";
import { judge } from "../verify/contract.js";
import { wholeNumber } from "./flags.js";
import { colours, print } from "./output.js";
import { Progress } from "./progress.js";

interface StartFlags {
  readonly steps: number;
  readonly seed: number;
  readonly out: string;
  readonly json?: true;
}

const size = "100k";
const modulus = 7;
const batchSize = 64;
const shown = 4;
const measured = 500;

export function define(command: Command): void {
  command
    .option("--steps <count>", "optimizer steps", wholeNumber("--steps", 1), 1600)
    .option("--seed <number>", "of everything", wholeNumber("--seed", 0), 0)
    .option("--out <folder>", "where the policy is saved", "runs/starter")
    .option("--json", "print the result as a line of JSON")
    .addHelpText(
      "after",
      `
The worked solutions follow a common misconception in 65 % of their lines with "*" (worked as "+"), so the policy is
often wrong and knows how to be right: that is what reinforcement has to work with.

Example:
  $ touchstone start --steps 1600`,
    )
    .action(run);
}

async function run({ steps, seed, out, json }: StartFlags): Promise<void> {
  const started = performance.now();
  const task = chain({ modulus, ...misconception });
  const tokenizer = task.tokenizer as Tokenizer;
  const progress = new Progress({ label: "warm start", total: steps, silent: json === true });
  progress.waitFor("the engine");
  const engine = await startLocal(parametersOf(size, tokenizer.size));
  try {
    await engine.weights.load({ role: "policy", source: { from: "config", config: policyConfig(size, tokenizer, 256), seed }, trainable: true });
    progress.waitFor("");
    const reports = await sft(engine, {
      batch: workedBatches(task, tokenizer, batchSize, steps, seed),
      steps,
      schedule: { kind: "cosine", rate: 4e-3, steps, warmup: Math.min(100, steps - 1) },
      onStep: ({ step, loss }) => progress.at(step, `loss ${loss.toFixed(3)}`),
    });
    progress.waitFor("answers");
    const answers = await answer(engine, task, tokenizer, seed);
    await mkdir(dirname(out), { recursive: true });
    await engine.weights.save({ role: "policy" }, out);
    await saveAlphabet(tokenizer, out);
    progress.end();
    const right = answers.reduce((sum, { score }) => sum + score, 0) / answers.length;
    const result = { out, steps, loss: reports.at(-1)?.loss ?? 0, right, n: answers.length, wall_s: (performance.now() - started) / 1000 };
    if (json) print(JSON.stringify(result));
    else show(answers, result);
  } finally {
    progress.end();
    await engine.close();
  }
}

interface Answer {
  readonly problem: string;
  readonly text: string;
  readonly verdict: string;
  readonly score: number;
}

/** One answer at temperature 1 to each of some problems that were not learnt from. */
async function answer(engine: Engine, task: Task, tokenizer: Tokenizer, seed: number): Promise<Answer[]> {
  const problems = task.problems("eval", measured, seed);
  const answers: Answer[] = [];
  const requests = problems.map(({ key, prompt }) => ({
    context: plainContext(tokenizer.render(prompt, { addGenerationPrompt: true })),
    weights: { role: "policy" },
    temperature: 1,
    maxTokens: task.maxTokens as number,
    stop: { ids: tokenizer.eosIds },
    key: randomKey({ seed, purpose: "start", problem: key }),
  }));
  for await (const { index, ids, stop } of engine.sample(requests)) {
    const problem = problems[index];
    const text = tokenizer.decode(ids);
    const verdict = await judge(task.verifier, problem, text, stop === "length");
    const reason = verdict.kind === "reject" || verdict.kind === "unscored" ? ` (${verdict.reason})` : "";
    answers[index] = { problem: problem.prompt.at(-1)?.content ?? "", text, verdict: `${verdict.kind}${reason}`, score: scoreOf(verdict) ?? 0 };
  }
  return answers;
}

function show(answers: readonly Answer[], { out, right, n, wall_s }: { out: string; right: number; n: number; wall_s: number }): void {
  const paint = colours(process.stdout);
  for (const { problem, text, verdict } of answers.slice(0, shown)) {
    print(`\n${paint.bold(problem)}   (modulo ${modulus}, from left to right)`);
    print(
      text
        .split("\n")
        .map((line) => `  ${line}`)
        .join("\n"),
    );
    print(`  ${verdict === "accept" ? paint.green(verdict) : paint.red(verdict)}`);
  }
  print(`\n${(100 * right).toFixed(1)} % of ${n} new problems right, one draw each at temperature 1, after ${wall_s.toFixed(0)} s.`);
  print(`The policy is in ${out}. Go on with:`);
  print(`  touchstone sample ${out} --task chain --task-options '{"modulus":${modulus}}' --n-problems 3`);
  print(`  touchstone eval ${out} --task chain --task-options '{"modulus":${modulus}}' --greedy`);
}
