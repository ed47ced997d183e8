/** Models as ONNX folders, run by transformers.js: the greedy tokens of our own sampler. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AutoModelForCausalLM, AutoTokenizer, env, Tensor } from "@huggingface/transformers";
import { describe, expect, it } from "vitest";
import { fixture } from "../../test/paths.js";
import { modelFolder } from "../../test/support/model-folder.js";
import { plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import { convertGguf } from "../engine/gguf/convert.js";
import { OnnxEngine } from "../engine/onnx/engine.js";
import { loadTokenizer } from "../tokenizers/load.js";
import { exportOnnx } from "./onnx.js";
import { openModel } from "./source.js";

// Folders of this machine alone.
env.allowRemoteModels = false;
env.localModelPath = "/";

async function exported(folder: string): Promise<string> {
  const model = await openModel(folder);
  const target = join(mkdtempSync(join(tmpdir(), "onnx-")), "model");
  try {
    await exportOnnx(model, target);
  } finally {
    await model.close();
  }
  return target;
}

const newTokens = 24;

/** The most likely tokens after each prompt, until an end token. */
async function ours(folder: string, prompts: readonly number[][]): Promise<number[][]> {
  const engine = await OnnxEngine.create({ threads: 1 });
  try {
    const { eosIds } = await loadTokenizer(folder);
    await engine.weights.load({ role: "policy", source: { from: "folder", path: folder }, trainable: false });
    const requests = prompts.map((ids) => ({
      context: plainContext(ids),
      weights: { role: "policy" },
      temperature: 1,
      greedy: true,
      maxTokens: newTokens,
      stop: { ids: eosIds },
      key: randomKey({ seed: 1, purpose: "sample" }),
    }));
    const answers: number[][] = [];
    for await (const { index, ids } of engine.sample(requests)) answers[index] = [...ids];
    return answers;
  } finally {
    await engine.close();
  }
}

/** The same by transformers.js, all prompts in one batch that is padded on the left. */
async function theirs(folder: string, prompts: readonly number[][]): Promise<number[][]> {
  const model = await AutoModelForCausalLM.from_pretrained(folder, { dtype: "fp32" });
  try {
    const width = Math.max(...prompts.map((ids) => ids.length));
    const tensor = (row: (ids: readonly number[]) => number[]): Tensor =>
      new Tensor("int64", BigInt64Array.from(prompts.flatMap(row), BigInt), [prompts.length, width]);
    const padding = (ids: readonly number[], value: number): number[] => Array.from({ length: width - ids.length }, () => value);
    const inputs = {
      input_ids: tensor((ids) => [...padding(ids, 1), ...ids]),
      attention_mask: tensor((ids) => [...padding(ids, 0), ...ids.map(() => 1)]),
    };
    const output = (await model.generate({ ...inputs, max_new_tokens: newTokens, do_sample: false })) as Tensor;
    return (output.tolist() as bigint[][]).map((ids) => ids.slice(width).map(Number));
  } finally {
    await model.dispose();
  }
}

const models = [
  { folder: "llama-tied" },
  { folder: "smollm" },
  { folder: "qwen2" },
  { folder: "qwen3" },
  { folder: "qwen3-bf16-sharded" },
  { folder: "llama-f16" },
  { folder: "llama-rope", config: "configs/linear.json" },
  { folder: "llama-rope", config: "configs/yarn-untruncated.json" },
  { folder: "llama-rope", config: "configs/llama3.json" },
];

describe.each(models)("$folder $config in transformers.js", (which) => {
  it("gives the same greedy tokens, alone and in a padded batch", async () => {
    const folder = modelFolder(which);
    const target = await exported(folder);
    const prompts = [[5, 9, 7, 30, 12, 41, 8], [6, 11, 13], [7]];
    const want = await ours(folder, prompts);
    expect(want.map((ids) => ids.length).reduce((a, b) => a + b)).toBeGreaterThan(3 * prompts.length);
    const same = (got: readonly number[], ids: readonly number[]): void => expect(got.slice(0, ids.length)).toEqual(ids);
    for (const [i, got] of (await theirs(target, prompts)).entries()) same(got, want[i] as number[]);
    const [alone] = await theirs(target, prompts.slice(0, 1));
    expect(alone).toEqual(want[0]);
  });
});

describe("the tokenizer in an ONNX folder", () => {
  it("renders the same ids of a chat in transformers.js", async () => {
    const folder = join(mkdtempSync(join(tmpdir(), "onnx-")), "model");
    await convertGguf(fixture("gguf", "llama-f32.gguf"), folder);
    const [ours, theirs] = [await loadTokenizer(folder), await AutoTokenizer.from_pretrained(await exported(folder))];
    const chat = [{ role: "user" as const, content: "What is 12 + 30? " }];
    const ids = theirs.apply_chat_template(chat, { add_generation_prompt: true, return_tensor: false, return_dict: false });
    expect(ids).toEqual([...ours.render(chat, { addGenerationPrompt: true })]);
  });

  it("of an alphabet renders its ids", async () => {
    const folder = modelFolder({ folder: "llama-tied" });
    const [ours, theirs] = [await loadTokenizer(folder), await AutoTokenizer.from_pretrained(await exported(folder))];
    const chat = [
      { role: "user" as const, content: "110+0\né1" },
      { role: "assistant" as const, content: "10" },
    ];
    const ids = theirs.apply_chat_template(chat, { add_generation_prompt: true, return_tensor: false, return_dict: false });
    expect(ids).toEqual([...ours.render(chat, { addGenerationPrompt: true })]);
    expect(theirs.decode([5, 7, 10, 9], { skip_special_tokens: true })).toBe("010é\n");
  });
});
