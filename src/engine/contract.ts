/**
 * The engine contract. An engine holds models (roles), draws tokens from them, scores given tokens under them, and
 * accumulates gradients of losses that it does not know. Losses are plain TypeScript between `forward` and `backward`.
 * The engine sums and never averages: a token's weight contains the whole normaliser (C10).
 */

import type { Json } from "../core/json.js";
import type { Context } from "../core/problem.js";
import type { RandomKey } from "../core/random.js";
import type { StopReason, Truncation } from "../core/trajectory.js";

/** What an engine may be able to do. A method states what it needs; a missing one is an error before anything runs. */
export const capabilities = [
  "sample",
  "sample.forced",
  "sample.top-k",
  "sample.stop-strings",
  "sample.greedy",
  "sample.truncation",
  "sample.continue",
  "sample.gumbel",
  "sample.temperature",
  "sample.entropy",
  "score",
  "score.top-k",
  "score.targets",
  "score.hidden",
  "score.values",
  "score.full",
  "score.sum-squares",
  "score.head-gradient",
  "score.attention",
  "score.divergence",
  "score.logit-lens",
  "score.ablate",
  "score.temperature",
  "score.entropy",
  "train",
  "train.entropy",
  "train.targets",
  "train.values",
  "train.inputs",
  "optimizer.sgd",
  "optimizer.adamw",
  "optimizer.muon",
  "optimizer.clip",
  "optimizer.groups",
  "optimizer.moments",
  "optimizer.reset",
  "roles",
  "snapshots",
  "weights.tensors",
  "weights.combine",
  "weights.perturb",
  "adapters",
  "input-rows",
  "media",
  "save",
  "exact",
] as const;
export type Capability = (typeof capabilities)[number];

/** What an engine says of itself: every capability it has, and for each it lacks the reason in one sentence. */
export interface EngineInfo {
  readonly name: string;
  readonly has: ReadonlySet<Capability>;
  readonly lacks: { readonly [capability in Capability]?: string };
  /** Everything that decides bits: versions, threads, workers, processor. Enters the run's fingerprint. */
  readonly fingerprint: { readonly [key: string]: Json };
}

/** Which weights (C7): a role, at its current state or at a snapshot, with its adapter at a scale, or perturbed by a seed. */
export interface WeightsRef {
  readonly role: string;
  /** A snapshot's name; absent: current weights. */
  readonly at?: string;
  /** Factor of the role's adapter, default 1; 0 is the adapter off, which is its base bit for bit. Only where there is an adapter. */
  readonly scale?: number;
  readonly perturb?: { readonly seed: number; readonly sigma: number };
}

/** Temperatures that engines take: beyond them float32 cannot tell tokens apart. */
export const temperatures = { least: 1e-6, most: 1e6 } as const;

/** What receives a gradient (C10): `role:NAME`, which is the adapter alone where the role has one, or `inputs` (returned to the caller). */
export type ParameterSet = `role:${string}` | "inputs";

export interface SampleRequest {
  readonly context: Context;
  readonly weights: WeightsRef;
  /** Within `temperatures`. The most likely token is asked for with `greedy`, not with temperature 0. */
  readonly temperature: number;
  /** Draw the most likely token; the log-probs returned are still those of `temperature`. */
  readonly greedy?: boolean;
  readonly maxTokens: number;
  /** Ids that end the response (they belong to it), and strings that end it once its text contains them. */
  readonly stop: { readonly ids: readonly number[]; readonly strings?: readonly string[] };
  /** The noise of token i is a pure function of this key and i. */
  readonly key: RandomKey;
  /** Response tokens to be forced from the start; their log-probs are reported and their `sampled` is 0 (C8). */
  readonly forced?: Int32Array;
  /** Also return the k most likely tokens of each position with the log of the remaining mass. */
  readonly topK?: number;
  /** Draw from a part of the distribution at `temperature`: top-k, then top-p, then min-p (`truncated` in values.ts says exactly). */
  readonly truncation?: Truncation;
}

