/** An alphabet as the files that other programs read a tokenizer from. */
import type { Json } from "../core/json.js";
import type { Tokenizer } from "../core/tokenizer.js";

/** As the alphabet renders a conversation: each role's token and its text, an assistant's with the end token. */
const template =
  "{%- for message in messages %}{{- '<' + message['role'] + '>' + message['content'] }}{%- if message['role'] == 'assistant' %}{{- '<eos>' }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<assistant>' }}{%- endif %}";

/**
 * The content of tokenizer.json and tokenizer_config.json. Symbols are added tokens, which are looked for before anything
 * else, the longest first; there is nothing else, so a character that is no symbol vanishes where the alphabet refuses it.
 */
export function alphabetFiles(alphabet: Tokenizer): { readonly file: { readonly [key: string]: Json }; readonly config: { readonly [key: string]: Json } } {
  const names = Array.from({ length: alphabet.size }, (_, id) => alphabet.decode([id], "show"));
  const special = names.map((_, id) => alphabet.decode([id]) === "");
  const eos = names[alphabet.eosIds[0] as number] as string;
  const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  return {
    file: {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: names.map((content, id) => ({ id, content, ...plain, special: special[id] as boolean })),
      normalizer: null,
      pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
      post_processor: null,
      decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
      model: {
        type: "BPE",
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: false,
        vocab: Object.fromEntries(names.map((name, id) => [name, id])),
        merges: [],
      },
    },
    config: {
      tokenizer_class: "PreTrainedTokenizerFast",
      clean_up_tokenization_spaces: false,
      add_bos_token: false,
      bos_token: null,
      eos_token: eos,
      pad_token: null,
      unk_token: null,
      chat_template: template,
    },
  };
}
