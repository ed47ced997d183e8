/** Flags of a server in place of an engine here, and the way from them to an engine. */
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
import { readState } from "../engine/tinker/folder.js";
import { connectTinker } from "../engine/tinker/start.js";
import { hasTokenizer, loadTokenizer, type TokenizerOptions } from "../tokenizers/load.js";
import { serverOptions as reachedBy } from "../train/engines.js";
import { type FoundModel, findModel, inspectModel, withTemplateOf } from "../train/find-model.js";
import { positiveNumber, someText, wholeNumber } from "./flags.js";
import { type BaseFlag, waiting } from "./read-model.js";

export interface RemoteFlags {
  readonly engine?: "onnx" | "openai" | "tinker";
  readonly baseUrl?: string;
  readonly servedModel?: string;
  readonly keyEnv?: string;
  readonly concurrency?: number;
  readonly requestDeadline?: number;
  readonly retries?: number;
}

/** Adds --engine and what belongs to a server that draws. */
export function remoteOptions(command: Command): Command {
  const about = "where it is drawn: here, or by a server that speaks OpenAI's interface or Tinker's; MODEL then is for its tokenizer, or a checkpoint on it";
  return serverOptions(command.addOption(new Option("--engine <name>", about).choices(["onnx", "openai", "tinker"])))
    .option("--concurrency <count>", "requests under way at once (openai; default: 32)", wholeNumber("--concurrency", 1))
    .option("--retries <count>", "further tries of a request (openai; default: 5)", wholeNumber("--retries", 0));
}

/** Adds --engine and what belongs to a server that trains; `engines`: what else may train. */
export function trainerOptions(command: Command, engines: readonly string[]): Command {
  const about = "where it is trained: in processes here, or as an adapter on a server of the Tinker protocol (docs/remote.md)";
  return serverOptions(command.addOption(new Option("--engine <name>", about).choices([...engines, "tinker"])));
}

function serverOptions(command: Command): Command {
  return command
    .option("--base-url <url>", "address of the server, such as http://127.0.0.1:8000/v1 (openai) or http://127.0.0.1:8000 (tinker)", someText("--base-url"))
    .option("--served-model <name>", "how the server calls the model (tinker: its only one where absent)", someText("--served-model"))
    .option("--key-env <variable>", "environment variable with the server's key", someText("--key-env"))
    .option(
      "--request-deadline <seconds>",
      "openai: of one try of a request (default: 600); tinker: of an operation (default: 900)",
      positiveNumber("--request-deadline"),
    );
}

const ofServer = [
  ["baseUrl", "--base-url", ["openai", "tinker"]],
  ["servedModel", "--served-model", ["openai", "tinker"]],
  ["keyEnv", "--key-env", ["openai", "tinker"]],
  ["requestDeadline", "--request-deadline", ["openai", "tinker"]],
  ["concurrency", "--concurrency", ["openai"]],
  ["retries", "--retries", ["openai"]],
] as const;
const needed = { openai: ["baseUrl", "servedModel"], tinker: ["baseUrl"] } as const;

/** Whether the engine is a server. Throws ConfigError for flags that do not go together. */
export function isRemote(flags: RemoteFlags & { readonly threads?: number | undefined }): boolean {
  const { engine = "onnx" } = flags;
  for (const [name, flag, engines] of ofServer) {
    if (flags[name] === undefined || (engines as readonly string[]).includes(engine)) continue;
    throw new ConfigError({
      place: `option ${flag}`,
      cause: engine === "onnx" ? "it belongs to a server, and the engine is here" : `servers of ${engine} have no use for it`,
      mend: engine === "onnx" ? `give --engine ${engines.join(" or ")} too, or leave it out` : "leave it out",
    });
  }
  if (engine === "onnx") return false;
  for (const [name, flag] of ofServer) {
    if (!(needed[engine] as readonly string[]).includes(name) || flags[name] !== undefined) continue;
    throw new ConfigError({ place: `option --engine ${engine}`, cause: `${flag} is missing`, mend: `give ${flag}` });
  }
  if (flags.threads !== undefined)
    throw new ConfigError({ place: "option --threads", cause: "the engine is a server, whose threads are its own", mend: "leave it out" });
  return true;
}

/** How a server of the Tinker protocol is reached. */
export const tinkerServer = ({ baseUrl, servedModel, keyEnv, requestDeadline }: RemoteFlags) => ({
  base_url: baseUrl,
  served_model: servedModel,
  key_env: keyEnv,
  deadline_s: requestDeadline,
});

export interface RemoteModel {
  readonly model: FoundModel;
  readonly tokenizer: Tokenizer;
  readonly limits: { readonly vocabulary: number; readonly maxPositions: number };
  readonly engine: Engine;
  /** The model and its server, for records. */
  readonly title: string;
}

/** Reads what belongs to the model here and asks the server what it can do. Throws before anything is drawn. */
export function openRemote(text: string, flags: RemoteFlags & BaseFlag, chat: TokenizerOptions, silent: boolean): Promise<RemoteModel> {
  return flags.engine === "tinker" ? openTinker(text, flags, chat, silent) : openOpenai(text, flags, chat, silent);
}

/** A base of a server, or a checkpoint of a run on it. */
async function openTinker(text: string, flags: RemoteFlags & BaseFlag, chat: TokenizerOptions, silent: boolean): Promise<RemoteModel> {
  const model = await findModel(text, { base: flags.base, elsewhere: true, onProgress: waiting(silent) });
  const tokenizer = await loadTokenizer(model.folder, chat);
  const saved = await readState(model.folder);
  const engine = await connectTinker({
    ...reachedBy(tinkerServer(flags)),
    ...(saved && { rank: saved.rank }),
    trains: false,
    onNotice: (notice) => void process.stderr.write(`${notice}\n`),
  });
  try {
    const info = await engine.weights.load({ role: "policy", source: { from: "folder", path: model.folder }, trainable: false });
    const title = `${saved?.path ?? engine.info.fingerprint.base} at ${flags.baseUrl}`;
    return { model, tokenizer, limits: { vocabulary: info.vocabulary, maxPositions: info.maxTokens }, engine, title };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

async function openOpenai(text: string, flags: RemoteFlags & BaseFlag, chat: TokenizerOptions, silent: boolean): Promise<RemoteModel> {
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
