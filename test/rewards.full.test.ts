/** What docs/rewards.md says to write and to type, written and typed: each kind of reward trains a policy, from that page alone. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RunReader } from "../src/train/store/reader.js";
import { resume, type TrainOptions, train } from "../src/train/train.js";
import { repository } from "./paths.js";
import { type Ran, run } from "./run.js";
import { snapshot } from "./support/run-writer.js";
import { tablePolicy } from "./support/tabular.js";

const page = readFileSync(join(repository, "docs", "rewards.md"), "utf8");
const commands = page.split("\n").filter((line) => line.startsWith("    touchstone "));
const folder = mkdtempSync(join(tmpdir(), "touchstone-rewards-"));
let model: string;
beforeAll(async () => {
  model = await tablePolicy({ maxTokens: 80 });
  const line = (i: number): string => `${JSON.stringify({ prompt: String(10 + i), answer: String((i + 1) % 10) })}\n`;
  writeFileSync(join(folder, "problems.jsonl"), Array.from({ length: 8 }, (_, i) => line(i)).join(""));
  // Each program of the page is a file that its first line names.
  for (const [, name, text] of page.matchAll(/```\w+\n(?:#|\/\/) ([\w.]+)\n(.*?)```/gs)) writeFileSync(join(folder, name as string), text as string);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A command of the page, on a softmax table and for two steps. */
function typed(out: string, change: (command: string) => string = (command) => command): Promise<Ran> {
  const command = commands.find((line) => line.includes(`--out runs/${out}`)) as string;
  const program = `"${process.execPath}" --import "${import.meta.resolve("tsx")}" "${join(repository, "src/cli/main.ts")}"`;
  const small = "--set engine.name=table --steps 2 --problems 4 --group 4 --json";
  return run(
    "sh",
    [
      "-c",
      `${change(command)
        .trim()
        .replace(/^touchstone/, program)
        .replace("my-model", model)} ${small}`,
    ],
    { cwd: folder },
  );
}

/** Whether the run's rewards were those of its answers. */
async function rewarded(out: string, of: (response: string, reference: string) => number): Promise<void> {
  let answers = 0;
  const reader = RunReader.open(join(folder, "runs", out));
  for (const step of [1, 2]) {
    for (const { group, rollouts } of await reader.groups(step)) {
      for (const { trajectory, numbers } of rollouts) {
        expect(numbers.reward).toBeCloseTo(of(trajectory.text, String(group.problem.reference.answer)), 12);
        answers++;
      }
    }
  }
  expect(answers).toBe(2 * 4 * 4);
}
const right = (response: string, reference: string): number => (response === reference ? 1 : 0);

describe.skipIf(process.platform === "win32")("a reward of the page trains a policy", () => {
  it("as a TypeScript function", async () => {
    expect(await typed("mine")).toMatchObject({ code: 0 });
    await rewarded("mine", (response, reference) => right(response, reference) || (response.length > 20 ? -0.5 : 0));
  });

  it("as a Python function of verl's form", async () => {
    expect(await typed("python")).toMatchObject({ code: 0 });
    await rewarded("python", right);
    const [start] = RunReader.open(join(folder, "runs", "python")).events();
    expect(start?.data.notes).toEqual([expect.stringMatching(/^answers are judged outside of this program \(python:reward\.py:compute_score\): /)]);
  });

  it("as Python functions of TRL's form and of a plain one, with rewards on scales of their own", async () => {
    const as = (name: string, out: string) =>
      typed("python", (command) => command.replace("reward.py:compute_score", name).replace("runs/python", `runs/${out}`));
    expect(await as("trl_reward.py:brevity", "trl")).toMatchObject({ code: 0 });
    await rewarded("trl", (response, reference) => right(response, reference) - 0.01 * response.length);
    expect(await as("plain_reward.py:reward", "plain")).toMatchObject({ code: 0 });
    await rewarded("plain", (response, reference) => 3 * right(response, reference) - 1);
  });

  it("as a program in a shell", async (context) => {
    if ((await run("sh", ["-c", "command -v jq"])).code !== 0) context.skip("there is no jq here");
    expect(await typed("program")).toMatchObject({ code: 0 });
    await rewarded("program", right);
  });

  it("as a server", async () => {
    const port = await freePort();
    writeFileSync(join(folder, "server.mjs"), readFileSync(join(folder, "server.mjs"), "utf8").replace("8123", `${port}`));
    const server = spawn(process.execPath, ["server.mjs"], { cwd: folder, stdio: "ignore" });
    try {
      expect(await typed("server", (command) => command.replace("8123", `${port}`))).toMatchObject({ code: 0 });
      await rewarded("server", right);
    } finally {
      server.kill("SIGKILL");
    }
  });

  it("and one that is not there is refused before anything is written", async () => {
    const ran = await typed("server", (command) => command.replace("8123", "9").replace("runs/server", "runs/none"));
    expect(ran).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        /^error: verifier server: it cannot be reached \(http:\/\/127\.0\.0\.1:9\/reward: \w+.*\); start the server, or correct its address/,
      ),
    });
    expect(() => readFileSync(join(folder, "runs/none/run.json"))).toThrow();
  });
});

describe("a run with a pure reward outside", () => {
  it("is resumed to the bytes of one that was not interrupted", async () => {
    const settings = (out: string, more: Partial<TrainOptions> = {}): TrainOptions => ({
      model,
      out: join(folder, out),
      data: { file: join(folder, "problems.jsonl") },
      verifier: { name: `python:${join(folder, "plain_reward.py")}:reward`, options: { range: [-1, 2], batch: 3 } },
      engine: { name: "table" },
      max_tokens: 3,
      steps: 6,
      problems: 4,
      group: 4,
      lr: 0.3,
      checkpoint: { every: 2, keep_last: 100 },
      ...more,
    });
    await train(settings("whole"));
    const expected = snapshot(join(folder, "whole"));
    const stop = new AbortController();
    const cut = settings("cut", { signal: stop.signal, onProgress: (progress) => progress.kind === "step" && progress.step === 3 && stop.abort() });
    expect((await train(cut)).reason).toBe("interrupted");
    expect((await resume(cut.out)).reason).toBe("done");
    const is = snapshot(cut.out);
    expect(Object.keys(expected).filter((path) => is[path] !== expected[path])).toEqual([]);
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
