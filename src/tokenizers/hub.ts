/** Tokenizers of Hugging Face folders (tokenizer.json), with what a policy's tokens need: total decoding, streams, and text that stays text. */
import { Tokenizer as Library } from "@huggingface/tokenizers";
import { ModelError } from "../core/errors.js";
import { hashJson, type Json } from "../core/json.js";
import type { Message } from "../core/problem.js";
import type { Specials, Tokenizer, TokenStream } from "../core/tokenizer.js";
import { bytesOfName, bytesWithout, withoutBytes } from "./bytes.js";
import type { ChatTemplate, Piece } from "./template.js";

/** An entry of `added_tokens`. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special?: boolean;
}

/** The part of tokenizer.json that is read here; the library reads the whole. */
export interface TokenizerFile {
  readonly added_tokens?: readonly AddedToken[];
  readonly pre_tokenizer?: Json;
  readonly decoder?: Json;
  readonly model: { readonly type?: string; readonly vocab?: Json; readonly unk_token?: string | null; readonly byte_fallback?: boolean };
}

export interface HubTokenizerParts {
  /** The file's name in errors. */
  readonly place: string;
  readonly file: TokenizerFile;
  /** The content of tokenizer_config.json. */
  readonly config: { readonly [key: string]: Json };
  readonly eosIds: readonly number[];
  /** Where a text begins with it (`add_bos_token`, or the post-processor puts it there). */
  readonly bosId?: number;
  /** Absent: a conversation can only be one message, whose text is taken as it is. */
  readonly template?: ChatTemplate;
}

const replacement = "\ufffd";

export class HubTokenizer implements Tokenizer {
  readonly id: string;
  readonly size: number;
  readonly eosIds: readonly number[];
  readonly bosId?: number;
  /** Knows special tokens by their names. */
  private readonly whole: Library;
  /** Takes the names of special tokens for text. */
  private readonly plain: Library;
  private readonly special: ReadonlySet<number>;
  private readonly specialIds: ReadonlyMap<string, number>;
  /** Of a byte-level vocabulary: the bytes of each id. */
  private readonly bytes: readonly (Uint8Array | undefined)[] | undefined;
  /** Bytes that no token stands for and that nothing replaces: their characters cannot be written. */
  private readonly missing: ReadonlySet<number>;
  private readonly known: ReadonlySet<number>;

  /** Throws ModelError where the library cannot build it. */
  constructor(private readonly parts: HubTokenizerParts) {
    const { place, config, eosIds, bosId } = parts;
    const file = { ...parts.file, ...(parts.file.pre_tokenizer ? { pre_tokenizer: digitsAsSplit(parts.file.pre_tokenizer) } : {}) };
    const added = file.added_tokens ?? [];
    const specials = added.filter(({ special }) => special === true);
    // `clean_up_tokenization_spaces` would take spaces out of answers that were sampled with them.
    const settings = { ...config, clean_up_tokenization_spaces: false };
    this.whole = built(file, settings, place);
    this.plain = built({ ...file, added_tokens: added.filter((token) => !specials.includes(token)) }, settings, place);
    const vocabulary = this.whole.get_vocab(true);
    this.known = new Set(vocabulary.values());
    this.special = new Set(specials.map(({ id }) => id));
    this.specialIds = new Map(specials.map(({ content, id }) => [content, id]));
    this.size = [...this.known].reduce((most, id) => Math.max(most, id + 1), 0);
    this.eosIds = eosIds;
    if (bosId !== undefined) this.bosId = bosId;
    this.id = `hub:${hashJson({ model: file.model as unknown as Json, added: added as unknown as Json }).slice(0, 16)}`;
    const names = new Map([...vocabulary].map(([name, id]) => [id, name]));
    const byteLevel = uses(file.decoder, "ByteLevel");
    this.bytes = byteLevel ? byteTable(names, new Map(added.map(({ id, content }) => [id, content])), this.size) : undefined;
    const replaced = !byteLevel || file.model.byte_fallback === true || (file.model.unk_token ?? null) !== null;
    // The text of an added token is found before it comes to bytes.
    const written = new Set(added.flatMap(({ content }) => [...new TextEncoder().encode(content)]));
    this.missing = new Set(replaced ? [] : [...bytesWithout(vocabulary)].filter((byte) => !written.has(byte)));
  }

  encode(text: string): Int32Array {
    return ids(this.plain, withoutBytes(text, this.missing));
  }

  prompt(text: string): Int32Array {
    const encoded = this.encode(text);
    return this.bosId === undefined ? encoded : Int32Array.from([this.bosId, ...encoded]);
  }

  raw(text: string): Int32Array {
    const encoded = this.piecesToIds([{ text }]);
    return this.bosId === undefined || encoded[0] === this.bosId ? encoded : Int32Array.from([this.bosId, ...encoded]);
  }

  decode(given: ArrayLike<number>, show: Specials = "skip"): string {
    const stream = this.stream(show);
    return `${Array.from(given, (id) => stream.push(id)).join("")}${stream.end()}`;
  }

  stream(show: Specials = "skip"): TokenStream {
    const skipped = (id: number): boolean => show === "skip" && this.special.has(id);
    if (this.bytes) return new ByteStream(this.bytes, skipped);
    const text = (list: number[]): string => (list.length === 0 ? "" : this.whole.decode(list, { skip_special_tokens: show === "skip" }));
    return new TextStream(text, (id) => this.known.has(id));
  }

