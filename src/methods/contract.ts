/**
 * The seams of methods. A method changes some of 18 slots; what it leaves out is GRPO's. Nine slots have exactly one answer
 * (`OneSlots`), nine stack (`StageSlots`). Arrays over "rows" are parallel to `rowsOf(batch)`: the trajectories that enter
 * statistics and loss, in the order of groups and members.
 */
import type { ZodType } from "zod";
import type { Json } from "../core/json.js";
import type { Note } from "../core/note.js";
import type { Context, Message, Problem } from "../core/problem.js";
import type { Meaning, RandomKey } from "../core/random.js";
import type { Batch, Group, Purpose, Trajectory, Truncation } from "../core/trajectory.js";
import type { Verdict } from "../core/verdict.js";
import type { Capability, EngineInfo, Sample, SampleRequest, Scores, ScoreWant, Sequence, Weights, WeightsRef } from "../engine/contract.js";
import type { TokenMask } from "../losses/aggregate.js";
import type { Statistics, Surrogate, Term } from "../losses/contract.js";
import type { AnswerClasses } from "../verify/contract.js";
import type { Credit } from "./credit.js";

export type { Aggregator, TokenMask } from "../losses/aggregate.js";
export type { LossFunction, LossResult, LossRow, Surrogate, Term } from "../losses/contract.js";
export type { Cell } from "./cell.js";

import type { Cell } from "./cell.js";

export type Async<T> = T | Promise<T>;

/** Coarse to fine. A stage reads coarser levels and writes its own. */
export const levels = ["group", "trajectory", "turn", "token"] as const;
export type Level = (typeof levels)[number];

/**
 * What a stage promises of coefficients, checked on every batch: it flips no `sign`, keeps the `sum` over each
 * trajectory's trained tokens, the `group-sum` over a group's trajectories, and leaves a coefficient of `zero` at zero.
 */
export type Invariant = "sign" | "sum" | "group-sum" | "zero";

/** Numbers of the run that slots may depend on; fixed before step 1. */
export interface Settings {
  /** Trajectories a problem. */
  readonly group: number;
  /** Problems a batch. */
  readonly problems: number;
  readonly temperature: number;
  /** Response budget in tokens. */
  readonly maxTokens: number;
  readonly stop: { readonly ids: readonly number[]; readonly strings?: readonly string[] };
  /** Steps between evaluations of the policy; 0 or absent: there are none. */
  readonly evaluateEvery?: number;
  /** Optimizer steps on each batch. */
  readonly updates?: number;
  /** Batches that are drawn ahead of the weights that they train; absent: 0. */
  readonly overlap?: number;
}

/** The problems that a run trains on, by index. */
export interface ProblemSource {
  readonly size: number;
  get(index: number): Problem;
  /** Sources among which each place of a batch is drawn, with their weights and the indices of their problems; absent: all are one set. */
  readonly mixture?: readonly { readonly name: string; readonly weight: number; readonly indices: readonly number[] }[];
  /** How often each problem is to come up, relative to the others; absent: all alike. */
  readonly weights?: readonly number[];
}

/** What tokens were spent for (C23). */
export type Booking = Purpose | "discarded" | "evaluation";

/** What slots before the loss may use (C19). Calls of one step are coalesced and memoised by the driver. */
export interface Lab {
  /** 0 during `setup`, then from 1. */
  readonly step: number;
  readonly settings: Settings;
  readonly problems: ProblemSource;
  /** Whether an answer is a conversation with the task's environment. */
  readonly conversational: boolean;
  /** How the run's verifier tells answers apart without a reference (C17); absent where it has no such classes. */
  readonly answers?: AnswerClasses;
  readonly engine: EngineInfo;
  /** Roles that the run has loaded (C7). `policy` is always there. */
  readonly roles: ReadonlySet<string>;
  readonly policy: WeightsRef;
  readonly weights: Weights;
  readonly tokenizer: { encode(text: string): Int32Array; decode(ids: ArrayLike<number>): string };
  /** Messages through the chat template, ready for an answer. */
  render(messages: readonly Message[], label?: string): Context;
  sample(requests: readonly SampleRequest[]): AsyncIterable<Sample>;
  score(sequences: readonly Sequence[], want?: ScoreWant): Promise<Scores[]>;
  /** `truncated`: its budget cut the response off, which many verifiers reject. */
  verify(problem: Problem, response: string, truncated?: boolean): Promise<Verdict>;
  /** A random key of the run's seed. */
  key(meaning: Omit<Meaning, "seed">): RandomKey;
  /** The same lab, with its tokens booked on another purpose. */
  book(purpose: Booking): Lab;
}

