import { describe, expect, it } from "vitest";
import type { DecoderConfig } from "./config.js";
import { decodeGraph, fed } from "./decode.js";
import { keptShapes, layerBackward, layerForward, layerWeights } from "./layer.js";
import { type Pack, packMask } from "./pack.js";
import { rotation, tinyConfig, tinyWeights } from "./test-config.js";
import { centralDifferences, decode, evaluate, inner, runInRuntime, type Tensors } from "./test-reference.js";
import { normals, relativeError, type Tensor, tensor } from "./test-tensor.js";

/** Five sequences in three rows of five places; one place of the last row stays empty. */
const lengths = [3, 2, 5, 1, 3];
const packed: Pack = {
  rows: 3,
  length: 5,
  places: [
    { sequence: 0, row: 0, start: 0 },
    { sequence: 1, row: 0, start: 3 },
    { sequence: 2, row: 1, start: 0 },
    { sequence: 3, row: 2, start: 0 },
    { sequence: 4, row: 2, start: 1 },
  ],
};
const empty = 14;

/** One shape of each family: plain, with biases on q, k and v, and with norms on the heads of q and k. */
const shapes: readonly (readonly [family: string, config: DecoderConfig])[] = [
  ["llama", tinyConfig],
  ["qwen2", { ...tinyConfig, family: "qwen2", attentionBias: true }],
  ["qwen3", { ...tinyConfig, family: "qwen3", qkNorm: true }],
];

function feedsOf(c: DecoderConfig, pack: Pack): { [name: string]: Tensor } {
  const N = pack.rows * pack.length;
  const positions = new Float64Array(N);
  for (const { sequence, row, start } of pack.places) for (let i = 0; i < lengths[sequence]; i++) positions[row * pack.length + start + i] = i;
  const mask = packMask(pack, lengths);
  return {
    x: normals("x", [N, c.width]),
    dy: normals("dy", [N, c.width]),
    ...tinyWeights(c),
    ...rotation(c, c.maxPositions),
    positions: tensor([pack.rows, pack.length], positions),
    mask: tensor([mask.rows, 1, pack.length, pack.length], mask.data),
  };
}

/** With kept activations the feeds of a backward graph. */
const withKept = (c: DecoderConfig, feeds: Tensors): Tensors => ({ ...feeds, ...evaluate(decode(layerForward(c, "activations")), feeds) });

const given = (gradient: string): string => gradient.replace(/^d_?/, "");

describe.each(shapes)("a layer of %s over packed rows", (_family, c) => {
  const feeds = feedsOf(c, packed);
  const gradientNames = ["dx", ...layerWeights(c).map((name) => `d_${name}`)];

  it.each([false, true])("has the gradients of central differences (kept activations: %s)", (kept) => {
    const forward = decode(layerForward(c, "nothing"));
    const gradients = evaluate(decode(layerBackward(c, kept, true)), kept ? withKept(c, feeds) : feeds);
    expect(Object.keys(gradients)).toEqual(gradientNames);
    for (const name of gradientNames) {
      const numeric = centralDifferences(() => inner(evaluate(forward, feeds).y, feeds.dy), feeds[given(name)].data);
      expect(relativeError(gradients[name].data, numeric), name).toBeLessThan(1e-7);
    }
  });

  it("has the same gradients from kept activations as from the input alone, in float64 and in ONNX Runtime", async () => {
    const fromInput = evaluate(decode(layerBackward(c, false, true)), feeds);
    const fromKept = evaluate(decode(layerBackward(c, true, true)), withKept(c, feeds));
    const kept = await runInRuntime(layerForward(c, "activations"), feeds);
    const runInput = await runInRuntime(layerBackward(c, false, true), feeds);
    const runKept = await runInRuntime(layerBackward(c, true, true), { ...feeds, ...kept });
    for (const name of gradientNames) {
      expect(relativeError(fromKept[name].data, fromInput[name].data), name).toBeLessThan(1e-13);
      expect(relativeError(runInput[name].data, fromInput[name].data), name).toBeLessThan(5e-6);
      expect(relativeError(runKept[name].data, runInput[name].data), name).toBeLessThan(1e-6);
    }
  });

  it("computes no product again that was kept", () => {
    const products = (kept: boolean) => decode(layerBackward(c, kept, true)).nodes.filter(({ op }) => /Gemm|MatMul/.test(op)).length;
    // q, k, v, output, gate, up and the mixing of values; only the scores are computed again.
    expect(products(false) - products(true)).toBe(7);
  });

  it("gives the same gradient of its input without those of the weights", () => {
    const all = evaluate(decode(layerBackward(c, false, true)), feeds);
    expect(evaluate(decode(layerBackward(c, false, false)), feeds)).toEqual({ dx: all.dx });
  });

  it("agrees with ONNX Runtime in float32, and keeps what it says in the shapes it says", async () => {
    const reference = evaluate(decode(layerForward(c, "activations")), feeds);
    const run = await runInRuntime(layerForward(c, "activations"), feeds, 2);
    const sizes: { [symbol: string]: number } = { B: 3, T: 5, N: 15 };
    expect(Object.keys(run).sort()).toEqual(["y", ...Object.keys(keptShapes(c)).map((name) => `kept_${name}`)].sort());
    for (const [name, value] of Object.entries(reference)) {
      expect(relativeError(run[name].data, value.data), name).toBeLessThan(2e-6);
      if (name !== "y") expect(value.dims).toEqual(keptShapes(c)[name.slice(5)].map((d) => (typeof d === "string" ? sizes[d] : d)));
    }
    const cache = await runInRuntime(layerForward(c, "cache"), feeds);
    expect(Object.keys(cache)).toEqual(["y", "kept_k", "kept_v"]);
    const cached = evaluate(decode(layerForward(c, "cache")), feeds);
    expect(relativeError(cached.kept_v.data, reference.kept_v.data)).toBe(0);
    expect(relativeError(cache.kept_k.data, cached.kept_k.data)).toBeLessThan(2e-6);
  });

  it("lets no sequence see or move another: outputs and gradients are those of each alone", () => {
    const y = evaluate(decode(layerForward(c, "nothing")), feeds).y;
    const dy = { ...feeds.dy, data: feeds.dy.data.map((value, i) => (Math.floor(i / c.width) === empty ? 0 : value)) };
    const together = evaluate(decode(layerBackward(c, false, true)), { ...feeds, dy });
    const sums = Object.fromEntries(layerWeights(c).map((name) => [name, feeds[name].data.map(() => 0)]));
    for (const { sequence, row, start } of packed.places) {
      const n = lengths[sequence];
      const from = (row * packed.length + start) * c.width;
      const cutOut = (x: Tensor) => tensor([n, c.width], x.data.subarray(from, from + n * c.width));
      const mask = packMask({ rows: 1, length: n, places: [{ sequence, row: 0, start: 0 }] }, lengths);
      const alone = {
        ...feeds,
        x: cutOut(feeds.x),
        dy: cutOut(dy),
        positions: tensor([1, n], [...Array(n).keys()]),
        mask: tensor([1, 1, n, n], mask.data),
      };
      expect(relativeError(evaluate(decode(layerForward(c, "nothing")), alone).y.data, cutOut(y).data)).toBeLessThan(1e-12);
      const own = evaluate(decode(layerBackward(c, false, true)), alone);
      expect(relativeError(own.dx.data, cutOut(together.dx).data)).toBeLessThan(1e-12);
      for (const name of layerWeights(c))
        own[`d_${name}`].data.forEach((value, i) => {
          sums[name][i] += value;
        });
    }
    for (const name of layerWeights(c)) expect(relativeError(sums[name], together[`d_${name}`].data), name).toBeLessThan(1e-12);
  });
});

