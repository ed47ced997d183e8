/** `touchstone eval` and `touchstone sample` with a real engine: a random policy of 100,000 parameters, and a run of two such. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { meta, quickFiles } from "../../test/support/run-writer.js";
import { command } from "../../test/support/touchstone.js";
import { saveAlphabet } from "../core/alphabet.js";
import { TouchstoneError } from "../core/errors.js";
import { startOnnx } from "../engine/onnx/start.js";
import { readStore } from "../evaluate/store.js";
import { chain } from "../tasks/chain/chain.js";
import { policyConfig } from "../train/starter.js";
import { RunStore } from "../train/store/store.js";
import { runProgram } from "./program.js";

let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "touchstone-eval-"));
  const tokenizer = chain().tokenizer!;
  const engine = await startOnnx({ engine: { threads: 1 } });
  const store = RunStore.create(at("run"), meta, { files: quickFiles });
  for (const step of [1, 2]) {
    await engine.weights.load({ role: "policy", trainable: true, source: { from: "config", config: policyConfig("100k", tokenizer, 128), seed: step } });
    const saveWeights = async (path: string): Promise<void> => {
      await engine.weights.save({ role: "policy" }, path);
      await saveAlphabet(tokenizer, path);
    };
    if (step === 1) await saveWeights(at("model"));
    await store.checkpoint({ step, state: {}, saveWeights, saveOptimizer: (file) => engine.weights.saveOptimizer("role:policy", file), score: 1 / step });
  }
  store.close();
  await engine.close();
  await writeFile(at("prompts.jsonl"), ["1+2", "3*4-5", "6-7", "8+9*10"].map((prompt, id) => `${JSON.stringify({ id, prompt, answer: "?" })}\n`).join(""));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What a command prints on stdout, in this process. */
async function printed(...args: string[]): Promise<string> {
  let out = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += text;
    return true;
  });
  try {
    await runProgram(args);
  } finally {
    write.mockRestore();
  }
  return out;
}

const light = ["--threads", "1", "--verifier-workers", "0"];

