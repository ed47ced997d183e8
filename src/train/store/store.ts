/**
 * The folder of a run, as its one writer sees it: `run.json`, `events.jsonl`, rollouts, checkpoints. Logs are flushed with
 * every checkpoint, which records their lengths; resuming cuts them to those lengths and keeps the cut part aside, so a
 * killed run goes on as if it had not been. What depends on a clock lies in the objects named `clock`, and in `sessions.jsonl`.
 */
import { RunError } from "../../core/errors.js";
import { canonicalJson, type Json } from "../../core/json.js";
import type { Group, Trajectory } from "../../core/trajectory.js";
import { headerOf } from "../../engine/safetensors-write.js";
import { asBegun, refuseEdited, refuseUnlessSame } from "./begun.js";
import { type Checkpoint, type CheckpointRequest, Checkpoints, checkpointFailed, checkpointPaths, intact, type Keep } from "./checkpoints.js";
import { cutLogs } from "./cut.js";
import { type Files, faultOf, nodeFiles, replaceFile } from "./files.js";
import { refuseUnlessNew } from "./fresh.js";
import { takeLock } from "./lock.js";
import { Log } from "./log.js";
import { type LostRollouts, lostRollouts, refuseLostEvents } from "./lost.js";
import { RunReader, runPaths } from "./reader.js";
import { type Extra, encodeGroups, tensorsOf } from "./record.js";
import { eventLine, type RunEvent, type RunFile, type RunMeta, runVersion } from "./schema.js";
import { appendSession, differences } from "./session.js";

export interface StoreOptions {
  /** Default: the last 2, and the best. */
  readonly keep?: Keep;
  readonly files?: Files;
}

/** What a resumed run goes on from. */
export interface Resume {
  readonly step: number;
  readonly state: Json;
  /** Folder of the policy, file of the optimizer, folder of further roles. */
  readonly policy: string;
  readonly optimizer: string;
  readonly roles: string;
  /** Folder of the weights that batches in flight were drawn from. */
  readonly ahead: string;
  /** Names of what differs between the fingerprint of the checkpoint and the present one; none: the resume is byte-exact. */
  readonly differs: readonly string[];
}

export interface Opened {
  readonly store: RunStore;
  /** Absent when the run has no whole checkpoint: it starts from the beginning. */
  readonly resume?: Resume;
  /** What the user should hear: damaged checkpoints, what was cut, a fingerprint that differs. */
  readonly messages: readonly string[];
}

export class RunStore {
  private readonly events: Log;
  private readonly rollouts: Log;
  private readonly index: Log;
  private readonly checkpoints: Checkpoints;
  private rolloutCount: number;
  private lastStep: number | undefined;
  /** Column files since the last checkpoint, not yet flushed. */
  private unsynced: string[] = [];

  private constructor(
    readonly folder: string,
    private readonly meta: Pick<RunMeta, "data" | "fingerprint">,
    /** What `run.json` says, for the checkpoints. */
    private readonly begun: Json,
    private readonly files: Files,
    private readonly keep: Keep,
    private readonly unlock: () => void,
    start: { events: number; rollouts: number; index: number; count: number },
    /** Step of the last whole checkpoint. */
    private good: number | undefined,
  ) {
    const paths = runPaths(folder);
    const left = () => `; ${intact(this.good)}`;
    this.events = new Log(files, paths.events, start.events, left);
    this.rollouts = new Log(files, paths.rollouts, start.rollouts, left);
    this.index = new Log(files, paths.index, start.index, left);
    this.checkpoints = new Checkpoints(files, paths.checkpoints);
    this.rolloutCount = start.count;
    this.lastStep = good;
  }

  /** Makes the folder of a new run. Refuses one that holds anything else. */
  static create(folder: string, meta: RunMeta, options: StoreOptions = {}): RunStore {
    const { files = nodeFiles, keep = { last: 2, best: true } } = options;
    const paths = runPaths(folder);
    refuseUnlessNew(folder, files);
    const run: RunFile = { format: "touchstone-run", version: runVersion, ...meta, clock: { created: new Date().toISOString() } };
    let unlock: (() => void) | undefined;
    try {
      files.makeFolder(folder);
      unlock = takeLock(files, folder);
      files.makeFolder(paths.columns);
      files.makeFolder(paths.checkpoints);
      replaceFile(files, folder, "run.json", `${canonicalJson(run as unknown as Json)}\n`);
    } catch (error) {
      giveBack(unlock);
      if (error instanceof RunError) throw error;
      throw new RunError(
        { place: folder, cause: `the run cannot be made: ${faultOf(error)}`, mend: "free space, or give a folder that can be written to" },
        { cause: error },
      );
    }
    return new RunStore(folder, meta, asBegun(run), files, keep, unlock, { events: 0, rollouts: 0, index: 0, count: 0 }, undefined);
  }

