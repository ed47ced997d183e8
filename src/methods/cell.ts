import { canonicalJson, type Json } from "../core/json.js";

/** Private state of one method. What was set in a step counts only once the step is committed. */
export interface Cell<S extends Json> {
  get(): S;
  set(next: S): void;
}

/** State by method name. */
export type CellStates = { readonly [method: string]: Json };

/** The cells of a run, by method name: part of every checkpoint. A step that does not finish leaves no trace in them. */
export class Cells {
  private committed: { [method: string]: Json } = {};
  private pending: { [method: string]: Json } = {};
  private readonly initial: { [method: string]: Json } = {};

  cell<S extends Json>(method: string, initial: S): Cell<S> {
    if (initial !== null) this.initial[method] = initial;
    return {
      get: () => (this.pending[method] ?? this.committed[method] ?? initial) as S,
      set: (next) => {
        canonicalJson(next); // throws on what JSON cannot carry, where it was made
        this.pending[method] = next;
      },
    };
  }

  commit(): void {
    Object.assign(this.committed, this.pending);
    this.pending = {};
  }

  /** Forgets what was set since the last commit. */
  rollback(): void {
    this.pending = {};
  }

  /** Methods that have a state. */
  get methods(): readonly string[] {
    return Object.keys(this.initial);
  }

  /** State of all methods as they see it, committed or not. */
  now(): CellStates {
    return { ...this.initial, ...this.committed, ...this.pending };
  }

  /** Committed state of all methods. */
  toJson(): CellStates {
    return { ...this.committed };
  }

  /** Puts back what `toJson` gave. */
  restore(state: CellStates): void {
    this.committed = { ...state };
    this.pending = {};
  }
}
