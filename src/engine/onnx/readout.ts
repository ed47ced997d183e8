/** The head over the rows of a pack on which something is read or a loss lives, in chunks that bound the memory of logits. */
import type { Tensor } from "onnxruntime-node";
import type { Derivatives, Scores, ScoreWant, Sequence } from "../contract.js";
import type { Gradients } from "./gradients.js";
import { type HeadLearns, type HeadWants, headBackward, headForward, padded } from "./head.js";
import { headName, type Model, type PackState, shapeKey } from "./pass.js";
import type { Feeds, Outputs, Sessions } from "./sessions.js";

/** Logits of a chunk take at most this many bytes. */
const chunkBytes = 100_663_296;

export type Writable<T> = { -readonly [key in keyof T]: T[key] };

/** One row: response token t of a sequence, read at place `at` of the pack. */
interface Row {
  readonly sequence: number;
  readonly t: number;
  readonly at: number;
}

/** The rows of a pack by the number of targets that their sequences want (0: none), since a graph has one. */
function rowsOf(state: PackState, sequences: readonly Sequence[], want: ScoreWant, filter: (sequence: number, t: number) => boolean): Map<number, Row[]> {
  const byTargets = new Map<number, Row[]>();
  for (const { sequence, row, start } of state.pack.places) {
    const { context, response } = sequences[sequence] as Sequence;
    const k = want.targets?.[sequence]?.k ?? 0;
    const rows = byTargets.get(k) ?? [];
    byTargets.set(k, rows);
    const count = response.length + (want.values ? 1 : 0);
    for (let t = 0; t < count; t++) if (filter(sequence, t)) rows.push({ sequence, t, at: row * state.pack.length + start + context.ids.length - 1 + t });
  }
  return byTargets;
}

export class Readout {
  constructor(
    private readonly sessions: Sessions,
    private readonly model: Model,
    private readonly sequences: readonly Sequence[],
    private readonly want: ScoreWant,
  ) {}

  /** Empty scores of all sequences, to be filled by `read`. */
  blank(identity: (sequence: Sequence) => string): Writable<Scores>[] {
    const { want } = this;
    const V = this.model.config.vocabulary;
    return this.sequences.map((sequence, i) => {
      const T = sequence.response.length;
      const k = want.targets?.[i]?.k;
      const K = want.topK;
      return {
        logp: new Float64Array(T),
        ...(want.entropy ? { entropy: new Float64Array(T) } : {}),
        ...(want.values ? { values: new Float64Array(T + 1) } : {}),
        ...(k ? { targetLogp: new Float64Array(T * k), targetTail: new Float64Array(T) } : {}),
        ...(K ? { top: { k: K, ids: new Int32Array(T * K), logp: new Float64Array(T * K), tail: new Float64Array(T) } } : {}),
        ...(want.full ? { full: new Float64Array(T * V) } : {}),
        weights: identity(sequence),
      };
    });
  }

  /** Reads everything that is wanted at the rows of a pack. */
  async read(state: PackState, scores: readonly Writable<Scores>[]): Promise<void> {
    for (const [k, rows] of rowsOf(state, this.sequences, this.want, () => true)) {
      for (const chunk of this.chunks(rows)) await this.readChunk(state, chunk, k, scores);
    }
  }

  private async readChunk(state: PackState, rows: readonly Row[], k: number, scores: readonly Writable<Scores>[]): Promise<void> {
    const { want } = this;
    const wants: HeadWants = { entropy: want.entropy ?? false, tail: k > 0, values: want.values ?? false, topK: want.topK ?? 0, full: want.full ?? false };
    const out = await this.sessions.run(
      `head ${Object.values(wants).join()} ${shapeKey(this.model.config)}`,
      () => headForward(this.model.config, wants),
      this.feeds(state, rows, k),
    );
    const array = (name: string) => (out[name] as Tensor).data as Float32Array | Float64Array;
    const total = array("total");
    const chosen = array("chosen");
    rows.forEach(({ sequence, t }, r) => {
      const s = scores[sequence] as Writable<Scores>;
      if (s.values) s.values[t] = array("value")[r] as number;
      if (t === s.logp.length) return;
      const log = Math.log(total[r] as number);
      s.logp[t] = (chosen[r * (k + 1)] as number) - log;
      if (s.entropy) s.entropy[t] = log - (array("energy")[r] as number) / (total[r] as number);
      for (let j = 0; j < k; j++) (s.targetLogp as Float64Array)[t * k + j] = (chosen[r * (k + 1) + 1 + j] as number) - log;
      if (s.targetTail && k > 0) s.targetTail[t] = Math.log(array("tail")[r] as number) - log;
      if (s.top) readTop(s.top, t, r, out, log);
      if (s.full) this.readFull(s.full, t, array("z"), r, log);
    });
  }

