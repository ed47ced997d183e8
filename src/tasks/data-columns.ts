/** From the columns of a record to a row of a task, as options name them. */
import type { Json } from "../core/json.js";
import { inWords, type JsonRecord, missingColumn, promptOf, valueAt } from "../core/json-lines.js";
import type { Verifier } from "../verify/contract.js";
import type { Row } from "./contract.js";
import type { Condition, DataSource } from "./data-options.js";

/** Columns of rows that were made for verl. */
const verl = { reward: "reward_model", answer: "ground_truth", source: "data_source", info: "extra_info" } as const;
const defaultAnswer = "answer";

/** The outermost columns that may be read. */
export function columnsOf({ prompt_column, answer_column, key_column, solution_column, info_columns = [], where = {} }: DataSource): string[] {
  const named = [prompt_column, answer_column, key_column, solution_column, ...info_columns, ...Object.keys(where)].filter((name) => name !== undefined);
  return [...named.flatMap((name) => [name, name.split(".")[0] as string]), verl.reward, verl.source, verl.info];
}

/** Whether a record passes the conditions on its columns; a text where it lacks one. */
export function passes(record: JsonRecord, { where = {} }: DataSource, columns?: readonly string[]): boolean | string {
  for (const [column, condition] of Object.entries(where)) {
    const value = valueAt(record, column);
    if (value === undefined) return missingColumn(record, column, columns);
    if (typeof value === "string" && isRange(condition)) return `its ${column} is ${inWords(value)}, and min and max in where compare numbers`;
    if (!holds(value, condition)) return false;
  }
  return true;
}

const isRange = (condition: Condition): boolean => typeof condition === "object" && !Array.isArray(condition);

function holds(value: Json, condition: Condition): boolean {
  if (typeof condition !== "object") return value === condition;
  if (Array.isArray(condition)) return condition.some((each) => each === value);
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = condition as { min?: number; max?: number };
  return typeof value === "number" && value >= min && value <= max;
}

/** A record as a row, or what is wrong with it. */
export function mappedRow(record: JsonRecord, source: DataSource, { needsReference = true }: Pick<Verifier, "needsReference">): Row | string {
  const { prompt_column, answer_column, key_column, solution_column, info_columns = [], system } = source;
  const given = valueAt(record, answer_column);
  const ground = given === undefined ? valueAt(record, `${verl.reward}.${verl.answer}`) : undefined;
  const answer = given === undefined ? ground : given;
  const free = answer === undefined && !needsReference && answer_column === defaultAnswer;
  const named = [prompt_column, ...(ground !== undefined || free ? [] : [answer_column]), key_column, solution_column, ...info_columns];
  const missing = named.find((column) => column !== undefined && valueAt(record, column) === undefined);
  if (missing !== undefined) return missingColumn(record, missing);
  const prompt = promptOf(valueAt(record, prompt_column) as Json, prompt_column);
  if (typeof prompt === "string") return prompt;
  const answerName = ground === undefined ? answer_column : `${verl.reward}.${verl.answer}`;
  if (answer === null || answer === "") return `its ${answerName} is ${answer === null ? "null" : "empty"}`;
  const key = key_column === undefined ? undefined : valueAt(record, key_column);
  if (key !== undefined && !((typeof key === "string" && key !== "") || Number.isSafeInteger(key)))
    return `its ${key_column} is neither a text nor a whole number`;
  const solution = solution_column === undefined ? undefined : valueAt(record, solution_column);
  if (solution !== undefined && typeof solution !== "string") return `its ${solution_column} is not a text`;
  const info: { [name: string]: Json } = Object.fromEntries(info_columns.map((column) => [column, valueAt(record, column) as Json]));
  const tag = ground === undefined ? undefined : record[verl.source];
  if (ground !== undefined && record[verl.info] !== undefined) info[verl.info] ??= record[verl.info] as Json;
  return {
    prompt: system === undefined ? prompt : [{ role: "system", content: system }, ...prompt],
    ...(answer === undefined ? {} : { answer }),
    ...(key === undefined ? {} : { key: String(key) }),
    ...(solution === undefined ? {} : { solution }),
    ...(Object.keys(info).length > 0 && { privileged: info }),
    ...(typeof tag === "string" && { tags: { [verl.source]: tag } }),
  };
}
