import { ArgumentError, RunError } from "../../core/errors.js";
import { SafetensorsFile } from "../../engine/safetensors.js";
import { Checkpoints } from "./checkpoints.js";
import { type Files, faultOf, nodeFiles } from "./files.js";
import { linesOf } from "./log.js";
import { type Columns, decodeGroup, extraName, type StoredGroup, type StoredRollout } from "./record.js";
import { eventLine, groupRecord, parseJson, type RunEvent, type RunFile, runFile, type StepRow, stepRow } from "./schema.js";

/** Paths within a run folder. */
export function runPaths(folder: string) {
  return {
    run: `${folder}/run.json`,
    events: `${folder}/events.jsonl`,
    sessions: `${folder}/sessions.jsonl`,
    rollouts: `${folder}/rollouts/rollouts.jsonl`,
    index: `${folder}/rollouts/index.jsonl`,
    columns: `${folder}/rollouts/columns`,
    checkpoints: `${folder}/checkpoints`,
    cut: `${folder}/cut`,
  };
}

/** How a run that was interrupted goes on. Said where it is shown and not stored: its folder may be moved. */
export const goOn = (folder: string): string => `go on with: touchstone train --resume ${folder}`;

const damaged = "resume the run, which cuts damaged ends off, or take the file from a copy";

function textOf(files: Files, path: string): string {
  try {
    return new TextDecoder().decode(files.read(path));
  } catch (error) {
    throw new RunError(
      { place: path, cause: `it cannot be read: ${faultOf(error)}`, mend: "give the folder of a run that this user may read" },
      { cause: error },
    );
  }
}

/** Reads a run folder, live or years later. Takes no lock and changes nothing. */
export class RunReader {
  readonly checkpoints: Checkpoints;
  private readonly paths: ReturnType<typeof runPaths>;
  private known: StepRow[] = [];
  private knownUntil = 0;

  private constructor(
    readonly folder: string,
    readonly run: RunFile,
    private readonly files: Files,
  ) {
    this.paths = runPaths(folder);
    this.checkpoints = new Checkpoints(files, this.paths.checkpoints);
  }

  /** Opens a folder; a RunError says in one sentence why it is no run that this version reads. */
  static open(folder: string, files: Files = nodeFiles): RunReader {
    const path = runPaths(folder).run;
    if (!files.isFolder(folder)) throw new RunError({ place: folder, cause: "there is no such folder", mend: "give the folder of a run" });
    if (files.size(path) === undefined)
      throw new RunError({ place: folder, cause: "it is not the folder of a run (it has no run.json)", mend: "give the folder that touchstone train wrote" });
    const run = parseJson(path, textOf(files, path), runFile, "give the folder of a run, or take run.json from a copy");
    return new RunReader(folder, run, files);
  }

  /** Events from a byte offset on, each with the offset after it (to go on from, in a live view). */
  *events(from = 0): Generator<RunEvent & { readonly end: number }> {
    for (const { text, end } of linesOf(this.files, this.paths.events, from)) {
      yield { ...parseJson(`${this.paths.events}, the line before byte ${end}`, text, eventLine, damaged), end };
    }
  }

  /** One row a step that has rollouts, in order; reads only what is new since the last call. */
  rolloutIndex(): readonly StepRow[] {
    if ((this.files.size(this.paths.index) ?? 0) < this.knownUntil) {
      this.known = [];
      this.knownUntil = 0;
    }
    for (const { text, end } of linesOf(this.files, this.paths.index, this.knownUntil)) {
      this.known.push(parseJson(`${this.paths.index}, the line before byte ${end}`, text, stepRow, damaged));
      this.knownUntil = end;
    }
    return this.known;
  }

  /** The groups of a step with everything stored of them, in the order they were appended; none for a step without rollouts. */
  async groups(step: number): Promise<StoredGroup[]> {
    const row = this.rolloutIndex().find((r) => r.step === step);
    return row ? this.groupsOf(row) : [];
  }

  /** A rollout by its number, counted over the run from 0. */
  async rollout(number: number): Promise<StoredRollout> {
    const row = this.rolloutIndex().find((r) => number >= r.first && number < r.first + r.count);
    if (!row) {
      const last = this.known.at(-1);
      throw new ArgumentError({
        place: this.folder,
        cause: `there is no rollout ${number}`,
        mend: last
          ? `give a number from ${this.known[0]?.first ?? 0} to ${last.first + last.count - 1}`
          : "wait for the first step, the run has no rollouts yet",
      });
    }
    return (await this.groupsOf(row)).flatMap((group) => group.rollouts)[number - row.first] as StoredRollout;
  }

  private async groupsOf(row: StepRow): Promise<StoredGroup[]> {
    const columns = await readColumns(`${this.paths.columns}/${row.columns}`);
    const stored: StoredGroup[] = [];
    for (const { text, end } of linesOf(this.files, this.paths.rollouts, row.clock.offset, row.clock.offset + row.clock.bytes)) {
      stored.push(decodeGroup(parseJson(`${this.paths.rollouts}, the line before byte ${end}`, text, groupRecord, damaged), columns));
    }
    return stored;
  }
}

async function readColumns(path: string): Promise<Columns> {
  const file = await SafetensorsFile.open(path);
  try {
    const int32 = async (name: string) => new Int32Array((await file.readBytes(name)).buffer as ArrayBuffer);
    const extra: { [name: string]: Float64Array } = {};
    for (const name of file.entries.keys()) {
      const added = extraName(name);
      if (added !== undefined) extra[added] = await file.readFloat64(name);
    }
    return {
      response: await int32("response"),
      sampled: await file.readBytes("sampled"),
      reward: await file.readBytes("reward"),
      loss: await file.readBytes("loss"),
      behaviour: await file.readFloat64("behaviour"),
      old: await file.readFloat64("old"),
      entropy: await file.readFloat64("entropy"),
      context_ids: await int32("context_ids"),
      extra,
    };
  } finally {
    await file.close();
  }
}
