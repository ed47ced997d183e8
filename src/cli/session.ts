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
import { type ReadModel, readModel, refuseUnlessRoom, startFor } from "./read-model.js";
import { isRemote, openRemote, type RemoteFlags, type RemoteModel } from "./remote-flags.js";

export interface Session {
  readonly model: FoundModel;
  /** Who draws where that is a server: the model and its address, for records. */
  readonly remote?: string;
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
  readonly flags: Pick<DecoderFlags, "maxTokens" | "threads" | "verifierWorkers" | "base"> & ChatFlags & RemoteFlags;
  /** The progress line; it is made once all is checked that can be refused. */
  readonly line: ProgressOptions;
}

/** The budget where neither flags nor task say one, as far as the model has room. */
const defaultBudget = 256;

/** Checks model, prompts and verifier, then starts the engine, the verifiers and loads the model. */
export async function openSession({ model: text, posed, flags, line }: SessionOptions): Promise<Session> {
  const chat = chatOf(flags);
  if (posed.raw) refuseTemplateOptions("option --prompt", "the text is taken as it is without --chat", chat);
  const silent = line.silent === true;
  const remote = isRemote(flags) ? await openRemote(text, flags, chat, silent) : undefined;
  try {
    return await opened({ read: remote ?? (await readModel(text, flags, chat, silent)), posed, flags, line });
  } catch (error) {
    await remote?.engine.close();
    throw error;
  }
}

interface Reading extends Omit<SessionOptions, "model"> {
  readonly read: ReadModel | RemoteModel;
}

async function opened({ read, posed, flags, line }: Reading): Promise<Session> {
  const { threads, verifierWorkers = 1 } = flags;
  const { model, tokenizer } = read;
  const { problems, verifier, source } = posed;
  // What the model cannot take is refused before an engine is started.
  const { vocabulary, maxPositions } = "engine" in read ? read.limits : read.config;
  const budget = flags.maxTokens ?? posed.maxTokens;
  const contextOf = ({ prompt }: Problem): Int32Array =>
    posed.raw ? tokenizer.raw(prompt[0]?.content ?? "") : tokenizer.render(prompt, { addGenerationPrompt: true });
  const { contexts } = renderContexts(problems, tokenizer, { vocabulary, maxTokens: maxPositions }, { max_tokens: budget ?? 1 }, contextOf);
  const longest = [...contexts.values()].reduce((most, { ids }) => Math.max(most, ids.length), 0);
  const maxTokens = budget ?? Math.max(1, Math.min(defaultBudget, maxPositions - longest));
  if (!("engine" in read)) refuseUnlessRoom(read.config, longest + maxTokens, model.folder);
  const progress = new Progress(line);
  const ends: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    progress.end();
    await Promise.all(ends.splice(0).map((end) => end()));
  };
  try {
    progress.waitFor("the verifiers");
    const started = await startPool({ verifier, workers: source === undefined ? 0 : verifierWorkers, ...(source && { source }) });
    ends.push(() => started.close());
    await refuseUnlessTotal(problems[0] as Problem, verifier, (...asked) => started.judge(...asked));
    const pool = telling(started, verifier.name, (text) => progress.say(text));
    progress.waitFor("the engine");
    const engine = "engine" in read ? read.engine : await startFor(read.config, threads);
    ends.push(() => engine.close());
    const environment = posed.environment && (await startHost(posed.environment));
    if (environment) ends.push(() => environment.close());
    progress.waitFor("the model");
    if (!("engine" in read)) await engine.weights.load(loadRequestOf(model, "policy"));
    progress.waitFor("samples");
    return {
      model,
      ...("engine" in read && { remote: read.title }),
      tokenizer,
      contextOf,
      maxTokens,
      engine,
      pool,
      ...(environment && { environment }),
      progress,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
