/**
 * One decoder layer as a graph, the same for all layers: forward, and backward which either computes the layer again
 * from its input or takes kept activations. Rows are tokens of packed sequences: N = B·T.
 */
import type { DecoderConfig } from "./config.js";
import { Graph, type Value } from "./graph.js";
import { add, biased, linear, matmul, mul, reshape, rmsNorm, rotary, silu, transpose } from "./ops.js";
import type { Dim } from "./proto.js";

/** Names of a layer's weights in the graphs, which are also the last parts of their parameters' names. */
const common = ["norm1", "q", "k", "v", "o", "norm2", "gate", "up", "down"] as const;
const biases = ["qBias", "kBias", "vBias"] as const;
const headNorms = ["qNorm", "kNorm"] as const;
/** The products of a layer, any of which may have an adapter. */
export const linearNames = ["q", "k", "v", "o", "gate", "up", "down"] as const;
export type LinearName = (typeof linearNames)[number];
export type LayerWeight = (typeof common)[number] | (typeof biases)[number] | (typeof headNorms)[number];

/** The weights that a layer of this shape has. */
export const layerWeights = (c: DecoderConfig): readonly LayerWeight[] => [...common, ...(c.attentionBias ? biases : []), ...(c.qkNorm ? headNorms : [])];

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
    qBias: [q],
    kBias: [kv],
    vBias: [kv],
    qNorm: [c.headDim],
    kNorm: [c.headDim],
  };
}

/** Where adapters lie in a layer, as graphs need to know it. */
export interface Adapted {
  readonly targets: readonly LinearName[];
  readonly rank: number;
  /** Several threads divide a narrow product by the number of rows, which would change its bits: it is made in blocks that one of them takes. */
  readonly blocked: boolean;
}

/** Columns of a product that are never divided over threads. */
const undivided = 16;

/** A and B of adapters, as inputs of the graphs. */
export type AdapterWeight = `${LinearName}${"A" | "B"}`;
export const adapterWeights = (targets: readonly LinearName[] = []): readonly AdapterWeight[] =>
  targets.flatMap((name): AdapterWeight[] => [`${name}A`, `${name}B`]);

export type LayerInputs = { readonly [name in LayerWeight | AdapterWeight]?: Value } & {
  /** The factor of all adapters, [1]. */
  readonly scale?: Value;
  readonly adapted?: Adapted;
};

/** Declares a layer's weights as inputs, and those of adapters; `named` gives the input's name. */
export function layerInputs(g: Graph, c: DecoderConfig, adapted: Adapted | undefined, scale: Value | undefined, named = (name: string) => name): LayerInputs {
  const shapes = layerShapes(c);
  const base = layerWeights(c).map((name) => [name, g.input(named(name), "float32", shapes[name])]);
  const { targets = [], rank = 0 } = adapted ?? {};
  const low = targets.flatMap((name) => {
    const [out, into] = shapes[name] as readonly [number, number];
    return [
      [`${name}A`, g.input(named(`${name}A`), "float32", [rank, into])],
      [`${name}B`, g.input(named(`${name}B`), "float32", [out, rank])],
    ];
  });
  return { ...(Object.fromEntries([...base, ...low]) as LayerInputs), ...(scale && { scale }), ...(adapted && { adapted }) };
}

/** The factor of the adapters as an input, where there are any. */
export const scaleInput = (g: Graph, adapted: Adapted | undefined): Value | undefined => (adapted ? g.input("scale", "float32", [1]) : undefined);

/** x · wᵀ of rows x, with bias and adapter where the layer has them. */
export function product(g: Graph, x: Value, weights: LayerInputs, name: LinearName): Value {
  const weight = weights[name] as Value;
  const bias = name === "q" || name === "k" || name === "v" ? weights[`${name}Bias`] : undefined;
  const y = bias ? biased(g, x, weight, bias) : linear(g, x, weight);
  const [a, b] = [weights[`${name}A`], weights[`${name}B`]];
  if (!a || !b || !weights.scale || !weights.adapted) return y;
  // The factor falls on the few numbers between A and B.
  return add(g, y, linear(g, mul(g, narrow(g, x, a, weights.adapted), weights.scale), b));
}

/** x · Aᵀ, [rows, rank]. */
function narrow(g: Graph, x: Value, a: Value, { rank, blocked }: Adapted): Value {
  if (!blocked || rank <= undivided) return linear(g, x, a);
  const sizes = Array.from({ length: Math.ceil(rank / undivided) }, (_, i) => Math.min(undivided, rank - i * undivided));
  const blocks = g.applyMany("Split", [a, g.ints(sizes)], sizes.length, { axis: 0 });
  return g.apply(
    "Concat",
    blocks.map((block) => linear(g, x, block)),
    { axis: 1 },
  );
}

/** The norm over each head of q or k, [… headDim], where the model has one. */
export const headNormed = (g: Graph, c: DecoderConfig, heads: Value, weights: LayerInputs, name: "q" | "k"): Value =>
  c.qkNorm ? rmsNorm(g, heads, weights[`${name}Norm`] as Value, c.rmsEpsilon) : heads;

