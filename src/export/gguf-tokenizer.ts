/** The metadata of GGUF files for a tokenizer. */
import { ModelError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { ruleName, tokenKinds } from "../engine/gguf/tokenizer.js";
import type { Metadata } from "../engine/gguf/write.js";
import type { AddedToken } from "../tokenizers/hub.js";
import type { ModelSource } from "./source.js";

type Fields = { readonly [key: string]: Json };

interface Vocabulary {
  readonly kind: "gpt2" | "llama";
  /** How texts are split, or what pieces are joined first. */
  readonly rules: (names: readonly string[]) => Metadata;
  readonly isByte: (name: string) => boolean;
}

/** Throws ModelError for a tokenizer that GGUF files have no word for. */
export function tokenizerMetadata({ folder, file, config, tokenizer, shape }: ModelSource): Metadata {
  const { model, added_tokens: listed } = file as unknown as { readonly model: Fields; readonly added_tokens?: readonly AddedToken[] };
  const added = new Map((listed ?? []).map((token) => [token.id, token]));
  const names = new Map(Object.entries(model.vocab as { readonly [name: string]: number }).map(([name, id]) => [id, name]));
  for (const [id, { content }] of added) names.set(id, content);
  const vocabulary = vocabularyOf(folder, file, model);
  const tokens = Array.from({ length: shape.vocabulary }, (_, id) => names.get(id) ?? `[PAD${id}]`);
  const { plain, control, own, unused, byte } = tokenKinds;
  const kindOf = (id: number): number => {
    const token = added.get(id);
    if (token !== undefined) return token.special === true ? control : own;
    const name = names.get(id);
    return name === undefined ? unused : vocabulary.isByte(name) ? byte : plain;
  };
  // Programs end a text at any of the three.
  const ends = ["eos", "eot", "eom"].flatMap((name, i) => (tokenizer.eosIds[i] === undefined ? [] : [id(name, tokenizer.eosIds[i] as number)]));
  const named = (["bos", "pad", "unk"] as const).flatMap((name) => {
    const found = tokens.indexOf(nameOf(config[`${name}_token`]) ?? "");
    return found < 0 ? [] : [id({ bos: "bos", pad: "padding", unk: "unknown" }[name], found)];
  });
  return [
    ["tokenizer.ggml.model", { text: vocabulary.kind }],
    ...vocabulary.rules(tokens),
    ["tokenizer.ggml.tokens", { texts: tokens }],
    ["tokenizer.ggml.token_type", { ints: tokens.map((_, i) => kindOf(i)) }],
    ...ends,
    ...named,
    ["tokenizer.ggml.add_bos_token", { flag: tokenizer.bosId !== undefined }],
    ...(typeof config.chat_template === "string" ? ([["tokenizer.chat_template", { text: config.chat_template }]] satisfies Metadata) : []),
  ];
}

const id = (name: string, count: number): Metadata[number] => [`tokenizer.ggml.${name}_token_id`, { count }];

function nameOf(token: Json | undefined): string | undefined {
  const content = typeof token === "string" ? token : (token as Fields | null | undefined)?.content;
  return typeof content === "string" ? content : undefined;
}

function vocabularyOf(folder: string, file: Fields, model: Fields): Vocabulary {
  const refuse = (cause: string): never => {
    throw new ModelError({ place: folder, cause, mend: "export to onnx, which takes any tokenizer, or keep the folder" });
  };
  if (model.type !== "BPE") refuse(`its tokenizer is of the kind ${String(model.type)}, which GGUF files of these families have no word for`);
  const merges = (model.merges as readonly (string | readonly string[])[]).map((pair) => (typeof pair === "string" ? pair : pair.join(" ")));
  if (model.byte_fallback === true) return sentencePieces(file, merges);
  const pre = ruleName(file.pre_tokenizer);
  if (pre === undefined) refuse("its tokenizer splits texts by a rule that GGUF files have no name for");
  return {
    kind: "gpt2",
    isByte: () => false,
    rules: () => [
      ["tokenizer.ggml.pre", { text: pre as string }],
      ["tokenizer.ggml.merges", { texts: merges }],
    ],
  };
}

/** Pieces have scores in place of a list of merges: the earlier a piece is joined, the higher. */
function sentencePieces(file: Fields, merges: readonly string[]): Vocabulary {
  const first = new Map<string, number>();
  for (const [rank, pair] of merges.entries()) {
    const piece = pair.replace(" ", "");
    if (!first.has(piece)) first.set(piece, rank);
  }
  const written = JSON.stringify([file.normalizer ?? null, file.pre_tokenizer ?? null]);
  const spaceBefore = /"type":"Prepend"|"prepend_scheme":"(first|always)"|"add_prefix_space":true/.test(written);
  return {
    kind: "llama",
    isByte: (name) => /^<0x[0-9A-F]{2}>$/.test(name),
    rules: (names) => [
      ["tokenizer.ggml.pre", { text: "default" }],
      ["tokenizer.ggml.scores", { floats: names.map((name) => 0 - (first.get(name) ?? merges.length)) }],
      ["tokenizer.ggml.add_space_prefix", { flag: spaceBefore }],
    ],
  };
}
