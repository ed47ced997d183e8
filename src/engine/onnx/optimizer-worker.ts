/** The thread that does its share of a step: it is given whole buffers, inspects, waits for the decision, updates, and gives them back. */
import { parentPort } from "node:worker_threads";
import { applyUpdate, type Inspection, inspect, type Job, type Update } from "./update.js";

export type ToWorker =
  | { readonly kind: "inspect"; readonly jobs: Job[] }
  /** Without an update the step is left out. */
  | { readonly kind: "finish"; readonly update: Update | undefined; readonly clip: number };
export type FromWorker = { readonly kind: "inspected"; readonly inspections: Inspection[] } | { readonly kind: "finished"; readonly jobs: Job[] };

/** The buffers of jobs, to be moved with a message. */
export function buffersOf(jobs: readonly Job[]): ArrayBuffer[] {
  return jobs.flatMap(({ data, grad, first, second }) => [data, grad, first, second].flatMap((array) => (array ? [array.buffer as ArrayBuffer] : [])));
}

let held: Job[] = [];

parentPort?.on("message", (message: ToWorker) => {
  const port = parentPort!;
  if (message.kind === "inspect") {
    held = message.jobs;
    port.postMessage({ kind: "inspected", inspections: held.map(({ grad }) => inspect(grad)) } satisfies FromWorker);
    return;
  }
  const jobs = held;
  held = [];
  const { update, clip } = message;
  if (update) for (const job of jobs) applyUpdate(job, update, clip);
  port.postMessage({ kind: "finished", jobs } satisfies FromWorker, buffersOf(jobs));
});
