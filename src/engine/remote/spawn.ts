import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { EngineError, errorFromJson } from "../../core/errors.js";
import { RemoteEngine } from "./client.js";
import type { Readiness } from "./host.js";
import type { Address } from "./messages.js";
import { PoolEngine } from "./pool.js";

export interface SpawnOptions {
  /** The module that hosts the engine; it finds its socket in `TOUCHSTONE_ENGINE_SOCKET`. */
  readonly entry: URL;
  readonly args?: readonly string[];
  readonly env?: { readonly [name: string]: string };
  /** How long the process may take until it listens. Default 60,000. */
  readonly deadlineMs?: number;
  /** Receives what the process prints, line by line. */
  readonly onLine?: (line: string) => void;
  /** How many engine processes share the machine's memory; scales the allocator's reserve. Default 1. */
  readonly workers?: number;
  /** Heap of the engine's JavaScript in megabytes; tensors lie outside of it. */
  readonly maxOldSpaceMb?: number;
}

/** The environment variable by which a started process learns that it is a child, and where to listen. */
export const socketVariable = "TOUCHSTONE_ENGINE_SOCKET";
/** How a parent asks an engine that it started to end: signals may reach both, and are the parent's to act on. */
export const stopMessage = "stop";

const keptLines = 20;
/** How long an ended connection waits for the news why the process ended. */
const explainMs = 1000;
const closeGraceMs = 2000;

const running = new Set<EngineProcess>();
let exitHooked = false;

function killAll(): void {
  for (const child of running) child.kill();
}

/** Starts an engine in a process of its own and connects to it. The process ends with `close` and with this process, however that ends. */
export async function spawnEngine(options: SpawnOptions): Promise<RemoteEngine> {
  const child = new EngineProcess(options);
  try {
    const address = await child.ready(options.deadlineMs ?? 60_000);
    return await RemoteEngine.connect({ address, explain: () => child.explain(), onClose: () => child.stop() });
  } catch (error) {
    child.kill();
    throw error;
  }
}

/** Starts equal engines in `workers` processes, as one. When one cannot start the others end, and its error is thrown. */
export async function spawnPool(options: SpawnOptions): Promise<PoolEngine> {
  const starts = await Promise.allSettled(Array.from({ length: options.workers ?? 1 }, () => spawnEngine(options)));
  const engines = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  const failed = starts.find((start) => start.status === "rejected");
  if (failed) {
    await Promise.all(engines.map((engine) => engine.close()));
    throw failed.reason;
  }
  // The folder of a socket goes with its process and with this one, however either ends, and the gradients in it.
  return new PoolEngine(engines, process.platform === "win32" ? undefined : dirname((engines[0] as RemoteEngine).address));
}

/** One child process with its socket and the last lines that it printed. */
class EngineProcess {
  private readonly process: ChildProcess;
  private readonly socket: string;
  private readonly lines: string[] = [];
  private readonly ended: Promise<void>;
  private exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined;
  private failure: Error | undefined;

