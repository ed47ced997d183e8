/** What becomes of a run whose files, programs or data were changed between its parts: real runs, stopped and gone on with. */
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { snapshot } from "../../test/support/run-writer.js";
import { options, scratch, successor, tablePolicy, tokenizer } from "../../test/support/tabular.js";
import { defineTask } from "../tasks/define.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});

/** A run of six steps that was interrupted after a step; checkpoints at every second one and where it stopped. */
async function stopped(more: Partial<TrainOptions> = {}, after = 3): Promise<string> {
  const controller = new AbortController();
  const run = options(model, {
    ...more,
    signal: controller.signal,
    onProgress: (progress) => progress.kind === "step" && progress.step === after && controller.abort(),
  });
  expect((await train(run)).reason).toBe("interrupted");
  return run.out;
}
const again = (folder: string, messages: string[] = []) =>
  resume(folder, { task: successor(), onProgress: (progress) => progress.kind === "message" && messages.push(progress.text) });

function file(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

/** A task of the user's own as a module: digits, answered by a check that lies in another file. */
function ownTask(check = "response === reference", draw = ""): { task: string; check: string } {
  const folder = scratch();
  const path = file(join(folder, "check.ts"), `export const check = (response: string, reference: unknown): boolean => ${check};\n`);
  const task = file(
    join(folder, "task.ts"),
    `import { defineTask, alphabetTokenizer } from "touchstone-rl";
     import { check } from "./check.js";
     ${draw}
     const judge = (response: string, reference: unknown) => check(response, reference);
     export default defineTask({
       name: "own",
       ${draw === "" ? "" : "shares: { eval: 0, train: 1, warm: 0 },"}
       ${draw === "" ? 'rows: () => Array.from({ length: 12 }, (_, i) => ({ prompt: String(i), answer: String(i % 10), split: "train" as const })),' : "draw,"}
       verify: ({ response, reference }) => judge(response, reference),
       maxTokens: 3,
       tokenizer: alphabetTokenizer([..."0123456789"]),
     });`,
  );
  return { task, check: path };
}

describe("a run whose rewards would change", () => {
  it.each([
    ["the file that a task's check is imported from", (own: { check: string }) => own.check, "check.ts"],
    ["a constant beside the task's check", (own: { task: string }) => own.task, "task.ts"],
  ])("is not resumed: %s", async (_what, which, name) => {
    const own = ownTask();
    const folder = await stopped({ task: own.task });
    const before = snapshot(folder);
    const path = which(own);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, `${text}// another\n`);
    await expect(resume(folder)).rejects.toThrow(
      `${folder}: the program of its task has changed since it began (${name}), so answers would be judged otherwise than before; put it back as it was, or start a new run`,
    );
    expect(snapshot(folder)).toEqual(before);
    writeFileSync(path, text);
    expect(await resume(folder)).toMatchObject({ reason: "done", steps: 6 });
  });

  it("is not resumed where a reward of one's own imports what was changed", async () => {
    const folder = scratch();
    const rules = file(join(folder, "rules.ts"), "export const good = (text: string): boolean => text.length === 1;\n");
    const reward = file(
      join(folder, "reward.ts"),
      'import { good } from "./rules.js";\nexport default (_: unknown, response: string) => (good(response) ? 1 : 0);\n',
    );
    const run = await stopped({ verifier: reward, task: successor() });
    writeFileSync(rules, "export const good = (): boolean => true;\n");
    await expect(again(run)).rejects.toThrow("the program of its verifier has changed since it began (its name, version or options, rules.ts)");
  });

  it("is not resumed where the command that rewards runs another program", async () => {
    const folder = scratch();
    const program = (value: string) =>
      `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
         const { id, items } = JSON.parse(line);
         console.log(JSON.stringify({ id, results: items.map(() => ${value}) }));
       });`;
    const path = file(join(folder, "reward.cjs"), program("Math.random()"));
    // A name that ends as a module's does is a command all the same.
    const command = `command:${JSON.stringify(process.execPath)} reward.cjs`;
    const run = await stopped({ verifier: { name: command, options: { cwd: folder } } }, 1);
    writeFileSync(path, program("0"));
    await expect(again(run)).rejects.toThrow("the program of its verifier has changed since it began");
  });
});

