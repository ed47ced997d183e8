import { describe, expect, it } from "vitest";
import { Graph, type Value } from "./graph.js";
import { add, linear, matmul, mul, reshape, rmsNorm, rotary, rules, silu, sub, transpose } from "./ops.js";
import { centralDifferences, type Decoded, decode, evaluate, inner, runInRuntime, type Tensors } from "./test-reference.js";
import { normals, relativeError, type Tensor, tensor } from "./test-tensor.js";

/** One use of an operator: shapes of what is differentiated, and the outputs whose weighted sum is. */
interface Case {
  readonly what: string;
  readonly inputs: readonly (readonly number[])[];
  readonly build: (g: Graph, x: Value[]) => Value[];
  /** Inputs that are not differentiated. */
  readonly feeds?: Tensors;
}

const positions = tensor([2, 3], [0, 1, 2, 3, 0, 1]);
const angles = (f: (x: number) => number) =>
  tensor(
    [4, 2],
    [0, 1, 2, 3].flatMap((p) => [f(p), f(p / 7)]),
  );

function split(parts: readonly number[]): Case["build"] {
  return (g, [x]) => {
    const all = g.applyMany("Split", [x, g.ints([2, 3, 1])], 3, { axis: 1 });
    return parts.map((i) => all[i]);
  };
}

const matmulCases = ([0, 1] as const).flatMap((ta) =>
  ([0, 1] as const).map((tb) => ({
    what: `transA ${ta}, transB ${tb}`,
    inputs: [
      [2, 2, ...(ta ? [4, 3] : [3, 4])],
      [2, 2, ...(tb ? [5, 4] : [4, 5])],
    ],
    build: (g: Graph, [a, b]: Value[]) => [matmul(g, a, b, { ...(ta ? { transA: 1 } : {}), ...(tb ? { transB: 1 } : {}), alpha: 0.375 })],
  })),
);

const cases: { readonly [op: string]: readonly Case[] } = {
  Identity: [{ what: "one", inputs: [[2, 3]], build: (g, [x]) => [g.apply("Identity", [x])] }],
  Gemm: [
    {
      what: "a layer's product",
      inputs: [
        [5, 3],
        [4, 3],
      ],
      build: (g, [x, w]) => [linear(g, x, w)],
    },
    { what: "a fixed weight", inputs: [[5, 3]], build: (g, [x]) => [linear(g, x, g.input("w", "float32", [4, 3]))], feeds: { w: normals("w", [4, 3]) } },
    { what: "a fixed input", inputs: [[4, 3]], build: (g, [w]) => [linear(g, g.input("x", "float32", [5, 3]), w)], feeds: { x: normals("x", [5, 3]) } },
  ],
  FusedMatMul: matmulCases,
  Add: [
    {
      what: "two",
      inputs: [
        [2, 3],
        [2, 3],
      ],
      build: (g, [a, b]) => [add(g, a, b)],
    },
    { what: "twice the same", inputs: [[2, 3]], build: (g, [a]) => [add(g, a, a)] },
  ],
  Sub: [
    {
      what: "two",
      inputs: [
        [2, 3],
        [2, 3],
      ],
      build: (g, [a, b]) => [sub(g, a, b)],
    },
    { what: "twice the same, one exponentiated", inputs: [[2, 3]], build: (g, [a]) => [sub(g, g.apply("Exp", [a]), a)] },
  ],
  Mul: [
    {
      what: "two",
      inputs: [
        [2, 3],
        [2, 3],
      ],
      build: (g, [a, b]) => [mul(g, a, b)],
    },
    { what: "a square", inputs: [[2, 3]], build: (g, [a]) => [mul(g, a, a)] },
    { what: "a scale that is not differentiated", inputs: [[2, 3]], build: (g, [a]) => [mul(g, a, g.float(-0.75))] },
  ],
  Neg: [{ what: "one", inputs: [[2, 3]], build: (g, [x]) => [g.apply("Neg", [x])] }],
  Exp: [{ what: "one", inputs: [[2, 3]], build: (g, [x]) => [g.apply("Exp", [x])] }],
  QuickGelu: [{ what: "silu", inputs: [[4, 5]], build: (g, [x]) => [silu(g, x)] }],
  SimplifiedLayerNormalization: [
    { what: "input and scale", inputs: [[4, 5], [5]], build: (g, [x, w]) => [rmsNorm(g, x, w, 1e-2)] },
    { what: "its output used twice", inputs: [[4, 5], [5]], build: (g, [x, w]) => [rmsNorm(g, x, w, 1e-5)].flatMap((y) => [y, mul(g, y, y)]) },
  ],
  RotaryEmbedding: [
    {
      what: "heads at their positions",
      inputs: [[2, 2, 3, 4]],
      build: (g, [x]) => [rotary(g, x, g.input("positions", "int64", [2, 3]), g.input("cos", "float32", [4, 2]), g.input("sin", "float32", [4, 2]))],
      feeds: { positions, cos: angles(Math.cos), sin: angles(Math.sin) },
    },
  ],
  Softmax: [{ what: "last axis", inputs: [[2, 3, 4]], build: (g, [x]) => [g.apply("Softmax", [x], { axis: -1 })] }],
  LogSoftmax: [{ what: "last axis", inputs: [[3, 4]], build: (g, [x]) => [g.apply("LogSoftmax", [x], { axis: -1 })] }],
  Reshape: [{ what: "there and back", inputs: [[4, 6]], build: (g, [x]) => [reshape(g, x, g.ints([2, -1, 3]), g.ints([-1, 6]))] }],
  Transpose: [{ what: "a permutation that is not its own inverse", inputs: [[2, 3, 4]], build: (g, [x]) => [transpose(g, x, [1, 2, 0])] }],
  Split: [
    { what: "all parts used", inputs: [[3, 6]], build: split([0, 1, 2]) },
    { what: "one part used", inputs: [[3, 6]], build: split([1]) },
  ],
};