/** One rollout to be drawn; `prepare` stages may change it. */
export interface Request {
  readonly problem: Problem;
  readonly member: number;
  readonly turn: number;
  readonly role: string;
  readonly purpose: Purpose;
  /** What it is sampled under. */
  readonly context: Context;
  /** What it will be trained under. */
  readonly trainedUnder: Context;
  readonly weights: WeightsRef;
  readonly temperature: number;
  readonly maxTokens: number;
  readonly stop: Settings["stop"];
  readonly forced?: Int32Array;
  /** For answers that are not trained on, or of a method that needs `sample.truncation`; others are refused. */
  readonly truncation?: Truncation;
  readonly key: RandomKey;
}

/** The lab during rollout. */
export interface Step extends Lab {
  /** The next problems of the resolved `select`. */
  propose(n: number): Promise<Problem[]>;
  /** The request for one member, after all `prepare` stages. */
  request(problem: Problem, member: number): Promise<Request>;
  /** Samples, verifies and records; streams as answers finish. */
  draw(requests: readonly Request[]): AsyncIterable<Trajectory>;
  /** Members `from` to `from + n - 1` of a problem by the resolved `expand`. */
  expand(problem: Problem, n: number, from?: number): AsyncIterable<Trajectory>;
}

/** What became of a proposed problem; `used` is false for groups that were dropped or replaced. */
export interface Outcome {
  readonly problem: Problem;
  readonly trajectories: readonly Trajectory[];
  readonly used: boolean;
}

/** Rewards of the rows of a batch. */
export interface Rewards {
  /** undefined: unscored. It is never 0, and the row leaves statistics and loss. [rows] */
  readonly values: readonly (number | undefined)[];
  /** Rewards that fall on single tokens (a KL penalty, a step reward), beside `values`. [rows][tokens] */
  readonly tokens?: readonly Float64Array[];
}

/** Where losses fall. Masks of several `keep` stages intersect. */
export interface Mask {
  /** 1 where the row counts at all: in normalisers, in the policy's loss and in terms. [rows] */
  readonly rows: Uint8Array;
  /** Tokens of the policy's loss. [rows][tokens] */
  readonly policy: readonly Uint8Array[];
  /** Tokens of further terms. [rows][tokens] */
  readonly terms: readonly Uint8Array[];
}

/** Smallest and largest ratio inside the trust region, a token. [rows] of [tokens] */
export type Bounds = readonly { readonly low: Float64Array; readonly high: Float64Array }[];

/** What a `terms` stage builds its losses on: the mask of terms and the token weights that the resolved aggregation gives it. */
export interface TermMask {
  readonly rows: Uint8Array;
  readonly tokens: readonly Uint8Array[];
  readonly weights: readonly Float64Array[];
}

/** A parametrisation or update rule by name and options (C13). */
export interface ModuleRef {
  readonly module: string;
  readonly options: Json;
}

/** A finished step, for metrics and for the ends of stages. */
export interface StepView {
  readonly step: number;
  readonly batch: Batch;
  readonly rewards: Rewards;
  readonly credit: Credit;
  readonly mask: Mask;
  readonly statistics: Statistics;
  /** Metrics so far, this step's and, under `eval.`, the last evaluation's. */
  readonly metrics: { readonly [name: string]: number };
  /** The step after which that evaluation was made; absent: there was none. */
  readonly evaluatedAt?: number;
  /** Records, as an event of kind `stage`, that a method goes over to another way of training, and why. */
  announce(reason: string): void;
}

/** Exactly one of these runs. */
export interface OneSlots {
  select: { propose(n: number, lab: Lab): Async<Problem[]>; learn(outcomes: readonly Outcome[]): void };
  /**
   * `appends`: grows groups over several rounds, which an `expand` with `appendable: false` refuses. `once`: asks for problems
   * once, before it draws, so that under overlap the next batch can be begun beside this one; else it waits for its end.
   */
  allocate: { readonly appends: boolean; readonly once?: boolean; run(step: Step): AsyncIterable<Group> };
  /** Draws members `from` to `from + n - 1` of a problem. */
  expand: { readonly appendable: boolean; run(problem: Problem, n: number, step: Step, from: number): AsyncIterable<Trajectory> };
  reward: (batch: Batch, lab: Lab) => Async<Rewards>;
  credit: (batch: Batch, rewards: Rewards, lab: Lab) => Async<Credit>;
  loss: Surrogate;
  aggregate: (batch: Batch, mask: TokenMask, settings: Settings) => Float64Array[];
  parametrisation: ModuleRef;
  optimizer: ModuleRef;
}

