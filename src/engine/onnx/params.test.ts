import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseModelConfig } from "./config.js";
import { layoutOf, ParameterStore, parameterCount } from "./params.js";
import { flatWeights } from "./test-engine.js";

const folder = mkdtempSync(join(tmpdir(), "params-"));
afterAll(() => rmSync(folder, { recursive: true }));

const config = parseModelConfig(
  {
    architectures: ["LlamaForCausalLM"],
    vocab_size: 40,
    hidden_size: 8,
    intermediate_size: 6,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 4,
    max_position_embeddings: 16,
    tie_word_embeddings: false,
  },
  "test",
);
const q = "model.layers.1.self_attn.q_proj.weight";
const v = "model.layers.1.self_attn.v_proj.weight";

describe("the layout", () => {
  it("has one array a tensor", () => {
    const layouts = layoutOf(config, true);
    const one = (name: string) => layouts.find((layout) => layout.name === name);
    expect(one("layers.1.q")).toMatchObject({ shape: [16, 8], parts: [{ name: q, rowStart: 0, rows: 16, shape: [16, 8] }] });
    expect(one("layers.1.v")).toMatchObject({ shape: [8, 8], parts: [{ name: v, rows: 8 }] });
    expect(one("layers.0.gate")).toMatchObject({ shape: [6, 8] });
    expect(one("layers.0.up")).toMatchObject({ shape: [6, 8] });
    expect(one("layers.0.o")).toMatchObject({ shape: [8, 16] });
    expect(one("layers.0.down")).toMatchObject({ shape: [8, 6] });
    expect(one("head")).toMatchObject({ shape: [40, 8] });
    expect(one("valueBias")).toMatchObject({ shape: [1], parts: [{ name: "value_head.bias", shape: [1] }] });
    expect(layoutOf({ ...config, tied: true }).some(({ name }) => name === "head")).toBe(false);
  });

  it("counts 2·40·8 + 2·(32·8 + 8·16 + 12·8 + 8·6 + 2·8) + 8 numbers, and 9 more with a value head", () => {
    expect(parameterCount(config)).toBe(640 + 2 * 544 + 8);
    expect(parameterCount(config, true)).toBe(parameterCount(config) + 9);
    expect(new ParameterStore(config, true).count).toBe(parameterCount(config, true));
  });

  it("gives each parameter a buffer of its own, and tensors in the order of transformers", () => {
    const store = new ParameterStore(config);
    for (const { data } of store.parameters) expect(data.buffer.byteLength).toBe(data.byteLength);
    const layer = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"];
    const layerNames = (i: number) => [...layer, "input_layernorm", "post_attention_layernorm"].map((name) => `model.layers.${i}.${name}.weight`);
    expect(store.tensors.map(({ name }) => name)).toEqual([
      "model.embed_tokens.weight",
      ...layerNames(0),
      ...layerNames(1),
      "model.norm.weight",
      "lm_head.weight",
    ]);
  });
});

describe("random weights", () => {
  it("are a function of seed and tensor name alone", () => {
    const store = ParameterStore.random(config, 7);
    expect(ParameterStore.random({ ...config, layers: 5 }, 7, true).read(q)).toEqual(store.read(q));
    expect(ParameterStore.random(config, 8).read(q)).not.toEqual(store.read(q));
    expect(store.read("model.layers.0.self_attn.q_proj.weight")).not.toEqual(store.read(q));
  });

  it("are normal with the configured deviation; norms are 1 and a value head 0", () => {
    const store = ParameterStore.random({ ...config, vocabulary: 20_000, initializerRange: 0.5 }, 3, true);
    const x = store.read("model.embed_tokens.weight").map((value) => value / 0.5);
    const moment = (k: number): number => x.reduce((sum, value) => sum + value ** k, 0) / x.length;
    // 160,000 numbers: five standard errors of the first four moments of a normal distribution.
    expect(Math.abs(moment(1))).toBeLessThan(5 / 400);
    expect(Math.abs(moment(2) - 1)).toBeLessThan((5 * Math.SQRT2) / 400);
    expect(Math.abs(moment(3))).toBeLessThan((5 * Math.sqrt(15)) / 400);
    expect(Math.abs(moment(4) - 3)).toBeLessThan((5 * Math.sqrt(96)) / 400);
    // P(|x| > 1) = 0.3173, P(|x| > 3) = 0.0027; neighbours are uncorrelated.
    expect(Math.abs(x.filter((value) => Math.abs(value) > 1).length / x.length - 0.3173)).toBeLessThan(0.006);
    expect(Math.abs(x.filter((value) => Math.abs(value) > 3).length / x.length - 0.0027)).toBeLessThan(0.0007);
    expect(Math.abs(x.slice(1).reduce((sum, value, i) => sum + value * x[i], 0) / x.length)).toBeLessThan(5 / 400);
    expect(new Set(store.read("model.norm.weight"))).toEqual(new Set([1]));
    expect(new Set([...store.read("value_head.weight"), ...store.read("value_head.bias")])).toEqual(new Set([0]));
  });
});

describe("a store", () => {
  it("writes a tensor into its own array and nowhere else", () => {
    const store = new ParameterStore(config);
    store.write(v, new Float64Array(64).fill(2));
    expect(store.get("layers.1.v").data.every((x) => x === 2)).toBe(true);
    for (const { name, data } of store.parameters) if (name !== "layers.1.v") expect(data.every((x) => x === 0)).toBe(true);
    expect(store.read(v)).toEqual(new Float64Array(64).fill(2));
    expect(() => store.write(v, new Float64Array(63))).toThrow(/it has 64 numbers and 63 were given/);
    expect(() => store.read("lm.weight")).toThrow(/lm.weight: the model has no such tensor; name one of: model.embed_tokens.weight/);
  });

  it("clones weights that then change apart", () => {
    const store = ParameterStore.random(config, 1, true);
    const copy = store.clone();
    expect(flatWeights(copy)).toEqual(flatWeights(store));
    copy.get("norm").data.fill(9);
    expect(store.get("norm").data[0]).toBe(1);
  });

  it("exchanges gradients as files: each gives its own, and takes the sum of several", () => {
    const [one, two, none] = [0, 1, 2].map(() => new ParameterStore(config));
    const files = ["one", "two"].map((name) => join(folder, name));
    expect(none.exportGradient(files[0])).toBe(false);
    expect(existsSync(files[0])).toBe(false);
    one.gradient(one.get("layers.1.q")).forEach((_, i, grad) => {
      grad[i] = i;
    });
    two.gradient(two.get("layers.1.q")).fill(3);
    two.gradient(two.get("norm")).fill(5);
    expect([one, two].map((store, i) => store.exportGradient(files[i]))).toEqual([true, true]);
    for (const store of [one, none]) {
      store.importGradient(files);
      expect([...store.readGradient(q)]).toEqual(Array.from({ length: 128 }, (_, i) => i + 3));
      expect(store.get("norm").grad?.every((g) => g === 5)).toBe(true);
    }
    one.importGradient([]);
    expect(one.readGradient(q)).toEqual(new Float64Array(128));
    expect(one.exportGradient(files[0])).toBe(false);
    const shorter = new ParameterStore({ ...config, layers: 1 });
    expect(() => shorter.importGradient(files)).toThrow(/one: it has 6944 bytes and the gradient has \d+; load the same model on all workers/);
  });
});
