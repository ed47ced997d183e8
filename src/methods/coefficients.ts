/**
 * The way from a batch to a loss, through the slots of a resolved method: rewards, credit, masks, bounds, token weights and
 * terms; then the loss of any minibatch of its rows.
 */
import { ArgumentError, DivergenceError } from "../core/errors.js";
import type { Batch, Trajectory } from "../core/trajectory.js";
import type { Derivatives, Scores, Sequence } from "../engine/contract.js";
import { type LossResult, type LossRow, mergeStatistics, type Surrogate, type Term } from "../losses/contract.js";
import type { Bounds, Lab, Mask, Rewards } from "./contract.js";
import { type Credit, rowsByGroup, rowsOf } from "./credit.js";
import { checkInvariants } from "./invariants.js";
import { scoredTokens } from "./keep.js";
import type { Resolved } from "./resolve.js";

/** Token coefficients after one slot: the view shows them as a waterfall. */
export interface Fall {
  readonly method: string;
  readonly slot: "credit" | "shape";
  /** Position among the stages of `shape`; 0 for `credit`. */
  readonly stage: number;
  /** [rows][tokens] */
  readonly token: readonly Float64Array[];
}

/** Everything a step needs between rollout and loss. Arrays are parallel to `rows`. */
export interface Coefficients {
  readonly batch: Batch;
  readonly rows: readonly Trajectory[];
  readonly rewards: Rewards;
  readonly credit: Credit;
  readonly waterfall: readonly Fall[];
  readonly mask: Mask;
  readonly bounds: Bounds;
  /** Token weights of the policy's loss, normaliser of the whole batch included. */
  readonly weights: readonly Float64Array[];
  readonly surrogate: Surrogate;
  readonly terms: readonly Term[];
}

/** Runs the slots from `reward` to `terms` over a batch, and checks what each returns. */
export async function coefficientsOf(method: Resolved, batch: Batch, lab: Lab): Promise<Coefficients> {
  const rows = rowsOf(batch);
  let rewards = checkRewards(method.one.reward.from, await method.one.reward.value(batch, lab), rows);
  for (const stage of method.stages.adjust) rewards = checkRewards(stage.from, await stage.run(batch, rewards, lab), rows);

  const base = scoredTokens(rows, rewards);
  let credit = await method.one.credit.value(batch, rewards, lab);
  checkCredit(method.one.credit.from, credit, rows, base);
  const waterfall: Fall[] = [{ method: method.one.credit.from, slot: "credit", stage: 0, token: credit.token }];
  for (const [i, stage] of method.stages.shape.entries()) {
    const before = credit;
    credit = await stage.run(batch, before, lab);
    checkCredit(stage.from, credit, rows, base);
    checkInvariants(stage.from, stage.keeps ?? [], before, credit, base.policy);
    waterfall.push({ method: stage.from, slot: "shape", stage: i, token: credit.token });
  }

  let mask = base;
  for (const stage of method.stages.keep) mask = intersect(mask, stage.run(batch, credit), stage.from);
  const surrogate = method.one.loss.value;
  let bounds: Bounds = rows.map((row) => ({
    low: new Float64Array(row.response.length).fill(surrogate.bounds.low),
    high: new Float64Array(row.response.length).fill(surrogate.bounds.high),
  }));
  for (const stage of method.stages.bounds) bounds = checkBounds(stage.from, stage.run(batch, credit, bounds), rows);

  const aggregate = method.one.aggregate;
  const weights = checkTokens(`aggregate of ${aggregate.from}`, aggregate.value(batch, { rows: mask.rows, tokens: mask.policy }, lab.settings), rows);
  const terms: Term[] = [];
  if (method.stages.terms.length > 0) {
    const termWeights = checkTokens(`aggregate of ${aggregate.from}`, aggregate.value(batch, { rows: mask.rows, tokens: mask.terms }, lab.settings), rows);
    const termMask = { rows: mask.rows, tokens: mask.terms, weights: termWeights };
    for (const stage of method.stages.terms) terms.push(...(await stage.run(batch, termMask, lab)));
    withOwnTargets(terms, rows, lab);
  }
  return { batch, rows, rewards, credit, waterfall, mask, bounds, weights, surrogate, terms };
}

/** One pass reads one set of target log-probs: terms that read others, after the first, get a pass of the policy for themselves. */
function withOwnTargets(terms: Term[], rows: readonly Trajectory[], lab: Lab): void {
  const main = terms.filter(({ on, want }) => on === undefined && want?.targets !== undefined);
  for (const term of main.slice(1)) {
    const sequence = (index: number): Sequence => {
      const { trainedUnder: context, response } = rows[index] as Trajectory;
      return { context, response, weights: lab.policy, temperature: lab.settings.temperature };
    };
    terms[terms.indexOf(term)] = { ...term, on: { set: "role:policy", sequence } };
  }
}

/**
 * Loss of a minibatch: the surrogate and all terms on the policy's own pass (terms with a pass of their own are the
 * caller's, through `lossRows`). `indices` are rows of the batch, `scores` what `forward` gave for them.
 */
export function lossOf(c: Coefficients, indices: readonly number[], scores: readonly Scores[]): LossResult {
  const rows = lossRows(c, indices, scores);
  const results = [c.surrogate, ...c.terms.filter((term) => term.on === undefined)].map((loss) => loss.run(rows));
  return {
    value: results.reduce((sum, result) => sum + result.value, 0),
    derivatives: rows.map((_, i) => addDerivatives(results.map((result) => result.derivatives[i] as Derivatives))),
    statistics: mergeStatistics(results.map((result) => result.statistics)),
  };
}

