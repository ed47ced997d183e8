/** The methods that can be named in a configuration: those that come with Touchstone, found by their folders, and modules of one's own by path. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { ZodType } from "zod";
import { ConfigError, TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { describeThrown, isModulePath, loadModule, moduleUrl } from "../core/load.js";
import { parseOptions, suggestion } from "../core/options.js";
import { Cells } from "./cell.js";
import type { Cell, Method, MethodModule, One, OneSlot } from "./contract.js";
import { checkMade, isMethodModule, whatLacks } from "./define.js";
import { fallbackName } from "./fallback.js";
import { oneSlots } from "./resolve.js";

/** A method module with its options not yet read. */
export interface AnyMethod {
  readonly name: string;
  readonly paper: string;
  readonly options: ZodType;
  /** Reads the options (throws ConfigError) and gives them back with their defaults, and the method made of them. */
  make(options: unknown, cell: (name: string, initial: Json) => Cell<Json>, place: string): { readonly options: Json; readonly method: Method };
}

/** Hides the types of a module's options and state. */
export function anyMethod<O, S extends Json>(module: MethodModule<O, S>): AnyMethod {
  const { name, paper } = module;
  return {
    name,
    paper,
    options: module.options,
    make(options, cell, place) {
      const read = parseOptions(module.options, options, place);
      const method = made(() => module.make(read, cell(name, module.initial) as Cell<S>), place);
      checkMade(name, method, place);
      return { options: JSON.parse(JSON.stringify(read)) as Json, method: withSet(method, decided(module, read)) };
    },
  };
}

function made(make: () => Method, place: string): Method {
  try {
    return make();
  } catch (error) {
    if (error instanceof TouchstoneError) throw error;
    throw new ConfigError(
      { place, cause: `it throws when it is made (${describeThrown(error)})`, mend: "correct the module, or give other options" },
      { cause: error },
    );
  }
}

/** Slots that the user decided: an option of theirs has not its default. What a run records has all options, so a default that was written counts as none. */
function decided<O, S extends Json>({ decides = {}, options }: MethodModule<O, S>, read: O): Set<OneSlot> {
  const plain = options.safeParse({});
  const changed = (key: keyof O): boolean => JSON.stringify(read[key]) !== JSON.stringify(plain.success ? plain.data[key] : undefined);
  return new Set((Object.entries(decides) as [keyof O, OneSlot][]).flatMap(([option, slot]) => (changed(option) ? [slot] : [])));
}

function withSet(method: Method, slots: ReadonlySet<OneSlot>): Method {
  const answers = [...slots].flatMap((slot) => {
    const one = method.slots[slot] as One<unknown> | undefined;
    if (one === undefined || "sets" in one) return [];
    const { about, check, around } = one;
    const rest = { ...(about === undefined ? {} : { about }), ...(check === undefined ? {} : { check }), ...(around === undefined ? {} : { around }) };
    return [[slot, { sets: "owns" in one ? one.owns : one.prefers, ...rest }]];
  });
  return answers.length === 0 ? method : { ...method, slots: { ...method.slots, ...Object.fromEntries(answers) } };
}

/** Where the folders of methods lie, and how their files end: here or, compiled, in dist. */
const home = fileURLToPath(new URL(".", import.meta.url));
const extensions = import.meta.url.endsWith(".ts") ? [".ts"] : [".js"];

/** A folder of `src/methods`, or of a folder of one's own that is laid out alike. */
export interface MethodFolder {
  readonly name: string;
  /** `NAME/NAME.ts`; absent: the folder has a demonstration and no method. */
  readonly module?: string;
  readonly demonstration?: string;
}

