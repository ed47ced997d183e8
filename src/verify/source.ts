/** Where a verifier can be made anew: in a worker thread a function of this program cannot be called, a module can be loaded. */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { loadModule } from "../core/load.js";
import type { Verifier } from "./contract.js";

/** A module with an export that, called with options, gives a verifier or something that has one (a task). */
export interface VerifierSource {
  /** URL of the module. */
  readonly module: string;
  readonly name: string;
  readonly options: Json;
}

/** Loads the module and makes the verifier. Throws ConfigError when there is none. */
export async function loadVerifier(source: VerifierSource): Promise<Verifier> {
  const loaded = await loadModule(source.module);
  const exported = loaded[source.name];
  const made: unknown = typeof exported === "function" ? await (exported as (options: Json) => unknown)(source.options) : exported;
  const verifier = isVerifier(made) ? made : (made as { readonly verifier?: unknown } | undefined)?.verifier;
  if (isVerifier(verifier)) return verifier;
  throw new ConfigError({
    place: source.module,
    cause: `its export ${source.name} makes no verifier`,
    mend: "export a verifier, a task, or a function that makes one from options",
  });
}

function isVerifier(value: unknown): value is Verifier {
  const { verify, checkReference } = (value ?? {}) as Partial<Verifier>;
  return typeof verify === "function" && typeof checkReference === "function";
}