/** The rows of a minibatch as losses read them. `sequences`: what was scored, in a pass of its own; absent: the rows' responses. */
export function lossRows(c: Coefficients, indices: readonly number[], scores: readonly Scores[], sequences?: readonly Sequence[]): LossRow[] {
  if (indices.length !== scores.length) {
    throw new ArgumentError({ place: "minibatch", cause: `${scores.length} scores were given for ${indices.length} rows`, mend: "give one for each row" });
  }
  return indices.map((index, i) => {
    const trajectory = c.rows[index] as Trajectory;
    const now = scores[i] as Scores;
    const { length } = (sequences?.[i] ?? trajectory).response;
    if (now.logp.length !== length) {
      throw new ArgumentError({
        place: `minibatch, trajectory ${trajectory.key}`,
        cause: `${now.logp.length} log-probs were given for ${length} response tokens`,
        mend: "score the whole response",
      });
    }
    const bounds = c.bounds[index] as Bounds[number];
    return {
      index,
      trajectory,
      now,
      old: (trajectory.old ?? trajectory.behaviour).values,
      behaviour: trajectory.behaviour.values,
      mask: c.mask.policy[index] as Uint8Array,
      coefficient: c.credit.token[index] as Float64Array,
      weights: c.weights[index] as Float64Array,
      low: bounds.low,
      high: bounds.high,
    };
  });
}

/** Derivatives of a sum of losses on one sequence. */
export function addDerivatives(parts: readonly Derivatives[]): Derivatives {
  const total: { -readonly [K in keyof Derivatives]: Derivatives[K] } = {};
  for (const part of parts) {
    for (const key of Object.keys(part) as (keyof Derivatives)[]) {
      const next = part[key];
      const seen = total[key];
      if (next !== undefined) total[key] = seen ? seen.map((x, i) => x + (next[i] as number)) : next;
    }
  }
  return total;
}

/** Indices of groups in which no token has both a place in the policy's loss and a coefficient; silent unless a term acts on them (C20). */
export function groupsWithoutCoefficient(c: Coefficients): number[] {
  return rowsByGroup(c.batch).flatMap((rows, g) => {
    const loud = rows.some((i) => (c.mask.policy[i] as Uint8Array).some((m, t) => m === 1 && (c.credit.token[i] as Float64Array)[t] !== 0));
    return loud ? [] : [g];
  });
}

function intersect(a: Mask, b: Mask, from: string): Mask {
  if (b.rows.length !== a.rows.length || b.policy.some((m, i) => m.length !== a.policy[i]?.length) || b.terms.some((m, i) => m.length !== a.terms[i]?.length)) {
    throw new ArgumentError({
      place: `keep of ${from}`,
      cause: "its masks do not have the shape of the batch",
      mend: "start from keepTokens or keepRows of src/methods/keep.ts",
    });
  }
  const rows = a.rows.map((m, i) => m & (b.rows[i] as number));
  const both = (x: readonly Uint8Array[], y: readonly Uint8Array[]) =>
    x.map((row, i) => row.map((m, t) => (rows[i] ? m & ((y[i] as Uint8Array)[t] as number) : 0)));
  return { rows, policy: both(a.policy, b.policy), terms: both(a.terms, b.terms) };
}

function checkRewards(from: string, rewards: Rewards, rows: readonly Trajectory[]): Rewards {
  const place = `reward of ${from}`;
  if (rewards.values.length !== rows.length) {
    throw new ArgumentError({
      place,
      cause: `${rewards.values.length} rewards were given for ${rows.length} trajectories`,
      mend: "give one for each, in the order of rowsOf(batch)",
    });
  }
  if (rewards.tokens) checkTokens(place, rewards.tokens, rows);
  rewards.values.forEach((value, i) => {
    const key = (rows[i] as Trajectory).key;
    if (value !== undefined && !Number.isFinite(value)) {
      throw new DivergenceError({
        place,
        cause: `the reward of ${key} is ${value}`,
        mend: "return a number, or unscored(reason) where there is none",
        data: { trajectory: key },
      });
    }
  });
  return rewards;
}

function checkCredit(from: string, credit: Credit, rows: readonly Trajectory[], mask: Mask): void {
  rows.forEach((row, i) => {
    const tokens = credit.token[i] as Float64Array;
    for (let t = 0; t < tokens.length; t++) {
      if (mask.policy[i]?.[t] && !Number.isFinite(tokens[t])) {
        throw new DivergenceError({
          place: `credit of ${from}`,
          cause: `the coefficient of token ${t} of ${row.key} is ${tokens[t]}`,
          mend: "guard the division or logarithm that made it",
          data: { trajectory: row.key, token: t },
        });
      }
    }
  });
}

function checkBounds(from: string, bounds: Bounds, rows: readonly Trajectory[]): Bounds {
  checkTokens(
    `bounds of ${from}`,
    bounds.map((b) => b.low),
    rows,
  );
  checkTokens(
    `bounds of ${from}`,
    bounds.map((b) => b.high),
    rows,
  );
  return bounds;
}

function checkTokens<T extends readonly Float64Array[]>(place: string, arrays: T, rows: readonly Trajectory[]): T {
  if (arrays.length !== rows.length) {
    throw new ArgumentError({
      place,
      cause: `${arrays.length} arrays were given for ${rows.length} trajectories`,
      mend: "give one for each, in the order of rowsOf(batch)",
    });
  }
  rows.forEach((row, i) => {
    const length = (arrays[i] as Float64Array).length;
    if (length !== row.response.length) {
      throw new ArgumentError({
        place,
        cause: `${length} numbers were given for the ${row.response.length} tokens of ${row.key}`,
        mend: "give one a response token",
      });
    }
  });
  return arrays;
}
