/** A model as a Hugging Face folder: config.json, generation_config.json, model.safetensors (or shards with an index). */
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { readJson as parseJson, placeIn } from "../../core/json-text.js";
import { SafetensorsFile } from "../safetensors.js";
import { type DecoderConfig, parseModelConfig, withGeneration } from "./config.js";
import { layoutOf, ParameterStore, type TensorShape, type WeightArrays } from "./params.js";

export const files = {
  config: "config.json",
  generation: "generation_config.json",
  weights: "model.safetensors",
  index: "model.safetensors.index.json",
  /** Beside the model, so that other tools find no tensor that they do not expect; its tensors are `weight` and `bias`. */
  valueHead: "value_head.safetensors",
  adapterConfig: "adapter_config.json",
  adapterWeights: "adapter_model.safetensors",
} as const;

/** The value head's tensors, by their name in memory. */
export const valueHeadTensors: { readonly [name: string]: string } = { "value_head.weight": "weight", "value_head.bias": "bias" };

/** Tensors that some files carry though they follow from others: rotary frequencies, and a head that is the embedding table. */
const derived = /\.rotary_emb\.inv_freq$/;

export interface LoadFolderOptions {
  /** With a value head: that of the folder, else one that predicts 0. Default: when the folder has one. */
  readonly valueHead?: boolean;
}

/** A folder's config.json as it is. Throws ModelError where it cannot be read. */
export const readConfig = (folder: string): Promise<Json> => readJson(join(folder, files.config));

/** Reads the configuration of a model folder, with the token ids of its generation_config.json. */
export async function loadConfig(folder: string): Promise<DecoderConfig> {
  const info = await stat(folder).catch(() => undefined);
  if (!info?.isDirectory()) throw new ModelError({ place: folder, cause: "there is no such folder", mend: "give the path of a Hugging Face model folder" });
  const config = parseModelConfig(await readJson(join(folder, files.config)), join(folder, files.config));
  const generation = join(folder, files.generation);
  const present = await stat(generation).catch(() => undefined);
  return present ? withGeneration(config, await readJson(generation), generation) : config;
}

/** The configuration of a folder whose weights are all there in the right shapes, by their headers; the numbers are not read. Throws ModelError. */
export async function inspectFolder(folder: string): Promise<DecoderConfig> {
  const config = await loadConfig(folder);
  const opened: SafetensorsFile[] = [];
  try {
    checkTensors(
      folder,
      config,
      layoutOf(config).flatMap(({ parts }) => parts),
      await openWeights(folder, opened),
    );
    return config;
  } finally {
    for (const file of opened) await file.close();
  }
}

/** Loads a model folder; F16, BF16 and F64 become float32. Throws a ModelError that names the tensor, and then has loaded nothing. */
export async function loadFolder(folder: string, options: LoadFolderOptions = {}): Promise<ParameterStore> {
  const config = await loadConfig(folder);
  const opened: SafetensorsFile[] = [];
  try {
    const found = await openWeights(folder, opened);
    const head = join(folder, files.valueHead);
    const hasHead = (await stat(head).catch(() => undefined)) !== undefined;
    const store = new ParameterStore(config, options.valueHead ?? hasHead);
    const tensors = store.tensors.filter(({ name }) => !(name in valueHeadTensors));
    checkTensors(folder, config, tensors, found);
    for (const { name } of tensors) await readTensor(found.get(name) as SafetensorsFile, name, store.view(name));
    if (store.hasValueHead && hasHead) await loadValueHead(head, store, opened);
    return store;
  } finally {
    for (const file of opened) await file.close();
  }
}

export async function readJson(path: string): Promise<Json> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new ModelError({ place: path, cause: `it cannot be read (${error.code})`, mend: "take the file that belongs to the weights" });
  });
  const { value, fault } = parseJson(text);
  if (fault === undefined) return value;
  const { line, column } = placeIn(text, fault.at);
  throw new ModelError({ place: `${path}, line ${line}, column ${column}`, cause: `it is not JSON: ${fault.cause}`, mend: "fetch or write the file again" });
}

/** Which file has which tensor: of model.safetensors, else of the shards that the index names. */
export async function openWeights(folder: string, opened: SafetensorsFile[]): Promise<Map<string, SafetensorsFile>> {
  const names = await readdir(folder);
  const open = async (name: string): Promise<SafetensorsFile> => {
    const file = await SafetensorsFile.open(join(folder, name));
    opened.push(file);
    return file;
  };
  if (names.includes(files.weights)) {
    const file = await open(files.weights);
    return new Map([...file.entries.keys()].map((name) => [name, file]));
  }
  if (!names.includes(files.index)) {
    const pickled = names.find((name) => /\.(bin|pt|pth)$/.test(name));
    throw new ModelError({
      place: folder,
      cause: pickled ? `its weights are in ${pickled}, which only Python can read` : `it has neither ${files.weights} nor ${files.index}`,
      mend: pickled ? "save the model again as safetensors" : "give the path of a Hugging Face model folder",
    });
  }
  return openShards(join(folder, files.index), open);
}

