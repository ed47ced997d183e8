import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { snapshot, writeUntil } from "../../../test/support/run-writer.js";
import { RunReader } from "./reader.js";

const program = fileURLToPath(new URL("../../../test/support/run-writer.ts", import.meta.url));
const base = mkdtempSync(join(tmpdir(), "kill-"));
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** Runs the writer until it ends, or kills it some milliseconds after it began to write. Returns whether it was killed. */
async function write(folder: string, last: number, killAfterMs?: number): Promise<boolean> {
  const child = spawn(process.execPath, ["--import", "tsx", program, folder, String(last)], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  clearTimeout(timer);
  if (signal !== "SIGKILL") expect(code).toBe(0);
  return signal === "SIGKILL";
}

it("a run that is killed again and again ends with the bytes of one that was not", async () => {
  const last = 40;
  const whole = join(base, "whole");
  await writeUntil(whole, last);
  const folder = join(base, "killed");
  let kills = 0;
  // Spread over start, steps and checkpoints; each resume repeats what was not yet in a checkpoint.
  for (const ms of [0, 20, 37, 61, 90, 113]) if (await write(folder, last, ms)) kills++;
  expect(kills).toBeGreaterThan(2);
  await write(folder, last);
  expect(snapshot(folder)).toEqual(snapshot(whole));
  expect(RunReader.open(folder).checkpoints.steps().at(-1)).toBe(39);
});