describe("touchstone eval", () => {
  it("finds right what a checkpoint says when just that is the answer, for the same seed alone, and another checkpoint wrong", async () => {
    const exact = [
      "--verifier",
      "exact",
      "--verifier-options",
      '{"truncated": "read"}',
      "--max-tokens",
      "12",
      "--data-options",
      '{"key_column": "id", "bad_rows": "skip"}',
    ];
    const lines = await printed("sample", `${at("run")}@first`, "--data", at("prompts.jsonl"), ...exact, ...light, "--json");
    const rollouts = lines
      .trim()
      .split("\n")
      .map(
        (line) =>
          JSON.parse(line) as { problem: { key: string; prompt: { content: string }[] }; text: string; stop: string; ids: number[]; verdict: { kind: string } },
      );
    expect(rollouts).toHaveLength(4);
    expect(rollouts.every(({ verdict, ids }) => verdict.kind === "reject" && ids.length <= 40)).toBe(true);
    await writeFile(
      at("answers.jsonl"),
      rollouts.map(({ problem, text }) => `${JSON.stringify({ id: problem.key, prompt: problem.prompt[0]!.content, answer: text })}\n`).join(""),
    );
    const pass = async (model: string, ...more: string[]): Promise<number> =>
      JSON.parse(await printed("eval", model, "--data", at("answers.jsonl"), ...exact, ...light, ...more, "--json")).metrics["pass@1"].value;
    // What was cut off at the budget is no answer, even if it is the reference.
    const told = rollouts.filter(({ text }) => text.trim() !== "");
    const right = told.filter(({ stop }) => stop === "eos").length / told.length;
    expect(right).toBeGreaterThan(0);
    expect(await pass(at("model"))).toBe(right);
    expect(await pass(`${at("run")}@best`)).toBe(right);
    expect(await pass(at("run"))).toBeLessThan(right);
    expect(await pass(at("model"), "--seed", "1")).toBeLessThan(right);
  });

  it("prints a table with n and k, keeps the samples, and computes other numbers from them", async () => {
    const program = [...command, "eval", at("model")];
    const drawn = await run(process.execPath, [...program, "--task", "chain", "--n-problems", "6", "--n", "4", "--k", "1,4", "--store", at("samples")], {
      cwd: repository,
    });
    expect(drawn.code).toBe(0);
    expect(drawn.out).toMatch(/^metric +value +95 % interval +by +k +n +problems\n(.*\n)?avg@4 /m);
    for (const start of [/^pass@1 .* 1 +4 +6$/m, /^pass@4 .* 4 +4 +6$/m, /^maj@4 .* 4 +4 +6$/m, /^24 samples: /m, /^problems +6 of chain, split eval$/m])
      expect(drawn.out).toMatch(start);
    const { meta: said, samples, problems } = await readStore(at("samples"));
    expect(said).toMatchObject({ samples: 24, problems: 6, decoder: { n: 4, temperature: 1, maxTokens: 33 }, seed: 0, task: { name: "chain", split: "eval" } });
    expect(problems.map(({ key }) => key)).toEqual(
      chain()
        .problems("eval", 6, 0)
        .map(({ key }) => key),
    );
    const read = JSON.parse(await printed("eval", "--store", at("samples"), "--k", "2", "--json"));
    expect(Object.keys(read.metrics)).toEqual(["avg@4", "pass@2", "maj@2"]);
    expect(read).toMatchObject({ samples: 24, tokens: { total: samples.reduce((sum, { ids }) => sum + ids.length, 0) } });
    const again = JSON.parse(await printed("eval", "--store", at("samples"), "--verifier", "exact", "--verifier-workers", "0", "--json"));
    expect(again.verifier).toMatch(/^exact:/);
  });

  it("draws from the most likely tokens where it is told to, keeps the rules with the samples, and one token left is the greedy one", async () => {
    const asked = ["--task", "chain", "--n-problems", "4", ...light];
    const store = async (name: string, ...more: string[]) => {
      const text = await printed("eval", at("model"), ...asked, ...more, "--store", at(name));
      return { text, ...(await readStore(at(name))) };
    };
    const restricted = await store("restricted", "--n", "3", "--top-k", "8", "--top-p", "0.6", "--min-p", "0.1", "--temperature", "0.9");
    expect(restricted.meta.decoder).toEqual({ n: 3, temperature: 0.9, greedy: false, maxTokens: 33, truncation: { topK: 8, topP: 0.6, minP: 0.1 } });
    expect(restricted.text).toContain("temperature 0.9, top-k 8, top-p 0.6, min-p 0.1, at most 33 tokens");
    // Raw log-probs are of the whole distribution, so each token of a part of it has less.
    for (const { logp, rawLogp } of restricted.samples) expect(logp).toBeGreaterThan(rawLogp ?? 0);
    const texts = ({ samples }: typeof restricted) => samples.map(({ text, rawLogp }) => [text, rawLogp]);
    const greedy = texts(await store("greedy", "--greedy"));
    expect(texts(await store("one", "--top-k", "1"))).toEqual(greedy);
    expect(texts(await store("free"))).not.toEqual(greedy);
    const [line] = (await printed("sample", at("model"), "--prompt", "1", "--top-p", "0.5", "--max-tokens", "4", ...light, "--json")).split("\n");
    expect(JSON.parse(line as string).decoder).toEqual({ n: 1, temperature: 1, greedy: false, maxTokens: 4, truncation: { topP: 0.5 } });
  });

  it.each<[string, string[], string]>([
    ["a top-p of 0", ["eval", "MODEL", "--task", "chain", "--top-p", "0"], 'option --top-p: got "0"; give a number above 0, at most 1'],
    ["a min-p above 1", ["sample", "MODEL", "--task", "chain", "--min-p", "1.5"], 'option --min-p: got "1.5"; give a number from 0 to 1'],
    ["a top-k of 0", ["eval", "MODEL", "--task", "chain", "--top-k", "0"], 'option --top-k: got "0"; give a whole number of at least 1'],
    [
      "a restricted draw beside --greedy",
      ["eval", "MODEL", "--task", "chain", "--greedy", "--top-p", "0.9"],
      "option --top-p: the most likely token, which --greedy takes, is always kept; leave out one or the other",
    ],
    [
      "a restricted draw of training's answers",
      ["train", "--model", "MODEL", "--task", "chain", "--out", "RUN/x", "--top-p", "0.9"],
      "option --top-p: training's answers are drawn from the whole distribution, since log-probs of a restricted draw would bias the ratio; leave it out, or restrict the draws of evaluation with eval.top_p",
    ],
    ["no model and no samples", ["eval"], "touchstone eval: neither a model nor samples are named; give MODEL, or --store"],
    ["no problems", ["eval", "MODEL"], "problems: no problems are named; give one of --task NAME"],
    ["two sources of problems", ["eval", "MODEL", "--task", "chain", "--data", "x.jsonl"], "problems: --task and --data are given together"],
    ["a misspelt task", ["eval", "MODEL", "--task", "chains"], 'option --task: there is no task "chains"; did you mean "chain"?'],
    ["k above n", ["eval", "MODEL", "--task", "chain", "--n", "2", "--k", "4"], "option --k: it is 4 with --n 2; give --n of at least k"],
    ["several greedy samples", ["eval", "MODEL", "--task", "chain", "--k", "4", "--greedy"], "option --greedy: 4 samples a problem would all be the same"],
    ["a file without a verifier", ["eval", "MODEL", "--data", "x.jsonl"], "option --data: a file says the answers, not how they are compared; give --verifier"],
    ["options without a verifier", ["eval", "MODEL", "--task", "chain", "--verifier-options", "{}"], "option --verifier-options: there is no --verifier"],
    ["options that are no object", ["eval", "MODEL", "--task", "chain", "--task-options", "[1]"], 'option --task-options: got "[1]"; give an object in JSON'],
    [
      "an option that does nothing here",
      ["eval", "MODEL", "--task", "chain", "--data-options", "{}"],
      "option --data-options: it goes with --data, not with --task",
    ],
    ["a temperature of 0", ["eval", "MODEL", "--task", "chain", "--temperature", "0"], 'option --temperature: got "0"; give a number above 0'],
    ["a model that is not there", ["eval", "NONE", "--task", "chain"], "model NONE: there is no such folder; give the folder of a model or of a run"],
    ["a checkpoint of a model", ["eval", "MODEL@best", "--task", "chain"], "is no run, so it has no checkpoint best; leave @ out"],
    ["a checkpoint that is not there", ["eval", "RUN@7", "--task", "chain"], "there is no checkpoint 7; give one of 1, 2, first, last or best"],
    ["a folder that is no store", ["eval", "--store", "MODEL"], "it is no folder of samples (no meta.json: ENOENT)"],
    ["a store that exists", ["eval", "MODEL", "--task", "chain", "--store", "RUN"], "it exists; give the name of a new folder for the samples"],
    [
      "drawing options with samples that are drawn",
      ["eval", "--store", "RUN", "--temperature", "2"],
      "option --temperature: the samples of a store are drawn already",
    ],
    ["an answer nobody compares", ["sample", "MODEL", "--prompt", "1+1", "--answer", "2"], "option --answer: it needs --verifier beside --prompt"],
    ["an answer to a task", ["sample", "MODEL", "--task", "chain", "--answer", "2"], "option --answer: it goes with --prompt, not with --task"],
    ["an output that is there", ["sample", "MODEL", "--prompt", "1", "--out", "MODEL/config.json"], "config.json: it exists; give a new name, or remove it"],
    ["two outputs", ["sample", "MODEL", "--prompt", "1", "--json", "--out", "x"], "option --json: it prints what --out writes"],
  ])("refuses %s before it starts an engine", async (_, args, sentence) => {
    const real = args.map((arg) => arg.replace(/^MODEL/, at("model")).replace(/^RUN/, at("run")));
    const error = await runProgram(real).catch((thrown: unknown) => thrown);
    expect((error as Error).message).toContain(sentence);
    if (!sentence.startsWith("it ")) expect(error).toBeInstanceOf(TouchstoneError);
  });
});

