/** What the arguments of a view name: runs, folders of runs, folders of samples, records of reproductions, and reports of audits. */
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { RunError } from "../core/errors.js";
import { type ReproductionRecord, records } from "../reproduce/record.js";
import { type NamedReport, namedReport, reportNames } from "./report-files.js";
import type { ShownAudit } from "./shapes.js";

export interface Found {
  /** Unique, and fit for an address. */
  readonly id: string;
  readonly name: string;
  readonly folder: string;
  readonly kind: "run" | "samples";
}

export interface Finding {
  readonly runs: readonly Found[];
  /** Records that were named or lie in folders that were. */
  readonly records: readonly ReproductionRecord[];
  readonly audits: readonly ShownAudit[];
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
  const reports: NamedReport[] = [];
  for (const path of paths) {
    if (expected.includes(path)) {
      folders.push({ folder: resolve(path), name: basename(resolve(path)), kind: "run" });
      continue;
    }
    if (path.endsWith(".json") && existsSync(path) && !isFolder(path)) {
      reports.push(namedReport(path, basename(path, ".json")));
      continue;
    }
    const inside = below(path, depth);
    if (inside.length === 0) throw nothing(path);
    for (const found of inside) {
      const { folder, kind } = found;
      const name = nameOf(path, folder);
      if (kind === "report") reports.push(namedReport(found.file, name));
      else folders.push({ folder: resolve(folder), name, kind });
    }
  }
  const runs: Found[] = [];
  const unique = uniquely();
  const seen = new Set<string>();
  for (const { folder, name, kind } of folders) {
    const real = realOf(folder);
    if (seen.has(real) || runs.length >= mostRuns) continue;
    seen.add(real);
    runs.push({ id: unique(name, "run"), name, folder, kind });
  }
  const own = reports.flatMap(({ record }) => record ?? []);
  const audits = auditsOf(reports);
  shipped ??= records();
  return { runs, records: own, audits, shipped: shipped.filter(({ id }) => own.every((record) => record.id !== id)) };
}

/** Read once: they are a part of this version, and folders are walked through every few seconds. */
let shipped: readonly ReproductionRecord[] | undefined;

/** Of a folder of runs its name is left out: all below it would begin with it. */
const nameOf = (path: string, folder: string): string => relative(path, folder).split("\\").join("/") || basename(resolve(folder));

type Inside = { readonly folder: string; readonly kind: Found["kind"] } | { readonly folder: string; readonly kind: "report"; readonly file: string };

/** Runs, samples and reports in a folder. What cannot be entered is passed over: one closed folder is not to hide the others. */
function below(folder: string, left: number, entered = new Set<string>()): Inside[] {
  const real = realOf(folder);
  if (entered.has(real)) return [];
  entered.add(real);
  if (existsSync(join(folder, "run.json"))) return [{ folder, kind: "run" }];
  if (existsSync(join(folder, "meta.json")) && existsSync(join(folder, "samples.jsonl"))) return [{ folder, kind: "samples" }];
  const reports = reportNames.map((name) => join(folder, name)).filter((file) => existsSync(file));
  const here = reports.map((file): Inside => ({ folder, kind: "report", file }));
  if (left === 0 || !isFolder(folder)) return here;
  const names = namesIn(folder).filter((name) => !name.startsWith(".") && isFolder(join(folder, name)));
  return [...here, ...names.sort((a, b) => a.localeCompare(b, "en", { numeric: true })).flatMap((name) => below(join(folder, name), left - 1, entered))];
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Makes names unique and fit for an address. */
function uniquely(): (name: string, fallback: string) => string {
  const seen = new Set<string>();
  return (name, fallback) => {
    const base = name.replace(/[^\w.-]+/g, "-") || fallback;
    let id = base;
    for (let i = 2; seen.has(id); i++) id = `${base}~${i}`;
    seen.add(id);
    return id;
  };
}

function auditsOf(reports: readonly NamedReport[]): ShownAudit[] {
  const unique = uniquely();
  return reports.flatMap(({ name, audit }) => (audit ? [{ ...audit, id: unique(name, "audit"), name }] : []));
}

/** What cannot be entered, as a link to itself, is none. */
function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    return false;
  }
}

/** The folder behind links, so that one that is reached in several ways is shown once. */
function realOf(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

function nothing(path: string): RunError {
  const cause = existsSync(path) ? (closed(path) ?? "it is not the folder of a run, and there is none in it") : "there is no such folder";
  return new RunError({ place: path, cause, mend: "give folders that touchstone train, compare, reproduce, audit or eval --store wrote" });
}

/** Why a folder that is there cannot be read; undefined: it can. */
function closed(path: string): string | undefined {
  try {
    if (isFolder(path)) readdirSync(path);
    return undefined;
  } catch (error) {
    return `the folder cannot be read (${(error as NodeJS.ErrnoException).code})`;
  }
}
