/** `touchstone reproduce` as a program: killed in the middle, it goes on; a training run within a part goes on from its checkpoint. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { tablePolicy } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";
import { place } from "../../test/support/toy-demonstration.js";
import type { Part } from "./part.js";

const started = (args: readonly string[], folder: string): ChildProcess =>
  spawn(process.execPath, [...command, "reproduce", ...args], {
    cwd: repository,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TOUCHSTONE_CACHE: join(folder, "cache") },
  });

/** Runs to the end: exit code and what it printed. */
function ended(child: ChildProcess): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
  let [out, err] = ["", ""];
  child.stdout?.on("data", (piece) => {
    out += piece;
  });
  child.stderr?.on("data", (piece) => {
    err += piece;
  });
  return new Promise((done) => child.once("close", (code) => done({ code, out, err })));
}

const seen = (folder: string): string[] => (existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]) : []);
const partsOf = (out: string): Part[] =>
  seen(join(out, "parts"))
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(out, "parts", name), "utf8")) as Part);

it("parts run in processes of their own, and a sabotage that is not caught has exit code 1", async () => {
  const { file, out, ran } = place();
  const whole = await ended(started([file, "--out", out, "--seeds", "2", "--json"], out));
  expect(whole.err).toBe("");
  expect(JSON.parse(whole.out)).toMatchObject({ outcome: "shown", seeds: [0, 1], claims: [{ claim: "more", outcome: "shown" }] });
  expect(ran()).toHaveLength(4);
  const fair = await ended(started([file, "--out", out, "--seeds", "2", "--sabotage"], out));
  expect([fair.code, fair.out.includes("as it must be")]).toEqual([0, true]);
  const text = readFileSync(file, "utf8").replace('stands: "better", arm: arm(0)', 'stands: "better", arm: arm(0.2)');
  const blind = place(text);
  const shown = await ended(started([blind.file, "--out", blind.out, "--seeds", "2", "--sabotage"], out));
  expect([shown.code, shown.out.includes("cannot tell it from the method")]).toEqual([1, true]);
});

it("killed in a training run it goes on from its checkpoint, and has the numbers of one that was not", async () => {
  const model = await tablePolicy();
  const folder = mkdtempSync(join(tmpdir(), "touchstone-killed-"));
  const file = join(folder, "demonstration.ts");
  writeFileSync(
    file,
    `import { defineDemonstration } from "touchstone-rl";
export default defineDemonstration({
  paper: "our choice",
  method: "toy",
  testbed: "The next digit.",
  shared: {
    model: ${JSON.stringify(model)},
    task: ${JSON.stringify(join(repository, "test", "support", "successor-task.ts"))},
    engine: { name: "table" },
    steps: 400, problems: 4, group: 4, lr: 0.02, checkpoint: { every: 5 },
  },
  arms: { plain: {}, mean: { method: "rloo" } },
  metrics: { right: { kind: "avg", problems: 4, samples: 8 }, pass: { kind: "pass", k: 4, samples: 8, problems: 4 }, reward: { kind: "training", metric: "reward", last: 50 } },
  claims: { more: { kind: "above", metric: "right", arm: "mean", than: "plain" } },
  quick: { options: { steps: 2 } },
  minutes: 1,
});
`,
  );
  const args = (out: string): string[] => [file, "--seeds", "1", "--at-once", "1", "--json", "--out", out];
  const out = join(folder, "killed");
  const child = started(args(out), folder);
  const end = ended(child);
  // In the first part, once it has a checkpoint beyond the start.
  for (let i = 0; i < 600 && !seen(out).some((name) => /checkpoints\/0*[1-9]\d*$/.test(name)); i++) await sleep(100);
  child.kill("SIGKILL");
  await end;
  expect(partsOf(out)).toEqual([]);
  await sleep(2000); // Its part ends with it.
  const again = await ended(started(args(out), folder));
  expect([again.code, again.err]).toEqual([0, ""]);
  const sessions = seen(out).filter((name) => name.endsWith("sessions.jsonl"));
  expect(sessions.map((name) => JSON.parse(readFileSync(join(out, name), "utf8")).resumedFrom > 0)).toEqual([true]);
  const whole = join(folder, "whole");
  expect((await ended(started(args(whole), folder))).code).toBe(0);
  const numbers = (parts: Part[]) => parts.map(({ arm, seed, numbers: of }) => ({ arm, seed, of }));
  expect(numbers(partsOf(out))).toHaveLength(2);
  expect(numbers(partsOf(out))).toEqual(numbers(partsOf(whole)));
});
