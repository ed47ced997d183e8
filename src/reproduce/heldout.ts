/** Held-out answers of a policy: the same problems and draws for all arms of a seed. */
import { ConfigError, DataError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { Problem } from "../core/problem.js";
import { scoreOf } from "../core/verdict.js";
import type { Engine } from "../engine/contract.js";
import { evaluate } from "../evaluate/evaluate.js";
import { type Estimate, estimateOf, metricsOf } from "../evaluate/metrics.js";
import type { Answers, Heldout, TrainingOptions } from "../methods/demonstration.js";
import { startHost } from "../rollout/environment.js";
import { isTask, namedTask } from "../tasks/catalogue.js";
import { posedBy, type Task } from "../tasks/contract.js";
import { tokenizerOf } from "../train/model-files.js";
import type { VerifierSource } from "../verify/source.js";

export interface Wanted {
  readonly model: string;
  readonly heldout: Heldout;
  readonly options: TrainingOptions;
  readonly seed: number;
}

/** Problems that are looked through for each that is kept, before it is said that too few are. */
const mostLooked = 64;

/** Draws and judges answers on an engine, whose role `policy` is the model from then on. */
export async function answersOf(engine: Engine, { model, heldout, options, seed }: Wanted): Promise<Answers> {
  const { task, source } = await taskOf(heldout.task ?? options.task);
  const { greedy = false, temperature = 1 } = heldout;
  const n = greedy ? 1 : (heldout.samples ?? 1);
  const problems = await posed(task, heldout, seed);
  const maxTokens = (options.max_tokens as number | undefined) ?? task.maxTokens;
  if (maxTokens === undefined)
    throw new ConfigError({ place: `task ${task.name}`, cause: "it does not say how long an answer may be", mend: "give max_tokens among the options" });
  await engine.weights.load({ role: "policy", source: { from: "folder", path: model }, trainable: false });
  const environment = task.environment && (await startHost({ environment: task.environment, ...(source && { source }) }));
  try {
    const tokenizer = await tokenizerOf(model, task.tokenizer);
    const { verifier } = task;
    const { samples } = await evaluate(engine, {
      weights: { role: "policy" },
      problems,
      verifier,
      tokenizer,
      ...(environment && { environment }),
      n,
      temperature,
      greedy,
      maxTokens,
      seed,
      purpose: "reproduce/held-out",
    });
    const estimate = (name: Estimate["name"], k: number): number | undefined =>
      estimateOf(metricsOf(samples, { k: [k], seed }), name, name === "avg" ? undefined : k)?.value ?? undefined;
    return {
      problems,
      answers: samples.map(({ problem, member, text, ids, verdict }) => {
        const score = scoreOf(verdict);
        return { problem, member, text, tokens: ids.length, ...(score === undefined ? {} : { score }) };
      }),
      avg: estimate("avg", 1),
      pass: (k) => estimate("pass", k),
      maj: (k) => estimate("maj", k),
    };
  } finally {
    await environment?.close();
  }
}

async function taskOf(given: unknown): Promise<{ readonly task: Task; readonly source?: VerifierSource }> {
  const made: unknown = typeof given === "function" ? (given as () => unknown)() : given;
  if (isTask(made)) return { task: made };
  const named = typeof made === "string" ? { name: made } : (made as { readonly name?: string; readonly options?: Json } | undefined);
  if (typeof named?.name === "string") return namedTask(named.name, named.options ?? {});
  throw new ConfigError({ place: "held-out answers", cause: "the options name no task", mend: "give a task among the shared options, or in the metric" });
}

/** Problems of the split `eval`, those that count. */
async function posed(task: Task, { problems: wanted, keep }: Heldout, seed: number): Promise<readonly Problem[]> {
  if (keep === undefined) return posedBy(task, "eval", wanted, seed);
  for (let looked = 2 * wanted; ; looked *= 2) {
    const all = await posedBy(task, "eval", looked, seed);
    const kept = all.filter(keep);
    if (kept.length >= wanted) return kept.slice(0, wanted);
    if (all.length < looked || looked >= mostLooked * wanted)
      throw new DataError({
        place: `task ${task.name}`,
        cause: `${kept.length} of ${all.length} held-out problems are kept, and ${wanted} are wanted`,
        mend: "lower problems, or keep more",
      });
  }
}