/** The method folders in a folder, by name: those that hold a file of their own name, or a demonstration. */
export function methodFolders(folder: string = home): MethodFolder[] {
  const endings = folder === home ? extensions : [".ts", ".js", ".mts", ".mjs"];
  const file = (name: string, stem: string): string | undefined =>
    endings.map((ending) => join(folder, name, `${stem}${ending}`)).find((path) => existsSync(path));
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({ name, module: file(name, name), demonstration: file(name, "demonstration") }))
    .filter(({ module, demonstration }) => module !== undefined || demonstration !== undefined)
    .sort((a, b) => (a.name < b.name ? -1 : 1)) as MethodFolder[];
}

/** Names of the methods that come with Touchstone. */
export const methodNames: readonly string[] = methodFolders().flatMap(({ name, module }) => (module === undefined ? [] : [name]));

/** The method of a folder: the export of its file that bears the folder's name. Throws ConfigError where there is none. */
export async function methodOf({ name, module }: MethodFolder & { readonly module: string }): Promise<AnyMethod> {
  const exports = Object.values(await loadModule(pathToFileURL(module).href));
  const found = exports.find((value) => isMethodModule(value) && value.name === name);
  if (isMethodModule(found)) return anyMethod(found);
  const [near] = exports.filter(isMethodModule);
  const cause = near ? `its method is named ${near.name}, and its folder ${name}` : "it exports no method";
  throw new ConfigError({ place: module, cause, mend: "export a method with the name of the folder" });
}

/** All methods that come with Touchstone, in the order of the documentation: families first, then what only adds to others, then papers by number. */
export async function builtInMethods(): Promise<readonly AnyMethod[]> {
  return inOrder(await Promise.all(methodNames.map((name) => namedMethod(name))));
}

/** The order of the documentation; the fallback comes first. */
export function inOrder(methods: readonly AnyMethod[]): AnyMethod[] {
  const rank = (method: AnyMethod): string => {
    const paper = paperId(method.paper);
    if (paper !== undefined) return `3 ${paper}`;
    const answers = oneSlots.some((slot) => withDefaults(method).slots[slot] !== undefined);
    return `${method.name === fallbackName ? 0 : answers ? 1 : 2} ${method.name}`;
  };
  const ranks = new Map(methods.map((method) => [method, rank(method)]));
  return [...methods].sort((a, b) => ((ranks.get(a) as string) < (ranks.get(b) as string) ? -1 : 1));
}

/** `P06` of "P06 HISPO, arXiv 2609.15471": the number under which a paper is listed; undefined where there is none. */
export function paperId(paper: string): string | undefined {
  return /^P\d\d\b/.exec(paper)?.[0];
}

/** A method with its defaults. */
export function withDefaults(method: AnyMethod): Method {
  const cells = new Cells();
  return method.make({}, cells.cell.bind(cells), `method ${method.name}`).method;
}

/** A method by name; throws ConfigError for an unknown one. */
export async function namedMethod(name: string, place = "method"): Promise<AnyMethod> {
  const found = methodFolders().find((folder) => folder.name === name && folder.module !== undefined);
  if (found) return methodOf(found as MethodFolder & { readonly module: string });
  throw new ConfigError({
    place,
    cause: `there is no method "${name}"`,
    mend: `${suggestion(name, methodNames)}, or give the path of a module that exports one`,
  });
}

/** A method by name, or the default export of a module by path. `folder`: where a relative path begins. */
export async function methodFrom(name: string, folder = ".", place = "method"): Promise<AnyMethod> {
  if (methodNames.includes(name) || !isModulePath(name)) return namedMethod(name, place);
  const url = moduleUrl(name, folder, place);
  const exported = (await loadModule(url)).default;
  const here = `${place} ${name}`;
  if (!isMethodModule(exported)) throw new ConfigError({ place: here, cause: whatLacks(exported), mend: "write `export default defineMethod({ … })`" });
  if (methodNames.includes(exported.name)) {
    throw new ConfigError({ place: here, cause: `it is named ${exported.name}, as a method that comes with Touchstone`, mend: "give it a name of its own" });
  }
  return anyMethod(exported);
}
