/** The loggers that can be named in a configuration: those that come with Touchstone, and modules of one's own by path. */
import { basename } from "node:path";
import { ConfigError } from "../../core/errors.js";
import { isModulePath, loadModule, moduleUrl } from "../../core/load.js";
import { suggestion } from "../../core/options.js";
import type { Logger, NamedLogger } from "../logger.js";
import { CsvLogger } from "./csv.js";
import { TensorBoardLogger } from "./tensorboard.js";

const builtIn: { readonly [name: string]: () => Logger } = {
  csv: () => new CsvLogger(),
  tensorboard: () => new TensorBoardLogger(),
};
export const loggerNames = Object.keys(builtIn);

/** Refuses names that are none, with the nearest one, and names given twice. Throws ConfigError. */
export function checkLoggerNames(names: readonly string[]): void {
  const place = "loggers";
  for (const [i, name] of names.entries()) {
    if (names.indexOf(name) !== i) throw new ConfigError({ place, cause: `${name} is there twice`, mend: "name each logger once" });
    if (isModulePath(name)) moduleUrl(name, ".", place);
    else if (!Object.hasOwn(builtIn, name))
      throw new ConfigError({
        place,
        cause: `there is no logger "${name}"`,
        mend: `${suggestion(name, loggerNames)}, or the path of a module, such as ./mine.ts`,
      });
  }
}

/** A logger by name, or by the path of a module that exports `log(step, metrics)` or has such an object as its default. Throws ConfigError. */
export async function loggerFrom(name: string): Promise<NamedLogger> {
  checkLoggerNames([name]);
  const make = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined;
  if (make) return { name, logger: make() };
  const exported = await loadModule(moduleUrl(name, ".", "loggers"));
  const found = [exported.default, exported].find(isLogger);
  if (found) return { name: basename(name), logger: found };
  throw new ConfigError({
    place: name,
    cause: "it exports no log(step, metrics)",
    mend: "write `export function log(step, metrics) { … }`, or an object with it as the default",
  });
}

/**
 * Loggers by name, and those of the program. Throws ConfigError for what is none, unless `tell` takes it: a run that goes on
 * needs no logger.
 */
export async function loggersOf(names: readonly string[], own: readonly Logger[], tell: ((text: string) => void) | undefined): Promise<NamedLogger[]> {
  if (tell === undefined) checkLoggerNames(names);
  const loggers: NamedLogger[] = [];
  for (const name of names) {
    try {
      loggers.push(await loggerFrom(name));
    } catch (error) {
      if (tell === undefined || !(error instanceof ConfigError)) throw error;
      tell(`a logger is left out: ${error.message}`);
    }
  }
  return [...loggers, ...own.map((logger, i) => ({ name: `of the program (${i + 1} of ${own.length})`, logger }))];
}

/** Whether a value can log. */
export function isLogger(value: unknown): value is Logger {
  return typeof value === "object" && value !== null && typeof (value as Partial<Logger>).log === "function";
}
