/** Tasks by name, or by the path of a module whose default export is one. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigError, TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { describeThrown, isModulePath, loadModule, moduleUrl } from "../core/load.js";
import { suggestion } from "../core/options.js";
import type { VerifierSource } from "../verify/source.js";
import type { Task } from "./contract.js";

const modules: { readonly [name: string]: string } = {
  add: "./add/add",
  calculator: "./calculator/calculator",
  chain: "./chain/chain",
  guess: "./guess/guess",
  pair: "./pair/pair",
};

/** Names of the tasks that come with Touchstone. */
export const taskNames: readonly string[] = Object.keys(modules);

/** A task with its options, and where worker threads find its verifier. `folder`: where a relative path begins; `anew`: a module of one's own runs again. */
export async function namedTask(name: string, options: Json = {}, folder = ".", place = "task", anew = false): Promise<{ task: Task; source: VerifierSource }> {
  const path = Object.hasOwn(modules, name) ? modules[name] : undefined;
  if (path === undefined && !isModulePath(name)) {
    throw new ConfigError({
      place,
      cause: `there is no task "${name}"`,
      mend: `${suggestion(name, taskNames)}, or give the path of a module that exports one`,
    });
  }
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const source: VerifierSource =
    path === undefined
      ? { module: moduleUrl(name, folder, place), name: "default", options }
      : { module: new URL(`${path}.${extension}`, import.meta.url).href, name, options };
  const exported = (await loadModule(source.module, anew))[source.name];
  const task = made(exported, options, `${place} ${name}`);
  if (isTask(task)) return { task, source };
  throw new ConfigError({ place: `${place} ${name}`, cause: "its default export is no task", mend: "write `export default defineTask({ … })`" });
}

function made(exported: unknown, options: Json, place: string): unknown {
  if (typeof exported !== "function") return exported;
  try {
    return (exported as (options: Json) => unknown)(options);
  } catch (error) {
    if (error instanceof TouchstoneError) throw error;
    throw new ConfigError(
      { place, cause: `it throws when it is made (${describeThrown(error)})`, mend: "correct the module, or give other options" },
      { cause: error },
    );
  }
}

/** Whether a value is a task rather than its name or options. */
export function isTask(value: unknown): value is Task {
  const { problems, size, verifier } = (value ?? {}) as Partial<Task>;
  return typeof problems === "function" && typeof size === "function" && typeof verifier === "object";
}

/**
 * The task that a module exports, with its options: for tests and programs. TypeScript needs no compiler.
 *
 *     const task = await loadTask(new URL("task.ts", import.meta.url));
 */
export async function loadTask(file: string | URL, options: Json = {}): Promise<Task> {
  const path = typeof file === "string" ? resolve(file) : fileURLToPath(file);
  return (await namedTask(path, options)).task;
}
