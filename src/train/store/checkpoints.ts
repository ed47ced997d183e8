/** Checkpoints of a run: written beside, flushed, renamed; validated by size and hash before anything resumes from one. */

import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { RunError, TouchstoneError } from "../../core/errors.js";
import { canonicalJson, type Json, sha256 } from "../../core/json.js";
import { type Files, faultOf, replaceFile } from "./files.js";
import { type CheckpointBody, checkpointBody, checkpointFile, parseJson, runVersion } from "./schema.js";

/** Where the parts of a checkpoint lie within its folder. */
export function checkpointPaths(folder: string) {
  return {
    policy: `${folder}/policy`,
    optimizer: `${folder}/optimizer.safetensors`,
    roles: `${folder}/roles`,
    ahead: `${folder}/ahead`,
    body: `${folder}/checkpoint.json`,
  };
}

/** A checkpoint that can be resumed from. */
export interface Checkpoint extends CheckpointBody {
  readonly folder: string;
}

const nameOf = (step: number): string => String(step).padStart(8, "0");
const isName = (name: string): boolean => /^\d{8,}$/.test(name);
/** Prefixes of folders that are being written or removed. */
const beside = ".new-";
const leaving = ".old-";

export interface CheckpointRequest {
  readonly step: number;
  /** Writes the policy as a Hugging Face folder. */
  readonly saveWeights: (folder: string) => Promise<void>;
  readonly saveOptimizer: (file: string) => Promise<void>;
  /** Writes what else has weights (critics, moving averages) into a folder that is made for it. */
  readonly saveRoles?: (folder: string) => Promise<void>;
  /** Writes earlier weights of the policy, from which batches in flight are drawn, into a folder that is made for it. */
  readonly saveAhead?: (folder: string) => Promise<void>;
  readonly state: Json;
  /** What keep-best compares; higher is better. */
  readonly score?: number;
  /** It takes the place of the one of the same step, which lacked what was still due then. */
  readonly again?: true;
}

/** Which checkpoints stay: the last n, the one with the highest score (of equals the earliest), and the first of all. */
export interface Keep {
  readonly last: number;
  readonly best: boolean;
  /** Default false. */
  readonly first?: boolean;
}

export class Checkpoints {
  constructor(
    private readonly files: Files,
    readonly folder: string,
  ) {}

  /** Steps that have a checkpoint folder, ascending; whether it is whole shows when it is read. */
  steps(): number[] {
    return this.files
      .list(this.folder)
      .filter(isName)
      .map(Number)
      .sort((a, b) => a - b);
  }

  pathOf(step: number): string {
    return `${this.folder}/${nameOf(step)}`;
  }

  /** Reads and validates one; a RunError says what is damaged. `deep` also hashes every file. */
  read(step: number, deep = true): Checkpoint {
    const folder = this.pathOf(step);
    const mend = "resume from an earlier checkpoint";
    const place = checkpointPaths(folder).body;
    if (this.files.size(place) === undefined) throw new RunError({ place: folder, cause: "it has no checkpoint.json", mend });
    const file = parseJson(place, new TextDecoder().decode(this.files.read(place)), checkpointFile, mend);
    const text = canonicalJson(file.body as Json);
    const body = parseJson(place, text, checkpointBody, mend);
    if (sha256(text) !== file.sha256) throw new RunError({ place, cause: "it is not what was written", mend });
    for (const { path, bytes, sha256: expected } of body.files) {
      const whole = `${folder}/${path}`;
      const size = this.files.size(whole);
      if (size !== bytes) throw new RunError({ place: whole, cause: size === undefined ? "it is missing" : `it has ${size} bytes instead of ${bytes}`, mend });
      if (deep && hashFile(whole) !== expected) throw new RunError({ place: whole, cause: "its bytes are not those that were written", mend });
    }
    return { ...body, folder };
  }

  /** The newest checkpoint that is whole, and a message for each newer one that is not. */
  lastGood(): { checkpoint?: Checkpoint; damaged: { step: number; message: string }[] } {
    const damaged: { step: number; message: string }[] = [];
    for (const step of this.steps().reverse()) {
      try {
        return { checkpoint: this.read(step), damaged };
      } catch (error) {
        if (!(error instanceof TouchstoneError)) throw error;
        if (error.data.version !== undefined) throw error; // Written by a newer version: not damaged, and not ours to go behind.
        damaged.push({ step, message: error.message });
      }
    }
    return { damaged };
  }

  /** Writes a checkpoint. Until the rename at the end nothing of it is visible; `body` is asked for once the weights are on disk. */
  async write(request: CheckpointRequest, body: () => Omit<CheckpointBody, "files" | "format" | "version">): Promise<void> {
    const folder = `${this.folder}/${beside}${nameOf(request.step)}`;
    try {
      await this.writeBeside(folder, request, body);
      const gone = `${this.folder}/${leaving}${nameOf(request.step)}`;
      if (request.again) this.files.rename(this.pathOf(request.step), gone);
      this.files.rename(folder, this.pathOf(request.step));
      if (request.again) this.files.remove(gone);
    } catch (error) {
      try {
        this.files.remove(folder); // On a full disk the half of it takes room that the rest of the run needs.
      } catch {
        // The next `sweep` removes it; the error to be told is the first one.
      }
      throw error;
    }
  }

