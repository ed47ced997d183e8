import { availableParallelism } from "node:os";
import type { Engine } from "../contract.js";
import { type SpawnOptions, spawnEngine, spawnPool } from "../remote/spawn.js";
import type { OnnxOptions } from "./process.js";

export interface StartOptions extends Omit<SpawnOptions, "entry" | "args"> {
  readonly engine: OnnxOptions;
}

/** ONNX Runtime may have to be installed first. */
const startMs = 600_000;

/** Starts the onnx engine in a process of its own, or in `workers` processes as one. */
export async function startOnnx(options: StartOptions): Promise<Engine> {
  const { engine, ...rest } = options;
  const entry = new URL(import.meta.url.endsWith(".ts") ? "./process.ts" : "./process.js", import.meta.url);
  const spawn: SpawnOptions = { deadlineMs: startMs, ...rest, entry, args: [JSON.stringify(engine)] };
  return (spawn.workers ?? 1) > 1 ? spawnPool(spawn) : spawnEngine(spawn);
}

/** Up to so many parameters we start one single-thread process a core: measured to be better at 1M (docs/performance.md); where it ends is our guess. */
const smallModel = 30_000_000;

/** Starts an engine on this machine in the form that suits a model of that size. */
export function startLocal(
  parameters: number,
  options: Omit<StartOptions, "engine" | "workers"> & { readonly engine?: Partial<OnnxOptions>; readonly cores?: number } = {},
): Promise<Engine> {
  const { cores, engine, ...rest } = options;
  const { workers, ...form } = localForm(parameters, cores);
  return startOnnx({ ...rest, engine: { ...form, ...engine }, workers });
}

/** Processes, threads of each, and whether activations are kept (small ones cost little memory and a quarter of the products), for a model of that size. */
export function localForm(
  parameters: number,
  cores: number = availableParallelism(),
): { readonly threads: number; readonly workers: number; readonly activations: "keep" | "recompute" } {
  return parameters > smallModel ? { threads: cores, workers: 1, activations: "recompute" } : { threads: 1, workers: cores, activations: "keep" };
}
