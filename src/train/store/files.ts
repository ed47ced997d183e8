import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";

/**
 * Every file-system call that the run folder makes, as one small object, so that a test can let any single call fail.
 * Calls are synchronous: a step's records are small, and their order on disk is then the order in the program.
 */
export interface Files {
  /** Opens for appending; the file is made when it is missing. */
  openAppend(path: string): number;
  /** Opens for writing from the start; `exclusive` fails when the file exists. */
  openWrite(path: string, exclusive?: boolean): number;
  /** Writes all bytes, or throws. */
  write(fd: number, bytes: Uint8Array): void;
  sync(fd: number): void;
  close(fd: number): void;
  /** Flushes a file that others wrote. */
  syncFile(path: string): void;
  /** Makes what was created, renamed or removed in a folder survive a power failure, where the system can do that. */
  syncFolder(path: string): void;
  truncate(path: string, length: number): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  makeFolder(path: string): void;
  read(path: string): Uint8Array;
  readRange(path: string, from: number, to: number): Uint8Array;
  /** Names in a folder, sorted; none when it is missing. */
  list(path: string): string[];
  /** Size in bytes, undefined when there is nothing; folders count as 0. */
  size(path: string): number | undefined;
  isFolder(path: string): boolean;
}

/** Functions of node:fs are looked up at each call, so that a proof can put faults under them. */
/** Undefined too for a path that leads through a file. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
    throw error;
  }
}

export const nodeFiles: Files = {
  openAppend: (path) => openSync(path, "a"),
  openWrite: (path, exclusive = false) => openSync(path, exclusive ? "wx" : "w"),
  write: (fd, bytes) => {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
  },
  sync: (fd) => fsyncSync(fd),
  close: (fd) => closeSync(fd),
  syncFile: (path) => {
    const fd = openSync(path, "r+");
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  },
  syncFolder: (path) => {
    if (process.platform === "win32") return;
    const fd = openSync(path, "r");
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  },
  truncate: (path, length) => truncateSync(path, length),
  rename: (from, to) => renameSync(from, to),
  remove: (path) => rmSync(path, { recursive: true, force: true }),
  makeFolder: (path) => {
    let top: string | undefined;
    for (let at = path; statOf(at) === undefined && dirname(at) !== at; at = dirname(at)) top = at;
    try {
      // By itself: Node's recursion does not come back where a system refuses a folder as if its parent were missing (/proc).
      if (top !== undefined) mkdirSync(top);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    mkdirSync(path, { recursive: true });
  },
  read: (path) => readFileSync(path),
  readRange: (path, from, to) => {
    const bytes = new Uint8Array(to - from);
    const fd = openSync(path, "r");
    try {
      for (let done = 0; done < bytes.length; ) {
        const got = readSync(fd, bytes, done, bytes.length - done, from + done);
        if (got === 0) return bytes.subarray(0, done);
        done += got;
      }
    } finally {
      closeSync(fd);
    }
    return bytes;
  },
  list: (path) => {
    try {
      return readdirSync(path).sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  },
  size: (path) => {
    const stat = statOf(path);
    return stat === undefined ? undefined : stat.isDirectory() ? 0 : stat.size;
  },
  isFolder: (path) => statOf(path)?.isDirectory() ?? false,
};

/** Writes a small file so that a reader sees the old content or the new, never half of it. */
export function replaceFile(files: Files, folder: string, name: string, text: string): void {
  const beside = `${folder}/.${name}.new`;
  const fd = files.openWrite(beside);
  try {
    files.write(fd, new TextEncoder().encode(text));
    files.sync(fd);
  } finally {
    files.close(fd);
  }
  files.rename(beside, `${folder}/${name}`);
  files.syncFolder(folder);
}

/** What went wrong in a file-system call, in a few words for a message. */
export function faultOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOSPC") return "the disk is full (ENOSPC)";
  return message ?? String(error);
}
