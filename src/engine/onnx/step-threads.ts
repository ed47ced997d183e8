/** Divides an optimizer step over threads by moving whole buffers: ONNX Runtime refuses shared memory as tensor data. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { EngineError } from "../../core/errors.js";
import { buffersOf, type FromWorker, type ToWorker } from "./optimizer-worker.js";
import { applyUpdate, type Inspection, inspect, type Job, type Update } from "./update.js";

/** What a step does once all gradients were inspected; without an update it is left out. */
export interface Decision {
  readonly update: Update | undefined;
  readonly clip: number;
}

/** From the inspections, in the order of the jobs. */
export type Decide = (inspections: readonly Inspection[]) => Decision;

const pools = new Map<number, StepThreads>();

/** The threads of this process for steps of `threads` threads, started on first use and shared by all optimizers; they do not keep the process alive. */
export function stepThreads(threads: number): StepThreads {
  const pool = pools.get(threads) ?? new StepThreads(threads);
  pools.set(threads, pool);
  return pool;
}

/** Makes a step on this thread alone. */
export function runHere(jobs: readonly Job[], decide: Decide): void {
  const { update, clip } = decide(jobs.map(({ grad }) => inspect(grad)));
  if (update) for (const job of jobs) applyUpdate(job, update, clip);
}

export class StepThreads {
  private readonly workers: Worker[];
  private last: Promise<void> = Promise.resolve();

  /** `threads` counts the calling one, which takes a share. */
  constructor(threads: number) {
    this.workers = Array.from({ length: threads - 1 }, () => {
      const worker = new Worker(workerEntry());
      worker.unref();
      return worker;
    });
  }

  /** Makes a step. While it runs the arrays of the jobs are partly on other threads; afterwards the jobs hold them again, as new views. */
  run(jobs: readonly Job[], decide: Decide): Promise<void> {
    const next = this.last.then(() => this.step(jobs, decide));
    this.last = next.catch(() => undefined);
    return next;
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.terminate()));
  }

  private async step(jobs: readonly Job[], decide: Decide): Promise<void> {
    const [own, ...shares] = divide(jobs, this.workers.length + 1);
    const inspections: Inspection[] = new Array(jobs.length);
    const inspecting = shares.map((share, i) => {
      const moved = share.map((at) => jobs[at]);
      return ask(this.workers[i], { kind: "inspect", jobs: moved }, buffersOf(moved));
    });
    for (const at of own) inspections[at] = inspect(jobs[at].grad);
    for (const [i, reply] of (await Promise.all(inspecting)).entries()) {
      if (reply.kind === "inspected") for (const [j, at] of shares[i].entries()) inspections[at] = reply.inspections[j];
    }
    const decision = decide(inspections);
    const finishing = shares.map((_, i) => ask(this.workers[i], { kind: "finish", ...decision }, []));
    if (decision.update) for (const at of own) applyUpdate(jobs[at], decision.update, decision.clip);
    for (const [i, reply] of (await Promise.all(finishing)).entries()) {
      if (reply.kind === "finished") for (const [j, at] of shares[i].entries()) Object.assign(jobs[at], reply.jobs[j]);
    }
  }
}

/** The module of a thread. Run from sources it needs a loader, which tsx, told on the command line, gives to the main thread alone. */
function workerEntry(): URL {
  if (!import.meta.url.endsWith(".ts")) return new URL("./optimizer-worker.js", import.meta.url);
  const loader = pathToFileURL(
    createRequire(import.meta.url)
      .resolve("tsx/esm/api")
      .replace(/\.cjs$/, ".mjs"),
  ).href;
  const entry = new URL("./optimizer-worker.ts", import.meta.url).href;
  const code = `import { register } from ${JSON.stringify(loader)}; register(); await import(${JSON.stringify(entry)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}

/** Indices of the jobs of each thread, nearly equal in size: largest first, each to the thread with the least so far. */
function divide(jobs: readonly Job[], threads: number): number[][] {
  const shares: number[][] = Array.from({ length: threads }, () => []);
  const loads = new Float64Array(threads);
  const order = jobs.map((_, at) => at).sort((a, b) => jobs[b].data.length - jobs[a].data.length || a - b);
  for (const at of order) {
    const least = loads.indexOf(Math.min(...loads));
    shares[least].push(at);
    loads[least] += jobs[at].data.length;
  }
  return shares;
}

/** Sends a message and waits for the answer; the thread keeps the process alive meanwhile. */
function ask(worker: Worker, message: ToWorker, moved: ArrayBuffer[]): Promise<FromWorker> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      worker.off("message", answered).off("error", failed).off("exit", ended);
      worker.unref();
    };
    const answered = (reply: FromWorker): void => {
      settle();
      resolve(reply);
    };
    const lost = (cause: string, error?: Error): void => {
      settle();
      reject(
        new EngineError({ place: "step", cause, mend: "start the engine again from its last checkpoint: weights were lost with the thread" }, { cause: error }),
      );
    };
    const failed = (error: Error): void => lost(`a thread of the optimizer failed (${error.message})`, error);
    const ended = (code: number): void => lost(`a thread of the optimizer ended with code ${code}`);
    worker.ref();
    worker.on("message", answered).on("error", failed).on("exit", ended);
    worker.postMessage(message, moved);
  });
}
