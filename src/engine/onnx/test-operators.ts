/** The ONNX operators that our graphs use, in float64: written from the operators' definitions, slow and plain. */
import { axisOf, broadcastDims, broadcastOffsets, map, mapLines, offsets, reduce, sizeOf, stridesOf, type Tensor, tensor, zip } from "./test-tensor.js";

/** Attributes by name; floats are float32 numbers, as the file has them. */
export type Attributes = { readonly [name: string]: number | readonly number[] | string };
type Operator = (inputs: readonly Tensor[], attributes: Attributes, outputs: number) => Tensor[];

const number = (a: Attributes, name: string, otherwise: number): number => (a[name] as number | undefined) ?? otherwise;
const sum = (line: Float64Array): number => line.reduce((a, b) => a + b, 0);
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const unary =
  (f: (x: number) => number): Operator =>
  ([x]) => [map(x, f)];
const binary =
  (f: (a: number, b: number) => number): Operator =>
  ([a, b]) => [zip(a, b, f)];

/** Reductions over the one axis that a second input names. */
const reduction =
  (f: (line: Float64Array) => number): Operator =>
  ([x, axes], a) => {
    if (axes.data.length !== 1) throw new Error("a reduction here has one axis");
    return [reduce(x, axisOf(x, axes.data[0]), number(a, "keepdims", 1) === 1, f)];
  };

function transpose(x: Tensor, perm: readonly number[]): Tensor {
  const strides = stridesOf(x.dims);
  const dims = perm.map((axis) => x.dims[axis]);
  const from = offsets(
    dims,
    perm.map((axis) => strides[axis]),
  );
  return { dims, data: Float64Array.from(from, (i) => x.data[i]) };
}

function swapLast(x: Tensor): Tensor {
  const axes = x.dims.map((_, i) => i);
  return transpose(x, [...axes.slice(0, -2), axes.length - 1, axes.length - 2]);
}

/** α · a · b over the last two axes, the axes before them broadcast. */
function product(a: Tensor, b: Tensor, alpha = 1): Tensor {
  const [rows, inner, columns] = [a.dims.at(-2) as number, a.dims.at(-1) as number, b.dims.at(-1) as number];
  if (b.dims.at(-2) !== inner) throw new Error(`[${a.dims}] times [${b.dims}]`);
  const batch = broadcastDims(a.dims.slice(0, -2), b.dims.slice(0, -2));
  const atA = broadcastOffsets(a.dims.slice(0, -2), batch);
  const atB = broadcastOffsets(b.dims.slice(0, -2), batch);
  const data = new Float64Array(sizeOf(batch) * rows * columns);
  for (let m = 0; m < atA.length; m++) {
    for (let i = 0; i < rows; i++) {
      const to = (m * rows + i) * columns;
      for (let k = 0; k < inner; k++) {
        const factor = alpha * a.data[(atA[m] * rows + i) * inner + k];
        const from = (atB[m] * inner + k) * columns;
        for (let j = 0; j < columns; j++) data[to + j] += factor * b.data[from + j];
      }
    }
  }
  return { dims: [...batch, rows, columns], data };
}

const fusedMatMul: Operator = ([a, b], at) => [product(at.transA ? swapLast(a) : a, at.transB ? swapLast(b) : b, number(at, "alpha", 1))];

const gemm: Operator = ([a, b, c], at) => {
  const [y] = fusedMatMul([a, b], at, 1);
  return [c ? zip(y, c, (p, q) => p + number(at, "beta", 1) * q) : y];
};

function softmax(line: Float64Array): Float64Array {
  const largest = Math.max(...line);
  const e = line.map((x) => Math.exp(x - largest));
  const total = sum(e);
  return e.map((x) => x / total);
}

const layerNormalization: Operator = ([x, w], a) => {
  const axis = axisOf(x, number(a, "axis", -1));
  if (axis !== x.dims.length - 1) throw new Error("norms here are over the last axis");
  const inverse = reduce(x, axis, true, (line) => 1 / Math.sqrt(sum(line.map((v) => v * v)) / line.length + number(a, "epsilon", 1e-5)));
  return [
    zip(
      zip(x, inverse, (p, q) => p * q),
      w,
      (p, q) => p * q,
    ),
    inverse,
  ];
};