describe("a run whose answers would get other verdicts", () => {
  /** A task of the calling program: of its functions only the text is known. */
  const task = (right: () => boolean) =>
    defineTask({
      name: "given",
      rows: () => Array.from({ length: 12 }, (_, i) => ({ prompt: String(i), answer: String(i % 10), split: "train" as const })),
      verify: ({ response }) => response.startsWith("1") || right(),
      maxTokens: 3,
      tokenizer,
    })();

  it("is not resumed, though nothing else tells it", async () => {
    const folder = await stopped({ task: task(() => false) });
    const before = snapshot(folder);
    await expect(resume(folder, { task: task(() => true) })).rejects.toThrow(
      /earlier answers would be judged otherwise now \(the first: ".*" to problem .* was reject \(wrong\), reward 0 and is accept, reward 1\); put the task or verifier back as it was, or go on in a new run: touchstone train --model .*@3$/,
    );
    expect(snapshot(folder)).toEqual(before);
    expect(await resume(folder, { task: task(() => false) })).toMatchObject({ reason: "done", steps: 6 });
  });
});

describe("a run whose files were changed", () => {
  it("goes on without its rollouts, from the same step and to the same policy", async () => {
    const whole = options(model);
    await train(whole);
    const folder = await stopped();
    rmSync(join(folder, "rollouts"), { recursive: true });
    const messages: string[] = [];
    expect(await again(folder, messages)).toMatchObject({ reason: "done", steps: 6 });
    expect(messages.join(" ")).toContain("Resuming from the checkpoint of step 3. ");
    expect(messages.join(" ")).toContain(
      "Rollouts of earlier steps cannot be shown any more, and the run goes on without them: rollouts/rollouts.jsonl is missing.",
    );
    const weights = "checkpoints/00000006/policy/model.safetensors";
    expect(snapshot(folder)[weights]).toBe(snapshot(whole.out)[weights]);
    const steps = RunReader.open(folder)
      .rolloutIndex()
      .map(({ step }) => step);
    expect(steps).toEqual([4, 5, 6]);
  });

  it.each([
    [
      "without events",
      (folder: string) => rmSync(join(folder, "events.jsonl")),
      /events.jsonl: it is missing.* at the checkpoint of step 3, which is whole; .*--model .*@3$/,
    ],
    [
      "with a line of its events twice",
      (folder: string) => twice(join(folder, "events.jsonl")),
      /are not those that it had at the checkpoint of step 3.*--model .*@3$/,
    ],
    [
      "with another learning rate",
      (folder: string) => edit(folder, '"lr":0.3', '"lr":0.9'),
      /config.lr was 0.3 and is 0.9; write that back, or begin a new run .*@3$/,
    ],
    ["with fewer steps than are done", (folder: string) => edit(folder, '"steps":6', '"steps":2'), /config.steps was 6 and is 2; write that back/],
    ["without checkpoints", (folder: string) => rmSync(join(folder, "checkpoints"), { recursive: true }), /the checkpoints of the run are not there any more/],
    ["with an empty folder of checkpoints", emptied, /the checkpoints of the run are not there any more/],
  ])("is not resumed %s, and nothing in it changes", async (_what, change, message) => {
    const folder = await stopped();
    change(folder);
    const before = snapshot(folder);
    await expect(again(folder)).rejects.toThrow(message);
    expect(snapshot(folder)).toEqual(before);
    expect(readdirSync(folder)).not.toContain("cut");
  });

  it("goes on in a new run from the checkpoint that is named", async () => {
    const folder = await stopped();
    rmSync(join(folder, "events.jsonl"));
    expect(await train(options(`${folder}@3`))).toMatchObject({ reason: "done", steps: 6 });
  });

  it("names no folder in what it stores of its end, and goes on after it was moved", async () => {
    const folder = await stopped();
    const moved = join(scratch(), "elsewhere");
    renameSync(folder, moved);
    expect(readFileSync(join(moved, "events.jsonl"), "utf8")).not.toContain(folder);
    rmSync(join(moved, "rollouts/columns"), { recursive: true });
    file(join(moved, "checkpoints/.new-00000004"), "a file in the way");
    expect(await again(moved)).toMatchObject({ reason: "done", steps: 6, folder: moved });
    expect(readFileSync(join(moved, "events.jsonl"), "utf8")).not.toContain(dirname(moved));
  });

  it("names no folder in the error that it stores either", async () => {
    const run = options(model, {
      onProgress: (progress) => progress.kind === "step" && progress.step === 1 && rmSync(`${run.out}/rollouts`, { recursive: true }),
    });
    await expect(train(run)).rejects.toThrow(run.out);
    const text = readFileSync(join(run.out, "events.jsonl"), "utf8");
    expect(text).toContain('"reason":"error"');
    expect(text).not.toContain(run.out);
  });
});

