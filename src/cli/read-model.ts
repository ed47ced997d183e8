/** A model as a command takes it: found, fetched or converted, its tokenizer and configuration read, before an engine is started. */
import type { Tokenizer } from "../core/tokenizer.js";
import type { Engine } from "../engine/contract.js";
import { inspectFolder } from "../engine/onnx/folder.js";
import { parameterCount } from "../engine/onnx/params.js";
import { startLocal, startOnnx } from "../engine/onnx/start.js";
import { loadTokenizer, refuseLargerTokenizer, type TokenizerOptions } from "../tokenizers/load.js";
import { localModel } from "../train/local-model.js";
import { type NamedModel, namedModel } from "../train/model-name.js";

type Config = Awaited<ReturnType<typeof inspectFolder>>;

export interface ReadModel {
  readonly model: NamedModel;
  readonly tokenizer: Tokenizer;
  readonly config: Config;
}

/** Throws ModelError for what is not there or cannot be loaded. */
export async function readModel(text: string, chat: TokenizerOptions, silent: boolean): Promise<ReadModel> {
  const model = namedModel(await localModel(text, { onProgress: (what) => silent || process.stderr.write(`Waiting for ${what}\n`) }));
  const [tokenizer, config] = [await loadTokenizer(model.folder, chat), await inspectFolder(model.folder)];
  refuseLargerTokenizer(tokenizer, config.vocabulary, model.folder);
  return { model, tokenizer, config };
}

/** An engine for models of this size. `threads`: absent, what suits it. */
export function startFor(config: Config, threads: number | undefined): Promise<Engine> {
  return threads === undefined ? startLocal(parameterCount(config)) : startOnnx({ engine: { threads } });
}
