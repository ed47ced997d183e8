/** Which sources ran: the commit of a clone, or the version of an installed package. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageVersion } from "../core/version.js";

export const packageFolder = fileURLToPath(new URL("../../", import.meta.url));

const git = (...args: string[]): string => execFileSync("git", args, { cwd: packageFolder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();

/** Whether the sources are a clone with its history. */
const isClone = (): boolean => existsSync(join(packageFolder, ".git"));

/** The commit, with `+changes` where sources differ from it; of an installed package its version. */
export function currentCommit(): string {
  if (!isClone()) return `touchstone-rl ${packageVersion()}`;
  try {
    return git("rev-parse", "HEAD") + (git("status", "--porcelain", "--", "src", "starters", "package-lock.json") ? "+changes" : "");
  } catch {
    return `touchstone-rl ${packageVersion()}`;
  }
}

/** The commit that last changed a file, so that a reader sees that claims stood before the run; with `+changes`, or null where it is in no commit. */
export function commitOf(file: string): string | null {
  if (!isClone()) return null;
  try {
    const commit = git("log", "-1", "--format=%H", "--", file);
    return commit === "" ? null : commit + (git("status", "--porcelain", "--", file) ? "+changes" : "");
  } catch {
    return null;
  }
}

/** What it ran on. */
export function machine(): { readonly [key: string]: string | number } {
  const cores = cpus();
  return {
    processor: cores[0]?.model.trim() ?? "unknown",
    cores: cores.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
  };
}
