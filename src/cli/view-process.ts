/** The view beside a run, in a process of its own that ends with it. It has the run's priority, for its pages are waited for and cost little; only its searches stand back. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface BesideRun {
  /** Where it listens; undefined where it could not start, and stderr says why. */
  readonly address: string | undefined;
  /** Resolves when the view has ended by itself or by Ctrl-C. */
  readonly ended: Promise<void>;
  end(): void;
}

/** Starts a view of a run that may not be there yet. */
export async function viewBeside(folder: string): Promise<BesideRun> {
  const main = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./main.ts" : "./main.js", import.meta.url));
  // A group of its own: Ctrl-C is for the run, which then still writes what the view shows. Its stdin ends with this process, however that ends.
  const child = spawn(process.execPath, [...process.execArgv, main, "view", folder, "--beside"], { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const ended = new Promise<void>((done) => child.once("exit", () => done()).once("error", () => done()));
  // Nothing is ever written; a view that has ended must not end the run by a broken pipe.
  child.stdin?.on("error", () => undefined);
  const address = await Promise.race([firstLine(child), ended.then(() => undefined)]);
  if (address !== undefined) process.stderr.write(`The run can be seen at ${address}\n`);
  child.unref();
  for (const stream of [child.stdin, child.stdout]) (stream as unknown as { unref?(): void } | null)?.unref?.();
  return { address, ended, end: () => child.stdin?.end() };
}

async function firstLine(child: ChildProcess): Promise<string | undefined> {
  if (!child.stdout) return undefined;
  for await (const line of createInterface({ input: child.stdout })) return line;
  return undefined;
}
