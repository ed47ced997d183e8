/** How the caller called this program, so that the commands it prints can be copied and run. */
import { basename, relative } from "node:path";

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
  return ["node", ...execArgv, near.startsWith("..") ? script : near].map(quoted).join(" ");
}

/** A word of a command line; quoted where a shell would part it. */
export function quoted(word: string): string {
  if (/^[\w./:=@+,\\-]+$/.test(word)) return word;
  return process.platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}
