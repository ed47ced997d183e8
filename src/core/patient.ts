/**
 * Calls to a server that is shared, slow or now and then away: so many at once, each try within its deadline, tried again
 * where the fault may pass, and no sooner than the server asks (Retry-After), which holds all calls back and not one alone.
 */
import { Gate } from "./gate.js";
import type { Answer, Call, Http } from "./http.js";
import { LostAnswer } from "./http.js";
import { randomKey, uniform } from "./random.js";

/** Why no answer came of a call. */
export type CallReason = "unreachable" | "timeout" | "refused" | "malformed" | "limited";

export class CallFault extends Error {
  constructor(
    readonly reason: CallReason,
    message: string,
    /** Another try may fare better. */
    readonly passing: boolean,
    readonly status?: number,
  ) {
    super(message);
  }
}

export interface PatientOptions {
  /** Calls under way at once. */
  readonly concurrency: number;
  /** Of one try, in milliseconds. */
  readonly deadlineMs: number;
  /** Further tries. */
  readonly retries: number;
  /** The longest wait that a server may ask for; a longer one ends the call. Default 60,000. */
  readonly longestWaitMs?: number;
}

/** A call without its deadline, which is that of all. */
export interface PatientCall extends Omit<Call, "deadlineMs"> {
  /** Before each try; may throw a CallFault where there must be no further one. */
  readonly onTry?: () => void;
}

const firstPauseMs = 200;
const longestPauseMs = 5_000;
/** What a message shows of an answer. */
const shown = 200;

const jitter = randomKey({ seed: 0, purpose: "retry" });

export class Patient {
  private readonly gate: Gate;
  private notBefore = 0;
  private count = 0;

  constructor(
    private readonly http: Http,
    private readonly options: PatientOptions,
    /** What messages begin with. */
    private readonly title = http.place,
  ) {
    this.gate = new Gate(options.concurrency);
  }

  /**
   * What `read` makes of the first answer with a status of 2xx; `read` may throw a CallFault of its own. Throws the last
   * CallFault, or the signal's reason.
   */
  call<T>(call: PatientCall, read: (answer: Answer) => T): Promise<T> {
    return this.gate.run(async () => {
      for (let attempt = 0; ; attempt++) {
        await this.wait(this.notBefore - Date.now(), call.signal);
        try {
          call.onTry?.();
          return await this.once(call, read);
        } catch (error) {
          if (!(error instanceof CallFault && error.passing) || attempt >= this.options.retries) throw error;
          const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** attempt);
          await this.wait(pause * (0.5 + uniform(jitter, this.count++)), call.signal);
        }
      }
    }, call.signal);
  }

  private async once<T>(call: PatientCall, read: (answer: Answer) => T): Promise<T> {
    let answer: Answer;
    try {
      answer = await this.http.send({ ...call, deadlineMs: this.options.deadlineMs });
    } catch (error) {
      if (!(error instanceof LostAnswer)) throw error;
      throw new CallFault(error.late ? "timeout" : "unreachable", `${this.title}: ${error.message}`, true);
    }
    if (answer.status >= 200 && answer.status <= 299) return read(answer);
    throw this.refusal(answer);
  }

  private refusal({ status, headers, body }: Answer): CallFault {
    const message = `${this.title}: status ${status}${said(body)}`;
    const asked = waitOf(headers, Date.now());
    const { longestWaitMs = 60_000 } = this.options;
    if (asked !== undefined && asked > longestWaitMs && passes(status)) {
      return new CallFault("limited", `${message}, and it asks to wait for ${Math.ceil(asked / 1000)} s`, false, status);
    }
    if (asked !== undefined && passes(status)) this.notBefore = Math.max(this.notBefore, Date.now() + asked);
    return new CallFault(status === 429 ? "limited" : "refused", message, passes(status), status);
  }

  private wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (ms <= 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", gone);
        resolve();
      }, ms);
      const gone = (): void => {
        clearTimeout(timer);
        reject(signal?.reason as Error);
      };
      if (signal?.aborted) gone();
      else signal?.addEventListener("abort", gone, { once: true });
    });
  }
}

/** Whether a status says that it may be otherwise soon. */
const passes = (status: number): boolean => status === 408 || status === 425 || status === 429 || status >= 500;

/** Milliseconds that an answer asks to wait (Retry-After as seconds or as a date; `retry-after-ms`); undefined where it does not. */
export function waitOf(headers: Answer["headers"], now: number): number | undefined {
  const exact = Number(headers["retry-after-ms"] ?? Number.NaN);
  if (exact >= 0) return exact;
  const text = headers["retry-after"];
  if (text === undefined) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(text.trim()) ? 1000 * Number(text) : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function said(body: Buffer): string {
  const line =
    body
      .subarray(0, 4 * shown)
      .toString("utf8")
      .trim()
      .split("\n")[0] ?? "";
  return line === "" ? "" : ` (${line.slice(0, shown)})`;
}
