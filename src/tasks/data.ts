/** A task from files of records whose columns are mapped by options. Every bad line is listed by number before anything runs. */
import { basename, resolve } from "node:path";
import { DataError } from "../core/errors.js";
import { type JsonRecord, LineFaults, missingColumn } from "../core/json-lines.js";
import { openRecords } from "../core/records.js";
import { type Verifier, verifierId } from "../verify/contract.js";
import type { Row, Split, Task } from "./contract.js";
import { columnsOf, mappedRow, passes } from "./data-columns.js";
import { type DataOptions, type DataSource, sourcesOf } from "./data-options.js";
import { defineTask, problemKey, splitOf } from "./define.js";
import { hubFiles, isFolder } from "./hub.js";

/** A source's part of the places of a batch. */
export interface Share {
  /** As the tag `source` of its problems says. */
  readonly name: string;
  readonly weight: number;
}

export interface DataTask {
  readonly task: Task;
  /** Present where sources have weights. */
  readonly mixture?: readonly Share[];
  /** What the user should hear: rows that were left out. */
  readonly notes: readonly string[];
}

export interface DataUse {
  /** The split that is read of a folder without `split`. */
  readonly split: "train" | "test";
  /** Where the options stand. */
  readonly place?: string;
}

/** Where a key or prompt was met first, in all rows so far. */
type Seen = Map<string, { readonly source: string; readonly file: string; readonly at: string }>;

interface Reading {
  readonly verifier: Verifier;
  readonly seen: Seen;
  readonly split: "train" | "test";
  /** Whether problems say which source they are of. */
  readonly tagged: boolean;
  /** What the task's own shares hold out. */
  readonly evalShare: number;
  readonly notes: string[];
}

const sharesOf = (evalShare: number): { train: number; eval: number; warm: number } => ({ eval: evalShare, train: 1 - evalShare, warm: 0 });

/** Reads the files, maps their columns and checks every reference. Throws ConfigError or DataError; bad lines are listed. */
export async function dataTask(options: DataOptions, verifier: Verifier, { split, place = "data" }: DataUse): Promise<DataTask> {
  const sources = sourcesOf(options, place);
  const notes: string[] = [];
  const rows: Row[] = [];
  const reading: Reading = { verifier, seen: new Map(), split, tagged: sources.length > 1, evalShare: options.eval_share, notes };
  for (const source of sources) for (const row of await readSource(source, reading)) rows.push(row);
  const make = defineTask({
    name: sources.map(({ name, file }) => (sources.length > 1 ? name : basename(resolve(file)))).join("+"),
    version: verifierId(verifier),
    rows: () => rows,
    verifier,
    shares: sharesOf(options.eval_share),
  });
  const weighted = sources.flatMap(({ name, weight }) => (weight === undefined ? [] : [{ name, weight }]));
  return { task: make(), ...(weighted.length > 0 && { mixture: weighted }), notes };
}

async function readSource(source: DataSource, reading: Reading): Promise<Row[]> {
  const { file, split = reading.split, eval_split } = source;
  const folder = isFolder(file);
  const chooser = source.split !== undefined ? "split" : eval_split !== undefined ? "eval_split" : undefined;
  if (!folder && chooser !== undefined)
    throw new DataError({
      place: file,
      cause: `it is no folder, and ${chooser} chooses among the files of one`,
      mend: `leave ${chooser} out, or give the folder`,
    });
  const held: Split | undefined = eval_split === undefined ? undefined : "train";
  const parts: (readonly [string, Split | undefined])[] = (folder ? hubFiles(file, split) : [file]).map((path) => [path, held]);
  if (eval_split !== undefined) parts.push(...hubFiles(file, eval_split).map((path) => [path, "eval"] as const));
  const rows: Row[] = [];
  let filtered = 0;
  let total = 0;
  for (const [path, own] of parts) {
    const read = await readFile(path, source, own, reading);
    for (const row of read.rows) rows.push(row);
    filtered += read.filtered;
    total += read.total;
  }
  if (rows.length === 0 && filtered > 0)
    throw new DataError({ place: file, cause: `none of its ${total} rows passes the filters (where, prompt_chars)`, mend: "widen them" });
  if (rows.length === 0) throw new DataError({ place: file, cause: `${folder ? `its split ${split}` : "it"} has no row`, mend: "give data with rows" });
  if (filtered > 0) reading.notes.push(`${filtered} of ${total} rows of ${file} do not pass its filters`);
  return rows;
}

interface FileRows {
  readonly rows: readonly Row[];
  /** Rows that the filters left out. */
  readonly filtered: number;
  readonly total: number;
}

