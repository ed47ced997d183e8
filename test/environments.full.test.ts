/** The environment that docs/environments.md writes, learnt and trained by the commands that stand below it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { repository } from "./paths.js";
import { run } from "./run.js";
import { command } from "./support/touchstone.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-environments-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("the environment of docs/environments.md is learnt with its commands, and its conversations are shown turn by turn", async () => {
  const text = readFileSync(join(repository, "docs", "environments.md"), "utf8");
  const [task] = [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code as string).filter((code) => code.includes('name: "lamps"'));
  writeFileSync(join(folder, "lamps.ts"), task as string);
  const commands = [...text.matchAll(/^ {4}touchstone (.*lamps.*)$/gm)].map(([, line]) => line as string);
  expect(commands.map((line) => line.split(" ")[0])).toEqual(["sft", "train", "sample"]);
  const touchstone = async (line: string): Promise<string> => {
    const words = line.split(" ").map((word) => (/^(\.\/lamps\.ts|lamps-policy|runs\/lamps)$/.test(word) ? join(folder, word) : word));
    const ran = await run(process.execPath, [...command, ...words], { cwd: repository, deadlineMs: 900_000 });
    expect(ran.code, ran.err).toBe(0);
    return ran.out;
  };
  const right = async (model: string): Promise<number> =>
    JSON.parse(await touchstone(`eval ${model} --task ./lamps.ts --n-problems 7 --n 20 --k 1 --json`)).metrics["pass@1"].value;
  await touchstone(commands[0] as string);
  expect(await right("lamps-policy")).toBeLessThan(0.75);
  await touchstone(commands[1] as string);
  expect(await right("runs/lamps")).toBeGreaterThan(0.9);
  expect(await touchstone(commands[2] as string)).toMatch(/\n {2}1: accept, read "[1-6]", .*\n( {4}> [1-6]\n {4}< [01]{6}\n)*( {4}> [1-6]\n {4}< 111111\n)/);
});
