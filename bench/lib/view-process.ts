/** `touchstone view` as a user starts it, compiled, and what the system says of its process. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface ViewProcess {
  readonly address: string;
  readonly startedMs: number;
  /** Seconds of processor time so far. */
  cpu(): number;
  /** Highest resident size so far, bytes. */
  peak(): number;
  /** Longest pause of the event loop since the last call, and its 99th percentile; milliseconds. */
  stalls(): Promise<{ readonly max: number; readonly p99: number }>;
  end(): Promise<void>;
}

/** Linux alone: processor time and memory are of /proc. */
export async function startView(folder: string): Promise<ViewProcess> {
  const began = performance.now();
  const args = ["--import", join(root, "bench/lib/stalls.mjs"), join(root, "dist/cli/main.js"), "view", folder, "--port", "0"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const address = (await lineOf(child, "stdout", /^(http\S+)/m))[1];
  const startedMs = performance.now() - began;
  return {
    address,
    startedMs,
    cpu: () => {
      // After the name, which may hold spaces: fields 14 and 15 of the line are user and system time in ticks of 10 ms.
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1].split(" ");
      return (Number(fields[11]) + Number(fields[12])) / 100;
    },
    peak: () => 1024 * Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]),
    stalls: async () => {
      const line = lineOf(child, "stderr", /^stalls (.*)$/m);
      child.kill("SIGUSR2");
      return JSON.parse((await line)[1]) as { max: number; p99: number };
    },
    end: async () => {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGINT");
      await ended;
    },
  };
}

function lineOf(child: ChildProcess, stream: "stdout" | "stderr", wanted: RegExp): Promise<RegExpExecArray> {
  return new Promise((done, fail) => {
    let said = "";
    const source = child[stream];
    const heard = (data: Buffer): void => {
      said += String(data);
      const found = wanted.exec(said);
      if (!found) return;
      source?.off("data", heard);
      done(found);
    };
    source?.on("data", heard);
    child.once("exit", (code) => fail(new Error(`touchstone view ended with ${code}: ${said}`)));
  });
}
