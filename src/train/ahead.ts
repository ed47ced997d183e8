/**
 * Overlap (C22): while step n trains, the batch of step n + k is drawn from the weights as they were after step n - 1. So a
 * batch is k steps behind the weights that it trains, but for the first ones of a run or stage, which come from the weights
 * there. Everything of a batch (weights, keys, state of the methods, books) is a function of its step: nothing depends on
 * what is done first, and a resumed run draws the batches that were in flight once more.
 *
 * Each batch in flight has a composition of its own, with its own cells. They begin as the rollout of the batch before left
 * them, changed by what the training of step n - 1 changed; when the batch is trained, what its rollout changed meets what
 * the training of the steps before it changed.
 */
import { join } from "node:path";
import { ArgumentError } from "../core/errors.js";
import { canonicalJson, type Json } from "../core/json.js";
import { mergeJson } from "../core/json-merge.js";
import type { Group } from "../core/trajectory.js";
import type { Engine } from "../engine/contract.js";
import { plainAnswers } from "../methods/base.js";
import type { CellStates, Cells } from "../methods/cell.js";
import type { Resolved } from "../methods/resolve.js";
import { gather } from "./collect.js";
import { Gap, gapAsSampled } from "./gap.js";
import { type LabParts, StepLab } from "./lab.js";
import { Ledger } from "./ledger.js";
import type { RunStage } from "./methods.js";
import { policyRequest, type Start } from "./starts.js";
import type { RunState } from "./state.js";

/** The methods of all stages, with their state. */
export interface Composition {
  readonly stages: readonly RunStage[];
  readonly cells: Cells;
}

/** The composition that draws and trains the batch of a step. */
export const compositionOf = (compositions: readonly Composition[], step: number): Composition => compositions[step % compositions.length];

export interface AheadParts {
  /** Steps by which sampling runs ahead. */
  readonly overlap: number;
  /** Steps of the run. */
  readonly steps: number;
  readonly engine: Engine;
  /** One more than `overlap`. */
  readonly compositions: readonly Composition[];
  readonly lab: LabParts;
  /** Roles beside the policy whose weights change. */
  readonly changing: ReadonlySet<string>;
  /** Whether the policy has a value head. */
  readonly valueHead: boolean;
  /** Whether the policy is an adapter, whose earlier states are adapters too. */
  readonly adapter: boolean;
}

/** A batch that was drawn ahead of its step. */
export interface Drawn {
  readonly groups: readonly Group[];
  /** The lab that drew it, whose policy is the one of the rollout. */
  readonly lab: StepLab;
  readonly ledger: Ledger;
  /** Of sampler and trainer on tokens of this batch, at the weights of the rollout; empty where the batch is of the present weights. */
  readonly gap: Gap;
  /** Steps behind the weights that it trains. */
  readonly lag: number;
  /** Identity of the weights of the rollout, once the engine has told it. */
  readonly weights: string | undefined;
  /** How long it took. */
  readonly ms: number;
}

/** What the training of a step did to the cells. */
interface Change {
  readonly before: CellStates;
  readonly after: CellStates;
}

/** Weights that batches in flight are drawn from: the policy's after a step. */
interface Origin {
  readonly step: number;
  readonly updates: number;
  weights: string | undefined;
  /** What that step changed; undefined where it changed nothing, or where the run or stage begins. */
  readonly change: Change | undefined;
}

interface Flight {
  readonly origin: Origin;
  readonly done: Promise<Omit<Drawn, "weights"> & Change>;
}

/** Of a checkpoint. */
interface Stored {
  /** Cells as the rollout of the step left them. */
  readonly rolled: CellStates;
  /** What its training changed. */
  readonly change: Change | null;
  readonly origins: readonly { readonly step: number; readonly updates: number; readonly weights: string | null; readonly change: Change | null }[];
}

const nameOf = ({ step }: Pick<Origin, "step">): string => `step-${step}`;

export class Ahead {
  private readonly stopping = new AbortController();
  private readonly flights = new Map<number, Flight>();
  private origins: Origin[] = [];
  /** The last batch that was begun; undefined where a run or stage begins. */
  private begun: number | undefined;
  /** Cells as the rollout of that batch leaves them; settles as soon as no later rollout could find them otherwise. */
  private rolling: Promise<CellStates> = Promise.resolve({});
  /** Of the last batch that was taken. */
  private rolled: CellStates = {};
  /** Cells of the run after the last step, and at the one that trains. */
  private committed: CellStates = {};
  private merged: CellStates = {};
  private change: Change | undefined;

