import type { Json } from "./json.js";
import type { Problem } from "./problem.js";
import type { Group, Trajectory } from "./trajectory.js";

/** What a note can be left on. */
export type NoteHolder = Problem | Trajectory | Group;

/** A typed, serialisable value that one slot leaves for a later one (C4). Methods share nothing else. */
export interface Note<T extends Json> {
  readonly id: string;
  /** Read when nobody wrote; a note without a default that is read without a writer is refused by `compose`. */
  readonly fallback?: T;
  get(on: NoteHolder): T | undefined;
  set(on: NoteHolder, value: T): void;
}

// Problems are frozen data shared by all steps, so notes live beside their holders, not inside them.
const held = new WeakMap<object, Map<string, Json>>();

/** Declares a note. Two notes of one id are the same note: a method that reads it need not import its writer. */
export function note<T extends Json>(id: string, fallback?: T): Note<T> {
  return {
    id,
    ...(fallback === undefined ? {} : { fallback }),
    get: (on) => {
      const notes = held.get(on);
      return notes?.has(id) ? (notes.get(id) as T) : fallback;
    },
    set: (on, value) => {
      let notes = held.get(on);
      if (!notes) {
        notes = new Map();
        held.set(on, notes);
      }
      notes.set(id, value);
    },
  };
}

/** All notes on a holder, by id in sorted order: what a rollout record stores. */
export function notesOf(on: NoteHolder): { [id: string]: Json } {
  const notes = held.get(on);
  return notes ? Object.fromEntries([...notes].sort(([a], [b]) => (a < b ? -1 : 1))) : {};
}

/** Puts stored notes back on a holder (resume from recorded rollouts). */
export function restoreNotes(on: NoteHolder, notes: { readonly [id: string]: Json }): void {
  held.set(on, new Map(Object.entries(notes)));
}
