/**
 * Requests to a server with everything that may happen to them: repeated where that changes nothing, waited for while the
 * server is away, and given up at a deadline. An operation is submitted and then asked for until it is done.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, type Call, Http, LostAnswer } from "../../core/http.js";
import { detailOf, faultOf, isFault, lateFault, meaningOf, ServerFault } from "./faults.js";
import { type Encoded, sentWith } from "./wire.js";

/** Times in milliseconds. */
export interface Limits {
  /** From an operation's submit to its result, without the time in which the server was away. */
  readonly deadlineMs: number;
  /** One request and its answer. */
  readonly requestMs: number;
  /** One question for a result: below the 300 s that servers hold it for. */
  readonly pollMs: number;
  /** How long a server that does not answer at all is waited for. */
  readonly awayMs: number;
  /** First wait before a repetition; it doubles up to 32 times that. */
  readonly pauseMs: number;
}

export const defaultLimits: Limits = { deadlineMs: 900_000, requestMs: 60_000, pollMs: 45_000, awayMs: 900_000, pauseMs: 250 };

/** How often in a row a server may fail in answering before that counts as its answer. */
const mostFailures = 6;

export interface Submit extends Encoded {
  /** For messages: `forward_backward`. */
  readonly what: string;
  /** A repetition is the same request to the server, or changes nothing. */
  readonly repeatable: boolean;
  /** Reads a result; undefined where the answer is none of it. */
  readonly read: (answer: Answer) => unknown;
  readonly signal?: AbortSignal;
}

export class Connection {
  private readonly http: Http;
  /** The one wait for a server that is away: all requests share it. */
  private awaiting: Promise<void> | undefined;

  constructor(
    base: string,
    key: string | undefined,
    readonly limits: Limits,
    /** Told in a sentence what is waited for. */
    private readonly onNotice: (text: string) => void,
  ) {
    this.http = new Http(base, sentWith(key));
  }

  get place(): string {
    return this.http.place;
  }

  get base(): URL {
    return this.http.base;
  }

  close(): void {
    this.http.close();
  }

  /** A call that may be repeated, with its JSON. Throws ServerFault. */
  async json(what: string, method: Call["method"], path: string, body?: object, once: { readonly deadlineMs?: number } = {}): Promise<Record<string, unknown>> {
    const answer = await this.call({ what, repeatable: true, method, path, ...(body === undefined ? {} : { body: JSON.stringify(body) }), ...once });
    const json = jsonOf(answer);
    if (typeof json !== "object" || json === null) throw faultOf("refused", answer, this.place, what);
    return json as Record<string, unknown>;
  }

  /** One request and its answer whatever its status, for probes. Throws LostAnswer. */
  raw(call: Omit<Call, "deadlineMs">): Promise<Answer> {
    return this.http.send({ ...call, deadlineMs: this.limits.requestMs });
  }

  /** A request until it has an answer of 200. */
  async call(call: Omit<Call, "deadlineMs"> & { readonly what: string; readonly repeatable: boolean; readonly deadlineMs?: number }): Promise<Answer> {
    const { what, repeatable, deadlineMs = this.limits.deadlineMs, ...rest } = call;
    const clock = new Clock(deadlineMs);
    let failures = 0;
    for (let pause = this.limits.pauseMs; ; pause = Math.min(2 * pause, 32 * this.limits.pauseMs)) {
      if (clock.left <= 0) throw lateFault(this.place, what, deadlineMs, clock.last);
      let wait = pause;
      try {
        const answer = await this.http.send({ ...rest, fresh: !repeatable, deadlineMs: Math.min(this.limits.requestMs, clock.left) });
        if (answer.status === 200) return answer;
        const meaning = meaningOf(answer);
        if (answer.status >= 500) this.http.dropConnections();
        if (meaning.do === "stop") throw faultOf(meaning.kind, answer, this.place, what);
        if (meaning.applied && !repeatable) throw this.ambiguous(what, meaning.why);
        if (meaning.applied && ++failures >= mostFailures) throw faultOf("failed", answer, this.place, what);
        if (answer.status === 402) this.onNotice(`${this.place}: ${meaning.why}`);
        clock.last = meaning.why;
        wait = meaning.afterMs ?? pause;
      } catch (error) {
        if (!(error instanceof LostAnswer)) throw error;
        clock.last = error.message;
        if (!error.sent) {
          await clock.pausedFor(this.untilBack(error.message, rest.signal));
          continue;
        }
        if (!repeatable) throw this.ambiguous(what, error.message);
        if (!error.late && ++failures >= mostFailures) await clock.pausedFor(this.untilBack(error.message, rest.signal));
      }
      await sleep(Math.min(wait, Math.max(0, clock.left)), undefined, rest.signal ? { signal: rest.signal } : {});
    }
  }

