/** What cannot be meant is refused in one sentence, before any folder of a run is made. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { options, scratch, tablePolicy, tokenizer } from "../../test/support/tabular.js";
import { TouchstoneError } from "../core/errors.js";
import { defineTask } from "../tasks/define.js";
import { readConfigFile } from "./config-file.js";
import { RunReader } from "./store/reader.js";
import { type TrainOptions, train } from "./train.js";

let model: string;
const folder = scratch();
beforeAll(async () => {
  model = await tablePolicy({ maxTokens: 16 });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}
const line = (row: object): string => `${JSON.stringify(row)}\n`;
const good = Array.from({ length: 8 }, (_, i) => line({ prompt: `${i}`, answer: i, id: i }));
const data = (name: string, text: string, more: object = {}): Partial<TrainOptions> => ({
  task: undefined,
  data: { file: file(name, text), ...more },
  verifier: "number",
  max_tokens: 3,
});
const prompts = (...texts: readonly string[]) =>
  defineTask({
    name: "texts",
    rows: () => texts.map((prompt) => ({ prompt, answer: "1", split: "train" as const })),
    verify: () => true,
    maxTokens: () => 3,
    tokenizer: () => tokenizer,
  })();

const cases: readonly [string, () => Partial<TrainOptions>, string][] = [
  ["an unknown option", () => ({ stpes: 5 }) as never, 'train, option stpes: there is no such option; did you mean "steps"?'],
  ["an unknown option further in", () => ({ eval: { evry: 5 } }) as never, 'train, option eval.evry: there is no such option; did you mean "every"?'],
  ["a value of a wrong type", () => ({ steps: "many" }) as never, 'train, option steps: got the text "many"; give a whole number of at least 1'],
  ["no model", () => ({ model: undefined }) as never, "train, option model: it is missing; give a text that is not empty"],
  ["a model that is not there", () => ({ model: "/nowhere/at/all" }), "model /nowhere/at/all: there is no such folder; give the folder of a model or of a run"],
  ["nothing to train on", () => ({ task: undefined }), "task: there is nothing to train on; give a task, or data with a verifier"],
  ["a task and a file", () => ({ ...data("both.jsonl", good.join("")), task: "chain" }), "task, data: both are given; train on one of them"],
  ["an unknown task", () => ({ task: "chian" }), 'task: there is no task "chian"; did you mean "chain"?, or give the path of a module that exports one'],
  ["a task module that is not there", () => ({ task: "./nothing.ts" }), "there is no file"],
  ["an unknown method", () => ({ method: "gpro" }), 'method: there is no method "gpro"; did you mean "grpo"?'],
  [
    "an unknown option of a method",
    () => ({ method: { name: "grpo", options: { clip_hihg: 0.3 } } }),
    'method grpo, option clip_hihg: there is no such option; did you mean "clip_high"?',
  ],
  ["one method twice", () => ({ method: ["grpo", "grpo"] }), "method grpo+grpo: grpo is named twice; leave one of the two out"],
  ["a group of one", () => ({ group: 1 }), "group: it is 1, and GRPO compares the answers to one problem with each other"],
  ["more problems a batch than there are", () => ({ problems: 13 }), "problems: a batch takes 13 different problems, and there are 12; set it to at most 12"],
  [
    "a file without a verifier",
    () => ({ ...data("plain.jsonl", good.join("")), verifier: undefined }),
    "verifier: it is missing, and a file does not say how its answers are compared",
  ],
  [
    "an unknown verifier",
    () => ({ ...data("plain.jsonl", good.join("")), verifier: "numbr" }),
    'verifier: there is no verifier "numbr"; did you mean "number"?',
  ],
  [
    "a file without a response budget",
    () => ({ ...data("plain.jsonl", good.join("")), max_tokens: undefined }),
    "max_tokens: it is missing, and plain.jsonl does not say how long an answer may be",
  ],
  [
    "a file that is not there",
    () => ({ ...data("plain.jsonl", ""), data: { file: join(folder, "none.jsonl") } }),
    "none.jsonl: there is no such file; check the path",
  ],
  ["an empty file", () => data("empty.jsonl", ""), "empty.jsonl: it is empty; give a file with one JSON object a line"],
  [
    "a line that is not JSON",
    () => data("broken.jsonl", `${good[0]}{"prompt": \n`),
    "broken.jsonl: 1 of 2 lines cannot be used (line 2, column 12: it is not JSON: it ends before })",
  ],
  [
    "a missing column",
    () => data("column.jsonl", line({ promt: "1", answer: 1 })),
    'column.jsonl: 1 of 1 lines cannot be used (line 1: it has no column "prompt" (did you mean "promt"?))',
  ],
  ["a key twice", () => data("keys.jsonl", good[0] + line({ prompt: "7", answer: 1, id: 0 }), { key_column: "id" }), 'line 2: it has the key "0" of line 1'],
  ["a prompt twice", () => data("twice.jsonl", `${good[0]}${good[0]}`), "line 2: it has the prompt of line 1"],
  [
    "a reference that its verifier cannot read",
    () => data("reference.jsonl", line({ prompt: "1", answer: "one" })),
    "line 1: its answer is refused by the verifier number",
  ],
  [
    "a line of 17 MB",
    () => data("long.jsonl", "x".repeat(17 * 2 ** 20)),
    "long.jsonl, line 1: it is longer than 16 MB; give a file with one JSON object a line",
  ],
  ["a prompt that has no tokens", () => ({ task: prompts("1", "2", "a", "4") }), "has no tokens in this model"],
  [
    "a prompt that is too long",
    () => ({ task: prompts("1", "2", "3", "4", "123456789012") }),
    "its prompt has 14 tokens and at most 13 fit beside 3 for the response (1 of 5 prompts are too long); lower max_tokens, or set long_prompts to skip or truncate",
  ],
  [
    "a response budget without room for a prompt",
    () => ({ max_tokens: 16 }),
    "max_tokens: the response budget of 16 leaves no place for a prompt in the model's 16 tokens; set it below 16",
  ],
  ["evaluation without problems", () => ({ task: prompts("1", "2", "3", "4"), eval: { every: 1 } }), "no problem is held out for evaluation"],
  [
    "evaluation on what is trained on",
    () => ({ ...data("plain.jsonl", good.join("")), eval: { every: 1, data: { file: join(folder, "plain.jsonl") } } }),
    "eval: 8 of its 8 problems are trained on too",
  ],
  [
    "a reference that nothing reads",
    () => ({ roles: { reference: { model } } }),
    "roles.reference: no part of grpo reads it; leave it out, or turn on what reads it",
  ],
  [
    "workers for a verifier that is a function",
    () => ({ verifier_workers: 2 }),
    "verifier_workers: it is 2, and the verifier successor is a function of this program",
  ],
  ["a warm-up longer than the run", () => ({ schedule: { kind: "cosine", warmup: 6 } }), "schedule.warmup: it is 6, and the run has 6 updates; set it below 6"],
  [
    "several processes of the engine table",
    () => ({ engine: { name: "table", workers: 2 } }),
    "engine.workers: it is 2, and the engine table runs in this process; set it to 1",
  ],
  ["a folder that holds something else", () => ({ out: folder }), "it holds other files; give a new or empty folder"],
];

describe("refused before training starts", () => {
  it.each(cases)("%s", async (_, make, sentence) => {
    const run = options(model, make());
    const error = await train(run).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(TouchstoneError);
    expect((error as Error).message).toContain(sentence);
    expect((error as Error).message).not.toContain("\n");
    expect(existsSync(join(run.out, "run.json"))).toBe(false);
  });

  it("prompts that are too long may be skipped or cut at their beginning, and are counted", async () => {
    for (const [long_prompts, skipped, truncated] of [
      ["skip", 1, 0],
      ["truncate", 0, 1],
    ] as const) {
      const run = options(model, { task: prompts("1", "2", "3", "4", "123456789012"), long_prompts, steps: 1 });
      await train(run);
      const [start] = [...RunReader.open(run.out).events()];
      expect(start?.data).toMatchObject({ prompts_skipped: skipped, prompts_truncated: truncated, problems: 5 - skipped });
    }
  });

  it("bad lines may be left out, and are told", async () => {
    const messages: string[] = [];
    const run = options(model, { ...data("some.jsonl", `${good.join("")}{}\n`, { bad_rows: "skip" }), steps: 1 });
    await train({ ...run, onProgress: (progress) => progress.kind === "message" && messages.push(progress.text) });
    expect(messages.join()).toContain("1 lines of");
    expect(messages.join()).toContain('(the first: line 9: it has no column "prompt"');
  });
});

describe("configuration files", () => {
  it("are YAML, JSON or modules, with paths from their own folder", async () => {
    const yaml = file("conf/run.yaml", "model: ../starter\nout: /runs/a\ntask: {name: ./task.ts}\neval: {every: 5, data: {file: held.jsonl}}\n");
    expect(await readConfigFile(yaml)).toEqual({
      model: join(folder, "starter"),
      out: "/runs/a",
      task: { name: join(folder, "conf/task.ts") },
      eval: { every: 5, data: { file: join(folder, "conf/held.jsonl") } },
    });
    expect(await readConfigFile(file("run.json", '{"task": "chain", "steps": 3}'))).toEqual({ task: "chain", steps: 3 });
    expect(await readConfigFile(file("run.ts", "const steps: number = 4;\nexport default { steps };\n"))).toEqual({ steps: 4 });
  });

  it("may hold a task, with `touchstone-rl` meaning the copy that runs", async () => {
    const path = file(
      "own/run.ts",
      `import { defineTask } from "touchstone-rl";
       const task = defineTask({ name: "own", draw: (random) => ({ prompt: String(random.int(50)), answer: "1" }), verify: ({ response }: { response: string }) => response.includes("1"), maxTokens: () => 3 });
       export default { task: task(), steps: 1, group: 4 };`,
    );
    const written = (await readConfigFile(path)) as Partial<TrainOptions>;
    expect(await train(options(model, written))).toMatchObject({ reason: "done", steps: 1 });
  });

  it("are refused by line and column, by kind, and when they hold nothing", async () => {
    await expect(readConfigFile(file("bad.yaml", "model: a\neval: {every: 3\n"))).rejects.toThrow(
      /bad.yaml, line [23], column \d+: .*; correct the text there/,
    );
    await expect(readConfigFile(file("run.toml", ""))).rejects.toThrow('files of the kind ".toml" are not read; give a .yaml, .json or .ts file');
    await expect(readConfigFile(file("empty.yaml", "# nothing\n"))).rejects.toThrow("it holds nothing; write options");
    await expect(readConfigFile(file("list.json", "[1]"))).rejects.toThrow("it is a list, not an object of options");
    await expect(readConfigFile(join(folder, "none.yaml"))).rejects.toThrow("there is no such file; check the path");
  });
});
