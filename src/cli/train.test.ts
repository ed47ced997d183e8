/** `touchstone train` as a user meets it, on a softmax table. */
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { scratch, tablePolicy } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";
import { posedProblems, withProblemsOfRun } from "./problems.js";
import { type TrainFlags, writtenConfig } from "./train-flags.js";

const program = [...command, "train"];
const touchstone = (...args: string[]) => run(process.execPath, [...program, ...args], { cwd: repository });
let base: string[];
beforeAll(async () => {
  base = [
    "--model",
    await tablePolicy(),
    "--task",
    "test/support/successor-task.ts",
    "--set",
    "engine.name=table",
    "--problems",
    "4",
    "--group",
    "4",
    "--lr",
    "0.3",
  ];
});
const out = (): string => join(scratch(), "run");

describe("touchstone train", () => {
  it("trains, draws the curve, tells how it ended, and prints JSON when asked to", async () => {
    const folder = out();
    const text = await touchstone(...base, "--steps", "4", "--eval-every", "4", "--eval-problems", "2", "--out", folder);
    expect(text.code).toBe(0);
    expect(text.out).toMatch(/^reward a step\n1 ┤/);
    expect(text.out).toContain("held-out: ");
    expect(text.out).toContain(`4 steps are done.\nThe policy is in ${folder}/checkpoints/00000004/policy`);
    expect(text.out).toMatch(/^ {2}node .*main\.js sample \S+\/run@last --n-problems 3\n {2}node .*main\.js eval \S+\/run@last\n$/m);
    const json = JSON.parse((await touchstone(...base, "--steps", "2", "--out", out(), "--json")).out);
    expect(json).toMatchObject({ reason: "done", steps: 2, updates: expect.any(Number), rewards: [expect.any(Number), expect.any(Number)] });
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("finishes the step and saves on %s, ends with code 130, and goes on with --resume", async (signal) => {
    const folder = out();
    const child = spawn(process.execPath, [...program, ...base, "--steps", "100000", "--out", folder], { cwd: repository });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    await new Promise<void>((resolve) => createInterface({ input: child.stderr }).on("line", (line) => line.includes("training: ") && resolve()));
    child.kill(signal);
    let said = "";
    child.stdout.on("data", (piece) => (said += piece));
    expect(await ended).toBe(130);
    const step = Number(/Interrupted after step (\d+) of 100000; go on with: touchstone train --resume /.exec(said)?.[1]);
    expect(existsSync(join(folder, "checkpoints", String(step).padStart(8, "0"), "policy", "model.safetensors"))).toBe(true);
    if (signal !== "SIGINT") return;
    const refused = await touchstone("--resume", folder, "--steps", "5");
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("option --steps: a resumed run keeps the options that it began with") });
  });

  it("shows what it would do with --dry-run, and writes nothing", async () => {
    const folder = out();
    const { code, out: text } = await touchstone(...base, "--method", "dapo+rloo", "--out", folder, "--dry-run");
    expect(code).toBe(0);
    for (const part of ["options\nmodel: ", "credit  ", "parameters, 12 problems", "rloo (prefers), over dapo", "time: about ", "▔", "user: "])
      expect(text).toContain(part);
    expect(text).toMatch(/(accept|reject \(wrong\)), \d tokens, \d trained, ended by (eos|length)/);
    expect(existsSync(folder)).toBe(false);
  });
});

describe("a run of a file that held nothing out", () => {
  it("is sampled and measured on what it was trained on, by the commands that it ends with", async () => {
    const folder = scratch();
    const file = join(folder, "rows.jsonl");
    writeFileSync(file, [1, 2, 3, 4].map((n) => `${JSON.stringify({ prompt: `${n}`, answer: `${n}` })}\n`).join(""));
    const run = join(folder, "a run");
    const ran = await touchstone(
      "--model",
      base[1] as string,
      "--data",
      file,
      "--verifier",
      "exact",
      "--max-tokens",
      "2",
      ...base.slice(4),
      "--steps",
      "1",
      "--out",
      run,
    );
    expect(ran.code, ran.err).toBe(0);
    expect(ran.out).toContain(`main.js sample '${run}@last' --n-problems 3\n`);
    const flags = withProblemsOfRun(`${run}@last`, {});
    expect(flags).toMatchObject({ data: file, split: "train", verifier: "exact" });
    expect((await posedProblems(flags, 0, 10)).problems).toHaveLength(4);
    expect(withProblemsOfRun(`${run}@last`, { split: "eval" }).split).toBe("eval");
  });
});

describe("its flags", () => {
  const written = (flags: TrainFlags) => writtenConfig(flags);

  it("go over the file, and --set over both", async () => {
    expect(
      await written({
        task: "chain",
        taskOptions: { modulus: 7 },
        method: "grpo",
        evalEvery: 5,
        lr: 0.1,
        set: ["eval.greedy=true", "lr=1e-4", "method.options.clip_high=0.28"],
      }),
    ).toEqual({
      task: { name: "chain", options: { modulus: 7 } },
      method: { name: "grpo", options: { clip_high: 0.28 } },
      eval: { every: 5, greedy: true },
      lr: 1e-4,
    });
    expect(await written({ data: "a.jsonl", promptColumn: "question", verifier: "number" })).toEqual({
      data: { file: "a.jsonl", prompt_column: "question" },
      verifier: "number",
    });
  });

  it("that have nothing to act on are refused", async () => {
    await expect(written({ taskOptions: {} })).rejects.toThrow("option --task-options: there is no --task to take them");
    await expect(written({ set: ["lr"] })).rejects.toThrow('option --set: got "lr"; write OPTION=VALUE, such as eval.every=10');
  });
});
