/** Files of one JSON object a line, as data is given: each line as a record or what is wrong with it, and messages within. */
import { DataError } from "./errors.js";
import type { Json } from "./json.js";
import { placeIn, readJson } from "./json-text.js";
import { nearestName } from "./options.js";
import type { Message } from "./problem.js";
import { refuseData, textLines } from "./text-file.js";

/** The columns of a line. */
export type JsonRecord = { readonly [column: string]: Json };
/** A line of the file, counted from 1. `blank`: nothing stands on it. */
export type JsonLine = { readonly number: number; readonly blank: boolean } & (
  | { readonly record: JsonRecord; readonly fault?: undefined }
  | { readonly record?: undefined; readonly fault: string }
);

const oneALine = "give a file with one JSON object a line";

/** All lines, in order; blank ones at the end of the file are passed over. Throws DataError for what is no text file or nothing but blanks. */
export function* jsonLines(file: string): Generator<JsonLine> {
  let blank = 0;
  let count = 0;
  /** Blank lines that are the file's end unless another follows. */
  let held: JsonLine[] = [];
  for (const line of textLines(file, refuseData(oneALine))) {
    const { number } = line;
    count++;
    if (line.fault !== undefined || line.text.trim() !== "") {
      yield* held;
      held = [];
    }
    if (line.fault !== undefined) yield { number, blank: false, fault: line.fault };
    else if (line.text.trim() === "") {
      blank++;
      held.push({ number, blank: true, fault: "it is empty" });
    } else {
      if (count === blank + 1 && line.text.trimStart().startsWith("[")) {
        throw new DataError({
          place: `${file}, line ${number}`,
          cause: "a JSON array begins, and one JSON object a line is due",
          mend: "write each object of the array on a line of its own",
        });
      }
      yield { number, blank: false, ...recordOf(line.text) };
    }
  }
  if (count === 0) throw new DataError({ place: file, cause: "it is empty", mend: oneALine });
  if (blank === count) throw new DataError({ place: file, cause: "it holds nothing but blanks", mend: oneALine });
}

function recordOf(text: string): { readonly record: JsonRecord; readonly fault?: undefined } | { readonly record?: undefined; readonly fault: string } {
  const { value, fault } = readJson(text);
  if (fault) return { fault: `column ${placeIn(text, fault.at).column}: it is not JSON: ${fault.cause}` };
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { fault: `it is ${inWords(value as Json)}, not a JSON object` };
  return { record: value as JsonRecord };
}

/** That a record lacks a column, with the one that was meant among those of the file, or else its own. */
export function missingColumn(record: JsonRecord, column: string, columns: readonly string[] = Object.keys(record)): string {
  const near = nearestName(column, columns);
  if (columns.length === 0) return `it has no column "${column}" (it is an empty object)`;
  return `it has no column "${column}" (${near === undefined ? `its columns: ${columns.join(", ").slice(0, 200)}` : `did you mean "${near}"?`})`;
}

/** A column's value; where no column has the whole name, dots lead into one. */
export function valueAt(record: JsonRecord, path: string): Json | undefined {
  if (Object.hasOwn(record, path)) return record[path];
  let value: Json | undefined = record;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonRecord)[key];
  }
  return value;
}

const roles: readonly string[] = ["system", "user", "assistant", "tool"] satisfies Message["role"][];

/** The prompt in a column (a text, or a list of messages), or what is wrong with it. */
export function promptOf(value: Json, column: string): readonly Message[] | string {
  if (typeof value === "string")
    return value.trim() === "" ? `its ${column} is empty` : (textFault(value, `its ${column}`) ?? [{ role: "user", content: value }]);
  if (!Array.isArray(value)) return `its ${column} is ${inWords(value)}, not a text or a list of messages`;
  if (value.length === 0) return `its ${column} is an empty list of messages`;
  const messages: Message[] = [];
  for (const [i, message] of (value as readonly Json[]).entries()) {
    const place = `${column}[${i}]`;
    if (typeof message !== "object" || message === null || Array.isArray(message))
      return `its ${place} is ${inWords(message)}, not a message with role and content`;
    const { role, content, ...rest } = message as JsonRecord;
    const [more] = Object.keys(rest);
    if (more !== undefined) return `its ${place} has "${more}", and a message has role and content alone`;
    if (typeof role !== "string" || !roles.includes(role)) {
      return `its ${place}.role is ${role === undefined ? "missing" : inWords(role)}, not one of ${roles.join(", ")}`;
    }
    if (typeof content !== "string") return `its ${place}.content is ${content === undefined ? "missing" : inWords(content)}, not a text`;
    const fault = textFault(content, `its ${place}.content`);
    if (fault !== undefined) return fault;
    messages.push({ role: role as Message["role"], content });
  }
  return messages.every(({ content }) => content.trim() === "") ? `its ${column} is empty` : messages;
}

/** Half a character cannot be written as UTF-8: it would come back as another. */
function textFault(text: string, place: string): string | undefined {
  return /\p{Surrogate}/u.test(text) ? `${place} has half a character (a lone surrogate)` : undefined;
}

/** A value as a sentence names it. */
export function inWords(value: Json): string {
  if (value === null) return "null";
  if (typeof value === "string") return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "object") return "an object";
  return typeof value === "number" ? `the number ${value}` : String(value);
}

/** Bad lines that a sentence lists, and that an error or a run carries. */
const listed = 5;
const kept = 1000;

/** The bad lines of a file: the first ones in words, all of them counted. A Parquet file has rows. */
export class LineFaults {
  readonly texts: string[] = [];
  count = 0;

  constructor(private readonly word: "line" | "row" = "line") {}

  add(number: number, fault: string): void {
    this.count++;
    if (this.texts.length >= kept) return;
    const [, column, rest] = /^(column \d+): (.*)$/s.exec(fault) ?? [];
    this.texts.push(column === undefined ? `${this.word} ${number}: ${fault}` : `${this.word} ${number}, ${column}: ${rest}`);
  }

  /** The error that lists them. */
  error(file: string, lines: number, mend: string): DataError {
    const more = this.count > listed ? `; and ${this.count - listed} more` : "";
    return new DataError({
      place: file,
      cause: `${this.count} of ${lines} ${this.word}s cannot be used (${this.texts.slice(0, listed).join("; ")}${more})`,
      mend,
      data: { faults: this.texts },
    });
  }
}
