import type { Json } from "./json.js";

/** One message of a conversation, as chat templates know it. */
export interface Message {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
}

/** How far a reference answer can be trusted (C6). `withheld`: it exists, but the run hides it from the method. */
export type LabelState = "gold" | "pseudo" | "none" | "withheld";

/** The reference answer of a problem, with its label state and version (C6); only the end of a stage may change it. */
export interface Reference {
  readonly state: LabelState;
  /** What a verifier compares with; absent when `state` is `none`. */
  readonly answer?: Json;
  /** Counts the changes of this reference; 0 as loaded. */
  readonly version: number;
}

/** One checkable problem of a task. */
export interface Problem {
  /** Stable and unique within its data set: randomness, statistics and resume are keyed by it. */
  readonly key: string;
  readonly prompt: readonly Message[];
  readonly reference: Reference;
  /** Solution, hints, knowledge points…: only training may see them. */
  readonly privileged?: { readonly [name: string]: Json };
  /** Named facts for filters and tables (source, level, length); never shown to the policy. */
  readonly tags?: { readonly [name: string]: string | number | boolean };
}

const places = new WeakMap<Problem, string>();

/** Notes where a problem was written (file and line): for errors alone, so it is no part of the problem. */
export function notePlace(problem: Problem, place: string): void {
  places.set(problem, place);
}

/** Where a problem was written, else its key. */
export function placeOfProblem(problem: Problem): string {
  return places.get(problem) ?? `problem ${problem.key}`;
}

/** Rows added to, or put in place of, the embeddings at given positions of a context (C5). */
export interface InputRows {
  /** Positions in the context, ascending. */
  readonly positions: Int32Array;
  /** [positions][width], row-major. */
  readonly rows: Float32Array;
  readonly mode: "add" | "replace";
}

/** An opaque part that only some engines understand (an image, say); passed through untouched (C5). */
export interface MediaPart {
  readonly position: number;
  readonly type: string;
  readonly data: Uint8Array;
}

/** The exact token ids that a policy was conditioned on. Two contexts of one trajectory align by response index, never by text. */
export interface Context {
  readonly ids: Int32Array;
  /** `plain`, `guided`, `hindsight`, `evidence`… */
  readonly label: string;
  readonly rows?: InputRows;
  readonly media?: readonly MediaPart[];
}

/** A context of plain token ids. */
export function plainContext(ids: ArrayLike<number>, label = "plain"): Context {
  return { ids: Int32Array.from(ids), label };
}
