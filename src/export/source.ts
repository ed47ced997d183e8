/** A model that is written in another format: its shape, its tensors one by one, and the files of its tokenizer. */
import { existsSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { alphabetFile } from "../core/alphabet.js";
import type { Json } from "../core/json.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { AdapterStore } from "../engine/onnx/adapter.js";
import type { DecoderConfig } from "../engine/onnx/config.js";
import { checkTensors, loadConfig, openWeights, readTensor } from "../engine/onnx/folder.js";
import { layoutOf, type TensorShape } from "../engine/onnx/params.js";
import { folderIdentity, inspectAdapter, readAdapter } from "../engine/onnx/peft.js";
import type { SafetensorsFile } from "../engine/safetensors.js";
import { alphabetFiles } from "../tokenizers/alphabet-files.js";
import { loadTokenizer, refuseLargerTokenizer, type TokenizerOptions, templateOf } from "../tokenizers/load.js";

type Fields = { readonly [key: string]: Json };

/** The tokenizer, and what its files say. */
export interface TokenizerSource {
  readonly tokenizer: Tokenizer;
  /** The content of tokenizer.json. */
  readonly file: Fields;
  /** The content of tokenizer_config.json, the chat template in it. */
  readonly config: Fields;
}

export interface ModelSource extends TokenizerSource {
  readonly folder: string;
  /** For people: the last part of the folder's path. */
  readonly name: string;
  readonly shape: DecoderConfig;
  /** In the order of transformers' modules, with Hugging Face names. */
  readonly tensors: readonly TensorShape[];
  /** The numbers of a tensor, an adapter added where there is one. */
  read(name: string): Promise<Float32Array>;
  close(): Promise<void>;
}

/** Opens a model folder, with a PEFT folder that is merged into it on the way; all is checked by headers. `chat`: a template in place of the model's. Throws ModelError. */
export async function openModel(folder: string, adapter?: string, chat: TokenizerOptions = {}): Promise<ModelSource> {
  const shape = await loadConfig(folder);
  const tokens = await tokenizerFiles(folder, chat);
  refuseLargerTokenizer(tokens.tokenizer, shape.vocabulary, folder);
  const tensors = layoutOf(shape).flatMap(({ parts }) => parts);
  const opened: SafetensorsFile[] = [];
  const close = async (): Promise<void> => {
    for (const file of opened) await file.close();
  };
  try {
    const found = await openWeights(folder, opened);
    checkTensors(folder, shape, tensors, found);
    const added = adapter === undefined ? undefined : await adapterOf(adapter, folder, shape);
    const read = async (name: string): Promise<Float32Array> => {
      const { shape: sizes } = tensors.find((tensor) => tensor.name === name) as TensorShape;
      const values = new Float32Array(sizes.reduce((product, n) => product * n, 1));
      await readTensor(found.get(name) as SafetensorsFile, name, values);
      return added === undefined ? values : added.merged(name, values);
    };
    return { folder, name: basename(resolve(folder)), shape, ...tokens, tensors, read, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function adapterOf(adapter: string, folder: string, shape: DecoderConfig): Promise<AdapterStore> {
  const { hasValueHead, ...options } = await inspectAdapter(adapter, shape, { name: folder, identity: () => folderIdentity(folder, shape) });
  const store = new AdapterStore(shape, options, hasValueHead);
  await readAdapter(adapter, store);
  return store;
}

async function tokenizerFiles(folder: string, chat: TokenizerOptions): Promise<TokenizerSource> {
  const tokenizer = await loadTokenizer(folder, chat);
  if (existsSync(join(folder, alphabetFile))) return { tokenizer, ...alphabetFiles(tokenizer) };
  const fields = (name: string): Fields => (existsSync(join(folder, name)) ? (JSON.parse(readFileSync(join(folder, name), "utf8")) as Fields) : {});
  const config = fields("tokenizer_config.json");
  const template = templateOf(config, folder, chat)?.source;
  return { tokenizer, file: fields("tokenizer.json"), config: template === undefined ? config : { ...config, chat_template: template } };
}
