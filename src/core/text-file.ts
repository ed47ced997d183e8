/** Text files that users give: plain, in UTF-8, of a bounded size or read line by line. What is not is refused with its place. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { DataError, type TouchstoneError } from "./errors.js";

/** Makes the error of a fault; which class and mend is the reader's to say. */
export type Refuse = (place: string, cause: string, mend?: string) => TouchstoneError;

/** A DataError with this mend where the fault has none of its own. */
export const refuseData =
  (mend: string): Refuse =>
  (place, cause, own = mend) =>
    new DataError({ place, cause, mend: own });

/** A line without its end, numbered from 1, or what keeps it from being read. */
export type Line =
  | { readonly number: number; readonly text: string; readonly fault?: undefined }
  | { readonly number: number; readonly text?: undefined; readonly fault: string };

/** A line longer than this is no problem but a file of another format. */
const longestLine = 16 * 2 ** 20;
const pieceSize = 2 ** 20;

/** Beginnings of files that are no text. */
const formats: readonly (readonly [name: string, bytes: readonly number[], mend: string])[] = [
  ["it is packed with gzip", [0x1f, 0x8b], "unpack it first (gunzip)"],
  ["it is packed with zstd", [0x28, 0xb5, 0x2f, 0xfd], "unpack it first (unzstd)"],
  ["it is packed with bzip2", [0x42, 0x5a, 0x68], "unpack it first (bunzip2)"],
  ["it is packed with xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a], "unpack it first (unxz)"],
  ["it is a zip archive", [0x50, 0x4b, 0x03, 0x04], "unpack it first (unzip)"],
  ["it is a Parquet file", [0x50, 0x41, 0x52, 0x31], "write its rows as JSON, one object a line"],
  ["it is in UTF-16", [0xff, 0xfe], "save it in UTF-8"],
  ["it is in UTF-16", [0xfe, 0xff], "save it in UTF-8"],
];
const byteOrderMark = [0xef, 0xbb, 0xbf];

/** The whole text of a file of at most `most` bytes, without a byte order mark. */
export function readText(file: string, most: number, refuse: Refuse): string {
  const fd = open(file, refuse);
  try {
    const { size } = fstatSync(fd);
    if (size > most) throw refuse(file, `it has ${megabytes(size)}, more than the ${megabytes(most)} that are read`);
    const bytes = new Uint8Array(size);
    let length = 0;
    for (let got = -1; got !== 0 && length < size; length += got) got = read(fd, bytes.subarray(length), file, refuse);
    const content = bytes.subarray(0, length);
    refuseFormat(content, file, refuse);
    const text = decode(withoutMark(content));
    if (typeof text === "string") return text;
    const { line, column } = text;
    throw refuse(`${file}, line ${line}, column ${column}`, "the text is not UTF-8", "save it in UTF-8");
  } finally {
    closeSync(fd);
  }
}

/** The lines of a file, read in pieces; the last may lack its line end, and a line may end as on Windows. A line beyond all measure is refused before it is read. */
export function* textLines(file: string, refuse: Refuse): Generator<Line> {
  const fd = open(file, refuse);
  try {
    const buffer = new Uint8Array(pieceSize);
    /** What is read of the line in hand. */
    let parts: Uint8Array[] = [];
    let held = 0;
    let number = 1;
    const line = (end: Uint8Array): Line => {
      const whole = held === 0 ? end : Buffer.concat([...parts, end]);
      parts = [];
      held = 0;
      const text = decode(number === 1 ? withoutMark(whole) : whole);
      if (typeof text !== "string") return { number: number++, fault: `it is not UTF-8 (from column ${text.column})` };
      return { number: number++, text: text.endsWith("\r") ? text.slice(0, -1) : text };
    };
    for (let first = true; ; first = false) {
      const got = read(fd, buffer, file, refuse);
      const piece = buffer.subarray(0, got);
      if (first) refuseFormat(piece, file, refuse);
      let from = 0;
      for (let end = piece.indexOf(0x0a); end >= 0; end = piece.indexOf(0x0a, from)) {
        yield line(piece.subarray(from, end));
        from = end + 1;
      }
      if (from < got) {
        parts.push(piece.slice(from));
        held += got - from;
      }
      if (held > longestLine) throw refuse(`${file}, line ${number}`, `it is longer than ${megabytes(longestLine)}`);
      if (got === 0) break;
    }
    if (held > 0) yield line(new Uint8Array());
  } finally {
    closeSync(fd);
  }
}

/** Opens a plain file. A pipe would be waited for without end, and could not be read again on resume. */
function open(file: string, refuse: Refuse): number {
  let fd: number | undefined;
  try {
    // Without O_NONBLOCK the open of a named pipe would not come back.
    fd = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const kind = fstatSync(fd);
    if (kind.isFile()) return fd;
    throw refuse(file, kind.isDirectory() ? "it is a folder" : "it is no plain file", "give a plain file");
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    if (error instanceof Error && "code" in error && "syscall" in error) throw refuse(file, ...faultOf(error as NodeJS.ErrnoException));
    throw error;
  }
}

/** Cause and mend. */
function faultOf({ code }: NodeJS.ErrnoException): [string, string] {
  if (code === "ENOENT" || code === "ENOTDIR") return ["there is no such file", "check the path"];
  if (code === "ENXIO") return ["it is no plain file", "give a plain file"];
  if (code === "EACCES" || code === "EPERM") return [`it may not be read (${code})`, "allow it, or give another file"];
  return [`it cannot be read (${code})`, "check the path and the disk"];
}

function read(fd: number, into: Uint8Array, file: string, refuse: Refuse): number {
  try {
    return readSync(fd, into);
  } catch (error) {
    throw refuse(file, ...faultOf(error as NodeJS.ErrnoException));
  }
}

function refuseFormat(start: Uint8Array, file: string, refuse: Refuse): void {
  const found = formats.find(([, bytes]) => begins(start, bytes));
  if (found) throw refuse(file, found[0], found[2]);
  if (start.subarray(0, 4096).includes(0)) throw refuse(file, "it is no text (it has a byte 0)");
}

const begins = (content: Uint8Array, bytes: readonly number[]): boolean => bytes.every((byte, i) => content[i] === byte);
const withoutMark = (content: Uint8Array): Uint8Array => (begins(content, byteOrderMark) ? content.subarray(byteOrderMark.length) : content);
const megabytes = (bytes: number): string => `${Math.round((10 * bytes) / 2 ** 20) / 10} MB`;

/** The text of bytes, or where it stops being UTF-8. */
function decode(bytes: Uint8Array): string | { readonly line: number; readonly column: number } {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // The longest beginning that is right: a longer one is never right where a shorter one is wrong.
    let [right, wrong] = [0, bytes.length];
    const start = (length: number): string | undefined => {
      try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, length), { stream: true });
      } catch {
        return undefined;
      }
    };
    while (wrong - right > 1) {
      const middle = (right + wrong) >> 1;
      if (start(middle) === undefined) wrong = middle;
      else right = middle;
    }
    const lines = (start(right) as string).split("\n");
    return { line: lines.length, column: [...(lines.at(-1) as string)].length + 1 };
  }
}
