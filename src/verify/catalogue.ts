/** The verifiers that can be named in a configuration. */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { suggestion } from "../core/options.js";
import type { Verifier } from "./contract.js";
import { loadVerifier, type VerifierSource } from "./source.js";

const modules: { readonly [name: string]: string } = { exact: "./exact/exact", number: "./number/number" };

/** Names of all verifiers. */
export const verifierNames: readonly string[] = Object.keys(modules);

/** A verifier by name, and where worker threads find it. Throws ConfigError for an unknown name or wrong options. */
export async function namedVerifier(name: string, options: Json = {}, place = "verifier"): Promise<{ verifier: Verifier; source: VerifierSource }> {
  const path = Object.hasOwn(modules, name) ? modules[name] : undefined;
  if (path === undefined) throw new ConfigError({ place, cause: `there is no verifier "${name}"`, mend: suggestion(name, verifierNames) });
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const source = { module: new URL(`${path}.${extension}`, import.meta.url).href, name, options };
  return { verifier: await loadVerifier(source), source };
}
