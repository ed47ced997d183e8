/** The KL to the role `reference` as slots, for every method that offers it: in the loss, or in the reward. */
import type { Batch } from "../core/trajectory.js";
import type { Sequence } from "../engine/contract.js";
import { type KlEstimator, klPenalty, klTerm } from "../losses/kl.js";
import type { Lab, Need, Rewards, Slots } from "./contract.js";
import { rowsOf } from "./credit.js";

export interface KlOptions {
  /** 0: no KL and no reference needed. */
  readonly coefficient: number;
  readonly estimator: KlEstimator;
  readonly place: "loss" | "reward";
}

/** The slots and needs of a KL to the reference; empty for coefficient 0. */
export function klSlots(options: KlOptions): { slots: Pick<Slots, "adjust" | "terms">; needs: readonly Need[] } {
  const { coefficient, estimator, place } = options;
  if (coefficient === 0) return { slots: {}, needs: [] };
  const needs = [{ for: "the KL to the reference", oneOf: [{ capabilities: ["score", "roles"], roles: ["reference"] }] }] as const;
  const about = `${coefficient} ${estimator} to the reference`;
  if (place === "loss") {
    return {
      needs,
      slots: {
        terms: {
          about,
          run: async (batch, mask, lab) => [klTerm({ estimator, coefficient, reference: await referenceLogp(batch, lab), weights: mask.weights })],
        },
      },
    };
  }
  return { needs, slots: { adjust: { about, run: (batch, rewards, lab) => penalised(batch, rewards, lab, estimator, coefficient) } } };
}

async function penalised(batch: Batch, rewards: Rewards, lab: Lab, estimator: KlEstimator, coefficient: number): Promise<Rewards> {
  const reference = await referenceLogp(batch, lab);
  const tokens = rowsOf(batch).map((row, i) => {
    const old = (row.old ?? row.behaviour).values;
    const penalty = klPenalty(estimator, coefficient, old, reference[i] as Float64Array, row.reward);
    const before = rewards.tokens?.[i];
    return before ? penalty.map((x, t) => x + (before[t] as number)) : penalty;
  });
  return { values: rewards.values, tokens };
}

/** Log-probs of the rows under a role, at their training context and the temperature of the policy. [rows][tokens] */
export async function referenceLogp(batch: Batch, lab: Lab, role = "reference"): Promise<Float64Array[]> {
  const sequences = rowsOf(batch).map(
    (row): Sequence => ({
      context: row.trainedUnder,
      response: row.response,
      weights: { role },
      temperature: (row.old ?? row.behaviour).conditions.temperature,
    }),
  );
  return (await lab.score(sequences)).map((scores) => scores.logp);
}
