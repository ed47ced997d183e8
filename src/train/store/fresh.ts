/** Where a new run can begin. */
import { mkdtempSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { RunError } from "../../core/errors.js";
import { type Files, nodeFiles } from "./files.js";
import { runPaths } from "./reader.js";

/** Throws RunError for a folder in which no new run can begin. */
export function refuseUnlessNew(folder: string, files: Files = nodeFiles): void {
  if (files.size(runPaths(folder).run) !== undefined)
    throw new RunError({ place: folder, cause: "it already holds a run", mend: "resume it with --resume, or give another folder" });
  // run.json is written last: without it, what `create` makes before it is the rest of a start that was killed.
  const rest = ["lock.json", ".run.json.new", "rollouts", "checkpoints"];
  if (files.size(folder) !== undefined && (!files.isFolder(folder) || files.list(folder).some((name) => !rest.includes(name)))) {
    throw new RunError({ place: folder, cause: files.isFolder(folder) ? "it holds other files" : "it is a file", mend: "give a new or empty folder" });
  }
  const above = standing(folder, files);
  if (!files.isFolder(above)) throw new RunError({ place: folder, cause: `${above} is a file`, mend: "give a folder that can be made" });
}

/** Throws RunError where the folder of a new run could not be written: tried, for no flag of a file system tells it all. */
export function refuseUnlessWritable(folder: string): void {
  const above = standing(folder, nodeFiles);
  try {
    rmdirSync(mkdtempSync(join(above, ".touchstone-")));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new RunError(
      { place: folder, cause: `nothing can be written to ${above} (${code})`, mend: "give a folder that can be written to" },
      { cause: error },
    );
  }
}

/** The folder itself, else the nearest one above it that is there. */
function standing(folder: string, files: Files): string {
  let above = folder;
  while (files.size(above) === undefined && dirname(above) !== above) above = dirname(above);
  return above;
}
