/**
 * An engine on any OpenAI-compatible server: it draws and scores by token ids, and trains nothing. What the server can do is
 * found when it is opened (probe.ts). Ids that a server does not tell are read back from text only where there is no doubt.
 */
import { setMaxListeners } from "node:events";
import { type CapabilityError, EngineError } from "../../core/errors.js";
import { Inbox } from "../../core/inbox.js";
import { CallFault, type Patient } from "../../core/patient.js";
import { checkSample, checkSequences } from "../check.js";
import type {
  Backward,
  CallOptions,
  Engine,
  EngineInfo,
  Forward,
  Sample,
  SampleOptions,
  SampleRequest,
  Scores,
  ScoreWant,
  Sequence,
  StepResult,
  Usage,
  WeightsRef,
} from "../contract.js";
import { cutSample } from "../cut.js";
import { lacking } from "../refuse.js";
import { exactIds } from "./exact-ids.js";
import { type Facts, probe } from "./probe.js";
import { ServedRoles } from "./roles.js";
import { type LocalModel, type OpenaiSettings, patientTo } from "./settings.js";
import { Collected, choiceOf, type Drawn, Events, echoOf, extensions, jsonOf, sampleBody } from "./wire.js";

export interface OpenaiEngineOptions extends OpenaiSettings {
  readonly model: LocalModel;
  /** Where the address was written, for errors. */
  readonly place?: string;
  readonly signal?: AbortSignal;
}

/** Thrown within a call whose response its caller ended. */
const ended = new Error("ended by its caller");

export class OpenaiEngine implements Engine {
  readonly info: EngineInfo;
  readonly weights: ServedRoles;
  private readonly counts = { prefillTokens: 0, sampledTokens: 0, scoredTokens: 0, trainedTokens: 0, slots: 0, busyMs: 0 };
  private busy = { calls: 0, since: 0 };

  private constructor(
    private readonly calls: Patient,
    private readonly title: string,
    private readonly facts: Facts,
    private readonly options: OpenaiEngineOptions,
    private readonly end: () => void,
  ) {
    const { model, served } = options;
    const { has, lacks, idsBy, logpOf, echoTokens } = facts;
    this.info = {
      name: "openai",
      has,
      lacks,
      fingerprint: {
        base_url: options.baseUrl,
        served_model: served,
        token_ids: idsBy,
        logprobs: logpOf,
        ...(has.has("score") && { echo_tokens: echoTokens }),
      },
    };
    const own = model.maxTokens ?? Number.MAX_SAFE_INTEGER;
    this.weights = new ServedRoles(this.info, { vocabulary: model.vocabulary ?? model.tokenizer.size, maxTokens: Math.min(own, facts.maxTokens ?? own) });
  }

  /** Asks the server what it can do. Throws ConfigError for what cannot be meant, EngineError where it does not answer. */
  static async open(options: OpenaiEngineOptions): Promise<OpenaiEngine> {
    const { place = "base_url", signal } = options;
    const { http, calls } = patientTo(options, place);
    try {
      const facts = await probe({ http, calls, served: options.served, vocabulary: options.model.tokenizer, ...(signal && { signal }) });
      return new OpenaiEngine(calls, http.place, facts, options, () => http.close());
    } catch (error) {
      http.close();
      throw error instanceof CallFault ? engineError(http.place, error) : error;
    }
  }

  private readonly lookup = (ref: WeightsRef, place: string) => this.weights.resolve(ref, place);

  async *sample(requests: readonly SampleRequest[], options: SampleOptions = {}): AsyncGenerator<Sample> {
    options.signal?.throwIfAborted();
    checkSample(this.info, requests, this.lookup);
    if (requests.length === 0) return;
    const inbox = new Inbox<Sample>();
    // A caller that takes no more, and a request that fails, end the others.
    const stop = manyListeners();
    const abort = (): void => stop.abort(options.signal?.reason);
    options.signal?.addEventListener("abort", abort, { once: true });
    this.begin();
    const all = requests.map(async (request, index) => inbox.put(await this.draw(request, index, options, stop.signal)));
    Promise.all(all).then(
      () => inbox.end(),
      (error: unknown) => inbox.fail(error),
    );
    try {
      yield* inbox;
    } finally {
      stop.abort(ended);
      options.signal?.removeEventListener("abort", abort);
      await Promise.allSettled(all);
      this.finish();
    }
  }

