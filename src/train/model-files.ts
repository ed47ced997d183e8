/** The tokenizer of a policy, and its files beside saved weights. */
import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync } from "node:fs";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { saveAlphabet } from "../core/alphabet.js";
import { ModelError } from "../core/errors.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { hasTokenizer, loadTokenizer, refuseTemplateOptions, type TokenizerOptions, templateFile } from "../tokenizers/load.js";
import type { FoundModel } from "./find-model.js";

/** Files of a model folder that are neither weights nor their configuration. */
const besides = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "tokenizer.model",
  templateFile,
  "generation_config.json",
];

/**
 * The tokenizer of a model folder, else the task's own. Throws ModelError when there is none, or when both are alphabets
 * and disagree; a published model's own tokenizer writes any task's texts.
 */
export async function tokenizerOf(folder: string, own: Tokenizer | undefined, options: TokenizerOptions = {}): Promise<Tokenizer> {
  if (!hasTokenizer(folder) && own !== undefined) {
    refuseTemplateOptions(`model ${folder}`, "it has the task's alphabet in place of a chat template", options);
    return own;
  }
  const found = await loadTokenizer(folder, options);
  if (own !== undefined && isAlphabet(found) && found.id !== own.id) {
    throw new ModelError({
      place: `model ${folder}`,
      cause: `its tokenizer ${found.id} is not the task's ${own.id}`,
      mend: "give the model that was made for this task and its options",
    });
  }
  return found;
}

const isAlphabet = ({ id }: Tokenizer): boolean => id.startsWith("alphabet:");

/** Puts the tokenizer's files of a model folder (undefined: a new policy) beside weights that were saved from it; `template`: that in place of the folder's own. */
export async function saveTokenizer(tokenizer: Tokenizer, model: string | undefined, folder: string, template?: string): Promise<void> {
  if (model !== undefined) for (const name of besides) if (existsSync(join(model, name))) await copyFile(join(model, name), join(folder, name));
  if (template !== undefined) await writeFile(join(folder, templateFile), template);
  if (isAlphabet(tokenizer)) await saveAlphabet(tokenizer, folder);
}

/** SHA-256 over the weights and configuration of a model, those of an adapter among them: two of one hash are the same. */
export async function hashModel({ folder, adapter }: Pick<FoundModel, "folder" | "adapter">): Promise<string> {
  const hash = createHash("sha256");
  for (const each of adapter === undefined ? [folder] : [folder, adapter]) {
    const names = readdirSync(each).filter((name) => /^(adapter_)?config\.json$/.test(name) || name.endsWith(".safetensors"));
    for (const name of names.sort()) {
      hash.update(`${name}\n`);
      for await (const piece of createReadStream(join(each, name))) hash.update(piece as Uint8Array);
    }
  }
  return hash.digest("hex");
}