  constructor(options: SpawnOptions) {
    this.socket = temporarySocket();
    const entry = fileURLToPath(options.entry);
    const flags = [
      ...(options.maxOldSpaceMb === undefined ? [] : [`--max-old-space-size=${options.maxOldSpaceMb}`]),
      // Run from sources, the child needs the loader that its parent has.
      ...(entry.endsWith(".ts") ? ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href] : []),
    ];
    this.process = spawn(process.execPath, [...flags, entry, ...(options.args ?? [])], {
      stdio: ["pipe", "pipe", "pipe", "ipc"],
      // A group of its own: what a terminal sends to the parent's must not end a child that has no handler yet. Its pipe ends it with the parent.
      detached: process.platform !== "win32",
      env: { ...allocatorSettings(totalmem(), options.workers ?? 1), ...process.env, ...options.env, [socketVariable]: this.socket },
    });
    this.ended = new Promise((resolve) => {
      this.process.once("exit", (code, signal) => {
        this.exit = { code, signal };
        this.removeSocket();
        running.delete(this);
      });
      this.process.once("close", () => resolve());
      this.process.once("error", (error) => {
        this.failure = error;
        this.removeSocket();
        running.delete(this);
        resolve();
      });
    });
    this.process.stdin?.on("error", () => undefined); // the child may end first
    this.listen(options.onLine);
    running.add(this);
    if (!exitHooked) process.once("exit", killAll);
    exitHooked = true;
  }

  /** Resolves with the address once the process listens. */
  async ready(deadlineMs: number): Promise<Address> {
    let timer: NodeJS.Timeout | undefined;
    const readiness = new Promise<Address>((resolve, reject) => {
      this.process.once("message", (message: Readiness) => {
        if ("address" in message) resolve(message.address);
        else reject(errorFromJson(message.error));
      });
      void this.ended.then(() => reject(this.fault(`it ended before it was ready (${this.how()}${this.told()})`)));
      timer = setTimeout(() => reject(this.fault(`it was not ready within ${deadlineMs} ms${this.told()}`)), deadlineMs);
    });
    try {
      const address = await readiness;
      this.detach();
      return address;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Why the process ended; undefined while it runs. */
  async explain(): Promise<{ cause: string; mend: string; data: { pid: number; code: number | null; signal: string | null; lines: string[] } } | undefined> {
    await withinMs(this.ended, explainMs);
    if (!this.exit) return undefined;
    const { code, signal } = this.exit;
    return {
      cause: `its process ${this.process.pid} ended (${this.how()}${this.told()})`,
      mend: signal === "SIGKILL" ? "if memory ran out, use smaller batches or fewer workers; start a new engine to go on" : "start a new engine to go on",
      data: { pid: this.process.pid ?? 0, code, signal, lines: [...this.lines] },
    };
  }

  /** Asks the process to end, and makes it. */
  async stop(): Promise<void> {
    if (this.process.connected) this.process.send(stopMessage, () => undefined); // an error: it has ended meanwhile
    await withinMs(this.ended, closeGraceMs);
    if (!this.exit) this.kill();
    await withinMs(this.ended, closeGraceMs);
  }

  kill(): void {
    this.process.kill("SIGKILL");
    this.removeSocket();
  }

  /** From here on only calls in flight keep this process alive, not the child. */
  private detach(): void {
    this.process.unref();
    this.process.channel?.unref();
    for (const stream of [this.process.stdin, this.process.stdout, this.process.stderr]) (stream as { unref?: () => void } | null)?.unref?.();
  }

  private listen(onLine: ((line: string) => void) | undefined): void {
    for (const stream of [this.process.stdout, this.process.stderr]) {
      if (!stream) continue;
      createInterface({ input: stream }).on("line", (line) => {
        this.lines.push(line);
        if (this.lines.length > keptLines) this.lines.shift();
        onLine?.(line);
      });
    }
  }

  private how(): string {
    if (this.failure) return this.failure.message;
    if (this.exit?.signal === "SIGKILL") return "killed by SIGKILL, which the system sends when out of memory";
    if (this.exit?.signal) return `killed by ${this.exit.signal}`;
    return `exit code ${this.exit?.code ?? "unknown"}`;
  }

  /** What it printed that tells most: an error with its cause, else the last lines. */
  private told(): string {
    const error = this.lines.findLast((line) => /(Error\b.*:|FATAL|fatal|out of memory)/.test(line));
    const lines = error === undefined ? this.lines.slice(-3) : [error];
    return lines.length > 0 ? `; it printed ${JSON.stringify(lines.map((line) => line.trim()).join(" | "))}` : "";
  }

  private fault(cause: string): EngineError {
    return new EngineError({
      place: `engine process ${this.process.pid ?? ""}`.trim(),
      cause,
      mend: "run `touchstone doctor`",
      data: { lines: [...this.lines] },
    });
  }

  private removeSocket(): void {
    if (process.platform !== "win32") rmSync(dirname(this.socket), { recursive: true, force: true });
  }
}

/** Settles when the promise does or the time is up. */
async function withinMs(promise: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([promise, new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}

let pipes = 0;

/** A socket path in a folder that only this user can enter, short enough for the 108 bytes that the system takes. */
function temporarySocket(): string {
  if (process.platform === "win32") return `\\\\.\\pipe\\touchstone-${process.pid}-${pipes++}`;
  const folder = Buffer.byteLength(tmpdir()) > 80 ? "/tmp" : tmpdir();
  return join(mkdtempSync(join(folder, "touchstone-")), "s");
}

/**
 * Settings by which glibc keeps the memory of large outputs instead of returning it: a 40 MB output then takes 6 ms,
 * not 135. The reserve is 256 MB, or less where the workers would take over a 64th of the machine; below 8 GB freed
 * memory above a quarter of the machine is returned after all.
 */
export function allocatorSettings(memoryBytes: number, workers: number): { [name: string]: string } {
  const share = memoryBytes / workers;
  return {
    MALLOC_TOP_PAD_: String(Math.min(2 ** 28, Math.floor(share / 64))),
    MALLOC_MMAP_THRESHOLD_: String(2 ** 34),
    MALLOC_TRIM_THRESHOLD_: String(memoryBytes >= 8 * 2 ** 30 ? 2 ** 35 : Math.floor(share / 4)),
  };
}
