/**
 * Judging on the side: n worker threads that can be killed, or this thread when n is 0. A verdict is a function of problem
 * and response, so neither the number of workers nor the order of arrival changes one; the deadline is a backstop for what
 * a verifier's own limits of work let through, and its verdict is `unscored("starved")`.
 */
import type { Worker } from "node:worker_threads";
import { ConfigError } from "../core/errors.js";
import { userFrame } from "../core/frames.js";
import { describeThrown } from "../core/load.js";
import type { Problem } from "../core/problem.js";
import { startThread } from "../core/thread.js";
import { unscored, type Verdict } from "../core/verdict.js";
import { type External, judge, type Verifier, verifierId } from "./contract.js";
import { guarded } from "./guard.js";
import type { VerifierSource } from "./source.js";
import type { Answer, Job } from "./worker.js";

export interface PoolOptions {
  readonly verifier: Verifier;
  /** Where workers find the same verifier; needed when there are any. */
  readonly source?: VerifierSource;
  /** Worker threads; 0 judges in the calling thread, where a loop behind an `await` cannot be stopped. Default: 1, and 0 without a source. */
  readonly workers?: number;
  /** Wall-clock backstop for one response. Default 30,000. */
  readonly deadlineMs?: number;
}

export interface JudgePool {
  judge(problem: Problem, response: string, truncated: boolean): Promise<Verdict>;
  /** Responses given up on so far, by the clock or because a program outside failed: the run is not replayable once there is one. */
  readonly starved: number;
  close(): Promise<void>;
}

const defaultDeadlineMs = 30_000;
/** A verdict that takes longer may never end: a thread that could take the place of its own is loaded from then on. */
const prepareMs = 100;
/** Jobs that wait in a thread behind the one it works on, where verdicts are quick: else a thread idles while messages travel. */
const mostAhead = 15;
/** Verdicts quicker than this, in milliseconds, are quick. */
const quickMs = 2;
/** How long a worker may take to load its verifier. */
const startMs = 60_000;

/** Starts a pool; resolves once every worker has made the verifier. Throws ConfigError when one cannot. */
export async function startPool(options: PoolOptions): Promise<JudgePool> {
  const { verifier, source, deadlineMs = defaultDeadlineMs } = options;
  const workers = options.workers ?? (source === undefined ? 0 : 1);
  // A program outside is a process of its own, and many answers at once are what it is good at.
  if (verifier.external !== undefined) return new Outside(verifier, verifier.external);
  if (workers === 0) return new InProcess(verifier, deadlineMs);
  if (source === undefined) {
    throw new ConfigError({
      place: "verifier_workers",
      cause: `it is ${workers}, and the verifier ${verifier.name} is a function of this program, which a worker thread cannot call`,
      mend: "set it to 0, or give the task as the path of a module",
    });
  }
  const pool = new Threads(verifier, source, deadlineMs);
  try {
    await pool.start(workers);
  } catch (error) {
    await pool.close();
    throw error;
  }
  return pool;
}

const starvedVerdict = (deadlineMs: number): Verdict => unscored("starved", { evidence: { deadlineMs } });

class InProcess implements JudgePool {
  starved = 0;

  constructor(
    private readonly verifier: Verifier,
    private readonly deadlineMs: number,
  ) {}

  async judge(problem: Problem, response: string, truncated: boolean): Promise<Verdict> {
    const start = performance.now();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), this.deadlineMs);
    });
    const judged = guarded(() => judge(this.verifier, problem, response, truncated), this.deadlineMs, undefined);
    const verdict = await Promise.race([judged, late]);
    clearTimeout(timer);
    if (verdict !== undefined) return { ...verdict, elapsedMs: performance.now() - start };
    this.starved++;
    return starvedVerdict(this.deadlineMs);
  }

  async close(): Promise<void> {}
}

/** Judging by a program outside, which keeps its own deadline. */
class Outside implements JudgePool {
  private readonly before: number;

  constructor(
    private readonly verifier: Verifier,
    private readonly external: External,
  ) {
    this.before = external.faults;
  }

