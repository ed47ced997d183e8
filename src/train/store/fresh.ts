/** Where a new run can begin. */
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
}
