/** The models and the arithmetic that all benches share; the peers' scripts use the same (bench/peers/common.py). */
import type { Json } from "../../src/core/json.js";

interface Shape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly mlp: number;
  readonly vocabulary: number;
  /** Of Qwen3, whose heads together may be wider than the model; absent: a Llama, whose heads share its width. */
  readonly headDim?: number;
}

const known = {
  "1.7B": { layers: 28, width: 2048, heads: 16, kvHeads: 8, headDim: 128, mlp: 6144, vocabulary: 151_936 },
  "0.6B": { layers: 28, width: 1024, heads: 16, kvHeads: 8, headDim: 128, mlp: 3072, vocabulary: 151_936 },
  "135M": { layers: 30, width: 576, heads: 9, kvHeads: 3, mlp: 1536, vocabulary: 49_152 },
  "1M": { layers: 4, width: 128, heads: 4, kvHeads: 4, mlp: 512, vocabulary: 64 },
  "100k": { layers: 2, width: 64, heads: 4, kvHeads: 4, mlp: 192, vocabulary: 64 },
} as const;
export type ShapeName = keyof typeof known;
export const shapes: { readonly [name in ShapeName]: Shape } = known;

export function configOf(name: ShapeName): { readonly [key: string]: Json } {
  const s = shapes[name];
  return {
    architectures: [s.headDim === undefined ? "LlamaForCausalLM" : "Qwen3ForCausalLM"],
    model_type: s.headDim === undefined ? "llama" : "qwen3",
    ...(s.headDim !== undefined && { head_dim: s.headDim }),
    hidden_size: s.width,
    num_hidden_layers: s.layers,
    num_attention_heads: s.heads,
    num_key_value_heads: s.kvHeads,
    intermediate_size: s.mlp,
    vocab_size: s.vocabulary,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    tie_word_embeddings: true,
    hidden_act: "silu",
  };
}

/** Floating-point operations of forward and backward: 6 a product parameter (head included) and token, 12 · layers · batch · T² · width for attention. Recomputation does not count. */
export function modelFlops(name: ShapeName, batch: number, tokens: number): number {
  const { layers, width, heads, kvHeads, mlp, vocabulary, headDim = width / heads } = shapes[name];
  const products = layers * (2 * width * heads * headDim + 2 * width * headDim * kvHeads + 3 * width * mlp) + vocabulary * width;
  return 6 * products * batch * tokens + 12 * layers * batch * tokens * tokens * heads * headDim;
}