describe("the model that a run began with", () => {
  it("is not needed to go on: the policy and roles that change are in the checkpoint", async () => {
    const start = join(scratch(), "start");
    cpSync(model, start, { recursive: true });
    const method = { name: "grpo", options: { kl_coef: 0.01 } };
    const roles = { reference: { average: { of: "policy", decay: 0.9 } } };
    const folder = await stopped({ model: start, method, roles });
    const twin = join(scratch(), "twin");
    cpSync(folder, twin, { recursive: true });
    await again(twin);
    rmSync(start, { recursive: true });
    const messages: string[] = [];
    expect(await again(folder, messages)).toMatchObject({ reason: "done", steps: 6 });
    expect(messages.join(" ")).not.toContain("not byte-exact");
    expect(snapshot(folder)).toEqual(snapshot(twin));
  });

  it("is needed where a role stays as it is, which is said", async () => {
    const start = join(scratch(), "start");
    cpSync(model, start, { recursive: true });
    const folder = await stopped({ model: start, method: { name: "grpo", options: { kl_coef: 0.01 } } });
    rmSync(start, { recursive: true });
    await expect(again(folder)).rejects.toThrow(
      `role reference: there is no folder ${start} any more, and a checkpoint does not hold what stays as it is; put the folder back`,
    );
  });
});

describe("a task whose problems differ each time", () => {
  const sentence =
    /it gives other problems each time it is asked with the same seed, so no run of it could be resumed; draw with the random numbers that `draw` is given/;
  const draw = (body: string) =>
    defineTask({
      name: "loose",
      draw: () => ({ prompt: body === "" ? "" : String(Math.floor(Math.random() * 1e6)), answer: "1" }),
      verify: () => true,
      maxTokens: 3,
      tokenizer,
    });

  it("is refused before any work when it draws with Math.random()", async () => {
    await expect(train(options(model, { task: draw("random")() }))).rejects.toThrow(sentence);
  });

  it("or when its rows do", async () => {
    const rows = () => Array.from({ length: 8 }, (_, i) => ({ prompt: `${i}${Math.floor(Math.random() * 1e6)}`, answer: "1", split: "train" as const }));
    const task = defineTask({ name: "loose", rows, verify: () => true, maxTokens: 3, tokenizer });
    await expect(train(options(model, { task: task() }))).rejects.toThrow(sentence);
  });

  it("or when its module draws a number while it is loaded", async () => {
    const { task } = ownTask(
      "true",
      "const salt = Math.floor(Math.random() * 1e9); const draw = (random: { int(n: number): number }) => ({ prompt: String(salt + random.int(1000)), answer: '1' });",
    );
    await expect(train(options(model, { task }))).rejects.toThrow(sentence);
  });
});

function twice(path: string): void {
  const lines = readFileSync(path, "utf8").split("\n");
  writeFileSync(path, lines.toSpliced(2, 0, lines[2] as string).join("\n"));
}

function edit(folder: string, from: string, to: string): void {
  const path = join(folder, "run.json");
  writeFileSync(path, readFileSync(path, "utf8").replace(from, to));
}

function emptied(folder: string): void {
  for (const name of readdirSync(join(folder, "checkpoints"))) rmSync(join(folder, "checkpoints", name), { recursive: true });
}
