import { spawn } from "node:child_process";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly cwd?: string;
  /** The whole environment; default that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Fed to standard input, which is else closed. */
  readonly input?: string;
  /** Killed after so long. Default 120,000. */
  readonly deadlineMs?: number;
}

/** Runs a program to its end. A program that had to be killed has the code -1. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd, env: options.env ?? process.env, timeout: options.deadlineMs ?? 120_000, killSignal: "SIGKILL" });
    let out = "";
    let err = "";
    child.stdout.on("data", (data: Buffer) => {
      out += data.toString();
    });
    child.stderr.on("data", (data: Buffer) => {
      err += data.toString();
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? -1, out, err }));
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
  });
}
