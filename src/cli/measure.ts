/** What `eval` and `sample` share: their decoder's flags, and the way from a model and problems to judged samples. */
import type { Command } from "commander";
import { loadAlphabet } from "../core/alphabet.js";
import type { Problem } from "../core/problem.js";
import { inspectFolder } from "../engine/onnx/folder.js";
import { parameterCount } from "../engine/onnx/params.js";
import { startLocal, startOnnx } from "../engine/onnx/start.js";
import { type Evaluation, evaluate, evaluationPurpose } from "../evaluate/evaluate.js";
import type { StoreConditions } from "../evaluate/store.js";
import { renderContexts } from "../train/contexts.js";
import { namedModel } from "../train/model-name.js";
import { startPool } from "../verify/pool.js";
import { refuseUnlessTotal } from "../verify/probe.js";
import { positiveNumber, wholeNumber } from "./flags.js";
import type { Posed } from "./problems.js";
import { Progress } from "./progress.js";

export interface DecoderFlags {
  readonly n?: number;
  readonly temperature?: number;
  readonly greedy?: true;
  readonly maxTokens?: number;
  readonly seed?: number;
  readonly threads?: number;
  readonly verifierWorkers?: number;
}

/** Adds the flags of drawing and judging. */
export function decoderOptions(command: Command): Command {
  return command
    .option("--n <count>", "samples a problem", wholeNumber("--n", 1))
    .option("--temperature <number>", "of the distribution drawn from (default: 1)", positiveNumber("--temperature"))
    .option("--greedy", "the most likely token each time instead of a draw")
    .option("--max-tokens <count>", "budget of a response (default: the task's, else 256)", wholeNumber("--max-tokens", 1))
    .option("--seed <number>", "chooses problems, samples and resamplings (default: 0)", wholeNumber("--seed", 0))
    .option("--threads <count>", "threads of one engine process (default: what suits the model's size)", wholeNumber("--threads", 1))
    .option(
      "--verifier-workers <count>",
      "threads that judge; 0 judges in this one, where nothing stops a check that hangs (default: 1)",
      wholeNumber("--verifier-workers", 0),
    );
}

export interface Measured {
  readonly evaluation: Evaluation;
  readonly conditions: StoreConditions;
  readonly wallMs: number;
}

export interface MeasureOptions {
  readonly model: string;
  readonly posed: Posed;
  readonly flags: DecoderFlags;
  readonly k: readonly number[];
  readonly silent: boolean;
}

const defaultBudget = 256;

/** Loads the model, draws samples for the problems and lets them be judged, with a progress line on stderr. */
export async function measure({ model: text, posed, flags, k, silent }: MeasureOptions): Promise<Measured> {
  const { n = 1, temperature = 1, greedy = false, seed = 0, threads, verifierWorkers = 1 } = flags;
  const model = namedModel(text);
  const tokenizer = await loadAlphabet(model.folder);
  const { problems, verifier, source, task } = posed;
  // What the model cannot take is refused before an engine is started.
  const config = await inspectFolder(model.folder);
  const { vocabulary, maxPositions } = config;
  const budget = flags.maxTokens ?? posed.maxTokens;
  const { contexts } = renderContexts(problems, tokenizer, { vocabulary, maxTokens: maxPositions }, { max_tokens: budget ?? 1 });
  await refuseUnlessTotal(problems[0] as Problem, verifier);
  const longest = Math.max(...[...contexts.values()].map(({ ids }) => ids.length));
  const maxTokens = budget ?? Math.max(1, Math.min(defaultBudget, maxPositions - longest));
  const total = problems.length * n;
  const progress = new Progress({ label: "sampling", total, silent });
  progress.waitFor("the engine");
  const start = threads === undefined ? startLocal(parameterCount(config)) : startOnnx({ engine: { threads } });
  const engine = await start.catch((error: unknown) => {
    progress.end();
    throw error;
  });
  const pool = await startPool({ verifier, workers: source === undefined ? 0 : verifierWorkers, ...(source && { source }) }).catch(async (error: unknown) => {
    progress.end();
    await engine.close();
    throw error;
  });
  try {
    progress.waitFor("the model");
    await engine.weights.load({ role: "policy", source: { from: "folder", path: model.folder }, trainable: false });
    progress.waitFor("samples");
    const started = performance.now();
    const evaluation = await evaluate(engine, {
      weights: { role: "policy" },
      problems,
      verifier,
      judge: (problem, response, truncated) => pool.judge(problem, response, truncated),
      tokenizer,
      n,
      k,
      temperature,
      greedy,
      maxTokens,
      seed,
      onProgress: ({ done, accepted, scored }) => progress.at(done, scored === 0 ? "" : `accepted ${((100 * accepted) / scored).toFixed(1)} %`),
    });
    const wallMs = performance.now() - started;
    const conditions: StoreConditions = {
      model: model.run ? `${model.run.reader.folder}@${model.run.step}` : model.folder,
      weights: evaluation.weights,
      tokenizer: tokenizer.id,
      ...(task && { task }),
      verifier,
      decoder: { n, temperature, greedy, maxTokens },
      seed,
      purpose: evaluationPurpose,
      engine: { name: engine.info.name, ...engine.info.fingerprint },
    };
    return { evaluation, conditions, wallMs };
  } finally {
    progress.end();
    await Promise.all([engine.close(), pool.close()]);
  }
}
