/** Rows of a task of one's own from a JSONL file, with answers of a known type. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { DataError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { inWords, type JsonRecord, jsonLines, LineFaults, missingColumn } from "../core/json-lines.js";
import { parseOptions } from "../core/options.js";
import { describe } from "../core/schema.js";
import { rowFault } from "./check.js";
import { type Row, splits } from "./contract.js";

const rowColumns = z.strictObject({
  prompt: z.string().min(1).default("prompt"),
  answer: z.string().min(1).default("answer"),
  solution: z.string().min(1).optional(),
  key: z.string().min(1).optional(),
  split: z.string().min(1).optional(),
});
/** Names of the columns; those without a default are read where they are named. Other columns are left alone. */
export type RowColumns = z.input<typeof rowColumns>;

/**
 * Reads a JSONL file whose answers have the type of a zod schema. Throws DataError that lists the bad lines.
 *
 *     rows: () => jsonlRows(new URL("problems.jsonl", import.meta.url), z.int()),
 */
export function jsonlRows<A extends Json>(file: string | URL, answer: z.ZodType<A>, columns?: RowColumns): Row<A>[] {
  const names = parseOptions(rowColumns, columns, "jsonlRows, columns");
  const path = pathOf(file);
  const faults = new LineFaults();
  const rows: Row<A>[] = [];
  let lines = 0;
  for (const { number, record, fault } of jsonLines(path)) {
    lines = number;
    const row = record === undefined ? fault : rowOf(record, answer, names);
    if (typeof row === "string") faults.add(number, row);
    else rows.push({ ...row, place: `${path}, line ${number}` });
  }
  if (faults.count > 0) throw faults.error(path, lines, "mend these lines, or name other columns");
  return rows;
}

/** A path as a person at the working folder would write it. */
function pathOf(file: string | URL): string {
  if (typeof file === "string") return file;
  if (file.protocol !== "file:") throw new DataError({ place: file.href, cause: "it is no file of this machine", mend: "give a path or a file: URL" });
  const path = fileURLToPath(file);
  const near = relative(process.cwd(), path);
  return near.startsWith("..") ? path : near;
}

/** A record as a row, or what is wrong with it. */
function rowOf<A extends Json>(record: JsonRecord, schema: z.ZodType<A>, names: z.output<typeof rowColumns>): Row<A> | string {
  const missing = Object.values(names).find((column) => !Object.hasOwn(record, column));
  if (missing !== undefined) return missingColumn(record, missing);
  const read = schema.safeParse(record[names.answer]);
  if (!read.success) return `its ${names.answer} is ${inWords(record[names.answer] as Json)}, not ${describe(schema)}`;
  const text = (name: "solution" | "key"): { readonly [part: string]: string } | string => {
    const column = names[name];
    const value = column === undefined ? undefined : record[column];
    if (value === undefined) return {};
    if (typeof value === "string" && value !== "") return { [name]: value };
    return name === "key" && Number.isSafeInteger(value) ? { key: String(value) } : `its ${column} is not a text`;
  };
  const [solution, key] = [text("solution"), text("key")];
  if (typeof solution === "string") return solution;
  if (typeof key === "string") return key;
  const split = names.split === undefined ? undefined : splits.find((each) => each === record[names.split as string]);
  if (names.split !== undefined && split === undefined) return `its ${names.split} is not one of ${splits.join(", ")}`;
  const row = { prompt: record[names.prompt], answer: read.data, ...solution, ...key, ...(split && { split }) } as Row<A>;
  return rowFault(row) ?? row;
}
