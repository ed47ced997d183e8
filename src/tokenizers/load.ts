/** The tokenizer of a model folder: an alphabet, or the files of a Hugging Face folder. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { alphabetFile, loadAlphabet } from "../core/alphabet.js";
import { ConfigError, ModelError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { placeIn, readJson } from "../core/json-text.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { type AddedToken, HubTokenizer, type TokenizerFile } from "./hub.js";
import { checkParts, checkSettings } from "./parts.js";
import { ChatTemplate, type TemplateOptions } from "./template.js";

export interface TokenizerOptions extends TemplateOptions {
  /** A template (Jinja) in place of the model's. */
  readonly template?: string;
  /** Where it was read, for errors. */
  readonly place?: string;
}

/** The file of a template beside the tokenizer's. */
export const templateFile = "chat_template.jinja";

/** Kinds of tokenizer models that can be built. */
const models = ["BPE", "WordPiece", "Unigram"];

type Fields = { readonly [key: string]: Json };

/** Whether a folder has a tokenizer of either kind. */
export const hasTokenizer = (folder: string): boolean => [alphabetFile, "tokenizer.json"].some((name) => existsSync(join(folder, name)));

/** The tokenizer of a folder. Throws ModelError where it has none, or a file of it is damaged; ConfigError for options of a template that there is not. */
export async function loadTokenizer(folder: string, options: TokenizerOptions = {}): Promise<Tokenizer> {
  if (existsSync(join(folder, alphabetFile))) {
    refuseTemplateOptions(`model ${folder}`, "it has an alphabet in place of a chat template", options);
    return loadAlphabet(folder);
  }
  const place = join(folder, "tokenizer.json");
  if (!existsSync(place)) {
    const others = ["tokenizer.model", "vocab.json", "vocab.txt"].find((name) => existsSync(join(folder, name)));
    throw new ModelError({
      place: folder,
      cause: `it has no tokenizer.json${others === undefined ? "" : `, and ${others} alone is not enough`}`,
      mend: "save the model again with transformers, which writes tokenizer.json, or give a folder that has one",
    });
  }
  const file = objectOf(readFile(place), place) as unknown as TokenizerFile;
  if (file.model === null || typeof file.model !== "object") {
    throw new ModelError({ place, cause: "it has no model", mend: "take the file that belongs to the model" });
  }
  const { type } = file.model;
  if (type !== undefined && !models.includes(type)) {
    throw new ModelError({
      place,
      cause: `its model is of the kind ${JSON.stringify(type)}, which is not known`,
      mend: `use a tokenizer of ${models.join(", ")}`,
    });
  }
  const settings = join(folder, "tokenizer_config.json");
  const config = optional(settings);
  checkParts(file, place);
  checkSettings(config, settings);
  return hubTokenizer({ place, file, config, folder }, options);
}

/** Throws ModelError, naming `place`, for a tokenizer with more tokens than the model has rows for. */
export function refuseLargerTokenizer(tokenizer: Tokenizer, rows: number, place: string): void {
  if (tokenizer.size <= rows) return;
  const cause = `its tokenizer has ${tokenizer.size} tokens and its vocabulary ${rows}`;
  throw new ModelError({ place, cause, mend: "give the tokenizer that belongs to the model" });
}

/** Throws ConfigError for what a template would take where there is none, and for a template where none can be used. */
export function refuseTemplateOptions(place: string, why: string, { template, kwargs, tools, system }: TokenizerOptions): void {
  const given = Object.entries({ "a chat template": template, "variables of a chat template": kwargs, tools, "a system message": system });
  const [name] = given.find(([, value]) => value !== undefined) ?? [];
  if (name === undefined) return;
  throw new ConfigError({ place, cause: `${why}, so ${name} would change nothing`, mend: "leave it out" });
}

interface HubFiles {
  readonly place: string;
  readonly file: TokenizerFile;
  readonly config: Fields;
  /** For chat_template.jinja and the end tokens of generation_config.json and config.json. */
  readonly folder?: string;
}

