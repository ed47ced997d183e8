/**
 * The models of the table engine: logits = bias + Wᵀ x(t), where x(t) are the features at position t. A softmax table
 * is the case of one-hot features; its rows are the states. The "input row" of a position (C5) is its feature vector.
 */
import type { Context } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { ModelInfo } from "../contract.js";
import { type TableConfig, widthOf } from "./config.js";

/** Nonzero features of one position. */
export interface Features {
  readonly indices: Int32Array;
  readonly values: Float64Array;
}

/** The gradient of the logits at one position, and that of the value where there is a head. */
export interface OutputGradient {
  readonly logits: Float64Array;
  readonly value: number;
}

export type Tensors = ReadonlyMap<string, Float64Array>;

export const weightName = "logits.weight";
export const biasName = "logits.bias";
export const valueWeightName = "value_head.weight";
export const valueBiasName = "value_head.bias";

/** The shape of a model; the weights are handed in, so that roles, snapshots and copies share one. */
export class TableModel {
  readonly width: number;
  readonly vocabulary: number;
  readonly tensors: ModelInfo["tensors"];

  constructor(
    readonly config: TableConfig,
    readonly hasValueHead: boolean,
  ) {
    this.width = widthOf(config);
    this.vocabulary = config.vocabulary;
    this.tensors = [
      { name: weightName, shape: [this.width, this.vocabulary] },
      ...(config.kind === "linear" ? [{ name: biasName, shape: [this.vocabulary] }] : []),
      ...(hasValueHead
        ? [
            { name: valueWeightName, shape: [1, this.width] },
            { name: valueBiasName, shape: [1] },
          ]
        : []),
    ];
  }

  /** Zeros of the shape of every tensor, in order. */
  zeros(): Map<string, Float64Array> {
    return new Map(this.tensors.map(({ name, shape }) => [name, new Float64Array(shape.reduce((a, b) => a * b, 1))]));
  }

  /** Normal numbers of standard deviation `init`, keyed by seed and tensor name; biases are 0. */
  random(seed: number): Tensors {
    const tensors = this.zeros();
    for (const [name, data] of tensors) {
      if (name.endsWith("bias")) continue;
      const stream = new Stream(randomKey({ seed, purpose: `init:${name}` }));
      for (let i = 0; i < data.length; i++) data[i] = this.config.init * stream.normal();
    }
    return tensors;
  }

  info(role: string, trainable: boolean): ModelInfo {
    const parameters = this.tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
    const { vocabulary, width, hasValueHead, tensors } = this;
    return { role, parameters, vocabulary, width, layers: 0, maxTokens: this.config.maxTokens, hasValueHead, trainable, tensors };
  }

  /** Features at a position of context and response; they see that token and those before it. */
  features(context: Context, ids: ArrayLike<number>, position: number): Features {
    const base = this.baseFeatures(ids, position);
    const { rows } = context;
    const row = rows ? rows.positions.indexOf(position) : -1;
    if (rows === undefined || row < 0) return base;
    const dense = Float64Array.from(rows.rows.subarray(row * this.width, (row + 1) * this.width));
    if (rows.mode === "add") for (let i = 0; i < base.indices.length; i++) dense[base.indices[i]] += base.values[i];
    return { indices: Int32Array.from(dense.keys()), values: dense };
  }

  private baseFeatures(ids: ArrayLike<number>, position: number): Features {
    const { config } = this;
    if (config.kind === "table") return { indices: Int32Array.of(this.state(ids, position)), values: Float64Array.of(1) };
    if (config.features === "rows") return { indices: new Int32Array(0), values: new Float64Array(0) };
    const length = Math.min(config.window, position + 1);
    const indices = Int32Array.from({ length }, (_, back) => back * config.vocabulary + ids[position - back]);
    return { indices, values: new Float64Array(length).fill(1) };
  }

  /** Row of the table: last tokens (the vocabulary's size stands for "before the beginning"), then position. */
  private state(ids: ArrayLike<number>, position: number): number {
    const { config } = this;
    if (config.kind !== "table") return 0;
    const { order, positions, buckets, vocabulary } = config;
    const digits = Array.from({ length: order }, (_, back) => (back > position ? vocabulary : ids[position - back]));
    digits.push(Math.min(position, positions - 1));
    if (buckets === undefined) return digits.slice(0, -1).reduce((state, digit) => state * (vocabulary + 1) + digit, 0) * positions + digits[order];
    // FNV-1a over whole numbers: any fixed spread will do.
    let hash = 0x811c9dc5;
    for (const digit of digits) hash = Math.imul(hash ^ digit, 0x01000193);
    return (hash >>> 0) % buckets;
  }

  logits(tensors: Tensors, { indices, values }: Features): Float64Array {
    const { vocabulary } = this;
    const weight = tensors.get(weightName)!;
    const result = tensors.get(biasName)?.slice() ?? new Float64Array(vocabulary);
    for (let i = 0; i < indices.length; i++) {
      const start = indices[i] * vocabulary;
      for (let v = 0; v < vocabulary; v++) result[v] += values[i] * weight[start + v];
    }
    return result;
  }

  value(tensors: Tensors, { indices, values }: Features): number {
    const weight = tensors.get(valueWeightName)!;
    let sum = tensors.get(valueBiasName)![0];
    for (let i = 0; i < indices.length; i++) sum += values[i] * weight[indices[i]];
    return sum;
  }

  /** Adds the gradient of one position to that of the weights. */
  addWeightGradient(gradient: Map<string, Float64Array>, { indices, values }: Features, { logits, value }: OutputGradient): void {
    const { vocabulary } = this;
    const weight = gradient.get(weightName)!;
    for (let i = 0; i < indices.length; i++) {
      const start = indices[i] * vocabulary;
      for (let v = 0; v < vocabulary; v++) weight[start + v] += values[i] * logits[v];
    }
    const bias = gradient.get(biasName);
    if (bias) for (let v = 0; v < vocabulary; v++) bias[v] += logits[v];
    if (value === 0) return;
    const head = gradient.get(valueWeightName)!;
    for (let i = 0; i < indices.length; i++) head[indices[i]] += values[i] * value;
    gradient.get(valueBiasName)![0] += value;
  }

  /** dL/dx of one position. */
  inputGradient(tensors: Tensors, { logits, value }: OutputGradient): Float32Array {
    const { vocabulary, width } = this;
    const weight = tensors.get(weightName)!;
    const head = tensors.get(valueWeightName);
    return Float32Array.from({ length: width }, (_, feature) => {
      let sum = value === 0 ? 0 : value * head![feature];
      for (let v = 0; v < vocabulary; v++) sum += logits[v] * weight[feature * vocabulary + v];
      return sum;
    });
  }

  /** The feature vector in full: all that this model has of a hidden state. */
  dense({ indices, values }: Features): Float32Array {
    const result = new Float32Array(this.width);
    for (let i = 0; i < indices.length; i++) result[indices[i]] = values[i];
    return result;
  }
}