/** The k most likely tokens a position and the log of the remaining mass. All at the request's temperature, before truncation. */
export interface TopK {
  readonly k: number;
  readonly ids: Int32Array; // [tokens][k], most likely first, ties by lower id
  readonly logp: Float64Array; // [tokens][k]
  readonly tail: Float64Array; // [tokens]
}

export interface Sample {
  /** Index of the request that this answers. */
  readonly index: number;
  readonly ids: Int32Array;
  readonly sampled: Uint8Array;
  /** Log-probs at temperature 1, untruncated. NaN where the engine lacks `sample.temperature` and tells only `logp`, which is another number. [tokens] */
  readonly rawLogp: Float64Array;
  /**
   * Log-probs of the distribution drawn from: temperature and truncation applied; -Infinity for a forced token that is not kept.
   * NaN where the engine lacks `sample.temperature` and tells only `rawLogp`, which is another number. [tokens]
   */
  readonly logp: Float64Array;
  /** Entropy of the distribution at the request's temperature, before truncation; NaN where the engine lacks `sample.entropy`. [tokens] */
  readonly entropy: Float64Array;
  readonly stop: StopReason;
  readonly top?: TopK;
  /** Identity of the weights that drew it (`policy@12`). */
  readonly weights: string;
}

/** A context and response tokens to be scored or trained on, with the conditions (C9, C10). */
export interface Sequence {
  readonly context: Context; // at least one id: the first response token is predicted from it
  readonly response: Int32Array;
  readonly weights: WeightsRef;
  readonly temperature: number;
}

/** Sparse outcomes a position: the listed ids, and all others together as the tail (C12). */
export interface Targets {
  readonly k: number;
  readonly ids: Int32Array; // [tokens][k], distinct within a position
}

/** What `score` and `forward` return beside log-probs. */
export interface Want {
  readonly entropy?: boolean;
  readonly values?: boolean;
  /** One entry a sequence; undefined where a sequence wants none. */
  readonly targets?: readonly (Targets | undefined)[];
}

export interface ScoreWant extends Want {
  readonly topK?: number;
  /** Residual stream after layer l, before the final norm (0 = embeddings), and `final` after it, at every token of context and response. */
  readonly hidden?: readonly (number | "final")[];
  /** Full log-probs of every position. */
  readonly full?: boolean;
}

/** Everything at temperature and context of the sequence. Entry t belongs to response token t, read before it is seen. */
export interface Scores {
  readonly logp: Float64Array; // [tokens]
  readonly entropy?: Float64Array; // [tokens]
  readonly values?: Float64Array; // [tokens + 1]: one before each response token, and one after the last
  readonly targetLogp?: Float64Array; // [tokens][k]
  readonly targetTail?: Float64Array; // [tokens], log of the mass outside the listed ids
  readonly top?: TopK;
  readonly hidden?: { readonly [layer: string]: Float32Array }; // [context + response][width]
  readonly full?: Float64Array; // [tokens][vocabulary]
  readonly weights: string;
}

/** Derivatives of a loss to be minimised, of the numbers that `forward` returned for one sequence. Absent means zero. */
export interface Derivatives {
  readonly dLogp?: Float64Array; // [tokens]
  readonly dEntropy?: Float64Array; // [tokens]
  readonly dValue?: Float64Array; // [tokens + 1]
  readonly dTargetLogp?: Float64Array; // [tokens][k]
  readonly dTargetTail?: Float64Array; // [tokens]
}

export interface Forward {
  readonly handle: string;
  readonly scores: readonly Scores[];
}

/** What `backward` returns: rows of dL/d(input embeddings) when the parameter set is `inputs`. */
export interface Backward {
  readonly inputs?: readonly Float32Array[]; // per sequence [context + response][width]
}

/** Decay and rate of parameters whose name matches; the first match counts. */
export interface ParameterRule {
  /** Regular expression on the tensor's Hugging Face name. */
  readonly match: string;
  readonly rateScale?: number;
  readonly weightDecay?: number;
}