  /** Sends an operation and waits for its result. Throws ServerFault. */
  async operate<T>(submit: Omit<Submit, "read"> & { readonly read: (answer: Answer) => T | undefined }): Promise<T> {
    return this.result<T>(await this.submit(submit), submit);
  }

  /** Sends an operation; the number by which its result is asked for. */
  async submit({ what, path, type, body, repeatable, signal }: Omit<Submit, "read">): Promise<string> {
    for (let tries = 1; ; tries++) {
      const answer = await this.call({ what, method: "POST", path, type, body, repeatable, ...(signal ? { signal } : {}) });
      const id = requestIdOf(answer);
      if (id !== undefined) return id;
      if (!repeatable) throw this.ambiguous(what, "it was no JSON with a request_id");
      if (tries === mostFailures) throw faultOf("refused", answer, this.place, what);
    }
  }

  /** Waits for the result of an operation. */
  async result<T>(
    id: string,
    { what, read, signal }: { readonly what: string; readonly read: (answer: Answer) => T | undefined; readonly signal?: AbortSignal },
  ): Promise<T> {
    const { deadlineMs, pollMs, pauseMs } = this.limits;
    const clock = new Clock(deadlineMs);
    const body = JSON.stringify({ request_id: id });
    let failures = 0;
    for (let pause = pauseMs; ; ) {
      if (clock.left <= 0) throw lateFault(this.place, what, deadlineMs, clock.last);
      let wait = pause;
      try {
        const answer = await this.http.send({
          method: "POST",
          path: "/api/v1/retrieve_future",
          body,
          deadlineMs: Math.min(pollMs, clock.left),
          ...(signal ? { signal } : {}),
        });
        const state = this.stateOf(answer, what, read);
        if (state.done) return state.value;
        if (state.why !== undefined) clock.last = state.why;
        failures = state.failed ? failures + 1 : 0;
        if (failures >= mostFailures) throw faultOf("unreadable", answer, this.place, `the result of ${what}`);
        if (state.failed) this.http.dropConnections();
        else pause = pauseMs;
        wait = state.afterMs ?? (state.failed ? pause : 0);
      } catch (error) {
        if (!(error instanceof LostAnswer)) throw error;
        if (error.late) continue; // The server holds the question until it has an answer.
        clock.last = error.message;
        if (!error.sent || ++failures >= mostFailures) {
          await clock.pausedFor(this.untilBack(error.message, signal));
          failures = 0;
          continue;
        }
      }
      if (wait > 0) pause = Math.min(2 * pause, 32 * pauseMs);
      await sleep(Math.min(wait, Math.max(0, clock.left)), undefined, signal ? { signal } : {});
    }
  }

