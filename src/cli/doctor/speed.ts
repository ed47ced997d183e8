/** The rates that decide how fast training and sampling can be. All block the calling thread: run them in a process of their own. */
import type { InferenceSession, Tensor } from "onnxruntime-node";
import { randomKey, Stream } from "../../core/random.js";
import { Graph } from "../../engine/onnx/graph.js";
import type { Runtime } from "../../engine/onnx/runtime.js";

const [rows, inner, columns] = [1024, 1536, 576];

/** GFLOP/s of a float32 product [1024, 1536] · [1536, 576] by ONNX Runtime: the best of 20 after a warm-up. */
export async function gemmRate(runtime: Runtime, threads: number): Promise<number> {
  const g = new Graph();
  const a = g.input("a", "float32", [rows, inner]);
  const b = g.input("b", "float32", [inner, columns]);
  g.output("c", g.apply("MatMul", [a, b]), "float32", [rows, columns]);
  const feeds = { a: noise(runtime, [rows, inner]), b: noise(runtime, [inner, columns]) };
  const session = await open(runtime, g, threads);
  const best = await shortest(20, () => session.run(feeds));
  await session.release();
  return (2 * rows * inner * columns) / (best * 1e6);
}

/** Milliseconds of a run of a graph of one node: what each call costs beside its work. The best of 500. */
export async function emptyRun(runtime: Runtime): Promise<number> {
  const g = new Graph();
  const x = g.input("x", "float32", [1]);
  g.output("y", g.apply("Neg", [x]), "float32", [1]);
  const session = await open(runtime, g, 1);
  const feeds = { x: noise(runtime, [1]) };
  const best = await shortest(500, () => session.run(feeds));
  await session.release();
  return best;
}

/** GB/s of one thread that copies an array of `bytes`, each byte counted once. The best of 8. */
export async function copyBandwidth(bytes: number): Promise<number> {
  const from = new Float32Array(bytes / 4).fill(1);
  const to = new Float32Array(from.length).fill(2);
  const best = await shortest(8, async () => to.set(from));
  return bytes / (best * 1e6);
}

function noise(runtime: Runtime, dims: number[]): Tensor {
  const stream = new Stream(randomKey({ seed: 0, purpose: "doctor" }));
  const data = Float32Array.from({ length: dims.reduce((x, y) => x * y) }, () => stream.next() - 0.5);
  return new runtime.Tensor("float32", data, dims);
}

function open(runtime: Runtime, graph: Graph, threads: number): Promise<InferenceSession> {
  return runtime.InferenceSession.create(graph.build(), { executionProviders: ["cpu"], intraOpNumThreads: threads, interOpNumThreads: 1 });
}

/** Milliseconds of the fastest of `times` calls, after one that does not count. */
async function shortest(times: number, call: () => Promise<unknown>): Promise<number> {
  await call();
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    await call();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}