/** x [B, heads, T, D] turned by the angles of positions [B, T]: entry i with entry i + D / 2. */
const rotaryEmbedding: Operator = ([x, positions, cos, sin]) => {
  const [B, heads, T, D] = x.dims;
  const half = D / 2;
  const data = new Float64Array(x.data.length);
  for (let row = 0; row < B * heads * T; row++) {
    const b = Math.floor(row / (heads * T));
    const angle = positions.data[b * T + (row % T)] * half;
    for (let i = 0; i < half; i++) {
      const [p, q] = [x.data[row * D + i], x.data[row * D + i + half]];
      const [c, s] = [cos.data[angle + i], sin.data[angle + i]];
      data[row * D + i] = p * c - q * s;
      data[row * D + i + half] = q * c + p * s;
    }
  }
  return [{ dims: x.dims, data }];
};

const reshape: Operator = ([x, shape]) => {
  const asked = [...shape.data].map((n, i) => (n === 0 ? x.dims[i] : n));
  const known = sizeOf(asked.filter((n) => n !== -1));
  return [
    tensor(
      asked.map((n) => (n === -1 ? x.data.length / known : n)),
      x.data,
    ),
  ];
};

/** `count` entries of an axis, from `start` on. */
function cut(x: Tensor, axis: number, start: number, count: number): Tensor {
  const strides = stridesOf(x.dims);
  const dims = x.dims.with(axis, count);
  return { dims, data: Float64Array.from(offsets(dims, strides), (i) => x.data[i + start * strides[axis]]) };
}

const split: Operator = ([x, sizes], a) => {
  const axis = axisOf(x, number(a, "axis", 0));
  if (sum(sizes.data) !== x.dims[axis]) throw new Error(`${x.dims[axis]} is not split by ${sizes.data}`);
  let start = 0;
  return [...sizes.data].map((size) => {
    start += size;
    return cut(x, axis, start - size, size);
  });
};

const concat: Operator = (inputs, a) => {
  const axis = axisOf(inputs[0], number(a, "axis", 0));
  const dims = inputs[0].dims.with(axis, sum(Float64Array.from(inputs, (x) => x.dims[axis])));
  const strides = stridesOf(dims);
  const data = new Float64Array(sizeOf(dims));
  let start = 0;
  for (const x of inputs) {
    offsets(x.dims, strides).forEach((to, i) => {
      data[to + start * strides[axis]] = x.data[i];
    });
    start += x.dims[axis];
  }
  return [{ dims, data }];
};

const slice: Operator = ([x, starts, ends, axes]) => {
  if (axes.data.length !== 1) throw new Error("a slice here has one axis");
  const axis = axisOf(x, axes.data[0]);
  const place = (at: number) => Math.min(Math.max(at < 0 ? at + x.dims[axis] : at, 0), x.dims[axis]);
  const start = place(starts.data[0]);
  return [cut(x, axis, start, place(ends.data[0]) - start)];
};

/** Constant padding; `pads` lists the begin of each axis, then the end of each. */
const pad: Operator = ([x, pads, value]) => {
  const rank = x.dims.length;
  const dims = x.dims.map((n, i) => pads.data[i] + n + pads.data[rank + i]);
  const strides = stridesOf(dims);
  const data = new Float64Array(sizeOf(dims)).fill(value.data[0]);
  const base = strides.reduce((total, stride, i) => total + stride * pads.data[i], 0);
  offsets(x.dims, strides).forEach((to, i) => {
    data[to + base] = x.data[i];
  });
  return [{ dims, data }];
};

/** Rows and columns of indices [R, k] into x [R, n] along axis 1. */
function places(x: Tensor, indices: Tensor, a: Attributes): Int32Array {
  if (a.axis !== 1 || x.dims.length !== 2) throw new Error("elements here are gathered and scattered along axis 1 of two");
  const [n, k] = [x.dims[1], indices.dims[1]];
  return Int32Array.from(indices.data, (column, i) => {
    if (column < 0 || column >= n) throw new Error(`index ${column} of ${n}`);
    return Math.floor(i / k) * n + column;
  });
}

const gatherElements: Operator = ([x, indices], a) => [{ dims: indices.dims, data: Float64Array.from(places(x, indices, a), (i) => x.data[i]) }];

