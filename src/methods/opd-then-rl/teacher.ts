/** How far the teacher is from the policy on its own answers. */
import type { Batch, Trajectory } from "../../core/trajectory.js";
import type { Scores, Sequence, TopK, WeightsRef } from "../../engine/contract.js";
import type { Lab } from "../contract.js";
import { rowsOf } from "../credit.js";

export interface Distance {
  /** Teacher's log-prob less own at the weights of the rollout; 0 where nothing is distilled. [rows][tokens] */
  readonly gaps: readonly Float64Array[];
  /** Mean of minus that over the tokens that are distilled: the reverse KL, estimated. Undefined without any. */
  readonly kl: number | undefined;
  /** Mean probability that the policy gives to tokens among the k most likely of both; undefined where k is 0. */
  readonly shared: number | undefined;
}

/** Whether a token is one that the teacher can be asked about: written by the policy, and no end of another kind than the teacher's. */
export type Distils = (row: Trajectory, token: number) => boolean;

export async function distanceTo(role: string, batch: Batch, lab: Lab, distils: Distils, k: number): Promise<Distance> {
  const rows = rowsOf(batch);
  const under = (weights: WeightsRef): Promise<Scores[]> =>
    lab.score(
      rows.map((row) => sequenceOf(row, weights)),
      k > 0 ? { topK: k } : {},
    );
  const teacher = await under({ role });
  const own = k > 0 ? await under(lab.policy) : [];
  const [kl, shared] = [new Mean(), new Mean()];
  const gaps = rows.map((row, i) => {
    const { logp, top } = teacher[i] as Scores;
    const mine = own[i]?.top;
    return (row.old ?? row.behaviour).values.map((old, t) => {
      if (!distils(row, t)) return 0;
      const gap = (logp[t] as number) - old;
      kl.add(-gap);
      if (mine && top) shared.add(massShared(mine, top, t));
      return gap;
    });
  });
  return { gaps, kl: kl.value, shared: shared.value };
}

function sequenceOf(row: Trajectory, weights: WeightsRef): Sequence {
  return { context: row.trainedUnder, response: row.response, weights, temperature: (row.old ?? row.behaviour).conditions.temperature };
}

/** The first's probability of its likely tokens that are the second's too, at one position. */
export function massShared(own: TopK, other: TopK, t: number): number {
  const theirs = new Set(other.ids.subarray(t * other.k, (t + 1) * other.k));
  let mass = 0;
  for (let j = t * own.k; j < (t + 1) * own.k; j++) if (theirs.has(own.ids[j] as number)) mass += Math.exp(own.logp[j] as number);
  return mass;
}

class Mean {
  private sum = 0;
  private count = 0;
  add(x: number): void {
    this.sum += x;
    this.count++;
  }
  get value(): number | undefined {
    return this.count === 0 ? undefined : this.sum / this.count;
  }
}
