/** Configuration files: YAML, JSON, or a TypeScript or JavaScript module whose default export is the configuration. */
import { statSync } from "node:fs";
import { dirname, extname, isAbsolute, join } from "node:path";
import { isCollection, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import { ConfigError, TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { deepest, placeIn, readJson } from "../core/json-text.js";
import { describeThrown, isModulePath, loadModule, moduleUrl } from "../core/load.js";
import { readText } from "../core/text-file.js";
import { withPaths } from "../tasks/data-options.js";
import { verifierFrom } from "../verify/catalogue.js";
import { withMethodPaths, withStagePaths } from "./methods.js";

/** A configuration as it was written, not yet checked. */
export type Written = { [key: string]: unknown };

const modules = [".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"];
/** No configuration is that long; a parser would need hundreds of times as much memory. */
const mostBytes = 2 ** 20;

/** Reads a configuration file; its relative paths begin at its own folder. Throws ConfigError with line and column where the text is at fault. */
export async function readConfigFile(path: string): Promise<Written> {
  const extension = extname(path);
  if (modules.includes(extension)) {
    const exported = await loadModule(moduleUrl(path, ".", "option --config"));
    if (Object.keys(exported).length === 0) throw refuse(path, "it exports nothing", "write `export default { … }` with the options");
    try {
      return fromFolder(checked(exported.default, path), dirname(path));
    } catch (error) {
      if (error instanceof TouchstoneError) throw error;
      throw refuse(path, `its options cannot be read (${describeThrown(error)})`, "export plain values");
    }
  }
  if (![".yaml", ".yml", ".json"].includes(extension) && !isFolder(path)) {
    const cause = extension === "" ? "its name does not end in .yaml, .json or .ts" : `files of the kind "${extension}" are not read`;
    throw new ConfigError({ place: path, cause, mend: "give a .yaml, .json or .ts file" });
  }
  const text = readText(path, mostBytes, refuse);
  if (text.trim() === "") throw empty(path);
  return fromFolder(checked(extension === ".json" ? jsonOf(text, path) : yamlOf(text, path), path), dirname(path));
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
const refuse = (place: string, cause: string, mend = "give the path of a configuration"): ConfigError => new ConfigError({ place, cause, mend });
const correct = "correct the text there";

function jsonOf(text: string, path: string): unknown {
  const { value, fault } = readJson(text);
  if (fault === undefined) return value;
  const { line, column } = placeIn(text, fault.at);
  throw refuse(`${path}, line ${line}, column ${column}`, fault.cause, correct);
}

function yamlOf(text: string, path: string): unknown {
  const lines = new LineCounter();
  const tooDeep = refuse(path, `it is nested more than ${deepest} deep`, "write it flatter");
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    const [fault] = [...document.errors, ...document.warnings];
    if (fault) {
      // What the parser's stack did not bear is one of its faults too.
      if (fault.code === "RESOURCE_EXHAUSTION" || /call stack/.test(fault.message)) throw tooDeep;
      const { line, col } = lines.linePos(fault.pos[0]);
      const cause = fault.code === "MULTIPLE_DOCS" ? "a second document begins" : lowered(fault.message.split("\n")[0] as string);
      throw refuse(`${path}, line ${line}, column ${col}`, cause, correct);
    }
    visit(document, {
      Pair: (_, { key }) => {
        if (!isCollection(key)) return;
        const { line, col } = lines.linePos(key.range?.[0] ?? 0);
        throw refuse(`${path}, line ${line}, column ${col}`, "a list or an object stands where a key is due", correct);
      },
    });
    const value: unknown = document.toJS();
    refuseLoops(value, path);
    return value;
  } catch (error) {
    if (error instanceof TouchstoneError) throw error;
    // The parser's own calls nest as the text does; else it is aliases of aliases, which grow beyond all bounds.
    throw error instanceof RangeError ? tooDeep : refuse(path, `its aliases cannot be followed (${lowered((error as Error).message)})`, "write the values out");
  }
}

/** Where an option stands in a file: line and column where it or what it would stand in was found, else the file alone. */
export function placeInConfig(file: string, option: readonly PropertyKey[]): string {
  if (modules.includes(extname(file))) return file;
  const lines = new LineCounter();
  let node: unknown = parseDocument(readText(file, mostBytes, refuse), { lineCounter: lines }).contents;
  let at: number | undefined;
  for (const key of option) {
    const pair = isMap(node) ? node.items.find((item) => isScalar(item.key) && String(item.key.value) === key) : undefined;
    const inside = pair ? pair.key : isSeq(node) ? node.items[Number(key)] : undefined;
    if (!isNode(inside)) break;
    at = inside.range?.[0];
    node = pair ? pair.value : inside;
  }
  if (at === undefined) return file;
  const { line, col } = lines.linePos(at);
  return `${file}, line ${line}, column ${col}`;
}

const lowered = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, "");

/** A value that holds itself, or is nested beyond what can be walked through. */
function refuseLoops(value: unknown, path: string, above: readonly unknown[] = []): void {
  if (typeof value !== "object" || value === null) return;
  if (above.includes(value)) throw refuse(path, "a value holds itself through its anchor", "write the value out");
  if (above.length === deepest) throw refuse(path, `it is nested more than ${deepest} deep`, "write it flatter");
  for (const inside of Object.values(value)) refuseLoops(inside, path, [...above, value]);
}

/** A module of a task stands for `{ default: TaskMaker }`, so a configuration must be a plain object. */
function checked(value: unknown, path: string): Written {
  if (value === undefined || value === null) throw empty(path);
  const plain = typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value));
  if (plain || Object.prototype.toString.call(value) === "[object Module]") return value as Written;
  const kinds: { readonly [type: string]: string } = { string: "a text", object: `an object of the class ${(value as object).constructor?.name}` };
  const what = Array.isArray(value) ? "a list" : (kinds[typeof value] ?? `a ${typeof value}`);
  throw refuse(path, `it is ${what}, not an object of options`, "write options, such as `model: starter`");
}

