import { canonicalJson, type Json } from "../core/json.js";

/** Private state of one method. What was set in a step counts only once the step is committed. */
export interface Cell<S extends Json> {
  get(): S;
  set(next: S): void;
}

/** The cells of a run, by method name: part of every checkpoint. A step that does not finish leaves no trace in them. */
export class Cells {
  private committed: { [method: string]: Json } = {};
  private pending: { [method: string]: Json } = {};

  cell<S extends Json>(method: string, initial: S): Cell<S> {
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

  /** Committed state of all methods. */
  toJson(): { readonly [method: string]: Json } {
    return { ...this.committed };
  }

  /** Puts back what `toJson` gave. */
  restore(state: { readonly [method: string]: Json }): void {
    this.committed = { ...state };
    this.pending = {};
  }
}