  /**
   * What a resume would go on from, found without changing anything: the last whole checkpoint, undefined for a run that
   * was stopped before its first, which a run writes before its first step. Throws RunError where it could not go on in place.
   */
  static find(folder: string, files: Files = nodeFiles): { readonly run: RunFile; readonly checkpoint?: Checkpoint } {
    const reader = RunReader.open(folder, files);
    const { checkpoint } = found(reader, files);
    if (checkpoint === undefined) for (const { kind } of reader.events()) if (kind === "step") throw gone(reader.checkpoints.folder);
    return { run: reader.run, ...(checkpoint && { checkpoint }) };
  }

  /**
   * Opens a run to go on with it: takes the lock, finds the last whole checkpoint, and cuts the logs to its offsets.
   * `now` is what the present run has: another data set or program is refused, another fingerprint is told.
   */
  static open(folder: string, now: Pick<RunMeta, "data" | "fingerprint" | "program">, options: StoreOptions = {}): Opened {
    const { files = nodeFiles, keep = { last: 2, best: true } } = options;
    const reader = RunReader.open(folder, files);
    refuseUnlessSame(folder, reader.run, now);
    const unlock = takeLock(files, folder);
    try {
      const { checkpoints } = reader;
      checkpoints.sweep();
      const paths = runPaths(folder);
      const { checkpoint, damaged } = found(reader, files);
      const lost = checkpoint && lostRollouts(files, folder, checkpoint);
      const offsets = { events: 0, rollouts: 0, index: 0, ...checkpoint?.clock.offsets, ...(lost?.anew && { rollouts: 0, index: 0 }) };
      const cut = cutLogs(
        files,
        folder,
        offsets,
        damaged.map(({ step }) => checkpoints.pathOf(step)),
      );
      files.makeFolder(paths.columns);
      const differs = checkpoint ? differences(checkpoint.fingerprint, now.fingerprint) : [];
      const messages = [
        ...damaged.map(({ message }) => `Skipped a checkpoint: ${message}.`),
        checkpoint ? `Resuming from the checkpoint of step ${checkpoint.step}.` : "There is no whole checkpoint: the run starts from the beginning.",
        ...(cut ? [`What was logged after it${lost?.anew ? ", and what is left of the rollouts," : ""} is kept in ${cut}.`] : []),
        ...(lost ? [lostText(lost)] : []),
        ...(differs.length > 0 ? [`This resume is not byte-exact: ${differs.join(", ")}.`] : []),
      ];
      const session = {
        at: new Date().toISOString(),
        pid: process.pid,
        resumedFrom: checkpoint?.step ?? null,
        cut: cut?.slice(folder.length + 1) ?? null,
        fingerprint: now.fingerprint,
      };
      appendSession(files, paths.sessions, session);
      if (checkpoint) {
        // What a run that was killed right after this checkpoint still had to do.
        checkpoints.point(checkpoint.step);
        checkpoints.prune(keep);
      }
      const start = { ...offsets, count: checkpoint?.rollouts ?? 0 };
      const store = new RunStore(folder, now, asBegun(reader.run), files, keep, unlock, start, checkpoint?.step);
      if (checkpoint && lost) store.appendEvent({ step: checkpoint.step, kind: "warning", data: { message: lostText(lost) } });
      if (!checkpoint) return { store, messages };
      const { policy, optimizer, roles, ahead } = checkpointPaths(checkpoint.folder);
      return { store, resume: { step: checkpoint.step, state: checkpoint.state, policy, optimizer, roles, ahead, differs }, messages };
    } catch (error) {
      giveBack(unlock);
      if (error instanceof RunError) throw error;
      throw new RunError(
        { place: folder, cause: `the run cannot be resumed: ${faultOf(error)}`, mend: "mend the disk or its permissions, then resume again; nothing was lost" },
        { cause: error },
      );
    }
  }

  /** A reader of the same folder. */
  reader(): RunReader {
    return RunReader.open(this.folder, this.files);
  }

  /** Step of the last whole checkpoint. */
  get lastCheckpoint(): number | undefined {
    return this.good;
  }

  appendEvent(event: RunEvent): void {
    const checked = eventLine.safeParse(event);
    if (!checked.success) {
      const issue = checked.error.issues[0];
      throw new RunError({
        place: `event ${event.kind} of step ${event.step}`,
        cause: `${issue?.path.join(".")}: ${issue?.message}`,
        mend: "give finite numbers and plain JSON",
      });
    }
    this.events.append([event]);
  }