/** An update rule with its numbers of this step; schedules are resolved by the caller (src/engine/schedule.ts). */
export type UpdateRule =
  | { readonly rule: "sgd"; readonly rate: number; readonly momentum?: number; readonly weightDecay?: number }
  | {
      readonly rule: "adamw";
      readonly rate: number;
      readonly beta1?: number;
      readonly beta2?: number;
      readonly epsilon?: number;
      readonly weightDecay?: number;
    }
  | {
      /** Orthogonalised momentum on the matrices of the layers, AdamW with the betas and epsilon on all else. */
      readonly rule: "muon";
      readonly rate: number;
      readonly momentum?: number; // 0.95
      readonly nesterov?: boolean; // true
      /** What a matrix's step is multiplied with: sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns)), the default. */
      readonly adjust?: "original" | "match_rms_adamw";
      readonly beta1?: number;
      readonly beta2?: number;
      readonly epsilon?: number;
      readonly weightDecay?: number;
    };

export interface StepRequest {
  readonly set: ParameterSet;
  readonly update: UpdateRule;
  /** Clip the global norm to this; absent: no clipping. */
  readonly maxNorm?: number;
  readonly groups?: readonly ParameterRule[];
}

export interface StepResult {
  /** Global L2 norm of the gradient before clipping. */
  readonly gradNorm: number;
  readonly clipped: boolean;
  /** The step was left out because a gradient was not finite; the weights and moments are untouched and the gradient is dropped. */
  readonly skipped?: { readonly parameter: string; readonly count: number };
  /** Identity of the weights after the step. */
  readonly weights: string;
}

/** A tensor read or written in float64 (C14). */
export interface TensorValue {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: Float64Array;
}

/** What a model is, as far as callers need it. */
export interface ModelInfo {
  readonly role: string;
  readonly parameters: number;
  readonly vocabulary: number;
  readonly width: number;
  readonly layers: number;
  /** The longest context plus response, in tokens. */
  readonly maxTokens: number;
  readonly hasValueHead: boolean;
  readonly trainable: boolean;
  /** Names of the tensors, in Hugging Face order. */
  readonly tensors: readonly { readonly name: string; readonly shape: readonly number[] }[];
  readonly adapter?: AdapterInfo;
}

/** A low-rank adapter: W x + alpha / rank · B (A x) over frozen W (LoRA, arXiv 2106.09685). */
export interface AdapterOptions {
  readonly rank: number;
  readonly alpha: number;
  /** Linear layers by PEFT's names (`q_proj`…), in every layer; `all-linear`: all of them but the head. */
  readonly targets: readonly string[] | "all-linear";
}

export interface AdapterInfo extends AdapterOptions {
  readonly targets: readonly string[];
  /** How many numbers learn: of A and B, and of a value head. */
  readonly parameters: number;
  /** Tensors by PEFT's names, A before B, and those of a value head: what gradients are of, and what may be read and written beside the model's. */
  readonly tensors: readonly { readonly name: string; readonly shape: readonly number[] }[];
}

/** Where an adapter comes from: new (A uniform by seed, B zero, so that nothing changes yet), or a PEFT folder. */
export type AdapterSource = ({ readonly from: "new"; readonly seed: number } & AdapterOptions) | { readonly from: "folder"; readonly path: string };

/** Where a role's weights come from. */
export type ModelSource =
  | { readonly from: "folder"; readonly path: string }
  | { readonly from: "role"; readonly role: string } // a copy of its current weights
  | { readonly from: "base"; readonly role: string } // its current weights without its adapter, not copied until one of the two changes
  | { readonly from: "config"; readonly config: Json; readonly seed: number }; // random, keyed by seed and tensor name

export interface LoadRequest {
  readonly role: string;
  readonly source: ModelSource;
  readonly trainable: boolean;
  readonly valueHead?: boolean;
  /** An adapter on those weights, which then are frozen: the role's parameter set is the adapter (and its value head). A role that is loaded from its own base attaches one, or another, to what is there. */
  readonly adapter?: AdapterSource;
  /** Weights that once were the role's own come back as its snapshot, with their identity; the role itself, which must be there, stays as it is. */
  readonly snapshot?: { readonly name: string; readonly identity?: string };
}

