/**
 * One decoding step of all layers as one graph. The cache is an *input* owned by the caller (an output would be copied
 * whole at each token); the graph returns only this token's keys and values, which the caller writes into the cache.
 * Keys and values of a row lie at their own positions from 0 on; `mask` hides what lies beyond. The token's own score comes
 * first: were it last, the order in which the softmax sums would depend on the cache's capacity, and with it the bits.
 */
import type { DecoderConfig } from "./config.js";
import { Graph, type Value } from "./graph.js";
import { type Adapted, headNormed, layerInputs, product, scaleInput } from "./layer.js";
import { add, matmul, mul, rmsNorm, rotary, silu } from "./ops.js";

/** The name under which layer i's weight is fed. */
export const fed = (layer: number, name: string): string => `${name}_${layer}`;

/**
 * Inputs: `x` [R, width] embeddings, `positions` [R, 1], `mask` [R, 1, 1, 1 + S] (the token itself, then S cached places), `splits` [1, S],
 * `cos`, `sin`, each layer's weights (and the adapters' on the products `adapted`, with their `scale`), `pastK_i` and `pastV_i` [R, K, S, D]. Outputs: `y` [R, width], `newK_i`, `newV_i` [R, K, 1, D].
 */
export function decodeGraph(c: DecoderConfig, adapted?: Adapted): Uint8Array {
  const g = new Graph();
  const { heads: H, kvHeads: K, headDim: D } = c;
  let x = g.input("x", "float32", ["R", c.width]);
  const positions = g.input("positions", "int64", ["R", 1]);
  const mask = g.input("mask", "float32", ["R", 1, 1, "S1"]);
  const splits = g.input("splits", "int64", [2]);
  const cos = g.input("cos", "float32", ["P", D / 2]);
  const sin = g.input("sin", "float32", ["P", D / 2]);
  const scale = scaleInput(g, adapted);
  const reshaped = (t: Value, dims: readonly number[]) => g.apply("Reshape", [t, g.ints(dims)]);
  for (let i = 0; i < c.layers; i++) {
    const w = layerInputs(g, c, adapted, scale, (name) => fed(i, name));
    const heads = (normed: Value, n: number, name: "q" | "k"): Value => headNormed(g, c, reshaped(product(g, normed, w, name), [-1, n, 1, D]), w, name);
    const pastK = g.input(`pastK_${i}`, "float32", ["R", K, "S", D]);
    const pastV = g.input(`pastV_${i}`, "float32", ["R", K, "S", D]);
    const normed = rmsNorm(g, x, w.norm1 as Value, c.rmsEpsilon);
    const q = reshaped(rotary(g, heads(normed, H, "q"), positions, cos, sin), [-1, K, H / K, D]);
    const k = rotary(g, heads(normed, K, "k"), positions, cos, sin);
    const v = reshaped(product(g, normed, w, "v"), [-1, K, 1, D]);
    g.output(`newK_${i}`, k, "float32", ["R", K, 1, D]);
    g.output(`newV_${i}`, v, "float32", ["R", K, 1, D]);
    const alpha = 1 / Math.sqrt(D);
    const scores = g.apply("Concat", [matmul(g, q, k, { transB: 1, alpha }), matmul(g, q, pastK, { transB: 1, alpha })], { axis: -1 });
    const [own, past] = g.applyMany("Split", [g.apply("Softmax", [add(g, scores, mask)], { axis: -1 }), splits], 2, { axis: -1 }) as [Value, Value];
    const mixed = reshaped(add(g, g.apply("MatMul", [past, pastV]), mul(g, own, v)), [-1, H * D]);
    const x1 = add(g, x, product(g, mixed, w, "o"));
    const normed2 = rmsNorm(g, x1, w.norm2 as Value, c.rmsEpsilon);
    const inner = mul(g, silu(g, product(g, normed2, w, "gate")), product(g, normed2, w, "up"));
    x = add(g, x1, product(g, inner, w, "down"));
  }
  g.output("y", x, "float32", ["R", c.width]);
  return g.build();
}
