/** Whether results can be put where the caller wants them, tried before any work: no flag of a file system tells it all. */
import { mkdtempSync, rmdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ConfigError } from "./errors.js";

/** Throws ConfigError where nothing can be written into a folder or, while it is missing, into the nearest one above it. */
export function refuseUnlessWritable(folder: string): void {
  let above = resolve(folder);
  while (isMissing(above) && dirname(above) !== above) above = dirname(above);
  try {
    rmdirSync(mkdtempSync(join(above, ".touchstone-")));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const cause = code === "ENOTDIR" ? `${above} is a file` : `nothing can be written to ${above} (${code})`;
    throw new ConfigError({ place: folder, cause, mend: "give a folder that can be written to" }, { cause: error });
  }
}

function isMissing(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    // A path that leads through a file.
    return true;
  }
}