  private readFull(full: Float64Array, t: number, z: Float32Array | Float64Array, r: number, log: number): void {
    const V = this.model.config.vocabulary;
    const from = r * padded(V);
    for (let i = 0; i < V; i++) full[t * V + i] = (z[from + i] as number) - log;
  }

  /**
   * Runs the head backwards over the rows whose derivatives are not all zero. Returns the gradient [N, width] of the last
   * residual stream, or undefined if no row has any.
   */
  async differentiate(state: PackState, derivatives: readonly Derivatives[], gradients: Gradients | undefined): Promise<Float32Array | undefined> {
    const { width } = this.model.config;
    // Not a number is not zero: it must reach the gradient, where the step's guard names it.
    const set = (x: number | undefined): boolean => x !== undefined && x !== 0;
    const live = (i: number, t: number): boolean => {
      const d = derivatives[i];
      const k = this.want.targets?.[i]?.k ?? 0;
      const targets = d.dTargetLogp?.subarray(t * k, (t + 1) * k) ?? [];
      return set(d.dLogp?.[t]) || set(d.dEntropy?.[t]) || set(d.dValue?.[t]) || set(d.dTargetTail?.[t]) || targets.some(set);
    };
    let dy: Float32Array | undefined;
    for (const [k, rows] of rowsOf(state, this.sequences, this.want, live)) {
      for (const chunk of this.chunks(rows)) {
        const dx = await this.differentiateChunk(state, chunk, k, derivatives, gradients);
        dy ??= new Float32Array(state.pack.rows * state.pack.length * width);
        for (let r = 0; r < chunk.length; r++) {
          const to = (chunk[r] as Row).at * width;
          for (let i = 0; i < width; i++) dy[to + i] += dx[r * width + i];
        }
      }
    }
    return dy;
  }

  private async differentiateChunk(
    state: PackState,
    rows: readonly Row[],
    k: number,
    derivatives: readonly Derivatives[],
    gradients: Gradients | undefined,
  ): Promise<Float32Array> {
    const { config: c } = this.model;
    const of = (name: "dEntropy" | "dValue" | "dTargetTail") => rows.some(({ sequence, t }) => (derivatives[sequence][name]?.[t] ?? 0) !== 0);
    const wants: HeadWants = { entropy: of("dEntropy"), tail: k > 0, values: of("dValue") };
    const R = Math.max(2, rows.length);
    const column = (name: "dEntropy" | "dValue" | "dTargetTail") => {
      const data = new Float32Array(R);
      rows.forEach(({ sequence, t }, r) => {
        data[r] = derivatives[sequence]?.[name]?.[t] ?? 0;
      });
      return this.sessions.float(data, [R, 1]);
    };
    const d = new Float32Array(R * (k + 1));
    rows.forEach(({ sequence, t }, r) => {
      const given = derivatives[sequence] as Derivatives;
      d[r * (k + 1)] = given.dLogp?.[t] ?? 0;
      for (let j = 0; j < k; j++) d[r * (k + 1) + 1 + j] = given.dTargetLogp?.[t * k + j] ?? 0;
    });
    const table = headName(c);
    const learns: HeadLearns = gradients === undefined ? "nothing" : gradients.adapterOnly ? "values" : "all";
    const soFar = learns === "all" ? gradients?.get(table) : undefined;
    const feeds: Feeds = { ...this.feeds(state, rows, k), d: this.sessions.float(d, [R, k + 1]) };
    if (wants.tail) feeds.dTail = column("dTargetTail");
    if (wants.entropy) feeds.dEntropy = column("dEntropy");
    if (wants.values) feeds.dValue = column("dValue");
    if (soFar) feeds.soFar = this.sessions.float(soFar, [c.vocabulary, c.width]);
    const { dx, d_table, ...rest } = await this.sessions.run(
      `head backward ${Object.values(wants).join()} ${soFar !== undefined} ${learns} ${shapeKey(c)}`,
      () => headBackward(c, wants, soFar !== undefined, learns),
      feeds,
    );
    if (gradients) {
      if (d_table) gradients.set(table, d_table.data as Float32Array);
      const names: { readonly [output: string]: string } = { d_norm: "norm", d_valueWeight: "valueWeight", d_valueBias: "valueBias" };
      for (const output of Object.keys(rest)) gradients.add(names[output] as string, (rest[output] as Tensor).data as Float32Array);
    }
    return (dx as Tensor).data as Float32Array;
  }

