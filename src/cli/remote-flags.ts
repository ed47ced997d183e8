/** Flags of a server that draws in place of an engine here, and the way from them to an engine. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Engine } from "../engine/contract.js";
import { OpenaiEngine } from "../engine/openai/engine.js";
import { keyFrom } from "../engine/openai/settings.js";
import { needCapability } from "../engine/refuse.js";
import { hasTokenizer, loadTokenizer, type TokenizerOptions } from "../tokenizers/load.js";
import { type FoundModel, findModel, inspectModel, withTemplateOf } from "../train/find-model.js";
import { positiveNumber, someText, wholeNumber } from "./flags.js";
import { type BaseFlag, waiting } from "./read-model.js";

export interface RemoteFlags {
  readonly engine?: "onnx" | "openai";
  readonly baseUrl?: string;
  readonly servedModel?: string;
  readonly keyEnv?: string;
  readonly concurrency?: number;
  readonly requestDeadline?: number;
  readonly retries?: number;
}

/** Adds --engine and what belongs to a server. */
export function remoteOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--engine <name>", "where it is drawn: here, or by an OpenAI-compatible server; MODEL then is for its tokenizer alone").choices([
        "onnx",
        "openai",
      ]),
    )
    .option("--base-url <url>", "address of the server, such as http://127.0.0.1:8000/v1", someText("--base-url"))
    .option("--served-model <name>", "how the server calls the model", someText("--served-model"))
    .option("--key-env <variable>", "environment variable with the server's key", someText("--key-env"))
    .option("--concurrency <count>", "requests under way at once (default: 32)", wholeNumber("--concurrency", 1))
    .option("--request-deadline <seconds>", "of one try of a request (default: 600)", positiveNumber("--request-deadline"))
    .option("--retries <count>", "further tries of a request (default: 5)", wholeNumber("--retries", 0));
}

const ofServer = [
  ["baseUrl", "--base-url"],
  ["servedModel", "--served-model"],
  ["keyEnv", "--key-env"],
  ["concurrency", "--concurrency"],
  ["requestDeadline", "--request-deadline"],
  ["retries", "--retries"],
] as const;

/** Whether a server draws. Throws ConfigError for flags that do not go together. */
export function isRemote(flags: RemoteFlags & { readonly threads?: number | undefined }): boolean {
  if (flags.engine !== "openai") {
    const given = ofServer.find(([name]) => flags[name] !== undefined);
    if (given === undefined) return false;
    throw new ConfigError({
      place: `option ${given[1]}`,
      cause: "it belongs to a server, and the engine is here",
      mend: "give --engine openai too, or leave it out",
    });
  }
  for (const [name, flag] of ofServer.slice(0, 2)) {
    if (flags[name] === undefined) throw new ConfigError({ place: "option --engine openai", cause: `${flag} is missing`, mend: `give ${flag}` });
  }
  if (flags.threads !== undefined)
    throw new ConfigError({ place: "option --threads", cause: "the engine is a server, whose threads are its own", mend: "leave it out" });
  return true;
}

export interface RemoteModel {
  readonly model: FoundModel;
  readonly tokenizer: Tokenizer;
  readonly limits: { readonly vocabulary: number; readonly maxPositions: number };
  readonly engine: Engine;
  /** The model and its server, for records. */
  readonly title: string;
}

/** Reads what belongs to the model here and asks the server what it can do. Throws before anything is drawn. */
export async function openRemote(text: string, flags: RemoteFlags & BaseFlag, chat: TokenizerOptions, silent: boolean): Promise<RemoteModel> {
  const { baseUrl = "", servedModel = "", keyEnv, concurrency, requestDeadline, retries } = flags;
  const key = keyFrom(keyEnv, "option --key-env");
  const { model, tokenizer, vocabulary, maxTokens } = await readVocabulary(text, flags, chat, silent);
  const engine = await OpenaiEngine.open({
    baseUrl,
    served: servedModel,
    ...(key !== undefined && { key }),
    ...(concurrency !== undefined && { concurrency }),
    ...(requestDeadline !== undefined && { deadlineMs: 1000 * requestDeadline }),
    ...(retries !== undefined && { retries }),
    model: { tokenizer, ...(vocabulary !== undefined && { vocabulary }), ...(maxTokens !== undefined && { maxTokens }) },
    place: "option --base-url",
  });
  try {
    needCapability(engine.info, "sample", `${servedModel} at ${baseUrl}`);
    const info = await engine.weights.load({ role: "policy", source: { from: "folder", path: model.folder }, trainable: false });
    return { model, tokenizer, limits: { vocabulary: info.vocabulary, maxPositions: info.maxTokens }, engine, title: `${servedModel} at ${baseUrl}` };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Tokenizer and limits of a model whose weights are elsewhere: a folder with its tokenizer is enough. */
async function readVocabulary(text: string, flags: BaseFlag, chat: TokenizerOptions, silent: boolean) {
  if (existsSync(text) && hasTokenizer(text)) {
    const config = configOf(text);
    const number = (name: string): number | undefined => (typeof config[name] === "number" ? (config[name] as number) : undefined);
    const tokenizer = await loadTokenizer(text, chat);
    const rows = number("vocab_size") ?? number("vocabulary");
    return {
      model: { folder: text } as FoundModel,
      tokenizer,
      vocabulary: Math.max(rows ?? 0, tokenizer.size),
      maxTokens: number("max_position_embeddings") ?? number("maxTokens"),
    };
  }
  const model = await findModel(text, { base: flags.base, onProgress: waiting(silent) });
  const { vocabulary, maxPositions } = await inspectModel(model);
  return { model, tokenizer: await loadTokenizer(model.folder, withTemplateOf(model, chat)), vocabulary, maxTokens: maxPositions };
}

function configOf(folder: string): { readonly [name: string]: Json } {
  const file = join(folder, "config.json");
  if (!existsSync(file)) return {};
  try {
    return JSON.parse(readFileSync(file, "utf8")) as { readonly [name: string]: Json };
  } catch (error) {
    throw new ConfigError({
      place: file,
      cause: `it cannot be read (${(error as Error).message})`,
      mend: "mend it, or remove it: the server's limits hold then",
    });
  }
}
