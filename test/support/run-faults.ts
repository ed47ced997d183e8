/** A fault at every single file-system call of making a run, of a step with its checkpoint, and of a resume. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RunError } from "../../src/core/errors.js";
import { type Files, nodeFiles } from "../../src/train/store/files.js";
import { RunStore } from "../../src/train/store/store.js";
import { meta, quickFiles, snapshot, writeStep, writeUntil } from "./run-writer.js";

const changing = ["openAppend", "openWrite", "write", "sync", "close", "syncFile", "syncFolder", "truncate", "rename", "remove", "makeFolder"] as const;

/** `once`: that call alone fails, half of it done where it writes. `full`: from then on nothing can be written. `dead`: from then on no call works, as if the process had been killed there. */
export type Mode = "once" | "full" | "dead";

/** Files whose n-th changing call fails (counted from 1; 0: none), and the number of calls so far. */
function faulty(n: number, mode: Mode): { files: Files; calls: () => number; kind: () => string } {
  let calls = 0;
  let kind = "";
  const fails = (name: string) => {
    calls++;
    if (calls === n) kind = name;
    if (n === 0 || calls < n) return false;
    return mode === "dead" || calls === n || (mode === "full" && name === "write");
  };
  const fault = (name: string) =>
    Object.assign(new Error(`${mode === "full" ? "ENOSPC: no space left on device" : "EIO: i/o error"}, ${name}`), {
      code: mode === "full" ? "ENOSPC" : "EIO",
    });
  const files = { ...quickFiles };
  for (const name of changing) {
    const real = quickFiles[name] as (...args: unknown[]) => unknown;
    (files as unknown as { [name: string]: (...args: unknown[]) => unknown })[name] = (...args) => {
      if (!fails(name)) return real(...args);
      if (name === "write") nodeFiles.write(args[0] as number, (args[1] as Uint8Array).subarray(0, (args[1] as Uint8Array).length >> 1));
      if (name === "close") nodeFiles.close(args[0] as number); // The descriptor is gone even when close reports a fault.
      throw fault(name);
    };
  }
  return { files, calls: () => calls, kind: () => kind };
}

const lastStep = 8;
let base: string;
/** Runs that stopped after step 5 (checkpoint of step 3) and after step 8 (that of step 6, and more to cut). */
let stopped: string;
let more: string;
let whole: string;
let wholeBytes: ReturnType<typeof snapshot>;

export function prepareRuns(): void {
  beforeAll(async () => {
    base = mkdtempSync(join(tmpdir(), "faults-"));
    [stopped, more, whole] = ["stopped", "more", "whole"].map((name) => join(base, name)) as [string, string, string];
    const first = RunStore.create(stopped, meta, { files: quickFiles });
    for (let step = 1; step <= 5; step++) await writeStep(first, step);
    first.close();
    await writeUntil(more, 8);
    await writeUntil(whole, lastStep);
    wholeBytes = snapshot(whole);
  });
  afterAll(() => rmSync(base, { recursive: true, force: true }));
}

let copies = 0;
function copyOf(run: string): string {
  const to = join(base, `copy${copies++}`);
  cpSync(run, to, { recursive: true });
  return to;
}

/** What a process that ended leaves behind: its lock, which counts as stale. */
const asIfEnded = (run: string) => rmSync(join(run, "lock.json"), { force: true });

/** Calls that an attempt makes when nothing fails. */
async function callsOf(attempt: (files: Files) => Promise<void>): Promise<number> {
  const { files, calls } = faulty(0, "once");
  await attempt(files);
  return calls();
}

async function messageOf(attempt: () => Promise<void>): Promise<string | undefined> {
  try {
    await attempt();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(RunError);
    return (error as Error).message;
  }
}

/** The tests of one mode. */
export function faultTests(mode: Mode): void {
  it("at any call of a step with a checkpoint leaves the last good one, says so, and the run ends with the same bytes", async () => {
    const attempt = async (run: string, files: Files) => {
      const { store } = RunStore.open(run, meta, { files });
      try {
        for (const step of [4, 5, 6]) await writeStep(store, step, files);
      } catch (error) {
        try {
          store.close();
        } catch {
          // What is told first counts.
        }
        throw error;
      }
      store.close();
    };
    const total = await callsOf((files) => attempt(copyOf(stopped), files));
    expect(total).toBeGreaterThan(40);
    const kinds = new Set<string>();
    for (let n = 1; n <= total; n++) {
      const run = copyOf(stopped);
      const { files, kind } = faulty(n, mode);
      const message = await messageOf(() => attempt(run, files));
      kinds.add(kind());
      asIfEnded(run);
      const { store, resume } = RunStore.open(run, meta, { files: quickFiles });
      store.close();
      expect([3, 6]).toContain(resume?.step);
      expect(readFileSync(`${resume?.policy}/model.safetensors`, "utf8")).toBe(`weights of step ${resume?.step}`);
      const intact = /the checkpoint of step (\d+) is intact; free space/.exec(message ?? "")?.[1];
      if (intact !== undefined) expect(Number(intact)).toBe(resume?.step);
      if (message?.includes("itself is whole; free space")) expect(resume?.step).toBe(6);
      if (message?.includes("checkpoint of step 6: ")) {
        expect(message).toMatch(/(is intact|itself is whole); free space/);
        if (mode === "full" && kind() === "write") expect(message).toContain("the disk is full (ENOSPC)");
      }
      // Only what loses nothing may pass in silence: no write, flush, rename or truncation does.
      if (mode !== "once" || ["write", "sync", "syncFile", "syncFolder", "rename", "truncate"].includes(kind()))
        expect(message, `${kind()}, call ${n}`).toBeDefined();
      await writeUntil(run, lastStep);
      expect(snapshot(run)).toEqual(wholeBytes);
      rmSync(run, { recursive: true });
    }
    for (const name of ["openAppend", "openWrite", "write", "sync", "syncFile", "syncFolder", "rename", "makeFolder"]) expect(kinds).toContain(name);
  });

  it("at any call of a resume loses nothing: the next resume succeeds and the run ends with the same bytes", async () => {
    const attempt = async (run: string, files: Files) => RunStore.open(run, meta, { files }).store.close();
    const total = await callsOf((files) => attempt(copyOf(more), files));
    const kinds = new Set<string>();
    for (let n = 1; n <= total; n++) {
      const run = copyOf(more);
      const { files, kind } = faulty(n, mode);
      const message = await messageOf(() => attempt(run, files));
      kinds.add(kind());
      if (mode === "dead") expect(message).toBeDefined();
      asIfEnded(run);
      const { store, resume } = RunStore.open(run, meta, { files: quickFiles });
      store.close();
      expect(resume?.step).toBe(6);
      await writeUntil(run, lastStep);
      expect(snapshot(run)).toEqual(wholeBytes);
      rmSync(run, { recursive: true });
    }
    for (const name of ["truncate", "rename", "write", "sync", "remove"]) expect(kinds).toContain(name);
  });

  it("at any call of making a run is told, and making it again works", async () => {
    const total = await callsOf(async (files) => RunStore.create(join(base, `new${copies++}`), meta, { files }).close());
    for (let n = 1; n <= total; n++) {
      const run = join(base, `new${copies++}`);
      const message = await messageOf(async () => RunStore.create(run, meta, { files: faulty(n, mode).files }).close());
      if (mode === "dead") expect(message).toBeDefined();
      asIfEnded(run);
      await writeUntil(run, 3);
      expect(snapshot(run)["checkpoints/latest"]).toBe(Buffer.from("00000003\n").toString("hex"));
    }
  });
}
