/**
 * Supervised training: the mean negative log-likelihood of given responses, over all their tokens in a batch that are to be learnt.
 * It makes starters for reinforcement, and trains on accepted rollouts.
 */
import { DataError, DivergenceError } from "../core/errors.js";
import { plainContext } from "../core/problem.js";
import { randomKey, Stream } from "../core/random.js";
import type { Engine, ParameterRule, Sequence, UpdateRule } from "../engine/contract.js";
import { rateAt, type Schedule } from "../engine/schedule.js";
import { normLimit } from "./rules.js";

/** A prompt and the response to be learnt, as token ids. */
export interface Example {
  readonly context: Int32Array;
  /** With the end token, if the policy shall learn to stop. */
  readonly response: Int32Array;
  /** 1 where a token of the response is learnt; absent: everywhere. [tokens] */
  readonly loss?: Uint8Array;
}

export interface SftOptions {
  /** Examples of step s (counted from 0), which may be drawn anew each time; at least one. */
  readonly batch: (step: number) => readonly Example[] | Promise<readonly Example[]>;
  readonly steps: number;
  readonly schedule: Schedule;
  readonly role?: string;
  readonly update?: Omit<Extract<UpdateRule, { rule: "adamw" }>, "rule" | "rate">;
  readonly groups?: readonly ParameterRule[];
  /** Gradient clipping by global norm; default 1, or none where the engine cannot. */
  readonly maxNorm?: number;
  /** Finishes the step in hand, and ends with the steps so far. */
  readonly signal?: AbortSignal;
  /** Awaited before the next step. */
  readonly onStep?: (report: SftStep) => unknown;
}

/** What one step did. */
export interface SftStep {
  /** Counted from 1. */
  readonly step: number;
  /** Mean negative log-likelihood a response token, in nats, before the step. */
  readonly loss: number;
  readonly gradNorm: number;
  readonly rate: number;
  readonly tokens: number;
}

/** The batches of a fixed set of examples: each epoch in an order of its own, keyed by seed and epoch. */
export function epochs(examples: readonly Example[], batchSize: number, seed: number): (step: number) => Example[] {
  if (examples.length === 0) throw new DataError({ place: "sft data", cause: "there are no examples", mend: "give at least one prompt with its response" });
  let current = -1;
  let order: number[] = [];
  const indexes = examples.map((_, i) => i);
  const at = (n: number): Example => {
    const epoch = Math.floor(n / examples.length);
    if (epoch !== current) {
      order = new Stream(randomKey({ seed, purpose: "sft-order", step: epoch })).shuffle(indexes);
      current = epoch;
    }
    return examples[order[n % examples.length]];
  };
  return (step) => Array.from({ length: batchSize }, (_, i) => at(step * batchSize + i));
}

/** Trains a role on examples; returns the reports of the steps that were made. Throws a DivergenceError when loss or gradient is not finite. */
export async function sft(engine: Engine, options: SftOptions): Promise<SftStep[]> {
  const { role = "policy", steps, schedule, groups } = options;
  const { update = engine.info.has.has("optimizer.moments") ? { beta1: 0.9, beta2: 0.95, weightDecay: 0 } : {} } = options;
  const maxNorm = normLimit(engine.info, options.maxNorm, "maxNorm");
  const set = `role:${role}` as const;
  const reports: SftStep[] = [];
  for (let step = 0; step < steps && !options.signal?.aborted; step++) {
    const examples = await options.batch(step);
    const sequences = examples.map(({ context, response }): Sequence => ({ context: plainContext(context), response, weights: { role }, temperature: 1 }));
    // [examples][tokens]
    const learnt = examples.map(({ response, loss }) => loss ?? new Uint8Array(response.length).fill(1));
    const tokens = learnt.reduce((sum, mask) => mask.reduce((n, m) => n + m, sum), 0);
    if (tokens === 0)
      throw new DataError({ place: `sft step ${step + 1}`, cause: "its examples have no response token", mend: "give responses that are not empty" });
    const { handle, scores } = await engine.forward(sequences);
    const loss = scores.reduce((sum, { logp }, i) => logp.reduce((a, b, t) => (learnt[i][t] ? a - b : a), sum), 0) / tokens;
    if (!Number.isFinite(loss)) {
      await engine.release(handle);
      throw new DivergenceError({
        place: `sft step ${step + 1}`,
        cause: `the loss is ${loss}`,
        mend: "lower the learning rate, or check the weights it started from",
        data: { step: step + 1 },
      });
    }
    await engine.backward(
      handle,
      learnt.map((mask) => ({ dLogp: Float64Array.from(mask, (m) => (m ? -1 / tokens : 0)) })),
      set,
    );
    const rate = rateAt(schedule, step + 1);
    const result = await engine.step({
      set,
      update: { rule: "adamw", rate, ...update },
      ...(maxNorm !== undefined && { maxNorm }),
      ...(groups ? { groups } : {}),
    });
    if (result.skipped) {
      const { parameter } = result.skipped;
      throw new DivergenceError({
        place: `sft step ${step + 1}`,
        cause: `the gradient of ${parameter} is not finite`,
        mend: "lower the learning rate, or check the data",
        data: { step: step + 1, parameter },
      });
    }
    const report = { step: step + 1, loss, gradNorm: result.gradNorm, rate, tokens };
    reports.push(report);
    await options.onStep?.(report);
  }
  return reports;
}
