/**
 * What became of a run's logs since a checkpoint. Events are the run's record: without them it does not go on in place.
 * Rollouts are for reading alone, and much of a run's size: it goes on without those that somebody removed.
 */
import { RunError } from "../../core/errors.js";
import type { Checkpoint } from "./checkpoints.js";
import type { Files } from "./files.js";
import { hashPrefix, linesOf } from "./log.js";
import { runPaths } from "./reader.js";
import { eventLine, parseJson, stepRow } from "./schema.js";

/** Throws RunError where `events.jsonl` does not begin with what it was when the checkpoint was written. */
export function refuseLostEvents(files: Files, folder: string, { step, clock }: Checkpoint): void {
  const path = runPaths(folder).events;
  const size = files.size(path);
  const { events: length } = clock.offsets;
  const before = `at the checkpoint of step ${step}, which is whole`;
  const fault =
    size === undefined
      ? `it is missing, and had ${length} bytes ${before}`
      : size < length
        ? `it has ${size} bytes, and had ${length} ${before}`
        : isPrefix(files, path, length, clock.logs?.events)
          ? undefined
          : `its first ${length} bytes are not those that it had ${before}`;
  if (fault === undefined) return;
  throw new RunError({
    place: path,
    cause: fault,
    mend: `put the file back from a copy, or go on in a new run: touchstone train --model ${folder}@${step}`,
    data: { step },
  });
}

/** Whether the log's first bytes are those of the hash; of a checkpoint without one, whether they are whole lines. */
function isPrefix(files: Files, path: string, length: number, hash: string | undefined): boolean {
  if (hash !== undefined) return hashPrefix(files, path, length).digest("hex") === hash;
  let whole = 0;
  try {
    for (const { text, end } of linesOf(files, path, 0, length)) {
      parseJson(path, text, eventLine, "");
      whole = end;
    }
  } catch (error) {
    if (error instanceof RunError) return false;
    throw error;
  }
  return whole === length;
}

export interface LostRollouts {
  /** The logs begin anew: what they hold does not reach up to the checkpoint. */
  readonly anew: boolean;
  /** What is not there, in a clause. */
  readonly what: string;
}

/** What of the rollouts up to a checkpoint is not there any more; undefined: nothing. */
export function lostRollouts(files: Files, folder: string, { clock, rollouts }: Checkpoint): LostRollouts | undefined {
  if (rollouts === 0) return undefined;
  const paths = runPaths(folder);
  const { offsets, logs } = clock;
  const lost = (path: string, length: number): string | undefined => {
    const size = files.size(path);
    const name = path.slice(folder.length + 1);
    if (size === undefined) return `${name} is missing`;
    if (size < length) return `${name} has ${size} of ${length} bytes`;
    return length > 0 && files.readRange(path, length - 1, length)[0] !== 10 ? `${name} is not what was written` : undefined;
  };
  const changed = (): string | undefined =>
    logs === undefined || hashPrefix(files, paths.index, offsets.index).digest("hex") === logs.index
      ? undefined
      : "rollouts/index.jsonl is not what was written";
  const what = lost(paths.rollouts, offsets.rollouts) ?? lost(paths.index, offsets.index) ?? changed();
  if (what !== undefined) return { anew: true, what };
  const columns = new Set(files.list(paths.columns));
  const rows = [...linesOf(files, paths.index, 0, offsets.index)].map(({ text }) => parseJson(paths.index, text, stepRow, "take the file from a copy"));
  const missing = rows.filter((row) => !columns.has(row.columns)).length;
  return missing === 0 ? undefined : { anew: false, what: `the token columns of ${missing} of ${rows.length} steps are missing from rollouts/columns` };
}
