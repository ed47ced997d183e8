/** `touchstone sft` with a real engine, on little data. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { runProgram } from "./program.js";

let folder: string;
const at = (name: string): string => join(folder, name);
const touchstone = (...args: string[]) =>
  run(process.execPath, ["--import", "tsx", join(repository, "src/cli/main.ts"), ...args], { cwd: repository, deadlineMs: 120_000 });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "touchstone-sft-"));
  await writeFile(
    at("pairs.jsonl"),
    ["ab", "ba", "aab"].map((text) => `${JSON.stringify({ prompt: text, response: [...text].reverse().join("") })}\n`).join(""),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("touchstone sft", () => {
  it("learns pairs by heart, saves a folder that sample takes, and goes on from it", async () => {
    const first = await touchstone(
      "sft",
      "--data",
      at("pairs.jsonl"),
      "--size",
      "100k",
      "--steps",
      "60",
      "--batch-size",
      "3",
      "--lr",
      "3e-3",
      "--warmup",
      "5",
      "--out",
      at("new"),
      "--json",
    );
    expect(first.code, first.err).toBe(0);
    const result = JSON.parse(first.out) as { loss: number; first_loss: number; steps: number };
    expect(result.steps).toBe(60);
    expect(result.loss).toBeLessThan(0.3 * result.first_loss);
    expect(await readdir(at("new"))).toEqual(expect.arrayContaining(["config.json", "model.safetensors", "touchstone_tokenizer.json"]));
    const sampled = await touchstone("sample", at("new"), "--prompt", "aab", "--greedy", "--max-tokens", "8", "--json");
    expect(sampled.code, sampled.err).toBe(0);
    expect(sampled.out).toContain('"text":"baa"');
    const more = await touchstone(
      "sft",
      "--data",
      at("pairs.jsonl"),
      "--model",
      at("new"),
      "--steps",
      "2",
      "--batch-size",
      "3",
      "--lr",
      "1e-4",
      "--warmup",
      "0",
      "--out",
      at("more"),
      "--json",
    );
    expect(more.code, more.err).toBe(0);
    expect((JSON.parse(more.out) as { first_loss: number }).first_loss).toBeLessThan(0.3 * result.first_loss);
  });

  it.each([
    [["--data", "x.jsonl", "--out", "y"], /what to begin with: nothing is named; give one of --model and --size/],
    [["--size", "100k", "--out", "y"], /what to learn: nothing is named; give one of --task and --data/],
    [["--task", "chain", "--data", "x", "--size", "100k", "--out", "y"], /--task and --data are given together/],
    [["--task", "chan", "--size", "100k", "--out", "y"], /there is no task "chan".*chain/],
    [["--task", "chain", "--size", "100k", "--steps", "10", "--warmup", "10", "--out", "y"], /warmup.*less than steps/],
    [["--data", "missing.jsonl", "--size", "100k", "--out", "y"], /missing.jsonl: there is no such file; check the path/],
  ])("refuses %j before an engine starts", async (args, message) => {
    await expect(runProgram(["sft", ...args])).rejects.toThrow(message);
  });
});
