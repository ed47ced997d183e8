/** `touchstone profile` on the starter, with the real engine. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { command } from "../../test/support/touchstone.js";
import { readProfile } from "../evaluate/profile.js";
import { dataTask } from "../tasks/data.js";
import { dataOptions } from "../tasks/data-options.js";
import { number } from "../verify/number/number.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-profile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const program = [...command, "profile", "--model", "starters/chain-1M", "--threads", "1", "--verifier-workers", "0"];
const chain = (out: string, problems: number, ...more: string[]): string[] => [
  "--task",
  "chain",
  "--n-problems",
  `${problems}`,
  "--k",
  "2",
  "--out",
  join(folder, out),
  ...more,
];
const profile = (args: readonly string[]) => run(process.execPath, [...program, ...args], { cwd: repository });

describe("touchstone profile", () => {
  let whole: string;
  beforeAll(async () => {
    const ran = await profile(chain("whole.jsonl", 200, "--json"));
    expect(ran.code).toBe(0);
    whole = readFileSync(join(folder, "whole.jsonl"), "utf8");
    const { head, lines } = readProfile(join(folder, "whole.jsonl"));
    const known = lines.map(({ pass }) => pass as number);
    const solved = (test: (pass: number) => boolean): number => known.filter(test).length;
    expect(JSON.parse(ran.out)).toMatchObject({
      problems: 200,
      pass: known.reduce((a, b) => a + b, 0) / 200,
      never: solved((pass) => pass === 0),
      sometimes: solved((pass) => pass > 0 && pass < 1),
      always: solved((pass) => pass === 1),
      unscored: 0,
    });
    expect(head).toMatchObject({
      model: "starters/chain-1M",
      model_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      task: { name: "chain", split: "train" },
      k: 2,
      problems: 200,
    });
    for (const { pass, accepted, scored, tokens } of lines) {
      expect([pass, scored]).toEqual([accepted / 2, 2]);
      expect(tokens).toBeGreaterThan(1);
    }
    // The starter is sometimes right.
    expect(solved((pass) => pass > 0)).toBeGreaterThan(20);
    expect(solved((pass) => pass < 1)).toBeGreaterThan(20);
  });

  it("gives each problem the same line whatever others are asked", async () => {
    expect((await profile(chain("few.jsonl", 10))).code).toBe(0);
    const lines = (text: string): string[] => text.split("\n").slice(1);
    const few = lines(readFileSync(join(folder, "few.jsonl"), "utf8")).filter((line) => line !== "");
    expect(few).toEqual(lines(whole).slice(0, 10));
  });

  it("goes on where it was killed, to the bytes of one that was not", async () => {
    const part = join(folder, "killed.jsonl.part");
    const child = spawn(process.execPath, [...program, ...chain("killed.jsonl", 200)], { cwd: repository, stdio: "ignore" });
    const ended = new Promise((resolve) => child.once("close", resolve));
    while (!existsSync(part) || readFileSync(part, "utf8").split("\n").length < 60) await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill("SIGKILL");
    await ended;
    // As if it had been killed while it wrote.
    writeFileSync(part, `${readFileSync(part, "utf8")}{"key":"ab`);
    const other = await profile(chain("killed.jsonl", 200, "--temperature", "0.5"));
    expect(other).toMatchObject({
      code: 1,
      err: expect.stringContaining("killed.jsonl.part: it was begun under other conditions (temperature); repeat the command"),
    });
    const ran = await profile(chain("killed.jsonl", 200));
    expect(ran).toMatchObject({ code: 0, out: expect.stringMatching(/solved +problems +share\nnever .*\n\n200 problems: pass [\d.]+ %, /s) });
    expect(readFileSync(join(folder, "killed.jsonl"), "utf8")).toBe(whole);
    expect(existsSync(part)).toBe(false);
    expect(await profile(chain("killed.jsonl", 200))).toMatchObject({
      code: 2,
      err: expect.stringContaining("killed.jsonl: it exists; give a new name, or remove it"),
    });
  });

  it("draws from the most likely tokens where it is told to, says so in its head, and makes the folder that it is written to", async () => {
    const out = "new/folder/one.jsonl";
    expect((await profile(chain(out, 10, "--top-k", "1", "--top-p", "0.9"))).code).toBe(0);
    const { head, lines } = readProfile(join(folder, out));
    expect(head.truncation).toEqual({ topK: 1, topP: 0.9 });
    expect(lines.map(({ pass }) => pass).every((pass) => pass === 0 || pass === 1)).toBe(true);
    expect(lines.map(({ tokens }) => tokens).every(Number.isInteger)).toBe(true);
    expect(readProfile(join(folder, "whole.jsonl")).head).not.toHaveProperty("truncation");
    writeFileSync(join(folder, "half.jsonl.part"), readFileSync(join(folder, out), "utf8"));
    expect(await profile(chain("half.jsonl", 10, "--top-k", "2", "--top-p", "0.9"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("it was begun under other conditions (truncation)"),
    });
    expect((await profile(chain("other.jsonl", 10, "--top-p", "1.5"))).err).toContain("option --top-p");
  });

  it("of a file has the keys under which training knows its problems", async () => {
    const file = join(folder, "sums.jsonl");
    writeFileSync(file, ["1+2", "3+4", "5+6"].map((question) => `${JSON.stringify({ question, answer: "7" })}\n`).join(""));
    const options = ["--verifier", "number", "--max-tokens", "8", "--data-options", '{"prompt_column":"question"}', "--k", "2"];
    expect((await profile([file, ...options, "--out", join(folder, "file.jsonl")])).code).toBe(0);
    const { task } = await dataTask(dataOptions.parse({ file, prompt_column: "question" }), number(), { split: "train" });
    const keys = readProfile(join(folder, "file.jsonl")).lines.map(({ key }) => key);
    expect(keys.sort()).toEqual(
      task
        .problems("train", 3, 0)
        .map(({ key }) => key)
        .sort(),
    );
  });

  it("is not finished by a task of one's own that was edited meanwhile", async () => {
    const task = join(folder, "task.ts");
    const text = `import { defineTask } from "touchstone-rl";
export default defineTask({ name: "own", rows: () => [{ prompt: "1+2", answer: 3, split: "train" }], verify: ({ response }) => response !== "", maxTokens: 4 });
`;
    const asked = ["--task", task, "--k", "2", "--out"];
    writeFileSync(task, text);
    expect((await profile([...asked, join(folder, "own.jsonl")])).code).toBe(0);
    writeFileSync(join(folder, "edited.jsonl.part"), readFileSync(join(folder, "own.jsonl"), "utf8"));
    writeFileSync(task, text.replace('!== ""', '=== "3"'));
    expect((await profile([...asked, join(folder, "edited.jsonl")])).err).toContain("it was begun under other conditions (program)");
  });
});
