import { homedir } from "node:os";
import { join } from "node:path";

/** The folder for what can be fetched or computed again: `TOUCHSTONE_CACHE`, else `touchstone` under `XDG_CACHE_HOME` or `~/.cache`. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  return env.TOUCHSTONE_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "touchstone");
}
