/**
 * The rule table: for each differentiable operator one line that emits the nodes of its vector-Jacobian product.
 * `d` is the gradient of the output; a rule returns the gradient of each input, undefined where there is none.
 * Elementwise rules assume equal shapes: a broadcast operand (a mask, a scale) must not be differentiated.
 */
import type { Graph, Node, Value } from "./graph.js";

export type GradientRule = (g: Graph, node: Node, incoming: readonly (Value | undefined)[], wants: readonly boolean[]) => (Value | undefined)[];

/** Shorthands that the rules and the layer graphs share. */
export const linear = (g: Graph, x: Value, w: Value): Value => g.apply("Gemm", [x, w], { transB: 1 });
/** x · wᵀ + b of rows x [N, in], w [out, in] and b [out]. */
export const biased = (g: Graph, x: Value, w: Value, b: Value): Value => g.apply("Gemm", [x, w, b], { transB: 1 });
export const add = (g: Graph, a: Value, b: Value): Value => g.apply("Add", [a, b]);
export const mul = (g: Graph, a: Value, b: Value): Value => g.apply("Mul", [a, b]);
export const sub = (g: Graph, a: Value, b: Value): Value => g.apply("Sub", [a, b]);
/** Reshapes; `back` is the shape of x, for the gradient. */
export function reshape(g: Graph, x: Value, to: Value, back: Value): Value {
  const y = g.apply("Reshape", [x, to]);
  g.shapesBefore.set(y, back);
  return y;
}
export const transpose = (g: Graph, x: Value, perm: readonly number[]): Value => g.apply("Transpose", [x], { perm });
export const sumLast = (g: Graph, x: Value): Value => g.apply("ReduceSum", [x, g.ints([-1])], { keepdims: 1 });
export const sumRows = (g: Graph, x: Value): Value => g.apply("ReduceSum", [x, g.ints([0])], { keepdims: 0 });
export const matmul = (g: Graph, a: Value, b: Value, how: { transA?: 1; transB?: 1; alpha?: number } = {}): Value =>
  g.apply("FusedMatMul", [a, b], { transA: how.transA ?? 0, transB: how.transB ?? 0, alpha: { float: how.alpha ?? 1 } });
/** SwiGLU's gate: x · sigmoid(x), one fused operator. */
export const silu = (g: Graph, x: Value): Value => g.apply("QuickGelu", [x], { alpha: { float: 1 } });
/** x / sqrt(mean(x²) + ε) · w over the last axis; the second output, 1 / sqrt(…), is what the gradient needs. */
export const rmsNorm = (g: Graph, x: Value, w: Value, epsilon: number): Value =>
  g.applyMany("SimplifiedLayerNormalization", [x, w], 2, { axis: -1, epsilon: { float: epsilon } })[0] as Value;
/** Rotates halves of the last axis of [B, heads, T, D] by the angles of `positions` [B, T]. */
export const rotary = (g: Graph, x: Value, positions: Value, cos: Value, sin: Value): Value => g.apply("RotaryEmbedding", [x, positions, cos, sin]);

const attr = (node: Node, name: string): number => (node.attributes[name] as number | undefined) ?? 0;
const alphaOf = (node: Node): number => (node.attributes.alpha as { float: number } | undefined)?.float ?? 1;

/** d · (s + y − y · s) with s = sigmoid(x) and y = x · s: derivative of silu. */
function siluGradient(g: Graph, x: Value, y: Value, d: Value): Value {
  const s = g.apply("Sigmoid", [x]);
  return mul(g, d, sub(g, add(g, s, y), mul(g, y, s)));
}

/** With x̂ = x · r and d̂ = d · w: dx = r · (d̂ − x̂ · mean(d̂ · x̂)), dw = Σ_rows d · x̂. */
function rmsNormGradient(g: Graph, [x, w]: readonly Value[], r: Value, d: Value): Value[] {
  const normed = mul(g, x as Value, r);
  const scaled = mul(g, d, w as Value);
  const mean = g.apply("ReduceMean", [mul(g, scaled, normed), g.ints([-1])], { keepdims: 1 });
  return [mul(g, sub(g, scaled, mul(g, normed, mean)), r), sumRows(g, mul(g, d, normed))];
}

