/** How the caller called this program, so that the commands it prints can be copied and run. */
import { basename, relative } from "node:path";
import { shellWord } from "../core/shell.js";

/** What of a process decides it. */
export interface Called {
  readonly argv: readonly string[];
  readonly execArgv: readonly string[];
  readonly env: { readonly [name: string]: string | undefined };
  readonly folder: string;
}

/** `touchstone`, `npx touchstone`, or `node PATH` for a program that is in no PATH. */
export function invocation({ argv, execArgv, env, folder }: Called = { ...process, folder: process.cwd() }): string {
  const script = argv[1] ?? "touchstone";
  // Fetched by npx for this once, its command is no one's: another package may have that name.
  if (/[\\/]_npx[\\/]/.test(script)) return "npx touchstone-rl";
  if (!/\.[cm]?[jt]s$/.test(script)) return env.npm_command === "exec" ? "npx touchstone" : basename(script);
  const near = relative(folder, script);
  return ["node", ...execArgv, near.startsWith("..") ? script : near].map(shellWord).join(" ");
}

/** A path as it is shortest from the working folder, for a command that is to be copied. */
export function relativePath(path: string, folder: string = process.cwd()): string {
  const near = relative(folder, path);
  return near === "" ? "." : near.startsWith("..") ? path : near;
}