/** What a forward pass may keep for the backward pass: everything that costs a matrix product to compute again, but the scores. */
export function keptShapes(c: DecoderConfig): { readonly [name: string]: readonly Dim[] } {
  return {
    // The gradient of norms on heads needs what comes into them, and from that the rest is cheap.
    ...(c.qkNorm
      ? { rawQ: ["N", c.heads * c.headDim], rawK: ["N", c.kvHeads * c.headDim] }
      : { q: ["B", c.heads, "T", c.headDim], k: ["B", c.kvHeads, "T", c.headDim] }),
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
  readonly weights: LayerInputs;
  /** Keys and values as the cache has them, [B, kvHeads, T, headDim]. */
  readonly cache: { readonly k: Value; readonly v: Value };
  readonly kept: { readonly [name: string]: Value };
}

function layer(g: Graph, c: DecoderConfig, adapted: Adapted | undefined): LayerValues {
  const { heads: H, kvHeads: K, headDim: D } = c;
  const x = g.input("x", "float32", ["N", c.width]);
  const weights = layerInputs(g, c, adapted, scaleInput(g, adapted));
  const positions = g.input("positions", "int64", ["B", "T"]);
  const mask = g.input("mask", "float32", ["MB", 1, "T", "T"]);
  const cos = g.input("cos", "float32", ["P", D / 2]);
  const sin = g.input("sin", "float32", ["P", D / 2]);
  const rows = g.apply("Shape", [positions]);
  const columns = g.apply("Shape", [positions], { start: 1 });
  const byHead = (n: number) => g.apply("Concat", [rows, g.ints([n, D])], { axis: 0 });
  const flat = (n: number) => g.ints([-1, n * D]);
  const split = (t: Value, n: number) => transpose(g, reshape(g, t, byHead(n), flat(n)), [0, 2, 1, 3]);

  const normed = rmsNorm(g, x, weights.norm1 as Value, c.rmsEpsilon);
  const rawQ = product(g, normed, weights, "q");
  const rawK = product(g, normed, weights, "k");
  /** Of [N, n · D] to [B, n, T, D], normed on the way where the model norms its heads. */
  const heads = (raw: Value, n: number, name: "q" | "k"): Value => {
    if (!c.qkNorm) return split(raw, n);
    const single = g.ints([-1, D]);
    return transpose(g, reshape(g, headNormed(g, c, reshape(g, raw, single, flat(n)), weights, name), byHead(n), single), [0, 2, 1, 3]);
  };
  const q = rotary(g, heads(rawQ, H, "q"), positions, cos, sin);
  const k = rotary(g, heads(rawK, K, "k"), positions, cos, sin);
  const v = split(product(g, normed, weights, "v"), K);
  // The query heads that share a key head are stacked as rows of one product.
  const grouped = g.ints([0, K, -1, D]);
  const apart = g.ints([0, H, -1, D]);
  const scoresApart = g.apply("Concat", [g.apply("Shape", [positions], { end: 1 }), g.ints([H]), columns, columns], { axis: 0 });
  const scoresGrouped = g.apply("Concat", [g.apply("Shape", [positions], { end: 1 }), g.ints([K, -1]), columns], { axis: 0 });
  const scores = matmul(g, reshape(g, q, grouped, apart), k, { transB: 1, alpha: 1 / Math.sqrt(D) });
  const attention = g.apply("Softmax", [add(g, reshape(g, scores, scoresApart, scoresGrouped), mask)], { axis: -1 });
  const mixedHeads = reshape(g, matmul(g, reshape(g, attention, scoresGrouped, scoresApart), v), apart, grouped);
  const mixed = reshape(g, transpose(g, mixedHeads, [0, 2, 1, 3]), flat(H), byHead(H));
  const x1 = add(g, x, product(g, mixed, weights, "o"));

  const normed2 = rmsNorm(g, x1, weights.norm2 as Value, c.rmsEpsilon);
  const gate = product(g, normed2, weights, "gate");
  const up = product(g, normed2, weights, "up");
  const y = add(g, x1, product(g, mul(g, silu(g, gate), up), weights, "down"));
  return { x, y, weights, cache: { k, v }, kept: { ...(c.qkNorm ? { rawQ, rawK } : { q, k }), v, mixed, x1, gate, up } };
}

/** Forward: x → y, and on request what the backward pass would compute again, or only the keys and values (for a cache). `adapted`: where adapters lie. */
export function layerForward(c: DecoderConfig, keep: "nothing" | "activations" | "cache", adapted?: Adapted): Uint8Array {
  const g = new Graph();
  const { y, cache, kept } = layer(g, c, adapted);
  g.output("y", y, "float32", ["N", c.width]);
  const cached: readonly Dim[] = ["B", c.kvHeads, "T", c.headDim];
  if (keep === "cache") for (const [name, value] of Object.entries(cache)) g.output(`kept_${name}`, value, "float32", cached);
  if (keep === "activations") for (const [name, dims] of Object.entries(keptShapes(c))) g.output(`kept_${name}`, kept[name] as Value, "float32", dims);
  return g.build();
}

/** Backward: x (and kept activations, if any) and dy → dx and, where wanted, the gradient of what learns as `d_name`: the adapters if there are any, else each weight. */
export function layerBackward(c: DecoderConfig, kept: boolean, wantWeights: boolean, adapted?: Adapted): Uint8Array {
  const g = new Graph();
  const values = layer(g, c, adapted && { ...adapted, blocked: false });
  if (kept) for (const [name, dims] of Object.entries(keptShapes(c))) g.supply(values.kept[name] as Value, `kept_${name}`, dims);
  const dy = g.input("dy", "float32", ["N", c.width]);
  const learning: readonly (LayerWeight | AdapterWeight)[] = adapted ? adapterWeights(adapted.targets) : layerWeights(c);
  const names = wantWeights ? learning : [];
  const targets = [values.x, ...names.map((name) => values.weights[name] as Value)];
  const gradients = g.gradient([[values.y, dy]], targets);
  g.output("dx", gradients.get(values.x) as Value, "float32", ["N", c.width]);
  for (const name of names) {
    const value = values.weights[name] as Value;
    g.output(`d_${name}`, gradients.get(value) as Value, "float32", g.inputs.find((input) => input.name === value)?.dims ?? []);
  }
  return g.build();
}
