/** Draws by the engine's own graphs from a distribution over a real vocabulary, on one thread as the engine runs them. */
import type { DecoderConfig } from "./config.js";
import { drawGraph, drawOnlyGraph } from "./draw.js";
import { Graph } from "./graph.js";
import { headForward } from "./head.js";
import { loadRuntime } from "./runtime.js";
import { Sessions } from "./sessions.js";
import { tinyConfig } from "./test-config.js";
import { inclusiveSums, inverseTransform, vocabulary } from "./test-distributions.js";

/** The head of this model turns its input row into the distribution's logits: only the first column of its table is not 0. */
const config: DecoderConfig = { ...tinyConfig, width: 4, vocabulary, rmsEpsilon: 1e-5 };
const { width } = config;

/** Float32 exponentials of one distribution as the engine computed them, and z = logits − max. */
export interface Masses {
  readonly z: Float32Array;
  readonly e: Float32Array;
}

export class Drawer {
  private constructor(private readonly sessions: Sessions) {}

  static async create(): Promise<Drawer> {
    return new Drawer(new Sessions(await loadRuntime(), 1));
  }

  close(): Promise<void> {
    return this.sessions.close();
  }

  private head(logits: Float32Array, rows: number) {
    const table = new Float32Array(vocabulary * width);
    logits.forEach((logit, v) => {
      table[v * width] = logit;
    });
    return {
      x: this.sessions.float(new Float32Array(rows * width).fill(1), [rows, width]),
      norm: this.sessions.float(new Float32Array(width).fill(1), [width]),
      table: this.sessions.float(table, [vocabulary, width]),
      inverseT: this.sessions.float(new Float32Array(rows).fill(1), [rows, 1]),
    };
  }

  /** What the engine's head and exponential make of the logits. */
  async masses(logits: Float32Array): Promise<Masses> {
    const rows = 2;
    const feeds = { ...this.head(logits, rows), ids: this.sessions.ints(new BigInt64Array(rows), [rows, 1]) };
    const { z } = await this.sessions.run("head", () => headForward(config, { full: true }), feeds);
    const exponential = () => {
      const g = new Graph();
      g.output("e", g.apply("Exp", [g.input("z", "float32", ["R", vocabulary])]), "float32", ["R", vocabulary]);
      return g.build();
    };
    const { e } = await this.sessions.run("exponential", exponential, { z });
    return { z: (z.data as Float32Array).slice(0, vocabulary), e: (e.data as Float32Array).slice(0, vocabulary) };
  }

  /** Tokens for the uniforms by the draw alone, over given exponentials. */
  async drawOnly({ e }: Masses, uniforms: Float64Array, rows: number): Promise<{ tokens: number[]; totals: number[] }> {
    const all = new Float32Array(rows * vocabulary);
    for (let r = 0; r < rows; r++) all.set(e, r * vocabulary);
    const fed = this.sessions.float(all, [rows, vocabulary]);
    return this.batches(uniforms, rows, (u) => this.sessions.run("draw only", () => drawOnlyGraph(vocabulary), { e: fed, u }));
  }

  /** Tokens for the uniforms by the whole graph of a decoding step, from the last layer's output on. */
  async draw(logits: Float32Array, uniforms: Float64Array, rows: number): Promise<{ tokens: number[]; totals: number[]; z: number[] }> {
    const head = this.head(logits, rows);
    const wants = { tempered: false, chosen: false, topK: 0, restricted: false };
    return this.batches(uniforms, rows, (u) => this.sessions.run("draw", () => drawGraph(config, wants), { ...head, u }));
  }

  private async batches(uniforms: Float64Array, rows: number, run: (u: ReturnType<Sessions["double"]>) => ReturnType<Sessions["run"]>) {
    const result = { tokens: [] as number[], totals: [] as number[], z: [] as number[] };
    for (let at = 0; at < uniforms.length; at += rows) {
      // The last batch is filled up with zeros, whose tokens are dropped.
      const u = new Float64Array(rows);
      u.set(uniforms.subarray(at, at + rows));
      const { token, total, z } = await run(this.sessions.double(u, [rows, 1]));
      const count = Math.min(rows, uniforms.length - at);
      for (let r = 0; r < count; r++) {
        result.tokens.push(Number((token.data as BigInt64Array)[r]));
        result.totals.push((total.data as Float64Array)[r]);
        if (z) result.z.push((z.data as Float32Array)[r]);
      }
    }
    return result;
  }
}

/** Draws that differ from the inverse transform in float64 over the same masses, and how far each uniform is from the nearest limit between the two tokens. */
export function differences(
  { e }: Masses,
  uniforms: Float64Array,
  tokens: readonly number[],
): { u: number; token: number; expected: number; distance: number }[] {
  const sums = inclusiveSums(e);
  const total = sums[sums.length - 1];
  return tokens.flatMap((token, i) => {
    const expected = inverseTransform(sums, uniforms[i]);
    const distance = Math.abs(sums[Math.min(token, expected)] / total - uniforms[i]);
    return token === expected ? [] : [{ u: uniforms[i], token, expected, distance }];
  });
}
