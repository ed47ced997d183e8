/** What a task is: problems that a program can check, by split and seed, with the verifier that checks them. */
import type { Json } from "../core/json.js";
import type { Message, Problem } from "../core/problem.js";
import type { RandomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Verdict } from "../core/verdict.js";
import type { Verifier } from "../verify/contract.js";

/** `train` for reinforcement, `warm` for worked solutions, `eval` for measuring. No problem is in two of them. */
export const splits = ["train", "warm", "eval"] as const;
export type Split = (typeof splits)[number];

export interface Task {
  readonly name: string;
  /** Name and hash of version, options, shares and verifier. */
  readonly id: string;
  /** As resolved, defaults included. */
  readonly options: { readonly [name: string]: Json };
  readonly verifier: Verifier;
  /** Response budget in tokens that no good answer exceeds; absent: the run must say it. */
  readonly maxTokens?: number;
  /** For policies that start from nothing; absent: the model folder's own. */
  readonly tokenizer?: Tokenizer;
  /** Number of problems in a split; `Infinity` where they are drawn. */
  size(split: Split): number;
  /**
   * n different problems of a split, the same for the same seed; those of a smaller n come first. The references have
   * been checked. Throws DataError when the split has fewer.
   */
  problems(split: Split, n: number, seed: number): readonly Problem[];
  /** The same n problems, or all where the split has fewer, with pauses in which the event loop goes on. Present where they are drawn. */
  pose?(split: Split, n: number, seed: number, onProgress?: (found: number) => void): Promise<readonly Problem[]>;
  /** A worked solution for a warm start, a pure function of problem and key: flawless, or with the habit that the options name. */
  solution?(problem: Problem, key: RandomKey): string;
  /** Where answers take several turns, a worked solution's next action; undefined: none. A pure function of problem, turns so far and key. */
  action?(problem: Problem, turns: readonly Exchange[], key: RandomKey): string | undefined;
  /** Present where an answer takes several turns. */
  readonly environment?: Environment<Json>;
}

/** The first n problems of a split for a seed, or all where it has fewer. `onProgress`: how many are drawn, now and then. */
export async function posedBy(task: Task, split: Split, n: number, seed: number, onProgress?: (found: number) => void): Promise<readonly Problem[]> {
  return task.pose ? task.pose(split, n, seed, onProgress) : task.problems(split, Math.min(n, task.size(split)), seed);
}

/** One problem as the author of a task writes it. */
export interface Row<A extends Json = Json> {
  /** A text is one user message. */
  readonly prompt: string | readonly Message[];
  /** The reference; absent: there is none. */
  readonly answer?: A;
  /** A worked solution; only training sees it. */
  readonly solution?: string;
  /** Absent: a hash of task and prompt. */
  readonly key?: string;
  /** Absent: by the hash of the key. */
  readonly split?: Split;
  readonly privileged?: Problem["privileged"];
  readonly tags?: Problem["tags"];
  /** Where it was written, for errors; no part of the problem. */
  readonly place?: string;
}

/** What a step of an environment gives back. `verdict`, `info` and the observation stay with the turn. */
export interface EnvironmentStep<S extends Json> {
  readonly state: S;
  /** What the policy reads next; of the last step only for the record. */
  readonly observation: readonly Message[];
  /** Of the whole conversation as it stands; the last turn's counts. Absent: the task's verifier judges the last action. */
  readonly verdict?: Verdict;
  /** Named numbers. */
  readonly info: { readonly [name: string]: number };
  readonly done: boolean;
  /** A wall clock decided something, so that the run cannot be repeated to the byte. */
  readonly clocked?: boolean;
}

/** Why an environment gave no step: it threw, or its deadline passed. */
export interface EnvironmentFault {
  readonly kind: "threw" | "deadline";
  readonly message: string;
}

/** What bounds a conversation, beside `max_tokens` for all of it. */
export interface EnvironmentLimits {
  /** Actions of the policy. Default 8. */
  readonly turns?: number;
  /** Tokens of one action; default: what is left of `max_tokens`. */
  readonly turnTokens?: number;
  /** What one observation may have: the rest is cut, with a note. Default 4000 characters and 1000 tokens. */
  readonly observationCharacters?: number;
  readonly observationTokens?: number;
  /** Of one call of `start` or `step`, in milliseconds. Default 30,000. */
  readonly deadlineMs?: number;
}

/**
 * A step function over serialisable state, so that snapshot, fork and resume are copies of the state (C16). The same
 * state, action and key give the same step. A conversation only grows: what was said stays as it was sampled.
 */
export interface Environment<S extends Json> {
  readonly limits?: EnvironmentLimits;
  start(problem: Problem, key: RandomKey): S | Promise<S>;
  step(state: S, action: string, key: RandomKey): EnvironmentStep<S> | Promise<EnvironmentStep<S>>;
  /** The step in place of one that threw or took too long; absent: the conversation ends there, unscored. */
  recover?(state: S, action: string, fault: EnvironmentFault): EnvironmentStep<S>;
}

/** One turn that is over: what was said, and what came back. */
export interface Exchange {
  readonly action: string;
  readonly observation: readonly Message[];
}
