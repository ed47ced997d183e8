/** Where a trained policy goes: refused before any work where it cannot be saved, and kept elsewhere where the save fails after all. */
import { existsSync, readdirSync, statfsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { ConfigError, ModelError } from "../core/errors.js";
import { refuseUnlessWritable } from "../core/writable.js";
import { syncFolder } from "../engine/safetensors-write.js";

/** Beside weights of four bytes a parameter: configuration, tokenizer, and what a file system adds. */
const besides = 2 ** 20;

/** Throws ConfigError unless the folder is new or empty, can be written to, and has room for that many parameters. */
export function refuseUnlessSavable(folder: string, parameters: number, place: string): void {
  const entries = entriesOf(folder, place);
  if (entries.length > 0)
    throw new ConfigError({ place, cause: `${folder} holds something already (${entries[0]})`, mend: "give a new or empty folder, or remove that one" });
  refuseUnlessWritable(folder);
  refuseUnlessRoom(folder, 4 * parameters + besides, place);
}

/** Throws ConfigError unless so many bytes are free where a path is or will be. */
export function refuseUnlessRoom(path: string, needed: number, place: string): void {
  const free = freeBytes(path);
  if (free >= needed) return;
  const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  throw new ConfigError({
    place,
    cause: `the policy needs ${megabytes(needed)}, and ${megabytes(free)} are free there`,
    mend: "free space, or give a folder on another disk",
  });
}

function entriesOf(folder: string, place: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return [];
    const cause = code === "ENOTDIR" ? `${folder} ${existsSync(folder) ? "is a file" : "leads through a file"}` : `${folder} cannot be read (${code})`;
    throw new ConfigError({ place, cause, mend: "give another folder" }, { cause: error });
  }
}

/** Bytes that may still be written where a folder is or will be. */
function freeBytes(folder: string): number {
  let above = resolve(folder);
  while (!existsSync(above) && dirname(above) !== above) above = dirname(above);
  const { bavail, bsize } = statfsSync(above);
  return bavail * bsize;
}

/**
 * Saves a policy: `write` fills a folder, which then takes the place of `folder`, so that this is there whole or not at
 * all. Where that fails, it is kept in the first of `others` that takes it, and the ModelError says where.
 */
export async function savePolicy(folder: string, write: (folder: string) => Promise<void>, others: readonly string[] = [tmpdir(), homedir()]): Promise<void> {
  try {
    return await put(resolve(folder), write);
  } catch (error) {
    const kept = await keep(write, others);
    throw new ModelError(
      {
        place: folder,
        cause: `the policy could not be saved there: ${reasonOf(error)}`,
        mend:
          kept === undefined
            ? "free space or mend the disk, and train again: nothing could be kept elsewhere either"
            : `it is kept in ${kept}: move it from there`,
        data: { kept: kept ?? null },
      },
      { cause: error },
    );
  }
}

async function put(target: string, write: (folder: string) => Promise<void>): Promise<void> {
  const beside = join(dirname(target), `.${basename(target)}.new`);
  const before = join(dirname(target), `.${basename(target)}.old`);
  await mkdir(dirname(target), { recursive: true });
  await rm(beside, { recursive: true, force: true });
  try {
    await write(beside);
    if (existsSync(target)) await rename(target, before);
    await rename(beside, target);
    await syncFolder(dirname(target));
  } catch (error) {
    await rm(beside, { recursive: true, force: true });
    if (existsSync(before) && !existsSync(target)) await rename(before, target);
    throw error;
  }
  await rm(before, { recursive: true, force: true });
}

async function keep(write: (folder: string) => Promise<void>, others: readonly string[]): Promise<string | undefined> {
  for (const other of others) {
    let made: string | undefined;
    try {
      made = await mkdtemp(join(other, "touchstone-policy-"));
      await put(join(made, "policy"), write);
      return join(made, "policy");
    } catch {
      if (made !== undefined) await rm(made, { recursive: true, force: true }).catch(() => undefined);
    }
  }
  return undefined;
}

/** The engine's process tells its faults as sentences, which name the system's code. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return /\bENOSPC\b/.test(message) ? "the disk is full (ENOSPC)" : message;
}
