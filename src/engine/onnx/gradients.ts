/** Accumulated gradients of one parameter set, one array a parameter, each made when something first falls on it. */
import type { Parameter } from "./params.js";

export class Gradients {
  readonly arrays = new Map<string, Float32Array>();

  constructor(private readonly parameters: ReadonlyMap<string, Parameter>) {}

  /** Adds; the first array is adopted as it is, so the caller must not use it again. */
  add(name: string, data: Float32Array): void {
    const sum = this.arrays.get(name);
    if (!sum) this.arrays.set(name, data);
    else for (let i = 0; i < sum.length; i++) sum[i] += data[i];
  }

  /** The array of a parameter, zeros if nothing fell on it yet. */
  zeros(name: string): Float32Array {
    let array = this.arrays.get(name);
    if (!array) {
      array = new Float32Array((this.parameters.get(name) as Parameter).data.length);
      this.arrays.set(name, array);
    }
    return array;
  }
}
