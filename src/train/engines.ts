/** The engine of a run: in which form it runs on this machine, whether it fits into its memory, and its start. */
import { availableParallelism } from "node:os";
import { ConfigError } from "../core/errors.js";
import type { Engine, ModelInfo } from "../engine/contract.js";
import { allTargets } from "../engine/onnx/adapter.js";
import type { DecoderConfig } from "../engine/onnx/config.js";
import { inspectFolder, loadConfig, readConfig } from "../engine/onnx/folder.js";
import {
  type Alternative,
  availableMemory,
  estimateMemory,
  type MemoryEstimate,
  type MemoryPlan,
  refuseUnlessFits,
  rowsThatFit,
} from "../engine/onnx/memory.js";
import { isHidden } from "../engine/onnx/muon.js";
import { defaultPackPlaces } from "../engine/onnx/pack.js";
import { layoutOf, parameterCount, sizeOf } from "../engine/onnx/params.js";
import { localForm, startOnnx } from "../engine/onnx/start.js";
import { keyFrom } from "../engine/openai/settings.js";
import { parseConfig } from "../engine/table/config.js";
import { TableEngine } from "../engine/table/engine.js";
import { readFolder } from "../engine/table/files.js";
import { readLimits } from "../engine/tinker/folder.js";
import { defaultRank } from "../engine/tinker/link.js";
import { connectTinker } from "../engine/tinker/start.js";
import type { TrainConfig } from "./config.js";
import type { RolePlan } from "./roles.js";
import { isLoraForm, type LoraForm, type ServerLora } from "./starts.js";

/** The engine's settings with nothing left open. */
export type EngineForm = TrainConfig["engine"] & { readonly threads: number; readonly workers: number };

/** Options of an engine that are not for all, by the engine that reads them. */
const ofOne: { readonly [name: string]: readonly (keyof TrainConfig["engine"])[] } = {
  onnx: ["activations"],
  tinker: ["base_url", "served_model", "key_env", "round_tokens", "deadline_s", "away_s"],
};

/** Throws ConfigError for options that the engine would not read, and without the address of a server. */
function refuseOptionsOfOthers(engine: TrainConfig["engine"]): void {
  for (const [name, keys] of Object.entries(ofOne)) {
    const given = name === engine.name ? undefined : keys.find((key) => engine[key] !== undefined);
    if (given === undefined) continue;
    throw new ConfigError({ place: `engine.${given}`, cause: `it belongs to the engine ${name}, and this is ${engine.name}`, mend: "leave it out" });
  }
  if (engine.name === "tinker" && engine.base_url === undefined) {
    throw new ConfigError({ place: "engine.base_url", cause: "it is missing", mend: "give the server's address, such as http://127.0.0.1:8000 (--base-url)" });
  }
}

/** Whether the weights of an engine are on a server, which has its own base and trains adapters on it. */
export const isElsewhere = ({ name }: Pick<TrainConfig["engine"], "name">): boolean => name === "tinker";

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
  refuseOptionsOfOthers(engine);
  if (!isElsewhere(engine)) await refuseOtherEngine(engine.name, model);
  if (engine.name !== "onnx") {
    const where = isElsewhere(engine) ? "runs on a server" : "runs in this process";
    for (const key of ["workers", "threads"] as const) {
      if ((engine[key] ?? 1) === 1 || (key === "threads" && engine.name === "table")) continue;
      throw new ConfigError({ place: `engine.${key}`, cause: `it is ${engine[key]}, and the engine ${engine.name} ${where}`, mend: "set it to 1" });
    }
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
  readonly lora?: LoraForm | ServerLora;
};

type Others = readonly Pick<RolePlan, "trainable" | "shared" | "adapter">[];

/** Bytes that the engine's processes will need together; undefined for engines without an estimate. `prompt`: tokens of the longest prompt. */
export async function memoryOf(config: Sized, prompt: number, others: Others): Promise<MemoryEstimate | undefined> {
  const { engine, group, problems, max_tokens, lora } = config;
  if (engine.name !== "onnx") return undefined;
  const model = await loadConfig(config.model);
  const length = prompt + max_tokens;
  const rows = Math.ceil((group * problems) / engine.workers);
  const moments =
    config.optimizer?.rule === "sgd" ? ((config.optimizer.momentum ?? 0) > 0 ? 1 : 0) : config.optimizer?.rule === "muon" ? muonMoments(model) : 2;
  // A role that learns has a gradient and moments of its own: of its adapter, which then lies on the policy's weights or on weights of its own.
  const size = (trainable: boolean): number => (trainable ? 2 + moments : 1);
  const whole = others.reduce((sum, { trainable, shared, adapter }) => sum + (shared ? 0 : adapter ? 1 : size(trainable)), 0);
  const adapters = others.reduce((sum, { trainable, adapter }) => sum + (adapter ? size(trainable) : 0), 0);
  const earlier = config.overlap > 0 ? config.overlap + 1 : 0; // Weights that batches in flight are drawn from.
  const plan = (held: number): MemoryPlan =>
    isLoraForm(lora) ? { adapter: lora, copies: whole, adapterCopies: adapters + earlier + held } : { copies: whole + earlier + held };
  const slots = Math.max(length, Math.min(defaultPackPlaces, Math.ceil(rows / config.minibatches) * length));
  const sample = { kind: "sample", sequences: Math.min(256, rows), length } as const;
  const sequences = rowsThatFit(model, sample, plan(1 + moments), availableMemory() / engine.workers);
  const one = [
    estimateMemory(model, { kind: "train", slots, length, activations: engine.activations ?? "recompute", moments }, plan(0)),
    estimateMemory(model, { ...sample, sequences }, plan(1 + moments)),
  ].sort((a, b) => b.total - a.total)[0];
  const parts = Object.fromEntries(Object.entries(one.parts).map(([name, bytes]) => [name, bytes * engine.workers]));
  return { parts, total: one.total * engine.workers };
}

