/** Prompt and response pairs from a JSONL file, for supervised training. Every bad line is listed by number before anything is trained. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { alphabetTokenizer } from "../core/alphabet.js";
import { DataError, TouchstoneError } from "../core/errors.js";
import type { Message } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Example } from "./sft.js";
import { withEnd } from "./starter.js";

const messages = z.array(z.strictObject({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.string() })).min(1);

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

const listed = 5;

function refuse(file: string, faults: readonly string[], lines: number): never {
  const more = faults.length > listed ? `; and ${faults.length - listed} more` : "";
  throw new DataError({
    place: file,
    cause: `${faults.length} of ${lines} lines cannot be used (${faults.slice(0, listed).join("; ")}${more})`,
    mend: "mend these lines, or name the columns with --prompt-column and --response-column",
    data: { faults: faults.slice(0, 1000) },
  });
}

/** Reads all pairs of a file: one JSON object a line, its prompt a text or a list of messages, its response a text that is not empty. */
export async function readPairs(file: string, columns: PairColumns): Promise<Pair[]> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new DataError({ place: file, cause: `it cannot be read (${(error as NodeJS.ErrnoException).code})`, mend: "give the path of a JSONL file" });
  });
  const faults: string[] = [];
  const lines = text.split("\n").map((content, i) => ({ content, line: i + 1 }));
  const used = lines.filter(({ content }) => content.trim() !== "");
  const pairs = used.flatMap(({ content, line }): Pair[] => {
    try {
      const row = JSON.parse(content) as { readonly [column: string]: unknown };
      for (const column of [columns.prompt, columns.response]) if (!Object.hasOwn(row ?? {}, column)) throw new Error(`there is no column ${column}`);
      const prompt = row[columns.prompt];
      const response = row[columns.response];
      if (typeof response !== "string" || response === "") throw new Error(`column ${columns.response} is no text with characters`);
      if (typeof prompt === "string") return [{ prompt: [{ role: "user", content: prompt }], response, line }];
      const parsed = messages.safeParse(prompt);
      if (!parsed.success) throw new Error(`column ${columns.prompt} is neither a text nor a list of messages`);
      return [{ prompt: parsed.data, response, line }];
    } catch (error) {
      faults.push(`line ${line}: ${(error as Error).message.slice(0, 100)}`);
      return [];
    }
  });
  if (faults.length > 0) refuse(file, faults, used.length);
  if (pairs.length === 0) throw new DataError({ place: file, cause: "it has no lines", mend: "give one JSON object with prompt and response a line" });
  return pairs;
}

/** A tokenizer with one symbol for each character that the pairs use, in code point order. */
export function alphabetOf(pairs: readonly Pair[]): Tokenizer {
  const characters = new Set(pairs.flatMap(({ prompt, response }) => [...prompt.flatMap(({ content }) => [...content]), ...response]));
  return alphabetTokenizer([...characters].sort((a, b) => (a.codePointAt(0) as number) - (b.codePointAt(0) as number)));
}

/** Pairs as token ids. Throws a DataError that lists the lines which the tokenizer cannot write, or which are longer than `maxTokens`. */
export function pairExamples(pairs: readonly Pair[], tokenizer: Tokenizer, maxTokens: number, file: string): Example[] {
  const faults: string[] = [];
  const examples = pairs.flatMap(({ prompt, response, line }): Example[] => {
    try {
      const example = { context: tokenizer.render(prompt, { addGenerationPrompt: true }), response: withEnd(tokenizer, response) };
      const length = example.context.length + example.response.length;
      if (length <= maxTokens) return [example];
      faults.push(`line ${line}: ${length} tokens, and the model takes ${maxTokens}`);
    } catch (error) {
      if (!(error instanceof TouchstoneError)) throw error;
      faults.push(`line ${line}: ${error.message}`);
    }
    return [];
  });
  if (faults.length > 0) refuse(file, faults, pairs.length);
  return examples;
}
