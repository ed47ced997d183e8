/** GGUF files as folders: the same model as the one they were made from, in every number and with its tokenizer. */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import { close } from "../../../test/support/loaded-model.js";
import { plainContext } from "../../core/problem.js";
import { loadTokenizer } from "../../tokenizers/load.js";
import { parseModelConfig } from "../onnx/config.js";
import { OnnxEngine } from "../onnx/engine.js";
import { loadFolder } from "../onnx/folder.js";
import { SafetensorsFile } from "../safetensors.js";
import { convertGguf } from "./convert.js";
import { headsInHalves } from "./names.js";

const models = ["llama-f32", "llama-f16", "llama-q8_0", "llama-q4_0", "llama-q4_1", "llama-mixed", "qwen2-q8_0"];

interface Expected {
  readonly hugging_face_config: { readonly [key: string]: never };
  readonly sequences: { readonly ids: number[] }[];
}

describe.each(models)("%s.gguf as a folder", (name) => {
  const folder = join(mkdtempSync(join(tmpdir(), "gguf-")), "model");
  const expected = JSON.parse(readFileSync(fixture("gguf", `${name}.expected.json`), "utf8")) as Expected;

  it("is the model it was made from: its shape, and its log-probs", async () => {
    await convertGguf(fixture("gguf", `${name}.gguf`), folder);
    const { config } = await loadFolder(folder);
    const { eosIds, bosId, padId, initializerRange, ...shape } = parseModelConfig(expected.hugging_face_config, "expected");
    expect(config).toMatchObject(shape);
    const arrays = await SafetensorsFile.open(fixture("gguf", `${name}.expected.safetensors`));
    const engine = await OnnxEngine.create({ threads: 1 });
    try {
      await engine.weights.load({ role: "policy", source: { from: "folder", path: folder }, trainable: false });
      const sequences = expected.sequences.filter(({ ids }) => ids.length > 1);
      const scores = await engine.score(
        sequences.map(({ ids }) => ({
          context: plainContext(ids.slice(0, 1)),
          response: Int32Array.from(ids.slice(1)),
          weights: { role: "policy" },
          temperature: 1,
        })),
      );
      for (const [s] of sequences.entries()) close(scores[s].logp, await arrays.readFloat64(`logp.s${s}`), 1e-4);
    } finally {
      await engine.close();
      await arrays.close();
    }
  });

  it("has its tokenizer with the chat template", async () => {
    const tokenizer = await loadTokenizer(folder);
    const original = await loadTokenizer(fixture("tokenizer", "chatml"));
    const { texts } = JSON.parse(readFileSync(fixture("tokenizer", "chatml", "expected.json"), "utf8")) as { texts: { text: string }[] };
    for (const { text } of texts) expect([...tokenizer.encode(text)]).toEqual([...original.encode(text)]);
    expect(tokenizer.eosIds[0]).toBe(original.eosIds[0]);
    const messages = [{ role: "user" as const, content: "Hi <|im_end|>" }];
    expect([...tokenizer.render(messages, { addGenerationPrompt: true })]).toEqual([...original.render(messages, { addGenerationPrompt: true })]);
  });
});

it("rows of a head that lie interleaved become halves", () => {
  // Two heads of four rows and one column: rows 0 1 2 3 of a head go to 0 2 1 3.
  expect([...headsInHalves(Float32Array.of(0, 1, 2, 3, 10, 11, 12, 13), 2, 1)]).toEqual([0, 2, 1, 3, 10, 12, 11, 13]);
});
