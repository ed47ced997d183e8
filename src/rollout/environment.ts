/**
 * Where environments run: in a worker thread that can be killed, or in this one for functions of the program. A step is a
 * function of state, action and key, so a call that was lost with its thread is made again, and nothing depends on where
 * it runs or in which order answers come.
 */
import type { Worker } from "node:worker_threads";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { startThread } from "../core/thread.js";
import type { Environment, EnvironmentLimits } from "../tasks/contract.js";
import type { VerifierSource } from "../verify/source.js";
import { type Call, lateFault, type Reply, type ReplyLimits, replyTo } from "./reply.js";

export type Limits = Required<Omit<EnvironmentLimits, "turnTokens">> & Pick<EnvironmentLimits, "turnTokens">;

export const defaultLimits: Limits = { turns: 8, observationCharacters: 4000, observationTokens: 1000, deadlineMs: 30_000 };

export interface EnvironmentHost {
  readonly limits: Limits;
  /** Never throws. */
  call(call: Call): Promise<Reply>;
  readonly recovers: boolean;
  /** Steps so far that a wall clock decided: the run is not replayable once there is one. */
  readonly clocked: number;
  close(): Promise<void>;
}

export interface HostOptions {
  readonly environment: Environment<Json>;
  /** Where a thread finds the task; absent: it runs in this thread, where only a step that awaits can be given up on. */
  readonly source?: VerifierSource;
}

/** Starts a host. Throws ConfigError for limits that cannot be meant, and where the thread cannot make the environment. */
export async function startHost({ environment, source }: HostOptions): Promise<EnvironmentHost> {
  const limits = limitsOf(environment);
  if (source === undefined) return new InProcess(environment, limits);
  const host = new Threaded(environment, limits, source);
  try {
    await host.start();
  } catch (error) {
    await host.close();
    throw error;
  }
  return host;
}

export function limitsOf({ limits = {} }: Environment<Json>): Limits {
  const resolved: Limits = { ...defaultLimits, ...limits };
  for (const [name, value] of Object.entries(resolved)) {
    if (Number.isSafeInteger(value) && value >= 1) continue;
    throw new ConfigError({ place: `environment, limits.${name}`, cause: `it is ${String(value)}`, mend: "give a whole number of at least 1" });
  }
  return resolved;
}

abstract class Host implements EnvironmentHost {
  clocked = 0;

  constructor(
    protected readonly environment: Environment<Json>,
    readonly limits: Limits,
  ) {}

  get recovers(): boolean {
    return this.environment.recover !== undefined;
  }

  async call(call: Call): Promise<Reply> {
    const reply = await this.reply(call);
    if (("fault" in reply && reply.fault.kind === "deadline") || ("step" in reply && reply.step.clocked)) this.clocked++;
    return reply;
  }

  protected abstract reply(call: Call): Promise<Reply>;
  abstract close(): Promise<void>;
}

class InProcess extends Host {
  protected reply(call: Call): Promise<Reply> {
    return replyTo(this.environment, call, this.limits);
  }

  async close(): Promise<void> {}
}

/** What a thread is sent and answers. */
export interface Job {
  readonly id: number;
  readonly call: Call;
  readonly limits: ReplyLimits;
}
export type Answer = { readonly ready: true } | { readonly failed: string } | { readonly id: number; readonly reply: Reply };

interface Open {
  readonly call: Call;
  readonly resolve: (reply: Reply) => void;
  /** Its thread was lost with it, so it is made again by itself. */
  suspected: boolean;
  /** Dates from when it was sent. */
  sent: number;
}

/** How long a thread may take to load the task. */
const startMs = 60_000;
/** Calls that a thread has at one time; those that await overlap. */
const atOnce = 64;
/** How much later than its own deadline a thread is given up on. */
const graceMs = 1000;

class Threaded extends Host {
  private worker: Worker | undefined;
  private closed = false;
  private nextId = 0;
  private readonly open = new Map<number, Open>();
  private readonly queue: Open[] = [];
  private watch: ReturnType<typeof setTimeout> | undefined;
  private broken: string | undefined;

