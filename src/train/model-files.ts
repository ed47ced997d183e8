/** The tokenizer of a policy, and its files beside saved weights. */
import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { alphabetFile, loadAlphabet, saveAlphabet } from "../core/alphabet.js";
import { ModelError } from "../core/errors.js";
import type { Tokenizer } from "../core/tokenizer.js";

/** Files of a model folder that are neither weights nor their configuration. */
const besides = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "tokenizer.model",
  "chat_template.jinja",
  "generation_config.json",
];

/** Throws ModelError for what is no folder of a model. `what`: how it is called where it was named. */
export function refuseUnlessModel(folder: string, what: string): void {
  if (existsSync(join(folder, "config.json"))) return;
  const found = statSync(folder, { throwIfNoEntry: false });
  const [cause, mend] =
    found === undefined
      ? ["there is no such folder", "give the folder of a model"]
      : !found.isDirectory()
        ? ["it is a file", "give the folder of a model"]
        : existsSync(join(folder, "run.json"))
          ? ["it is a run, not a model", "give the policy of one of its checkpoints (checkpoints/STEP/policy)"]
          : ["it has no config.json", "give the folder of a model"];
  throw new ModelError({ place: `${what} ${folder}`, cause, mend });
}

/** The tokenizer of a model folder, else the task's own. Throws ModelError when there is none, or when the two disagree. */
export async function tokenizerOf(folder: string, own: Tokenizer | undefined): Promise<Tokenizer> {
  refuseUnlessModel(folder, "model");
  if (!existsSync(join(folder, alphabetFile)) && own !== undefined) return own;
  const found = await loadAlphabet(folder);
  if (own !== undefined && found.id !== own.id) {
    throw new ModelError({
      place: `model ${folder}`,
      cause: `its tokenizer ${found.id} is not the task's ${own.id}`,
      mend: "give the model that was made for this task and its options",
    });
  }
  return found;
}

/** Puts the tokenizer's files of a model folder beside weights that were saved from it. */
export async function saveTokenizer(tokenizer: Tokenizer, model: string, folder: string): Promise<void> {
  for (const name of besides) if (existsSync(join(model, name))) await copyFile(join(model, name), join(folder, name));
  if (tokenizer.id.startsWith("alphabet:")) await saveAlphabet(tokenizer, folder);
}

/** SHA-256 over the weights and configuration of a model folder: two folders of one hash are the same model. */
export async function hashModel(folder: string): Promise<string> {
  const hash = createHash("sha256");
  const names = readdirSync(folder).filter((name) => name === "config.json" || name.endsWith(".safetensors"));
  for (const name of names.sort()) {
    hash.update(`${name}\n`);
    for await (const piece of createReadStream(join(folder, name))) hash.update(piece as Uint8Array);
  }
  return hash.digest("hex");
}
