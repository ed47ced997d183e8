/** The verifiers that can be named in a configuration. */
import { resolve } from "node:path";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { isModulePath, moduleUrl } from "../core/load.js";
import { nearestName, suggestion } from "../core/options.js";
import type { Verifier } from "./contract.js";
import { fromFolder, isOutside, outsideVerifier } from "./reward/outside.js";
import { loadVerifier, type VerifierSource } from "./source.js";

const modules: { readonly [name: string]: string } = Object.fromEntries(
  ["math", "number", "exact", "choice", "formula", "compose", "trinary", "judge"].map((name) => [name, `./${name}/${name}`]),
);

/** Names of all verifiers. */
export const verifierNames: readonly string[] = Object.keys(modules);

/** How else a verifier can be named. */
const others = "a reward of your own: ./reward.ts, command:…, python:file.py:function, http://…";

/**
 * A verifier by name, and where worker threads find it: one of ours, the path of a module with a reward function, or a
 * reward outside of this program. Throws ConfigError for an unknown name or wrong options.
 */
export async function namedVerifier(name: string, options: Json = {}, place = "verifier"): Promise<{ verifier: Verifier; source?: VerifierSource }> {
  if (isOutside(name)) return { verifier: outsideVerifier(name, options, place) };
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const ours = (path: string): string => new URL(`${path}.${extension}`, import.meta.url).href;
  const path = Object.hasOwn(modules, name) ? modules[name] : undefined;
  if (path === undefined && !isModulePath(name)) {
    throw new ConfigError({
      place,
      cause: `there is no verifier "${name}"`,
      mend: nearestName(name, verifierNames) === undefined ? `name one of ${verifierNames.join(", ")}, or ${others}` : suggestion(name, verifierNames),
    });
  }
  const source =
    path === undefined
      ? { module: ours("./reward/module"), name: "moduleVerifier", options: { ...(options as { [name: string]: Json }), module: moduleUrl(name, ".", place) } }
      : { module: ours(path), name, options };
  return { verifier: await loadVerifier(source), source };
}

/** A verifier's name and options with whole paths, as seen from a folder. */
export function verifierFrom(
  name: string,
  options: { readonly [name: string]: Json },
  folder: string,
): { name: string; options: { readonly [name: string]: Json } } {
  if (!Object.hasOwn(modules, name) && !isOutside(name) && isModulePath(name)) return { name: resolve(folder, name), options };
  return fromFolder(name, options, folder);
}
