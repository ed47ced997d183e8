/**
 * Forward and backward passes of packed sequences through the segments: embedding, layers, head. What lies between
 * segments are plain arrays, so hidden states, input rows and gradients of inputs are loops here.
 */
import type { Tensor } from "onnxruntime-node";
import type { Context } from "../../core/problem.js";
import type { ScoreWant, Sequence } from "../contract.js";
import type { DecoderConfig } from "./config.js";
import type { Gradients } from "./gradients.js";
import { type Adapted, adapterWeights, type LinearName, layerBackward, layerForward, layerShapes, layerWeights } from "./layer.js";
import { type Pack, packMask } from "./pack.js";
import type { ParameterStore } from "./params.js";
import type { Feeds, Sessions } from "./sessions.js";

/** The weights of one model with their shape, and where an adapter runs with them. */
export interface Model extends Pick<ParameterStore, "config" | "get"> {
  readonly adapter?: {
    readonly targets: readonly LinearName[];
    readonly rank: number;
    /** The factor of B A, [1]. */
    readonly scale: Float32Array;
  };
}

/** Where a model's adapter lies, for graphs that run on so many threads. */
export const adaptedOf = ({ adapter }: Model, { threads }: Sessions): Adapted | undefined =>
  adapter && { targets: adapter.targets, rank: adapter.rank, blocked: threads > 1 };

/** The table that turns hidden states into logits. */
export const headName = (c: DecoderConfig): string => (c.tied ? "embed" : "head");

/** One pack on its way: what backward needs of forward. */
export interface PackState {
  readonly pack: Pack;
  readonly lengths: readonly number[];
  /** Residual stream before layer 0 … L − 1, and after the last. Each [N, width]. */
  readonly streams: Float32Array[];
  /** Kept activations of each layer, where the setting keeps them. */
  readonly kept: Feeds[];
  readonly common: Feeds;
}

/** Embeddings of a context and response, input rows applied, written to `out` from row `at` on. */
export function embed(model: Model, context: Context, response: Int32Array, out: Float32Array, at: number): void {
  const { width } = model.config;
  const table = model.get("embed").data;
  const put = (id: number, row: number) => {
    const from = id * width;
    const to = row * width;
    for (let i = 0; i < width; i++) out[to + i] = table[from + i];
  };
  context.ids.forEach((id, i) => put(id, at + i));
  response.forEach((id, i) => put(id, at + context.ids.length + i));
  const { rows } = context;
  rows?.positions.forEach((position, r) => {
    const to = (at + position) * width;
    for (let i = 0; i < width; i++) out[to + i] = rows.rows[r * width + i] + (rows.mode === "add" ? out[to + i] : 0);
  });
}

/** Feeds of a layer's weights, those of its adapter among them. */
export function layerFeeds(sessions: Sessions, model: Model, layer: number): Feeds {
  const shapes = layerShapes(model.config);
  const feeds = Object.fromEntries(layerWeights(model.config).map((name) => [name, sessions.weight(model.get(`layers.${layer}.${name}`).data, shapes[name])]));
  for (const name of adapterWeights(model.adapter?.targets)) {
    const { data, shape } = model.get(`layers.${layer}.${name}`);
    feeds[name] = sessions.weight(data, shape);
  }
  return feeds;
}

/** What all layers of an adapter share. */
export const adapterFeeds = (sessions: Sessions, { adapter }: Model): Feeds => (adapter ? { scale: sessions.weight(adapter.scale, [1]) } : {});

/** A name for sessions that is the same for models of the same shape. */
export const shapeKey = (c: DecoderConfig): string =>
  [c.width, c.heads, c.kvHeads, c.headDim, c.mlp, c.vocabulary, c.rmsEpsilon, c.layers, c.attentionBias, c.qkNorm].join("/");

/** A name for sessions of the layers, which also depends on where an adapter lies. */
export const layersKey = ({ config, adapter }: Model): string => `${shapeKey(config)} ${adapter ? `${adapter.targets.join()} ${adapter.rank}` : ""}`;

/** A pack needs two rows of places: a product with a single row takes another kernel, with other bits. */
function atLeastTwo(pack: Pack): Pack {
  return pack.rows * pack.length >= 2 ? pack : { ...pack, length: 2 };
}

