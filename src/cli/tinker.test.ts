/** The commands on a server of the Tinker protocol: what is learnt there is saved, drawn from, scored, and given back however the process ends. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { repository } from "../../test/paths.js";
import even from "../../test/support/even-task.js";
import { scratch } from "../../test/support/tabular.js";
import { baseFolder } from "../../test/support/tinker-base.js";
import { TinkerStub } from "../../test/support/tinker-stub.js";
import { saveAlphabet } from "../core/alphabet.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { runProgram } from "./program.js";

const task = join(repository, "test/support/even-task.ts");
const model = baseFolder();
let stub: TinkerStub;
let remote: string[];
beforeAll(async () => {
  stub = await TinkerStub.start({ dialect: "protobuf" });
  remote = ["--engine", "tinker", "--base-url", stub.url];
  await saveAlphabet(even().tokenizer as Tokenizer, model);
});
afterAll(async () => {
  await stub.stop();
});

/** What a command prints on stdout, in this process. */
async function printed(...args: string[]): Promise<string> {
  let out = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += text;
    return true;
  });
  const quiet = vi.spyOn(process.stderr, "write").mockImplementation(() => true);
  try {
    await runProgram(args);
  } finally {
    write.mockRestore();
    quiet.mockRestore();
  }
  return out;
}

describe("commands on a server", () => {
  const out = join(scratch(), "run");
  const few = ["--steps", "6", "--problems", "4", "--group", "8", "--lr", "0.3", "--verifier-workers", "0"];

  it("train, then eval, sample and score what was learnt, beside the base", async () => {
    const result = JSON.parse(
      await printed("train", "--model", model, "--task", task, ...remote, "--lora", "4", ...few, "--save", "adapter", "--out", out, "--json"),
    );
    expect(result).toMatchObject({ reason: "done", steps: 6, model: join(out, "model") });
    const saved = JSON.parse(readFileSync(join(out, "model", "tinker.json"), "utf8")) as { rank: number; path: string };
    expect(saved).toMatchObject({ rank: 4, path: expect.stringMatching(/^tinker:\/\/model_\d+\/weights\//) });
    expect(existsSync(join(out, "model", "adapter_model.safetensors"))).toBe(true);
    const shareOf = async (policy: string): Promise<number> => {
      const args = ["eval", policy, "--task", task, "--n", "4", "--n-problems", "4", "--verifier-workers", "0", ...remote, "--json"];
      return (JSON.parse(await printed(...args)) as { metrics: { [name: string]: { value: number } } }).metrics["pass@1"]?.value as number;
    };
    const metrics = JSON.parse(await printed("eval", `${out}@last`, "--n", "4", "--n-problems", "4", "--verifier-workers", "0", ...remote, "--json"));
    expect(metrics).toMatchObject({ model: `${saved.path} at ${stub.url}`, weights: "policy@0" });
    expect(typeof (await shareOf(model))).toBe("number");
    const [line] = (await printed("sample", `${out}@last`, "--task", task, "--n", "2", "--verifier-workers", "0", ...remote, "--json")).trim().split("\n");
    const drawn = JSON.parse(line) as { ids: number[]; logprobs: number[]; rawLogp: number };
    expect(drawn.logprobs).toHaveLength(drawn.ids.length);
    const scored = JSON.parse(await printed("score", model, "--text", "0123", ...remote, "--json")) as { logprobs: number[] };
    expect(scored.logprobs.every((x) => x < 0)).toBe(true);
    expect(stub.models.size).toBe(0);
  });

  it("sft learns pairs into an adapter, and refuses what a server has not", async () => {
    const folder = join(scratch(), "learnt");
    const learn = ["sft", "--task", task, "--out", folder, "--steps", "2", ...remote];
    await expect(printed(...learn, "--size", "100k")).rejects.toThrow(/option --size: a server trains the base that it has, not a new policy/);
    await expect(printed(...learn, "--model", model, "--save", "merged")).rejects.toThrow(/option --save: the base's weights are on the server/);
    await expect(printed(...learn, "--model", model, "--lora-alpha", "4")).rejects.toThrow(/lora.alpha: adapters of the engine tinker are the server's/);
    const rollouts = join(scratch(), "rollouts.jsonl");
    await printed("sample", model, "--task", task, "--n-problems", "4", "--n", "2", "--verifier-workers", "0", ...remote, "--out", rollouts);
    const told = await printed(
      "sft",
      "--rollouts",
      rollouts,
      "--model",
      model,
      "--steps",
      "3",
      "--batch-size",
      "4",
      "--lr",
      "0.1",
      "--out",
      folder,
      ...remote,
      "--json",
    );
    expect(JSON.parse(told)).toMatchObject({ steps: 3 });
    expect(existsSync(join(folder, "tinker.json"))).toBe(true);
    expect(stub.models.size).toBe(0);
  });

  it.each([
    [["--concurrency", "3"], /option --concurrency: servers of tinker have no use for it; leave it out/],
    [["--threads", "2"], /option --threads: the engine is a server, whose threads are its own; leave it out/],
    [["--top-p", "0.5"], /engine tinker cannot do sample.truncation/],
  ])("%s is refused", async (more, says) => {
    await expect(printed("eval", model, "--task", task, "--n-problems", "2", "--verifier-workers", "0", ...remote, ...more)).rejects.toThrow(says);
    expect(stub.models.size).toBe(0);
  });

  it("doctor says what a server can do, and why it cannot do the rest", async () => {
    const found = JSON.parse(await printed("doctor", ...remote, "--json")) as { can: string[]; cannot: { [capability: string]: string } };
    expect(found).toMatchObject({ base: "base", dialect: "protobuf", deduplicates: true, moments: true, resets: true, logps: "raw", seeds: true });
    expect(found.can).toContain("train");
    expect(found.cannot["optimizer.clip"]).toMatch(/servers clip no gradients/);
    expect(stub.models.size).toBe(0);
    expect(await printed("doctor", ...remote)).toMatch(/^sums losses as +sequence-mean-then-batch-mean$/m);
    await expect(printed("doctor", ...remote, "--quick")).rejects.toThrow(/option --quick: it belongs to this machine/);
  });

  it.each([
    [1, 130],
    [2, 130],
  ])("a run that gets %d SIGINT gives its models back", async (times, code) => {
    const folder = join(scratch(), "run");
    const words = ["train", "--model", model, "--task", task, ...remote, "--steps", "100000", ...few.slice(2), "--out", folder];
    const child = spawn(process.execPath, ["--import", "tsx", "src/cli/main.ts", ...words], { cwd: repository, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    await new Promise<void>((resolve) => {
      child.stderr.on("data", (piece: Buffer) => {
        said += piece.toString();
        if (/training: \d+\//.test(said)) resolve();
      });
      void ended.then(() => resolve());
    });
    expect(stub.models.size, said).toBe(1);
    for (let i = 0; i < times; i++) child.kill("SIGINT");
    expect(await ended, said).toBe(code);
    expect(stub.models.size).toBe(0);
  });
});
