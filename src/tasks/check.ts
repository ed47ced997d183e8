/** What the types of `defineTask` say already, checked for tasks in JavaScript and for modules that are loaded without a compiler. */
import type { z } from "zod";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { inWords, promptOf } from "../core/json-lines.js";
import { suggestion } from "../core/options.js";
import { type Row, splits } from "./contract.js";
import type { TaskSpec } from "./define.js";

type AnySpec = { readonly [part in SpecPart]?: unknown };
type SpecPart = keyof (TaskSpec<z.ZodType<{ readonly [name: string]: unknown }>, Json> & object);

const whole = "give a name, one of draw and rows, and one of verify and verifier";
const specParts: readonly string[] = [
  ...(["name", "version", "options", "draw", "rows", "verify", "verifier"] satisfies SpecPart[]),
  ...(["solution", "action", "maxTokens", "tokenizer", "shares", "environment"] satisfies SpecPart[]),
];
const rowParts: readonly string[] = ["prompt", "answer", "solution", "key", "split", "privileged", "tags", "place"] satisfies (keyof Row)[];

/** Throws ConfigError for the first part of a task that is misspelt, missing, given twice or of another kind. */
export function checkSpec(spec: AnySpec): void {
  if (typeof spec !== "object" || spec === null)
    throw new ConfigError({ place: "defineTask", cause: `it was given ${shown(spec)}, not the parts of a task`, mend: whole });
  const { name } = spec;
  for (const [cause, mend] of faultsOfSpec(spec)) throw new ConfigError({ place: `task ${typeof name === "string" ? name : ""}`.trim(), cause, mend });
}

function* faultsOfSpec(spec: AnySpec): Generator<readonly [cause: string, mend: string]> {
  const { name, options, draw, rows, verify, verifier, maxTokens, solution, action, environment } = spec;
  if (typeof name !== "string" || name === "") yield ["it has no name", whole];
  for (const part of Object.keys(spec)) if (!specParts.includes(part)) yield [`a task has no part "${part}"`, suggestion(part, specParts)];
  if (is(draw) === is(rows)) yield [`${is(draw) ? "both draw and rows are" : "neither draw nor rows is"} given`, whole];
  if (is(verify) === is(verifier)) yield [`${is(verify) ? "both verify and verifier are" : "neither verify nor verifier is"} given`, whole];
  if (is(draw) && !isFunction(draw)) yield [`its draw is ${shown(draw)}, not a function`, "write draw: (random) => ({ prompt: …, answer: … })"];
  if (is(rows) && !isFunction(rows) && !Array.isArray(rows)) yield [`its rows are ${shown(rows)}, not a list`, "give a list of { prompt, answer }"];
  if (is(verify) && !isFunction(verify)) {
    yield [`its verify is ${shown(verify)}, not a function`, "write verify: ({ response, reference }) => true or false"];
  }
  if (is(verifier) && !isFunction(verifier) && !isFunction((verifier as { readonly verify?: unknown } | null)?.verify)) {
    yield [`its verifier is ${shown(verifier)}, not a verifier`, "give one, such as number(), or write verify instead"];
  }
  if (is(maxTokens) && !isFunction(maxTokens) && !(Number.isSafeInteger(maxTokens) && (maxTokens as number) > 0)) {
    yield [`its maxTokens is ${shown(maxTokens)}`, "give a whole number from 1 on"];
  }
  if (is(environment) && !isFunction(environment) && !isEnvironment(environment)) {
    yield [
      `its environment is ${shown(environment)}, without start and step`,
      "give an object with both functions, or a function that makes one from the options",
    ];
  }
  if (is(action) && !is(environment)) yield ["it has action and no environment", "give the environment, or write solution instead"];
  if (is(solution) && is(environment)) yield ["it has solution and an environment", "write action, which gives one turn after the other"];
  if (is(options) && !isStrict(options))
    yield ["its options are no strict zod object", "write options: z.strictObject({ … }), so that a misspelt one is refused"];
}

const isEnvironment = (value: unknown): boolean => {
  const { start, step } = (value ?? {}) as { readonly [name: string]: unknown };
  return isFunction(start) && isFunction(step);
};
const is = (value: unknown): boolean => value !== undefined;
const isFunction = (value: unknown): boolean => typeof value === "function";
/** A value of any kind, as a sentence names it. */
const shown = (value: unknown): string => (typeof value === "function" ? "a function" : inWords((value ?? null) as Json));

function isStrict(options: unknown): boolean {
  const def = (options as Partial<z.core.$ZodObject> | null)?._zod?.def;
  return def?.type === "object" && def.catchall?._zod.def.type === "never";
}

/** What keeps a row from being a problem; undefined where nothing does. */
export function rowFault(row: unknown): string | undefined {
  if (typeof row !== "object" || row === null || Array.isArray(row)) return `it is ${shown(row)}, not an object`;
  const { prompt, answer, key, split } = row as { readonly [name: string]: Json | undefined };
  const strange = Object.keys(row).find((name) => !rowParts.includes(name));
  if (strange !== undefined) return `it has "${strange}" (${suggestion(strange, rowParts)})`;
  if (prompt === undefined) return "it has no prompt";
  const messages = promptOf(prompt, "prompt");
  if (typeof messages === "string") return messages;
  if (answer === null || (typeof answer === "number" && !Number.isFinite(answer)) || typeof answer === "function") return `its answer is ${String(answer)}`;
  if (key !== undefined && (typeof key !== "string" || key === "")) return `its key is ${key === "" ? "empty" : inWords(key)}, not a text`;
  return split === undefined || (splits as readonly Json[]).includes(split) ? undefined : `its split is ${inWords(split)}, not one of ${splits.join(", ")}`;
}
