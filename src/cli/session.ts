/** A policy that answers and a verifier that judges, opened together for a command and closed together. */
import type { Problem } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Engine } from "../engine/contract.js";
import { type EnvironmentHost, startHost } from "../rollout/environment.js";
import { refuseTemplateOptions } from "../tokenizers/load.js";
import { renderContexts } from "../train/contexts.js";
import { type FoundModel, loadRequestOf } from "../train/find-model.js";
import { telling } from "../verify/faults.js";
import { type JudgePool, startPool } from "../verify/pool.js";
import { refuseUnlessTotal } from "../verify/probe.js";
import { type ChatFlags, chatOf } from "./chat-flags.js";
import type { DecoderFlags } from "./measure.js";
import type { Posed } from "./problems.js";
import { Progress, type ProgressOptions } from "./progress.js";
import { readModel, refuseUnlessRoom, startFor } from "./read-model.js";

export interface Session {
  readonly model: FoundModel;
  readonly tokenizer: Tokenizer;
  /** The token ids that a problem is asked under. */
  readonly contextOf: (problem: Problem) => Int32Array;
  /** Response budget in tokens. */
  readonly maxTokens: number;
  readonly engine: Engine;
  readonly pool: JudgePool;
  /** Present where an answer is a conversation. */
  readonly environment?: EnvironmentHost;
  /** The progress line, which says that the samples are waited for. */
  readonly progress: Progress;
  /** Takes the progress line away too. */
  close(): Promise<void>;
}

export interface SessionOptions {
  readonly model: string;
  readonly posed: Posed;
  readonly flags: Pick<DecoderFlags, "maxTokens" | "threads" | "verifierWorkers" | "base"> & ChatFlags;
  /** The progress line; it is made once all is checked that can be refused. */
  readonly line: ProgressOptions;
}

/** The budget where neither flags nor task say one, as far as the model has room. */
const defaultBudget = 256;

/** Checks model, prompts and verifier, then starts the engine, the verifiers and loads the model. */
export async function openSession({ model: text, posed, flags, line }: SessionOptions): Promise<Session> {
  const { threads, verifierWorkers = 1 } = flags;
  const chat = chatOf(flags);
  if (posed.raw) refuseTemplateOptions("option --prompt", "the text is taken as it is without --chat", chat);
  const { model, tokenizer, config } = await readModel(text, flags, chat, line.silent === true);
  const { problems, verifier, source } = posed;
  // What the model cannot take is refused before an engine is started.
  const { vocabulary, maxPositions } = config;
  const budget = flags.maxTokens ?? posed.maxTokens;
  const contextOf = ({ prompt }: Problem): Int32Array =>
    posed.raw ? tokenizer.raw(prompt[0]?.content ?? "") : tokenizer.render(prompt, { addGenerationPrompt: true });
  const { contexts } = renderContexts(problems, tokenizer, { vocabulary, maxTokens: maxPositions }, { max_tokens: budget ?? 1 }, contextOf);
  const longest = [...contexts.values()].reduce((most, { ids }) => Math.max(most, ids.length), 0);
  const maxTokens = budget ?? Math.max(1, Math.min(defaultBudget, maxPositions - longest));
  refuseUnlessRoom(config, longest + maxTokens, model.folder);
  const progress = new Progress(line);
  const opened: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    progress.end();
    await Promise.all(opened.splice(0).map((end) => end()));
  };
  try {
    progress.waitFor("the verifiers");
    const started = await startPool({ verifier, workers: source === undefined ? 0 : verifierWorkers, ...(source && { source }) });
    opened.push(() => started.close());
    await refuseUnlessTotal(problems[0] as Problem, verifier, (...asked) => started.judge(...asked));
    const pool = telling(started, verifier.name, (text) => progress.say(text));
    progress.waitFor("the engine");
    const engine = await startFor(config, threads);
    opened.push(() => engine.close());
    const environment = posed.environment && (await startHost(posed.environment));
    if (environment) opened.push(() => environment.close());
    progress.waitFor("the model");
    await engine.weights.load(loadRequestOf(model, "policy"));
    progress.waitFor("samples");
    return { model, tokenizer, contextOf, maxTokens, engine, pool, ...(environment && { environment }), progress, close };
  } catch (error) {
    await close();
    throw error;
  }
}
