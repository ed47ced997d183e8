/** Loads modules that users give by path: JavaScript as it is, TypeScript without compiling it first. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createJiti } from "jiti";
import { ConfigError, TouchstoneError } from "./errors.js";

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
  const found = statSync(whole, { throwIfNoEntry: false });
  const mend = "give the path of a .ts or .js file";
  if (found === undefined) throw new ConfigError({ place, cause: `there is no file ${path}`, mend });
  if (found.isFile() && !/\.[cm]?[jt]s$/.test(whole)) throw new ConfigError({ place, cause: `${path} is neither TypeScript nor JavaScript by its name`, mend });
  if (!found.isFile()) throw new ConfigError({ place, cause: `${path} is ${found.isDirectory() ? "a folder" : "no plain file"}`, mend });
  return pathToFileURL(whole).href;
}

/** Imports a module by URL; `anew`: it and what it imports by relative paths run again. Throws ConfigError with the file and line where it cannot be compiled, or throws while it is loaded. */
export async function loadModule(url: string, anew = false): Promise<Exports> {
  // Our own sources are loaded by whatever loads us, so that each of our modules exists once.
  if (url.startsWith(new URL("..", import.meta.url).href)) return (await import(url)) as Exports;
  const path = fileURLToPath(url);
  const jiti = createJiti(import.meta.url, { moduleCache: !anew, virtualModules: { "touchstone-rl": await import(entry) } });
  try {
    return (await jiti.import(path)) as Exports;
  } catch (error) {
    throw error instanceof TouchstoneError ? error : loadFault(error, path);
  }
}

function loadFault(error: unknown, path: string): ConfigError {
  const { message, stack, code }: NodeJS.ErrnoException = error instanceof Error ? error : new Error(String(error));
  const [, fault, file, line, column] = /^ParseError: (.*?)\s*\n\s*(.*):(\d+):(\d+)/.exec(message) ?? [];
  if (fault !== undefined) {
    const place = `${file}, line ${line}, column ${Number(column) + 1}`;
    return new ConfigError({ place, cause: `it cannot be compiled (${fault})`, mend: "correct the text there" }, { cause: error });
  }
  const at = stack?.split("\n").find((frame) => frame.includes(`${path}:`));
  const row = at?.slice(at.indexOf(`${path}:`) + path.length + 1).match(/^\d+/)?.[0];
  const place = row === undefined ? path : `${path}, line ${row}`;
  const [first] = message.split("\n");
  if (code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND") {
    return new ConfigError({ place, cause: `an import fails (${first})`, mend: "install the package, or correct the import" }, { cause: error });
  }
  return new ConfigError({ place, cause: `it throws when it is loaded (${describeThrown(error)})`, mend: "correct the module" }, { cause: error });
}

/** What was thrown, in a line. */
export function describeThrown(error: unknown): string {
  if (!(error instanceof Error)) return String(error).split("\n")[0] as string;
  const [first] = error.message.split("\n") as [string];
  return error.name === "Error" || error instanceof TouchstoneError ? first : `${error.name}: ${first}`;
}
