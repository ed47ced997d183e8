/** From the methods that a configuration names to compositions, one for each stage: names to modules, modules to slots. */
import { ConfigError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { isModulePath } from "../core/load.js";
import { nearestName } from "../core/options.js";
import { programHash } from "../core/program.js";
import { type AnyMethod, anyMethod, methodFrom } from "../methods/catalogue.js";
import type { Cells } from "../methods/cell.js";
import type { Method, PlanStage } from "../methods/contract.js";
import { fallback as fallbackModule, fallbackName } from "../methods/fallback.js";
import { compose, type Resolved, resolve } from "../methods/resolve.js";
import { endOf, stages } from "../methods/stages.js";
import { type Part, partOf, type TrainConfig } from "./config.js";

type Options = { readonly [name: string]: Json };
type MethodConfig = NonNullable<TrainConfig["method"]>;

/** A method by name, with its options. */
export interface MethodUse {
  readonly name: string;
  readonly options: Options;
}

/** A stage of a run, with every slot of its method answered. A run without stages has one, which nothing ends. */
export interface RunStage extends PlanStage {
  readonly resolved: Resolved;
}

export interface Methods {
  readonly stages: readonly RunStage[];
  /** The parts of all stages as one: what the run needs, not what it does. */
  readonly all: Method;
  /** The configuration's `method` or `stages`, with all options. */
  readonly written: Pick<TrainConfig, "method" | "stages">;
  /** Hashes of the files of methods of one's own, by path. */
  readonly files: { readonly [path: string]: string };
}

/** The methods of a text, in order: `dapo+rloo` names two. */
function namesOf(text: string, place: string): string[] {
  const names = text.split("+").map((name) => name.trim());
  if (names.every((name) => name !== "")) return names;
  throw new ConfigError({ place, cause: `got ${JSON.stringify(text)}, with nothing beside a +`, mend: "name a method on each side, such as dapo+rloo" });
}

/** The methods that a configuration names. An entry of a list is one method; elsewhere a + stands between several, whose options lie under their names. */
export function usesOf(method: MethodConfig, place = "method"): MethodUse[] {
  if (Array.isArray(method)) return method.map(partOf);
  const { name, options } = partOf(method as Part);
  const names = namesOf(name, place);
  if (names.length === 1) return [{ name: names[0] as string, options }];
  const keys = names.map((each) => (isModulePath(each) ? (each.split("/").at(-1) as string).replace(/\.[^.]*$/, "") : each));
  for (const [key, value] of Object.entries(options)) {
    const here = `method ${name}, option ${key}`;
    if (!keys.includes(key)) {
      const cause = "of several methods, each has its options under its own name";
      const near = nearestName(key, keys);
      throw new ConfigError({
        place: here,
        cause,
        mend: near ? `did you mean "${near}"?` : `write {"${keys[0]}": {"${key}": …}}, where the names are ${keys.join(", ")}`,
      });
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new ConfigError({ place: here, cause: "it is no object", mend: `give the options of ${key} as an object` });
    }
  }
  return names.map((each, i) => ({ name: each, options: (Object.hasOwn(options, keys[i] as string) ? options[keys[i] as string] : {}) as Options }));
}

/** A method as it was written, with its paths changed; what is no method is refused later, as it stands. */
export function withMethodPaths(method: unknown, path: (path: string) => string): unknown {
  const moved = (text: string): string => (isModulePath(text.trim()) ? path(text.trim()) : text);
  const inText = (text: string): string => text.split("+").map(moved).join("+");
  const inPart = (part: unknown, change: (text: string) => string): unknown => {
    if (typeof part === "string") return change(part);
    const name = (part as { readonly name?: unknown } | null | undefined)?.name;
    return typeof name === "string" ? { ...(part as object), name: change(name) } : part;
  };
  return Array.isArray(method) ? method.map((part) => inPart(part, moved)) : inPart(method, inText);
}

/** The same for all stages. */
export function withStagePaths(list: unknown, path: (path: string) => string): unknown {
  if (!Array.isArray(list)) return list;
  return list.map((stage: unknown) =>
    typeof stage === "object" && stage !== null && "method" in stage ? { ...stage, method: withMethodPaths(stage.method, path) } : stage,
  );
}

/** Loads and composes what a configuration names. `own`: what the user set under other options, as a method. Throws ConfigError that names both sides of a conflict. */
export async function methodsOf(config: TrainConfig, given: readonly AnyMethod[], cells: Cells, own: Method | undefined): Promise<Methods> {
  const cell = cells.cell.bind(cells);
  const fallback = anyMethod(fallbackModule).make({}, cell, `method ${fallbackName}`).method;
  const files: { [path: string]: string } = {};
  const composed = async (method: MethodConfig, place: string): Promise<{ resolved: Resolved; method: Method; uses: MethodUse[] }> => {
    const parts: Method[] = [];
    const uses: MethodUse[] = [];
    for (const { name, options } of usesOf(method, place)) {
      const module = given.find((each) => each.name === name) ?? (await methodFrom(name, ".", place));
      if (module.name !== name) files[name] = programHash(name);
      const made = module.make(options, cell, `method ${name}`);
      parts.push(made.method);
      uses.push({ name, options: made.options as Options });
    }
    const whole = compose(...parts, ...(own ? [own] : []));
    return { resolved: resolve(whole, fallback), method: whole, uses };
  };
  if (config.stages === undefined) {
    const { resolved, method, uses } = await composed(config.method ?? fallbackName, "method");
    // A path with a + would be taken for two methods, were it not in a list.
    const [first] = uses;
    const alone = uses.length === 1 && first !== undefined && !first.name.includes("+");
    return { stages: [{ method, resolved, until: () => false, optimizer: "keep" }], all: method, written: { method: alone ? first : uses }, files };
  }
  if (config.method !== undefined) {
    throw new ConfigError({ place: "method, stages", cause: "both are given", mend: "give the method of each stage under stages, and leave method out" });
  }
  const made: (Awaited<ReturnType<typeof composed>> & { readonly stage: (typeof config.stages)[number] })[] = [];
  for (const [i, stage] of config.stages.entries()) {
    const next = { stage, ...(await composed(stage.method, `stages[${i}].method`)) };
    refuseKept(made.at(-1)?.resolved, next.resolved, stage.optimizer, i);
    made.push(next);
  }
  const plan = stages(...made.map(({ stage, method }) => ({ method, until: endOf(stage), optimizer: stage.optimizer, steps: stage.steps })));
  const parts = made.flatMap(({ method }) => method.parts ?? [method]);
  return {
    all: { name: made.map(({ method }) => method.name).join(", then "), slots: {}, parts },
    stages: plan.stages.map((stage, i) => ({ ...stage, resolved: made[i]?.resolved as Resolved })),
    written: { stages: made.map(({ stage, uses }) => ({ ...stage, method: uses })) },
    files,
  };
}

/** Refuses to keep optimizer state for a stage whose update rule could not read it. */
function refuseKept(before: Resolved | undefined, now: Resolved, optimizer: PlanStage["optimizer"], stage: number): void {
  const rules = [before, now].map((resolved) => resolved?.one.optimizer.value.module);
  if (before === undefined || optimizer === "reset" || rules[0] === rules[1]) return;
  throw new ConfigError({
    place: `stages[${stage}].optimizer`,
    cause: `it is keep, and the optimizer changes from ${rules[0]} to ${rules[1]}`,
    mend: "set it to reset",
  });
}
