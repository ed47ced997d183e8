/** `touchstone compare` that is interrupted, as a process. */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { scratch, tablePolicy } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";

const program = [...command, "compare"];

it("goes on after Ctrl-C: what was interrupted is resumed", async () => {
  const folder = join(scratch(), "compared");
  const file = join(scratch(), "base.yaml");
  const task = join(repository, "test/support/successor-task.ts");
  const limits = "limits: { silent_batches: 1000 }";
  writeFileSync(file, `model: ${await tablePolicy()}\ntask: ${task}\nengine: { name: table }\nsteps: 150\nproblems: 4\ngroup: 4\nlr: 0.3\n${limits}\n`);
  const args = ["--methods", "grpo,rloo", "--seeds", "1", "--config", file, "--out", folder];
  const child = spawn(process.execPath, [...program, ...args], { cwd: repository });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  createInterface({ input: child.stderr }).on("line", (line) => line.includes("training: ") && child.kill("SIGINT"));
  expect(await ended).toBe(130);
  expect(existsSync(join(folder, "compare.json"))).toBe(false);
  expect(readdirSync(folder)).toEqual(["grpo"]);
  const { code, out: text, err } = await run(process.execPath, [...program, ...args, "--json"], { cwd: repository });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(JSON.parse(text).arms.map(({ runs: [{ steps }] }: { runs: { steps: number }[] }) => steps)).toEqual([150, 150]);
  expect(readFileSync(join(folder, "grpo", "seed-0", "sessions.jsonl"), "utf8")).toContain('"resumedFrom":');
});