/** y = α · op(a) · op(b) over the last two axes. */
function matmulGradient(g: Graph, node: Node, d: Value): Value[] {
  const [a, b] = node.inputs as [Value, Value];
  const alpha = alphaOf(node);
  const [ta, tb] = [attr(node, "transA"), attr(node, "transB")];
  const da = ta
    ? matmul(g, b, d, { ...(tb ? { transA: 1 as const } : {}), transB: 1, alpha })
    : matmul(g, d, b, { ...(tb ? {} : { transB: 1 as const }), alpha });
  const db = tb
    ? matmul(g, d, a, { transA: 1, ...(ta ? { transB: 1 as const } : {}), alpha })
    : matmul(g, a, d, { ...(ta ? {} : { transA: 1 as const }), alpha });
  return [da, db];
}

/** Softmax over the last axis: dx = y · (d − Σ d · y). */
const softmaxGradient = (g: Graph, y: Value, d: Value): Value => mul(g, y, sub(g, d, sumLast(g, mul(g, d, y))));

export const rules: { readonly [op: string]: { readonly gradient: GradientRule } } = {
  Identity: { gradient: (_g, _n, [d]) => [d] },
  Gemm: {
    gradient: (g, n, [d], [wx, ww, wb]) => [
      wx ? g.apply("MatMul", [d as Value, n.inputs[1] as Value]) : undefined,
      ww ? g.apply("Gemm", [d as Value, n.inputs[0] as Value], { transA: 1 }) : undefined,
      wb ? sumRows(g, d as Value) : undefined,
    ],
  },
  FusedMatMul: { gradient: (g, n, [d]) => matmulGradient(g, n, d as Value) },
  Add: { gradient: (_g, _n, [d]) => [d, d] },
  Sub: { gradient: (g, _n, [d]) => [d, g.apply("Neg", [d as Value])] },
  Mul: {
    gradient: (g, n, [d], [wa, wb]) => [wa ? mul(g, d as Value, n.inputs[1] as Value) : undefined, wb ? mul(g, d as Value, n.inputs[0] as Value) : undefined],
  },
  Neg: { gradient: (g, _n, [d]) => [g.apply("Neg", [d as Value])] },
  Exp: { gradient: (g, n, [d]) => [mul(g, d as Value, n.outputs[0] as Value)] },
  QuickGelu: { gradient: (g, n, [d]) => [siluGradient(g, n.inputs[0] as Value, n.outputs[0] as Value, d as Value)] },
  SimplifiedLayerNormalization: { gradient: (g, n, [d]) => rmsNormGradient(g, n.inputs, n.outputs[1] as Value, d as Value) },
  RotaryEmbedding: {
    gradient: (g, n, [d]) => [
      rotary(g, d as Value, n.inputs[1] as Value, n.inputs[2] as Value, g.apply("Neg", [n.inputs[3] as Value])),
      undefined,
      undefined,
      undefined,
    ],
  },
  Softmax: { gradient: (g, n, [d]) => [softmaxGradient(g, n.outputs[0] as Value, d as Value)] },
  LogSoftmax: { gradient: (g, n, [d]) => [sub(g, d as Value, mul(g, g.apply("Exp", [n.outputs[0] as Value]), sumLast(g, d as Value)))] },
  Reshape: { gradient: (g, n, [d]) => [g.apply("Reshape", [d as Value, g.shapesBefore.get(n.outputs[0] as Value) as Value]), undefined] },
  Transpose: { gradient: (g, n, [d]) => [transpose(g, d as Value, inverse(n.attributes.perm as readonly number[]))] },
  Split: {
    gradient: (g, n, ds) => [
      g.apply(
        "Concat",
        ds.map((d, i) => d ?? mul(g, n.outputs[i] as Value, g.float(0))),
        { axis: attr(n, "axis") },
      ),
      undefined,
    ],
  },
};

function inverse(perm: readonly number[]): number[] {
  return perm.map((_, i) => perm.indexOf(i));
}