  /** Appends the rollouts of a step, once a step. `extraOf` adds numbers and columns of one entry a token to a trajectory. */
  appendRollouts(step: number, groups: readonly Group[], extraOf: (trajectory: Trajectory) => Extra = () => ({})): void {
    if (this.lastStep !== undefined && step <= this.lastStep) {
      throw new RunError({
        place: this.folder,
        cause: `rollouts of step ${step} were to follow those of step ${this.lastStep}`,
        mend: "append each step once, in order",
      });
    }
    const { records, columns } = encodeGroups(step, groups, extraOf);
    const name = `${String(step).padStart(8, "0")}.safetensors`;
    const path = `${runPaths(this.folder).columns}/${name}`;
    const before = this.rollouts.offset;
    this.writeColumns(path, tensorsOf(columns));
    this.rollouts.append(records as unknown as Json[]);
    const count = groups.reduce((sum, group) => sum + group.trajectories.length, 0);
    const row = {
      step,
      first: this.rolloutCount,
      count,
      groups: groups.length,
      tokens: columns.response.length,
      columns: name,
      clock: { offset: before, bytes: this.rollouts.offset - before },
    };
    try {
      this.index.append([row]);
    } catch (error) {
      this.rollouts.rewind(before);
      throw error;
    }
    this.unsynced.push(path);
    this.rolloutCount += count;
    this.lastStep = step;
  }

  /**
   * Writes a checkpoint: logs are flushed, weights and optimizer saved beside, everything renamed into place. When any
   * call fails, the RunError says so and names the checkpoint that is still there.
   */
  async checkpoint(request: CheckpointRequest): Promise<void> {
    if (this.good !== undefined && (request.again ? request.step < this.good : request.step <= this.good)) {
      throw new RunError({
        place: this.folder,
        cause: `a checkpoint of step ${request.step} was to follow that of step ${this.good}`,
        mend: "write each step's once, in order",
      });
    }
    try {
      const offsets = this.flush();
      const logs = { events: this.events.digest(), index: this.index.digest() };
      await this.checkpoints.write(request, () => ({
        step: request.step,
        rollouts: this.rolloutCount,
        data: this.meta.data,
        fingerprint: this.meta.fingerprint,
        state: request.state,
        score: request.score ?? null,
        clock: { written: new Date().toISOString(), offsets, logs, run: this.begun },
      }));
      this.good = request.step;
      this.checkpoints.point(request.step);
      this.checkpoints.prune(this.keep);
    } catch (error) {
      throw checkpointFailed(this.folder, request.step, this.good, error);
    }
  }

  /** Flushes and gives the folder free. Does not write a checkpoint. */
  close(): void {
    const faults: unknown[] = [];
    for (const act of [() => this.flush(), () => this.events.close(), () => this.rollouts.close(), () => this.index.close(), this.unlock]) {
      try {
        act();
      } catch (error) {
        faults.push(error);
      }
    }
    if (faults.length === 0) return;
    throw new RunError(
      {
        place: this.folder,
        cause: `it cannot be closed: ${faultOf(faults[0])}; ${intact(this.good)}`,
        mend: "free space or mend the disk, then resume the run",
      },
      { cause: faults[0] },
    );
  }

  private flush(): { events: number; rollouts: number; index: number } {
    for (const path of this.unsynced) this.files.syncFile(path);
    if (this.unsynced.length > 0) this.files.syncFolder(runPaths(this.folder).columns);
    this.unsynced = [];
    for (const log of [this.rollouts, this.index, this.events]) log.sync();
    this.files.syncFolder(`${this.folder}/rollouts`);
    this.files.syncFolder(this.folder);
    return { events: this.events.offset, rollouts: this.rollouts.offset, index: this.index.offset };
  }

  private writeColumns(path: string, tensors: ReturnType<typeof tensorsOf>): void {
    try {
      const fd = this.files.openWrite(path);
      try {
        this.files.write(fd, headerOf(path, tensors, {}));
        for (const { data } of tensors) this.files.write(fd, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      } finally {
        this.files.close(fd);
      }
    } catch (error) {
      throw new RunError(
        {
          place: path,
          cause: `the token columns could not be written: ${faultOf(error)}; ${intact(this.good)}`,
          mend: "free space or mend the disk, then resume the run",
        },
        { cause: error },
      );
    }
  }
}

/** The last whole checkpoint, and those that are damaged. Throws RunError where the run cannot go on from it in place, or has lost all that it had. */
function found(reader: RunReader, files: Files): ReturnType<Checkpoints["lastGood"]> {
  const { folder, checkpoints, run } = reader;
  const { checkpoint, damaged } = checkpoints.lastGood();
  if (checkpoint) {
    refuseEdited(folder, run, checkpoint);
    refuseLostEvents(files, folder, checkpoint);
    return { checkpoint, damaged };
  }
  const [last] = damaged;
  const pointer = files.size(`${checkpoints.folder}/latest`) !== undefined;
  if (last === undefined && !pointer && files.isFolder(checkpoints.folder)) return { damaged };
  throw gone(checkpoints.folder, last && `no checkpoint of the run is whole (${last.message})`);
}

const gone = (place: string, cause = "the checkpoints of the run are not there any more"): RunError =>
  new RunError({ place, cause, mend: "put one back from a copy, or start a new run in another folder" });

const lostText = ({ what }: LostRollouts): string => `Rollouts of earlier steps cannot be shown any more, and the run goes on without them: ${what}.`;

/** Gives a lock back after a failure, whose error is the one to be told. */
function giveBack(unlock: (() => void) | undefined): void {
  try {
    unlock?.();
  } catch {
    // The lock stays behind and goes stale with this process.
  }
}
