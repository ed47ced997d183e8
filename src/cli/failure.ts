/** How a command fails: one line on stderr, and the exit code 2 for what the caller wrote wrong, else 1. */
import { tmpdir } from "node:os";
import { ConfigError, TouchstoneError } from "../core/errors.js";
import { userFrame } from "../core/frames.js";
import { describeThrown } from "../core/load.js";
import { leave } from "./ending.js";
import { colours } from "./output.js";

/** What the codes of the operating system mean to whoever named a path. */
const causes: { readonly [code: string]: readonly [cause: string, mend: string] } = {
  ELOOP: ["its symbolic links lead in a circle", "give another path, or mend the links"],
  ENOENT: ["there is no such file or folder", "check the path"],
  ENOTDIR: ["part of it is a file where a folder is due", "check the path"],
  EISDIR: ["it is a folder", "give a file"],
  ENAMETOOLONG: ["the name is too long", "give a shorter one"],
  EACCES: ["it may not be used", "allow it, or give another path"],
  EPERM: ["it may not be used", "allow it, or give another path"],
  EROFS: ["the file system is read-only", "give a path that can be written to"],
  ENOSPC: ["the disk is full", "free space"],
  EDQUOT: ["the quota is used up", "free space"],
  EMFILE: ["too many files are open", "raise the limit (ulimit -n)"],
  EIO: ["the device fails", "check the disk"],
};
const written: readonly string[] = ["ELOOP", "ENAMETOOLONG", "ENOTDIR"];

/** The line for an error; with TOUCHSTONE_DEBUG set, its stack and causes. */
export function failureText(error: unknown, env: NodeJS.ProcessEnv = process.env): string {
  if (env.TOUCHSTONE_DEBUG && error instanceof Error) return `${error.stack}${error.cause === undefined ? "" : `\ncaused by ${failureText(error.cause, env)}`}`;
  const sentence = (error instanceof Error ? error.message || error.name : String(error)).replace(/\s*\n\s*/g, " ");
  if (error instanceof TouchstoneError) return sentence;
  const at = userFrame(error);
  if (at !== undefined) return `${at}: it throws (${describeThrown(error)}); correct it there`;
  return systemText(error) ?? `${sentence} (a fault that is not foreseen; TOUCHSTONE_DEBUG=1 shows where)`;
}

/** What the operating system refused; undefined for other errors. */
function systemText(error: unknown): string | undefined {
  const { code, syscall, path } = (error instanceof Error ? error : {}) as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined || path === undefined) return undefined;
  const [cause, mend] = causes[code] ?? [`${syscall} fails`, "check the path"];
  const temporary = syscall === "mkdtemp" && path.startsWith(tmpdir()) && code !== "ENOSPC";
  return `${path}: ${cause} (${code}); ${temporary ? "set TMPDIR to a folder that is there and can be written to" : mend}`;
}

/** 2 for what the caller wrote wrong, else 1. */
export function exitCode(error: unknown): number {
  return error instanceof ConfigError || written.includes((error as NodeJS.ErrnoException | undefined)?.code ?? "") ? 2 : 1;
}

/** Prints an error and ends the process: nothing that still runs keeps a failed command alive. */
export function fail(error: unknown): never {
  process.stderr.write(`${colours(process.stderr).red("error:")} ${failureText(error)}\n`);
  leave(exitCode(error));
}
