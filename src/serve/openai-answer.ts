/** Answers of OpenAI's interface: log-probs in its two forms, and what was drawn as a choice. */
import type { Tokenizer } from "../core/tokenizer.js";
import type { Sample, TopK } from "../engine/contract.js";
import type { Wish } from "./openai-request.js";
import type { Drawn } from "./policy.js";

/** Log-probs of tokens, and of the most likely ones in their places: all of the whole distribution at temperature 1. */
export interface Told {
  readonly ids: ArrayLike<number>;
  /** NaN of a first token, before which there is nothing. */
  readonly logp: ArrayLike<number>;
  readonly top?: TopK;
}

/**
 * What a sample tells. The engine lists the most likely tokens at the request's temperature; at temperature 1 their
 * distances are those times the temperature, measured from the token that was drawn.
 */
export function toldBy({ ids, rawLogp, logp, top }: Sample, temperature: number): Told {
  if (top === undefined) return { ids, logp: rawLogp };
  const heat = temperature === 0 ? 1 : temperature;
  const scaled = heat === 1 ? top.logp : top.logp.map((listed, i) => rawLogp[Math.floor(i / top.k)] + heat * (listed - logp[Math.floor(i / top.k)]));
  return { ids, logp: rawLogp, top: { ...top, logp: scaled } };
}

type Names = (id: number) => string;

/** How log-probs call a token: by its text, special ones by their names, or by its id. */
export const namesOf =
  (tokenizer: Tokenizer, { tokensAsIds }: Pick<Wish, "tokensAsIds">): Names =>
  (id) =>
    tokensAsIds ? `token_id:${id}` : tokenizer.decode([id], "show");

const finite = (logp: number): number | null => (Number.isNaN(logp) ? null : Math.max(logp, -9999));

const listedAt = ({ top }: Told, t: number): readonly (readonly [number, number])[] =>
  top === undefined ? [] : Array.from({ length: top.k }, (_, i) => [top.ids[t * top.k + i] as number, top.logp[t * top.k + i] as number]);

/** In the form of completions. `from`: where the text begins. */
export function completionLogprobs(told: Told, name: Names, from = 0): object {
  const tokens = Array.from(told.ids, name);
  let at = from;
  return {
    tokens,
    token_logprobs: Array.from(told.logp, finite),
    top_logprobs:
      told.top === undefined
        ? null
        : tokens.map((_, t) => (Number.isNaN(told.logp[t]) ? null : Object.fromEntries(listedAt(told, t).map(([id, logp]) => [name(id), finite(logp)])))),
    text_offset: tokens.map((token) => {
      const here = at;
      at += token.length;
      return here;
    }),
  };
}

/** In the form of chats. */
export function chatLogprobs(told: Told, name: Names): object {
  const one = (id: number, logp: number): object => {
    const token = name(id);
    return { token, logprob: finite(logp), bytes: token.includes("\ufffd") ? null : [...Buffer.from(token)] };
  };
  return {
    content: Array.from(told.ids, (id, t) => ({
      ...one(id, told.logp[t] as number),
      top_logprobs: listedAt(told, t).map(([other, logp]) => one(other, logp)),
    })),
    refusal: null,
  };
}

/** What our own engine reads beside: ids and numbers in full. */
export function extras({ sample, by }: Drawn, { tokenIds }: Wish): object {
  if (!tokenIds) return {};
  const { ids, rawLogp, logp, entropy } = sample;
  return { token_ids: [...ids], stop_reason: by, touchstone: { raw_logp: [...rawLogp], logp: [...logp], entropy: [...entropy] } };
}

export function usageOf(prompts: readonly { readonly length: number }[], drawn: readonly Drawn[]): object {
  const prompt = prompts.reduce((sum, { length }) => sum + length, 0);
  const completion = drawn.reduce((sum, { sample }) => sum + sample.ids.length, 0);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}
