/**
 * What an engine needs beyond the contract so that several copies of it can train as one (src/engine/remote/pool.ts):
 * gradients are collected from all copies, one of them makes the step, and its new weights go to the others.
 */
import type { Engine, ParameterSet } from "./contract.js";

/** All tensors of a parameter set end to end, in the order of `ModelInfo.tensors`, in the precision the engine computes in. */
export type FlatArray = Float32Array | Float64Array;

/** The weights of a parameter set with their identity (`policy@12`). */
export interface FlatWeights {
  readonly identity: string;
  readonly data: FlatArray;
}

/** An engine that can be one of several equal workers. The set is never `inputs`, whose gradient goes to the caller. */
export interface Replica extends Engine {
  /**
   * The gradient accumulated so far, which the engine then forgets (as after `weights.zeroGradient`); undefined when
   * nothing was accumulated. The array belongs to the caller: the engine neither keeps nor reuses it.
   */
  takeGradient(set: ParameterSet): Promise<FlatArray | undefined>;
  /** Adds a gradient of the same layout, elementwise, to what is accumulated, and does not keep the array; throws an ArgumentError when the length differs. */
  addGradient(set: ParameterSet, gradient: FlatArray): Promise<void>;
  /** A copy of the current weights. */
  exportWeights(set: ParameterSet): Promise<FlatWeights>;
  /** Replaces the current weights and their identity, and does not keep the array; snapshots, gradient and optimizer state stay. Throws an ArgumentError when the length differs. */
  importWeights(set: ParameterSet, weights: FlatWeights): Promise<void>;
}
