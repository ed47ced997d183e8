/** Model folders for tests of what reads or writes them: fixture models with an alphabet for a tokenizer. */
import { copyFileSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alphabetFile } from "../../src/core/alphabet.js";
import { fixture } from "../paths.js";

/** A name for a test, and the fixture folder, with another configuration of it where one is named. */
export interface FolderOf {
  readonly folder: string;
  readonly config?: string;
}

/** A copy of a fixture model's folder with the files that a model has, and an alphabet whose end token is a token of the model. */
export function modelFolder({ folder, config }: FolderOf): string {
  const source = fixture("models", folder);
  const target = mkdtempSync(join(tmpdir(), `${folder}-`));
  const names = readdirSync(source).filter((name) => /^(config|generation_config)\.json$|^model.*\.(safetensors|index\.json)$/.test(name));
  for (const name of names) copyFileSync(join(source, name), join(target, name));
  if (config !== undefined) copyFileSync(join(source, config), join(target, "config.json"));
  writeFileSync(join(target, alphabetFile), JSON.stringify({ format: "touchstone-alphabet-1", symbols: ["0", "1", "10", "+", "\n", "é"] }));
  return target;
}