  private chunks(rows: readonly Row[]): Row[][] {
    const size = Math.max(2, Math.floor(chunkBytes / 4 / padded(this.model.config.vocabulary)));
    return Array.from({ length: Math.ceil(rows.length / size) }, (_, i) => rows.slice(i * size, (i + 1) * size));
  }

  /** Feeds that forward and backward share; a lone row is doubled, since a product with one row takes another kernel. */
  private feeds(state: PackState, rows: readonly Row[], k: number): Feeds {
    const { config: c } = this.model;
    const R = Math.max(2, rows.length);
    const x = new Float32Array(R * c.width);
    const ids = new BigInt64Array(R * (k + 1));
    const targets = new BigInt64Array(R * k);
    const inverseT = new Float32Array(R).fill(1);
    const stream = state.streams[c.layers] as Float32Array;
    for (let r = 0; r < R; r++) {
      const { sequence, t, at } = rows[Math.min(r, rows.length - 1)] as Row;
      const { response, temperature } = this.sequences[sequence] as Sequence;
      for (let i = 0; i < c.width; i++) x[r * c.width + i] = stream[at * c.width + i];
      ids[r * (k + 1)] = BigInt(response[t] ?? 0);
      for (let j = 0; j < k; j++) {
        // The row after the last token has a value but no outcomes; any ids do.
        const id = BigInt(this.want.targets?.[sequence]?.ids[Math.min(t, response.length - 1) * k + j] ?? 0);
        ids[r * (k + 1) + 1 + j] = id;
        targets[r * k + j] = id;
      }
      inverseT[r] = 1 / temperature;
    }
    const { sessions, model } = this;
    const wantsValues = this.want.values === true;
    return {
      x: sessions.float(x, [R, c.width]),
      norm: sessions.weight(model.get("norm").data, [c.width]),
      table: sessions.weight(model.get(headName(c)).data, [c.vocabulary, c.width]),
      inverseT: sessions.float(inverseT, [R, 1]),
      ids: sessions.ints(ids, [R, k + 1]),
      ...(k > 0 ? { targets: sessions.ints(targets, [R, k]) } : {}),
      ...(wantsValues
        ? { valueWeight: sessions.weight(model.get("valueWeight").data, [1, c.width]), valueBias: sessions.weight(model.get("valueBias").data, [1]) }
        : {}),
    };
  }
}

/** The k most likely tokens of row r, into token t. */
export function readTop(top: NonNullable<Scores["top"]>, t: number, r: number, out: Outputs, log: number): void {
  const { k } = top;
  const z = (out.topZ as Tensor).data as Float32Array;
  const ids = (out.topIds as Tensor).data as BigInt64Array;
  for (let j = 0; j < k; j++) {
    top.logp[t * k + j] = (z[r * k + j] as number) - log;
    top.ids[t * k + j] = Number(ids[r * k + j]);
  }
  top.tail[t] = Math.log(((out.topTail as Tensor).data as Float64Array)[r] as number) - log;
}
