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
  /** A worked solution for a warm start, a pure function of problem and key: flawless, or with the habit that the options name. */
  solution?(problem: Problem, key: RandomKey): string;
  /** Present where an answer takes several turns. */
  readonly environment?: Environment<Json>;
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
  readonly observation: readonly Message[];
  readonly verdict?: Verdict;
  /** Named numbers. */
  readonly info: { readonly [name: string]: number };
  readonly done: boolean;
}

/** A step function over serialisable state, so that snapshot, fork and resume are copies of the state (C16). */
export interface Environment<S extends Json> {
  start(problem: Problem, key: RandomKey): S | Promise<S>;
  step(state: S, action: string, key: RandomKey): EnvironmentStep<S> | Promise<EnvironmentStep<S>>;
}