  constructor(
    environment: Environment<Json>,
    limits: Limits,
    private readonly source: VerifierSource,
  ) {
    super(environment, limits);
  }

  protected reply(call: Call): Promise<Reply> {
    return new Promise((resolve) => {
      this.queue.push({ call, resolve, suspected: false, sent: 0 });
      this.send();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.watch);
    this.abandon("the environment was closed");
    await this.worker?.terminate();
  }

  async start(): Promise<void> {
    const worker = startThread(import.meta.url, "environment-worker", { source: this.source });
    await this.ready(worker).catch(async (error: unknown) => {
      await worker.terminate();
      throw error;
    });
    worker.on("message", (answer: Answer) => {
      if ("id" in answer) this.settle(answer.id, answer.reply);
    });
    worker.on("error", () => undefined);
    worker.once("exit", () => this.lost(worker));
    this.worker = worker;
    this.send();
  }

  private ready(worker: Worker): Promise<void> {
    const fault = (cause: string): ConfigError =>
      new ConfigError({ place: `environment of ${this.source.module}`, cause, mend: "let the module make the same task each time it is loaded" });
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(fault(`it was not ready within ${startMs} ms`)), startMs);
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        act();
      };
      worker.once("message", (answer: Answer) =>
        settle(() => ("ready" in answer ? resolve() : reject(fault("failed" in answer ? answer.failed : "it spoke out of turn")))),
      );
      worker.once("error", (error: Error) => settle(() => reject(fault(error.message))));
      worker.once("exit", () => settle(() => reject(fault("it ended at once"))));
    });
  }

  /** Sends what there is room for; a suspect goes alone, so that what kills its thread is known. */
  private send(): void {
    const { worker } = this;
    if (this.broken !== undefined) this.abandon(this.broken);
    if (worker === undefined) return;
    while (this.queue.length > 0 && this.open.size < atOnce) {
      const [next] = this.queue as [Open];
      if (this.open.size > 0 && (next.suspected || [...this.open.values()].some(({ suspected }) => suspected))) break;
      this.queue.shift();
      const id = this.nextId++;
      next.sent = performance.now();
      this.open.set(id, next);
      const { observationCharacters, deadlineMs } = this.limits;
      worker.postMessage({ id, call: next.call, limits: { observationCharacters, deadlineMs } } satisfies Job);
    }
    this.guard();
  }

  private settle(id: number, reply: Reply): void {
    this.open.get(id)?.resolve(reply);
    this.open.delete(id);
    this.send();
  }

  /** A thread that answers nothing for longer than any call may take is stuck. */
  private guard(): void {
    clearTimeout(this.watch);
    if (this.open.size === 0 || this.closed) return;
    const oldest = Math.min(...[...this.open.values()].map(({ sent }) => sent));
    const left = oldest + this.limits.deadlineMs + graceMs - performance.now();
    this.watch = setTimeout(() => (left > 0 ? this.guard() : void this.worker?.terminate()), Math.max(0, left));
  }

  private lost(worker: Worker): void {
    if (this.closed || this.worker !== worker) return;
    this.worker = undefined;
    clearTimeout(this.watch);
    const calls = [...this.open.values()];
    this.open.clear();
    const alone = calls.length === 1;
    for (const each of calls) {
      if (alone) each.resolve({ fault: performance.now() - each.sent >= this.limits.deadlineMs ? lateFault(this.limits.deadlineMs) : lostFault });
      else each.suspected = true;
    }
    if (!alone) this.queue.unshift(...calls);
    this.start().catch((error: unknown) => {
      this.broken = error instanceof Error ? error.message : String(error);
      this.abandon(this.broken);
    });
  }

  private abandon(message: string): void {
    const waiting = [...this.open.values(), ...this.queue.splice(0)];
    this.open.clear();
    for (const { resolve } of waiting) resolve({ fault: { kind: "threw", message } });
  }
}

const lostFault = { kind: "threw", message: "its thread ended" } as const;