  constructor(private readonly parts: AheadParts) {}

  /** The composition of a step, whose cells are the run's once the step is done. */
  of(step: number): Composition {
    return compositionOf(this.parts.compositions, step);
  }

  /** Before a step: begins what is to be drawn while it trains, and at the beginning of a run or stage its first batches. */
  async begin(state: Readonly<RunState>): Promise<void> {
    const { step, updates, weights } = state;
    const begins = this.begun === undefined;
    this.committed = this.of(step).cells.now(); // The next batch takes this composition.
    if (begins) this.rolling = Promise.resolve(this.committed);
    const from = this.begun ?? step;
    const until = this.until(state);
    if (from >= until) return;
    const origin: Origin = { step, updates, weights, change: begins ? undefined : this.change };
    await this.parts.engine.weights.snapshot("policy", nameOf(origin));
    this.origins.push(origin);
    for (let next = from + 1; next <= until; next++) this.fly(next, origin, state.stage);
  }

  /** The last batch that is in flight while the next step trains. */
  private until({ step, stage, stageStart }: Readonly<RunState>): number {
    const { overlap, steps } = this.parts;
    const ends = stageStart + (this.of(0).stages[stage].steps ?? Number.POSITIVE_INFINITY);
    return Math.min(step + 1 + overlap, steps, ends);
  }

  /** The batch of the next step, and its cells as they are at that step. */
  async take(step: number): Promise<Drawn> {
    const { origin, done } = this.flights.get(step) as Flight;
    const { before, after, ...drawn } = await done;
    this.merged = merge(before, this.committed, after, step);
    this.of(step).cells.restore(this.merged);
    this.rolled = after;
    const { weights } = origin;
    origin.weights ??= drawn.groups.flatMap(({ trajectories }) => trajectories).find(({ role }) => role === "policy")?.behaviour.conditions.weights;
    return { ...drawn, weights };
  }

  /** After a step that counts: what its training changed, and which weights nobody needs any more. */
  async trained(step: number): Promise<void> {
    const after = this.of(step).cells.now();
    this.change = canonicalJson(after) === canonicalJson(this.merged) ? undefined : { before: this.merged, after };
    this.flights.delete(step);
    await this.drop();
  }

  /** Gives up the batches in flight, as a stage ends: their books count, nothing else of them does. */
  async discard(ledger: Ledger): Promise<void> {
    for (const { done } of this.flights.values()) ledger.add((await done).ledger, true);
    this.flights.clear();
    this.begun = undefined;
    await this.drop();
  }

  /** What a checkpoint keeps of the batches in flight, beside the weights that they are drawn from; undefined without any. */
  toJson(): Json | undefined {
    if (this.flights.size === 0) return undefined;
    const origins = this.origins.map(({ weights = null, change = null, ...origin }) => ({ ...origin, weights, change }));
    return { rolled: this.rolled, change: this.change ?? null, origins } satisfies Stored as unknown as Json;
  }

  /** Writes the weights that batches in flight are drawn from; undefined without any. */
  get save(): ((folder: string) => Promise<void>) | undefined {
    if (this.flights.size === 0) return undefined;
    return async (folder) => {
      for (const origin of this.origins) await this.parts.engine.weights.save({ role: "policy", at: nameOf(origin) }, join(folder, nameOf(origin)));
    };
  }

  /** Begins the batches that were in flight at a checkpoint, from what `toJson` and `save` kept of them. */
  async resume(json: Json | undefined, folder: string, state: Readonly<RunState>): Promise<void> {
    if (json === undefined) return;
    const { rolled, change, origins } = json as unknown as Stored;
    for (const { step, updates, weights, change } of origins) {
      const origin: Origin = { step, updates, weights: weights ?? undefined, change: change ?? undefined };
      const snapshot = { name: nameOf(origin), ...(weights === null ? {} : { identity: weights }) };
      const { valueHead, adapter } = this.parts;
      const saved = { from: "folder", path: join(folder, nameOf(origin)) } as const;
      const start: Start = { folder: saved.path, ...(adapter && { adapter: saved }) };
      await this.parts.engine.weights.load({ ...policyRequest(start, valueHead, true), snapshot });
      this.origins.push(origin);
    }
    this.rolled = rolled;
    this.rolling = Promise.resolve(rolled);
    this.change = change ?? undefined;
    const until = this.until({ ...state, step: state.step - 1 });
    for (let next = state.step + 1; next <= until; next++) {
      const from = Math.max(state.stageStart, next - 1 - this.parts.overlap);
      this.fly(next, this.origins.find(({ step }) => step === from) as Origin, state.stage);
    }
  }

