/**
 * What an engine needs beyond the contract so that several copies of it on one machine can train as one
 * (src/engine/remote/pool.ts): each gives its gradient into a file, each takes the sum of all, and all make the same step.
 */
import type { Engine, ParameterSet } from "./contract.js";

/** An engine that can be one of several equal workers. The set is never `inputs`, whose gradient goes to the caller. */
export interface Replica extends Engine {
  /** Writes the gradient accumulated so far to a file (flat-file.ts), in the order of `ModelInfo.tensors`, and keeps it; false when nothing was accumulated. */
  exportGradient(set: ParameterSet, file: string): Promise<boolean>;
  /** Puts the sum of such files, in their order, in place of what was accumulated; throws an ArgumentError when a length differs. */
  importGradient(set: ParameterSet, files: readonly string[]): Promise<void>;
}
