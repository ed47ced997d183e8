/** The weights of a role at one moment: base, adapter if it has one, and who else refers to them. */
import type { AdapterInfo, ModelInfo } from "../contract.js";
import { type AdapterStore, peftName } from "./adapter.js";
import type { Parameter, ParameterStore, WeightArrays } from "./params.js";
import type { Model } from "./pass.js";

/** Weights with their identity: `policy@3` after three steps, `policy@3+1` when tensors were also written once. */
export interface Weighted {
  readonly store: ParameterStore;
  /** Learns in place of `store`, which is then frozen and may be that of other roles too. */
  readonly adapter?: AdapterStore;
  readonly identity: string;
}

/** What a gradient falls on. */
export const learningOf = ({ store, adapter }: Weighted): WeightArrays => adapter ?? store;

export const arraysOf = ({ store, adapter }: Weighted): readonly WeightArrays[] => (adapter ? [store, adapter] : [store]);

/** Marks weights as read by a running sample or a kept forward pass, which must not see them change; the function returned ends that. */
export function hold(weighted: Weighted): () => void {
  for (const arrays of arraysOf(weighted)) arrays.users++;
  return () => {
    for (const arrays of arraysOf(weighted)) arrays.users--;
  };
}

const models = new WeakMap<Weighted, Map<number, Model>>();

/** The weights as the graphs run them, with the adapter at a scale; the same object for the same weights and scale. */
export function modelOf(weighted: Weighted, scale = 1): Model {
  const known = models.get(weighted) ?? new Map<number, Model>();
  models.set(weighted, known);
  const factor = weighted.adapter ? scale : 0;
  const found = known.get(factor);
  if (found) return found;
  const { store, adapter } = weighted;
  const get = (name: string): Parameter => adapter?.find(name) ?? store.get(name);
  // With the adapter off no product of it runs at all, and the bits are those of the base.
  const low =
    adapter && factor !== 0 ? { adapter: { targets: adapter.targets, rank: adapter.options.rank, scale: Float32Array.of(factor * adapter.factor) } } : {};
  const model: Model = { config: store.config, get, ...low };
  known.set(factor, model);
  return model;
}

/** How weights at a scale of their adapter are called. */
export const identityAt = ({ identity }: Weighted, scale: number | undefined): string =>
  scale === undefined || scale === 1 ? identity : `${identity}*${scale}`;

/** A tensor in float64: of the adapter, or of the model with the adapter at a scale added. */
export function readTensor({ store, adapter }: Weighted, tensor: string, scale = 1): Float64Array {
  if (adapter?.has(tensor)) return adapter.read(tensor);
  const values = store.read(tensor);
  adapter?.addTo(tensor, values, scale);
  return values;
}

/** What a role says of itself. */
export function infoOf(role: string, weighted: Weighted, trainable: boolean): ModelInfo {
  const { store, adapter } = weighted;
  const { config, count } = store;
  return {
    role,
    parameters: count,
    vocabulary: config.vocabulary,
    width: config.width,
    layers: config.layers,
    maxTokens: config.maxPositions,
    hasValueHead: (adapter ?? store).hasValueHead,
    trainable,
    tensors: store.tensors,
    ...(adapter && { adapter: adapterInfo(adapter) }),
  };
}

const adapterInfo = ({ options, targets, count, tensors }: AdapterStore): AdapterInfo => ({
  rank: options.rank,
  alpha: options.alpha,
  targets: targets.map(peftName),
  parameters: count,
  tensors,
});
