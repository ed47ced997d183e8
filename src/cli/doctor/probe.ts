/** Asks a process of its own what ONNX Runtime offers and how fast it is: it blocks its thread, and may crash on an odd machine. */
import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { totalmem } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { EngineError, errorFromJson } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { allocatorSettings } from "../../engine/remote/spawn.js";

export interface Rates {
  /** GFLOP/s of a float32 product [1024, 1536] · [1536, 576]. */
  readonly gemmOneThread: number;
  readonly gemmAllThreads: number;
  readonly threads: number;
  /** GB/s of one thread, each byte counted once. */
  readonly copy: number;
  /** Milliseconds of a run of one node. */
  readonly emptyRunMs: number;
}

export interface Probed {
  /** Execution providers inside of the package. */
  readonly providers: readonly string[];
  /** Absent when not asked for. */
  readonly rates?: Rates;
}

export interface ProbeTask {
  readonly threads: number;
  /** Whether to measure rates. */
  readonly rates: boolean;
  readonly copyBytes: number;
}

/** What the process tells its parent. */
export type ProbeMessage = { readonly awaited: string } | { readonly done: Probed } | { readonly error: { readonly [key: string]: Json } };

/** ONNX Runtime may have to be installed first. */
const deadlineMs = 600_000;

/** Runs the probe; `onWait` hears what it is at, `onLine` what it prints. Throws EngineError with the cause when it fails or crashes. */
export function probe(task: ProbeTask, onWait: (what: string) => void, onLine: (line: string) => void): Promise<Probed> {
  const entry = new URL(import.meta.url.endsWith(".ts") ? "./probe-process.ts" : "./probe-process.js", import.meta.url);
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(entry), [JSON.stringify(task)], {
      // Run from sources, the child needs the loader that its parent has.
      execArgv: entry.href.endsWith(".ts") ? ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href] : [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: { ...allocatorSettings(totalmem(), 1), ...process.env },
      timeout: deadlineMs,
      killSignal: "SIGKILL",
    });
    for (const stream of [child.stdout, child.stderr]) if (stream) createInterface({ input: stream }).on("line", onLine);
    child.on("message", (message: ProbeMessage) => {
      if ("awaited" in message) onWait(message.awaited);
      else if ("done" in message) resolve(message.done);
      else reject(errorFromJson(message.error));
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      reject(
        new EngineError({
          place: "doctor",
          cause: `the process that tries ONNX Runtime ended (${how})`,
          mend: "if this happens again the processor or system is not one that it runs on: use another machine or a remote engine",
          data: { code, signal },
        }),
      );
    });
  });
}