  get starved(): number {
    return this.external.faults - this.before;
  }

  async judge(problem: Problem, response: string, truncated: boolean): Promise<Verdict> {
    const start = performance.now();
    const verdict = await judge(this.verifier, problem, response, truncated);
    return { ...verdict, elapsedMs: performance.now() - start };
  }

  close(): Promise<void> {
    return this.external.close();
  }
}

interface Waiting {
  readonly job: Job;
  readonly resolve: (verdict: Verdict) => void;
  /** Workers that were lost over it. */
  lost: number;
}

interface Thread {
  readonly worker: Worker;
  /** It has a place in the pool: no spare, and not given up. */
  serving: boolean;
  /** What was sent to it, in order: it works on the first. */
  readonly jobs: Waiting[];
  timer: ReturnType<typeof setTimeout> | undefined;
  /** What ended it. */
  fault: { readonly message: string; readonly at?: string } | undefined;
}

interface Spare {
  readonly loading: Promise<Thread>;
  /** Once it is loaded. */
  thread?: Thread;
}

class Threads implements JudgePool {
  starved = 0;
  private readonly threads = new Set<Thread>();
  private readonly idle: Thread[] = [];
  private readonly queue: Waiting[] = [];
  /** A thread for the place of one that may have to be ended: loading a verifier takes longer than most verdicts. */
  private spare: Spare | undefined;
  private nextId = 0;
  private closed = false;
  /** Running mean of what a verdict takes, in milliseconds. */
  private usualMs = quickMs;

  constructor(
    private readonly verifier: Verifier,
    private readonly source: VerifierSource,
    private readonly deadlineMs: number,
  ) {}

  async start(workers: number): Promise<void> {
    await Promise.all(Array.from({ length: workers }, async () => this.serve(await this.load())));
  }

  judge(problem: Problem, response: string, truncated: boolean): Promise<Verdict> {
    return new Promise((resolve) => {
      this.queue.push({ job: { id: this.nextId++, problem, response, truncated }, resolve, lost: 0 });
      this.dispatch();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.threads].map(({ worker }) => worker.terminate()));
  }

  /** Starts a worker whose verifier is the one that is meant. */
  private async load(): Promise<Thread> {
    const worker = startThread(import.meta.url, "worker", { source: this.source });
    const thread: Thread = { worker, serving: false, jobs: [], timer: undefined, fault: undefined };
    this.threads.add(thread);
    try {
      await this.ready(worker);
    } catch (error) {
      this.threads.delete(thread);
      await worker.terminate();
      throw error;
    }
    worker.on("message", (answer: Answer) => {
      if ("id" in answer) this.finish(thread, answer.verdict);
    });
    // Whatever ends a worker, its job is tried once more elsewhere, and the pool keeps its size.
    worker.on("error", (error: unknown) => {
      const at = userFrame(error);
      thread.fault = { message: `its thread ended on an error: ${describeThrown(error)}`, ...(at !== undefined && { at }) };
    });
    worker.once("exit", (code) => {
      thread.fault ??= { message: `its thread was ended, as by process.exit(${code})` };
      this.lose(thread);
    });
    return thread;
  }

  private serve(thread: Thread): void {
    thread.serving = true;
    this.idle.push(thread);
    this.dispatch();
  }

  /** Another thread takes the place of one: the spare, or one that is loaded now. */
  private replace(thread: Thread): void {
    if (!thread.serving || this.closed) return;
    thread.serving = false;
    const next = this.spare?.loading ?? this.load();
    this.spare = undefined;
    next.then((other) => this.serve(other)).catch((error: unknown) => this.abandon(error));
  }