/** How weights are written. */
export interface SaveOptions {
  /** Of a role with an adapter: a PEFT folder (the default), or a model folder with the adapter added to the weights. */
  readonly form?: "adapter" | "merged";
  /** Numbers of a model folder; f32 by default. Adapters are always f32. */
  readonly dtype?: "f32" | "bf16";
  /** What the configuration of an adapter says that its base is; default: the folder that it was loaded from. */
  readonly base?: string;
}

export interface Weights {
  load(request: LoadRequest): Promise<ModelInfo>;
  unload(role: string): Promise<void>;
  info(role: string): Promise<ModelInfo>;
  snapshot(role: string, name: string): Promise<void>;
  restore(role: string, name: string): Promise<void>;
  dropSnapshot(role: string, name: string): Promise<void>;
  read(ref: WeightsRef, names: readonly string[]): Promise<TensorValue[]>;
  write(role: string, tensors: readonly TensorValue[]): Promise<void>;
  /** Accumulated gradient of a parameter set, for tests and for update rules outside the engine. */
  readGradient(set: ParameterSet, names: readonly string[]): Promise<TensorValue[]>;
  zeroGradient(set: ParameterSet): Promise<void>;
  /** Optimizer state of a set (moments, step count), to a safetensors file and back: byte-exact. */
  saveOptimizer(set: ParameterSet, file: string): Promise<void>;
  loadOptimizer(set: ParameterSet, file: string): Promise<void>;
  /** Forgets optimizer state of a set, as if no step had been made; weights and their identity stay. */
  resetOptimizer(set: ParameterSet): Promise<void>;
  /** Adds a role's adapter to its weights: from then on it is a role without one, whose optimizer starts anew. */
  merge(role: string): Promise<ModelInfo>;
  /** An adapter as it begins, by seed; its gradient and optimizer state are forgotten. */
  resetAdapter(role: string, seed: number): Promise<void>;
  /** Writes a Hugging Face folder (config.json and safetensors), or the PEFT folder of an adapter. Written beside and renamed: never half a folder. */
  save(ref: WeightsRef, folder: string, options?: SaveOptions): Promise<void>;
}

/** What an engine did since it started; the run's ledger reads differences (C23). */
export interface Usage {
  readonly prefillTokens: number; // after sharing: a group of 16 on one prompt counts it once
  readonly sampledTokens: number;
  readonly scoredTokens: number;
  readonly trainedTokens: number;
  /** Token slots computed, padding included. */
  readonly slots: number;
  readonly busyMs: number;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface SampleOptions extends CallOptions {
  /**
   * Told every token of a response as it is there, forced ones included, in order: the request's index and the id. Where it
   * gives true the response ends with that token, its reason `stop` unless it ended with it anyway by an end token.
   */
  readonly onToken?: (index: number, id: number) => boolean;
}

/** One engine. Every call may be made while others run; results do not depend on their order of arrival. */
export interface Engine {
  readonly info: EngineInfo;
  readonly weights: Weights;
  /** Answers stream as they finish; `index` tells which request each belongs to. */
  sample(requests: readonly SampleRequest[], options?: SampleOptions): AsyncIterable<Sample>;
  score(sequences: readonly Sequence[], want?: ScoreWant, options?: CallOptions): Promise<Scores[]>;
  /** Log-probs of the weights being differentiated. The handle keeps what `backward` needs until it or `release` is called. */
  forward(sequences: readonly Sequence[], want?: Want, options?: CallOptions): Promise<Forward>;
  /** Adds the gradient of the loss to the parameter set, and frees the handle. */
  backward(handle: string, derivatives: readonly Derivatives[], set: ParameterSet): Promise<Backward>;
  release(handle: string): Promise<void>;
  step(request: StepRequest): Promise<StepResult>;
  usage(): Promise<Usage>;
  close(): Promise<void>;
}
