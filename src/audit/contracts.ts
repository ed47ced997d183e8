/** What verifiers say of themselves that they read: the categories, forms and settings in which a failure counts against them. */
import { ConfigError } from "../core/errors.js";
import { suggestion } from "../core/options.js";
import { type Form, forms } from "./value.js";
import { type Category, categories, type Pair, type Setting } from "./variants.js";

export interface Contract {
  readonly categories: readonly Category[];
  readonly forms: readonly Form[];
  readonly settings: readonly Setting[];
}

const settings: readonly Setting[] = ["bare", "delimited"];
const everything: Contract = { categories, forms, settings };
const numbers: readonly Form[] = ["integer", "fraction", "decimal"];

/** By the verifier's name as audited; any other verifier is held to everything. */
const known: { readonly [verifier: string]: Contract } = {
  "baseline:trimmed": { categories: ["identity"], forms, settings: ["bare"] },
  "baseline:normaliser": { categories: ["identity", "whitespace", "delimiters", "fraction form"], forms, settings },
  "baseline:cascade": { categories: ["identity", "whitespace", "number form", "fraction form", "percent"], forms: numbers, settings },
  "baseline:symbolic": { categories: categories.filter((category) => category !== "identity"), forms, settings: ["delimited"] },
  number: { categories: ["identity", "whitespace", "punctuation", "number form", "percent"], forms: ["integer", "decimal"], settings },
  exact: { categories: ["identity"], forms, settings: ["bare"] },
};

/** The contract of a verifier; `only`: its categories as the caller names them. Throws ConfigError for one that is none. */
export function contractOf(verifier: string, only?: readonly string[]): Contract {
  const contract = known[verifier] ?? everything;
  if (only === undefined) return contract;
  const wrong = only.find((name) => !(categories as readonly string[]).includes(name));
  if (wrong !== undefined) throw new ConfigError({ place: "contract", cause: `there is no category "${wrong}"`, mend: suggestion(wrong, categories) });
  return { ...contract, categories: only as readonly Category[] };
}

/** Whether a pair lies in what a contract promises. */
export function isPromised({ categories: promised, forms: of, settings: set }: Contract, { category, gold, setting }: Pair): boolean {
  return promised.includes(category) && of.includes(gold.form) && set.includes(setting);
}
