import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { SafetensorsFile } from "../safetensors.js";
import { type TensorToWrite, writeSafetensors } from "../safetensors-write.js";
import { loadFolder } from "./folder.js";
import { saveFolder } from "./folder-save.js";
import { flatWeights } from "./test-engine.js";

const root = mkdtempSync(join(tmpdir(), "folder-"));
afterAll(() => rmSync(root, { recursive: true }));
const model = (name: string): string => fixture("models", name);

async function stored(path: string): Promise<TensorToWrite[]> {
  const file = await SafetensorsFile.open(path);
  const tensors: TensorToWrite[] = [];
  for (const { name, shape } of file.entries.values()) tensors.push({ name, shape, data: await file.readFloat32(name) });
  await file.close();
  return tensors;
}

describe("loading", () => {
  it.each(["llama-tied", "smollm", "llama-rope", "llama-f16"])("gives every tensor of %s as it is in the file", async (name) => {
    const store = await loadFolder(model(name), { valueHead: false });
    const tensors = await stored(join(model(name), "model.safetensors"));
    expect(new Set(store.tensors.map((tensor) => tensor.name))).toEqual(new Set(tensors.map((tensor) => tensor.name)));
    for (const { name: tensor, data } of tensors) expect(store.read(tensor)).toEqual(Float64Array.from(data as Float32Array));
    expect(store.config.eosIds).toEqual([2, 3]);
  });

  it("takes the value head of the folder where there is one, or begins one at 0, or leaves it", async () => {
    const [weight, bias] = await Promise.all(
      ["weight", "bias"].map(async (name) => (await stored(join(model("smollm"), "value_head.safetensors"))).find((t) => t.name === name)),
    );
    const store = await loadFolder(model("smollm"));
    expect(store.view("value_head.weight")).toEqual(weight?.data);
    expect(store.view("value_head.bias")).toEqual(bias?.data);
    expect((await loadFolder(model("smollm"), { valueHead: false })).hasValueHead).toBe(false);
    expect((await loadFolder(model("llama-rope"))).hasValueHead).toBe(false);
    expect((await loadFolder(model("llama-rope"), { valueHead: true })).view("value_head.weight")).toEqual(new Float32Array(64));
  });

  it("joins shards by their index", async () => {
    const folder = join(root, "sharded");
    cpSync(model("llama-tied"), folder, { recursive: true });
    const tensors = await stored(join(folder, "model.safetensors"));
    rmSync(join(folder, "model.safetensors"));
    await writeSafetensors(join(folder, "one.safetensors"), tensors.slice(0, 5));
    await writeSafetensors(join(folder, "two.safetensors"), tensors.slice(5));
    const map = Object.fromEntries(tensors.map(({ name }, i) => [name, i < 5 ? "one.safetensors" : "two.safetensors"]));
    const index = (weights: Json): void => writeFileSync(join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map: weights }));
    index(map);
    const whole = await loadFolder(model("llama-tied"));
    expect(flatWeights(await loadFolder(folder))).toEqual(flatWeights(whole));
    index({ ...map, [tensors[0].name]: "two.safetensors" });
    await expect(loadFolder(folder)).rejects.toThrow(/it names tensor model.embed_tokens.weight, which two.safetensors does not hold/);
    index({ ...map, [tensors[0].name]: "../one.safetensors" });
    await expect(loadFolder(folder)).rejects.toThrow(/is said to lie in "..\/one.safetensors"/);
    index(Object.fromEntries(Object.entries(map).slice(1)));
    await expect(loadFolder(folder)).rejects.toThrow(/tensor model.embed_tokens.weight is in it and not in model.safetensors.index.json/);
    index([]);
    await expect(loadFolder(folder)).rejects.toThrow(/it has no weight_map/);
  });
});

