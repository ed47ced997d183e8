/**
 * The alphabet tokenizer: a short list of symbols, each one token. Symbols may have several characters (`10`, `<=`);
 * the longest that fits is taken. For small policies that start from nothing, where every id means something.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { DataError, ModelError } from "./errors.js";
import { canonicalJson, hashJson, type Json } from "./json.js";
import { placeIn, readJson } from "./json-text.js";
import { parseOptions } from "./options.js";
import type { Message } from "./problem.js";
import type { Specials, Tokenizer, TokenStream } from "./tokenizer.js";

/** The file of an alphabet in a model folder. */
export const alphabetFile = "touchstone_tokenizer.json";

const format = "touchstone-alphabet-1";
/** Special tokens, in the order of their ids, before all symbols. A message is its role's token and its text; an assistant's ends with `<eos>`. */
const specials = ["<eos>", "<system>", "<user>", "<assistant>", "<tool>"] as const;
const eos = 0;
const roleIds: { readonly [role in Message["role"]]: number } = { system: 1, user: 2, assistant: 3, tool: 4 };
const unknown = "\ufffd";

const fileSchema = z.strictObject({
  format: z.literal(format),
  symbols: z.array(z.string().min(1)).min(1),
});

/** A tokenizer over these symbols. Throws ConfigError for an empty symbol, ModelError for a repeated or ill-formed one. */
export function alphabetTokenizer(symbols: readonly string[], place = "alphabet"): Tokenizer {
  const { symbols: checked } = parseOptions(fileSchema, { format, symbols }, place);
  return new Alphabet(checked, place);
}

/** Writes the tokenizer's file into a model folder that exists. */
export async function saveAlphabet(tokenizer: Tokenizer, folder: string): Promise<void> {
  await writeFile(join(folder, alphabetFile), `${canonicalJson(tokenizer.toJson())}\n`);
}

/** Reads the tokenizer of a model folder. Throws ModelError where there is none, ConfigError where its file is wrong. */
export async function loadAlphabet(folder: string): Promise<Tokenizer> {
  const file = join(folder, alphabetFile);
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new ModelError({
      place: file,
      cause: `it cannot be read (${(error as NodeJS.ErrnoException).code})`,
      mend: "give a model folder with an alphabet tokenizer",
    });
  });
  return new Alphabet(parseOptions(fileSchema, parseJson(text, file), file).symbols, file);
}

function parseJson(text: string, file: string): unknown {
  const { value, fault } = readJson(text);
  if (fault === undefined) return value;
  const { line, column } = placeIn(text, fault.at);
  throw new ModelError({
    place: `${file}, line ${line}, column ${column}`,
    cause: `it is not JSON: ${fault.cause}`,
    mend: "copy it again from where the model was saved",
  });
}

class Alphabet implements Tokenizer {
  readonly id: string;
  readonly size: number;
  readonly eosIds = [eos];
  private readonly ids = new Map<string, number>();
  private readonly longest: number;

  constructor(
    private readonly symbols: readonly string[],
    place: string,
  ) {
    for (const [i, symbol] of symbols.entries()) {
      const cause = this.ids.has(symbol) ? `it repeats ${JSON.stringify(symbol)}` : /\p{Surrogate}/u.test(symbol) ? "it is half a character" : undefined;
      if (cause !== undefined) throw new ModelError({ place: `${place}, symbols[${i}]`, cause, mend: "give each symbol once, as whole characters" });
      this.ids.set(symbol, specials.length + i);
    }
    this.longest = Math.max(...symbols.map((symbol) => symbol.length));
    this.size = specials.length + symbols.length;
    this.id = `alphabet:${hashJson(this.toJson()).slice(0, 16)}`;
  }

  encode(text: string): Int32Array {
    const out: number[] = [];
    for (let at = 0; at < text.length; ) {
      let length = Math.min(this.longest, text.length - at);
      while (length > 0 && !this.ids.has(text.slice(at, at + length))) length--;
      if (length === 0) throw this.refusal(text, at);
      out.push(this.ids.get(text.slice(at, at + length)) as number);
      at += length;
    }
    return Int32Array.from(out);
  }

  prompt(text: string): Int32Array {
    return this.encode(text);
  }

  raw(text: string): Int32Array {
    const parts = text.split(new RegExp(`(${specials.join("|")})`));
    const ids = parts.map((part) => [part, (specials as readonly string[]).indexOf(part)] as const);
    return Int32Array.from(ids.flatMap(([part, special]) => (special >= 0 ? [special] : [...this.encode(part)])));
  }

  private refusal(text: string, at: number): DataError {
    const character = String.fromCodePoint(text.codePointAt(at) as number);
    const line = JSON.stringify(text.slice(Math.max(0, at - 10), at + 10));
    return new DataError({
      place: `text ${line}, character ${[...text.slice(0, at)].length + 1}`,
      cause: `${JSON.stringify(character)} is not in the alphabet of ${this.symbols.length} symbols`,
      mend: `use only ${this.symbols
        .slice(0, 40)
        .map((symbol) => JSON.stringify(symbol))
        .join(" ")}${this.symbols.length > 40 ? " …" : ""}`,
      data: { character, position: at },
    });
  }

  decode(ids: ArrayLike<number>, show: Specials = "skip"): string {
    return Array.from(ids, (id) => this.textOf(id, show)).join("");
  }

  private textOf(id: number, show: Specials): string {
    if (specials[id] !== undefined) return show === "show" ? specials[id] : "";
    return this.symbols[id - specials.length] ?? unknown;
  }

  stream(show: Specials = "skip"): TokenStream {
    return { push: (id) => this.textOf(id, show), end: () => "" };
  }

  render(messages: readonly Message[], { addGenerationPrompt }: { readonly addGenerationPrompt: boolean }): Int32Array {
    const ids = messages.flatMap(({ role, content }) => [roleIds[role], ...this.encode(content), ...(role === "assistant" ? [eos] : [])]);
    return Int32Array.from(addGenerationPrompt ? [...ids, roleIds.assistant] : ids);
  }

  toJson(): Json {
    return { format, symbols: this.symbols };
  }
}