  render(messages: readonly Message[], { addGenerationPrompt }: { readonly addGenerationPrompt: boolean }): Int32Array {
    const { template, place } = this.parts;
    if (template !== undefined) return this.piecesToIds(template.render(messages, addGenerationPrompt));
    const [only] = messages;
    if (messages.length !== 1 || only === undefined) {
      throw new ModelError({
        place,
        cause: `the model has no chat template, so a conversation of ${messages.length} messages has no form`,
        mend: "give one with --chat-template FILE, or prompts of a single message, which are taken as plain text",
      });
    }
    return this.prompt(only.content);
  }

  /** The library's own ids where nobody typed a special token; else each stretch between special tokens by itself. */
  private piecesToIds(pieces: readonly Piece[]): Int32Array {
    if (pieces.length === 1) return ids(this.whole, withoutBytes(textOf(pieces[0] as Piece), this.missing));
    const out: number[] = [];
    let stretch = "";
    const flush = (): void => {
      if (stretch !== "") out.push(...this.encode(stretch));
      stretch = "";
    };
    for (const piece of pieces) {
      if ("typed" in piece) {
        stretch += piece.typed;
        continue;
      }
      for (const part of this.parted(piece.text)) {
        const id = this.specialIds.get(part);
        if (id === undefined) stretch += part;
        else {
          flush();
          out.push(id);
        }
      }
    }
    flush();
    return Int32Array.from(out);
  }

  /** A text as its special tokens and what stands between them; the longest name wins. */
  private parted(text: string): string[] {
    const names = [...this.specialIds.keys()].sort((a, b) => b.length - a.length).map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return text.split(new RegExp(`(${names.join("|")})`)).filter((part) => part !== "");
  }

  toJson(): Json {
    return { format: "tokenizer.json", id: this.id };
  }
}

const textOf = (piece: Piece): string => ("text" in piece ? piece.text : piece.typed);

const ids = (library: Library, text: string): Int32Array =>
  text === "" ? new Int32Array() : Int32Array.from(library.encode(text, { add_special_tokens: false }).ids);

function built(file: TokenizerFile, config: { readonly [key: string]: Json }, place: string): Library {
  try {
    return new Library(file, config);
  } catch (error) {
    const cause = error instanceof Error ? error.message.replaceAll("\n", " ") : String(error);
    throw new ModelError({ place, cause: `no tokenizer can be built from it (${cause})`, mend: "take the file that belongs to the model" }, { cause: error });
  }
}

/** The library takes ASCII digits alone for digits; the rule means all numerals (\p{N}). */
export function digitsAsSplit(rule: Json): Json {
  if (rule === null || typeof rule !== "object" || Array.isArray(rule)) return rule;
  const { type, individual_digits: individual, pretokenizers } = rule as { readonly [key: string]: Json };
  if (type === "Digits") return { type: "Split", pattern: { Regex: individual === true ? "\\p{N}" : "\\p{N}+" }, behavior: "Isolated", invert: false };
  return Array.isArray(pretokenizers) ? { ...rule, pretokenizers: pretokenizers.map(digitsAsSplit) } : rule;
}

/** Whether a decoder, or one of a sequence, is of this type. */
function uses(decoder: Json | undefined, type: string): boolean {
  if (decoder === null || decoder === undefined || typeof decoder !== "object" || Array.isArray(decoder)) return false;
  const { type: own, decoders } = decoder as { readonly [key: string]: Json };
  return own === type || (Array.isArray(decoders) && decoders.some((inner) => uses(inner as Json, type)));
}

function byteTable(names: ReadonlyMap<number, string>, added: ReadonlyMap<number, string>, size: number): (Uint8Array | undefined)[] {
  const encoder = new TextEncoder();
  return Array.from({ length: size }, (_, id) => {
    const content = added.get(id);
    if (content !== undefined) return encoder.encode(content);
    const name = names.get(id);
    return name === undefined ? undefined : (bytesOfName(name) ?? encoder.encode(name));
  });
}

/** Bytes of tokens as text, a character once all of its bytes are there. */
class ByteStream implements TokenStream {
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(
    private readonly bytes: readonly (Uint8Array | undefined)[],
    private readonly skipped: (id: number) => boolean,
  ) {}

  push(id: number): string {
    if (this.skipped(id)) return "";
    const bytes = this.bytes[id];
    if (bytes !== undefined) return this.decoder.decode(bytes, { stream: true });
    return `${this.end()}${replacement}`;
  }

  end(): string {
    return this.decoder.decode();
  }
}

/** For other decoders: the text of all ids so far, given out as far as later ones cannot change it. */
class TextStream implements TokenStream {
  private ids: number[] = [];
  private given = 0;

  constructor(
    private readonly text: (ids: number[]) => string,
    private readonly known: (id: number) => boolean,
  ) {}

  push(id: number): string {
    if (!this.known(id)) return `${this.end()}${replacement}`;
    this.ids.push(id);
    const text = this.text(this.ids);
    return text.endsWith(replacement) ? "" : this.upTo(text);
  }

  end(): string {
    const rest = this.upTo(this.text(this.ids));
    this.ids = [];
    this.given = 0;
    return rest;
  }

  private upTo(text: string): string {
    const piece = text.slice(this.given);
    this.given = text.length;
    return piece;
  }
}
