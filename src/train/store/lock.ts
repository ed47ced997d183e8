/** The lock of a run: who writes to it. A lock whose process has ended, or whose id now belongs to another process, is taken over. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { z } from "zod";
import { RunError } from "../../core/errors.js";
import { canonicalJson } from "../../core/json.js";
import { type Files, faultOf, nodeFiles } from "./files.js";

const holder = z.object({ pid: z.number().int(), started: z.string(), host: z.string() });
type Holder = z.output<typeof holder>;

/** When a process started, as its system words it; empty when it does not run or the system does not tell. */
export function startOf(pid: number): string {
  if (process.platform === "linux") {
    try {
      // The 22nd field; the second, the name, may hold spaces and brackets.
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1) as string;
      return fields.split(" ")[19] ?? "";
    } catch {
      return "";
    }
  }
  if (process.platform === "win32") return "";
  return spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).stdout?.trim() ?? "";
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Takes the lock of a run folder; a RunError names the process that holds it. Returns how to give it back. */
export function takeLock(files: Files, folder: string): () => void {
  const path = `${folder}/lock.json`;
  const mine: Holder = { pid: process.pid, started: startOf(process.pid), host: hostname() };
  try {
    if (files.size(path) !== undefined) {
      const other = readHolder(files, path);
      if (other && inUse(other, mine)) throw usedBy(folder, other);
      files.remove(path);
    }
    const fd = files.openWrite(path, true);
    try {
      files.write(fd, new TextEncoder().encode(`${canonicalJson(mine)}\n`));
    } finally {
      files.close(fd);
    }
  } catch (error) {
    if (error instanceof RunError) throw error;
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw usedBy(folder, readHolder(files, path));
    throw new RunError(
      { place: folder, cause: `its lock cannot be written: ${faultOf(error)}`, mend: "give a folder that can be written to" },
      { cause: error },
    );
  }
  // Two processes may have found the same stale lock: the one whose lock is there now has it.
  const now = readHolder(files, path);
  if (now?.pid !== mine.pid || now.host !== mine.host) throw usedBy(folder, now);
  return () => {
    const last = readHolder(files, path);
    if (last?.pid === mine.pid && last.host === mine.host) files.remove(path);
  };
}

/** Whether a process writes to a run folder now. */
export function isWritten(folder: string, files: Files = nodeFiles): boolean {
  const other = readHolder(files, `${folder}/lock.json`);
  return other !== undefined && inUse(other, { pid: process.pid, started: "", host: hostname() });
}

function inUse(other: Holder, mine: Holder): boolean {
  if (other.host !== mine.host) return true;
  if (!alive(other.pid)) return false;
  const started = startOf(other.pid);
  return started === "" || other.started === "" || started === other.started;
}

function readHolder(files: Files, path: string): Holder | undefined {
  try {
    return holder.parse(JSON.parse(new TextDecoder().decode(files.read(path))));
  } catch {
    return undefined; // Killed between making and writing it: nobody holds it.
  }
}

function usedBy(folder: string, other: Holder | undefined): RunError {
  const who = other ? `process ${other.pid} on ${other.host}` : "another process";
  const mend =
    other && other.host !== hostname() ? `end it there, or delete ${folder}/lock.json when it no longer runs` : "wait for it, end it, or give another folder";
  return new RunError({ place: folder, cause: `the run is in use by ${who}`, mend, data: other ? { pid: other.pid, host: other.host } : {} });
}
