/** GGUF's names for the tensors of a decoder, and its order of rows, turned into those of Hugging Face folders. */
import { ModelError } from "../../core/errors.js";
import type { GgufFile } from "./file.js";

const inLayer: { readonly [name: string]: string } = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};
const outside: { readonly [name: string]: string } = {
  "token_embd.weight": "model.embed_tokens.weight",
  "output_norm.weight": "model.norm.weight",
  "output.weight": "lm_head.weight",
};

/** Frequencies of the rotary embedding, which the configuration says in its own way. */
export const rotaryTensor = "rope_freqs.weight";

/** The tensors of the file by their Hugging Face names. Throws ModelError for one that has no place in these families. */
export function hubNames(file: GgufFile): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const name of file.tensors.keys()) {
    if (name === rotaryTensor) continue;
    const [, layer, part, kind] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? [];
    const hub = layer === undefined ? outside[name] : inLayer[part as string] && `model.layers.${layer}.${inLayer[part as string]}.${kind}`;
    if (hub === undefined) {
      throw new ModelError({
        place: file.path,
        cause: `tensor ${name} has no place in a model of these families`,
        mend: "use a Llama, SmolLM, Qwen2 or Qwen3 model",
      });
    }
    names.set(hub, name);
  }
  return names;
}

const partsInLayer: { readonly [hub: string]: string } = Object.fromEntries(Object.entries(inLayer).map(([name, hub]) => [hub, name]));
const namesOutside: { readonly [hub: string]: string } = Object.fromEntries(Object.entries(outside).map(([name, hub]) => [hub, name]));

/** GGUF's name for a tensor of a Hugging Face folder of these families. */
export function ggufName(hub: string): string {
  const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(hub) ?? [];
  return layer === undefined ? (namesOutside[hub] as string) : `blk.${layer}.${partsInLayer[part as string]}.${kind}`;
}

/** The other way of `headsInHalves`. */
export function headsInterleaved(values: Float32Array, heads: number, columns: number): Float32Array {
  const size = values.length / columns / heads;
  const out = new Float32Array(values.length);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < size; row++) {
      const from = (head * size + (row >> 1) + (row % 2) * (size / 2)) * columns;
      out.set(values.subarray(from, from + columns), (head * size + row) * columns);
    }
  }
  return out;
}

/**
 * Rows of q and k of the llama architecture: within each head of d rows, row 2j + s of the file is row j + s·d/2 here, so
 * that halves of a head turn together. `values` is [rows][columns].
 */
export function headsInHalves(values: Float32Array, heads: number, columns: number): Float32Array {
  const size = values.length / columns / heads;
  const out = new Float32Array(values.length);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < size; row++) {
      const from = (head * size + row) * columns;
      const to = (head * size + (row >> 1) + (row % 2) * (size / 2)) * columns;
      out.set(values.subarray(from, from + columns), to);
    }
  }
  return out;
}
