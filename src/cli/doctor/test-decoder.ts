/** A decoder written out plainly in float64, one token after the other: what the stored numbers of the self-check are held to. */

export type Tensors = { readonly [name: string]: Float64Array };

export interface Shape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly theta: number;
  readonly epsilon: number;
  readonly vocabulary: number;
}

/** y = W x for W [rows][x]. */
function times(w: Float64Array, x: Float64Array): Float64Array {
  const y = new Float64Array(w.length / x.length);
  for (let i = 0; i < y.length; i++) for (let j = 0; j < x.length; j++) y[i] += w[i * x.length + j] * x[j];
  return y;
}

const plus = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => value + b[i]);

function rms(x: Float64Array, w: Float64Array, epsilon: number): Float64Array {
  const scale = 1 / Math.sqrt(x.reduce((sum, value) => sum + value * value, 0) / x.length + epsilon);
  return x.map((value, i) => value * scale * w[i]);
}

/** Turns the halves of each head by position · θ^(−i / half). */
function rotate(x: Float64Array, size: number, position: number, theta: number): Float64Array {
  const half = size / 2;
  return x.map((value, at) => {
    const i = at % size;
    const angle = position * theta ** (-(i % half) / half);
    return i < half ? value * Math.cos(angle) - x[at + half] * Math.sin(angle) : value * Math.cos(angle) + x[at - half] * Math.sin(angle);
  });
}

function softmax(x: Float64Array): Float64Array {
  const max = x.reduce((a, b) => Math.max(a, b));
  const e = x.map((value) => Math.exp(value - max));
  const total = e.reduce((a, b) => a + b);
  return e.map((value) => value / total);
}

/** The distribution over the next token after each of `ids`, at a temperature. */
export function distributions(t: Tensors, shape: Shape, ids: readonly number[], temperature: number): Float64Array[] {
  const { width, heads, kvHeads, theta, epsilon } = shape;
  const size = width / heads;
  const keys: Float64Array[][] = Array.from({ length: shape.layers }, () => []);
  const values: Float64Array[][] = Array.from({ length: shape.layers }, () => []);
  const embedding = t["model.embed_tokens.weight"];
  return ids.map((id, position) => {
    let x: Float64Array = embedding.slice(id * width, (id + 1) * width);
    for (let layer = 0; layer < shape.layers; layer++) {
      const w = (name: string): Float64Array => t[`model.layers.${layer}.${name}.weight`];
      const h = rms(x, w("input_layernorm"), epsilon);
      const q = rotate(times(w("self_attn.q_proj"), h), size, position, theta);
      keys[layer].push(rotate(times(w("self_attn.k_proj"), h), size, position, theta));
      values[layer].push(times(w("self_attn.v_proj"), h));
      const mixed = new Float64Array(width);
      for (let head = 0; head < heads; head++) {
        const shared = Math.floor(head / (heads / kvHeads)) * size;
        const score = keys[layer].map((k) => k.slice(shared, shared + size).reduce((sum, value, i) => sum + value * q[head * size + i], 0) / Math.sqrt(size));
        softmax(Float64Array.from(score)).forEach((p, j) => {
          for (let i = 0; i < size; i++) mixed[head * size + i] += p * values[layer][j][shared + i];
        });
      }
      x = plus(x, times(w("self_attn.o_proj"), mixed));
      const m = rms(x, w("post_attention_layernorm"), epsilon);
      const up = times(w("mlp.up_proj"), m);
      const gated = times(w("mlp.gate_proj"), m).map((g, i) => (g / (1 + Math.exp(-g))) * up[i]);
      x = plus(x, times(w("mlp.down_proj"), gated));
    }
    return softmax(times(embedding, rms(x, t["model.norm.weight"], epsilon)).map((logit) => logit / temperature));
  });
}