describe("a folder that cannot be loaded is refused in one sentence", () => {
  const folder = join(root, "broken");
  const weights = join(folder, "model.safetensors");
  beforeEach(() => {
    rmSync(folder, { recursive: true, force: true });
    cpSync(model("llama-rope"), folder, { recursive: true });
  });
  const config = (change: { readonly [key: string]: Json }): void => {
    const path = join(folder, "config.json");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }));
  };
  const change = async (use: (tensors: TensorToWrite[]) => TensorToWrite[]): Promise<void> => writeSafetensors(weights, use(await stored(weights)));
  const k = "model.layers.1.self_attn.k_proj.weight";
  const filled = (shape: number[]): Float32Array => new Float32Array(shape.reduce((a, b) => a * b, 1));

  const faults: [what: string, damage: () => Promise<void> | void, says: RegExp][] = [
    ["no folder", () => rmSync(folder, { recursive: true }), /there is no such folder; give the path/],
    ["no config.json", () => rmSync(join(folder, "config.json")), /config.json: it cannot be read \(ENOENT\)/],
    ["a config.json that is no JSON", () => writeFileSync(join(folder, "config.json"), "{"), /config.json, line 1, column \d+: it is not JSON/],
    ["an unknown architecture", () => config({ architectures: ["GPT2LMHeadModel"] }), /the architecture GPT2LMHeadModel is not known/],
    ["no weights", () => rmSync(weights), /it has neither model.safetensors nor model.safetensors.index.json/],
    ["a truncated file", () => truncateSync(weights, 200_000), /model.safetensors: it is truncated: tensor model.layers.\S+ ends at byte/],
    ["a missing tensor", () => change((tensors) => tensors.filter(({ name }) => name !== k)), new RegExp(`tensor ${k} is missing`)],
    [
      "an unexpected tensor",
      () => change((tensors) => [...tensors, { name: "model.extra", shape: [1], data: filled([1]) }]),
      /tensor model.extra has no place in this llama model/,
    ],
    [
      "a wrong shape",
      () => change((t) => t.map((x) => (x.name === k ? { name: k, shape: [16, 64], data: filled([16, 64]) } : x))),
      /k_proj.weight has the shape \[16,64\] and config.json asks for \[32,64\]/,
    ],
    [
      "a vocabulary larger than the embedding",
      () => config({ vocab_size: 130 }),
      /the vocabulary of 130 is larger than tensor model.embed_tokens.weight with its 128 rows; set vocab_size/,
    ],
    [
      "a vocabulary smaller than the embedding",
      () => config({ vocab_size: 120 }),
      /tensor model.embed_tokens.weight has the shape \[128,64\] and config.json asks for \[120,64\]/,
    ],
    ["more layers than there are", () => config({ num_hidden_layers: 3 }), /tensor model.layers.2.self_attn.q_proj.weight is missing/],
    [
      "NaN weights",
      () => change((t) => t.map((x) => (x.name === k ? { ...x, data: filled([32, 64]).fill(Number.NaN, 70, 71) } : x))),
      new RegExp(`tensor ${k} has NaN at index 70`),
    ],
    [
      "infinite weights",
      () => change((t) => t.map((x) => (x.name === k ? { ...x, data: filled([32, 64]).fill(-Infinity, 5) } : x))),
      new RegExp(`tensor ${k} has -Infinity at index 5`),
    ],
    [
      "integers for weights",
      () => change((t) => t.map((x) => (x.name === k ? { ...x, data: new Int32Array(32 * 64) } : x))),
      new RegExp(`tensor ${k} holds I32`),
    ],
  ];
  it.each(faults)("%s", async (_, damage, says) => {
    await damage();
    const error = await loadFolder(folder).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ModelError);
    expect((error as ModelError).message).toMatch(says);
    expect((error as ModelError).message).not.toMatch(/\n/);
  });

  it("pickled weights", async () => {
    cpSync(weights, join(folder, "pytorch_model.bin"));
    rmSync(weights);
    await expect(loadFolder(folder)).rejects.toThrow(/its weights are in pytorch_model.bin, which only Python can read; save the model again as safetensors/);
  });

  it("but not for tensors that follow from others", async () => {
    await change((tensors) => [...tensors, { name: "model.layers.0.self_attn.rotary_emb.inv_freq", shape: [8], data: filled([8]) }]);
    await expect(loadFolder(folder)).resolves.toBeDefined();
  });
});

