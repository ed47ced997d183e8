/** Tensors in float64 for the reference evaluator: row-major, whole numbers and truth values as doubles too. */
import { randomKey, Stream } from "../../core/random.js";

export interface Tensor {
  readonly dims: readonly number[];
  readonly data: Float64Array;
}

export const tensor = (dims: readonly number[], data: ArrayLike<number>): Tensor => {
  const values = Float64Array.from(data);
  if (values.length !== sizeOf(dims)) throw new Error(`${values.length} numbers do not fill [${dims}]`);
  return { dims, data: values };
};

export const sizeOf = (dims: readonly number[]): number => dims.reduce((a, b) => a * b, 1);

/** A tensor of the same shape, entry by entry. */
export const map = (x: Tensor, f: (value: number) => number): Tensor => ({ dims: x.dims, data: x.data.map(f) });

/** An axis counted from the end if negative. */
export const axisOf = (x: Tensor, axis: number): number => (axis < 0 ? axis + x.dims.length : axis);

/** How far apart neighbours along each axis lie. */
export function stridesOf(dims: readonly number[]): number[] {
  const strides = new Array<number>(dims.length).fill(1);
  for (let i = dims.length - 2; i >= 0; i--) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

/** For each entry of a tensor of shape `dims`, in order, where it lies in data with the given strides. */
export function offsets(dims: readonly number[], strides: readonly number[]): Int32Array {
  let all = Int32Array.of(0);
  dims.forEach((n, axis) => {
    const next = new Int32Array(all.length * n);
    for (let i = 0; i < all.length; i++) for (let j = 0; j < n; j++) next[i * n + j] = all[i] + j * strides[axis];
    all = next;
  });
  return all;
}

/** The shape that both broadcast to. */
export function broadcastDims(a: readonly number[], b: readonly number[]): number[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const [m, n] = [a[i - rank + a.length] ?? 1, b[i - rank + b.length] ?? 1];
    if (m !== n && m !== 1 && n !== 1) throw new Error(`[${a}] and [${b}] do not broadcast`);
    return m === 1 ? n : m;
  });
}

/** Where each entry of a broadcast shape lies in a tensor of shape `from`. */
export function broadcastOffsets(from: readonly number[], to: readonly number[]): Int32Array {
  const strides = stridesOf(from);
  const missing = to.length - from.length;
  return offsets(
    to,
    to.map((_, i) => (i < missing || from[i - missing] === 1 ? 0 : strides[i - missing])),
  );
}

/** f over the entries of two tensors, broadcast as in numpy. */
export function zip(a: Tensor, b: Tensor, f: (a: number, b: number) => number): Tensor {
  const dims = broadcastDims(a.dims, b.dims);
  const [ia, ib] = [broadcastOffsets(a.dims, dims), broadcastOffsets(b.dims, dims)];
  const data = new Float64Array(ia.length);
  for (let i = 0; i < data.length; i++) data[i] = f(a.data[ia[i]], b.data[ib[i]]);
  return { dims, data };
}

/** A tensor as [outer][n][inner] around one axis. */
export function around(dims: readonly number[], axis: number): { outer: number; n: number; inner: number } {
  return { outer: sizeOf(dims.slice(0, axis)), n: dims[axis], inner: sizeOf(dims.slice(axis + 1)) };
}

/** Hands each line along an axis to `f` with a reader, and where it begins and how far apart its entries lie. */
export function lines(x: Tensor, axis: number, f: (line: Float64Array, start: number, stride: number, index: number) => void): void {
  const { outer, n, inner } = around(x.dims, axis);
  const line = new Float64Array(n);
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const start = o * n * inner + i;
      for (let j = 0; j < n; j++) line[j] = x.data[start + j * inner];
      f(line, start, inner, o * inner + i);
    }
  }
}

/** A tensor whose lines along an axis are replaced by functions of them. */
export function mapLines(x: Tensor, axis: number, f: (line: Float64Array) => Float64Array): Tensor {
  const data = new Float64Array(x.data.length);
  lines(x, axis, (line, start, stride) => {
    const result = f(line);
    for (let j = 0; j < result.length; j++) data[start + j * stride] = result[j];
  });
  return { dims: x.dims, data };
}

/** A tensor whose lines along an axis are folded to one number each. */
export function reduce(x: Tensor, axis: number, keep: boolean, f: (line: Float64Array) => number): Tensor {
  const dims = keep ? x.dims.with(axis, 1) : x.dims.toSpliced(axis, 1);
  const data = new Float64Array(sizeOf(dims));
  lines(x, axis, (line, _start, _stride, index) => {
    data[index] = f(line);
  });
  return { dims, data };
}

/** The largest difference of two lists of numbers over the largest entry of the second. */
export function relativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  let difference = 0;
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    const here = Math.abs(actual[i] - expected[i]);
    if (!(here <= difference)) difference = here;
    largest = Math.max(largest, Math.abs(expected[i]));
  }
  return difference === 0 ? 0 : difference / largest;
}

/** Normal float32 numbers, the same for the same name. */
export function normals(name: string, dims: readonly number[], scale = 1): Tensor {
  const stream = new Stream(randomKey({ seed: 1, purpose: name }));
  return tensor(
    dims,
    Array.from({ length: sizeOf(dims) }, () => Math.fround(scale * stream.normal())),
  );
}
