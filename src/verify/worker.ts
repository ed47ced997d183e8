/** The worker thread of a verifier pool: makes the verifier, then judges what it is sent, one response at a time. */
import { parentPort, workerData } from "node:worker_threads";
import type { Problem } from "../core/problem.js";
import { refuseExit } from "../core/thread.js";
import type { Verdict } from "../core/verdict.js";
import { judge, verifierId } from "./contract.js";
import { loadVerifier, type VerifierSource } from "./source.js";

/** What a pool sends. */
export interface Job {
  readonly id: number;
  readonly problem: Problem;
  readonly response: string;
  readonly truncated: boolean;
}

/** What a worker answers: first that it is ready, or why it cannot be; then one verdict a job. */
export type Answer = { readonly ready: string } | { readonly failed: string } | { readonly id: number; readonly verdict: Verdict };

const port = parentPort;
if (port) {
  refuseExit();
  const send = (answer: Answer): void => port.postMessage(answer);
  try {
    const verifier = await loadVerifier((workerData as { readonly source: VerifierSource }).source);
    const work = async ({ id, problem, response, truncated }: Job): Promise<void> => {
      const start = performance.now();
      const verdict = await judge(verifier, problem, response, truncated);
      send({ id, verdict: { ...verdict, elapsedMs: performance.now() - start } });
    };
    // One after another: the pool's clock is that of the first of those which were sent.
    let before = Promise.resolve();
    port.on("message", (job: Job) => {
      before = before.then(() => work(job));
    });
    send({ ready: verifierId(verifier) });
  } catch (error) {
    send({ failed: error instanceof Error ? error.message : String(error) });
  }
}