  /** What an answer to the question for a result says. */
  private stateOf<T>(answer: Answer, what: string, read: (answer: Answer) => T | undefined): Polled<T> {
    const { status } = answer;
    if (status === 200) {
      const json = answer.type === "application/json" ? (jsonOf(answer) as Record<string, unknown> | undefined) : undefined;
      if (json?.type === "try_again") {
        const state = String(json.queue_state ?? "active");
        if (state !== "active") this.onNotice(`${this.place}: ${what} waits (${state}${json.queue_state_reason ? `: ${json.queue_state_reason}` : ""})`);
        return { done: false, failed: false, why: state };
      }
      if (typeof json?.error === "string") throw faultOf("failed", answer, this.place, what);
      const value = read(answer);
      if (value !== undefined) return { done: true, value };
      return { done: false, failed: true, why: `an answer that is no result of ${what}` };
    }
    if (status === 408) return { done: false, failed: false };
    if (status === 404) throw faultOf(/model/i.test(detailOf(answer)) ? "model-lost" : "gone", answer, this.place, `the result of ${what}`);
    const meaning = meaningOf(answer);
    if (meaning.do === "stop") throw faultOf(meaning.kind === "refused" ? "failed" : meaning.kind, answer, this.place, what);
    return { done: false, failed: meaning.applied, why: meaning.why, afterMs: meaning.afterMs ?? this.limits.pauseMs };
  }

  private ambiguous(what: string, why: string): ServerFault {
    const cause = `the answer to ${what} was lost (${why}), and this server would apply a repetition a second time`;
    return new ServerFault("ambiguous", { place: this.place, cause, mend: "resume the run from its last checkpoint" });
  }

  /** Resolves once the server answers again; all who wait share one wait. Throws ServerFault when that takes too long. */
  private untilBack(why: string, signal: AbortSignal | undefined): Promise<void> {
    this.awaiting ??= this.knock(why).finally(() => (this.awaiting = undefined));
    if (signal === undefined) return this.awaiting;
    return Promise.race([
      this.awaiting,
      new Promise<never>((_, reject) => {
        if (signal.aborted) reject(signal.reason as Error);
        else signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      }),
    ]);
  }

  private async knock(why: string): Promise<void> {
    const { awayMs, requestMs, pauseMs } = this.limits;
    const seconds = Math.round(awayMs / 1000);
    const start = performance.now();
    this.http.dropConnections();
    for (let told = false; ; ) {
      try {
        const answer = await this.http.send({ method: "GET", path: "/api/v1/healthz", deadlineMs: Math.min(requestMs, 10_000) });
        if (answer.status < 500) break;
      } catch (error) {
        if (!(error instanceof LostAnswer)) throw error;
      }
      if (!told) this.onNotice(`${this.place} does not answer (${why}): waiting up to ${seconds} s for it`);
      told = true;
      if (performance.now() - start > awayMs) {
        const cause = `it has not answered for ${seconds} s (${why})`;
        throw new ServerFault("away", { place: this.place, cause, mend: "start it again, or give the address of another with --base-url" });
      }
      await sleep(Math.min(2_000, 8 * pauseMs));
    }
    if (performance.now() - start > 1_000) this.onNotice(`${this.place} answers again`);
  }
}

type Polled<T> =
  | { readonly done: true; readonly value: T }
  | { readonly done: false; readonly failed: boolean; readonly why?: string; readonly afterMs?: number };

/** Counts down, and stands still while the server is away. */
class Clock {
  last: string | undefined;
  private end: number;

  constructor(ms: number) {
    this.end = performance.now() + ms;
  }

  get left(): number {
    return this.end - performance.now();
  }

  async pausedFor(wait: Promise<void>): Promise<void> {
    const start = performance.now();
    await wait;
    this.end += performance.now() - start;
  }
}

/** The JSON of an answer; undefined where it has none. */
export function jsonOf({ body }: Pick<Answer, "body">): unknown {
  try {
    return JSON.parse(body.toString("utf8")) as unknown;
  } catch {
    return undefined;
  }
}

/** The number of an operation that was taken on. */
function requestIdOf(answer: Answer): string | undefined {
  const id = (jsonOf(answer) as { request_id?: unknown } | undefined)?.request_id;
  return typeof id === "string" || typeof id === "number" ? String(id) : undefined;
}

/** Whether a result cannot be had any more, so that only asking for the operation again helps. */
export const isGone = (error: unknown): boolean => isFault(error, "gone");
