/** Saves a model as a Hugging Face folder: written beside and renamed, so that a reader never sees half of one. */
import { randomBytes } from "node:crypto";
import { copyFile, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { DivergenceError, ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { refuseUnlessWritable } from "../../core/writable.js";
import { float32ToBfloat16 } from "../half.js";
import { syncFolder, type TensorToFetch, type TensorToWrite, writeSafetensors } from "../safetensors-write.js";
import type { AdapterStore } from "./adapter.js";
import { toGenerationConfig, toHuggingFaceConfig } from "./config.js";
import { files, valueHeadTensors } from "./folder.js";
import type { ParameterStore, WeightArrays } from "./params.js";

export interface SaveFolderOptions {
  /** Numbers of the file; f32 by default. A value head is always f32. */
  readonly dtype?: "f32" | "bf16";
  /** Added to the weights as they are written, times `scale`. */
  readonly adapter?: { readonly store: AdapterStore; readonly scale: number };
  /** A model folder whose other files (tokenizer, chat template, licence) go along. */
  readonly copyExtras?: string;
}

/** What a save replaces; anything else in a model folder is an extra. */
const replaced =
  /^(adapter_config\.json|adapter_model\.safetensors|config\.json|generation_config\.json|value_head\.safetensors|model.*\.safetensors(\.index\.json)?|pytorch_model.*)$/;
/** Weights in other formats, which a copy beside new weights would contradict. */
const otherWeights = /\.(safetensors|bin|pt|pth|gguf|onnx|h5|msgpack)$/;

/** Writes config, weights (in Hugging Face's order; a tied head once) and, when there is one, the value head. */
export async function saveFolder(store: ParameterStore, folder: string, options: SaveFolderOptions = {}): Promise<void> {
  refuseUnlessFinite(store);
  if (options.adapter) refuseUnlessFinite(options.adapter.store);
  await putFolder(folder, (beside) => writeModel(store, beside, options), options);
}

/**
 * Fills a new folder by `write` and puts it at `folder`. A model folder there is replaced and its other files kept;
 * anything else there is refused with a ModelError.
 */
export async function putFolder(folder: string, write: (folder: string) => Promise<void>, options: Pick<SaveFolderOptions, "copyExtras"> = {}): Promise<void> {
  const target = resolve(folder);
  const present = await refuseUnlessReplaceable(target);
  await mkdir(dirname(target), { recursive: true });
  const beside = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString("hex")}`);
  await mkdir(beside);
  try {
    const sources = [...(options.copyExtras === undefined ? [] : [options.copyExtras]), ...(present ? [target] : [])];
    for (const source of sources) await copyOthers(source, beside, source === target ? replaced : undefined);
    await write(beside);
    await syncFolder(beside);
    if (!present) await rename(beside, target);
    else await exchange(beside, target);
  } catch (error) {
    await rm(beside, { recursive: true, force: true });
    throw error;
  }
  await syncFolder(dirname(target));
}

/** Weights that no engine would load again must not take a place among checkpoints. */
export function refuseUnlessFinite(store: WeightArrays): void {
  for (const { name } of store.tensors) {
    const values = store.view(name);
    // x - x is 0 for every number, and NaN for what is none.
    let sum = 0;
    for (let i = 0; i < values.length; i++) sum += values[i] - values[i];
    if (sum === 0) continue;
    throw new DivergenceError({
      place: "saving weights",
      cause: `the tensor ${name} has entries that are not finite`,
      mend: "go on from the last checkpoint with a lower learning rate",
      data: { reason: "non-finite", parameter: name },
    });
  }
}

async function writeModel(store: ParameterStore, folder: string, { dtype = "f32", adapter }: SaveFolderOptions): Promise<void> {
  const half = dtype === "bf16";
  // A tensor is made when it is its turn: a second copy of all weights would not fit where they barely do.
  const tensor = ({ name, shape }: WeightArrays["tensors"][number]): TensorToWrite | TensorToFetch => {
    if (!half && !adapter) return { name, shape, data: store.view(name) };
    const values = (): Float32Array => (adapter ? adapter.store.merged(name, store.view(name), adapter.scale) : store.view(name));
    return { name, shape, dtype: half ? "BF16" : "F32", fetch: async () => (half ? float32ToBfloat16(values()) : values()) };
  };
  await writeJson(join(folder, files.config), toHuggingFaceConfig(store.config, half ? "bfloat16" : "float32"));
  await writeJson(join(folder, files.generation), toGenerationConfig(store.config));
  const model = store.tensors.filter(({ name }) => !(name in valueHeadTensors)).map(tensor);
  await writeSafetensors(join(folder, files.weights), model, { format: "pt" });
  await writeValueHead(adapter?.store.hasValueHead ? adapter.store : store, folder);
}

/** Writes the value head of weights that have one. */
export async function writeValueHead(store: WeightArrays, folder: string): Promise<void> {
  const head = store.tensors.filter(({ name }) => name in valueHeadTensors);
  if (head.length === 0) return;
  const tensors = head.map(({ name, shape }): TensorToWrite => ({ name: valueHeadTensors[name], shape, data: store.view(name) }));
  await writeSafetensors(join(folder, files.valueHead), tensors, { format: "pt" });
}

export async function writeJson(path: string, json: Json): Promise<void> {
  const file = await open(path, "w");
  try {
    await file.writeFile(`${JSON.stringify(json, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Whether a model folder is there to be replaced; anything else in the way is refused with a ModelError. */
export async function refuseUnlessReplaceable(target: string): Promise<boolean> {
  const entries = await readdir(target, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new ModelError({ place: target, cause: `it cannot be written to (${error.code})`, mend: "choose another folder" });
  });
  if (entries === undefined) {
    refuseUnlessWritable(dirname(target));
    return false;
  }
  if (entries.length > 0 && !(await isModelFolder(target))) {
    throw new ModelError({ place: target, cause: "the folder is there and holds no model", mend: "choose another folder, or empty this one" });
  }
  const inner = entries.find((entry) => !entry.isFile());
  if (inner)
    throw new ModelError({ place: target, cause: `the model folder there also holds ${inner.name}, which is no plain file`, mend: "choose another folder" });
  return true;
}

async function isModelFolder(folder: string): Promise<boolean> {
  const fieldsOf = async (file: string): Promise<readonly string[]> => {
    const config: Json = JSON.parse(await readFile(join(folder, file), "utf8"));
    return config !== null && typeof config === "object" && !Array.isArray(config) ? Object.keys(config) : [];
  };
  const [model, adapter] = await Promise.all([files.config, files.adapterConfig].map((file) => fieldsOf(file).catch((): readonly string[] => [])));
  return model.includes("model_type") || model.includes("architectures") || adapter.includes("peft_type");
}

/** Copies the files of a model folder that are neither configuration nor weights; of a folder that is replaced, all that is not replaced. */
async function copyOthers(source: string, target: string, left: RegExp | undefined): Promise<void> {
  const entries = await readdir(source, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    throw new ModelError({ place: source, cause: `its files cannot be copied (${error.code})`, mend: "give the folder of the model's tokenizer" });
  });
  for (const { name } of entries.filter((entry) => entry.isFile())) {
    const skipped = left ? left.test(name) : replaced.test(name) || otherWeights.test(name);
    if (!skipped) await copyFile(join(source, name), join(target, name));
  }
}

/** Puts `beside` in the place of `target`. Between the two renames a kill leaves the old model under the third name. */
async function exchange(beside: string, target: string): Promise<void> {
  const aside = `${beside}.old`;
  await rename(target, aside);
  try {
    await rename(beside, target);
  } catch (error) {
    await rename(aside, target);
    throw error;
  }
  await rm(aside, { recursive: true, force: true });
}
