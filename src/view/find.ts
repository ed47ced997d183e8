/** What the arguments of a view name: runs, folders of runs, folders of samples, and records of reproductions. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { RunError } from "../core/errors.js";
import { type ReproductionRecord, records } from "../reproduce/record.js";

export interface Found {
  /** Unique, and fit for an address. */
  readonly id: string;
  readonly name: string;
  readonly folder: string;
  readonly kind: "run" | "samples";
}

export interface Finding {
  readonly runs: readonly Found[];
  /** Records that were named. */
  readonly records: readonly ReproductionRecord[];
  /** Those that came with this version. */
  readonly shipped: readonly ReproductionRecord[];
}

/** Folders below one that is no run where runs are looked for: `compare` puts them at METHOD/seed-N, `reproduce` one deeper. */
const depth = 4;
/** Runs beyond these are left out: a page with more is no overview. */
const mostRuns = 500;

/** `expected`: folders that will become runs. Throws RunError for a path that is nothing of the kind. */
export function find(paths: readonly string[], expected: readonly string[] = []): Finding {
  const folders: { folder: string; name: string; kind: Found["kind"] }[] = [];
  const own: ReproductionRecord[] = [];
  for (const path of paths) {
    if (expected.includes(path)) {
      folders.push({ folder: resolve(path), name: basename(resolve(path)), kind: "run" });
      continue;
    }
    const record = recordAt(path);
    if (record) {
      own.push(record);
      if (path.endsWith(".json")) continue;
    }
    const inside = below(path, depth);
    if (inside.length === 0 && !record) throw nothing(path);
    for (const { folder, kind } of inside) folders.push({ folder: resolve(folder), name: nameOf(path, folder), kind });
  }
  const seen = new Set<string>();
  const runs: Found[] = [];
  for (const { folder, name, kind } of folders.slice(0, mostRuns)) {
    if (runs.some((other) => other.folder === folder)) continue;
    let id = name.replace(/[^\w.-]+/g, "-") || "run";
    for (let i = 2; seen.has(id); i++) id = `${id.replace(/~\d+$/, "")}~${i}`;
    seen.add(id);
    runs.push({ id, name, folder, kind });
  }
  shipped ??= records();
  return { runs, records: own, shipped: shipped.filter(({ id }) => own.every((record) => record.id !== id)) };
}

/** Read once: they are a part of this version, and folders are walked through every few seconds. */
let shipped: readonly ReproductionRecord[] | undefined;

/** Of a folder of runs its name is left out: all below it would begin with it. */
const nameOf = (path: string, folder: string): string => relative(path, folder).split("\\").join("/") || basename(resolve(folder));

function below(folder: string, left: number): { folder: string; kind: Found["kind"] }[] {
  if (existsSync(join(folder, "run.json"))) return [{ folder, kind: "run" }];
  if (existsSync(join(folder, "meta.json")) && existsSync(join(folder, "samples.jsonl"))) return [{ folder, kind: "samples" }];
  if (left === 0 || !isFolder(folder)) return [];
  const names = readdirSync(folder).filter((name) => !name.startsWith(".") && isFolder(join(folder, name)));
  return names.sort((a, b) => a.localeCompare(b, "en", { numeric: true })).flatMap((name) => below(join(folder, name), left - 1));
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** A record, or what `reproduce` wrote into its folder, which is one without a history. */
function recordAt(path: string): ReproductionRecord | undefined {
  const file = path.endsWith(".json") ? path : join(path, "reproduction.json");
  if (!existsSync(file) || isFolder(file)) return undefined;
  try {
    const record = JSON.parse(readFileSync(file, "utf8")) as Partial<ReproductionRecord>;
    if (typeof record.id === "string" && Array.isArray(record.claims) && Array.isArray(record.arms)) {
      return { earlier: [], remark: "", ...record } as ReproductionRecord;
    }
  } catch {
    // Said below, as for any other file.
  }
  throw new RunError({ place: file, cause: "it is no record of a reproduction", mend: "give the folder or file that touchstone reproduce wrote" });
}

function nothing(path: string): RunError {
  const cause = existsSync(path) ? "it is not the folder of a run, and there is none in it" : "there is no such folder";
  return new RunError({ place: path, cause, mend: "give folders that touchstone train, compare, reproduce or eval --store wrote" });
}
