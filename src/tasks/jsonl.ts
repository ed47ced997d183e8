/** A task from a JSONL file whose columns are mapped by options. Every bad line is listed by number before anything runs. */
import { closeSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import { z } from "zod";
import { DataError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { nearestName } from "../core/options.js";
import type { Message } from "../core/problem.js";
import { type Verifier, verifierId } from "../verify/contract.js";
import type { Row, Task } from "./contract.js";
import { defineTask } from "./define.js";

export const jsonlOptions = z.strictObject({
  file: z.string().min(1).describe("Path of the file: one JSON object a line."),
  prompt_column: z.string().min(1).default("prompt").describe("Column of the prompt: a text, or a list of messages with role and content."),
  answer_column: z.string().min(1).default("answer").describe("Column of the reference answer."),
  key_column: z.string().min(1).optional().describe("Column of a stable, unique key; absent: a hash of the prompt."),
  solution_column: z.string().min(1).optional().describe("Column of a worked solution, which training alone may see."),
  system: z.string().min(1).optional().describe("A system message before each prompt."),
  eval_share: z.number().min(0).max(1).default(0).describe("Share of the problems held out for evaluation, chosen by the hash of their keys."),
  bad_rows: z.enum(["refuse", "skip"]).default("refuse").describe("Whether a line that cannot be used stops the run, or is left out and counted."),
});
export type JsonlOptions = z.output<typeof jsonlOptions>;

/** A line longer than this is no problem but a file of another format. */
const longestLine = 16 * 2 ** 20;
const listed = 5;

const messages = z.array(z.strictObject({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.string() })).min(1);

export interface JsonlTask {
  readonly task: Task;
  /** What is wrong with each line that was left out (`bad_rows: skip`). */
  readonly skipped: readonly string[];
}

/** Reads the file, maps its columns and checks every reference. Throws DataError that lists the bad lines. */
export function jsonlTask(options: JsonlOptions, verifier: Verifier): JsonlTask {
  const { file, eval_share } = options;
  const rows: Row[] = [];
  const faults: string[] = [];
  const keys = new Map<string, number>();
  let number = 0;
  for (const line of linesOf(file)) {
    number++;
    const row = rowOf(line, options);
    const fault = typeof row === "string" ? row : faultOf(row, number, keys, verifier);
    if (fault !== undefined) faults.push(`line ${number}: ${fault}`);
    else rows.push(row as Row);
  }
  if (number === 0) throw new DataError({ place: file, cause: "it is empty", mend: "give a file with one JSON object a line" });
  if (faults.length > 0 && (options.bad_rows === "refuse" || rows.length === 0)) {
    const more = faults.length > listed ? `; and ${faults.length - listed} more` : "";
    const mend = `mend these lines${rows.length > 0 ? ", or leave them out with bad_rows: skip" : ""}`;
    throw new DataError({
      place: file,
      cause: `${faults.length} of ${number} lines cannot be used (${faults.slice(0, listed).join("; ")}${more})`,
      mend,
      data: { faults: faults.slice(0, 1000) },
    });
  }
  const make = defineTask({
    name: basename(file),
    version: verifierId(verifier),
    rows: () => rows,
    verifier,
    shares: { eval: eval_share, train: 1 - eval_share, warm: 0 },
  });
  return { task: make(), skipped: faults };
}

/** A line as a row, or what is wrong with it. */
function rowOf(line: string, options: JsonlOptions): Row | string {
  if (line.trim() === "") return "it is empty";
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    return `it is not JSON (${(error as Error).message.slice(0, 80)})`;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "it is not a JSON object";
  const record = value as { readonly [column: string]: Json };
  const missing = [options.prompt_column, options.answer_column, options.key_column, options.solution_column].find(
    (column) => column !== undefined && !Object.hasOwn(record, column),
  );
  if (missing !== undefined) {
    const columns = Object.keys(record);
    const near = nearestName(missing, columns);
    return `it has no column "${missing}" (${near === undefined ? `its columns: ${columns.join(", ").slice(0, 200)}` : `did you mean "${near}"?`})`;
  }
  const prompt = promptOf(record[options.prompt_column] as Json, options);
  if (typeof prompt === "string") return prompt;
  const answer = record[options.answer_column] as Json;
  if (answer === null || answer === "") return `its ${options.answer_column} is empty`;
  const key = options.key_column === undefined ? undefined : record[options.key_column];
  if (key !== undefined && !((typeof key === "string" && key !== "") || Number.isSafeInteger(key)))
    return `its ${options.key_column} is neither a text nor a whole number`;
  const solution = options.solution_column === undefined ? undefined : record[options.solution_column];
  if (solution !== undefined && typeof solution !== "string") return `its ${options.solution_column} is not a text`;
  return { prompt, answer, ...(key === undefined ? {} : { key: String(key) }), ...(solution === undefined ? {} : { solution }) };
}

/** Messages of a prompt, or what is wrong with it. */
function promptOf(value: Json, { prompt_column, system }: JsonlOptions): readonly Message[] | string {
  const before: Message[] = system === undefined ? [] : [{ role: "system", content: system }];
  if (typeof value === "string") return value.trim() === "" ? `its ${prompt_column} is empty` : [...before, { role: "user", content: value }];
  const read = messages.safeParse(value);
  return read.success ? [...before, ...read.data] : `its ${prompt_column} is neither a text nor a list of messages with role and content`;
}

function faultOf(row: Row, number: number, keys: Map<string, number>, verifier: Verifier): string | undefined {
  const key = row.key ?? JSON.stringify(row.prompt);
  const earlier = keys.get(key);
  if (earlier !== undefined) return row.key === undefined ? `it has the prompt of line ${earlier}` : `it has the key ${JSON.stringify(key)} of line ${earlier}`;
  keys.set(key, number);
  const fault = verifier.checkReference(row.answer as Json);
  return fault === undefined ? undefined : `its answer is refused by the verifier ${verifier.name}: ${fault}`;
}

/** Lines of a file, read in pieces; the last may lack its line end. */
function* linesOf(file: string): Generator<string> {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch (error) {
    throw new DataError(
      { place: file, cause: `it cannot be read (${(error as NodeJS.ErrnoException).code})`, mend: "give the path of a JSONL file" },
      { cause: error },
    );
  }
  try {
    const buffer = new Uint8Array(2 ** 20);
    const decoder = new TextDecoder();
    let rest = "";
    let number = 1;
    for (;;) {
      let got: number;
      try {
        got = readSync(fd, buffer);
      } catch (error) {
        throw new DataError(
          { place: file, cause: `it cannot be read (${(error as NodeJS.ErrnoException).code})`, mend: "give the path of a JSONL file" },
          { cause: error },
        );
      }
      const pieces = (rest + decoder.decode(buffer.subarray(0, got), { stream: got > 0 })).split("\n");
      rest = pieces.pop() as string;
      for (const piece of pieces) {
        yield piece.replace(/\r$/, "");
        number++;
      }
      if (rest.length > longestLine) {
        throw new DataError({
          place: `${file}, line ${number}`,
          cause: `it is longer than ${longestLine / 2 ** 20} MB`,
          mend: "give a file with one JSON object a line",
        });
      }
      if (got === 0) break;
    }
    if (rest !== "") yield rest.replace(/\r$/, "");
  } finally {
    closeSync(fd);
  }
}