const givens = (g: Graph, inputs: Case["inputs"]): Value[] => inputs.map((dims, i) => g.input(`x${i}`, "float32", dims));

/** The outputs alone, to learn their shapes and to differentiate numerically. */
function forward({ inputs, build }: Case): Decoded {
  const g = new Graph();
  for (const [i, y] of build(g, givens(g, inputs)).entries()) g.output(`y${i}`, y, "float32", []);
  return decode(g.build());
}

/** The gradients d0, d1… of the outputs' sum weighted by seed0, seed1…. */
function backward({ inputs, build }: Case, shapes: readonly (readonly number[])[]): Uint8Array {
  const g = new Graph();
  const given = givens(g, inputs);
  const seeds = build(g, given).map((y, i) => [y, g.input(`seed${i}`, "float32", shapes[i])] as const);
  const gradients = g.gradient(seeds, given);
  for (const [i, x] of given.entries()) g.output(`d${i}`, gradients.get(x) as Value, "float32", inputs[i]);
  return g.build();
}

describe.each(Object.keys(rules))("the gradient rule of %s", (op) => {
  it("has a case", () => {
    expect(cases[op]?.length).toBeGreaterThan(0);
  });

  it.each(cases[op] ?? [])("agrees with central differences, and ONNX Runtime with it: $what", async (one) => {
    const model = forward(one);
    expect(model.nodes.map((n) => n.op)).toContain(op);
    const feeds: { [name: string]: Tensor } = { ...one.feeds };
    for (const [i, dims] of one.inputs.entries()) feeds[`x${i}`] = normals(`x${i}`, dims);
    const shapes = Object.values(evaluate(model, feeds)).map((y) => y.dims);
    const seeds = shapes.map((dims, i) => normals(`seed${i}`, dims));
    for (const [i, seed] of seeds.entries()) feeds[`seed${i}`] = seed;
    const bytes = backward(one, shapes);
    const gradients = evaluate(decode(bytes), feeds);
    const loss = () => Object.values(evaluate(model, feeds)).reduce((total, y, i) => total + inner(y, seeds[i]), 0);
    const run = await runInRuntime(bytes, feeds);
    for (const [i, dims] of one.inputs.entries()) {
      const gradient = gradients[`d${i}`];
      expect(gradient.dims).toEqual(dims);
      expect(relativeError(gradient.data, centralDifferences(loss, feeds[`x${i}`].data))).toBeLessThan(1e-8);
      expect(run[`d${i}`].dims).toEqual(dims);
      expect(relativeError(run[`d${i}`].data, gradient.data)).toBeLessThan(2e-6);
    }
  });
});

it("there is no case without a rule", () => {
  expect(Object.keys(cases).filter((op) => !rules[op])).toEqual([]);
});
