import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { type DecoderConfig, parseModelConfig, toGenerationConfig, toHuggingFaceConfig, withGeneration } from "./config.js";

type Fields = { [key: string]: Json };
const json = (...parts: string[]): Fields => JSON.parse(readFileSync(fixture("models", ...parts), "utf8"));
const tied = json("llama-tied", "config.json");

describe("parseModelConfig", () => {
  it("reads the newer spelling", () => {
    expect(parseModelConfig(tied, "config.json")).toEqual({
      family: "llama",
      layers: 2,
      width: 48,
      heads: 4,
      kvHeads: 2,
      headDim: 12,
      mlp: 80,
      vocabulary: 97,
      ropeTheta: 10000,
      rope: { kind: "default" },
      rmsEpsilon: 1e-6,
      tied: true,
      maxPositions: 128,
      attentionBias: false,
      qkNorm: false,
      initializerRange: 0.02,
      eosIds: [2],
      bosId: 1,
    } satisfies DecoderConfig);
  });

  it("reads the older spelling: rope_theta, rope_scaling null, no head_dim", () => {
    const config = parseModelConfig(json("smollm", "config.json"), "config.json");
    expect(config).toMatchObject({ ropeTheta: 100000, headDim: 6, heads: 9, kvHeads: 3, rmsEpsilon: 1e-5, tied: true });
  });

  it("reads both spellings of one model alike", () => {
    const newer = parseModelConfig(json("llama-rope", "configs", "default.json"), "a");
    expect(parseModelConfig(json("llama-rope", "configs", "default.old.json"), "b")).toEqual(newer);
  });

  it("takes a head_dim that is not width / heads, and every id that ends a text", () => {
    expect(parseModelConfig({ ...tied, head_dim: 20, eos_token_id: [5, 6], pad_token_id: 0 }, "c")).toMatchObject({ headDim: 20, eosIds: [5, 6], padId: 0 });
  });

  it("fills in what may be absent", () => {
    const { num_key_value_heads, rms_norm_eps, tie_word_embeddings, initializer_range, eos_token_id, bos_token_id, architectures, ...rest } = tied;
    const config = parseModelConfig({ ...rest, head_dim: null }, "c");
    expect(config).toMatchObject({ family: "llama", kvHeads: 4, headDim: 12, rmsEpsilon: 1e-6, tied: false, initializerRange: 0.02, eosIds: [] });
    expect(config).not.toHaveProperty("bosId");
  });

  it.each(["linear", "dynamic", "yarn", "yarn-untruncated", "llama3"])("reads the rotary embedding of %s alike in both spellings", (kind) => {
    const newer = parseModelConfig(json("llama-rope", "configs", `${kind}.json`), "a");
    expect(newer.rope.kind).toBe(kind.split("-")[0]);
    expect(parseModelConfig(json("llama-rope", "configs", `${kind}.old.json`), "b")).toEqual(newer);
    expect(parseModelConfig(toHuggingFaceConfig(newer), "c").rope).toEqual(newer.rope);
  });

  it.each(["qwen2", "qwen3"])("reads %s with what sets it apart", (family) => {
    const config = parseModelConfig(json(family, "config.json"), "a");
    expect(config).toMatchObject({ family, attentionBias: family === "qwen2", qkNorm: family === "qwen3", headDim: family === "qwen2" ? 14 : 16 });
  });

  const faults: [what: string, change: Fields, says: RegExp][] = [
    [
      "an unknown architecture",
      { architectures: ["MambaForCausalLM"] },
      /the architecture MambaForCausalLM is not known; use a model of LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM/,
    ],
    ["an unknown model type", { architectures: null, model_type: "rwkv" }, /the architecture rwkv is not known/],
    ["a missing size", { hidden_size: null }, /hidden_size is missing/],
    ["a size that is no number", { hidden_size: "48" }, /hidden_size is "48"; give a positive number/],
    ["a fraction", { num_hidden_layers: 1.5 }, /num_hidden_layers is 1.5; give a whole number/],
    ["heads that do not divide", { num_key_value_heads: 3 }, /4 query heads cannot share 3 key heads/],
    ["a width that does not divide", { head_dim: null, hidden_size: 50 }, /hidden_size 50 is not a multiple of 4 heads; give head_dim/],
    ["an odd head", { head_dim: 11 }, /head_dim is 11; make it even/],
    ["another activation", { hidden_act: "gelu" }, /hidden_act is "gelu"/],
    ["biases", { attention_bias: true }, /attention_bias is true/],
    ["quantised weights", { quantization_config: { bits: 4 } }, /quantization_config is \{"bits":4\}/],
    ["an end token outside of the vocabulary", { eos_token_id: [2, 97] }, /eos_token_id has 97, outside the vocabulary of 97/],
    ["a flag that is none", { tie_word_embeddings: "yes" }, /tie_word_embeddings is "yes"; give true or false/],
  ];
  it.each(faults)("refuses %s", (_, change, says) => {
    const error = (() => {
      try {
        return parseModelConfig({ ...tied, ...change }, "there/config.json");
      } catch (e) {
        return e;
      }
    })();
    expect(error).toBeInstanceOf(ModelError);
    expect((error as ModelError).message).toMatch(says);
    expect((error as ModelError).message).toMatch(/^there\/config\.json/);
  });

  it("refuses what is no object", () => {
    expect(() => parseModelConfig([], "c")).toThrow(/c: it is not a JSON object/);
  });
});

describe("writing a configuration", () => {
  it.each(["llama-tied", "smollm", "llama-rope", "llama-f16", "qwen2", "qwen3", "qwen3-bf16-sharded"])("of %s is read back as it was", (folder) => {
    const generation = json(folder, "generation_config.json");
    const config = withGeneration(parseModelConfig(json(folder, "config.json"), "a"), generation, "b");
    expect(config).toMatchObject({ eosIds: [2, 3], bosId: 1, padId: 0 });
    const back = withGeneration(parseModelConfig(toHuggingFaceConfig(config), "c"), toGenerationConfig(config), "d");
    expect(back).toEqual(config);
  });

  it("names no padding id in config.json, whose embedding transformers would not train", () => {
    const config = parseModelConfig({ ...tied, pad_token_id: 2 }, "a");
    expect(config.padId).toBe(2);
    expect(toHuggingFaceConfig(config).pad_token_id).toBeNull();
    expect(toGenerationConfig(config).pad_token_id).toBe(2);
  });
});
