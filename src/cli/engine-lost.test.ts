import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { scratch } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";

const children = (pid: number): number[] => readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

it.skipIf(!existsSync("/proc/self/task"))("a run whose engine is killed says from which checkpoint it goes on, and how", async () => {
  const folder = join(scratch(), "a run");
  const args = ["--model", "starters/chain-1M", "--task", "chain", "--steps", "1000", "--problems", "2", "--group", "2", "--workers", "1"];
  const child = spawn(process.execPath, [...command, "train", ...args, "--checkpoint-every", "1", "--out", folder], {
    cwd: repository,
  });
  let said = "";
  child.stderr.on("data", (piece) => (said += piece));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const begun = new Promise<void>((resolve) => createInterface({ input: child.stderr }).on("line", (line) => line.startsWith("training: 1/") && resolve()));
  await Promise.race([begun, ended.then((code) => Promise.reject(new Error(`it ended with ${code}: ${said}`)))]);
  for (const pid of children(child.pid as number)) {
    if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("process")) process.kill(pid, "SIGKILL");
  }
  expect(await ended).toBe(1);
  expect(said).toMatch(
    /error: .*its process \d+ ended \(.*SIGKILL[^;]*; if memory ran out, .*; go on from the checkpoint of step \d+ with: .* train --resume '.*\/a run'\n$/,
  );
});
