/** When distillation is over: after so many steps, or when the validation score has not risen for some evaluations. Pure functions over the state of the method's cell. */

export interface SwitchOptions {
  /** Steps of the first phase, `plateau`, or `never`. */
  readonly switch_at: number | "plateau" | "never";
  /** What the score must rise by to count. */
  readonly improvement: number;
  /** Evaluations in a row without such a rise. */
  readonly patience: number;
}

export type SwitchState = {
  /** Steps made so far. */
  readonly steps: number;
  /** The last step of the first phase, once it is over, and why. */
  readonly switched: number | null;
  readonly reason: string | null;
  /** The score that further ones are measured by, the evaluations since that did not pass it, and the step of the last evaluation that was seen. */
  readonly best: number | null;
  readonly stale: number;
  readonly seen: number | null;
};

export const beforeSwitch: SwitchState = { steps: 0, switched: null, reason: null, best: null, stale: 0, seen: null };

/** What is known of the validation score: its value, and the step after which it was measured. */
export interface Seen {
  readonly score: number | undefined;
  readonly at: number | undefined;
}

/** The state after a step of the run. A switch, once made, stays. */
export function advanced(state: SwitchState, step: number, { score, at }: Seen, { switch_at, improvement, patience }: SwitchOptions): SwitchState {
  const next = { ...state, steps: state.steps + 1 };
  if (next.switched !== null) return next;
  if (typeof switch_at === "number") return next.steps >= switch_at ? { ...next, switched: step, reason: `${next.steps} steps are done` } : next;
  if (switch_at === "never" || score === undefined || at === undefined || at === state.seen) return next;
  const rose = state.best === null || score >= state.best + improvement;
  const after = { ...next, seen: at, best: rose ? score : state.best, stale: rose ? 0 : state.stale + 1 };
  if (after.stale < patience) return after;
  const reason = `the score has not risen by ${improvement} over ${after.best} in ${patience} evaluations and is ${score} after step ${at}`;
  return { ...after, switched: step, reason };
}
