/** Sessions of one engine process: made on first use from a graph, kept by name. And the feeds that they share. */
import type { InferenceSession, Tensor } from "onnxruntime-node";
import type { DecoderConfig } from "./config.js";
import { anglesOf } from "./rope.js";
import type { Runtime } from "./runtime.js";

export type Feeds = { [name: string]: Tensor };
export type Outputs = { readonly [name: string]: Tensor };

export class Sessions {
  private readonly made = new Map<string, Promise<InferenceSession>>();
  private readonly tensors = new WeakMap<Float32Array, Tensor>();
  private readonly angles = new Map<string, { cos: Tensor; sin: Tensor }>();

  constructor(
    private readonly runtime: Runtime,
    readonly threads: number,
  ) {}

  /** Runs the graph of that name, built on first use. The runtime computes on the calling thread. */
  async run(name: string, graph: () => Uint8Array, feeds: Feeds): Promise<Outputs> {
    let session = this.made.get(name);
    if (!session) {
      session = this.runtime.InferenceSession.create(graph(), {
        executionProviders: ["cpu"],
        intraOpNumThreads: this.threads,
        interOpNumThreads: 1,
        executionMode: "sequential",
        graphOptimizationLevel: "all",
        // Every session would keep an arena of its own that grows by doubling: a fifth more memory at the peak, and no time saved (docs/performance.md).
        enableCpuMemArena: false,
      });
      this.made.set(name, session);
    }
    const ready = await session;
    // A backward graph with kept activations does not read everything that one without does.
    const read = Object.fromEntries(ready.inputNames.map((input) => [input, feeds[input] as Tensor]));
    return (await ready.run(read)) as Outputs;
  }

  float(data: Float32Array, dims: readonly number[]): Tensor {
    return new this.runtime.Tensor("float32", data, dims as number[]);
  }

  double(data: Float64Array, dims: readonly number[]): Tensor {
    return new this.runtime.Tensor("float64", data, dims as number[]);
  }

  ints(data: BigInt64Array, dims: readonly number[]): Tensor {
    return new this.runtime.Tensor("int64", data, dims as number[]);
  }

  bools(data: Uint8Array, dims: readonly number[]): Tensor {
    return new this.runtime.Tensor("bool", data, dims as number[]);
  }

  /** The tensor over a weight's array, made once: the array is fed as it is, without a copy. */
  weight(data: Float32Array, dims: readonly number[]): Tensor {
    let tensor = this.tensors.get(data);
    if (!tensor) {
      tensor = this.float(data, dims);
      this.tensors.set(data, tensor);
    }
    return tensor;
  }

  /** Cosines and sines [places, headDim / 2] for at least `places` positions. */
  rotation(c: DecoderConfig, places: number): { cos: Tensor; sin: Tensor } {
    const key = JSON.stringify([c.headDim, c.ropeTheta, c.rope]);
    const found = this.angles.get(key);
    if (found && (found.cos.dims[0] as number) >= places) return found;
    let size = 256;
    while (size < places) size *= 2;
    const half = c.headDim / 2;
    const cos = new Float32Array(size * half);
    const sin = new Float32Array(size * half);
    const { frequencies, scale } = anglesOf(c);
    for (const [i, frequency] of frequencies.entries()) {
      for (let p = 0; p < size; p++) {
        cos[p * half + i] = Math.cos(p * frequency) * scale;
        sin[p * half + i] = Math.sin(p * frequency) * scale;
      }
    }
    const made = { cos: this.float(cos, [size, half]), sin: this.float(sin, [size, half]) };
    this.angles.set(key, made);
    return made;
  }

  async close(): Promise<void> {
    const all = [...this.made.values()];
    this.made.clear();
    for (const session of all) await (await session).release();
  }
}
