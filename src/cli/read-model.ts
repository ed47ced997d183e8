/** A model as a command takes it: found, fetched or converted, its tokenizer and configuration read, before an engine is started. */
import type { Command } from "commander";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Engine } from "../engine/contract.js";
import type { DecoderConfig } from "../engine/onnx/config.js";
import { availableMemory, estimateMemory, type MemoryEstimate, refuseUnlessFits } from "../engine/onnx/memory.js";
import { parameterCount } from "../engine/onnx/params.js";
import { startLocal, startOnnx } from "../engine/onnx/start.js";
import { loadTokenizer, refuseLargerTokenizer, type TokenizerOptions } from "../tokenizers/load.js";
import { type FoundModel, findModel, inspectModel, withTemplateOf } from "../train/find-model.js";
import { someText } from "./flags.js";

export interface BaseFlag {
  readonly base?: string;
}

/** Adds --base. */
export const baseOption = (command: Command): Command =>
  command.option("--base <model>", "the base of MODEL where that is an adapter (default: the one that it names)", someText("--base"));

export interface ReadModel {
  readonly model: FoundModel;
  readonly tokenizer: Tokenizer;
  readonly config: DecoderConfig;
}

/** Waits of a command that are told on stderr. */
export const waiting =
  (silent: boolean) =>
  (what: string): void => {
    if (!silent) process.stderr.write(`Waiting for ${what}\n`);
  };

/** Throws ModelError for what is not there or cannot be loaded. */
export async function readModel(text: string, { base }: BaseFlag, chat: TokenizerOptions, silent: boolean): Promise<ReadModel> {
  const model = await findModel(text, { base, onProgress: waiting(silent) });
  const [tokenizer, config] = [await loadTokenizer(model.folder, withTemplateOf(model, chat)), await inspectModel(model)];
  refuseLargerTokenizer(tokenizer, config.vocabulary, model.folder);
  return { model, tokenizer, config };
}

/** Throws MemoryError with what would fit, where sequences of that many tokens could not even be drawn two at a time. */
export function refuseUnlessRoom(config: DecoderConfig, length: number, place: string): void {
  const needed = (tokens: number): MemoryEstimate => estimateMemory(config, { kind: "sample", sequences: 2, length: tokens });
  const shorter = [2, 4, 8, 16].map((part) => Math.floor(length / part));
  refuseUnlessFits(needed(length), availableMemory(), `sampling ${place}`, () => {
    const found = shorter.find((tokens) => tokens > 0 && needed(tokens).total <= availableMemory());
    return found === undefined ? [] : [{ what: `prompts with answers of at most ${found} tokens`, estimate: needed(found) }];
  });
}

/** An engine for models of this size. `threads`: absent, what suits it. */
export function startFor(config: DecoderConfig, threads: number | undefined): Promise<Engine> {
  return threads === undefined ? startLocal(parameterCount(config)) : startOnnx({ engine: { threads } });
}
