import type { Context } from "../../core/problem.js";
import type { Engine, Sequence, WeightsRef } from "../contract.js";

/** A response with its exact probability. */
export interface Outcome {
  readonly ids: Int32Array;
  readonly logp: number;
  readonly probability: number;
  readonly stop: "eos" | "length";
}

export interface EnumerateRequest {
  readonly context: Context;
  readonly weights: WeightsRef;
  readonly temperature: number;
  readonly maxTokens: number;
  readonly stopIds: readonly number[];
}

/**
 * Every response that sampling can give, with its probability; they sum to 1. Works on any engine with `score.full`.
 * There are up to vocabulary ^ maxTokens, so this is for small ones.
 */
export async function enumerate(engine: Engine, { context, weights, temperature, maxTokens, stopIds }: EnumerateRequest): Promise<Outcome[]> {
  const stop = new Set(stopIds);
  const outcomes: Outcome[] = [];
  let prefixes: { readonly ids: readonly number[]; readonly logp: number }[] = [{ ids: [], logp: 0 }];
  for (let length = 1; length <= maxTokens && prefixes.length > 0; length++) {
    // The last position of prefix and any one token is the distribution after the prefix.
    const sequences = prefixes.map(({ ids }): Sequence => ({ context, response: Int32Array.from([...ids, 0]), weights, temperature }));
    const scores = await engine.score(sequences, { full: true });
    const longer: typeof prefixes = [];
    prefixes.forEach(({ ids, logp }, index) => {
      const full = scores[index].full!;
      const next = full.subarray(full.length - full.length / length);
      next.forEach((more, id) => {
        if (Math.exp(more) === 0) return;
        const child = { ids: [...ids, id], logp: logp + more };
        const ended = stop.has(id);
        if (ended || length === maxTokens) {
          outcomes.push({ ids: Int32Array.from(child.ids), logp: child.logp, probability: Math.exp(child.logp), stop: ended ? "eos" : "length" });
        } else longer.push(child);
      });
    });
    prefixes = longer;
  }
  return outcomes;
}

/** Exact expectation of a function of the response. */
export function expectation(outcomes: readonly Outcome[], f: (outcome: Outcome) => number): number {
  return outcomes.reduce((sum, outcome) => sum + outcome.probability * f(outcome), 0);
}
