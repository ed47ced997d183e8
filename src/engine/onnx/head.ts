/**
 * The end of the model on a chunk of rows: final norm, head, and what losses read of the distribution. The log-sum-exp
 * is taken over float32 exponentials in blocks whose sums are added in double, since a float32 sum over tens of
 * thousands of tokens is biased. The vocabulary is padded to whole blocks with logits of −1e9, whose probability is 0.
 */
import type { DecoderConfig } from "./config.js";
import { Graph, type Value } from "./graph.js";
import { add, linear, mul, rmsNorm, sub, sumRows } from "./ops.js";

/** Tokens of a block: 256, or for a smaller vocabulary one block of whole vectors. */
export const blockSize = (vocabulary: number): number => Math.min(256, Math.ceil(vocabulary / 16) * 16);
export const padded = (vocabulary: number): number => Math.ceil(vocabulary / blockSize(vocabulary)) * blockSize(vocabulary);
/** The shape that shows rows of [R, padded vocabulary] by blocks. */
export const blocksOf = (vocabulary: number): readonly number[] => [-1, padded(vocabulary) / blockSize(vocabulary), blockSize(vocabulary)];

/** Which outputs a head graph has; each combination is one session. */
export interface HeadWants {
  readonly entropy?: boolean;
  readonly tail?: boolean;
  readonly values?: boolean;
  readonly topK?: number;
  readonly full?: boolean;
  readonly hidden?: boolean;
}

interface HeadValues {
  readonly h: Value;
  readonly normed: Value;
  /** Tempered logits minus their maximum, [R, padded vocabulary]. */
  readonly z: Value;
  readonly e: Value;
  /** Σ e in double, [R, 1]. */
  readonly total: Value;
}

/** Sums rows of [R, padded vocabulary] by blocks in float32, and the blocks in double. */
function sumWide(g: Graph, c: DecoderConfig, x: Value): Value {
  const blocks = g.apply("ReduceSum", [g.apply("Reshape", [x, g.ints(blocksOf(c.vocabulary))]), g.ints([2])], { keepdims: 0 });
  return g.apply("ReduceSum", [g.apply("Cast", [blocks], { to: 11 }), g.ints([1])], { keepdims: 1 });
}

/** Logits of rows of the last layer's output, padded to whole blocks. */
export function paddedLogits(g: Graph, c: DecoderConfig, normed: Value, table: Value): Value {
  const logits = linear(g, normed, table);
  const extra = padded(c.vocabulary) - c.vocabulary;
  return extra === 0 ? logits : g.apply("Pad", [logits, g.ints([0, 0, 0, extra]), g.float(-1e9)]);
}

function head(g: Graph, c: DecoderConfig): HeadValues {
  const h = g.input("x", "float32", ["R", c.width]);
  const normed = rmsNorm(g, h, g.input("norm", "float32", [c.width]), c.rmsEpsilon);
  const table = g.input("table", "float32", [c.vocabulary, c.width]);
  const tempered = mul(g, paddedLogits(g, c, normed, table), g.input("inverseT", "float32", ["R", 1]));
  const z = sub(g, tempered, g.apply("ReduceMax", [tempered, g.ints([1])], { keepdims: 1 }));
  const e = g.apply("Exp", [z]);
  return { h, normed, z, e, total: sumWide(g, c, e) };
}

/** Σ e · z in double: the entropy is log(total) − this / total. */
const energy = (g: Graph, c: DecoderConfig, { e, z }: HeadValues): Value => sumWide(g, c, mul(g, e, z));

/** e with the listed tokens set to 0. */
const others = (g: Graph, e: Value, ids: Value): Value =>
  g.apply("ScatterElements", [e, ids, mul(g, g.apply("GatherElements", [e, ids], { axis: 1 }), g.float(0))], { axis: 1 });

/**
 * Outputs: `chosen` [R, k] (z of the listed ids; subtract log `total` for log-probs), `total` [R, 1]; on request `energy`,
 * `tail` (Σ e outside of ids 1…k−1; id 0 is the response token itself), `value`, `topZ` and `topIds` [R, K] with `topTail`, `z`, `normed`.
 */
export function headForward(c: DecoderConfig, wants: HeadWants): Uint8Array {
  const g = new Graph();
  const values = head(g, c);
  const ids = g.input("ids", "int64", ["R", "K"]);
  g.output("chosen", g.apply("GatherElements", [values.z, ids], { axis: 1 }), "float32", ["R", "K"]);
  g.output("total", values.total, "float64", ["R", 1]);
  if (wants.entropy) g.output("energy", energy(g, c, values), "float64", ["R", 1]);
  if (wants.tail) g.output("tail", sumWide(g, c, others(g, values.e, g.input("targets", "int64", ["R", "S"]))), "float64", ["R", 1]);
  if (wants.values) g.output("value", valueHead(g, c, values.normed), "float32", ["R", 1]);
  if (wants.topK) {
    const [top, topIds] = g.applyMany("TopK", [values.z, g.ints([wants.topK])], 2, { axis: 1 }) as [Value, Value];
    g.output("topZ", top, "float32", ["R", wants.topK]);
    g.output("topIds", topIds, "int64", ["R", wants.topK]);
    g.output("topTail", sumWide(g, c, others(g, values.e, topIds)), "float64", ["R", 1]);
  }
  if (wants.full) g.output("z", values.z, "float32", ["R", padded(c.vocabulary)]);
  if (wants.hidden) g.output("normed", values.normed, "float32", ["R", c.width]);
  return g.build();
}