  private ready(worker: Worker): Promise<void> {
    const expected = verifierId(this.verifier);
    const fault = (cause: string): ConfigError =>
      new ConfigError({
        place: `verifier worker of ${this.source.module}`,
        cause,
        mend: "set verifier_workers to 0, or let the module make the same verifier each time",
      });
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(fault(`it was not ready within ${startMs} ms`)), startMs);
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        act();
      };
      worker.once("message", (answer: Answer) =>
        settle(() => {
          if ("ready" in answer && answer.ready === expected) resolve();
          else
            reject(fault("ready" in answer ? `it made ${answer.ready} instead of ${expected}` : "failed" in answer ? answer.failed : "it spoke out of turn"));
        }),
      );
      worker.once("error", (error: Error) => settle(() => reject(fault(error.message))));
      worker.once("exit", (code) => settle(() => reject(fault(`it ended at once, as by process.exit(${code})`))));
    });
  }

  private dispatch(): void {
    while (this.queue.length > 0 && this.idle.length > 0) this.send(this.idle.pop() as Thread);
    if (this.queue.length === 0 || this.usualMs >= quickMs) return;
    // Shared evenly, so that no thread is left without when the queue ends.
    const threads = [...this.threads].filter(({ serving, jobs }) => serving && jobs.length > 0);
    for (let ahead = 1; ahead <= mostAhead; ahead++) for (const thread of threads) if (this.queue.length > 0 && thread.jobs.length <= ahead) this.send(thread);
  }

  private send(thread: Thread): void {
    const waiting = this.queue.shift() as Waiting;
    thread.jobs.push(waiting);
    if (thread.jobs.length === 1) this.watch(thread);
    thread.worker.postMessage(waiting.job);
  }

  /** The clock of the job that a thread works on. */
  private watch(thread: Thread): void {
    const first = Math.min(this.deadlineMs / 2, prepareMs);
    thread.timer = setTimeout(() => this.prepare(thread, this.deadlineMs - first), first);
  }

  private finish(thread: Thread, verdict: Verdict): void {
    clearTimeout(thread.timer);
    const done = thread.jobs.shift();
    if (done === undefined) return;
    if (verdict.elapsedMs !== undefined) this.usualMs += (verdict.elapsedMs - this.usualMs) / 8;
    done.resolve(verdict);
    if (thread.jobs.length > 0) this.watch(thread);
    else this.idle.push(thread);
    this.dispatch();
  }

  /** It takes long: the thread that may take this one's place is loaded. */
  private prepare(thread: Thread, leftMs: number): void {
    thread.timer = setTimeout(() => this.giveUp(thread), leftMs);
    if (this.spare !== undefined) return;
    const spare: Spare = { loading: this.load() };
    this.spare = spare;
    spare.loading.then(
      (other) => {
        spare.thread = other;
      },
      // It is told when it is needed, and cannot be loaded then either.
      () => this.forget(spare),
    );
  }

  private forget(spare: Spare): void {
    if (this.spare === spare) this.spare = undefined;
  }

  /** The deadline: the thread is ended, which really stops the work. */
  private giveUp(thread: Thread): void {
    const [current, ...others] = thread.jobs.splice(0);
    this.starved++;
    current?.resolve(starvedVerdict(this.deadlineMs));
    this.queue.unshift(...others);
    this.replace(thread);
    void thread.worker.terminate();
  }

  private lose(thread: Thread): void {
    clearTimeout(thread.timer);
    this.threads.delete(thread);
    const at = this.idle.indexOf(thread);
    if (at >= 0) this.idle.splice(at, 1);
    const [current, ...others] = thread.jobs.splice(0);
    if (this.spare?.thread === thread) this.forget(this.spare);
    if (this.closed) {
      for (const waiting of [current, ...others]) waiting?.resolve(unscored("pool-closed"));
      return;
    }
    this.queue.unshift(...others);
    if (current !== undefined) {
      current.lost++;
      if (current.lost > 1) current.resolve(unscored("worker-lost", { evidence: { ...thread.fault } }));
      else this.queue.unshift(current);
    }
    this.replace(thread);
  }

  /** A worker cannot be replaced. While others are left they go on; else nothing waits for ever. */
  private abandon(error: unknown): void {
    if (this.threads.size > 0) return;
    const message = error instanceof Error ? error.message : String(error);
    for (const { resolve } of this.queue.splice(0)) resolve(unscored("worker-lost", { evidence: { message } }));
  }
}
