/** What the bad-input tests share: the table of cases, a small policy, and a call of the command line within this process that is watched. */

import { execFileSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  closeSync,
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { exitCode, failureText } from "../../src/cli/failure.js";
import { runProgram } from "../../src/cli/program.js";
import { define } from "../../src/cli/train.js";
import { alphabetFile, alphabetTokenizer, saveAlphabet } from "../../src/core/alphabet.js";
import { TouchstoneError } from "../../src/core/errors.js";
import { parseModelConfig } from "../../src/engine/onnx/config.js";
import { saveFolder } from "../../src/engine/onnx/folder-save.js";
import { ParameterStore } from "../../src/engine/onnx/params.js";
import { methodNames } from "../../src/methods/catalogue.js";
import { trainConfig } from "../../src/train/config.js";
import { verifierNames } from "../../src/verify/catalogue.js";
import { repository } from "../paths.js";
import { tablePolicy } from "./tabular.js";

/** A way to be wrong: the command that it is given to (a name of `commands`), its file, more arguments behind, and the whole sentence that is due. */
export interface Case {
  readonly as: string;
  readonly file?: string;
  readonly more?: readonly string[];
  readonly says: string;
  /** Threads that are needed to tell; default 0. */
  readonly started?: number;
}

interface Table {
  /** Arguments by the name that `as` has; {file}, {model}, {out} and {temp} stand for paths. In `says` {options}, {methods}, {verifiers} and {flags} are all that there are. */
  readonly commands: { readonly [name: string]: readonly string[] };
  readonly cases: readonly Case[];
}

export const files = join(repository, "test", "bad-input", "files");
export const { commands, cases } = JSON.parse(readFileSync(join(repository, "test", "bad-input", "cases.json"), "utf8")) as Table;

/** The symbols of the small policy. */
const tokenizer = alphabetTokenizer([..."0123456789+-*="]);
/** The longest prompt with response that it takes. */
const maxTokens = 32;

/** A small decoder with random weights and its tokenizer, as a model folder. */
async function saveModel(folder: string): Promise<void> {
  const json = {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    vocab_size: tokenizer.size,
    hidden_size: 8,
    num_hidden_layers: 1,
    num_attention_heads: 1,
    num_key_value_heads: 1,
    intermediate_size: 8,
    max_position_embeddings: maxTokens,
    tie_word_embeddings: true,
    hidden_act: "silu",
    rms_norm_eps: 1e-5,
    eos_token_id: [...tokenizer.eosIds],
  };
  await saveFolder(ParameterStore.random(parseModelConfig(json, folder), 1), folder);
  await saveAlphabet(tokenizer, folder);
}

/** Paths for the placeholders of a case. */
export interface Places {
  readonly model: string;
  readonly out: string;
  readonly temp: string;
}

/** The options of `touchstone train`, in the order of its help. */
function flagsOfTrain(): string {
  const command = new Command();
  define(command);
  return [...command.options.filter(({ hidden }) => !hidden).map(({ long }) => long), "--help"].join(", ");
}

/** A text with its placeholders replaced. */
export function filled(text: string, { file }: Pick<Case, "file">, places: Places): string {
  const path = file === undefined ? "" : file.startsWith("{") ? file : join(files, file);
  return text
    .replaceAll("{file}", path)
    .replaceAll("{files}", files)
    .replaceAll("{options}", Object.keys(trainConfig.shape).join(", "))
    .replaceAll("{methods}", methodNames.join(", "))
    .replaceAll("{verifiers}", verifierNames.join(", "))
    .replaceAll("{flags}", flagsOfTrain())
    .replace(/\{(model|out|temp)\}/g, (_, name: keyof Places) => places[name]);
}

export function argumentsOf(one: Case, places: Places): string[] {
  return [...(commands[one.as] as readonly string[]), ...(one.more ?? [])].map((text) => filled(text, one, places));
}

export interface Refused {
  /** Undefined when nothing was thrown. */
  readonly says: string | undefined;
  readonly code: number;
  /** Whether the error is one of ours, with place, cause and mend. */
  readonly ours: boolean;
  /** Processes and threads that were started. */
  readonly started: number;
}

/** Runs a command line in this process to its refusal. */
export async function refused(args: readonly string[]): Promise<Refused> {
  let started = 0;
  const count = (): void => {
    started++;
  };
  const channels = ["child_process", "worker_threads"];
  for (const channel of channels) subscribe(channel, count);
  try {
    await runProgram(args);
    return { says: undefined, code: 0, ours: false, started };
  } catch (error) {
    return { says: failureText(error, {}), code: exitCode(error), ours: error instanceof TouchstoneError, started };
  } finally {
    for (const channel of channels) unsubscribe(channel, count);
  }
}

/** Names under a folder, at any depth. */
export const names = (folder: string): string[] => readdirSync(folder, { recursive: true }).map(String).sort();

/** A policy, and a folder with what no file of the repository can be: a pipe, a line of 100 MB, damaged policies, a run. */
export async function prepare(): Promise<Places> {
  const temp = mkdtempSync(join(tmpdir(), "touchstone-bad-input-"));
  const model = join(mkdtempSync(join(tmpdir(), "touchstone-bad-input-policy-")), "policy");
  await saveModel(model);
  const copy = (name: string): string => {
    cpSync(model, join(temp, name), { recursive: true });
    return join(temp, name);
  };
  rmSync(join(copy("no-weights"), "model.safetensors"));
  truncateSync(join(copy("cut-weights"), "model.safetensors"), 600);
  writeFileSync(join(copy("bad-config"), "config.json"), '{"architectures": ');
  rmSync(join(copy("no-tokenizer"), alphabetFile));
  writeFileSync(join(copy("bad-tokenizer"), alphabetFile), "[1]");
  await saveAlphabet(alphabetTokenizer([..."0123456789+-*=abcdefgh"]), copy("large-tokenizer"));
  cpSync(await tablePolicy(), join(temp, "table-policy"), { recursive: true });
  mkdirSync(join(temp, "run"));
  writeFileSync(join(temp, "run", "run.json"), "{}");
  if (process.platform !== "win32") execFileSync("mkfifo", [join(temp, "pipe")]);
  writeLongLine(join(temp, "long-line.jsonl"));
  for (const name of ["long-line.yaml", "long-line.json"]) linkSync(join(temp, "long-line.jsonl"), join(temp, name));
  return { model, out: join(temp, "out"), temp };
}

/** 100 MB without a line end. */
function writeLongLine(file: string): void {
  const piece = Buffer.alloc(2 ** 20, "x");
  const fd = openSync(file, "w");
  for (let i = 0; i < 100; i++) writeSync(fd, piece);
  closeSync(fd);
}
