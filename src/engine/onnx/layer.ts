/**
 * One decoder layer as a graph, the same for all layers: forward, and backward which either computes the layer again
 * from its input or takes kept activations. Rows are tokens of packed sequences: N = B·T.
 */
import type { DecoderConfig } from "./config.js";
import { Graph, type Value } from "./graph.js";
import { add, linear, matmul, mul, reshape, rmsNorm, rotary, silu, transpose } from "./ops.js";
import type { Dim } from "./proto.js";

/** Names of a layer's weights in the graphs, which are also the last parts of their parameters' names. */
export const layerWeights = ["norm1", "q", "k", "v", "o", "norm2", "gate", "up", "down"] as const;
export type LayerWeight = (typeof layerWeights)[number];

export function layerShapes(c: DecoderConfig): { readonly [name in LayerWeight]: readonly number[] } {
  const q = c.heads * c.headDim;
  const kv = c.kvHeads * c.headDim;
  return {
    norm1: [c.width],
    q: [q, c.width],
    k: [kv, c.width],
    v: [kv, c.width],
    o: [c.width, q],
    norm2: [c.width],
    gate: [c.mlp, c.width],
    up: [c.mlp, c.width],
    down: [c.width, c.mlp],
  };
}

/** What a forward pass may keep for the backward pass: everything that costs a matrix product to compute again, but the scores. */
export function keptShapes(c: DecoderConfig): { readonly [name: string]: readonly Dim[] } {
  return {
    q: ["B", c.heads, "T", c.headDim],
    k: ["B", c.kvHeads, "T", c.headDim],
    v: ["B", c.kvHeads, "T", c.headDim],
    mixed: ["N", c.heads * c.headDim],
    x1: ["N", c.width],
    gate: ["N", c.mlp],
    up: ["N", c.mlp],
  };
}

interface LayerValues {
  readonly x: Value;
  readonly y: Value;
  readonly weights: { readonly [name in LayerWeight]: Value };
  readonly kept: { readonly [name: string]: Value };
}

function layer(g: Graph, c: DecoderConfig): LayerValues {
  const { heads: H, kvHeads: K, headDim: D } = c;
  const x = g.input("x", "float32", ["N", c.width]);
  const shapes = layerShapes(c);
  const weights = Object.fromEntries(layerWeights.map((name) => [name, g.input(name, "float32", shapes[name])])) as { [name in LayerWeight]: Value };
  const positions = g.input("positions", "int64", ["B", "T"]);
  const mask = g.input("mask", "float32", ["MB", 1, "T", "T"]);
  const cos = g.input("cos", "float32", ["P", D / 2]);
  const sin = g.input("sin", "float32", ["P", D / 2]);
  const rows = g.apply("Shape", [positions]);
  const columns = g.apply("Shape", [positions], { start: 1 });
  const byHead = (n: number) => g.apply("Concat", [rows, g.ints([n, D])], { axis: 0 });
  const flat = (n: number) => g.ints([-1, n * D]);
  const split = (t: Value, n: number) => transpose(g, reshape(g, t, byHead(n), flat(n)), [0, 2, 1, 3]);

  const normed = rmsNorm(g, x, weights.norm1, c.rmsEpsilon);
  const q = rotary(g, split(linear(g, normed, weights.q), H), positions, cos, sin);
  const k = rotary(g, split(linear(g, normed, weights.k), K), positions, cos, sin);
  const v = split(linear(g, normed, weights.v), K);
  // The query heads that share a key head are stacked as rows of one product.
  const grouped = g.ints([0, K, -1, D]);
  const apart = g.ints([0, H, -1, D]);
  const scoresApart = g.apply("Concat", [g.apply("Shape", [positions], { end: 1 }), g.ints([H]), columns, columns], { axis: 0 });
  const scoresGrouped = g.apply("Concat", [g.apply("Shape", [positions], { end: 1 }), g.ints([K, -1]), columns], { axis: 0 });
  const scores = matmul(g, reshape(g, q, grouped, apart), k, { transB: 1, alpha: 1 / Math.sqrt(D) });
  const attention = g.apply("Softmax", [add(g, reshape(g, scores, scoresApart, scoresGrouped), mask)], { axis: -1 });
  const mixedHeads = reshape(g, matmul(g, reshape(g, attention, scoresGrouped, scoresApart), v), apart, grouped);
  const mixed = reshape(g, transpose(g, mixedHeads, [0, 2, 1, 3]), flat(H), byHead(H));
  const x1 = add(g, x, linear(g, mixed, weights.o));

  const normed2 = rmsNorm(g, x1, weights.norm2, c.rmsEpsilon);
  const gate = linear(g, normed2, weights.gate);
  const up = linear(g, normed2, weights.up);
  const y = add(g, x1, linear(g, mul(g, silu(g, gate), up), weights.down));
  return { x, y, weights, kept: { q, k, v, mixed, x1, gate, up } };
}

/** Forward: x → y, and on request what the backward pass would compute again, or only the keys and values (for a cache). */
export function layerForward(c: DecoderConfig, keep: "nothing" | "activations" | "cache"): Uint8Array {
  const g = new Graph();
  const { y, kept } = layer(g, c);
  g.output("y", y, "float32", ["N", c.width]);
  const names = keep === "nothing" ? [] : keep === "cache" ? ["k", "v"] : Object.keys(kept);
  for (const name of names) g.output(`kept_${name}`, kept[name] as Value, "float32", keptShapes(c)[name] as readonly Dim[]);
  return g.build();
}

/** Backward: x (and kept activations, if any) and dy → dx and the gradient of each weight as `d_name`. */
export function layerBackward(c: DecoderConfig, kept: boolean, wantWeights: boolean): Uint8Array {
  const g = new Graph();
  const values = layer(g, c);
  if (kept) for (const [name, dims] of Object.entries(keptShapes(c))) g.supply(values.kept[name] as Value, `kept_${name}`, dims);
  const dy = g.input("dy", "float32", ["N", c.width]);
  const targets = [values.x, ...(wantWeights ? layerWeights.map((name) => values.weights[name]) : [])];
  const gradients = g.gradient([[values.y, dy]], targets);
  g.output("dx", gradients.get(values.x) as Value, "float32", ["N", c.width]);
  const shapes = layerShapes(c);
  if (wantWeights) for (const name of layerWeights) g.output(`d_${name}`, gradients.get(values.weights[name]) as Value, "float32", shapes[name]);
  return g.build();
}
