/**
 * Faults at single file-system calls of this process, whoever makes them: the run folder, the engine that saves weights, the
 * tokenizer. A module that keeps a function of node:fs in a constant would escape. Calls outside of the watched folder and
 * calls that only read are left alone. Flushes are counted and fail like other calls but flush nothing:
 * nobody here can see a power failure, and flushing is what takes time.
 */
import fs from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** `once`: that call alone fails; `full`: from then on nothing can be written; `dead`: from then on no call works, as if the process had ended there. */
export type Mode = "once" | "full" | "dead";
export const modes: readonly Mode[] = ["once", "full", "dead"];

/** What takes room on a disk; half of a write is done before it fails. */
const takesRoom = new Set(["open", "write", "writeFile", "copyFile", "mkdir"]);

/** A call that would change something, and its path within the watched folder. */
export interface FileCall {
  readonly kind: string;
  readonly path: string;
}

export interface Watched {
  readonly calls: readonly FileCall[];
  /** The call that failed. */
  readonly failed?: FileCall;
}

let plan: { readonly root: string; readonly at: number; readonly mode: Mode } | undefined;
let calls: FileCall[] = [];

/** Counts the calls under a folder and lets the one of number `at` fail (0: none) while `act` runs. `act` must not throw. */
export async function withFault(root: string, at: number, mode: Mode, act: () => Promise<void>): Promise<Watched> {
  plan = { root: resolve(root), at, mode };
  calls = [];
  try {
    await act();
  } finally {
    plan = undefined;
  }
  return { calls, ...(at > 0 && calls.length >= at ? { failed: calls[at - 1] } : {}) };
}

/** The error that this call shall end with, if any. */
function fault(kind: string, path: string | undefined): NodeJS.ErrnoException | undefined {
  if (plan === undefined || path === undefined || !(path === plan.root || path.startsWith(`${plan.root}/`))) return undefined;
  calls.push({ kind, path: path.slice(plan.root.length + 1) });
  if (plan.at === 0 || calls.length < plan.at) return undefined;
  const strikes = calls.length === plan.at || plan.mode === "dead" || (plan.mode === "full" && takesRoom.has(kind));
  if (!strikes) return undefined;
  const code = plan.mode === "full" ? "ENOSPC" : "EIO";
  return Object.assign(new Error(`${code}: ${code === "ENOSPC" ? "no space left on device" : "i/o error"}, ${kind}`), { code, syscall: kind });
}

type Call = (...args: unknown[]) => unknown;
const kindOf = (name: string): string =>
  ({ rm: "remove", unlink: "remove", rmdir: "remove", ftruncate: "truncate", fsync: "sync", datasync: "sync" })[name] ?? name;
const half = (data: unknown): unknown =>
  typeof data === "string" ? data.slice(0, data.length >> 1) : (data as Uint8Array).subarray(0, (data as Uint8Array).length >> 1);
const changes = (flags: unknown): boolean => flags !== undefined && flags !== "r";

function wrap(object: object, name: string, make: (real: Call) => Call): void {
  const target = object as { [name: string]: Call };
  const real = target[name];
  target[name] = make(real);
}

/** Calls that take a path first. A renamed or copied file counts by where it is going. */
function wrapPaths(object: object, suffix: "" | "Sync"): void {
  for (const name of ["mkdir", "rm", "unlink", "rmdir", "rename", "copyFile", "writeFile", "truncate"]) {
    wrap(object, name + suffix, (real) => (...args) => {
      const path = name === "rename" || name === "copyFile" ? args[1] : args[0];
      const error = typeof path === "string" ? fault(kindOf(name), resolve(path)) : undefined;
      if (error === undefined) return real.apply(object, args);
      if (suffix === "Sync") {
        if (name === "writeFile") real.call(object, args[0], half(args[1]), ...args.slice(2));
        throw error;
      }
      return (async () => {
        if (name === "writeFile") await real.call(object, args[0], half(args[1]), ...args.slice(2));
        throw error;
      })();
    });
  }
}

/** What is open; the descriptors of handles are not among them. */
const files = new Map<number, Opened>();
const handles = new WeakMap<object, Opened>();

interface Opened {
  readonly path: string;
  /** Opened in order to change something: closing it can tell of a write that failed. */
  readonly changes: boolean;
}

function wrapDescriptors(): void {
  wrap(fs, "openSync", (real) => (...args) => {
    const path = resolve(String(args[0]));
    const error = changes(args[1]) ? fault("open", path) : undefined;
    if (error) throw error;
    const fd = real(...args) as number;
    files.set(fd, { path, changes: changes(args[1]) });
    return fd;
  });
  for (const name of ["write", "fsync", "ftruncate", "close"]) {
    wrap(fs, `${name}Sync`, (real) => (...args) => {
      const fd = args[0] as number;
      const file = files.get(fd);
      const error = name === "close" && !file?.changes ? undefined : fault(kindOf(name), file?.path);
      if (name === "close") files.delete(fd);
      if (error === undefined) return name === "fsync" && plan ? undefined : real(...args);
      if (name === "write") real(fd, half(args[1]), 0);
      if (name === "close") real(fd); // The descriptor is gone even when close reports a fault.
      throw error;
    });
  }
}

function wrapHandles(): void {
  wrap(fs.promises, "open", (real) => async (...args) => {
    const path = resolve(String(args[0]));
    const error = changes(args[1]) ? fault("open", path) : undefined;
    if (error) throw error;
    const handle = (await real.apply(fs.promises, args)) as FileHandle;
    handles.set(handle, { path, changes: changes(args[1]) });
    return handle;
  });
}

/** The methods of a handle are on a prototype that only a handle leads to. */
async function wrapHandleMethods(): Promise<void> {
  const folder = fs.mkdtempSync(join(tmpdir(), "handle-"));
  const handle = await fs.promises.open(join(folder, "any"), "w");
  const prototype = Object.getPrototypeOf(handle) as object;
  await handle.close();
  fs.rmSync(folder, { recursive: true });
  for (const name of ["write", "writeFile", "sync", "datasync", "truncate", "close"]) {
    wrap(
      prototype,
      name,
      (real) =>
        async function (this: FileHandle, ...args: unknown[]) {
          const file = handles.get(this);
          const error = name === "close" && !file?.changes ? undefined : fault(kindOf(name), file?.path);
          if (error === undefined) return kindOf(name) === "sync" && plan ? undefined : real.apply(this, args);
          if (name.startsWith("write")) await real.call(this, half(args[0]));
          if (name === "close") await real.call(this);
          throw error;
        },
    );
  }
}

await wrapHandleMethods();
wrapPaths(fs, "Sync");
wrapPaths(fs.promises, "");
wrapDescriptors();
wrapHandles();
syncBuiltinESMExports();
