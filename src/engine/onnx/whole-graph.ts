/**
 * A whole decoder as one graph with its weights as constants, in the form that programs which run ONNX models expect: token
 * ids, attention mask, positions and the keys and values so far in, logits and all keys and values out.
 */
import type { DecoderConfig } from "./config.js";
import { Graph, type Value } from "./graph.js";
import { headNormed, type LayerInputs, layerShapes, layerWeights, product } from "./layer.js";
import { add, linear, matmul, mul, rmsNorm, rotary, silu } from "./ops.js";
import type { Dim } from "./proto.js";

/** The graph's constants that come from outside: the parameters by the engine's names (`layers.3.q`), `cos` and `sin` [positions, headDim / 2]. */
export interface WholeGraph {
  readonly graph: ReturnType<Graph["pruned"]>;
  readonly constants: readonly string[];
}

/** Below every score, and finite: a row of padding that sees nothing stays a number. */
const hidden = -3.4e38;

/** Batch B, new tokens T, all tokens S = P + T, with P cached ones. */
export function wholeGraph(c: DecoderConfig): WholeGraph {
  const g = new Graph();
  const { heads: H, kvHeads: K, headDim: D } = c;
  const constants: string[] = [];
  const constant = (name: string, dims: readonly number[]): Value => {
    constants.push(name);
    return g.input(name, "float32", dims);
  };
  const ids = g.input("input_ids", "int64", ["B", "T"]);
  const attended = g.input("attention_mask", "int64", ["B", "S"]);
  const positions = g.input("position_ids", "int64", ["B", "T"]);
  const embed = constant("embed", [c.vocabulary, c.width]);
  const cos = constant("cos", [c.maxPositions, D / 2]);
  const sin = constant("sin", [c.maxPositions, D / 2]);

  const reshaped = (t: Value, ...dims: readonly Value[]): Value => g.apply("Reshape", [t, dims.length === 1 ? (dims[0] as Value) : joined(dims)]);
  const joined = (dims: readonly Value[]): Value => g.apply("Concat", dims, { axis: 0 });
  const batchAndNew = g.apply("Shape", [ids]);
  const [batch, fresh] = [g.apply("Shape", [ids], { end: 1 }), g.apply("Shape", [ids], { start: 1 })];
  const all = g.apply("Shape", [attended], { start: 1 });
  /** Rows [B·T, n·D] as [B, n, T, D]. */
  const apart = (rows: Value, n: number): Value => g.apply("Transpose", [reshaped(rows, batchAndNew, g.ints([n, D]))], { perm: [0, 2, 1, 3] });
  const mask = maskOf(g, attended, all, fresh, reshaped);

  const present: Dim[] = ["B", K, "S", D];
  let x = g.apply("Gather", [embed, reshaped(ids, g.ints([-1]))]);
  for (let i = 0; i < c.layers; i++) {
    const shapes = layerShapes(c);
    const w: LayerInputs = Object.fromEntries(layerWeights(c).map((name) => [name, constant(`layers.${i}.${name}`, shapes[name])]));
    const past = (name: string): Value => g.input(`past_key_values.${i}.${name}`, "float32", ["B", K, "P", D]);
    /** With the norm over each head, where the model has one. */
    const heads = (raw: Value, n: number, name: "q" | "k"): Value =>
      c.qkNorm ? apart(reshaped(headNormed(g, c, reshaped(raw, g.ints([-1, D])), w, name), g.ints([-1, n * D])), n) : apart(raw, n);
    const normed = rmsNorm(g, x, w.norm1 as Value, c.rmsEpsilon);
    const q = rotary(g, heads(product(g, normed, w, "q"), H, "q"), positions, cos, sin);
    const k = g.apply("Concat", [past("key"), rotary(g, heads(product(g, normed, w, "k"), K, "k"), positions, cos, sin)], { axis: 2 });
    const v = g.apply("Concat", [past("value"), apart(product(g, normed, w, "v"), K)], { axis: 2 });
    g.output(`present.${i}.key`, k, "float32", present);
    g.output(`present.${i}.value`, v, "float32", present);
    // The query heads that share a key head are stacked as rows of one product.
    const scores = matmul(g, reshaped(q, g.ints([0, K, -1, D])), k, { transB: 1, alpha: 1 / Math.sqrt(D) });
    const attention = g.apply("Softmax", [add(g, reshaped(scores, batch, g.ints([H]), fresh, all), mask)], { axis: -1 });
    const mixed = g.apply("MatMul", [reshaped(attention, batch, g.ints([K, -1]), all), v]);
    const rows = reshaped(g.apply("Transpose", [reshaped(mixed, g.ints([0, H, -1, D]))], { perm: [0, 2, 1, 3] }), g.ints([-1, H * D]));
    const x1 = add(g, x, product(g, rows, w, "o"));
    const normed2 = rmsNorm(g, x1, w.norm2 as Value, c.rmsEpsilon);
    x = add(g, x1, product(g, mul(g, silu(g, product(g, normed2, w, "gate")), product(g, normed2, w, "up")), w, "down"));
  }
  const head = c.tied ? embed : constant("head", [c.vocabulary, c.width]);
  const logits = linear(g, rmsNorm(g, x, constant("norm", [c.width]), c.rmsEpsilon), head);
  g.output("logits", reshaped(logits, batchAndNew, g.ints([c.vocabulary])), "float32", ["B", "T", c.vocabulary]);
  return { graph: g.pruned(), constants };
}

/** 0 where a token may look and `hidden` elsewhere, [B, 1, T, S]: at places up to its own that the attention mask has. */
function maskOf(g: Graph, attended: Value, all: Value, fresh: Value, reshaped: (t: Value, ...dims: readonly Value[]) => Value): Value {
  const [end, count] = [all, fresh].map((size) => g.apply("Squeeze", [size])) as [Value, Value];
  const places = g.apply("Range", [g.int(0), end, g.int(1)]);
  const own = reshaped(g.apply("Range", [g.apply("Sub", [end, count]), end, g.int(1)]), g.ints([-1, 1]));
  const seen = g.apply("Unsqueeze", [g.apply("Cast", [attended], { to: 9 }), g.ints([1, 2])]);
  return g.apply("Where", [g.apply("And", [g.apply("LessOrEqual", [places, own]), seen]), g.float(0), g.float(hidden)]);
}
