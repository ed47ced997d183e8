/** Adapters as PEFT has them: a folder with adapter_config.json and adapter_model.safetensors, checked against its base before that is loaded. */
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import type { AdapterOptions } from "../contract.js";
import { SafetensorsFile } from "../safetensors.js";
import { type TensorToWrite, writeSafetensors } from "../safetensors-write.js";
import { AdapterStore, allTargets, linearTargets, peftName } from "./adapter.js";
import type { DecoderConfig } from "./config.js";
import { reader } from "./fields.js";
import { files, loadValueHead, openWeights, readJson, readTensor } from "./folder.js";
import { putFolder, refuseUnlessFinite, writeJson, writeValueHead } from "./folder-save.js";
import { layoutOf, type ParameterStore, type TensorShape } from "./params.js";

/** What an adapter's configuration says of it. */
export interface PeftConfig {
  readonly rank: number;
  readonly alpha: number;
  /** Folder or hub id of the weights it belongs to, where that is known. */
  readonly base?: string;
}

/** Settings of PEFT that change what an adapter computes, with the values that leave it as it is here. */
const plain: { readonly [key: string]: readonly Json[] } = {
  bias: ["none"],
  use_dora: [false],
  fan_in_fan_out: [false],
  lora_bias: [false],
};
/** Lists and tables that must be empty. */
const empty = ["modules_to_save", "layers_to_transform", "rank_pattern", "alpha_pattern", "trainable_token_indices"];

/** Whether a folder is one of an adapter: it has adapter_config.json. */
export const isAdapterFolder = async (folder: string): Promise<boolean> => (await stat(join(folder, files.adapterConfig)).catch(() => undefined)) !== undefined;

/** Reads adapter_config.json. Throws ModelError for kinds of adapters other than plain LoRA. */
export async function readPeftConfig(folder: string): Promise<PeftConfig> {
  const place = join(folder, files.adapterConfig);
  const r = reader(await readJson(place), place);
  const { fields } = r;
  if (fields.peft_type !== "LORA") r.fail(`peft_type is ${JSON.stringify(fields.peft_type ?? null)}`, "take a LoRA adapter");
  for (const [key, allowed] of Object.entries(plain)) {
    if (r.has(key) && !allowed.includes(fields[key] as Json))
      r.fail(`${key} is ${JSON.stringify(fields[key])}, which is not supported`, "merge it into its base with PEFT first");
  }
  for (const key of empty) {
    const value = fields[key];
    const size = r.has(key) && typeof value === "object" ? Object.keys(value as object).length : r.has(key) ? 1 : 0;
    if (size > 0) r.fail(`${key} is ${JSON.stringify(value)}, which is not supported`, "merge it into its base with PEFT first");
  }
  const rank = r.count("r");
  const alpha = r.number("lora_alpha");
  const { base_model_name_or_path: base } = fields;
  // rsLoRA divides by the root of the rank: the same as a larger alpha.
  return { rank, alpha: r.flag("use_rslora", false) ? alpha * Math.sqrt(rank) : alpha, ...(typeof base === "string" && base !== "" && { base }) };
}

/** An adapter's settings, read from a folder whose tensors were checked by their headers. */
export interface InspectedAdapter extends AdapterOptions {
  readonly hasValueHead: boolean;
}

const sideName = /^base_model\.model\.model\.layers\.\d+\.(?:self_attn|mlp)\.(\w+)\.lora_[AB]\.weight$/;

/**
 * Checks an adapter against its base by headers, before either is loaded: rank, targets and shapes, and, where the
 * adapter knows it, the identity of the base's weights. Throws ModelError.
 */
export async function inspectAdapter(
  folder: string,
  config: DecoderConfig,
  base: { readonly name: string; readonly identity: () => Promise<string> },
): Promise<InspectedAdapter> {
  const { rank, alpha } = await readPeftConfig(folder);
  const file = await SafetensorsFile.open(await weightsOf(folder));
  try {
    const refuse = (cause: string, mend: string): never => {
      throw new ModelError({ place: file.path, cause, mend });
    };
    const another = (cause: string): never => refuse(`it is an adapter of another base: ${cause}`, "name the base that it was trained on");
    const found = [...file.entries.keys()].map((name) => {
      const target = sideName.exec(name)?.[1];
      return target !== undefined && allTargets.includes(target)
        ? target
        : refuse(`tensor ${name} belongs to no linear layer of a ${config.family} model`, "take an adapter of these layers alone");
    });
    const targets = allTargets.filter((target) => found.includes(target));
    if (targets.length === 0) refuse("it holds no tensors", "fetch or write the file again");
    const expected = tensorsOf(config, { rank, alpha, targets });
    for (const { name, shape } of expected) {
      const entry = file.entries.get(name);
      const own = entry?.shape[/lora_A\.weight$/.test(name) ? 0 : 1];
      if (own !== undefined && own !== rank)
        refuse(`tensor ${name} is of rank ${own}, and ${files.adapterConfig} says r ${rank}`, "take weights and configuration of one adapter");
      if (entry === undefined) another(`tensor ${name}, which ${base.name} needs, is missing`);
      else if (entry.shape.join() !== shape.join()) another(`tensor ${name} has the shape [${entry.shape}] and ${base.name} needs [${shape}]`);
    }
    const names = new Set(expected.map(({ name }) => name));
    const stray = [...file.entries.keys()].find((name) => !names.has(name));
    if (stray !== undefined) another(`${base.name} has no place for its tensor ${stray}`);
    const { touchstone_base: identity } = file.metadata;
    if (identity !== undefined && identity !== (await base.identity())) another(`${base.name} has other weights than those it was trained on`);
    const hasValueHead = (await stat(join(folder, files.valueHead)).catch(() => undefined)) !== undefined;
    return { rank, alpha, targets, hasValueHead };
  } finally {
    await file.close();
  }
}