async function openShards(index: string, open: (name: string) => Promise<SafetensorsFile>): Promise<Map<string, SafetensorsFile>> {
  const json = await readJson(index);
  const map = json !== null && typeof json === "object" ? (json as { readonly [key: string]: Json }).weight_map : undefined;
  if (map === null || typeof map !== "object" || Array.isArray(map)) {
    throw new ModelError({ place: index, cause: "it has no weight_map", mend: "fetch or write the file again" });
  }
  const shards = new Map<string, SafetensorsFile>();
  const found = new Map<string, SafetensorsFile>();
  for (const [tensor, shard] of Object.entries(map as { readonly [tensor: string]: Json })) {
    if (typeof shard !== "string" || basename(shard) !== shard) {
      throw new ModelError({ place: index, cause: `tensor ${tensor} is said to lie in ${JSON.stringify(shard)}`, mend: "name a file of the folder" });
    }
    if (!shards.has(shard)) {
      const there = await stat(join(dirname(index), shard)).catch(() => undefined);
      if (!there) throw new ModelError({ place: index, cause: `the shard ${shard} that it names is missing`, mend: "fetch that file too" });
      shards.set(shard, await open(shard));
    }
    const file = shards.get(shard) as SafetensorsFile;
    if (!file.entries.has(tensor)) {
      throw new ModelError({ place: index, cause: `it names tensor ${tensor}, which ${shard} does not hold`, mend: "take shards and index of one model" });
    }
    found.set(tensor, file);
  }
  for (const file of shards.values()) {
    const stray = [...file.entries.keys()].find((name) => found.get(name) !== file);
    if (stray)
      throw new ModelError({ place: file.path, cause: `tensor ${stray} is in it and not in ${files.index}`, mend: "take shards and index of one model" });
  }
  return found;
}

/** Types of numbers that become float32. */
const floating: readonly string[] = ["F32", "F16", "BF16", "F64"];

/** Refuses tensors that are missing, unexpected, not floating-point or of another shape than config.json says, before any is read. */
export function checkTensors(folder: string, config: DecoderConfig, expected: readonly TensorShape[], found: ReadonlyMap<string, SafetensorsFile>): void {
  const refuse = (place: string, cause: string, mend: string): never => {
    throw new ModelError({ place, cause, mend });
  };
  for (const { name, shape } of expected) {
    const file = found.get(name) ?? refuse(folder, `tensor ${name} is missing`, "take weights and config.json of one model");
    const { shape: has, dtype } = file.entry(name);
    if (!floating.includes(dtype)) refuse(file.path, `tensor ${name} holds ${dtype}`, `give one that holds ${floating.join(", ")}`);
    if (has.length === shape.length && has.every((n, i) => n === shape[i])) continue;
    if (shape[0] === config.vocabulary && has[1] === shape[1] && has[0] < shape[0]) {
      refuse(
        file.path,
        `the vocabulary of ${shape[0]} is larger than tensor ${name} with its ${has[0]} rows`,
        "set vocab_size in config.json to the number of rows",
      );
    }
    refuse(file.path, `tensor ${name} has the shape [${has}] and config.json asks for [${shape}]`, "take weights and config.json of one model");
  }
  const names = new Set(expected.map(({ name }) => name));
  for (const [name, file] of found) {
    if (names.has(name) || derived.test(name) || (config.tied && name === "lm_head.weight")) continue;
    refuse(file.path, `tensor ${name} has no place in this ${config.family} model`, "take weights and config.json of one model");
  }
}

/** Reads a tensor and refuses it if a number is not finite. */
export async function readTensor(file: SafetensorsFile, name: string, target: Float32Array): Promise<void> {
  await file.readFloat32(name, target);
  const at = firstNonFinite(target);
  if (at < 0) return;
  const cause = `tensor ${name} has ${target[at]} at index ${at}`;
  throw new ModelError({ place: file.path, cause, mend: "take weights that are finite: these were damaged, or training diverged before they were saved" });
}

export async function loadValueHead(path: string, store: WeightArrays, opened: SafetensorsFile[]): Promise<void> {
  const file = await SafetensorsFile.open(path);
  opened.push(file);
  for (const [name, stored] of Object.entries(valueHeadTensors)) await readTensor(file, stored, store.view(name));
}

/** The index of the first number that is NaN or infinite, else −1. */
export function firstNonFinite(values: Float32Array): number {
  // x − x is 0 for finite x and NaN for others, which the sum keeps: one pass without a branch a number.
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] - values[i];
  return sum === 0 ? -1 : values.findIndex((x) => !Number.isFinite(x));
}
