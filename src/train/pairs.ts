/** Prompt and response pairs, and whole conversations, from a JSONL or Parquet file, for supervised training. Every bad line is listed by number before anything is trained. */
import { alphabetTokenizer } from "../core/alphabet.js";
import { TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { inWords, type JsonRecord, LineFaults, missingColumn, promptOf, valueAt } from "../core/json-lines.js";
import type { Message } from "../core/problem.js";
import { openRecords } from "../core/records.js";
import type { Tokenizer } from "../core/tokenizer.js";
import { renderedAfter } from "../rollout/observation.js";
import type { Example } from "./sft.js";
import { withEnd } from "./starter.js";

/** A prompt with the response to be learnt. */
export interface Pair {
  readonly prompt: readonly Message[];
  readonly response: string;
  /** Of a conversation: what follows the first response, another response last. */
  readonly later?: readonly Message[];
  /** Its line in the file, counted from 1. */
  readonly line: number;
}

export interface PairColumns {
  readonly prompt: string;
  readonly response: string;
  /** Of whole conversations, which stand for both where a record has neither prompt nor response. */
  readonly messages: string;
}

const mend = "mend these lines, or name the columns with --prompt-column and --response-column";

/** Reads all pairs of a file, a record each: its prompt a text or a list of messages, its response a text that is not empty; or a conversation. Empty lines are passed over. */
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
  const [asked, response, whole] = [valueAt(record, columns.prompt), valueAt(record, columns.response), valueAt(record, columns.messages)];
  if (asked === undefined && response === undefined && whole !== undefined) return conversationOf(whole, columns.messages);
  if (asked === undefined || response === undefined) return missingColumn(record, asked === undefined ? columns.prompt : columns.response);
  const prompt = promptOf(asked, columns.prompt);
  if (typeof prompt === "string") return prompt;
  if (typeof response !== "string") return `its ${columns.response} is ${inWords(response)}, not a text`;
  return response === "" ? `its ${columns.response} is empty, so that nothing would be trained` : { prompt, response };
}

/** A conversation up to its last response; what follows that teaches nothing. */
function conversationOf(value: Json, column: string): Omit<Pair, "line"> | string {
  if (!Array.isArray(value)) return `its ${column} is ${inWords(value)}, not a list of messages`;
  const messages = promptOf(value, column);
  if (typeof messages === "string") return messages;
  const roles = messages.map(({ role }) => role);
  const [first, last] = [roles.indexOf("assistant"), roles.lastIndexOf("assistant")];
  if (first < 0) return `its ${column} has no message of the assistant, so that nothing would be trained`;
  if (first === 0) return `its ${column} begins with the assistant, whose answer follows nothing`;
  const empty = messages.findIndex(({ role, content }) => role === "assistant" && content === "");
  if (empty >= 0) return `its ${column}[${empty}].content is empty, so that nothing would be trained`;
  return { prompt: messages.slice(0, first), response: (messages[first] as Message).content, later: messages.slice(first + 1, last + 1) };
}

/** A tokenizer with one symbol for each character that the pairs use, in code point order. */
export function alphabetOf(pairs: readonly Pair[]): Tokenizer {
  const characters = new Set(
    pairs.flatMap(({ prompt, response, later = [] }) => [...[...prompt, ...later].flatMap(({ content }) => [...content]), ...response]),
  );
  return alphabetTokenizer([...characters].sort((a, b) => (a.codePointAt(0) as number) - (b.codePointAt(0) as number)));
}

/** Pairs as token ids. Throws a DataError that lists the lines which the tokenizer cannot write, or which are longer than `maxTokens`. */
export function pairExamples(pairs: readonly Pair[], tokenizer: Tokenizer, maxTokens: number, file: string): Example[] {
  const faults = new LineFaults();
  const examples = pairs.flatMap(({ line, ...pair }): Example[] => {
    try {
      const example = exampleOf(pair, tokenizer);
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

/**
 * As the policy would be asked: each response after what the template writes before it, with an end token. Of a conversation
 * the responses alone are learnt, and nothing that was answered is rendered again.
 */
function exampleOf({ prompt, response, later = [] }: Omit<Pair, "line">, tokenizer: Tokenizer): Example {
  const context = tokenizer.render(prompt, { addGenerationPrompt: true });
  if (later.length === 0) return { context, response: withEnd(tokenizer, response) };
  const ids = [...withEnd(tokenizer, response)];
  const learnt = ids.map(() => 1);
  let between: Message[] = [];
  for (const message of later) {
    if (message.role !== "assistant") {
      between.push(message);
      continue;
    }
    const asked = renderedAfter(tokenizer, between, true);
    const answer = withEnd(tokenizer, message.content);
    ids.push(...asked, ...answer);
    learnt.push(...Array.from(asked, () => 0), ...Array.from(answer, () => 1));
    between = [];
  }
  return { context, response: Int32Array.from(ids), loss: Uint8Array.from(learnt) };
}