const empty = (path: string): ConfigError => refuse(path, "it holds nothing", "write options, such as `model: starter`");

/** Paths of a file as the caller, who is elsewhere, has to write them. */
function fromFolder(written: Written, folder: string): Written {
  const path = (value: unknown): unknown => (typeof value === "string" && value !== "" && !isAbsolute(value) ? join(folder, value) : value);
  const inside = (value: unknown, key: string): unknown =>
    typeof value === "object" && value !== null && key in value ? { ...value, [key]: path((value as Written)[key]) } : value;
  const task = (value: unknown): unknown => {
    if (typeof value === "string") return isModulePath(value) ? path(value) : value;
    return typeof value === "object" && value !== null && isModulePath(String((value as Written).name)) ? inside(value, "name") : value;
  };
  const result: Written = { ...written };
  for (const key of ["model", "out", "chat_template", "tools"]) if (key in result) result[key] = path(result[key]);
  if (Array.isArray(result.loggers)) result.loggers = result.loggers.map((name: unknown) => (isModulePath(String(name)) ? path(name) : name));
  const { roles } = result;
  if (typeof roles === "object" && roles !== null) {
    result.roles = Object.fromEntries(Object.entries(roles).map(([name, role]) => [name, inside(role, "model")]));
  }
  if ("task" in result) result.task = task(result.task);
  if ("method" in result) result.method = withMethodPaths(result.method, (text) => path(text) as string);
  if ("stages" in result) result.stages = withStagePaths(result.stages, (text) => path(text) as string);
  const data = (value: unknown): unknown => (typeof value === "object" && value !== null ? withPaths(value, (text) => path(text) as string) : value);
  if ("data" in result) result.data = data(result.data);
  if ("profile" in result) result.profile = inside(result.profile, "file");
  if ("verifier" in result) result.verifier = verifier(result.verifier, folder);
  const evaluation = result.eval;
  if (typeof evaluation === "object" && evaluation !== null) {
    result.eval = {
      ...evaluation,
      ...("data" in evaluation && { data: data(evaluation.data) }),
      ...("verifier" in evaluation && { verifier: verifier(evaluation.verifier, folder) }),
    };
  }
  return result;
}

/** A verifier as written, with its paths as seen from the folder; what is no verifier is refused later, as it stands. */
function verifier(value: unknown, folder: string): unknown {
  const isText = typeof value === "string";
  const { name, options = {} } = (isText ? { name: value } : (value ?? {})) as { readonly name?: unknown; readonly options?: unknown };
  if (typeof name !== "string" || name === "" || typeof options !== "object" || options === null || Array.isArray(options)) return value;
  const moved = verifierFrom(name, options as { readonly [name: string]: Json }, folder);
  if (Object.keys(moved.options).length === 0) return isText ? moved.name : { ...(value as object), name: moved.name };
  return isText ? moved : { ...(value as object), ...moved };
}
