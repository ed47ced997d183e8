/** Methods of one's own: the shape of a module, written with little and checked where it is loaded. */
import { type ZodType, z } from "zod";
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { suggestion } from "../core/options.js";
import type { Cell, Method, MethodModule, OneSlot } from "./contract.js";
import { oneSlots, stageSlots } from "./resolve.js";

/** A method module in which what is usual may be left out. */
export interface MethodParts<O, S extends Json> {
  readonly name: string;
  /** Citation; absent: "our choice". */
  readonly paper?: string;
  /** A strict object of zod with a default for every option; absent: no options. */
  readonly options?: ZodType<O>;
  readonly decides?: { readonly [option in keyof O]?: OneSlot };
  /** State before step 1; absent: null. */
  readonly initial?: S;
  make(options: O, state: Cell<S>): Omit<Method, "name">;
}

/**
 * A method of one's own, as the default export of a file for `--method ./mine.ts`. What its slots leave out is GRPO's.
 *
 *     export default defineMethod({
 *       name: "halved",
 *       make: () => ({ slots: { shape: { level: "trajectory", run: (_, credit) => credit.scaled("trajectory", credit.trajectory.map(() => 0.5)) } } }),
 *     });
 */
export function defineMethod<O = Record<string, never>, S extends Json = null>(parts: MethodParts<O, S>): MethodModule<O, S> {
  const { name, paper = "our choice", options = z.strictObject({}) as unknown as ZodType<O>, initial = null as S, decides } = parts;
  return { name, paper, options, initial, ...(decides === undefined ? {} : { decides }), make: (read, state) => ({ name, ...parts.make(read, state) }) };
}

/** Whether a value can be a method module. */
export function isMethodModule(value: unknown): value is MethodModule<object, Json> {
  return whatLacks(value) === "";
}

/** Why a module's default export is no method, in a phrase; empty for one that is. */
export function whatLacks(value: unknown): string {
  if (value === undefined) return "it has no default export";
  if (typeof value === "function") return "its default export is a function, not a method";
  if (typeof value !== "object" || value === null) return `its default export is ${value === null ? "null" : `a ${typeof value}`}, not a method`;
  const { name, paper, options, initial, make } = value as Partial<MethodModule<object, Json>>;
  const lacks = [
    ...(typeof name === "string" && /^[\w.-]+$/.test(name) ? [] : ["name (letters, digits, - and _)"]),
    ...(typeof paper === "string" ? [] : ["paper"]),
    ...(typeof (options as { safeParse?: unknown } | undefined)?.safeParse === "function" ? [] : ["options"]),
    ...(initial === undefined ? ["initial"] : []),
    ...(typeof make === "function" ? [] : ["make"]),
  ];
  return lacks.length === 0 ? "" : `its default export is no method: it lacks ${lacks.join(", ")}`;
}

/** Refuses what a module made where slots are misspelt, or hold no answer. */
export function checkMade(name: string, method: Method, place: string): void {
  const refuse = (cause: string, mend: string): ConfigError => new ConfigError({ place, cause, mend });
  const slots: unknown = (method as Partial<Method> | undefined)?.slots;
  if (typeof slots !== "object" || slots === null) throw refuse("what it makes has no slots", "return { slots: { … } } from make");
  if (method.name !== name) throw refuse(`what it makes is named ${JSON.stringify(method.name)}`, `name it ${name}, as its module`);
  for (const [slot, filled] of Object.entries(slots as object)) {
    if (filled === undefined) continue;
    const one = (oneSlots as readonly string[]).includes(slot);
    if (!one && !(stageSlots as readonly string[]).includes(slot)) {
      throw refuse(`there is no slot "${slot}"`, suggestion(slot, [...oneSlots, ...stageSlots], "the slots are"));
    }
    const answers =
      one && typeof filled === "object" ? ["sets", "owns", "prefers"].filter((how) => (filled as { [how: string]: unknown })?.[how] !== undefined) : [];
    if (one && answers.length !== 1) throw refuse(`its slot ${slot} has ${answers.length} answers`, "give it one, under `prefers` or `owns`");
    const stages = one ? [] : Array.isArray(filled) ? filled : [filled];
    if (stages.some((stage) => typeof (stage as { run?: unknown } | null)?.run !== "function"))
      throw refuse(`its stage ${slot} has no \`run\``, `write ${slot}: { run: … }`);
  }
}