async function readFile(file: string, source: DataSource, held: Split | undefined, reading: Reading): Promise<FileRows> {
  const { word, columns, ...records } = await openRecords(file);
  if (columns !== undefined) refuseMissing(file, columns, source, reading.verifier);
  const faults = new LineFaults(word);
  const rows: Row[] = [];
  let filtered = 0;
  let total = 0;
  for await (const { number, record, fault: unread } of records.rows(columnsOf(source))) {
    total = number;
    const passed = record === undefined ? unread : passes(record, source, columns);
    const row = passed === true ? mappedRow(record as JsonRecord, source, reading.verifier) : passed;
    if (row === false || (typeof row === "object" && !fits(row, source))) {
      filtered++;
      continue;
    }
    const fault = typeof row === "string" ? row : faultOf(row as Row, { source: source.name, file, at: `${word} ${number}` }, reading);
    if (fault !== undefined) faults.add(number, fault);
    else rows.push(finished(row as Row, source, held, reading, `${file}, ${word} ${number}`));
  }
  if (faults.count > 0) {
    if (source.bad_rows === "refuse" || rows.length === 0) {
      throw faults.error(file, total, `mend these ${word}s${rows.length > 0 ? ", or leave them out with bad_rows: skip" : ""}`);
    }
    reading.notes.push(`${faults.count} ${word}s of ${file} were left out (the first: ${faults.texts[0]})`);
  }
  return { rows, filtered, total };
}

/** Of a Parquet file the columns are known before its rows. */
function refuseMissing(file: string, columns: readonly string[], source: DataSource, verifier: Verifier): void {
  const { prompt_column, answer_column, key_column, solution_column, info_columns = [], where = {} } = source;
  const answer = columns.includes("reward_model") || verifier.needsReference === false ? [] : [answer_column];
  const named = [prompt_column, ...answer, key_column, solution_column, ...info_columns, ...Object.keys(where)];
  const missing = named.find((name) => name !== undefined && !columns.includes(name) && !columns.includes(name.split(".")[0] as string));
  if (missing === undefined) return;
  throw new DataError({ place: file, cause: missingColumn({}, missing, columns), mend: "name the column that is meant", data: { columns } });
}

function finished(row: Row, { name, file, eval_share }: DataSource, held: Split | undefined, { tagged, evalShare }: Reading, place: string): Row {
  // The key that the row has where its source is the only one, so that what was measured of one file holds for a mixture too.
  const key = row.key ?? problemKey(basename(resolve(file)), row.prompt);
  const split = held ?? (eval_share === evalShare ? undefined : splitOf(key, sharesOf(eval_share)));
  return { ...row, key, ...(split && { split }), ...(tagged && { tags: { ...row.tags, source: name } }), place };
}

function fits({ prompt }: Row, { prompt_chars }: DataSource): boolean {
  if (prompt_chars === undefined) return true;
  const { min = 0, max = Number.POSITIVE_INFINITY } = prompt_chars;
  const length = typeof prompt === "string" ? prompt.length : prompt.reduce((sum, { content }) => sum + content.length, 0);
  return length >= min && length <= max;
}

/** One file may be two sources, of rows that filters tell apart. */
const ofSource = ({ at, source }: { readonly at: string; readonly source: string }): string => `${at} of the same file in source ${JSON.stringify(source)}`;

function faultOf(row: Row, here: { source: string; file: string; at: string }, { seen, verifier }: Reading): string | undefined {
  const prompt = `prompt ${JSON.stringify(row.prompt)}`;
  const key = row.key === undefined ? undefined : `key ${row.key}`;
  for (const name of key === undefined ? [prompt] : [key, prompt]) {
    const earlier = seen.get(name);
    // Within a source a key of one's own may tell equal prompts apart; across sources an equal prompt is the same problem.
    if (earlier === undefined || (name !== (key ?? prompt) && earlier.source === here.source)) continue;
    const place = earlier.file !== here.file ? `${earlier.at} of ${earlier.file}` : earlier.source === here.source ? earlier.at : ofSource(earlier);
    return name === prompt ? `it has the prompt of ${place}` : `it has the key ${JSON.stringify(row.key)} of ${place}`;
  }
  for (const name of [prompt, key]) if (name !== undefined && !seen.has(name)) seen.set(name, here);
  const fault = row.answer === undefined ? undefined : verifier.checkReference(row.answer);
  return fault === undefined ? undefined : `its answer is refused by the verifier ${verifier.name}: ${fault}`;
}