  /** One response; where the signal ends it, what has come of it so far, marked as cancelled. */
  private async draw(request: SampleRequest, index: number, { onToken }: SampleOptions, signal: AbortSignal): Promise<Sample> {
    const place = `sample request ${index}`;
    const body = sampleBody(this.options.served, request, this.facts);
    let part = new Collected();
    try {
      const streamed = onToken !== undefined && this.facts.streams;
      if (streamed)
        part = await this.stream(
          body,
          request,
          signal,
          (id) => onToken(index, id),
          (fresh) => (part = fresh),
        );
      else {
        const choice = await this.post(body, signal, (fields) => choiceOf(fields, this.title));
        if (choice) part.add(choice);
      }
      this.counts.prefillTokens += request.context.ids.length;
      const drawn = part.drawn();
      if (drawn.finish !== "stop" && drawn.finish !== "length") {
        throw new CallFault(
          "malformed",
          `${this.title} ended a response ${drawn.finish === undefined ? "without a reason" : `for the reason ${JSON.stringify(drawn.finish)}`}`,
          false,
        );
      }
      const sample = this.sampleOf(request, index, drawn, place);
      this.counts.sampledTokens += sample.ids.length;
      return streamed || onToken === undefined ? sample : toldAfterwards(sample, onToken);
    } catch (error) {
      if (!signal.aborted) throw error instanceof CallFault ? engineError(place, error) : error;
      return { ...this.sampleOf(request, index, wholeTokens(part.drawn()), place), stop: "cancelled" };
    }
  }

  private post<T>(body: object, signal: AbortSignal | undefined, read: (fields: ReturnType<typeof jsonOf>) => T): Promise<T> {
    return this.calls.call({ method: "POST", path: "/completions", body: JSON.stringify(body), ...(signal && { signal }) }, (answer) =>
      read(jsonOf(answer, this.title)),
    );
  }

  /** A response piece by piece. Once a token was told a fault cannot be mended by another try, which would tell other tokens. */
  private async stream(
    body: object,
    request: SampleRequest,
    signal: AbortSignal,
    tell: (id: number) => boolean,
    onTry: (part: Collected) => void,
  ): Promise<Collected> {
    const own = new AbortController();
    const abort = (): void => own.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    let part = new Collected();
    let events = new Events();
    let told = 0;
    let over = false;
    const take = (data: string): void => {
      if (data === "[DONE]" || over) return;
      const choice = choiceOf(jsonOf({ body: Buffer.from(data) }, this.title), this.title);
      for (const id of choice === undefined ? [] : part.add(choice)) {
        const end = request.stop.ids.includes(id);
        told++;
        if (!tell(id) && !end) continue;
        over = true;
        part.cut(told, end);
        own.abort(ended);
        return;
      }
    };
    const call = {
      method: "POST" as const,
      path: "/completions",
      body: JSON.stringify({ ...body, stream: true }),
      signal: own.signal,
      onTry: () => {
        if (told > 0) throw new CallFault("unreachable", `${this.title}: the stream of a response broke off`, false);
        [part, events] = [new Collected(), new Events()];
        onTry(part);
      },
      onPiece: (piece: Buffer) => {
        try {
          if (!own.signal.aborted) events.push(piece).forEach(take);
        } catch (error) {
          own.abort(error);
        }
      },
    };
    try {
      await this.calls.call(call, () => undefined);
    } catch (error) {
      if (!over) throw error;
    } finally {
      signal.removeEventListener("abort", abort);
    }
    return part;
  }

  private sampleOf(request: SampleRequest, index: number, drawn: Drawn, place: string): Sample {
    const { context, temperature, truncation, stop, weights } = request;
    const whole = drawn.ids === undefined ? exactIds(drawn, this.options.model.tokenizer) : Int32Array.from(drawn.ids);
    if (whole === undefined) {
      const cause = `${this.title} answers to a prompt of ${context.ids.length} tokens with ${drawn.texts.length} texts of tokens, which are not exactly the tokenizer's`;
      throw new EngineError({ place, cause, mend: "use a server that tells token ids, as vLLM does by return_token_ids" });
    }
    const ids = cutAtStop(whole, stop.ids);
    const column = (values: readonly number[] | undefined): Float64Array => Float64Array.from(ids, (_, t) => values?.[t] ?? Number.NaN);
    const unknown = column(undefined);
    const plain = temperature === 1 && truncation === undefined;
    const told = column(drawn.logp);
    const { logpOf } = this.facts;
    if (drawn.own === undefined && (drawn.logp.length < ids.length || told.some(Number.isNaN))) {
      throw new EngineError({
        place,
        cause: `${this.title} tells ${drawn.logp.length} log-probs of ${ids.length} tokens`,
        mend: "try again; if it stays so, another server is needed",
      });
    }
    const ending = stop.ids.includes(ids.at(-1) as number);
    return {
      index,
      ids,
      sampled: new Uint8Array(ids.length).fill(1),
      rawLogp: drawn.own ? column(drawn.own.rawLogp) : plain || logpOf === "raw" ? told : unknown,
      logp: drawn.own ? column(drawn.own.logp) : plain || logpOf === "processed" ? told : unknown,
      entropy: drawn.own ? column(drawn.own.entropy) : unknown,
      // A server that ends a response without its end token says so by the reason alone.
      stop: ending || drawn.finish === "stop" ? (drawn.ended ?? "eos") : "length",
      weights: this.weights.identity(weights.role),
    };
  }

