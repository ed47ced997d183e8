/** One step: rollout, coefficients, updates, and what is recorded of it. Nothing is written before all of it is done. */
import type { Json } from "../core/json.js";
import { randomKey } from "../core/random.js";
import type { Trajectory } from "../core/trajectory.js";
import type { Engine } from "../engine/contract.js";
import { type Coefficients, coefficientsOf, groupsWithoutCoefficient } from "../methods/coefficients.js";
import type { StepView } from "../methods/contract.js";
import type { Drawn } from "./ahead.js";
import { assemble, collect } from "./collect.js";
import type { TrainConfig } from "./config.js";
import { metricsOf, verdictsOf } from "./diagnosis.js";
import { gapBeside } from "./gap.js";
import { type LabParts, StepLab } from "./lab.js";
import type { OnProgress } from "./progress.js";
import type { RuleOf } from "./rules.js";
import type { RunState } from "./state.js";
import type { Extra } from "./store/record.js";
import { update } from "./update.js";

export interface StepParts {
  readonly engine: Engine;
  readonly config: TrainConfig;
  readonly lab: LabParts;
  readonly rule: RuleOf;
  readonly onProgress: OnProgress;
}

export interface StepReport {
  readonly coefficients: Coefficients;
  readonly view: StepView;
  /** Switches within methods, with their reasons. */
  readonly announced: readonly { readonly method: string; readonly reason: string }[];
  readonly metrics: { readonly [name: string]: number };
  /** The step's event. */
  readonly data: { readonly [name: string]: Json };
  readonly clock: { readonly [name: string]: number };
  readonly extraOf: (trajectory: Trajectory) => Extra;
  /** No group had a coefficient. */
  readonly silent: boolean;
  readonly updates: number;
  readonly weights: string | undefined;
}

/** `take`: the batch of this step, where it was drawn ahead. */
export async function runStep(parts: StepParts, step: number, state: Readonly<RunState>, take?: () => Promise<Drawn>): Promise<StepReport> {
  const { engine, config, lab: labParts, onProgress } = parts;
  const { method, ledger } = labParts;
  const lab = new StepLab(labParts, step);
  const before = await engine.usage();
  const start = performance.now();
  onProgress({ kind: "await", what: "rollouts" });
  const { unscored } = config;
  const booked = ledger.sampled;
  const drawn = await take?.();
  const taken = performance.now();
  const collected = drawn
    ? await assemble(method, drawn.groups, { rollout: drawn.lab, training: lab }, { unscored, weights: drawn.weights })
    : await collect(method, lab, { unscored, weights: state.weights });
  if (drawn) ledger.add(drawn.ledger);
  const sampled = performance.now();
  onProgress({ kind: "await", what: "coefficients" });
  const c = await coefficientsOf(method, collected.batch, lab);
  onProgress({ kind: "await", what: "updates" });
  const trainingFrom = performance.now();
  const result = await update(engine, c, {
    minibatches: config.minibatches,
    epochs: config.epochs,
    ...(config.microbatch === undefined ? {} : { microbatch: config.microbatch }),
    temperature: config.temperature,
    ...(config.max_norm === undefined ? {} : { maxNorm: config.max_norm }),
    gapLimit: config.limits.gap,
    gap: drawn && drawn.lag > 0 ? drawn.gap : await gapBeside(collected.batch.groups, lab),
    rule: parts.rule,
    updates: state.updates,
    key: (epoch) => randomKey({ seed: config.seed, purpose: "minibatch", step, turn: epoch }),
  });
  const end = performance.now();
  method.one.select.value.learn(collected.outcomes);
  ledger.discard(collected.discardedTokens);
  ledger.trained += result.tokens;

  const after = await engine.usage();
  const tokens = c.rows.reduce((n, { response }) => n + response.length, 0);
  const prefill = after.prefillTokens - before.prefillTokens;
  const base: { readonly [name: string]: number } = {
    ...metricsOf(c, result),
    ...(result.steps > 0 ? { lr: parts.rule(state.updates + result.steps, "role:policy").rate } : {}),
    ...(collected.droppedGroups > 0 ? { groups_dropped: collected.droppedGroups } : {}),
    // What the engine did meanwhile was in part for other steps.
    ...(drawn
      ? { lag: drawn.lag, sampled_tokens: ledger.sampled - booked }
      : { prefill_tokens: prefill, sampled_tokens: after.sampledTokens - before.sampledTokens }),
    trained_tokens: result.tokens,
    ...state.evaluation,
  };
  const announced: { method: string; reason: string }[] = [];
  const view: StepView = {
    step,
    batch: c.batch,
    rewards: c.rewards,
    credit: c.credit,
    mask: c.mask,
    statistics: result.statistics,
    metrics: base,
    ...(state.evaluatedAt === undefined ? {} : { evaluatedAt: state.evaluatedAt }),
    announce: () => undefined,
  };
  const observed: { [name: string]: number } = {};
  for (const stage of method.stages.observe) {
    const announce = (reason: string): void => void announced.push({ method: stage.from, reason });
    Object.assign(observed, stage.run({ ...view, announce }));
  }
  const metrics: { readonly [name: string]: number } = { ...base, ...observed };
  const sampleMs = drawn ? drawn.ms : sampled - start;
  const clock = {
    ms: end - start,
    sample_ms: sampleMs,
    ...(drawn ? { wait_ms: taken - start, prefill_tokens: prefill } : {}),
    coefficients_ms: trainingFrom - sampled,
    train_ms: end - trainingFrom,
    sampled_per_s: (1000 * tokens) / Math.max(1e-9, sampleMs),
    trained_per_s: (1000 * result.tokens) / Math.max(1e-9, end - trainingFrom),
    idle: Math.max(0, 1 - (after.busyMs - before.busyMs) / (config.engine.workers ?? 1) / Math.max(1e-9, end - start)),
    slots: after.slots - before.slots,
  };
  const updates = state.updates + result.steps;
  return {
    coefficients: c,
    view: { ...view, metrics },
    announced,
    metrics,
    data: { metrics, verdicts: verdictsOf(c.rows), policy_version: updates, ledger: ledger.toJson() },
    clock,
    extraOf: extras(c, result.logp),
    silent: groupsWithoutCoefficient(c).length === c.batch.groups.length && !method.methods.some(({ signal }) => signal === "beyond"),
    updates,
    weights: result.weights ?? (drawn && drawn.lag > 0 ? undefined : sampledFrom(c.rows)) ?? state.weights,
  };
}

/** Identity of the weights that drew the policy's answers. */
const sampledFrom = (rows: readonly Trajectory[]): string | undefined => rows.find(({ role }) => role === "policy")?.behaviour.conditions.weights;

/** Of each row, for the rollout's record: rewards, the last coefficient, each one before a shaping stage, and the log-probs that its ratio was made of last. */
function extras(c: Coefficients, logp: ReadonlyMap<number, Float64Array>): (trajectory: Trajectory) => Extra {
  const index = new Map(c.rows.map((row, i) => [row, i]));
  return (trajectory) => {
    const i = index.get(trajectory);
    if (i === undefined) return {};
    const columns: { [name: string]: Float64Array } = { coefficient: c.credit.token[i], weight: c.weights[i] };
    const trained = logp.get(i);
    if (trained) columns.logp = trained;
    if (c.waterfall.length > 1) for (const { slot, stage, method, token } of c.waterfall) columns[`coefficient.${slot}.${stage}.${method}`] = token[i];
    return { numbers: { reward: c.rewards.values[i], advantage: c.credit.trajectory[i] }, columns };
  };
}