describe("saving", () => {
  it.each(["llama-tied", "smollm", "llama-rope", "llama-f16"])("%s gives a folder that loads as the same model", async (name) => {
    const store = await loadFolder(model(name));
    const target = join(root, "saved", name);
    await saveFolder(store, target);
    const back = await loadFolder(target);
    expect(back.config).toEqual(store.config);
    expect(back.hasValueHead).toBe(store.hasValueHead);
    expect(flatWeights(back)).toEqual(flatWeights(store));
    const file = await SafetensorsFile.open(join(target, "model.safetensors"));
    await file.close();
    expect([...file.entries.keys()]).toEqual(store.tensors.map((tensor) => tensor.name).filter((tensor) => !tensor.startsWith("value_head")));
    expect(file.entries.has("lm_head.weight")).toBe(!store.config.tied);
    expect(new Set([...file.entries.values()].map(({ dtype }) => dtype))).toEqual(new Set(["F32"]));
  });

  it("carries other files of a model folder along, but neither its weights nor its configuration", async () => {
    const source = join(root, "source");
    cpSync(model("smollm"), source, { recursive: true });
    for (const name of ["tokenizer.json", "chat_template.jinja", "pytorch_model.bin", "model.gguf", "model-00001-of-00002.safetensors"])
      writeFileSync(join(source, name), name);
    const target = join(root, "with-extras");
    await saveFolder(await loadFolder(model("llama-tied"), { valueHead: false }), target, { copyExtras: source });
    expect(readdirSync(target).sort()).toEqual([
      "chat_template.jinja",
      "config.json",
      "expected.json",
      "generation_config.json",
      "model.safetensors",
      "tokenizer.json",
    ]);
    expect((await loadFolder(target)).config.width).toBe(48);
  });

  it("replaces a model folder and keeps its other files", async () => {
    const target = join(root, "replaced");
    await saveFolder(await loadFolder(model("smollm")), target);
    writeFileSync(join(target, "notes.txt"), "mine");
    const store = await loadFolder(model("llama-rope"));
    await saveFolder(store, target);
    expect(readdirSync(target).sort()).toEqual(["config.json", "generation_config.json", "model.safetensors", "notes.txt"]);
    expect(flatWeights(await loadFolder(target))).toEqual(flatWeights(store));
    expect(readdirSync(root).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("refuses a folder with anything but a model in it, and leaves it as it was", async () => {
    const store = await loadFolder(model("llama-rope"));
    const target = join(root, "homework");
    mkdirSync(target);
    writeFileSync(join(target, "thesis.tex"), "mine");
    await expect(saveFolder(store, target)).rejects.toThrow(/the folder is there and holds no model; choose another folder/);
    expect(readdirSync(target)).toEqual(["thesis.tex"]);
    const runs = join(root, "runs");
    await saveFolder(store, runs);
    mkdirSync(join(runs, "checkpoint-1"));
    await expect(saveFolder(store, runs)).rejects.toThrow(/also holds checkpoint-1/);
    expect(existsSync(join(runs, "checkpoint-1"))).toBe(true);
    writeFileSync(join(root, "plain"), "");
    await expect(saveFolder(store, join(root, "plain"))).rejects.toThrow(/it cannot be written to \(ENOTDIR\)/);
    expect(readdirSync(root).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("fills a folder that is there and empty", async () => {
    const target = join(root, "empty");
    mkdirSync(target);
    await saveFolder(await loadFolder(model("llama-rope")), target);
    await expect(loadFolder(target)).resolves.toBeDefined();
  });
});
