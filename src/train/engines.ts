/** The engine of a run: in which form it runs on this machine, whether it fits into its memory, and its start. */
import { availableParallelism } from "node:os";
import { ConfigError } from "../core/errors.js";
import type { Engine, ModelInfo } from "../engine/contract.js";
import type { DecoderConfig } from "../engine/onnx/config.js";
import { inspectFolder, loadConfig, readConfig } from "../engine/onnx/folder.js";
import { availableMemory, estimateMemory, type MemoryEstimate, refuseUnlessFits } from "../engine/onnx/memory.js";
import { isHidden } from "../engine/onnx/muon.js";
import { defaultPackPlaces } from "../engine/onnx/pack.js";
import { layoutOf, parameterCount, sizeOf } from "../engine/onnx/params.js";
import { localForm, startOnnx } from "../engine/onnx/start.js";
import { parseConfig } from "../engine/table/config.js";
import { TableEngine } from "../engine/table/engine.js";
import { readFolder } from "../engine/table/files.js";
import type { TrainConfig } from "./config.js";

/** The engine's settings with nothing left open. */
export type EngineForm = TrainConfig["engine"] & { readonly threads: number; readonly workers: number };

/** Throws ConfigError where the policy is of the other engine's kind. */
async function refuseOtherEngine(name: TrainConfig["engine"]["name"], folder: string): Promise<void> {
  const config = await readConfig(folder);
  const isTable = typeof config === "object" && config !== null && "kind" in config && !("architectures" in config);
  if (isTable === (name === "table")) return;
  const kind = isTable ? "a softmax table or linear softmax" : "no softmax table";
  throw new ConfigError({ place: "engine.name", cause: `it is ${name}, and ${folder} is ${kind}`, mend: `set it to ${isTable ? "table" : "onnx"}` });
}

/** Processes and threads: as set, else what suits the size of the policy. */
export async function engineForm({ engine, model }: Pick<TrainConfig, "engine" | "model">): Promise<EngineForm> {
  await refuseOtherEngine(engine.name, model);
  if (engine.name === "table") {
    if ((engine.workers ?? 1) > 1)
      throw new ConfigError({ place: "engine.workers", cause: `it is ${engine.workers}, and the engine table runs in this process`, mend: "set it to 1" });
    return { ...engine, threads: 1, workers: 1 };
  }
  const cores = availableParallelism();
  if (engine.workers !== undefined) return { ...engine, workers: engine.workers, threads: engine.threads ?? Math.max(1, Math.floor(cores / engine.workers)) };
  if (engine.threads !== undefined) return { ...engine, threads: engine.threads, workers: 1 };
  return { ...engine, ...localForm(parameterCount(await loadConfig(model)), cores) };
}

type Sized = Pick<TrainConfig, "model" | "group" | "problems" | "minibatches" | "optimizer" | "overlap"> & {
  readonly engine: EngineForm;
  readonly max_tokens: number;
};

/** Bytes that the engine's processes will need together; undefined for engines without an estimate. `prompt`: tokens of the longest prompt. */
export async function memoryOf(config: Sized, prompt: number, others: readonly { readonly trainable: boolean }[]): Promise<MemoryEstimate | undefined> {
  const { engine, group, problems, max_tokens } = config;
  if (engine.name !== "onnx") return undefined;
  const model = await loadConfig(config.model);
  const length = prompt + max_tokens;
  const rows = Math.ceil((group * problems) / engine.workers);
  const moments =
    config.optimizer?.rule === "sgd" ? ((config.optimizer.momentum ?? 0) > 0 ? 1 : 0) : config.optimizer?.rule === "muon" ? muonMoments(model) : 2;
  // A role that learns has a gradient and moments of its own.
  const earlier = config.overlap > 0 ? config.overlap + 1 : 0; // Weights that batches in flight are drawn from.
  const copies = others.reduce((sum, { trainable }) => sum + (trainable ? 2 + moments : 1), earlier);
  const slots = Math.max(length, Math.min(defaultPackPlaces, Math.ceil(rows / config.minibatches) * length));
  const one = [
    estimateMemory(model, { kind: "train", slots, length, activations: engine.activations ?? "recompute", moments }, { copies }),
    estimateMemory(model, { kind: "sample", sequences: Math.min(256, rows), length }, { copies: copies + 1 + moments }),
  ].sort((a, b) => b.total - a.total)[0];
  const parts = Object.fromEntries(Object.entries(one.parts).map(([name, bytes]) => [name, bytes * engine.workers]));
  return { parts, total: one.total * engine.workers };
}

/** Moments a weight: one of each of the layers' matrices, two of the rest. */
function muonMoments(model: DecoderConfig): number {
  const hidden = layoutOf(model).reduce((sum, layout) => sum + (isHidden(layout) ? sizeOf(layout) : 0), 0);
  return 2 - hidden / parameterCount(model);
}

/** Throws MemoryError with the figures where the run would not fit into what is free. */
export async function refuseUnlessRoom(config: Sized, prompt: number, others: readonly { readonly trainable: boolean }[]): Promise<void> {
  const estimate = await memoryOf(config, prompt, others);
  if (estimate) refuseUnlessFits(estimate, availableMemory(), "this run");
}

/** What of a policy decides which prompts it can take, read from its folder before an engine is started. Throws ModelError for a folder that the engine would not load. */
export async function limitsOf(name: TrainConfig["engine"]["name"], folder: string): Promise<Pick<ModelInfo, "vocabulary" | "maxTokens">> {
  if (name === "table") return parseConfig((await readFolder(folder)).config, folder);
  const { vocabulary, maxPositions } = await inspectFolder(folder);
  return { vocabulary, maxTokens: maxPositions };
}

/** Starts the engine in its form. */
export async function startEngine({ engine }: { readonly engine: EngineForm }): Promise<Engine> {
  const { name, threads, workers, activations } = engine;
  if (name === "table") return new TableEngine();
  return startOnnx({ engine: { threads, ...(activations ? { activations } : {}) }, workers });
}