  async score(sequences: readonly Sequence[], want: ScoreWant = {}, { signal }: CallOptions = {}): Promise<Scores[]> {
    checkSequences(this.info, "score", sequences, want, this.lookup);
    const stop = manyListeners();
    const abort = (): void => stop.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", abort, { once: true });
    this.begin();
    try {
      return await Promise.all(sequences.map((sequence, index) => this.scoreOne(sequence, index, want, stop.signal)));
    } catch (error) {
      stop.abort(error); // The others are of no use any more.
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
      this.finish();
    }
  }

  private async scoreOne({ context, response, temperature, weights }: Sequence, index: number, want: ScoreWant, signal: AbortSignal): Promise<Scores> {
    const identity = this.weights.identity(weights.role);
    const none = new Float64Array(0);
    if (response.length === 0) return { logp: none, ...(want.entropy && { entropy: none }), weights: identity };
    const ids = [...context.ids, ...response];
    const full = temperature !== 1 || want.entropy === true;
    const body = {
      model: this.options.served,
      prompt: ids,
      echo: true,
      max_tokens: this.facts.echoTokens,
      temperature,
      logprobs: this.facts.listed,
      ...(this.facts.extended && extensions),
    };
    try {
      const echo = await this.post(body, signal, (fields) => {
        const choice = choiceOf(fields, this.title);
        return choice && echoOf(choice, ids.length);
      });
      const found = full ? echo?.tempered : echo;
      if (found === undefined) throw new CallFault("malformed", `${this.title}: it does not echo the log-probs of ${ids.length} tokens`, false);
      this.counts.scoredTokens += response.length;
      const own = (values: readonly number[]): Float64Array => Float64Array.from(values.slice(context.ids.length, ids.length));
      return { logp: own(found.logp), ...(want.entropy && { entropy: own(echo?.tempered?.entropy ?? []) }), weights: identity };
    } catch (error) {
      throw error instanceof CallFault ? engineError(`score sequence ${index}`, error) : error;
    }
  }

  private untrained(call: string): CapabilityError {
    return lacking(this.info, "train", call);
  }

  async forward(): Promise<Forward> {
    throw this.untrained("forward");
  }

  async backward(): Promise<Backward> {
    throw this.untrained("backward");
  }

  async release(): Promise<void> {
    throw this.untrained("release");
  }

  async step(): Promise<StepResult> {
    throw this.untrained("step");
  }

  async usage(): Promise<Usage> {
    return { ...this.counts };
  }

  async close(): Promise<void> {
    this.end();
  }

  /** The time in which any call is under way counts once. */
  private begin(): void {
    if (this.busy.calls++ === 0) this.busy.since = performance.now();
  }

  private finish(): void {
    if (--this.busy.calls === 0) this.counts.busyMs += performance.now() - this.busy.since;
  }
}

/** A controller whose signal any number of requests listen to. */
function manyListeners(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/** A response that ends at the first of its end tokens, though the server went on. */
function cutAtStop(ids: Int32Array, stops: readonly number[]): Int32Array {
  const end = ids.findIndex((id) => stops.includes(id));
  return end < 0 ? ids : ids.slice(0, end + 1);
}

/** Tokens told once all are there; where the caller ends the response, it ends there. */
function toldAfterwards(sample: Sample, onToken: NonNullable<SampleOptions["onToken"]>): Sample {
  for (const [t, id] of sample.ids.entries()) {
    if (!onToken(sample.index, id)) continue;
    return t === sample.ids.length - 1 && sample.stop === "eos" ? sample : cutSample(sample, t + 1);
  }
  return sample;
}

/** Of a response that was broken off: as many tokens as have all their numbers. */
function wholeTokens(drawn: Drawn): Drawn {
  if (drawn.own || drawn.ids === undefined) return drawn;
  const count = Math.min(drawn.ids.length, drawn.logp.length);
  return { ...drawn, ids: drawn.ids.slice(0, count), logp: drawn.logp.slice(0, count) };
}

function engineError(place: string, { message, reason }: CallFault): EngineError {
  const mend =
    reason === "limited"
      ? "wait, or ask for less at once"
      : reason === "refused"
        ? "correct what it names"
        : "see that the server runs and is reachable, and try again";
  return new EngineError({ place, cause: message, mend });
}