  private async writeBeside(folder: string, request: CheckpointRequest, body: () => Omit<CheckpointBody, "files" | "format" | "version">): Promise<void> {
    const { files } = this;
    const paths = checkpointPaths(folder);
    files.remove(folder);
    files.makeFolder(folder);
    await request.saveWeights(paths.policy);
    await request.saveOptimizer(paths.optimizer);
    if (request.saveRoles) {
      files.makeFolder(paths.roles);
      await request.saveRoles(paths.roles);
    }
    if (request.saveAhead) {
      files.makeFolder(paths.ahead);
      await request.saveAhead(paths.ahead);
    }
    const { inner, folders } = this.walk(folder);
    for (const path of inner) files.syncFile(`${folder}/${path}`);
    const written = inner.map((path) => ({ path, bytes: files.size(`${folder}/${path}`) as number, sha256: hashFile(`${folder}/${path}`) }));
    const content = { format: "touchstone-checkpoint", version: runVersion, ...body(), files: written } as unknown as Json;
    const fd = files.openWrite(paths.body);
    try {
      files.write(fd, new TextEncoder().encode(canonicalJson({ sha256: sha256(canonicalJson(content)), body: content })));
      files.sync(fd);
    } finally {
      files.close(fd);
    }
    for (const path of folders) files.syncFolder(path);
  }

  /** Makes the last rename durable, and points `latest` and, where scores are known, `best` at their checkpoints. */
  point(latest: number): void {
    this.files.syncFolder(this.folder);
    replaceFile(this.files, this.folder, "latest", `${nameOf(latest)}\n`);
    const best = this.best();
    if (best !== undefined) replaceFile(this.files, this.folder, "best", `${nameOf(best)}\n`);
  }

  /** Step of the checkpoint with the highest score, the earliest of equals; undefined when none has a score. */
  best(): number | undefined {
    let best: { step: number; score: number } | undefined;
    for (const step of this.steps()) {
      const score = this.scoreOf(step);
      if (score !== null && (best === undefined || score > best.score)) best = { step, score };
    }
    return best?.step;
  }

  private scoreOf(step: number): number | null {
    try {
      return this.read(step, false).score;
    } catch (error) {
      if (error instanceof TouchstoneError) return null;
      throw error;
    }
  }

  /** Removes what need not be kept. Each goes by a rename first, so that no half-removed checkpoint is taken for a whole one. */
  prune(keep: Keep): void {
    const steps = this.steps();
    const best = keep.best ? this.best() : undefined;
    for (const step of steps.slice(0, Math.max(0, steps.length - keep.last))) {
      if (step === best || (keep.first && step === steps[0])) continue;
      const gone = `${this.folder}/${leaving}${nameOf(step)}`;
      this.files.rename(this.pathOf(step), gone);
      this.files.remove(gone);
    }
  }

  /** Removes what a killed process left half written or half removed. */
  sweep(): void {
    for (const name of this.files.list(this.folder)) {
      if (name.startsWith(beside) || name.startsWith(leaving)) this.files.remove(`${this.folder}/${name}`);
    }
  }

  private walk(folder: string): { inner: string[]; folders: string[] } {
    const inner: string[] = [];
    const folders: string[] = [];
    const visit = (relative: string) => {
      const path = relative ? `${folder}/${relative}` : folder;
      for (const name of this.files.list(path)) {
        const next = relative ? `${relative}/${name}` : name;
        if (this.files.isFolder(`${folder}/${next}`)) visit(next);
        else inner.push(next);
      }
      folders.push(path);
    };
    visit("");
    return { inner, folders };
  }
}

/** What can still be resumed from after a failure. */
export function intact(good: number | undefined): string {
  return good === undefined ? "no checkpoint was written before it" : `the checkpoint of step ${good} is intact`;
}

/** What a failed checkpoint says: what happened, and what can still be resumed from. */
export function checkpointFailed(folder: string, step: number, good: number | undefined, error: unknown): RunError {
  const left = good === step ? "the checkpoint itself is whole" : intact(good);
  return new RunError(
    {
      place: `${folder}, checkpoint of step ${step}`,
      cause: `${good === step ? "its files are written, but not what comes after them" : "it could not be written"}: ${faultOf(error)}; ${left}`,
      mend: "free space or mend the disk, then resume the run",
      data: { step, good: good ?? null },
    },
    { cause: error },
  );
}

function hashFile(path: string): string {
  const hash = createHash("sha256");
  const buffer = new Uint8Array(1 << 22);
  const fd = openSync(path, "r");
  try {
    for (;;) {
      const got = readSync(fd, buffer);
      if (got === 0) return hash.digest("hex");
      hash.update(buffer.subarray(0, got));
    }
  } finally {
    closeSync(fd);
  }
}