describe.each(shapes)("a decoding step of %s", (_family, c) => {
  it("continues two layers as their forward pass does, over a cache with room left, in float64 and in ONNX Runtime", async () => {
    const two = { ...c, layers: 2 };
    const { rows: R, length: T } = { rows: 2, length: 4 };
    const x = normals("tokens", [R * T, c.width]);
    const pack: Pack = { rows: R, length: T, places: [0, 1].map((sequence) => ({ sequence, row: sequence, start: 0 })) };
    const mask = packMask(pack, [T, T]);
    const common = { ...rotation(c, 8), positions: tensor([R, T], [0, 1, 2, 3, 0, 1, 2, 3]), mask: tensor([1, 1, T, T], mask.data) };
    const forward = decode(layerForward(c, "cache"));
    const first = evaluate(forward, { x, ...tinyWeights(c, 0), ...common });
    const second = evaluate(forward, { x: first.y, ...tinyWeights(c, 1), ...common });
    // Row 0 is at its last token, row 1 at its third; the cache has six places, and what lies beyond must not matter.
    const at = [3, 2];
    const S = 6;
    const cached = (kept: Tensor) => {
      const past = normals("rubbish", [R, c.kvHeads, S, c.headDim]);
      for (let r = 0; r < R; r++)
        for (let h = 0; h < c.kvHeads; h++) {
          const from = (r * c.kvHeads + h) * T * c.headDim;
          past.data.set(kept.data.subarray(from, from + at[r] * c.headDim), (r * c.kvHeads + h) * S * c.headDim);
        }
      return past;
    };
    const pick = (rows: Tensor) => at.flatMap((t, r) => [...rows.data.subarray((r * T + t) * c.width, (r * T + t + 1) * c.width)]);
    const feeds: { [name: string]: Tensor } = {
      x: tensor([R, c.width], pick(x)),
      positions: tensor([R, 1], at),
      mask: tensor(
        [R, 1, 1, 1 + S],
        at.flatMap((t) => [0, ...Array.from({ length: S }, (_, s) => (s < t ? 0 : -1e9))]),
      ),
      splits: tensor([2], [1, S]),
      ...rotation(c, 8),
    };
    [first, second].forEach((kept, i) => {
      for (const [name, weight] of Object.entries(tinyWeights(c, i))) feeds[fed(i, name)] = weight;
      feeds[`pastK_${i}`] = cached(kept.kept_k);
      feeds[`pastV_${i}`] = cached(kept.kept_v);
    });
    const step = evaluate(decode(decodeGraph(two)), feeds);
    expect(relativeError(step.y.data, pick(second.y))).toBeLessThan(1e-12);
    const run = await runInRuntime(decodeGraph(two), feeds);
    for (const name of ["y", "newK_0", "newV_0", "newK_1", "newV_1"]) expect(relativeError(run[name].data, step[name].data), name).toBeLessThan(3e-6);
    const own = (kept: Tensor) =>
      at.flatMap((t, r) => [0, 1].flatMap((h) => [...kept.data.subarray(((r * 2 + h) * T + t) * 4, ((r * 2 + h) * T + t + 1) * 4)]));
    expect(relativeError(step.newK_1.data, own(second.kept_k))).toBeLessThan(1e-12);
    expect(relativeError(step.newV_0.data, own(first.kept_v))).toBeLessThan(1e-12);
  });
});
