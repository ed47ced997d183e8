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