/** A tokenizer from its files' content. */
export function hubTokenizer({ place, file, config, folder }: HubFiles, options: TokenizerOptions = {}): HubTokenizer {
  const added = new Map((file.added_tokens ?? []).map((token) => [token.content, token]));
  const names = namesOf(config);
  const idOf = (name: string | undefined): number | undefined => (name === undefined ? undefined : (added.get(name)?.id ?? inVocabulary(file, name)));
  const eos = idOf(names.eos_token);
  if (eos === undefined && names.eos_token !== undefined)
    throw new ModelError({
      place: folder === undefined ? place : join(folder, "tokenizer_config.json"),
      cause: `its eos_token ${JSON.stringify(names.eos_token)} is no token of the vocabulary`,
      mend: "take the file that belongs to the tokenizer",
    });
  const others = folder === undefined ? [] : ["generation_config.json", "config.json"].flatMap((name) => idsOf(optional(join(folder, name)).eos_token_id));
  const eosIds = [...new Set([...(eos === undefined ? [] : [eos]), ...others])];
  if (eosIds.length === 0) {
    throw new ModelError({
      place: folder ?? place,
      cause: "its tokenizer has no end token, so no response would ever stop",
      mend: "name it as eos_token in tokenizer_config.json, or as eos_token_id in generation_config.json",
    });
  }
  const bosId = config.add_bos_token === true || begins(file, added.get(names.bos_token ?? "")) ? idOf(names.bos_token) : undefined;
  const template = templateOf(config, folder, options);
  if (template === undefined) refuseTemplateOptions(`model ${folder ?? place}`, "it has no chat template", options);
  const specials = (file.added_tokens ?? []).filter(({ special }) => special === true).map(({ content }) => content);
  return new HubTokenizer({
    place,
    file,
    config,
    eosIds,
    ...(bosId === undefined ? {} : { bosId }),
    ...(template === undefined ? {} : { template: new ChatTemplate(template.source, template.place, specials, names, options) }),
  });
}

/** bos_token, eos_token and their like, written as a string or as an added token. */
function namesOf(config: Fields): { readonly [name: string]: string } {
  const named = ["bos_token", "eos_token", "pad_token", "unk_token"].flatMap((key) => {
    const value = config[key];
    const content = typeof value === "string" ? value : ((value as Fields | null | undefined)?.content as Json | undefined);
    return typeof content === "string" ? [[key, content] as const] : [];
  });
  return Object.fromEntries(named);
}

function inVocabulary({ model }: TokenizerFile, name: string): number | undefined {
  const { vocab } = model;
  if (Array.isArray(vocab)) {
    const place = (vocab as readonly Json[]).findIndex((piece) => Array.isArray(piece) && piece[0] === name);
    return place < 0 ? undefined : place;
  }
  const id = vocab !== null && typeof vocab === "object" ? (vocab as Fields)[name] : undefined;
  return typeof id === "number" ? id : undefined;
}

const idsOf = (value: Json | undefined): number[] => (Array.isArray(value) ? value : [value]).filter((id): id is number => Number.isSafeInteger(id));

/** Whether the post-processor puts this token before a text. */
function begins(file: TokenizerFile, token: AddedToken | undefined): boolean {
  if (token === undefined) return false;
  const { post_processor: processor } = file as unknown as Fields;
  const all = [processor, ...(((processor as Fields | null | undefined)?.processors as Json[] | undefined) ?? [])] as (Fields | null | undefined)[];
  return all.some((one) => {
    const first = (one?.single as Fields[] | undefined)?.[0]?.SpecialToken as Fields | undefined;
    return one?.type === "TemplateProcessing" && first?.id === token.content;
  });
}

/** The template given, else chat_template.jinja, else that of tokenizer_config.json (of several the one named default). */
export function templateOf(config: Fields, folder: string | undefined, options: TokenizerOptions = {}): { source: string; place: string } | undefined {
  if (options.template !== undefined) return { source: options.template, place: options.place ?? "the chat template given" };
  const file = folder === undefined ? undefined : join(folder, templateFile);
  if (file !== undefined && existsSync(file)) return { source: readFile(file), place: file };
  const place = folder === undefined ? "tokenizer_config.json" : join(folder, "tokenizer_config.json");
  const { chat_template: own } = config;
  if (typeof own === "string") return { source: own, place };
  if (!Array.isArray(own)) return undefined;
  const named = (own as readonly Fields[]).find(({ name }) => name === "default") ?? (own[0] as Fields | undefined);
  return typeof named?.template === "string" ? { source: named.template, place } : undefined;
}

function optional(path: string): Fields {
  return existsSync(path) ? objectOf(readFile(path), path) : {};
}

function readFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ModelError({ place: path, cause: `it cannot be read (${(error as NodeJS.ErrnoException).code})`, mend: "check the model folder" });
  }
}

function objectOf(text: string, place: string): Fields {
  const { value, fault } = readJson(text);
  if (fault !== undefined) {
    const { line, column } = placeIn(text, fault.at);
    throw new ModelError({ place: `${place}, line ${line}, column ${column}`, cause: `it is not JSON: ${fault.cause}`, mend: "fetch or write the file again" });
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new ModelError({ place, cause: "it is not a JSON object", mend: "take the file that belongs to the model" });
  }
  return value as Fields;
}
