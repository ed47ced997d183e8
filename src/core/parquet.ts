/** Parquet files as records of JSON values, a row group at a time. */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { asyncBufferFromFile, type FileMetaData, parquetMetadataAsync, parquetReadObjects, parquetSchema } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { DataError } from "./errors.js";
import type { Json } from "./json.js";

const magic = "PAR1";
/** Rows that are held at once. */
const rowsAtOnce = 4096;

/** Whether a file begins like Parquet; false for what is no plain file, or cannot be read. */
export function isParquet(file: string): boolean {
  if (!(statSync(file, { throwIfNoEntry: false })?.isFile() ?? false)) return false;
  let fd: number | undefined;
  try {
    fd = openSync(file, "r");
    const start = Buffer.alloc(magic.length);
    return fstatSync(fd).isFile() && readSync(fd, start) === magic.length && start.toString("latin1") === magic;
  } catch {
    // The reader of text files tells what is wrong with it.
    return false;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

export interface ParquetFile {
  /** Names of the outermost columns. */
  readonly columns: readonly string[];
  /** Its records in order, with these columns alone where they are named; names that it does not have are passed over. */
  records(names?: readonly string[]): AsyncGenerator<{ readonly [column: string]: Json }>;
}

/** Opens a Parquet file and reads its footer. Throws DataError for a file that is cut, damaged or packed in a way that is not read. */
export async function openParquet(file: string): Promise<ParquetFile> {
  const [source, metadata] = await whole(file, async () => {
    const buffer = await asyncBufferFromFile(file);
    return [buffer, await parquetMetadataAsync(buffer)] as const;
  });
  const columns = parquetSchema(metadata).children.map(({ element }) => element.name);
  return {
    columns,
    async *records(names = columns) {
      const wanted = columns.filter((column) => names.includes(column));
      for (const [rowStart, rowEnd] of pieces(metadata)) {
        // Without a column there is nothing to decode, and each row is empty.
        const rows =
          wanted.length === 0
            ? Array.from({ length: rowEnd - rowStart }, () => ({}))
            : await whole(file, () => parquetReadObjects({ file: source, metadata, columns: wanted, rowStart, rowEnd, compressors }));
        if (rows.length !== rowEnd - rowStart) throw damaged(file, `it has ${rows.length} of the ${rowEnd - rowStart} rows from row ${rowStart + 1} on`);
        for (const row of rows) yield Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)]));
      }
    },
  };
}

/** First and one past the last row of each piece; none reaches over the end of a row group. */
function* pieces({ row_groups }: FileMetaData): Generator<readonly [number, number]> {
  let first = 0;
  for (const group of row_groups) {
    const end = first + Number(group.num_rows);
    for (; first < end; first = Math.min(end, first + rowsAtOnce)) yield [first, Math.min(end, first + rowsAtOnce)];
  }
}

async function whole<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw damaged(file, (error as Error).message.split("\n")[0] as string, error);
  }
}

function damaged(file: string, what: string, cause?: unknown): DataError {
  return new DataError({ place: file, cause: `it is no whole Parquet file (${what})`, mend: "download or write it again" }, { cause });
}

/** A value as JSON carries it: whole numbers beyond 2^53 as text, dates in ISO form, what is no number as null. */
function plain(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "object") return value as Json;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (Array.isArray(value)) return value.map(plain);
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<number | bigint>, plain);
  return Object.fromEntries(Object.entries(value).map(([name, inside]) => [name, plain(inside)]));
}
