import type { Context, Problem } from "./problem.js";
import type { RandomKey } from "./random.js";
import type { Verdict } from "./verdict.js";

/** The conditions under which log-probs were computed; two sets with different conditions must not form a ratio by accident (C3). */
export interface Conditions {
  /** Label of the context. */
  readonly context: string;
  /** Identity of the weights, as the engine reports it (`policy@12`). */
  readonly weights: string;
  readonly temperature: number;
  /** Top-p, top-k or min-p in force; training samples have none (C8). */
  readonly truncation?: Truncation;
}

/**
 * Restriction of the sampled distribution: top-k, then top-p of what is left, then min-p. For evaluation only, unless a method's
 * specification asks for it (C8): a method that trains on such answers says so by needing `sample.truncation`.
 */
export interface Truncation {
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
}

/** Log-probs of the response tokens in nats, one a token, with their conditions. */
export interface LogProbs {
  readonly values: Float64Array;
  readonly conditions: Conditions;
}

/** A named range of response tokens: `answer`, `turn`, `observation`, `char`, `edit`. */
export interface Span {
  readonly name: string;
  /** First token, counted from the start of the response. */
  readonly start: number;
  /** One past the last token. */
  readonly end: number;
}

/** Why a response ended: an end token, a stop string, its token budget, or a cancelled request. */
export type StopReason = "eos" | "stop" | "length" | "cancelled";

/** Role of the model that wrote a trajectory and what it is for (C2). Only `train` enters statistics and loss. */
export type Purpose = "train" | "aux";

/** One turn of a conversation with an environment (C16); its tokens are the span `turn` of the same number. */
export interface Turn {
  /** What the policy wrote. */
  readonly action: string;
  /** What came back, as it was shown: the tokens of the span `observation` after it, or of none where nothing follows. */
  readonly observation: string;
  /** The environment's, of the conversation up to here. */
  readonly verdict?: Verdict;
  /** The environment's named numbers. */
  readonly info: { readonly [name: string]: number };
  /** Characters of the observation that its budget left out. */
  readonly cut?: number;
  /** Why the environment gave no step of its own. */
  readonly fault?: string;
}

/** One response, or a whole conversation: its turns extend each other token by token, with observations between them. */
export interface Trajectory {
  /** Unique in the run. */
  readonly key: string;
  /** Key of its problem. */
  readonly problem: string;
  /** Index within its group. */
  readonly member: number;
  /** Trajectories of one episode share this; group statistics count episodes, not rows (C2). */
  readonly episode: string;
  readonly turn: number;
  readonly role: string;
  readonly purpose: Purpose;
  /** What it was sampled under. */
  readonly sampledUnder: Context;
  /** What it is trained under; the same object unless a method says otherwise. */
  readonly trainedUnder: Context;
  /** Token ids of the response, forced tokens, a sampled end token and observations included. */
  readonly response: Int32Array;
  /** What was judged: the response, of a conversation its last action. */
  readonly text: string;
  /** 1 where the policy drew the token, 0 where it was forced or observed. [tokens] */
  readonly sampled: Uint8Array;
  /** 1 where the reward's coefficient may fall. [tokens] */
  readonly reward: Uint8Array;
  /** 1 where loss terms may fall. [tokens] */
  readonly loss: Uint8Array;
  /** Under the conditions of sampling; 0 for observed tokens, which nobody drew. */
  readonly behaviour: LogProbs;
  /** Under the conditions of training at the weights of the rollout; absent where they equal `behaviour`. */
  readonly old?: LogProbs;
  /** Entropy of the distribution each token was drawn from, in nats. [tokens] */
  readonly entropy: Float64Array;
  readonly spans: readonly Span[];
  /** Of a conversation, in order. */
  readonly turns?: readonly Turn[];
  readonly stop: StopReason;
  /** The trajectory it was forked from and the first token that is its own; a forked child owns tokens from there on (C2). */
  readonly parent?: { readonly key: string; readonly fork: number };
  /** Number of optimizer steps behind the weights that wrote it; staleness is computed from it. */
  readonly policyVersion: number;
  readonly random: RandomKey;
  readonly verdict: Verdict;
}

/** Trajectories of one problem that are compared with each other. Ragged; may have grown over several rounds. */
export interface Group {
  readonly key: string;
  readonly problem: Problem;
  /** Kinds are normalised and aggregated apart (C2). */
  readonly kind: string;
  readonly weight: number;
  readonly trajectories: readonly Trajectory[];
}

/** The groups that one optimizer batch trains on, in key order (C1). */
export interface Batch {
  readonly step: number;
  readonly groups: readonly Group[];
}

/** The members of a group that enter statistics and loss. */
export function trained(group: Group): readonly Trajectory[] {
  return group.trajectories.filter((t) => t.purpose === "train");
}
