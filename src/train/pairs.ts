/** Prompt and response pairs from a JSONL or Parquet file, for supervised training. Every bad line is listed by number before anything is trained. */
import { alphabetTokenizer } from "../core/alphabet.js";
import { TouchstoneError } from "../core/errors.js";
import { inWords, type JsonRecord, LineFaults, missingColumn, promptOf, valueAt } from "../core/json-lines.js";
import type { Message } from "../core/problem.js";
import { openRecords } from "../core/records.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Example } from "./sft.js";
import { withEnd } from "./starter.js";

/** A prompt with the response to be learnt. */
export interface Pair {
  readonly prompt: readonly Message[];
  readonly response: string;
  /** Its line in the file, counted from 1. */
  readonly line: number;
}

export interface PairColumns {
  readonly prompt: string;
  readonly response: string;
}

const mend = "mend these lines, or name the columns with --prompt-column and --response-column";

/** Reads all pairs of a file, a record each: its prompt a text or a list of messages, its response a text that is not empty. Empty lines are passed over. */
export async function readPairs(file: string, columns: PairColumns): Promise<Pair[]> {
  const records = await openRecords(file);
  const faults = new LineFaults(records.word);
  const pairs: Pair[] = [];
  let used = 0;
  for await (const { number, blank, record, fault } of records.rows()) {
    if (blank) continue;
    used++;
    const pair = record === undefined ? fault : pairOf(record, columns);
    if (typeof pair === "string") faults.add(number, pair);
    else pairs.push({ ...pair, line: number });
  }
  if (faults.count > 0) throw faults.error(file, used, mend);
  return pairs;
}

function pairOf(record: JsonRecord, columns: PairColumns): Omit<Pair, "line"> | string {
  const [asked, response] = [valueAt(record, columns.prompt), valueAt(record, columns.response)];
  if (asked === undefined || response === undefined) return missingColumn(record, asked === undefined ? columns.prompt : columns.response);
  const prompt = promptOf(asked, columns.prompt);
  if (typeof prompt === "string") return prompt;
  if (typeof response !== "string") return `its ${columns.response} is ${inWords(response)}, not a text`;
  return response === "" ? `its ${columns.response} is empty, so that nothing would be trained` : { prompt, response };
}

/** A tokenizer with one symbol for each character that the pairs use, in code point order. */
export function alphabetOf(pairs: readonly Pair[]): Tokenizer {
  const characters = new Set(pairs.flatMap(({ prompt, response }) => [...prompt.flatMap(({ content }) => [...content]), ...response]));
  return alphabetTokenizer([...characters].sort((a, b) => (a.codePointAt(0) as number) - (b.codePointAt(0) as number)));
}

/** Pairs as token ids. Throws a DataError that lists the lines which the tokenizer cannot write, or which are longer than `maxTokens`. */
export function pairExamples(pairs: readonly Pair[], tokenizer: Tokenizer, maxTokens: number, file: string): Example[] {
  const faults = new LineFaults();
  const examples = pairs.flatMap(({ prompt, response, line }): Example[] => {
    try {
      const example = { context: tokenizer.render(prompt, { addGenerationPrompt: true }), response: withEnd(tokenizer, response) };
      const length = example.context.length + example.response.length;
      if (length <= maxTokens) return [example];
      faults.add(line, `${length} tokens, and the model takes ${maxTokens}`);
    } catch (error) {
      if (!(error instanceof TouchstoneError)) throw error;
      faults.add(line, error.message);
    }
    return [];
  });
  if (faults.count > 0) throw faults.error(file, pairs.length, mend);
  return examples;
}