const scatterElements: Operator = ([x, indices, updates], a) => {
  const data = x.data.slice();
  places(x, indices, a).forEach((to, i) => {
    data[to] = updates.data[i] + (a.reduction === "add" ? data[to] : 0);
  });
  return [{ dims: x.dims, data }];
};

/** From each row's [n, inner] the one that its index [R, 1] names. */
const gatherND: Operator = ([x, indices], a) => {
  if (a.batch_dims !== 1 || indices.dims[1] !== 1) throw new Error("rows here have one index each");
  const [rows, n, inner] = x.dims;
  const data = new Float64Array(rows * inner);
  for (let r = 0; r < rows; r++) data.set(x.data.subarray((r * n + indices.data[r]) * inner, (r * n + indices.data[r] + 1) * inner), r * inner);
  return [{ dims: [rows, inner], data }];
};

const cumulativeSum: Operator = ([x, axis], a) => [
  mapLines(x, axisOf(x, axis.data[0]), (line) => {
    let total = 0;
    return line.map((value) => {
      total += value;
      return a.exclusive ? total - value : total;
    });
  }),
];

const order = (line: Float64Array): number[] => [...line.keys()].sort((i, j) => line[j] - line[i] || i - j);

const topK: Operator = ([x, k], a) => {
  const axis = axisOf(x, number(a, "axis", -1));
  if (axis !== x.dims.length - 1) throw new Error("the largest are of the last axis here");
  const count = k.data[0];
  const values = mapLines(x, axis, (line) => Float64Array.from(order(line), (i) => line[i]));
  const ids = mapLines(x, axis, (line) => Float64Array.from(order(line)));
  return [cut(values, axis, 0, count), cut(ids, axis, 0, count)];
};

const where: Operator = ([condition, yes, no]) => {
  const dims = broadcastDims(condition.dims, broadcastDims(yes.dims, no.dims));
  const [c, y, n] = [condition, yes, no].map((x) => broadcastOffsets(x.dims, dims));
  return [{ dims, data: Float64Array.from(c, (at, i) => (condition.data[at] ? yes.data[y[i]] : no.data[n[i]])) }];
};

/** Every operator by its ONNX name. Casts change nothing here: all numbers are doubles, and our graphs cast no fraction to a whole number. */
export const operators: { readonly [op: string]: Operator } = {
  Identity: ([x]) => [x],
  Cast: ([x]) => [x],
  Add: binary((a, b) => a + b),
  Sub: binary((a, b) => a - b),
  Mul: binary((a, b) => a * b),
  Div: binary((a, b) => a / b),
  Min: binary(Math.min),
  Max: binary(Math.max),
  LessOrEqual: binary((a, b) => Number(a <= b)),
  GreaterOrEqual: binary((a, b) => Number(a >= b)),
  Neg: unary((x) => -x),
  Exp: unary(Math.exp),
  Sigmoid: unary(sigmoid),
  QuickGelu: ([x], a) => [map(x, (v) => v * sigmoid(number(a, "alpha", 1.702) * v))],
  Gemm: gemm,
  MatMul: ([a, b]) => [product(a, b)],
  FusedMatMul: fusedMatMul,
  Softmax: ([x], a) => [mapLines(x, axisOf(x, number(a, "axis", -1)), softmax)],
  LogSoftmax: ([x], a) => [mapLines(x, axisOf(x, number(a, "axis", -1)), (line) => softmax(line).map(Math.log))],
  SimplifiedLayerNormalization: layerNormalization,
  RotaryEmbedding: rotaryEmbedding,
  ReduceSum: reduction(sum),
  ReduceMean: reduction((line) => sum(line) / line.length),
  ReduceMax: reduction((line) => line.reduce((a, b) => Math.max(a, b))),
  ArgMax: ([x], a) => [reduce(x, axisOf(x, number(a, "axis", 0)), number(a, "keepdims", 1) === 1, (line) => order(line)[0])],
  CumSum: cumulativeSum,
  TopK: topK,
  Reshape: reshape,
  Transpose: ([x], a) => [transpose(x, a.perm as readonly number[])],
  Shape: ([x], a) => {
    const dims = x.dims.slice(number(a, "start", 0), a.end as number | undefined);
    return [tensor([dims.length], dims)];
  },
  Split: split,
  Concat: concat,
  Slice: slice,
  Pad: pad,
  GatherElements: gatherElements,
  GatherND: gatherND,
  ScatterElements: scatterElements,
  Where: where,
};