function valueHead(g: Graph, c: DecoderConfig, normed: Value): Value {
  return add(g, linear(g, normed, g.input("valueWeight", "float32", [1, c.width])), g.input("valueBias", "float32", [1]));
}

/** Which of the head's weights get a gradient: under an adapter the value head alone. */
export type HeadLearns = "all" | "values" | "nothing";

/**
 * Gradient of Σ over rows of d · (log-probs of `ids`) + dTail · log(tail) + dEntropy · entropy + dValue · value.
 * With q = softmax: dz = scatter(d) − q · (Σ d + dTail) + dTail · q[outside] / tail − dEntropy · q · (log q + entropy).
 * `accumulate` adds to the table's gradient inside the product instead of outside.
 */
export function headBackward(c: DecoderConfig, wants: HeadWants, accumulate: boolean, learns: HeadLearns = "all"): Uint8Array {
  const g = new Graph();
  const values = head(g, c);
  const { e, z, normed, h } = values;
  const row = (name: string): Value => g.input(name, "float32", ["R", 1]);
  const ids = g.input("ids", "int64", ["R", "K"]);
  const inverseT = "inverseT" as Value;
  // The temperature's factor is put on the small tensors, not on [R, vocabulary].
  const d = mul(g, g.input("d", "float32", ["R", "K"]), inverseT);
  const sum = g.apply("ReduceSum", [d, g.ints([1])], { keepdims: 1 });
  const total = g.apply("Cast", [values.total], { to: 1 });
  const dTail = wants.tail ? mul(g, row("dTail"), inverseT) : undefined;
  const mass = dTail ? add(g, sum, dTail) : sum;
  let dz = mul(g, e, g.apply("Neg", [g.apply("Div", [mass, total])]));
  if (dTail) {
    const outside = others(g, e, g.input("targets", "int64", ["R", "S"]));
    // A tail of exactly 0 has no derivative; its rows are all zero above the line too.
    const tail = g.apply("Max", [g.apply("Cast", [sumWide(g, c, outside)], { to: 1 }), g.float(1e-37)]);
    // Kept finite: 0 times infinity would not be 0.
    const share = g.apply("Max", [g.apply("Min", [g.apply("Div", [dTail, tail]), g.float(3e38)]), g.float(-3e38)]);
    dz = add(g, dz, mul(g, outside, share));
  }
  if (wants.entropy) {
    const scale = g.apply("Div", [mul(g, row("dEntropy"), inverseT), total]);
    // log q + entropy = z − Σ q · z
    const centred = sub(g, z, g.apply("Cast", [g.apply("Div", [energy(g, c, values), values.total])], { to: 1 }));
    dz = sub(g, dz, mul(g, mul(g, e, centred), scale));
  }
  dz = g.apply("ScatterElements", [dz, ids, d], { axis: 1, reduction: "add" });
  const extra = padded(c.vocabulary) - c.vocabulary;
  const dLogits = extra === 0 ? dz : g.apply("Slice", [dz, g.ints([0]), g.ints([c.vocabulary]), g.ints([1])]);
  let dNormed = g.apply("MatMul", [dLogits, "table" as Value]);
  if (wants.values) {
    const dValue = row("dValue");
    dNormed = add(g, dNormed, g.apply("MatMul", [dValue, g.input("valueWeight", "float32", [1, c.width])]));
    if (learns !== "nothing") {
      g.output("d_valueWeight", g.apply("Gemm", [dValue, normed], { transA: 1 }), "float32", [1, c.width]);
      g.output("d_valueBias", sumRows(g, dValue), "float32", [1]);
    }
  }
  const gradients = g.gradient([[normed, dNormed]], [h, "norm" as Value]);
  g.output("dx", gradients.get(h) as Value, "float32", ["R", c.width]);
  if (learns === "all") {
    const table = accumulate ? [dLogits, normed, g.input("soFar", "float32", [c.vocabulary, c.width])] : [dLogits, normed];
    g.output("d_table", g.apply("Gemm", table as Value[], { transA: 1 }), "float32", [c.vocabulary, c.width]);
    g.output("d_norm", gradients.get("norm" as Value) as Value, "float32", [c.width]);
  }
  return g.build();
}
