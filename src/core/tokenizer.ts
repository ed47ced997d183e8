import type { Json } from "./json.js";
import type { Message } from "./problem.js";

/** Turns token ids into text piece by piece, as they are sampled. The pieces together are the decoded whole. */
export interface TokenStream {
  /** What is certain once this token is there; empty while a character is incomplete. */
  push(id: number): string;
  /** What is left at the end of the response. */
  end(): string;
}

/** How special tokens appear in decoded text: not at all, or by name. */
export type Specials = "skip" | "show";

/** Text to token ids and back, and the chat template. Character tokenizers and Hugging Face tokenizers fill it alike. */
export interface Tokenizer {
  /** Name and hash of the vocabulary: roles that exchange tokens must agree in it (C7). */
  readonly id: string;
  /** Number of token ids; they run from 0 to `size - 1`. */
  readonly size: number;
  /** Ids that end a response; the first is the one to train on. */
  readonly eosIds: readonly number[];
  readonly bosId?: number;
  /** Ids of plain text. Special tokens that a user typed stay text. Throws DataError for text that has no tokens. */
  encode(text: string): Int32Array;
  /** Ids of a plain text that a sequence begins with: with a beginning token where the model's texts have one. */
  prompt(text: string): Int32Array;
  /** Ids of a text just as the model sees it: names of special tokens are those tokens; begins as `prompt` does, once. */
  raw(text: string): Int32Array;
  /** Total: any list of numbers gives a text; ids outside the vocabulary show as U+FFFD. Specials are skipped unless asked for. */
  decode(ids: ArrayLike<number>, specials?: Specials): string;
  /** An incremental `decode`. */
  stream(specials?: Specials): TokenStream;
  /** The chat template: a conversation as ids; with `addGenerationPrompt`, ready for the assistant's answer. */
  render(messages: readonly Message[], options: { readonly addGenerationPrompt: boolean }): Int32Array;
  /** All that is needed to build it again. */
  toJson(): Json;
}
