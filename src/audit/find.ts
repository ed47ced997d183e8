/** Verifiers to be audited, by name: those of the catalogue, rewards of one's own, and the four baselines. */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { suggestion } from "../core/options.js";
import { namedVerifier } from "../verify/catalogue.js";
import { loadVerifier } from "../verify/source.js";
import type { Audited } from "./audit.js";

/** Names of the baselines. */
export const baselineNames = ["trimmed", "normaliser", "cascade", "symbolic"] as const;

const prefix = "baseline:";

/** A verifier with its options. Throws ConfigError for an unknown name or wrong options. */
export async function auditedVerifier(name: string, options: { readonly [name: string]: Json } = {}, place = "verifier"): Promise<Audited> {
  if (!name.startsWith(prefix)) return { name, ...(await namedVerifier(name, options, place)) };
  const baseline = name.slice(prefix.length);
  if (!(baselineNames as readonly string[]).includes(baseline))
    throw new ConfigError({ place, cause: `there is no baseline "${baseline}"`, mend: suggestion(baseline, baselineNames) });
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const source = { module: new URL(`./baselines.${extension}`, import.meta.url).href, name: baseline, options };
  return { name, verifier: await loadVerifier(source), source };
}
