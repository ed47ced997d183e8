/**
 * Keys and values of the sequences being decoded, owned by us and fed to the decode graph: [row][head][place][headDim] a
 * layer, each row's places from 0 on. Rows are kept dense: when one ends, the last one takes its place.
 */
import type { DecoderConfig } from "./config.js";
import type { Feeds, Outputs, Sessions } from "./sessions.js";

export class KeyValueCache {
  private readonly keys: Float32Array[];
  private readonly values: Float32Array[];
  private places: number;
  private fed: { readonly rows: number; readonly feeds: Feeds } | undefined;

  /** Room for `places` places a row at first. */
  constructor(
    private readonly config: DecoderConfig,
    private readonly rows: number,
    places: number,
  ) {
    this.places = capacityFor(places);
    const make = () => Array.from({ length: config.layers }, () => new Float32Array(rows * this.rowSize));
    this.keys = make();
    this.values = make();
  }

  /** Places a row has now. */
  get capacity(): number {
    return this.places;
  }

  private get rowSize(): number {
    return this.config.kvHeads * this.places * this.config.headDim;
  }

  /** Makes room for `needed` places a row, by a quarter: each place costs time in every step, used or not. */
  reserve(needed: number): void {
    if (needed <= this.places) return;
    const before = this.places;
    this.places = capacityFor(Math.max(needed, Math.ceil(1.25 * before)));
    this.fed = undefined;
    const { kvHeads, headDim: D } = this.config;
    for (const arrays of [this.keys, this.values]) {
      arrays.forEach((old, layer) => {
        const grown = new Float32Array(this.rows * this.rowSize);
        for (let i = 0; i < this.rows * kvHeads; i++) grown.set(old.subarray(i * before * D, (i + 1) * before * D), i * this.places * D);
        arrays[layer] = grown;
      });
    }
  }

  /** Copies the first `count` places of a row of prefilled keys and values ([B][heads][T][headDim], T = `length`) into a row. */
  fill(row: number, layer: number, keys: Float32Array, values: Float32Array, from: number, length: number, count: number): void {
    const { kvHeads, headDim: D } = this.config;
    for (let h = 0; h < kvHeads; h++) {
      const source = (from * kvHeads + h) * length * D;
      const to = (row * kvHeads + h) * this.places * D;
      (this.keys[layer] as Float32Array).set(keys.subarray(source, source + count * D), to);
      (this.values[layer] as Float32Array).set(values.subarray(source, source + count * D), to);
    }
  }

  /** Writes the keys and values of this step's tokens, one a row, at each row's place. */
  append(out: Outputs, places: readonly number[]): void {
    const { kvHeads, headDim: D, layers } = this.config;
    for (let layer = 0; layer < layers; layer++) {
      const pairs = [
        [out[`newK_${layer}`]?.data as Float32Array, this.keys[layer] as Float32Array],
        [out[`newV_${layer}`]?.data as Float32Array, this.values[layer] as Float32Array],
      ] as const;
      for (const [source, target] of pairs) {
        for (let row = 0; row < places.length; row++) {
          for (let h = 0; h < kvHeads; h++) {
            const from = (row * kvHeads + h) * D;
            const to = ((row * kvHeads + h) * this.places + (places[row] as number)) * D;
            for (let i = 0; i < D; i++) target[to + i] = source[from + i];
          }
        }
      }
    }
  }

  /** Moves a row into the place of another. */
  move(from: number, to: number): void {
    const size = this.rowSize;
    for (const arrays of [this.keys, this.values]) for (const array of arrays) array.copyWithin(to * size, from * size, (from + 1) * size);
  }

  /** The first `rows` rows as feeds of the decode graph; the same tensors until rows or places change. */
  feeds(sessions: Sessions, rows: number): Feeds {
    if (this.fed?.rows === rows) return this.fed.feeds;
    const { kvHeads, headDim: D } = this.config;
    const feeds: Feeds = {};
    this.fed = { rows, feeds };
    const dims = [rows, kvHeads, this.places, D];
    this.keys.forEach((array, layer) => {
      feeds[`pastK_${layer}`] = sessions.float(array.subarray(0, rows * this.rowSize), dims);
      feeds[`pastV_${layer}`] = sessions.float((this.values[layer] as Float32Array).subarray(0, rows * this.rowSize), dims);
    });
    return feeds;
  }
}

/** Together with the token's own place, whole vectors: a safeguard of the order in which the softmax sums, as evenLength is (pack.ts). */
const capacityFor = (places: number): number => Math.ceil((places + 1) / 16) * 16 - 1;
