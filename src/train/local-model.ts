/** What a user may write for a model, as what is on this machine: folders and runs as they are, GGUF files and hub ids through the cache. */
import { createHash } from "node:crypto";
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { cacheFolder } from "../core/cache.js";
import { convertGguf } from "../engine/gguf/convert.js";
import { type FetchOptions, fetchModel, hubId } from "./hub-model.js";

/**
 * The folder or RUN@CHECKPOINT that a model's name stands for. A GGUF file becomes a folder in the cache once; a hub id
 * (`ORGANISATION/NAME`, `@REVISION`, `/FILE.gguf`) that is no path here is fetched. Throws ModelError.
 */
export async function localModel(text: string, options: FetchOptions = {}): Promise<string> {
  if (isFile(text)) return text.endsWith(".gguf") ? converted(text, options) : text;
  const id = isHubModel(text) ? hubId(text) : undefined;
  if (id === undefined) return text;
  const fetched = await fetchModel(id, options);
  return id.file === undefined ? fetched : converted(fetched, options);
}

/** Whether a model's name is no path here, with or without what follows its last @, and can be a hub's id. */
export function isHubModel(text: string): boolean {
  const at = text.lastIndexOf("@");
  return hubId(text) !== undefined && !existsSync(text) && !(at > 0 && existsSync(text.slice(0, at)));
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

/** The folder of a GGUF file, made on first use; another content under the same path is another folder. */
async function converted(path: string, { onProgress }: FetchOptions): Promise<string> {
  const real = realpathSync(path);
  const { size, mtimeMs } = statSync(real);
  const key = createHash("sha256")
    .update(JSON.stringify([real, size, mtimeMs]))
    .digest("hex")
    .slice(0, 12);
  const folder = join(cacheFolder(), "gguf", `${basename(real, ".gguf")}-${key}`);
  if (existsSync(folder)) return folder;
  onProgress?.(`${basename(path)} to become a folder`);
  await convertGguf(real, folder);
  return folder;
}
