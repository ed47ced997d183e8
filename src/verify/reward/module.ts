/** A reward that is a function of a TypeScript or JavaScript module. */
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { ConfigError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { loadModule } from "../../core/load.js";
import { parseOptions, suggestion } from "../../core/options.js";
import { programHash } from "../../core/program.js";
import type { Verifier } from "../contract.js";
import { itemOf, type RewardProblem } from "./item.js";
import { rewardOptions, verdictOf } from "./result.js";

export const moduleOptions = rewardOptions.extend({
  export: z.string().min(1).default("default").describe("Name of the exported function."),
});

/** A reward: a number on any scale, true or false, null for none, or an object with `reward` and whatever explains it. */
export type Reward = (problem: RewardProblem, response: string, more: { readonly truncated: boolean }) => unknown;

/** The verifier of a module's function; an exported verifier is itself, and an exported task brings its own. Throws ConfigError where there is none of them. */
export async function moduleVerifier({ module, ...options }: { readonly module: string; readonly [name: string]: Json }): Promise<Verifier> {
  const file = fileURLToPath(module);
  const place = `verifier ${basename(file)}`;
  const { export: name, range } = parseOptions(moduleOptions, options, place);
  const loaded = await loadModule(module);
  const exported = loaded[name];
  if (isVerifier(exported)) return exported;
  const ofTask = isTaskMaker(exported) ? exported().verifier : (exported as { readonly verifier?: unknown } | undefined | null)?.verifier;
  if (isVerifier(ofTask)) return ofTask;
  if (typeof exported !== "function") {
    const names = Object.keys(loaded).filter((each) => typeof loaded[each] === "function");
    const mend =
      names.length > 0 && exported === undefined
        ? `set the option export (${suggestion(name, names, "its functions")})`
        : "write `export default (problem, response) => …`";
    throw new ConfigError({ place, cause: `its export ${name} is ${exported === undefined ? "not there" : "no function"}`, mend });
  }
  return {
    name: basename(file),
    version: programHash(file).slice(0, 12),
    options: { export: name, range },
    deterministic: true,
    needsReference: false,
    checkReference: () => undefined,
    verify: async (input) => {
      const { problem, response, truncated } = itemOf(input);
      return verdictOf(await (exported as Reward)(problem, response, { truncated }), range);
    },
  };
}

/** What `defineTask` gives: a function that makes the task of options, here of none. */
const isTaskMaker = (value: unknown): value is () => { readonly verifier?: unknown } => typeof value === "function" && "taskName" in value;

function isVerifier(value: unknown): value is Verifier {
  const { verify, checkReference } = (value ?? {}) as Partial<Verifier>;
  return typeof verify === "function" && typeof checkReference === "function";
}
