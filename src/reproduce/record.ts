/** Records of reproductions: docs/reproductions/P06.json, one a demonstration, of a whole run on a commit. docs/reproductions.md is made from them. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageFolder } from "./commit.js";
import type { Outcome } from "./judge.js";
import { writeWhole } from "./part.js";
import type { Reproduction } from "./reproduce.js";

export interface ReproductionRecord extends Reproduction {
  /** What the sabotaged method showed, where that was tried: on each set of seeds. */
  readonly sabotage?: { readonly about: string; readonly outcomes: readonly (Outcome | null)[] };
  /** Earlier whole runs, which this one stands in the place of; none may be left out. */
  readonly earlier: readonly {
    readonly commit: string;
    readonly optionsCommit: string | null;
    readonly date: string;
    readonly seeds: number;
    readonly outcome: Outcome | null;
  }[];
  /** Why it may not show at this scale, or what else a reader must know; written by hand. */
  readonly remark: string;
}

/** Where the records of this version lie. */
export const recordsFolder = join(packageFolder, "docs", "reproductions");

/** The record of a demonstration; undefined where there is none. */
export function recordOf(id: string, folder: string = recordsFolder): ReproductionRecord | undefined {
  const file = join(folder, `${id}.json`);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as ReproductionRecord) : undefined;
}

/** All records, by id. */
export function records(folder: string = recordsFolder): ReproductionRecord[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return names.sort().map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as ReproductionRecord);
}

/** Writes a record in the place of the one before, which is counted among the earlier runs; a remark stays until another is given. Returns its path. */
export function writeRecord(reproduction: Reproduction, remark: string | undefined, folder: string = recordsFolder): string {
  const before = recordOf(reproduction.id, folder);
  const same =
    before !== undefined &&
    before.commit === reproduction.commit &&
    before.date === reproduction.date &&
    JSON.stringify(before.arms) === JSON.stringify(reproduction.arms);
  const earlier = before === undefined ? [] : same ? before.earlier : [...before.earlier, summaryOf(before)];
  const kept = same && before.sabotage ? { sabotage: before.sabotage } : {};
  const path = join(folder, `${reproduction.id}.json`);
  writeWhole(path, { ...reproduction, ...kept, earlier, remark: remark ?? before?.remark ?? "" } satisfies ReproductionRecord);
  return path;
}

/** Adds what the sabotaged method showed to the record of its demonstration. Undefined: there is none. */
export function recordSabotage(id: string, sabotage: NonNullable<ReproductionRecord["sabotage"]>, folder: string = recordsFolder): string | undefined {
  const before = recordOf(id, folder);
  if (before === undefined) return undefined;
  const path = join(folder, `${id}.json`);
  writeWhole(path, { ...before, sabotage } satisfies ReproductionRecord);
  return path;
}

const summaryOf = ({ commit, optionsCommit, date, seeds, outcome }: ReproductionRecord): ReproductionRecord["earlier"][number] => ({
  commit,
  optionsCommit,
  date,
  seeds: seeds.length,
  outcome,
});
