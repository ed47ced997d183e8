/**
 * The optimizer steps of one batch. Every step computes log-probs anew, so a second step's ratio is that of the weights it
 * differentiates. A minibatch's gradient is scaled by the number of minibatches (our choice): token weights are normalised
 * over the whole batch, so that this makes an unbiased estimate of the batch's gradient whatever the split.
 */
import { DivergenceError } from "../core/errors.js";
import type { RandomKey } from "../core/random.js";
import type { Derivatives, Engine, Forward, ParameterSet, Sequence, StepRequest, StepResult, UpdateRule, Want } from "../engine/contract.js";
import { type LossFunction, mergeStatistics, type Statistics, type Term } from "../losses/contract.js";
import { type Coefficients, lossOf, lossRows } from "../methods/coefficients.js";
import { Gap } from "./gap.js";
import { policy } from "./lab.js";
import { minibatches, pieces, policyActs } from "./minibatch.js";
import type { RuleOf } from "./rules.js";

export interface UpdateOptions {
  readonly minibatches: number;
  readonly epochs: number;
  readonly microbatch?: number;
  readonly temperature: number;
  /** Absent: gradients are not clipped. */
  readonly maxNorm?: number;
  /** Largest mean |difference of log-prob| between sampler and trainer. */
  readonly gapLimit: number;
  /** What is known of it before; the first minibatch adds to it. */
  readonly gap?: Gap;
  /** The update rule of update number n of the run, counted from 1. */
  readonly rule: RuleOf;
  /** Updates made before this batch. */
  readonly updates: number;
  /** Key of the split of an epoch. */
  readonly key: (epoch: number) => RandomKey;
}

export interface UpdateResult {
  /** Optimizer steps made. */
  readonly steps: number;
  /** Loss of the first epoch, each minibatch before its step. */
  readonly loss: number;
  readonly statistics: Statistics;
  readonly gap: Gap;
  readonly gradNorms: readonly number[];
  readonly clipped: number;
  /** Tokens that went through backward. */
  readonly tokens: number;
  /** Rows on which some loss could act. */
  readonly rows: number;
  /** By row: log-probs of its response in its last pass, before the optimizer step that followed it. [tokens] */
  readonly logp: ReadonlyMap<number, Float64Array>;
  /** Identity of the weights after the last step; undefined without a step. */
  readonly weights?: string;
}

const policySet = "role:policy" as const;

/** Trains on a batch. Throws DivergenceError when a loss or gradient is not finite, or the gap passes its limit; the policy is then as after the last whole step. */
export async function update(engine: Engine, c: Coefficients, options: UpdateOptions): Promise<UpdateResult> {
  const statistics: Statistics[] = [];
  const { gap = new Gap() } = options;
  const gradNorms: number[] = [];
  const logp = new Map<number, Float64Array>();
  const result = { steps: 0, loss: 0, clipped: 0, tokens: 0, rows: 0, weights: undefined as string | undefined };
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    const parts = minibatches(c, options.minibatches, options.key(epoch));
    if (epoch === 0) result.rows = parts.reduce((n, rows) => n + rows.length, 0);
    for (const rows of parts) {
      const sets = new Set<ParameterSet>();
      try {
        for (const piece of pieces(c, rows, options.microbatch)) {
          const passed = await passPiece(engine, c, piece, parts.length, options.temperature, result.steps === 0 ? gap : undefined);
          statistics.push(passed.statistics);
          if (epoch === 0) result.loss += passed.loss;
          result.tokens += passed.tokens;
          for (const set of passed.sets) sets.add(set);
          for (const [row, values] of passed.logp) logp.set(row, values);
        }
        if (result.steps === 0) checkGap(gap, options.gapLimit);
      } catch (error) {
        for (const set of new Set([policySet, ...sets])) if (set !== "inputs") await engine.weights.zeroGradient(set);
        throw error;
      }
      const done = await stepAll(engine, sets, (set) => options.rule(options.updates + result.steps + 1, set), options.maxNorm);
      result.steps++;
      if (done === undefined) continue;
      result.weights = done.weights;
      gradNorms.push(done.gradNorm);
      if (done.clipped) result.clipped++;
    }
  }
  const { weights, ...rest } = result;
  return { ...rest, ...(weights === undefined ? {} : { weights }), statistics: mergeStatistics(statistics), gap, gradNorms, logp };
}

interface Passed {
  readonly loss: number;
  readonly statistics: Statistics;
  readonly tokens: number;
  readonly sets: readonly ParameterSet[];
  readonly logp: readonly (readonly [number, Float64Array])[];
}