const tensorsOf = (config: DecoderConfig, options: AdapterOptions): readonly TensorShape[] =>
  AdapterStore.layout(config, options).flatMap(({ parts }) => parts);

async function weightsOf(folder: string): Promise<string> {
  const path = join(folder, files.adapterWeights);
  if ((await stat(path).catch(() => undefined)) !== undefined) return path;
  const pickled = (await stat(join(folder, "adapter_model.bin")).catch(() => undefined)) !== undefined;
  throw new ModelError({
    place: folder,
    cause: pickled ? "its weights are in adapter_model.bin, which only Python can read" : `it has no ${files.adapterWeights}`,
    mend: pickled ? "save the adapter again as safetensors" : "take the file that belongs to the configuration",
  });
}

/** Fills an adapter from a folder that was inspected. Throws ModelError for numbers that are not finite. */
export async function readAdapter(folder: string, store: AdapterStore): Promise<void> {
  const opened: SafetensorsFile[] = [];
  try {
    const file = await SafetensorsFile.open(await weightsOf(folder));
    opened.push(file);
    for (const { name } of tensorsOf(store.config, store.options)) await readTensor(file, name, store.view(name));
    const head = join(folder, files.valueHead);
    if (store.hasValueHead && (await stat(head).catch(() => undefined)) !== undefined) await loadValueHead(head, store, opened);
  } finally {
    for (const file of opened) await file.close();
  }
}

/** Writes a PEFT folder. `identity` is that of the base's weights, which PEFT does not look at. */
export async function saveAdapter(store: AdapterStore, folder: string, base: { readonly name: string | undefined; readonly identity: string }): Promise<void> {
  refuseUnlessFinite(store);
  await putFolder(folder, async (beside) => {
    await writeJson(join(beside, files.adapterConfig), toPeftConfig(store.options, base.name));
    const tensors = tensorsOf(store.config, store.options).map(({ name, shape }): TensorToWrite => ({ name, shape, data: store.view(name) }));
    await writeSafetensors(join(beside, files.adapterWeights), tensors, { format: "pt", touchstone_base: base.identity });
    await writeValueHead(store, beside);
  });
}

function toPeftConfig({ rank, alpha, targets }: AdapterOptions, base: string | undefined): Json {
  return {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: base ?? null,
    revision: null,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    bias: "none",
    target_modules: linearTargets(targets, "adapter").map(peftName),
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    use_rslora: false,
    use_dora: false,
    modules_to_save: null,
    layers_to_transform: null,
    layers_pattern: null,
    rank_pattern: {},
    alpha_pattern: {},
  };
}

/** Numbers of each tensor that go into the identity of a base. */
const sampledNumbers = 256;

/** What tells the weights of one model from those of another of its shape: a hash of names, shapes and the first numbers of each tensor as float32, whatever their type in a file. */
async function identityFrom(tensors: readonly TensorShape[], first: (name: string) => Float32Array | Promise<Float32Array>): Promise<string> {
  const hash = createHash("sha256");
  for (const { name, shape } of tensors) {
    const numbers = await first(name);
    hash.update(`${name} ${shape.join()}\n`).update(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
  }
  return hash.digest("hex").slice(0, 32);
}

/** The identity of weights in memory; a value head is none of a base. */
export const baseIdentity = (store: ParameterStore): Promise<string> =>
  identityFrom(
    store.tensors.filter(({ name }) => !name.startsWith("value_head.")),
    (name) => store.view(name).subarray(0, sampledNumbers),
  );

/** The same of a model folder, without loading it. */
export async function folderIdentity(folder: string, config: DecoderConfig): Promise<string> {
  const opened: SafetensorsFile[] = [];
  try {
    const found = await openWeights(folder, opened);
    const tensors = layoutOf(config).flatMap(({ parts }) => parts);
    return await identityFrom(tensors, async (name) => {
      const file = found.get(name);
      if (file === undefined) throw new ModelError({ place: folder, cause: `tensor ${name} is missing`, mend: "take weights and config.json of one model" });
      return file.readFirst(name, sampledNumbers);
    });
  } finally {
    for (const file of opened) await file.close();
  }
}
