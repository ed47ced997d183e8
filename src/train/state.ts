/** What the trainer carries from step to step, beside weights and optimizer: part of every checkpoint. */
import { RunError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { Cells } from "../methods/cell.js";
import type { Ledger } from "./ledger.js";

export interface RunState {
  /** Finished steps. */
  step: number;
  /** Optimizer steps made. */
  updates: number;
  /** Identity of the policy's weights, once the engine has told it. */
  weights: string | undefined;
  /** Batches in a row without signal, up to now. */
  silent: number;
  /** Index of the stage that the run is in; the number of stages when the last has ended. */
  stage: number;
  /** Steps that were done when it began. */
  stageStart: number;
  /** Numbers of the last evaluation, under `eval.`. */
  evaluation: { readonly [name: string]: number };
  /** The step after which it was made. */
  evaluatedAt: number | undefined;
  /** The evaluation after this step was cut short by an interruption: a resumed run makes it first. */
  evaluationDue: boolean;
}

interface StoredState {
  readonly updates: number;
  readonly weights: string | null;
  readonly silent: number;
  readonly stage: number;
  readonly stageStart: number;
  readonly evaluation: { readonly [name: string]: number };
  readonly evaluatedAt?: number;
  readonly evaluationDue?: true;
  readonly cells: { readonly [method: string]: Json };
  readonly ledger: Json;
  /** Of the batches in flight. */
  readonly ahead?: Json;
}

export const freshState = (): RunState => ({
  step: 0,
  updates: 0,
  weights: undefined,
  silent: 0,
  stage: 0,
  stageStart: 0,
  evaluation: {},
  evaluatedAt: undefined,
  evaluationDue: false,
});

/** The state as a checkpoint stores it. */
export function stateToJson(state: RunState, cells: Cells, ledger: Ledger, ahead?: Json): Json {
  return {
    updates: state.updates,
    weights: state.weights ?? null,
    silent: state.silent,
    stage: state.stage,
    stageStart: state.stageStart,
    evaluation: { ...state.evaluation },
    ...(state.evaluatedAt === undefined ? {} : { evaluatedAt: state.evaluatedAt }),
    ...(state.evaluationDue ? { evaluationDue: true } : {}),
    cells: cells.toJson(),
    ledger: ledger.toJson(),
    ...(ahead === undefined ? {} : { ahead }),
  };
}

/** What a stored state has of the batches in flight. */
export const storedAhead = (json: Json): Json | undefined => (json as unknown as StoredState | null)?.ahead;

/** Puts back what `stateToJson` gave. */
export function stateFromJson(step: number, json: Json, cells: Cells, ledger: Ledger): RunState {
  const stored = json as unknown as StoredState | null;
  if (typeof stored?.updates !== "number" || typeof stored.cells !== "object") {
    throw new RunError({
      place: `checkpoint of step ${step}`,
      cause: "its state is not one of a training run",
      mend: "resume a run that touchstone train wrote",
    });
  }
  cells.restore(stored.cells);
  ledger.restore(stored.ledger);
  const { updates, weights, silent, stage, stageStart, evaluation, evaluatedAt, evaluationDue = false } = stored;
  return { step, updates, weights: weights ?? undefined, silent, stage, stageStart, evaluation, evaluatedAt, evaluationDue };
}
