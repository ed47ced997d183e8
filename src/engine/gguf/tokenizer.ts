/** tokenizer.json and tokenizer_config.json from the metadata of a GGUF file. */
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import type { GgufFile } from "./file.js";
import { sentencePieceParts } from "./sentencepiece.js";

/** GPT-2's own rule, which ByteLevel has built in. */
const gpt2: Json = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
const bytesOnly: Json = { ...(gpt2 as object), use_regex: false };
const words = (numerals: string): Json => ({
  type: "Sequence",
  pretokenizers: [
    {
      type: "Split",
      pattern: {
        Regex: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${numerals}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`,
      },
      behavior: "Isolated",
      invert: false,
    },
    bytesOnly,
  ],
});

interface Rule {
  readonly split: Json;
  readonly normalizer?: Json;
  /** Whole words of the vocabulary are taken without merging. */
  readonly wholeWords?: true;
}

/** How a text is split before merging, by the name in `tokenizer.ggml.pre`. */
const rules: { readonly [pre: string]: Rule } = {
  "gpt-2": { split: gpt2 },
  smollm: { split: { type: "Sequence", pretokenizers: [{ type: "Digits", individual_digits: true }, gpt2] } },
  qwen2: { split: words("\\p{N}"), normalizer: { type: "NFC" } },
  "llama-bpe": { split: words("\\p{N}{1,3}"), wholeWords: true },
};

/** The name in `tokenizer.ggml.pre` of a pre-tokenizer of tokenizer.json that splits alike, if there is one. */
export function ruleName(split: Json | undefined): string | undefined {
  const steps = JSON.stringify(stepsOf(split));
  return Object.keys(rules).find((name) => JSON.stringify(stepsOf(rules[name]?.split)) === steps);
}

/** What a pre-tokenizer does, without what changes no token (offsets). */
function stepsOf(split: Json | undefined): readonly Json[] {
  const { type, pretokenizers, pattern, behavior, invert, use_regex, add_prefix_space, individual_digits } = (split ?? {}) as { readonly [key: string]: Json };
  if (type === "Sequence" && Array.isArray(pretokenizers)) return pretokenizers.flatMap(stepsOf);
  // Each numeral by itself may be written in two ways.
  if (type === "Digits") return [["Split", individual_digits === true ? "\\p{N}" : "\\p{N}+", "Isolated", false]];
  if (type === "Split") return [["Split", (pattern as { readonly Regex?: string } | null)?.Regex ?? null, behavior ?? null, invert ?? false]];
  if (type === "ByteLevel") return [["ByteLevel", use_regex ?? true, add_prefix_space ?? true]];
  return [type ?? null];
}

/** Kinds of tokens in `tokenizer.ggml.token_type`. */
export const tokenKinds = { plain: 1, unknown: 2, control: 3, own: 4, unused: 5, byte: 6 } as const;
const { unknown, control, own, unused } = tokenKinds;

/** What is read of a file here. */
type Metadata = Pick<GgufFile, "path" | "has" | "text" | "number" | "flag" | "list">;

export interface TokenizerFiles {
  readonly tokenizer: Json;
  readonly config: { readonly [key: string]: Json };
}

function byteLevelParts(rule: Rule, tokens: readonly (readonly [number, string])[], merges: readonly string[]): { readonly [key: string]: Json } {
  return {
    normalizer: rule.normalizer ?? null,
    pre_tokenizer: rule.split,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: rule.wholeWords === true,
      vocab: Object.fromEntries(tokens.map(([id, name]) => [name, id])),
      merges,
    },
  };
}

/** The content of both files. Throws ModelError for a vocabulary or a rule for splitting that is not known. */
export function tokenizerOf(file: Metadata): TokenizerFiles {
  const refuse = (cause: string): never => {
    throw new ModelError({ place: file.path, cause, mend: "give the model as a Hugging Face folder, whose tokenizer.json says the rule" });
  };
  const model = file.text("tokenizer.ggml.model", "none");
  if (model !== "gpt2" && model !== "llama")
    refuse(`its vocabulary is of the kind ${model}, and byte-level pairs (gpt2) and SentencePiece pairs (llama) alone are read from GGUF files`);
  const tokens = file.list("tokenizer.ggml.tokens") as readonly string[];
  if (tokens.length === 0) refuse("it has no vocabulary (tokenizer.ggml.tokens)");
  const types = file.list("tokenizer.ggml.token_type") as readonly number[];
  const typed = (id: number): number => types[id] ?? 1;
  const all = [...tokens.entries()];
  const special: readonly number[] = [unknown, control, own];
  const added = all.filter(([id]) => special.includes(typed(id)));
  const named = (name: string): string | null => {
    const key = `tokenizer.ggml.${name}_token_id`;
    return file.has(key) ? (tokens[file.number(key)] ?? null) : null;
  };
  // Padding of the table to a round size ("unused") is no token.
  const used = all.filter(([id]) => typed(id) !== unused);
  const parts = (): { readonly [key: string]: Json } => {
    if (model === "gpt2") {
      const pre = file.text("tokenizer.ggml.pre", "default");
      const rule = rules[pre] ?? refuse(`its rule for splitting texts is ${pre}, and ${Object.keys(rules).join(", ")} are known`);
      return byteLevelParts(rule, used, file.list("tokenizer.ggml.merges") as readonly string[]);
    }
    const scores = file.list("tokenizer.ggml.scores") as readonly number[];
    const pieces = used.map(([id, text]) => ({ id, text, score: scores[id] ?? 0, plain: typed(id) === 1 }));
    return {
      pre_tokenizer: null,
      ...sentencePieceParts(pieces, { unknown: named("unknown"), spaceBefore: file.flag("tokenizer.ggml.add_space_prefix", true) }),
    };
  };
  return {
    tokenizer: {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: added.map(([id, content]) => ({
        id,
        content,
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        special: typed(id) !== own,
      })),
      post_processor: null,
      ...parts(),
    },
    config: {
      tokenizer_class: "PreTrainedTokenizerFast",
      model_max_length: file.number(`${file.text("general.architecture")}.context_length`),
      clean_up_tokenization_spaces: false,
      add_bos_token: file.flag("tokenizer.ggml.add_bos_token", model === "llama"),
      bos_token: named("bos"),
      eos_token: named("eos"),
      pad_token: named("padding"),
      unk_token: named("unknown"),
      ...(file.has("tokenizer.chat_template") ? { chat_template: file.text("tokenizer.chat_template") } : {}),
    },
  };
}