/** All of these run, coarse level first, then in the order of composition. */
export interface StageSlots {
  setup: (lab: Lab) => Promise<void>;
  prepare: (request: Request, lab: Lab) => Async<Request>;
  enrich: (groups: readonly Group[], step: Step) => Promise<Group[]>;
  adjust: (batch: Batch, rewards: Rewards, lab: Lab) => Async<Rewards>;
  shape: (batch: Batch, credit: Credit, lab: Lab) => Async<Credit>;
  keep: (batch: Batch, credit: Credit) => Mask;
  bounds: (batch: Batch, credit: Credit, bounds: Bounds) => Bounds;
  terms: (batch: Batch, mask: TermMask, lab: Lab) => Async<readonly Term[]>;
  observe: (view: StepView) => { readonly [name: string]: number };
}

export type OneSlot = keyof OneSlots;
export type StageSlot = keyof StageSlots;
export type Slot = OneSlot | StageSlot;

/** An answer to a slot with one owner. `sets` is an option that the user wrote: it beats `owns`, which beats `prefers`. */
export type One<F> = ({ readonly sets: F } | { readonly owns: F } | { readonly prefers: F }) & {
  readonly about?: string;
  /** Refuses settings under which this answer cannot work, by throwing; asked only of the answer that runs. */
  readonly check?: (settings: Settings) => void;
  /** What it makes of the answer of another method that owns the slot: it is then laid around that answer, and neither gives way. */
  around?(owner: F): F;
};

/** A stage. `about` is one phrase for the resolved table. */
export interface Stage<F> {
  readonly level?: Level;
  readonly keeps?: readonly Invariant[];
  readonly about?: string;
  /** Of `enrich`: after all others, when the batch is about to be trained, under the weights that are trained then; under overlap they are not those that sampled. */
  readonly late?: true;
  readonly run: F;
}

export type Slots = { readonly [K in OneSlot]?: One<OneSlots[K]> } & { readonly [K in StageSlot]?: Stage<StageSlots[K]> | readonly Stage<StageSlots[K]>[] };

/** What a method needs; of several ways the first that the run can go is taken, and its `difference` from the paper recorded (C25). */
export interface Need {
  /** What it is needed for, as in "the KL to the reference". */
  readonly for: string;
  readonly oneOf: readonly { readonly capabilities?: readonly Capability[]; readonly roles?: readonly string[]; readonly difference?: string }[];
}

/** What a method asks of a role (C7). Roles that it only reads may stand in its needs alone. */
export interface RoleWish {
  /** `policy` for what it asks of the policy itself. */
  readonly name: string;
  /** It sends gradients to `role:NAME`. */
  readonly trainable?: boolean;
  readonly valueHead?: boolean;
  /** How it follows another role where the run does not say: after every so many steps w becomes decay w + (1 - decay) of the other's; with decay 0 it is a copy. */
  readonly average?: { readonly of: string; readonly decay: number; readonly every: number };
}

export interface Method {
  readonly name: string;
  readonly needs?: readonly Need[];
  readonly roles?: readonly RoleWish[];
  /** Slots in which no other method may own or stack anything; preferences of others are silenced. */
  readonly forbids?: readonly Slot[];
  readonly reads?: readonly Note<Json>[];
  readonly writes?: readonly Note<Json>[];
  /** `reward-variance`: it filters groups whose rewards are equal; `beyond`: it learns from such groups (C20). */
  readonly signal?: "reward-variance" | "beyond";
  /**
   * `withheld`: neither references nor privileged data reach any slot, and no verdict is asked for in training (C17);
   * `needed`: it reads them by another way than verdicts; `judged`: it goes by verdicts apart from what rewards are made of.
   */
  readonly references?: "withheld" | "needed" | "judged";
  /** Refuses settings under which it cannot work, whatever other methods answer, by throwing. */
  readonly check?: (settings: Settings) => void;
  readonly slots: Slots;
  /** The methods that `compose` made this one of. */
  readonly parts?: readonly Method[];
}

/** What a method file exports: options with defaults and descriptions, initial state, and the method made of both. */
export interface MethodModule<O, S extends Json> {
  readonly name: string;
  /** Citation, or "our choice". */
  readonly paper: string;
  readonly options: ZodType<O>;
  /** The slot that an option decides. One that is set to something else than its default makes that slot's answer the user's (`sets`). */
  readonly decides?: { readonly [option in keyof O]?: OneSlot };
  readonly initial: S;
  make(options: O, state: Cell<S>): Method;
}

/** Whole methods one after another (C21). */
export interface Plan {
  readonly stages: readonly PlanStage[];
}

export interface PlanStage {
  readonly method: Method;
  /** The reason to end this stage after the step seen, or false. `steps`: the stage's so far. */
  until(view: StepView, steps: number): false | string;
  /** Steps after which it ends at the latest, where that is known; overlap draws no batch beyond. */
  readonly steps?: number | undefined;
  /** What becomes of the optimizer's state when this stage begins. */
  readonly optimizer: "keep" | "reset";
}
