/** A policy that answers requests over HTTP: an engine, a tokenizer, and what a request asks of them. */
import { randomInt } from "node:crypto";
import { EngineError } from "../core/errors.js";
import { Gate } from "../core/gate.js";
import { plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Truncation } from "../core/trajectory.js";
import type { Engine, Sample, SampleRequest, Scores } from "../engine/contract.js";
import { withStopStrings } from "../rollout/stop-strings.js";
import { Batcher } from "./batcher.js";
import { Refusal } from "./refusal.js";
import { Visible } from "./visible.js";

/** How answers are drawn, as a request says it with all defaults filled in. */
export interface Decoder {
  /** 0: the most likely token each time. */
  readonly temperature: number;
  readonly truncation: Truncation | undefined;
  readonly maxTokens: number | undefined;
  readonly stops: readonly string[];
  readonly stopIds: readonly number[];
  readonly ignoreEos: boolean;
  readonly seed: number | undefined;
  /** Most likely tokens to be listed at each position. */
  readonly listed: number;
  /** Special tokens show in the text. */
  readonly specials: boolean;
  readonly wholeStop: boolean;
}

export interface Drawn {
  readonly sample: Sample;
  readonly text: string;
  readonly finish: "stop" | "length";
  /** The stop string, or the id other than an end token, that ended it. */
  readonly by: string | number | null;
}

/** Told as it is drawn: the text of a response that has become certain, with the ids since the last time; once more at its end. */
export type OnText = (index: number, text: string, ids: readonly number[]) => void;

export interface PolicyOptions {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  /** How requests name it. */
  readonly name: string;
  /** Of context and response together. */
  readonly maxTokens: number;
  /** Stop strings besides those of a request. */
  readonly stops?: readonly string[];
  /** Calls of the engine at once. Default 4. */
  readonly calls?: number;
  /** Responses that are drawn in one call. Default 64. */
  readonly rows?: number;
  /** Told when the engine fails and does not answer any more. */
  readonly onLost?: (error: unknown) => void;
}

/** Requests that may wait. */
const mostWaiting = 512;
export const role = "policy";

export class Policy {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly maxTokens: number;
  /** Unix seconds. */
  readonly since = Math.floor(Date.now() / 1000);
  private readonly batcher: Batcher;
  private readonly gate: Gate;

  constructor(private readonly options: PolicyOptions) {
    ({ name: this.name, tokenizer: this.tokenizer, maxTokens: this.maxTokens } = options);
    const { engine, calls = 4, rows = 64 } = options;
    this.batcher = new Batcher(
      withStopStrings((...call) => engine.sample(...call), this.tokenizer),
      { calls, rows },
    );
    this.gate = new Gate(calls);
  }

  /** Throws Refusal for a model that is not this one. */
  refuseOther(model: string | undefined): void {
    if (model === undefined || model === this.name) return;
    throw new Refusal(404, `there is no model ${JSON.stringify(model.slice(0, 100))} here; there is ${JSON.stringify(this.name)}`, {
      param: "model",
      code: "model_not_found",
    });
  }

  /** n responses to each context, the n of a context together. Throws Refusal or what the engine throws. */
  async draw(contexts: readonly Int32Array[], n: number, decoder: Decoder, signal: AbortSignal, onText?: OnText): Promise<Drawn[]> {
    const requests = contexts.flatMap((context, i) => this.requests(context, n, decoder, i));
    this.refuseFull(this.batcher.waiting);
    return this.watched(this.drawn(requests, decoder, signal, onText));
  }

  /** What each token of a text has as log-prob after those before it; nothing of the first. */
  async score(ids: Int32Array, temperature: number, listed: number, signal: AbortSignal): Promise<Scores> {
    const sequence = { context: plainContext(ids.slice(0, 1)), response: ids.slice(1), weights: { role }, temperature };
    const want = { entropy: true, ...(listed > 0 && { topK: listed }) };
    this.refuseFull(this.gate.waiting);
    const [scores] = await this.watched(this.gate.run(() => this.options.engine.score([sequence], want, { signal }), signal));
    return scores as Scores;
  }

  /** A fault may be the engine's end: then it does not tell its counts either. */
  private async watched<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof EngineError) this.options.engine.usage().catch((lost: unknown) => this.options.onLost?.(lost));
      throw error;
    }
  }

  private refuseFull(waiting: number): void {
    if (waiting >= mostWaiting) throw new Refusal(429, `${mostWaiting} requests wait already`, { headers: { "Retry-After": "1" } });
  }

  private requests(context: Int32Array, n: number, decoder: Decoder, prompt: number): SampleRequest[] {
    const { temperature, truncation, stopIds, ignoreEos, listed } = decoder;
    const room = this.maxTokens - context.length;
    if (room < 1) {
      const cause = `the prompt has ${context.length} tokens, and the model takes ${this.maxTokens} with its answer`;
      throw new Refusal(400, cause, { code: "context_length_exceeded" });
    }
    const seed = decoder.seed ?? randomInt(2 ** 47);
    const ids = [...new Set([...(ignoreEos ? [] : this.tokenizer.eosIds), ...stopIds])];
    return Array.from({ length: n }, (_, i) => ({
      context: plainContext(context),
      weights: { role },
      temperature: temperature === 0 ? 1 : temperature,
      ...(temperature === 0 && { greedy: true }),
      ...(truncation && temperature !== 0 && { truncation }),
      maxTokens: Math.min(decoder.maxTokens ?? room, room),
      stop: { ids, strings: this.stops(decoder) },
      key: randomKey({ seed, purpose: "serve", step: prompt, member: i }),
      ...(listed > 0 && { topK: listed }),
    }));
  }

  private stops({ stops }: Decoder): readonly string[] {
    return [...new Set([...(this.options.stops ?? []), ...stops])];
  }

  private async drawn(requests: readonly SampleRequest[], decoder: Decoder, signal: AbortSignal, onText: OnText | undefined): Promise<Drawn[]> {
    const { tokenizer } = this;
    const specials = decoder.specials ? "show" : "skip";
    const parts = requests.map(() => ({
      stream: tokenizer.stream(specials),
      visible: new Visible(this.stops(decoder), decoder.wholeStop),
      text: "",
      ids: [] as number[],
    }));
    const tell = (index: number, text: string, last = false): void => {
      const part = parts[index] as (typeof parts)[number];
      part.text += text;
      if (text !== "" || (last && part.ids.length > 0)) onText?.(index, text, part.ids.splice(0));
    };
    const onToken = (index: number, id: number): boolean => {
      const { stream, visible, ids } = parts[index] as (typeof parts)[number];
      ids.push(id);
      tell(index, visible.push(stream.push(id)));
      // Between the special tokens that are not shown a stop string is one too.
      return visible.ended !== undefined;
    };
    const results: Drawn[] = [];
    for (const answer of await this.batcher.draw(requests, signal, onToken)) {
      if (answer === undefined || answer.stop === "cancelled") continue;
      const part = parts[answer.index] as (typeof parts)[number];
      const { stream, visible } = part;
      tell(answer.index, visible.push(stream.end()) + visible.end(), true);
      const last = answer.ids.at(-1) as number;
      const by = answer.stop === "stop" ? (visible.ended ?? null) : answer.stop === "eos" && decoder.stopIds.includes(last) ? last : null;
      results[answer.index] = { sample: answer, text: part.text, finish: answer.stop === "length" ? "length" : "stop", by };
    }
    signal.throwIfAborted();
    if (Object.keys(results).length !== requests.length) {
      throw new EngineError({ place: "touchstone serve", cause: "the engine did not answer every request", mend: "start it again" });
    }
    return results;
  }
}
