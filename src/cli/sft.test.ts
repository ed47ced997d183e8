/** `touchstone sft` with a real engine, on little data. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { command } from "../../test/support/touchstone.js";
import { runProgram } from "./program.js";

let folder: string;
const at = (name: string): string => join(folder, name);
const touchstone = (...args: string[]) => run(process.execPath, [...command, ...args], { cwd: repository, deadlineMs: 120_000 });

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
    const sampled = await touchstone("sample", at("new"), "--prompt", "aab", "--chat", "--greedy", "--max-tokens", "8", "--json");
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

  it.each(["SIGINT", "SIGTERM"] as const)("saves what is learnt when it is told to end by %s", async (signal) => {
    const out = at(`stopped-${signal}`);
    await writeFile(
      at("task.ts"),
      `import { alphabetTokenizer, defineTask } from "touchstone-rl";
       let drawn = 0;
       export default defineTask({
         name: "slow",
         rows: Array.from({ length: 8 }, (_, i) => ({ prompt: String(i), answer: String(i), split: "train" as const })),
         verify: ({ response, reference }) => response === reference,
         solution: ({ prompt }) => {
           if (++drawn === 12) process.stderr.write("a third step has begun\\n");
           return prompt.at(-1)?.content ?? "";
         },
         maxTokens: 3,
         tokenizer: alphabetTokenizer([..."0123456789"]),
       });`,
    );
    const args = ["sft", "--task", at("task.ts"), "--size", "100k", "--max-length", "16", "--steps", "1000000", "--batch-size", "4", "--out", out];
    const child = spawn(process.execPath, [...command, ...args], {
      cwd: repository,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [text, err] = ["", ""];
    child.stdout.on("data", (piece) => {
      text += piece;
    });
    child.stderr.on("data", (piece) => {
      if (!err.includes("third step") && String(piece).includes("third step")) child.kill(signal);
      err += piece;
    });
    const [code] = await once(child, "close");
    expect(code, err).toBe(130);
    expect(err).toContain("Finishing this step and saving; once more ends at once.");
    expect(text).toMatch(/^Saved .* after \d+ of 1000000 steps in /);
    expect(await readdir(out)).toEqual(expect.arrayContaining(["config.json", "model.safetensors", "touchstone_tokenizer.json"]));
    expect((await readdir(folder)).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("runs a few steps without being told a shorter warm-up", async () => {
    const ran = await touchstone("sft", "--data", at("pairs.jsonl"), "--size", "100k", "--steps", "5", "--batch-size", "2", "--out", at("short"), "--json");
    expect(ran.code, ran.err).toBe(0);
    expect(JSON.parse(ran.out)).toMatchObject({ steps: 5 });
  });

  it("refuses a folder that holds something, a policy too, before an engine starts", async () => {
    const base = ["sft", "--task", "chain", "--size", "100k", "--steps", "10", "--warmup", "0"];
    await mkdir(at("policy"));
    await writeFile(at("policy/config.json"), '{"model_type":"llama"}');
    await expect(runProgram([...base, "--out", at("policy")])).rejects.toThrow(
      `option --out: ${at("policy")} holds something already (config.json); give a new or empty folder, or remove that one`,
    );
    expect(await readdir(at("policy"))).toEqual(["config.json"]);
  });

  it.each([
    [["--data", "x.jsonl", "--out", "y"], /what to begin with: nothing is named; give one of --model and --size/],
    [["--size", "100k", "--out", "y"], /what to learn: nothing is named; give one of --task, --data and --rollouts/],
    [["--task", "chain", "--data", "x", "--size", "100k", "--out", "y"], /--task and --data are given together/],
    [["--task", "chan", "--size", "100k", "--out", "y"], /there is no task "chan".*chain/],
    [["--task", "chain", "--size", "100k", "--steps", "10", "--warmup", "10", "--out", "y"], /warmup.*less than steps/],
    [["--data", "missing.jsonl", "--size", "100k", "--out", "y"], /missing.jsonl: there is no such file; check the path/],
  ])("refuses %j before an engine starts", async (args, message) => {
    await expect(runProgram(["sft", ...args])).rejects.toThrow(message);
  });
});