  /** Ends what is still drawn. */
  async close(): Promise<void> {
    this.stopping.abort();
    await Promise.allSettled([...this.flights.values()].map(({ done }) => done));
    this.flights.clear();
    await this.drop().catch(() => undefined); // The engine may be gone, and its snapshots with it.
  }

  /** Drops the snapshots that no batch in flight is drawn from. */
  private async drop(): Promise<void> {
    const used = new Set([...this.flights.values()].map(({ origin }) => origin));
    const gone = this.origins.filter((origin) => !used.has(origin));
    this.origins = this.origins.filter((origin) => used.has(origin));
    for (const origin of gone) await this.parts.engine.weights.dropSnapshot("policy", nameOf(origin));
  }

  private fly(step: number, origin: Origin, stage: number): void {
    const earlier = this.rolling;
    let turn: { readonly resolve: (rolled: CellStates) => void; readonly reject: (error: unknown) => void } | undefined;
    this.rolling = new Promise((resolve, reject) => {
      turn = { resolve, reject };
    });
    const done = this.draw(step, origin, stage, earlier, (rolled) => turn?.resolve(rolled));
    // Its own step tells of a failure, and those after it never come.
    done.catch((error: unknown) => turn?.reject(error));
    this.rolling.catch(() => undefined);
    this.flights.set(step, { origin, done });
    this.begun = step;
  }

  private async draw(step: number, origin: Origin, stage: number, earlier: Promise<CellStates>, onRolled: (rolled: CellStates) => void): Flight["done"] {
    const { lab: common, changing } = this.parts;
    const { stages, cells } = this.of(step);
    const method = stages[stage].resolved;
    const rolled = await earlier;
    const start = performance.now();
    const { change } = origin;
    const before = change ? merge(change.before, rolled, change.after, step) : rolled;
    cells.restore(before);
    const ledger = new Ledger();
    const proposesOnce = selectsOnly(method, cells);
    let proposed: CellStates | undefined;
    const onProposed = (): void => {
      if (!proposesOnce) return;
      if (proposed !== undefined) throw said(method, "it asks for problems more than once in a step");
      proposed = cells.now();
      onRolled(proposed);
    };
    const ahead = { policy: { role: "policy", at: nameOf(origin) }, changing, signal: this.stopping.signal, onProposed };
    const lab = new StepLab({ ...common, method, ledger, policyVersion: () => origin.updates, ahead }, step);
    const groups = await gather(method, lab);
    const lag = step - 1 - origin.step;
    const gap = lag > 0 ? await gapAsSampled(groups, lab) : new Gap();
    const after = cells.now();
    if (proposed !== undefined && canonicalJson(proposed) !== canonicalJson(after))
      throw said(method, "the rollout changes a state after its problems are known");
    onRolled(after);
    return { groups, lab, ledger, gap, lag, before, after, ms: performance.now() - start };
  }
}

/** Whether the cells are as a rollout leaves them as soon as it knows its problems, so that the next one can begin beside it. */
function selectsOnly({ one, stages }: Resolved, cells: Cells): boolean {
  const stateless = ({ from }: { readonly from: string }): boolean => !cells.methods.includes(from);
  const { allocate, expand } = one;
  if (allocate.value.once !== true || !stages.enrich.every(({ late }) => late)) return false;
  return stages.prepare.every(stateless) && (expand.value === plainAnswers || stateless(expand));
}

function said({ one }: Resolved, cause: string): ArgumentError {
  return new ArgumentError({
    place: `rollout of ${one.allocate.from}`,
    cause: `${cause}, and its allocate slot says \`once\``,
    mend: "leave `once` out of it",
  });
}

/** States that rollouts and training changed apart from each other. */
function merge(base: CellStates, ours: CellStates, theirs: CellStates, step: number): CellStates {
  return mergeJson(base, ours, theirs, ([method, ...path]) => {
    throw new ArgumentError({
      place: `state of the method ${method}, before step ${step}`,
      cause: `a rollout and the training of an earlier step both changed ${path.length > 0 ? path.join(".") : "it"}, and under overlap neither sees the other`,
      mend: "keep under keys of their own what each of them changes, or set overlap to 0",
    });
  }) as CellStates;
}