/** Forward, loss and backward of some rows, and of the terms that have a pass of their own. */
async function passPiece(engine: Engine, c: Coefficients, rows: readonly number[], scale: number, temperature: number, gap: Gap | undefined): Promise<Passed> {
  const onPolicy = [c.surrogate, ...c.terms.filter(({ on }) => on === undefined)];
  const sequences = rows.map((i): Sequence => ({ context: c.rows[i].trainedUnder, response: c.rows[i].response, weights: policy, temperature }));
  let loss = 0;
  let tokens = 0;
  const statistics: Statistics[] = [];
  const sets: ParameterSet[] = [];
  let logp: Passed["logp"] = [];
  if (policyActs(c, rows)) {
    const forward = await engine.forward(sequences, wantOf(onPolicy, rows));
    const main = await backward(engine, forward, policySet, scale, () => {
      if (gap) rows.forEach((row, i) => gap.add(c.rows[row], forward.scores[i]));
      return lossOf(c, rows, forward.scores);
    });
    logp = rows.map((row, i) => [row, forward.scores[i].logp] as const);
    loss += main.loss;
    tokens += lengthOf(sequences);
    statistics.push(main.statistics);
    sets.push(policySet);
  }
  for (const term of c.terms) {
    if (term.on === undefined) continue;
    const { set, sequence } = term.on;
    const others = rows.map(sequence);
    const own = await engine.forward(others, wantOf([term], rows));
    const passed = await backward(engine, own, set, scale, () => term.run(lossRows(c, rows, own.scores, others)));
    loss += passed.loss;
    tokens += lengthOf(others);
    statistics.push(passed.statistics);
    sets.push(set);
  }
  return { loss, statistics: mergeStatistics(statistics), tokens, sets, logp };
}

const lengthOf = (sequences: readonly Sequence[]): number => sequences.reduce((n, { response }) => n + response.length, 0);

/** Runs a loss on what `forward` gave and sends its derivatives back; the handle is freed whatever happens. */
async function backward(
  engine: Engine,
  { handle }: Forward,
  set: ParameterSet,
  scale: number,
  loss: () => ReturnType<Term["run"]>,
): Promise<{ loss: number; statistics: Statistics }> {
  let held = true;
  try {
    const { value, derivatives, statistics } = loss();
    held = false;
    await engine.backward(
      handle,
      derivatives.map((part) => scaled(part, scale)),
      set,
    );
    return { loss: value, statistics };
  } finally {
    if (held) await engine.release(handle);
  }
}

/** Everything that some losses read beside log-probs. */
function wantOf(losses: readonly LossFunction[], rows: readonly number[]): Want {
  const targets = losses.filter(({ want }) => want?.targets !== undefined);
  if (targets.length > 1)
    throw new TypeError(`the losses ${targets.map(({ name }) => name).join(" and ")} both read target log-probs; give each a pass of its own`);
  const [targeted] = targets;
  return {
    ...(losses.some(({ want }) => want?.entropy) ? { entropy: true } : {}),
    ...(losses.some(({ want }) => want?.values) ? { values: true } : {}),
    ...(targeted ? { targets: rows.map((i) => targeted.want?.targets?.(i)) } : {}),
  };
}

function scaled(derivatives: Derivatives, factor: number): Derivatives {
  if (factor === 1) return derivatives;
  const parts = Object.entries(derivatives) as [keyof Derivatives, Float64Array | undefined][];
  return Object.fromEntries(parts.flatMap(([name, values]) => (values ? [[name, values.map((x) => x * factor)]] : [])));
}

function checkGap(gap: Gap, limit: number): void {
  if (gap.mean <= limit) return;
  throw new DivergenceError({
    place: "sampler and trainer",
    cause: `their log-probs of the same tokens differ by ${gap.mean.toPrecision(3)} nats a token on average, more than limits.gap ${limit}`,
    mend: "check that both have the same weights, temperature and precision; raise limits.gap only if the method corrects for it",
    data: { reason: "gap", ...gap.metrics() },
  });
}

/** One optimizer step of each set that received a gradient; the policy's result, if it did. */
async function stepAll(
  engine: Engine,
  sets: ReadonlySet<ParameterSet>,
  rule: (set: ParameterSet) => UpdateRule,
  maxNorm: number | undefined,
): Promise<StepResult | undefined> {
  let result: StepResult | undefined;
  for (const set of sets) {
    if (set === "inputs") continue;
    const request: StepRequest = { set, update: rule(set), ...(maxNorm !== undefined && { maxNorm }) };
    const done = await engine.step(request);
    if (done.skipped) {
      throw new DivergenceError({
        place: `optimizer step of ${set}`,
        cause: `the gradient of ${done.skipped.parameter} is not finite`,
        mend: "lower the learning rate, or look at the rewards and lengths of this batch",
        data: { reason: "non-finite", parameter: done.skipped.parameter },
      });
    }
    if (set === policySet) result = done;
  }
  return result;
}