/** Runs the layers over one pack. */
export async function forwardPack(sessions: Sessions, model: Model, given: Pack, sequences: readonly Sequence[], keep: boolean): Promise<PackState> {
  const pack = atLeastTwo(given);
  const { config: c } = model;
  const lengths = sequences.map(({ context, response }) => context.ids.length + response.length);
  const slots = pack.rows * pack.length;
  const x = new Float32Array(slots * c.width);
  const positions = new BigInt64Array(slots);
  for (const { sequence, row, start } of pack.places) {
    const { context, response } = sequences[sequence] as Sequence;
    const at = row * pack.length + start;
    embed(model, context, response, x, at);
    for (let i = 0; i < (lengths[sequence] as number); i++) positions[at + i] = BigInt(i);
  }
  const mask = packMask(pack, lengths);
  const common: Feeds = {
    positions: sessions.ints(positions, [pack.rows, pack.length]),
    mask: sessions.float(mask.data, [mask.rows, 1, pack.length, pack.length]),
    ...sessions.rotation(c, pack.length),
    ...adapterFeeds(sessions, model),
  };
  const streams: Float32Array[] = [x];
  const kept: Feeds[] = [];
  const name = `forward ${keep} ${layersKey(model)}`;
  for (let layer = 0; layer < c.layers; layer++) {
    const feeds = { x: sessions.float(streams[layer] as Float32Array, [slots, c.width]), ...layerFeeds(sessions, model, layer), ...common };
    const { y, ...rest } = await sessions.run(name, () => layerForward(c, keep ? "activations" : "nothing", adaptedOf(model, sessions)), feeds);
    streams.push((y as Tensor).data as Float32Array);
    kept.push(rest);
  }
  return { pack, lengths, streams, kept, common };
}

/**
 * Runs the layers backwards from `dy` [N, width], the gradient of the last residual stream. Adds weights' gradients to
 * `gradients`, or, without it, returns the gradient of the inputs only. Frees the state layer by layer.
 */
export async function backwardPack(
  sessions: Sessions,
  model: Model,
  state: PackState,
  dy: Float32Array,
  gradients: Gradients | undefined,
): Promise<Float32Array> {
  const { config: c } = model;
  const slots = state.pack.rows * state.pack.length;
  const keep = Object.keys(state.kept[0] ?? {}).length > 0;
  const name = `backward ${keep} ${gradients !== undefined} ${layersKey(model)}`;
  let gradient = dy;
  for (let layer = c.layers - 1; layer >= 0; layer--) {
    const feeds: Feeds = {
      x: sessions.float(state.streams[layer] as Float32Array, [slots, c.width]),
      dy: sessions.float(gradient, [slots, c.width]),
      ...layerFeeds(sessions, model, layer),
      ...state.common,
      ...state.kept[layer],
    };
    const { dx, ...weights } = await sessions.run(name, () => layerBackward(c, keep, gradients !== undefined, adaptedOf(model, sessions)), feeds);
    gradient = (dx as Tensor).data as Float32Array;
    for (const weight of Object.keys(weights)) gradients?.add(`layers.${layer}.${weight.slice(2)}`, (weights[weight] as Tensor).data as Float32Array);
    state.streams.length = layer;
    state.kept.length = layer;
  }
  return gradient;
}

/** Rows of the embedding table receive the gradient of each place that used them, in the order of places. */
export function addEmbeddingGradient(model: Model, state: PackState, sequences: readonly Sequence[], dx: Float32Array, gradients: Gradients): void {
  const { width } = model.config;
  const table = gradients.zeros("embed");
  for (const { sequence, row, start } of state.pack.places) {
    const { context, response } = sequences[sequence] as Sequence;
    const replaced = new Set(context.rows?.mode === "replace" ? context.rows.positions : []);
    const length = context.ids.length + response.length;
    for (let i = 0; i < length; i++) {
      if (replaced.has(i)) continue;
      const id = i < context.ids.length ? (context.ids[i] as number) : (response[i - context.ids.length] as number);
      const to = id * width;
      const from = (row * state.pack.length + start + i) * width;
      for (let j = 0; j < width; j++) table[to + j] += dx[from + j];
    }
  }
}

/** Residual streams asked for, one array a layer for each sequence: [context + response][width]. */
export function hiddenOf(
  model: Model,
  state: PackState,
  want: NonNullable<ScoreWant["hidden"]>,
  sequence: number,
  row: number,
  start: number,
): { [layer: string]: Float32Array } {
  const { width, layers, rmsEpsilon } = model.config;
  const from = (row * state.pack.length + start) * width;
  const to = from + (state.lengths[sequence] as number) * width;
  return Object.fromEntries(
    want.map((layer) => {
      const stream = (state.streams[layer === "final" ? layers : layer] as Float32Array).slice(from, to);
      if (layer === "final") normalise(stream, model.get("norm").data, rmsEpsilon);
      return [String(layer), stream];
    }),
  );
}

function normalise(rows: Float32Array, scale: Float32Array, epsilon: number): void {
  const width = scale.length;
  for (let at = 0; at < rows.length; at += width) {
    let sum = 0;
    for (let i = 0; i < width; i++) sum += rows[at + i] ** 2;
    const factor = 1 / Math.sqrt(sum / width + epsilon);
    for (let i = 0; i < width; i++) rows[at + i] *= factor * scale[i];
  }
}
