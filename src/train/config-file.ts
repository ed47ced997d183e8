/** Configuration files: YAML, JSON, or a TypeScript or JavaScript module whose default export is the configuration. */
import { readFileSync } from "node:fs";
import { dirname, extname, isAbsolute, join } from "node:path";
import { parseDocument } from "yaml";
import { ConfigError } from "../core/errors.js";
import { isModulePath, loadModule, moduleUrl } from "../core/load.js";

/** A configuration as it was written, not yet checked. */
export type Written = { [key: string]: unknown };

const modules = [".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"];

/** Reads a configuration file; its relative paths begin at its own folder. Throws ConfigError with line and column where the text is at fault. */
export async function readConfigFile(path: string): Promise<Written> {
  const extension = extname(path);
  if (modules.includes(extension)) {
    const { default: exported } = await loadModule(moduleUrl(path, ".", "option --config"));
    return fromFolder(checked(exported, path), dirname(path));
  }
  if (![".yaml", ".yml", ".json"].includes(extension)) {
    throw new ConfigError({ place: path, cause: `files of the kind "${extension}" are not read`, mend: "give a .yaml, .json or .ts file" });
  }
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(
      { place: path, cause: `it cannot be read (${(error as NodeJS.ErrnoException).code})`, mend: "give the path of a configuration" },
      { cause: error },
    );
  }
  // JSON is YAML, so that one parser tells the place of a fault in both.
  const document = parseDocument(text, { prettyErrors: true });
  const [fault] = document.errors;
  if (fault) {
    const at = fault.linePos?.[0];
    throw new ConfigError({
      place: at ? `${path}, line ${at.line}, column ${at.col}` : path,
      cause: (fault.message.split("\n")[0] as string).replace(/ at line.*$/, ""),
      mend: "correct the text there",
    });
  }
  return fromFolder(checked(document.toJS(), path), dirname(path));
}

/** A module of a task stands for `{ default: TaskMaker }`, so a configuration must be a plain object. */
function checked(value: unknown, path: string): Written {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Written;
  throw new ConfigError({
    place: path,
    cause: value === undefined || value === null ? "it holds nothing" : "it is not an object of options",
    mend: "write options, such as `model: starter`",
  });
}

/** Paths of a file as the caller, who is elsewhere, has to write them. */
function fromFolder(written: Written, folder: string): Written {
  const path = (value: unknown): unknown => (typeof value === "string" && !isAbsolute(value) ? join(folder, value) : value);
  const inside = (value: unknown, key: string): unknown =>
    typeof value === "object" && value !== null && key in value ? { ...value, [key]: path((value as Written)[key]) } : value;
  const task = (value: unknown): unknown => {
    if (typeof value === "string") return isModulePath(value) ? path(value) : value;
    return typeof value === "object" && value !== null && isModulePath(String((value as Written).name)) ? inside(value, "name") : value;
  };
  const result: Written = { ...written };
  for (const key of ["model", "out", "reference"]) if (key in result) result[key] = path(result[key]);
  if ("task" in result) result.task = task(result.task);
  if ("data" in result) result.data = inside(result.data, "file");
  const evaluation = result.eval;
  if (typeof evaluation === "object" && evaluation !== null && "data" in evaluation) result.eval = { ...evaluation, data: inside(evaluation.data, "file") };
  return result;
}
