/** One engine process under measurement: makes ready, waits for the word, measures, and sends what it found. */
import { readFileSync } from "node:fs";
import { plainContext } from "../../src/core/problem.js";
import { randomKey } from "../../src/core/random.js";
import { OnnxEngine } from "../../src/engine/onnx/engine.js";
import { Graph } from "../../src/engine/onnx/graph.js";
import { loadRuntime } from "../../src/engine/onnx/runtime.js";
import { configOf, type ShapeName, shapes } from "./shapes.js";

export interface Work {
  readonly kind: "train" | "decode" | "decode and train";
  readonly shape: ShapeName;
  /** Model folder of that shape; absent: random weights. */
  readonly folder?: string;
  /** Rank of an adapter on all products of the layers, which then learns in place of the weights. */
  readonly adapter?: number;
  readonly batch: number;
  /** Tokens a sequence; for decoding alone, tokens drawn. */
  readonly tokens: number;
  /** Tokens drawn by a worker that does both. */
  readonly drawn?: number;
  readonly threads: number;
  readonly activations: "keep" | "recompute";
  readonly repeats: number;
  /** Decoding: length of the prompt. */
  readonly prompt?: number;
}

export interface Found {
  /** GFLOP/s of 1024x1536x576, best of 20, before and after. */
  readonly gemm: readonly [number, number];
  /** Milliseconds of each repeat: forward and backward, or of a decode step. */
  readonly ms: readonly number[];
  readonly optimizerMs: readonly number[];
  /** Of a worker that does both: milliseconds of a decode step. */
  readonly decodeMs?: readonly number[];
  /** Processor time of all cores for each repeat, in ms: of a whole training step, or of a decode step. Other work on the machine hardly moves it. */
  readonly cpuMs: readonly number[];
  readonly peakGb: number;
  /** GB/s of one thread's copy. */
  readonly copyGbs: number;
}

const work = JSON.parse(process.argv[2]) as Work;

async function gemmRate(): Promise<number> {
  const runtime = await loadRuntime();
  const [m, k, n] = [1024, 576, 1536];
  const g = new Graph();
  g.output("y", g.apply("MatMul", [g.input("a", "float32", [m, k]), g.input("b", "float32", [k, n])]), "float32", [m, n]);
  const session = await runtime.InferenceSession.create(g.build(), { intraOpNumThreads: work.threads, interOpNumThreads: 1 });
  const tensor = (rows: number, columns: number) =>
    new runtime.Tensor(
      "float32",
      Float32Array.from({ length: rows * columns }, (_, i) => (i % 7) / 7),
      [rows, columns],
    );
  const feeds = { a: tensor(m, k), b: tensor(k, n) };
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 20; i++) {
    const start = performance.now();
    await session.run(feeds);
    best = Math.min(best, performance.now() - start);
  }
  await session.release();
  return (2 * m * k * n) / best / 1e6;
}

function copyRate(): number {
  const from = new Float32Array(16 * 2 ** 20).fill(1);
  const to = new Float32Array(from.length);
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 10; i++) {
    const start = performance.now();
    to.set(from);
    best = Math.min(best, performance.now() - start);
  }
  return from.byteLength / best / 1e6;
}

function peakGb(): number {
  const match = /VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"));
  return Number(match?.[1] ?? 0) / 1e6;
}

const cpuTime = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

async function train(engine: OnnxEngine): Promise<{ ms: number[]; optimizerMs: number[]; cpuMs: number[] }> {
  const { vocabulary } = shapes[work.shape];
  const sequences = Array.from({ length: work.batch }, (_, b) => ({
    context: plainContext([b % vocabulary]),
    response: Int32Array.from({ length: work.tokens - 1 }, (_, t) => (b * 31 + t * 7) % vocabulary),
    weights: { role: "policy" },
    temperature: 1,
  }));
  const ms: number[] = [];
  const optimizerMs: number[] = [];
  const cpuMs: number[] = [];
  for (let i = 0; i < work.repeats; i++) {
    const [start, before] = [performance.now(), cpuTime()];
    const { handle, scores } = await engine.forward(sequences);
    await engine.backward(
      handle,
      scores.map(({ logp }) => ({ dLogp: new Float64Array(logp.length).fill(-1 / (work.batch * work.tokens)) })),
      "role:policy",
    );
    const middle = performance.now();
    await engine.step({ set: "role:policy", update: { rule: "adamw", rate: 1e-5 }, maxNorm: 1 });
    ms.push(middle - start);
    optimizerMs.push(performance.now() - middle);
    cpuMs.push(cpuTime() - before);
  }
  return { ms, optimizerMs, cpuMs };
}

async function decode(engine: OnnxEngine): Promise<{ ms: number[]; cpuMs: number[] }> {
  const ms: number[] = [];
  const cpuMs: number[] = [];
  const { vocabulary } = shapes[work.shape];
  const requests = (maxTokens: number, run: number) =>
    Array.from({ length: work.batch }, (_, member) => ({
      context: plainContext(Array.from({ length: work.prompt ?? 8 }, (_, t) => (t * 5) % vocabulary)),
      weights: { role: "policy" },
      temperature: 1,
      maxTokens,
      stop: { ids: [] },
      key: randomKey({ seed: run, purpose: "bench", member }),
    }));
  const time = async (maxTokens: number, run: number): Promise<{ ms: number; cpu: number }> => {
    const [start, before] = [performance.now(), cpuTime()];
    for await (const _ of engine.sample(requests(maxTokens, run)));
    return { ms: performance.now() - start, cpu: cpuTime() - before };
  };
  // The difference of a long and a short call is decoding alone, without the prompt's prefill.
  const { drawn = work.tokens } = work;
  for (let i = 0; i < work.repeats; i++) {
    const [long, short] = [await time(drawn, i), await time(2, i)];
    ms.push((long.ms - short.ms) / (drawn - 2));
    cpuMs.push((long.cpu - short.cpu) / (drawn - 2));
  }
  return { ms, cpuMs };
}

const engine = await OnnxEngine.create({ threads: work.threads, activations: work.activations });
const { folder, adapter } = work;
await engine.weights.load({
  role: "policy",
  source: folder === undefined ? { from: "config", config: configOf(work.shape), seed: 1 } : { from: "folder", path: folder },
  ...(adapter !== undefined && { adapter: { from: "new", seed: 1, rank: adapter, alpha: 2 * adapter, targets: "all-linear" } }),
  trainable: work.kind !== "decode",
});
const said = new Promise((resolve) => process.once("message", resolve));
process.send?.("ready");
await said;
const before = await gemmRate();
const decoded = work.kind === "train" ? { ms: [], cpuMs: [] } : await decode(engine);
const found = work.kind === "decode" ? { ...decoded, optimizerMs: [] } : { ...(await train(engine)), decodeMs: decoded.ms };
const after = await gemmRate();
process.send?.({ gemm: [before, after], ...found, peakGb: peakGb(), copyGbs: copyRate() } satisfies Found);
await engine.close();
process.disconnect?.();
