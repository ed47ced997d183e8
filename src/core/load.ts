/** Loads modules that users give by path: JavaScript as it is, TypeScript without compiling it first. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createJiti } from "jiti";
import { ConfigError } from "./errors.js";

/** Exports of a module by name. */
export type Exports = { readonly [name: string]: unknown };

/** Our own entry: what `touchstone-rl` means in a loaded file, wherever that lies. */
const entry = new URL(import.meta.url.endsWith(".ts") ? "../index.ts" : "../index.js", import.meta.url).href;

/** Whether a text names a module by path rather than something by name. */
export function isModulePath(text: string): boolean {
  return /\.[cm]?[jt]s$/.test(text) || text.startsWith("./") || text.startsWith("../") || text.startsWith("/");
}

/** The URL of a module path, relative to `folder`. Throws ConfigError when there is no such file. */
export function moduleUrl(path: string, folder: string, place: string): string {
  const whole = resolve(folder, path);
  if (!existsSync(whole)) throw new ConfigError({ place, cause: `there is no file ${path}`, mend: "give the path of a .ts or .js file" });
  return pathToFileURL(whole).href;
}

/** Imports a module by URL. What the module throws is passed on. */
export async function loadModule(url: string): Promise<Exports> {
  // Our own sources are loaded by whatever loads us, so that each of our modules exists once.
  if (url.startsWith(new URL("..", import.meta.url).href)) return (await import(url)) as Exports;
  const jiti = createJiti(import.meta.url, { virtualModules: { "touchstone-rl": await import(entry) } });
  return (await jiti.import(fileURLToPath(url))) as Exports;
}
