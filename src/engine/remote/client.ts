import { setMaxListeners } from "node:events";
import { connect, type Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { EngineError, type ErrorParts, errorFromJson, type TouchstoneError } from "../../core/errors.js";
import type {
  Backward,
  CallOptions,
  Derivatives,
  EngineInfo,
  Forward,
  ParameterSet,
  Sample,
  SampleOptions,
  SampleRequest,
  Scores,
  ScoreWant,
  Sequence,
  StepRequest,
  StepResult,
  Usage,
  Want,
  Weights,
} from "../contract.js";
import type { Replica } from "../replica.js";
import { Link } from "./link.js";
import { type Address, describeAddress, infoFromWire, type Reply, type Request } from "./messages.js";
import { Told } from "./told.js";

export interface ConnectOptions {
  readonly address: Address;
  readonly token?: string;
  /** How long the engine may take to answer the greeting. Default 10,000. */
  readonly deadlineMs?: number;
  /** The largest frame taken, in bytes. */
  readonly frameLimit?: number;
  /** Says why the connection ended, for the one who started the process (signal, exit code, last lines). */
  readonly explain?: () => Promise<Pick<ErrorParts, "cause" | "mend" | "data"> | undefined>;
  /** Run by `close` after the connection has ended. */
  readonly onClose?: () => Promise<void>;
}

/** What the engine is doing, as far as this side knows. Silence alone proves nothing: its thread computes without a break. */
export interface Liveness {
  readonly pending: readonly { readonly call: string; readonly elapsedMs: number }[];
  /** Since anything was heard from the engine, beats included. */
  readonly silentMs: number;
}

interface Pending {
  readonly call: string;
  readonly since: number;
  readonly onItem?: (value: unknown) => void;
  readonly onTokens?: (pairs: Int32Array) => void;
  readonly onDone: (value: unknown) => void;
  readonly onFailed: (error: unknown) => void;
}

/** An engine behind a socket. Arrays of a request must not change until its answer is there: large ones are sent from where they are. */
export class RemoteEngine implements Replica {
  readonly info: EngineInfo;
  /** Process id of the engine, on its own machine. */
  readonly pid: number;
  /** The socket's path, or `host:port`. */
  readonly address: string;
  private readonly pending = new Map<number, Pending>();
  private nextId = 1;
  private heard = performance.now();
  private lost: Promise<TouchstoneError> | undefined;
  private closing: Promise<void> | undefined;
  private readonly link: Link;
  private readonly options: ConnectOptions;
  private readonly place: string;

  /** Connects and greets; throws an EngineError when nothing answers there or the token is refused. */
  static async connect(options: ConnectOptions): Promise<RemoteEngine> {
    const place = `engine at ${describeAddress(options.address)}`;
    const deadlineMs = options.deadlineMs ?? 10_000;
    return new Promise((resolve, reject) => {
      let engine: RemoteEngine | undefined;
      const fail = (error: TouchstoneError): void => {
        clearTimeout(timer);
        socket.destroy();
        reject(error);
      };
      const timer = setTimeout(() => {
        fail(new EngineError({ place, cause: `it did not answer within ${deadlineMs} ms`, mend: "check that the engine runs there and is not busy" }));
      }, deadlineMs);
      const socket: Socket = connect(
        options.address,
        () => void link.send({ type: "hello", ...(options.token === undefined ? {} : { token: options.token }) } satisfies Request),
      );
      const link = new Link(socket, {
        place,
        ...(options.frameLimit === undefined ? {} : { limit: options.frameLimit }),
        onMessage: (message) => {
          const reply = message as Reply;
          if (engine) engine.receive(reply);
          else if (reply.type === "welcome") {
            clearTimeout(timer);
            engine = new RemoteEngine(link, options, reply);
            resolve(engine);
          } else if (reply.type === "refused") fail(errorFromJson(reply.error));
        },
        onEnd: (error) => {
          if (engine) engine.lose(error);
          else fail(error ?? new EngineError({ place, cause: "it closed the connection without a greeting", mend: "check that the engine still runs" }));
        },
      });
    });
  }

  private constructor(link: Link, options: ConnectOptions, welcome: Extract<Reply, { type: "welcome" }>) {
    this.link = link;
    this.options = options;
    this.info = infoFromWire(welcome.info);
    this.pid = welcome.pid;
    this.address = describeAddress(options.address);
    this.place = `engine ${this.info.name} at ${this.address}`;
    link.hold(false);
  }

  readonly weights: Weights = {
    load: (request) => this.call("weights.load", [request]),
    unload: (role) => this.call("weights.unload", [role]),
    info: (role) => this.call("weights.info", [role]),
    snapshot: (role, name) => this.call("weights.snapshot", [role, name]),
    restore: (role, name) => this.call("weights.restore", [role, name]),
    dropSnapshot: (role, name) => this.call("weights.dropSnapshot", [role, name]),
    read: (ref, names) => this.call("weights.read", [ref, names]),
    write: (role, tensors) => this.call("weights.write", [role, tensors]),
    readGradient: (set, names) => this.call("weights.readGradient", [set, names]),
    zeroGradient: (set) => this.call("weights.zeroGradient", [set]),
    saveOptimizer: (set, file) => this.call("weights.saveOptimizer", [set, file]),
    loadOptimizer: (set, file) => this.call("weights.loadOptimizer", [set, file]),
    resetOptimizer: (set) => this.call("weights.resetOptimizer", [set]),
    merge: (role) => this.call("weights.merge", [role]),
    resetAdapter: (role, seed) => this.call("weights.resetAdapter", [role, seed]),
    save: (ref, folder, options) => this.call("weights.save", [ref, folder, options]),
  };

  async *sample(requests: readonly SampleRequest[], options?: SampleOptions): AsyncGenerator<Sample> {
    const ready: Sample[] = [];
    let wake = (): void => {};
    let finished = false;
    let failure: unknown;
    const told = new Told(options?.onToken, (index) => void this.link.send({ type: "stop", id, index } satisfies Request));
    const { id, release } = this.open("sample", [requests, options?.onToken !== undefined], options?.signal, {
      onItem: (value) => {
        ready.push(told.cut(value as Sample));
        wake();
      },
      onTokens: (pairs) => told.tell(pairs),
      onDone: () => {
        finished = true;
        wake();
      },
      onFailed: (error) => {
        finished = true;
        failure = error;
        wake();
      },
    });
    try {
      for (let next = 0; ; ) {
        if (next < ready.length) yield ready[next++] as Sample;
        else if (finished) break;
        else {
          ready.length = next = 0;
          await new Promise<void>((resolve) => (wake = resolve));
        }
      }
      if (failure !== undefined) throw failure;
    } finally {
      release();
      if (!finished) this.forget(id);
    }
  }

  score(sequences: readonly Sequence[], want?: ScoreWant, options?: CallOptions): Promise<Scores[]> {
    return this.call("score", [sequences, want], options);
  }

  forward(sequences: readonly Sequence[], want?: Want, options?: CallOptions): Promise<Forward> {
    return this.call("forward", [sequences, want], options);
  }

  backward(handle: string, derivatives: readonly Derivatives[], set: ParameterSet): Promise<Backward> {
    return this.call("backward", [handle, derivatives, set]);
  }

  release(handle: string): Promise<void> {
    return this.call("release", [handle]);
  }

  step(request: StepRequest): Promise<StepResult> {
    return this.call("step", [request]);
  }

  usage(): Promise<Usage> {
    return this.call("usage", []);
  }

  exportGradient(set: ParameterSet, file: string): Promise<boolean> {
    return this.call("exportGradient", [set, file]);
  }

  importGradient(set: ParameterSet, files: readonly string[]): Promise<void> {
    return this.call("importGradient", [set, files]);
  }

  liveness(): Liveness {
    const now = performance.now();
    return { pending: [...this.pending.values()].map(({ call, since }) => ({ call, elapsedMs: now - since })), silentMs: now - this.heard };
  }

  /** Ends the connection. Calls still pending fail; an engine that others use goes on. */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    this.lose(new EngineError({ place: this.place, cause: "it was closed by this side", mend: "make no calls after close" }), false);
    await this.lost;
    this.link.close();
    await this.options.onClose?.();
  }

  private call<T>(call: string, args: readonly unknown[], options?: CallOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const { release } = this.open(call, args, options?.signal, {
        onDone: (value) => {
          release();
          resolve(value as T);
        },
        onFailed: (error) => {
          release();
          reject(error as Error);
        },
      });
    });
  }

  /** Sends a call. `release` takes the listener off the signal. */
  private open(
    call: string,
    args: readonly unknown[],
    signal: AbortSignal | undefined,
    events: Pick<Pending, "onItem" | "onTokens" | "onDone" | "onFailed">,
  ): { id: number; release: () => void } {
    const id = this.nextId++;
    if (signal?.aborted) {
      queueMicrotask(() => events.onFailed(signal.reason));
      return { id, release: () => {} };
    }
    if (this.lost) {
      void this.lost.then((error) => events.onFailed(error));
      return { id, release: () => {} };
    }
    // The engine's answer settles a cancelled call too: what it drew until then still arrives.
    const cancel = (): void => void this.link.send({ type: "cancel", id } satisfies Request);
    // Calls of a pool listen to one signal, each for its worker: their number is no leak.
    if (signal) setMaxListeners(0, signal);
    signal?.addEventListener("abort", cancel, { once: true });
    this.pending.set(id, {
      ...events,
      call,
      since: performance.now(),
      onFailed: (error) => events.onFailed(error === cancelled ? signal?.reason : error),
    });
    this.link.hold(true);
    this.link.send({ type: "call", id, method: call, args } satisfies Request).catch((error: unknown) => this.settle(id)?.onFailed(error));
    return { id, release: () => signal?.removeEventListener("abort", cancel) };
  }

  /** Cancels a call whose answer nobody waits for. */
  private forget(id: number): void {
    if (this.settle(id)) void this.link.send({ type: "cancel", id } satisfies Request);
  }

  private settle(id: number): Pending | undefined {
    const pending = this.pending.get(id);
    this.pending.delete(id);
    if (this.pending.size === 0) this.link.hold(false);
    return pending;
  }

  private receive(reply: Reply): void {
    this.heard = performance.now();
    switch (reply.type) {
      case "item":
        this.pending.get(reply.id)?.onItem?.(reply.value);
        break;
      case "tokens":
        this.pending.get(reply.id)?.onTokens?.(reply.pairs);
        break;
      case "done":
        this.settle(reply.id)?.onDone(reply.value);
        break;
      case "failed": {
        const error = reply.cancelled ? cancelled : errorFromJson(reply.error);
        this.settle(reply.id)?.onFailed(error);
        break;
      }
      case "refused":
        this.lose(errorFromJson(reply.error));
        break;
      case "beat":
      case "welcome":
    }
  }

  /** The connection is over: every pending and later call fails with the reason. */
  private lose(error?: TouchstoneError, unexplained = true): void {
    if (this.lost) return;
    const calls = [...new Set([...this.pending.values()].map(({ call }) => call))].join(", ");
    this.lost = this.reason(error, calls, unexplained);
    void this.lost.then((reason) => {
      for (const id of [...this.pending.keys()]) this.settle(id)?.onFailed(reason);
    });
  }

  private async reason(error: TouchstoneError | undefined, calls: string, unexplained: boolean): Promise<TouchstoneError> {
    const during = calls ? ` during ${calls}` : "";
    if (unexplained && this.options.explain) {
      const why = await this.options.explain();
      if (why) return new EngineError({ ...why, place: this.place, cause: why.cause + during });
    }
    return error ?? new EngineError({ place: this.place, cause: `it closed the connection${during}`, mend: "see why it ended, and start it again" });
  }
}

/** Stands for a call that ended because its signal was aborted; the caller gets the signal's own reason. */
const cancelled = Symbol("cancelled");
