/** Files of records as data is given: JSON Lines, or Parquet, told by the first bytes and not by the name. */
import type { JsonLine } from "./json-lines.js";
import { jsonLines } from "./json-lines.js";
import { isParquet, openParquet } from "./parquet.js";

export interface RecordFile {
  /** What the records are counted in. */
  readonly word: "line" | "row";
  /** Of Parquet alone: all its columns, whichever are read. */
  readonly columns?: readonly string[];
  /** Every record, or what is wrong with its line, numbered from 1. `names`: the columns that are wanted, which may be more than there are. */
  rows(names?: readonly string[]): AsyncIterable<JsonLine> | Iterable<JsonLine>;
}

/** Opens a file of records. Throws DataError for what is neither text nor a whole Parquet file. */
export async function openRecords(file: string): Promise<RecordFile> {
  if (!isParquet(file)) return { word: "line", rows: () => jsonLines(file) };
  const { columns, records } = await openParquet(file);
  return {
    word: "row",
    columns,
    async *rows(names) {
      let number = 0;
      for await (const record of records(names)) yield { number: ++number, blank: false, record };
    },
  };
}