describe("touchstone sample", () => {
  it("shows a prompt's responses, writes them as JSONL, and scores those with an answer", async () => {
    const shown = await printed("sample", at("model"), "--prompt", "1+2", "--prompt", "3", "--n", "2", "--max-tokens", "5", ...light);
    expect(shown.match(/^problem /gm)).toHaveLength(2);
    expect(shown.match(/^ {2}[01]: unscored \(no-reference\), [1-5] tokens, log-prob -\d+\.\d\d, ended by (eos|length)$/gm)).toHaveLength(4);
    const flags = ["--prompt", "1+2", "--answer", "3", "--verifier", "number", "--n", "3", "--max-tokens", "5"];
    const said = await printed("sample", at("model"), ...flags, ...light, "--out", at("new/rollouts.jsonl"));
    expect(said).toContain("3 responses to 1 problems are in ");
    const rollouts = (await readFile(at("new/rollouts.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rollouts.map(({ member, verdict }) => [member, ["accept", "reject"].includes(verdict.kind)])).toEqual([0, 1, 2].map((member) => [member, true]));
    expect(rollouts[0].problem.reference).toEqual({ state: "gold", answer: "3", version: 0 });
    expect((await readdir(at("new"))).filter((name) => name.includes(".part"))).toEqual([]);
  });
});
