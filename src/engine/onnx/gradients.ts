/** Where a backward pass leaves its gradients: in the arrays of what learns, the weights of a model or an adapter. */
import type { WeightArrays } from "./params.js";

export class Gradients {
  constructor(
    private readonly store: WeightArrays,
    /** Only an adapter learns, and a value head: nothing falls on the other weights. */
    readonly adapterOnly: boolean,
  ) {}

  /** What has accumulated on a parameter; undefined before anything fell on it. */
  get(name: string): Float32Array | undefined {
    return this.store.get(name).grad;
  }

  /** Puts an array in place of the accumulated one, which it contains. */
  set(name: string, data: Float32Array): void {
    this.store.setGradient(this.store.get(name), data);
  }

  /** Adds; the first array is adopted as it is, so the caller must not use it again. */
  add(name: string, data: Float32Array): void {
    const sum = this.get(name);
    if (sum) for (let i = 0; i < sum.length; i++) sum[i] += data[i];
    else this.set(name, data);
  }

  /** The array of a parameter, zeros if nothing fell on it yet. */
  zeros(name: string): Float32Array {
    return this.store.gradient(this.store.get(name));
  }
}
