/** How a command fails: one line on stderr, and the exit code 2 for what the caller wrote wrong, else 1. */
import { ConfigError, TouchstoneError } from "../core/errors.js";
import { colours } from "./output.js";

/** The line for an error; with TOUCHSTONE_DEBUG set, its stack and causes. */
export function failureText(error: unknown, env: NodeJS.ProcessEnv = process.env): string {
  if (env.TOUCHSTONE_DEBUG && error instanceof Error) return `${error.stack}${error.cause === undefined ? "" : `\ncaused by ${failureText(error.cause, env)}`}`;
  const sentence = (error instanceof Error ? error.message || error.name : String(error)).replace(/\s*\n\s*/g, " ");
  return error instanceof TouchstoneError ? sentence : `${sentence} (a fault that is not foreseen; TOUCHSTONE_DEBUG=1 shows where)`;
}

/** 2 for what the caller wrote wrong, else 1. */
export function exitCode(error: unknown): number {
  return error instanceof ConfigError ? 2 : 1;
}

/** Prints an error and ends the process: nothing that still runs keeps a failed command alive. */
export function fail(error: unknown): never {
  process.stderr.write(`${colours(process.stderr).red("error:")} ${failureText(error)}\n`);
  process.exit(exitCode(error));
}
