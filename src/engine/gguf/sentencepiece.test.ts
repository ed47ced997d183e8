/** SentencePiece vocabularies as GGUF files have them, against the rule itself: join the neighbours whose union scores best, again and again. */
import { describe, expect, it } from "vitest";
import type { Json } from "../../core/json.js";
import { randomKey, Stream } from "../../core/random.js";
import type { HubTokenizer, TokenizerFile } from "../../tokenizers/hub.js";
import { hubTokenizer } from "../../tokenizers/load.js";
import { tokenizerOf } from "./tokenizer.js";

const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
/** Pieces in the order of their scores, which fall by one each. */
const joined = [..."▁t|▁th|▁the|in|▁in|er|▁a|he|at|▁cat|ca|cat|on|▁on|▁s|▁sa|▁sat|▁▁|▁▁▁▁|the|ing|▁th|ö|é|日本|an|▁and|nd|and|ther|▁ther".split("|")].filter(
  (piece, i, all) => all.indexOf(piece) === i,
);
const letters = [..."▁abcdefghijklmnopqrstuvwxyzABC.,!?0123456789öé日本"].filter((letter) => !joined.includes(letter));
const tokens = ["<unk>", "<s>", "</s>", ...bytes, ...joined, ...letters, "<|extra|>", "[PAD1]"];
const types = tokens.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : id < tokens.length - 2 ? 1 : id === tokens.length - 2 ? 4 : 5));
const scores = tokens.map((_, id) => (id < 259 ? 0 : 259 - id));

function tokenizer(more: { readonly [key: string]: Json } = {}): HubTokenizer {
  const metadata: { readonly [key: string]: Json } = {
    "general.architecture": "llama",
    "llama.context_length": 64,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.scores": scores,
    "tokenizer.ggml.token_type": types,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0,
    ...more,
  };
  const get = <T>(key: string, fallback?: T): T => (metadata[key] ?? fallback) as T;
  const { tokenizer: file, config } = tokenizerOf({
    path: "model.gguf",
    has: (key) => key in metadata,
    text: (key, fallback) => get(key, fallback),
    number: (key, fallback) => get(key, fallback),
    flag: (key, fallback) => get(key, fallback),
    list: (key) => get(key, []),
  });
  return hubTokenizer({ place: "model.gguf", file: file as unknown as TokenizerFile, config });
}

/** The rule, on characters. */
function pieces(text: string): number[] {
  const plain = new Map(tokens.map((token, id) => [token, id] as const).filter(([, id]) => types[id] === 1));
  const parts = [...text.replaceAll(" ", "▁")];
  for (;;) {
    let best = -1;
    for (let i = 0; i + 1 < parts.length; i++) {
      const score = (at: number): number => scores[plain.get(`${parts[at]}${parts[at + 1]}`) as number] as number;
      if (plain.has(`${parts[i]}${parts[i + 1]}`) && (best < 0 || score(i) > score(best))) best = i;
    }
    if (best < 0) break;
    parts.splice(best, 2, `${parts[best]}${parts[best + 1]}`);
  }
  return parts.flatMap((part) => plain.get(part) ?? [...new TextEncoder().encode(part)].map((byte) => 3 + byte));
}

describe("a SentencePiece vocabulary of a GGUF file", () => {
  const own = tokenizer();

  it("splits texts by scores, with a blank before them, and bytes for what has no piece", () => {
    const show = (text: string): string[] => [...own.encode(text)].map((id) => tokens[id] as string);
    expect(show("the cat sat")).toEqual(["▁the", "▁cat", "▁sat"]);
    expect(show("others")).toEqual(["▁", "o", "t", "h", "er", "s"]);
    expect(show("a€\n")).toEqual(["▁a", "<0xE2>", "<0x82>", "<0xAC>", "<0x0A>"]);
    expect([...own.prompt("a")]).toEqual([1, ...own.encode("a")]);
    const random = new Stream(randomKey({ seed: 1, purpose: "texts" }));
    const alphabet = [..."    ttthhheeeaaacciinnngsssooonndrö日本日€Z😀."];
    for (let i = 0; i < 500; i++) {
      const text = Array.from({ length: 1 + random.int(30) }, () => alphabet[random.int(alphabet.length)]).join("");
      expect([...own.encode(text)], text).toEqual(pieces(` ${text}`));
    }
  });

  it("gives texts back, whole and as a stream of whole characters", () => {
    for (const text of ["the cat sat on  the mat", "a€b😀日本", "two\nlines", " before", ""]) {
      const ids = own.encode(text);
      expect(own.decode(ids)).toBe(text);
      const stream = own.stream();
      const streamed = [...ids].map((id) => stream.push(id));
      expect(streamed.some((piece) => piece.includes("\ufffd"))).toBe(false);
      expect(streamed.join("") + stream.end()).toBe(text);
    }
  });

  it("keeps special tokens that were typed as text, and pads nothing", () => {
    expect([...own.encode("</s>")]).not.toContain(2);
    expect([...own.raw("<s>a</s>")].filter((id) => id < 3)).toEqual([1, 2]);
    expect(own.size).toBe(tokens.length - 1);
    expect(own.eosIds).toEqual([2]);
  });

  it("puts neither a blank nor a beginning token before texts where the file says so", () => {
    const bare = tokenizer({ "tokenizer.ggml.add_space_prefix": false, "tokenizer.ggml.add_bos_token": false });
    expect([...bare.prompt("the cat")]).toEqual(pieces("the cat"));
    expect(bare.decode(bare.encode(" the"))).toBe(" the");
  });

  it("is refused where it is of another kind", () => {
    expect(() => tokenizer({ "tokenizer.ggml.model": "bert" })).toThrow(
      /its vocabulary is of the kind bert, and byte-level pairs \(gpt2\) and SentencePiece pairs \(llama\) alone/,
    );
  });
});
