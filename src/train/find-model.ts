/** A model as a user names it, made ready to be read: fetched or converted, and a PEFT adapter with the base that it belongs to. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, ModelError, TouchstoneError } from "../core/errors.js";
import type { LoadRequest } from "../engine/contract.js";
import type { DecoderConfig } from "../engine/onnx/config.js";
import { inspectFolder } from "../engine/onnx/folder.js";
import { folderIdentity, inspectAdapter, isAdapterFolder, readPeftConfig } from "../engine/onnx/peft.js";
import { type TokenizerOptions, templateFile } from "../tokenizers/load.js";
import type { FetchOptions } from "./hub-model.js";
import { isHubModel, localModel } from "./local-model.js";
import { type NamedModel, namedModel } from "./model-name.js";

/** The folder of a model and, where it was named by its adapter, that of the adapter. */
export interface FoundModel extends NamedModel {
  /** With config.json and the weights: of an adapter, its base. */
  readonly folder: string;
  /** PEFT folder. */
  readonly adapter?: string;
}

export interface FindOptions extends Pick<FetchOptions, "onProgress"> {
  /** Its weights are on a server: configuration and tokenizer are enough, and a checkpoint is taken as it is. */
  readonly elsewhere?: boolean;
  /** Base of the adapter, in place of the one that it names. */
  readonly base?: string | undefined;
  /** How the model is called where it was named. */
  readonly what?: string;
  /** How the option of the base is called there. */
  readonly baseOption?: string;
}

/** Finds a model and the base of an adapter. Throws ModelError for what is not there, ConfigError for a base that nothing needs. */
export async function findModel(text: string, options: FindOptions = {}): Promise<FoundModel> {
  const { base, what = "model", baseOption = "--base", elsewhere = false, ...fetch } = options;
  const named = namedModel(await localModel(text, { ...fetch, ...(elsewhere && { weights: false }) }), what);
  if (elsewhere) {
    if (base === undefined) return named;
    throw new ConfigError({ place: `option ${baseOption}`, cause: "the base is the server's", mend: "leave it out" });
  }
  if (!(await isAdapterFolder(named.folder))) {
    if (base === undefined) return named;
    throw new ConfigError({ place: `option ${baseOption}`, cause: `${text} is a whole model and no adapter`, mend: "leave it out" });
  }
  const place = `${what} ${text}`;
  const folder = base === undefined ? await ownBase(named, place, baseOption, fetch) : (await whole(base, baseOption, fetch)).folder;
  return { ...named, folder, adapter: named.folder };
}

/** The base that an adapter belongs to by its own account, or by that of the run whose checkpoint it is. */
async function ownBase({ folder, run }: NamedModel, place: string, baseOption: string, fetch: Pick<FetchOptions, "onProgress">): Promise<string> {
  const recorded = (run?.reader.run.config as { readonly model?: string } | undefined)?.model;
  if (recorded !== undefined && existsSync(join(recorded, "config.json"))) return recorded;
  const { base } = await readPeftConfig(folder);
  const mend = `name it with ${baseOption}: its folder, a GGUF file or a hub id`;
  if (base === undefined) throw new ModelError({ place, cause: "it is an adapter that does not say what its base is", mend });
  if (!existsSync(base) && !isHubModel(base)) throw new ModelError({ place, cause: `it is an adapter, and its base ${base} is not here`, mend });
  try {
    return (await whole(base, "base", fetch)).folder;
  } catch (error) {
    if (!(error instanceof TouchstoneError)) throw error;
    const cause = `it is an adapter, and its base ${base} cannot be had (${error.message})`;
    throw new ModelError({ place, cause, mend }, { cause: error });
  }
}

async function whole(base: string, what: string, fetch: Pick<FetchOptions, "onProgress">): Promise<NamedModel> {
  const found = namedModel(await localModel(base, fetch), what);
  if (!(await isAdapterFolder(found.folder))) return found;
  throw new ModelError({
    place: `${what} ${base}`,
    cause: "it is an adapter itself",
    mend: "merge it first: touchstone export MODEL --to folder --out MERGED",
  });
}

/** Checks weights and adapter by their headers. Throws ModelError. */
export async function inspectModel({ folder, adapter }: FoundModel): Promise<DecoderConfig> {
  const config = await inspectFolder(folder);
  if (adapter !== undefined) await inspectAdapter(adapter, config, { name: folder, identity: () => folderIdentity(folder, config) });
  return config;
}

/** What loads a found model. */
export const loadRequestOf = ({ folder, adapter }: Pick<FoundModel, "folder" | "adapter">, role: string): LoadRequest => ({
  role,
  source: { from: "folder", path: folder },
  trainable: false,
  ...(adapter !== undefined && { adapter: { from: "folder", path: adapter } }),
});

/** The options of a tokenizer with the template that an adapter was trained with, where they name none; all else of the tokenizer is the base's. */
export function withTemplateOf({ adapter }: Pick<FoundModel, "adapter">, chat: TokenizerOptions): TokenizerOptions {
  const place = adapter === undefined ? undefined : join(adapter, templateFile);
  if (place === undefined || chat.template !== undefined || !existsSync(place)) return chat;
  return { ...chat, template: readFileSync(place, "utf8"), place };
}
