/**
 * SentencePiece vocabularies of GGUF files (`tokenizer.ggml.model` "llama") as a BPE model with byte fallback. Such a
 * vocabulary has no list of merges but a score for each piece: of all neighbours whose union is a piece, those of the best
 * score are joined first. A list of all pairs in the order of their pieces' scores says the same.
 */
import type { Json } from "../../core/json.js";

/** Stands for a blank. */
const blank = "\u2581";

export interface Piece {
  readonly id: number;
  readonly text: string;
  readonly score: number;
  /** Neighbours may be joined to it: neither a special token nor a byte. */
  readonly plain: boolean;
}

/** The parts of tokenizer.json in which it differs from byte-level pairs. `pieces`: all that texts may be split into, bytes (`<0x0A>`) included. */
export function sentencePieceParts(
  pieces: readonly Piece[],
  { unknown, spaceBefore }: { readonly unknown: string | null; readonly spaceBefore: boolean },
): { readonly normalizer: Json; readonly decoder: Json; readonly model: { readonly [key: string]: Json } } {
  const blanks: Json = { type: "Replace", pattern: { String: " " }, content: blank };
  return {
    normalizer: { type: "Sequence", normalizers: [...(spaceBefore ? [{ type: "Prepend", prepend: blank }] : []), blanks] },
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: blank }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        ...(spaceBefore ? [{ type: "Strip", content: " ", start: 1, stop: 0 }] : []),
      ],
    },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: unknown,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab: Object.fromEntries(pieces.map(({ text, id }) => [text, id])),
      merges: mergesOf(pieces).map(([left, right]) => [left, right]),
    },
  };
}

/** All ways to join two pieces to a third: the best score first, of equal ones the lower id. */
function mergesOf(pieces: readonly Piece[]): (readonly [left: string, right: string])[] {
  const plain = pieces.filter((piece) => piece.plain);
  const known = new Set(plain.map(({ text }) => text));
  return [...plain]
    .sort((a, b) => b.score - a.score || a.id - b.id)
    .flatMap(({ text }) => {
      const characters = [...text];
      return characters.slice(1).flatMap((_, i) => {
        const pair = [characters.slice(0, i + 1).join(""), characters.slice(i + 1).join("")] as const;
        return known.has(pair[0]) && known.has(pair[1]) ? [pair] : [];
      });
    });
}
