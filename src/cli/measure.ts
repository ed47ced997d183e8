/** What `eval` and `sample` share: their decoder's flags, and the way from a model and problems to judged samples. */
import type { Command } from "commander";
import { ConfigError } from "../core/errors.js";
import { type Problem, plainContext } from "../core/problem.js";
import type { Truncation } from "../core/trajectory.js";
import { type Evaluation, evaluate, evaluationPurpose } from "../evaluate/evaluate.js";
import type { StoreConditions } from "../evaluate/store.js";
import { type ChatFlags, chatOptions, type StopFlags, stopOption } from "./chat-flags.js";
import { positiveNumber, share, wholeNumber } from "./flags.js";
import type { Posed } from "./problems.js";
import { type BaseFlag, baseOption } from "./read-model.js";
import { type RemoteFlags, remoteOptions } from "./remote-flags.js";
import { openSession } from "./session.js";

export interface TruncationFlags {
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
}

export interface DecoderFlags extends TruncationFlags, ChatFlags, StopFlags, BaseFlag, RemoteFlags {
  readonly n?: number;
  readonly temperature?: number;
  readonly greedy?: true;
  readonly maxTokens?: number;
  readonly seed?: number;
  readonly threads?: number;
  readonly verifierWorkers?: number;
}

/** Adds the rules of a restricted draw. */
export function truncationOptions(command: Command): Command {
  return command
    .option("--top-k <count>", "draw from the k most likely tokens alone", wholeNumber("--top-k", 1))
    .option("--top-p <share>", "of these from the fewest most likely ones that reach this share of their probability", share("--top-p", "above 0"))
    .option("--min-p <share>", "of these from tokens at least so often as likely as the most likely one", share("--min-p", "from 0"));
}

/** Adds the flags of drawing and judging. */
export function decoderOptions(command: Command): Command {
  const decoder = truncationOptions(
    command
      .option("--n <count>", "samples a problem", wholeNumber("--n", 1))
      .option("--temperature <number>", "of the distribution drawn from (default: 1)", positiveNumber("--temperature"))
      .option("--greedy", "the most likely token each time instead of a draw"),
  );
  return remoteOptions(baseOption(stopOption(chatOptions(decoder))))
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
  /** The token ids that a problem was asked under. */
  readonly contextOf: (problem: Problem) => Int32Array;
  readonly wallMs: number;
}

export interface MeasureOptions {
  readonly model: string;
  readonly posed: Posed;
  readonly flags: DecoderFlags;
  readonly truncation?: Truncation | undefined;
  readonly k: readonly number[];
  /** Keep the log-prob of each token. */
  readonly logprobs?: boolean;
  readonly silent: boolean;
}

/** The rules of a restricted draw. Throws ConfigError where nothing is drawn that they could restrict. */
export function truncationOf({ topK, topP, minP, greedy }: TruncationFlags & Pick<DecoderFlags, "greedy">): Truncation | undefined {
  const given = [
    ["--top-k", topK],
    ["--top-p", topP],
    ["--min-p", minP],
  ].find(([, value]) => value !== undefined);
  if (given === undefined) return undefined;
  if (greedy)
    throw new ConfigError({
      place: `option ${given[0]}`,
      cause: "the most likely token, which --greedy takes, is always kept",
      mend: "leave out one or the other",
    });
  return { ...(topK !== undefined && { topK }), ...(topP !== undefined && { topP }), ...(minP !== undefined && { minP }) };
}

/** Loads the model, draws samples for the problems and lets them be judged, with a progress line on stderr. */
export async function measure({ model: text, posed, flags, truncation, k, logprobs, silent }: MeasureOptions): Promise<Measured> {
  const { n = 1, temperature = 1, greedy = false, seed = 0, stop } = flags;
  const { problems, verifier, task } = posed;
  const line = { label: "sampling", total: problems.length * n, silent };
  const { model, remote, tokenizer, contextOf, maxTokens, engine, pool, environment, progress, close } = await openSession({ model: text, posed, flags, line });
  try {
    if (logprobs && engine.info.fingerprint.token_ids === "text") {
      const cause = `${remote} tells texts of tokens and not ids: what could be learnt from would not be what was drawn`;
      throw new ConfigError({ place: "options --out and --json", cause, mend: "leave them out, or use a server that tells token ids" });
    }
    const started = performance.now();
    const evaluation = await evaluate(engine, {
      weights: { role: "policy" },
      problems,
      verifier,
      judge: (problem, response, truncated) => pool.judge(problem, response, truncated),
      ...(environment && { environment }),
      tokenizer,
      prepare: (problem) => plainContext(contextOf(problem)),
      n,
      k,
      temperature,
      greedy,
      ...(truncation && { truncation }),
      maxTokens,
      ...(stop && { stop }),
      ...(logprobs && { logprobs }),
      seed,
      onProgress: ({ done, accepted, scored }) => progress.at(done, scored === 0 ? "" : `accepted ${((100 * accepted) / scored).toFixed(1)} %`),
    });
    const wallMs = performance.now() - started;
    const conditions: StoreConditions = {
      model: remote ?? (model.run ? `${model.run.reader.folder}@${model.run.step}` : (model.adapter ?? model.folder)),
      weights: evaluation.weights,
      tokenizer: tokenizer.id,
      ...(task && { task }),
      verifier,
      decoder: { n, temperature, greedy, maxTokens, ...(stop && { stop: [...stop] }), ...(truncation && { truncation }) },
      seed,
      purpose: evaluationPurpose,
      engine: { name: engine.info.name, ...engine.info.fingerprint },
    };
    return { evaluation, conditions, contextOf, wallMs };
  } finally {
    await close();
  }
}
