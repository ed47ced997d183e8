/** A session on a server, and what must happen around it: beats that nothing starves, and models that are given back however the process ends. */
import type { Worker } from "node:worker_threads";
import { startThread } from "../../core/thread.js";
import { packageVersion } from "../../core/version.js";
import type { Connection } from "./connection.js";
import { isFault } from "./faults.js";

export interface HeartbeatData {
  readonly base: string;
  readonly key?: string;
  readonly everyMs: number;
  /** 1 once the models are given back. */
  readonly done: Int32Array;
}

export type HeartbeatOrder = { readonly session: string } | { readonly unload: readonly string[]; readonly withinMs: number };

export interface SessionOptions {
  readonly key?: string;
  /** Default 10,000; servers drop a session after minutes of silence. */
  readonly heartbeatMs?: number;
}

/** How long the end of the process waits for its models to be given back. */
const lastWordsMs = 2_000;
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** What is still to be said when the process ends, of all sessions. */
const lastWords = new Set<() => void>();
const sayAll = (): void => {
  for (const say of lastWords) say();
};
/** A program without handlers of its own ends by such a signal at once, without the event `exit`; one with handlers decides itself. */
const atSignal = (signal: NodeJS.Signals): void => {
  if (process.listenerCount(signal) > 1) return;
  sayAll();
  process.off(signal, atSignal);
  process.kill(process.pid, signal);
};

function listen(say: () => void): void {
  if (lastWords.size === 0) {
    process.once("exit", sayAll);
    for (const signal of signals) process.on(signal, atSignal);
  }
  lastWords.add(say);
}

function unlisten(say: () => void): void {
  if (!lastWords.delete(say) || lastWords.size > 0) return;
  process.off("exit", sayAll);
  for (const signal of signals) process.off(signal, atSignal);
}

export class Session {
  private id: string | undefined;
  private opening: Promise<string> | undefined;
  private readonly thread: Worker;
  private readonly done = new Int32Array(new SharedArrayBuffer(4));
  /** Models that hold a slot of the server. */
  private readonly models = new Set<string>();

  constructor(
    private readonly connection: Connection,
    { key, heartbeatMs = 10_000 }: SessionOptions = {},
  ) {
    const data: HeartbeatData = { base: connection.base.href, ...(key === undefined ? {} : { key }), everyMs: heartbeatMs, done: this.done };
    this.thread = startThread(import.meta.url, "heartbeat", data);
    // It must not keep a process alive that is done.
    this.thread.unref();
    this.thread.on("error", () => undefined);
    listen(this.atExit);
  }

  /** The session, opened on first use, and again where the server has forgotten it. */
  async current(): Promise<string> {
    if (this.id !== undefined && (await this.alive(this.id))) return this.id;
    this.opening ??= this.open().finally(() => (this.opening = undefined));
    return this.opening;
  }

  /** A model has come to be, or is gone. */
  holds(model: string, held: boolean): void {
    if (held) this.models.add(model);
    else this.models.delete(model);
  }

  /** Ends the beats. Models are the caller's to give back before. */
  async close(): Promise<void> {
    unlisten(this.atExit);
    await this.thread.terminate();
  }

  private async open(): Promise<string> {
    const body = { tags: ["touchstone"], user_metadata: {}, sdk_version: `touchstone-${packageVersion()}`, type: "create_session" };
    const { session_id: id } = await this.connection.json("create_session", "POST", "/api/v1/create_session", body);
    this.id = String(id);
    this.thread.postMessage({ session: this.id } satisfies HeartbeatOrder);
    return this.id;
  }

  private async alive(session: string): Promise<boolean> {
    try {
      await this.connection.json("session_heartbeat", "POST", "/api/v1/session_heartbeat", { session_id: session, type: "session_heartbeat" });
      return true;
    } catch (error) {
      if (isFault(error, "model-lost", "refused")) return false;
      throw error;
    }
  }

  /** The thread gives the models back while this one, which may do nothing asynchronous any more, waits. */
  private readonly atExit = (): void => {
    if (this.models.size === 0) return;
    this.thread.postMessage({ unload: [...this.models], withinMs: lastWordsMs } satisfies HeartbeatOrder);
    Atomics.wait(this.done, 0, 0, lastWordsMs);
    this.models.clear();
  };
}
