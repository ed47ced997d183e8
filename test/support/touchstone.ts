/** `touchstone` as users start it, from the sources: a server that runs until it is told to end. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { repository } from "../paths.js";

/** What a process is started with that runs the command line. */
export const command: readonly string[] = [join(process.env.TOUCHSTONE_COMPILED as string, "cli", "main.js")];

export interface Running {
  /** What it printed on stdout first. */
  readonly address: string;
  readonly child: ChildProcess;
  /** All of stderr so far. */
  readonly told: () => string;
  /** Sends a signal and waits for the end: its exit code, or the signal that ended it. */
  end(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
}

/** Starts `touchstone ARGS` and waits for the address that it prints. Rejects with what it told where it ends before. */
export function startTouchstone(
  args: readonly string[],
  { env = process.env, cwd = repository }: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<Running> {
  const child = spawn(process.execPath, [...command, ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));
  let [out, err] = ["", ""];
  return new Promise((resolve, reject) => {
    child.stderr.on("data", (data: Buffer) => {
      err += data.toString();
    });
    child.stdout.on("data", (data: Buffer) => {
      out += data.toString();
      const [, address] = /^(http:\/\/\S+)$/m.exec(out) ?? [];
      if (address === undefined) return;
      const end = (signal: NodeJS.Signals = "SIGINT"): Promise<number | NodeJS.Signals | null> => {
        child.kill(signal);
        return ended;
      };
      resolve({ address, child, told: () => err, end });
    });
    void ended.then((code) => reject(new Error(`touchstone ${args.join(" ")} ended with ${code}: ${err}`)));
  });
}