/** Moments a weight: one of each of the layers' matrices, two of the rest. */
function muonMoments(model: DecoderConfig): number {
  const hidden = layoutOf(model).reduce((sum, layout) => sum + (isHidden(layout) ? sizeOf(layout) : 0), 0);
  return 2 - hidden / parameterCount(model);
}

/** Throws MemoryError with the figures where the run would not fit into what is free, and with what would fit. */
export async function refuseUnlessRoom(config: Sized, prompt: number, others: Others): Promise<void> {
  const estimate = await memoryOf(config, prompt, others);
  if (estimate === undefined) return;
  const { engine, max_tokens, lora } = config;
  const available = availableMemory();
  const alternatives: Alternative[] = [];
  /** Adds the first change of several that fits. */
  const offer = async (...changes: readonly (readonly [what: string, change: Partial<Sized>])[]): Promise<void> => {
    for (const [what, change] of changes) {
      // Roles that begin as the policy does then share its weights.
      const roles = change.lora ? others.map((role) => ({ ...role, shared: true as const })) : others;
      const changed = (await memoryOf({ ...config, ...change }, prompt, roles)) as MemoryEstimate;
      if (changed.total > available) continue;
      alternatives.push({ what, estimate: changed });
      return;
    }
  };
  if (estimate.total > available) {
    if (engine.workers > 1) await offer(["engine.workers 1", { engine: { ...engine, workers: 1 } }]);
    if (engine.activations === "keep") await offer(["engine.activations recompute", { engine: { ...engine, activations: "recompute" } }]);
    const shorter = [2, 4, 8].filter((part) => max_tokens >= 16 * part).map((part) => Math.floor(max_tokens / part));
    await offer(...shorter.map((tokens): [string, Partial<Sized>] => [`max_tokens ${tokens}`, { max_tokens: tokens }]));
    const adapter = { rank: 16, alpha: 32, targets: [...allTargets] };
    if (lora === undefined) await offer(["an adapter of rank 16 in place of full training (--lora 16)", { lora: adapter }]);
  }
  refuseUnlessFits(estimate, available, "this run", () => alternatives);
}

/** What of a policy decides which prompts it can take, read from its folder before an engine is started. Throws ModelError for a folder that the engine would not load. */
export async function limitsOf(name: TrainConfig["engine"]["name"], folder: string): Promise<Pick<ModelInfo, "vocabulary" | "maxTokens">> {
  if (name === "table") return parseConfig((await readFolder(folder)).config, folder);
  if (name === "tinker") return readLimits(folder);
  const { vocabulary, maxPositions } = await inspectFolder(folder);
  return { vocabulary, maxTokens: maxPositions };
}

/** What of a run decides how its engine is started. */
export interface Starting {
  readonly engine: EngineForm;
  readonly seed: number;
  readonly lora?: { readonly rank?: number | undefined } | undefined;
}

/** Starts the engine in its form. `onNotice`: told in a sentence what a server is waited for. */
export async function startEngine({ engine, seed, lora }: Starting, onNotice: (text: string) => void = () => undefined): Promise<Engine> {
  const { name, threads, workers, activations } = engine;
  if (name === "table") return new TableEngine();
  if (name === "tinker") return connectTinker({ ...serverOptions(engine), rank: lora?.rank ?? defaultRank, seed, onNotice });
  return startOnnx({ engine: { threads, ...(activations ? { activations } : {}) }, workers });
}

/** How a server is reached. Throws ConfigError for a key that is not there. */
export function serverOptions(engine: Pick<TrainConfig["engine"], "base_url" | "served_model" | "key_env" | "round_tokens" | "deadline_s" | "away_s">) {
  const { base_url: baseUrl = "", served_model: baseModel, key_env, round_tokens: roundTokens, deadline_s, away_s } = engine;
  const key = keyFrom(key_env, "engine.key_env") ?? process.env.TINKER_API_KEY?.trim();
  return {
    baseUrl,
    ...(key && { key }),
    ...(baseModel !== undefined && { baseModel }),
    ...(roundTokens !== undefined && { roundTokens }),
    limits: { ...(deadline_s !== undefined && { deadlineMs: 1000 * deadline_s }), ...(away_s !== undefined && { awayMs: 1000 * away_s }) },
  };
}
