/** Demonstrations by the number of their paper, by method, or by the path of a file. */
import { basename, dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigError } from "../core/errors.js";
import { isModulePath, loadModule, moduleUrl } from "../core/load.js";
import { suggestion } from "../core/options.js";
import { methodFolders, paperId } from "../methods/catalogue.js";
import { checkDemonstration, type Demonstration } from "../methods/demonstration.js";

export interface FoundDemonstration {
  readonly demonstration: Demonstration;
  /** Its file. */
  readonly file: string;
  /** `P06`, or the method's name where it belongs to no listed paper: the name of its record. */
  readonly id: string;
}

/** All demonstrations in the folders of methods, by name of the folder. `folder`: another one, laid out alike. */
export async function demonstrations(folder?: string): Promise<FoundDemonstration[]> {
  const files = methodFolders(folder).flatMap(({ demonstration }) => (demonstration === undefined ? [] : [demonstration]));
  return Promise.all(files.map(loadDemonstration));
}

/** One by `P06`, `hispo` or `./mine/demonstration.ts`. Throws ConfigError where there is none. */
export async function findDemonstration(name: string, place = "touchstone reproduce"): Promise<FoundDemonstration> {
  const folders = methodFolders().filter(({ demonstration }) => demonstration !== undefined);
  const own = folders.find((folder) => folder.name === name);
  if (own?.demonstration) return loadDemonstration(own.demonstration);
  if (isModulePath(name)) {
    moduleUrl(name, ".", place);
    return loadDemonstration(resolve(name));
  }
  const all = await demonstrations();
  const found = all.find(({ id }) => id === name.toUpperCase());
  if (found) return found;
  const known = [...all.map(({ id }) => id), ...folders.map((folder) => folder.name)];
  throw new ConfigError({
    place,
    cause: `there is no demonstration of "${name}"`,
    mend: known.length === 0 ? "give the path of a demonstration" : `${suggestion(name, known)}, or give the path of a demonstration`,
  });
}

/** The default export of a file, checked. */
export async function loadDemonstration(file: string): Promise<FoundDemonstration> {
  const demonstration = (await loadModule(pathToFileURL(file).href)).default as Demonstration | undefined;
  const parts = ["paper", "method", "testbed", "arms", "metrics", "claims", "quick", "minutes"] as const;
  const lacks = parts.filter((part) => (demonstration as Partial<Demonstration> | undefined)?.[part] === undefined);
  if (demonstration === undefined || lacks.length > 0) {
    const cause = demonstration === undefined ? "it has no default export" : `its default export is no demonstration: it lacks ${lacks.join(", ")}`;
    throw new ConfigError({ place: file, cause, mend: "write `export default defineDemonstration({ … })`" });
  }
  checkDemonstration(demonstration);
  return { demonstration, file, id: paperId(demonstration.paper) ?? (demonstration.method || basename(dirname(file))) };
}
