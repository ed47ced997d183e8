/** The driver: steps, evaluations, checkpoints and their events, until the end, a stop with its reason, or an interruption. */
import { DivergenceError, errorToJson, TouchstoneError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import type { ParameterSet } from "../engine/contract.js";
import type { Cells } from "../methods/cell.js";
import type { JudgePool } from "../verify/pool.js";
import type { Ahead } from "./ahead.js";
import { firstBatchWarning, silenceExplained } from "./diagnosis.js";
import type { Evaluated } from "./evaluation.js";
import { policy, StepLab } from "./lab.js";
import type { RunStage } from "./methods.js";
import { type RunState, stateToJson } from "./state.js";
import { runStep, type StepParts, type StepReport } from "./step.js";
import type { RunEvent } from "./store/schema.js";
import type { RunStore } from "./store/store.js";

export interface LoopParts extends StepParts {
  /** Methods one after another, each with its update rule; `lab` and `rule` are those of the first. */
  readonly stages: readonly (RunStage & { readonly rule: StepParts["rule"] })[];
  readonly store: RunStore;
  readonly cells: Cells;
  /** Where batches are drawn ahead; methods and cells are then its compositions'. */
  readonly ahead?: Ahead;
  readonly judges: JudgePool;
  readonly state: RunState;
  /** The run goes on from a checkpoint: nothing of its start is written again. */
  readonly resumed: boolean;
  /** What the `start` event says. */
  readonly start: { readonly [name: string]: Json };
  /** Absent: no evaluations. */
  readonly evaluate?: (onProgress: (done: number, total: number) => void, signal: AbortSignal | undefined) => Promise<Evaluated>;
  /** Puts the tokenizer's files beside saved weights. */
  readonly saveTokenizer: (folder: string) => Promise<void>;
  /** The policy's parameter set, and those of roles that learn. */
  readonly learning: readonly ParameterSet[];
  /** Moves the roles that follow others, after the updates of a step. */
  readonly followRoles: (step: number) => Promise<void>;
  /** Absent: no role beside the policy changes. */
  readonly saveRoles?: (folder: string) => Promise<void>;
  /** Hears of each step and evaluation once its event is written. */
  readonly log: (event: RunEvent) => void;
  readonly signal?: AbortSignal;
}

/** Why a run ended: all steps done, `signal` aborted, or batch after batch without signal (or all of a short run without any score). */
export type EndReason = "done" | "interrupted" | "no-signal";

export interface LoopEnd {
  readonly reason: EndReason;
  /** One sentence for whoever started the run. */
  readonly message: string;
  readonly state: Readonly<RunState>;
}

const policySet = "role:policy" as const;

/** Runs the steps that are left. Throws what stopped it otherwise; the `end` event then says so, and the last checkpoint stands. */
export async function runLoop(parts: LoopParts): Promise<LoopEnd> {
  const { store, cells, state } = parts;
  try {
    const { reason, message } = await steps(parts);
    store.appendEvent({ step: state.step, kind: "end", data: { reason, message } });
    return { reason, message, state };
  } catch (error) {
    cells.rollback();
    const json = errorToJson(error);
    const reason = error instanceof DivergenceError && typeof error.data.reason === "string" ? error.data.reason : "error";
    try {
      store.appendEvent({
        step: state.step,
        kind: "end",
        data: { reason, message: withinRun(String(json.message), store.folder), ...(error instanceof TouchstoneError ? { data: json.data } : {}) },
      });
    } catch {
      // The error to be told is the first one; a log that cannot be written has told its own.
    }
    throw error;
  } finally {
    await parts.ahead?.close();
  }
}

/** A message as a run keeps it: its folder may be moved, so it is not named. */
const withinRun = (message: string, folder: string): string => message.replaceAll(`${folder}/`, "").replaceAll(folder, "this run");

async function steps(parts: LoopParts): Promise<{ reason: EndReason; message: string }> {
  const { config, store, state, signal, onProgress } = parts;
  if (!parts.resumed) {
    store.appendEvent({ step: 0, kind: "start", data: parts.start });
    await setUp(parts, 0);
    const score = evaluationDue(parts, 0) ? await evaluateNow(parts) : undefined;
    await checkpoint(parts, score);
  } else if (state.evaluationDue) {
    const score = await evaluateNow(parts);
    if (!state.evaluationDue) await checkpoint(parts, score, true);
  }
  let last: StepReport | undefined;
  let clocks = clocksOf(parts);
  while (state.step < config.steps && state.stage < parts.stages.length) {
    if (signal?.aborted) return interrupted(parts);
    // What was judged ahead was judged at any time since the last step.
    const { starved, clocked } = parts.ahead ? clocks : clocksOf(parts);
    const next = state.step + 1;
    await parts.ahead?.begin(state);
    const report = await runStep(ofStage(parts, next), next, state, parts.ahead && (() => (parts.ahead as Ahead).take(next)));
    last = report;
    await parts.followRoles(state.step + 1);
    finish(parts, report, parts.judges.starved - starved, (parts.lab.environment?.clocked ?? 0) - clocked);
    clocks = clocksOf(parts);
    await parts.ahead?.trained(next);
    await endStage(parts, report);
    const score = evaluationDue(parts, state.step) ? await evaluateNow(parts) : undefined;
    const silent = state.silent >= config.limits.silent_batches;
    const due = config.checkpoint.every > 0 && state.step % config.checkpoint.every === 0;
    if (due || score !== undefined || evaluationDue(parts, state.step) || silent || signal?.aborted || isLast(parts)) await checkpoint(parts, score);
    if (silent) return { reason: "no-signal", message: `stopped after step ${state.step}: ${silenceExplained(report.coefficients, state.silent)}` };
    onProgress({ kind: "step", step: state.step, steps: config.steps, metrics: report.metrics, clock: report.clock });
  }
  if (state.evaluationDue) return interrupted(parts);
  const stopped =
    state.step < config.steps
      ? `the last of ${parts.stages.length} stages ended after step ${state.step}`
      : config.steps === 1
        ? "1 step is done"
        : `${config.steps} steps are done`;
  if (last === undefined || state.updates > 0) return { reason: "done", message: stopped };
  const { rows } = last.coefficients;
  const reason = rows.every(({ verdict }) => verdict.kind === "unscored") ? "no-signal" : "done";
  return { reason, message: `${stopped}, and nothing was learnt: ${silenceExplained(last.coefficients, state.step)}` };
}

/** What clocks have decided so far: answers given up on, and steps of the environment. */
const clocksOf = ({ judges, lab }: LoopParts): { readonly starved: number; readonly clocked: number } => {
  return { starved: judges.starved, clocked: lab.environment?.clocked ?? 0 };
};

/** What a step works with, of the stage that the run is in. */
function ofStage(parts: LoopParts, step: number): StepParts {
  const { stage } = parts.state;
  const { resolved } = (parts.ahead?.of(step) ?? parts).stages[stage];
  return { ...parts, rule: parts.stages[stage].rule, lab: { ...parts.lab, method: resolved } };
}

/** The cells of the run after a step. */
const cellsAfter = (parts: LoopParts, step: number): Cells => (parts.ahead?.of(step) ?? parts).cells;

const isLast = ({ config, stages, state }: LoopParts): boolean => state.step === config.steps || state.stage === stages.length;

/** Ends the stage where the step says so, and begins the next one: what a checkpoint of this step holds is the new stage. */
async function endStage(parts: LoopParts, { view }: StepReport): Promise<void> {
  const { stages, state, store, engine, onProgress } = parts;
  const reason = stages[state.stage].until(view, state.step - state.stageStart);
  if (reason === false) return;
  state.stage++;
  state.stageStart = state.step;
  state.silent = 0;
  const next = stages.at(state.stage);
  const ended = { ended: state.stage, reason };
  const data: StepReport["data"] = next ? { ...ended, stage: state.stage + 1, method: next.method.name, optimizer: next.optimizer } : ended;
  store.appendEvent({ step: state.step, kind: "stage", data });
  onProgress({ kind: "message", text: `stage ${state.stage} ended after step ${state.step}: ${reason}${next ? `; now ${next.method.name}` : ""}` });
  if (next === undefined) return;
  await parts.ahead?.discard(parts.lab.ledger);
  if (next.optimizer === "reset") for (const set of parts.learning) await engine.weights.resetOptimizer(set);
  await setUp(parts, state.step);
}

/** The setup of the stage that the run is in; `done`: steps so far. */
async function setUp(parts: LoopParts, done: number): Promise<void> {
  const { lab } = ofStage(parts, done);
  const own = new StepLab(lab, done);
  for (const stage of lab.method.stages.setup) await stage.run(own);
  cellsAfter(parts, done).commit();
}

async function interrupted(parts: LoopParts): Promise<{ reason: EndReason; message: string }> {
  const { state, config, store } = parts;
  if (store.lastCheckpoint !== state.step) await checkpoint(parts, undefined);
  // Behind the checkpoint, so that a resumed run has the events of one that was not interrupted.
  if (state.evaluationDue) store.appendEvent({ step: state.step, kind: "warning", data: { message: `the evaluation after step ${state.step} was cut short` } });
  const cut = state.evaluationDue ? ", while it was evaluated" : "";
  return {
    reason: "interrupted",
    message: `interrupted after step ${state.step} of ${config.steps}${cut}`,
  };
}

/** Writes a finished step and makes it count. */
function finish(parts: LoopParts, report: StepReport, starved: number, clocked: number): void {
  const { store, state, onProgress } = parts;
  const step = state.step + 1;
  store.appendRollouts(step, report.coefficients.batch.groups, report.extraOf);
  const event: RunEvent = { step, kind: "step", data: report.data, clock: report.clock };
  store.appendEvent(event);
  parts.log(event);
  for (const { method, reason } of report.announced) {
    store.appendEvent({ step, kind: "stage", data: { method, reason } });
    onProgress({ kind: "message", text: `${method} switched after step ${step}: ${reason}` });
  }
  if (starved > 0) {
    const message = `${starved} answers were given up on, by the clock or because a reward outside failed, so the bytes of this run are not repeatable from here on`;
    store.appendEvent({ step, kind: "nonreplayable", data: { reason: "verifier-deadline", count: starved, message } });
  }
  if (clocked > 0) {
    const message = `${clocked} steps of the environment were decided by the clock, so the bytes of this run are not repeatable from here on`;
    store.appendEvent({ step, kind: "nonreplayable", data: { reason: "environment-deadline", count: clocked, message } });
  }
  const warning = step === 1 ? firstBatchWarning(report.coefficients) : undefined;
  if (warning !== undefined) {
    store.appendEvent({ step, kind: "warning", data: { message: warning } });
    onProgress({ kind: "message", text: warning });
  }
  cellsAfter(parts, step).commit();
  state.step = step;
  state.updates = report.updates;
  state.weights = report.weights;
  state.silent = report.silent ? state.silent + 1 : 0;
}

function evaluationDue(parts: LoopParts, step: number): boolean {
  const { config, evaluate } = parts;
  if (evaluate === undefined) return false;
  const ends = config.eval.at_start && (step === 0 || isLast(parts));
  return ends || (step > 0 && step % config.eval.every === 0);
}

/** The score of the policy as it is. An interruption cuts it short, and leaves it due; a failure is recorded and, unless the run says otherwise, survived. What cannot be recorded stops the run. */
async function evaluateNow(parts: LoopParts): Promise<number | undefined> {
  const { store, state, onProgress, lab, signal } = parts;
  onProgress({ kind: "await", what: "evaluation" });
  const start = performance.now();
  let result: Evaluated;
  try {
    result = (await parts.evaluate?.((done, total) => onProgress({ kind: "await", what: "evaluation", done, total }), signal)) as Evaluated;
  } catch (error) {
    if (signal?.aborted) {
      state.evaluationDue = true;
      return undefined;
    }
    if (parts.config.eval.on_failure === "stop") throw error;
    const message = `the evaluation failed and training goes on: ${error instanceof Error ? error.message : String(error)}`;
    store.appendEvent({ step: state.step, kind: "warning", data: { message } });
    onProgress({ kind: "message", text: message });
    return undefined;
  }
  state.evaluationDue = false;
  lab.ledger.book("sampled", "evaluation", result.tokens);
  state.evaluation = result.numbers;
  state.evaluatedAt = state.step;
  const event: RunEvent = { step: state.step, kind: "evaluation", data: result.data, clock: { ms: performance.now() - start } };
  store.appendEvent(event);
  parts.log(event);
  for (const message of result.warnings) store.appendEvent({ step: state.step, kind: "warning", data: { message: `evaluation: ${message}` } });
  onProgress({ kind: "evaluation", step: state.step, ...(result.score === undefined ? {} : { score: result.score }), data: result.data });
  return result.score;
}

async function checkpoint(parts: LoopParts, score: number | undefined, again = false): Promise<void> {
  const { engine, store, state, lab, ahead, saveTokenizer, saveRoles, onProgress } = parts;
  const saveAhead = ahead?.save;
  onProgress({ kind: "await", what: "the checkpoint" });
  await store.checkpoint({
    step: state.step,
    state: stateToJson(state, cellsAfter(parts, state.step), lab.ledger, ahead?.toJson()),
    saveWeights: async (folder) => {
      await engine.weights.save(policy, folder);
      await saveTokenizer(folder);
    },
    saveOptimizer: (file) => engine.weights.saveOptimizer(policySet, file),
    ...(saveRoles ? { saveRoles } : {}),
    ...(saveAhead ? { saveAhead } : {}),
    ...(score === undefined ? {} : { score }),
    ...(again ? { again } : {}),
  });
  onProgress({ kind: "checkpoint", step: state.step });
}
