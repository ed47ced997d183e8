/** A task from a JSONL file whose columns are mapped by options. Every bad line is listed by number before anything runs. */
import { basename } from "node:path";
import { z } from "zod";
import type { Json } from "../core/json.js";
import { type JsonRecord, jsonLines, LineFaults, missingColumn, promptOf } from "../core/json-lines.js";
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

export interface JsonlTask {
  readonly task: Task;
  /** How many lines were left out (`bad_rows: skip`), and what is wrong with the first ones. */
  readonly skipped: { readonly count: number; readonly first: string | undefined };
}

/** Reads the file, maps its columns and checks every reference. Throws DataError that lists the bad lines. */
export function jsonlTask(options: JsonlOptions, verifier: Verifier): JsonlTask {
  const { file, eval_share } = options;
  const rows: Row[] = [];
  const faults = new LineFaults();
  const keys = new Map<string, number>();
  let lines = 0;
  for (const { number, record, fault: unread } of jsonLines(file)) {
    lines = number;
    const row = record === undefined ? unread : rowOf(record, options);
    const fault = typeof row === "string" ? row : faultOf(row, number, keys, verifier);
    if (fault !== undefined) faults.add(number, fault);
    else rows.push({ ...(row as Row), place: `${file}, line ${number}` });
  }
  if (faults.count > 0 && (options.bad_rows === "refuse" || rows.length === 0)) {
    throw faults.error(file, lines, `mend these lines${rows.length > 0 ? ", or leave them out with bad_rows: skip" : ""}`);
  }
  const make = defineTask({
    name: basename(file),
    version: verifierId(verifier),
    rows: () => rows,
    verifier,
    shares: { eval: eval_share, train: 1 - eval_share, warm: 0 },
  });
  return { task: make(), skipped: { count: faults.count, first: faults.texts[0] } };
}

/** What a run or command says of lines that were left out; nothing where there are none. */
export function skippedNote(file: string, { count, first }: JsonlTask["skipped"]): string[] {
  return count === 0 ? [] : [`${count} lines of ${file} were left out (the first: ${first})`];
}

/** A record as a row, or what is wrong with it. */
function rowOf(record: JsonRecord, options: JsonlOptions): Row | string {
  const { prompt_column, answer_column, key_column, solution_column, system } = options;
  const missing = [prompt_column, answer_column, key_column, solution_column].find((column) => column !== undefined && !Object.hasOwn(record, column));
  if (missing !== undefined) return missingColumn(record, missing);
  const prompt = promptOf(record[prompt_column] as Json, prompt_column);
  if (typeof prompt === "string") return prompt;
  const answer = record[answer_column] as Json;
  if (answer === null || answer === "") return `its ${answer_column} is ${answer === null ? "null" : "empty"}`;
  const key = key_column === undefined ? undefined : record[key_column];
  if (key !== undefined && !((typeof key === "string" && key !== "") || Number.isSafeInteger(key)))
    return `its ${key_column} is neither a text nor a whole number`;
  const solution = solution_column === undefined ? undefined : record[solution_column];
  if (solution !== undefined && typeof solution !== "string") return `its ${solution_column} is not a text`;
  return {
    prompt: system === undefined ? prompt : [{ role: "system", content: system }, ...prompt],
    answer,
    ...(key === undefined ? {} : { key: String(key) }),
    ...(solution === undefined ? {} : { solution }),
  };
}

function faultOf(row: Row, number: number, keys: Map<string, number>, verifier: Verifier): string | undefined {
  const key = row.key ?? JSON.stringify(row.prompt);
  const earlier = keys.get(key);
  if (earlier !== undefined) return row.key === undefined ? `it has the prompt of line ${earlier}` : `it has the key ${JSON.stringify(key)} of line ${earlier}`;
  keys.set(key, number);
  const fault = verifier.checkReference(row.answer as Json);
  return fault === undefined ? undefined : `its answer is refused by the verifier ${verifier.name}: ${fault}`;
}
