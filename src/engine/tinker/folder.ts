/** Folders that a model on a server is read from and written to: sizes of its base, the server's checkpoint that it stands for, and its adapter. */
import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { parseTar } from "nanotar";
import { z } from "zod";
import { ModelError } from "../../core/errors.js";
import { putFolder, writeJson } from "../onnx/folder-save.js";

/** What calls are checked against; `parameters` of a plain decoder, 0 where the configuration tells too little. */
export interface BaseLimits {
  readonly vocabulary: number;
  readonly maxTokens: number;
  readonly width: number;
  readonly layers: number;
  readonly parameters: number;
}

const stateFile = "tinker.json";
const state = z.strictObject({
  format: z.literal("touchstone-tinker"),
  version: z.literal(1),
  /** Address of the server's checkpoint. */
  path: z.string().min(1),
  base_model: z.string().min(1),
  rank: z.int().min(1),
});
export type FolderState = z.output<typeof state>;

async function jsonIn(folder: string, name: string): Promise<unknown> {
  const path = join(folder, name);
  try {
    return JSON.parse(await readFile(path, "utf8")) as unknown;
  } catch (error) {
    const cause = existsSync(path) ? `it is no JSON (${(error as Error).message})` : "there is no such file";
    throw new ModelError(
      { place: path, cause, mend: "give the folder of the server's model: config.json and the tokenizer's files will do" },
      { cause: error },
    );
  }
}

/** Sizes of the base, from config.json alone: its weights are on the server. Throws ModelError. */
export async function readLimits(folder: string): Promise<BaseLimits> {
  const found = (await jsonIn(folder, "config.json")) as { readonly [key: string]: unknown } | null;
  const fields = { ...found, ...(found?.text_config as object | undefined) } as { readonly [key: string]: unknown };
  const count = (name: string): number => {
    const value = fields[name];
    if (Number.isSafeInteger(value) && (value as number) > 0) return value as number;
    throw new ModelError({
      place: join(folder, "config.json"),
      cause: `${name} is ${JSON.stringify(value ?? null)}`,
      mend: "take the configuration of the server's model",
    });
  };
  const limits = {
    vocabulary: count("vocab_size"),
    maxTokens: count("max_position_embeddings"),
    width: count("hidden_size"),
    layers: count("num_hidden_layers"),
  };
  return { ...limits, parameters: parametersOf(fields, limits) };
}

function parametersOf(fields: { readonly [key: string]: unknown }, { vocabulary, width, layers }: Omit<BaseLimits, "parameters">): number {
  const heads = Number(fields.num_attention_heads);
  const headWidth = Number(fields.head_dim ?? width / heads);
  const values = Number(fields.num_key_value_heads ?? heads) * headWidth;
  const layer = 2 * width * heads * headWidth + 2 * width * values + 3 * width * Number(fields.intermediate_size) + 2 * width;
  const experts = Object.keys(fields).some((name) => name.includes("expert"));
  const total = layers * layer + vocabulary * width * (fields.tie_word_embeddings === true ? 1 : 2) + width;
  return experts || !Number.isFinite(total) ? 0 : total;
}

/** The server's checkpoint that a folder stands for; undefined for the folder of a base. */
export async function readState(folder: string): Promise<FolderState | undefined> {
  if (!existsSync(join(folder, stateFile))) return undefined;
  const parsed = state.safeParse(await jsonIn(folder, stateFile));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new ModelError({
    place: join(folder, stateFile),
    cause: `${issue?.path.join(".")}: ${issue?.message}`,
    mend: "take a checkpoint of a run on a server",
  });
}

const adapterFiles = ["adapter_config.json", "adapter_model.safetensors"];

/** Writes what `readState` and `readLimits` read, and the adapter of a sampler's checkpoint (a tar.gz) as a PEFT folder. */
export async function writeState(folder: string, saved: Omit<FolderState, "format" | "version">, base: string, archive: Uint8Array): Promise<void> {
  const files = archivedFiles(archive);
  await putFolder(folder, async (beside) => {
    await writeJson(join(beside, stateFile), { format: "touchstone-tinker", version: 1, ...saved });
    await copyFile(join(base, "config.json"), join(beside, "config.json"));
    await mkdir(beside, { recursive: true });
    for (const name of adapterFiles) await writeFile(join(beside, name), files.get(name) as Uint8Array);
  });
}

/** The adapter's files within an archive. Throws ModelError where they are not there. */
export function archivedFiles(archive: Uint8Array): Map<string, Uint8Array> {
  const refuse = (cause: string, error?: unknown): never => {
    throw new ModelError(
      { place: "the archive of a sampler's checkpoint", cause, mend: "save again; if it stays so, the server's archives are not those of the protocol" },
      { cause: error },
    );
  };
  let entries: ReturnType<typeof parseTar> = [];
  try {
    entries = parseTar(gunzipSync(archive));
  } catch (error) {
    refuse("it is no tar.gz", error);
  }
  const found = new Map(entries.flatMap((entry) => ("data" in entry && entry.data ? [[entry.name.replace(/^.*\//, ""), entry.data] as const] : [])));
  for (const name of adapterFiles) if (!found.has(name)) refuse(`it has no ${name}`);
  return found;
}
