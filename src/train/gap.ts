/** How far sampler and trainer differ on the same tokens, weights, context and temperature: |difference| and KL. */
import { type Group, type Trajectory, trained } from "../core/trajectory.js";
import type { Scores } from "../engine/contract.js";
import type { Lab } from "../methods/contract.js";
import { sameConditions, sameContext } from "../methods/old.js";

/** Sums over tokens that can be compared. */
export class Gap {
  private tokens = 0;
  private absolute = 0;
  private most = 0;
  private k3 = 0;

  /** Adds one trajectory: its behaviour log-probs against those of the trainer at the weights that drew it. */
  add(trajectory: Trajectory, trainer: Scores): void {
    if (comparable(trajectory)) this.compare(trajectory, trainer);
  }

  /** The same for log-probs that were computed under the trajectory's own context and temperature; nothing where the weights are others. */
  compare(trajectory: Trajectory, trainer: Scores): void {
    const { conditions, values } = trajectory.behaviour;
    if (trainer.weights !== conditions.weights) return;
    for (let t = 0; t < values.length; t++) {
      if (!trajectory.sampled[t]) continue;
      const difference = trainer.logp[t] - values[t];
      this.tokens++;
      this.absolute += Math.abs(difference);
      this.most = Math.max(this.most, Math.abs(difference));
      this.k3 += Math.expm1(Math.min(difference, 20)) - difference;
    }
  }

  /** Mean |difference|, in nats a token; 0 where there was nothing to compare. */
  get mean(): number {
    return this.tokens === 0 ? 0 : this.absolute / this.tokens;
  }

  /** `gap_mean`, `gap_max`: |difference of log-prob| a token; `gap_kl`: KL(sampler, trainer) estimated by k3 on the sampled tokens. */
  metrics(): { [name: string]: number } {
    return this.tokens === 0 ? {} : { gap_mean: this.mean, gap_max: this.most, gap_kl: this.k3 / this.tokens };
  }
}

/** Whether a trajectory was sampled under the conditions that it is trained under, so that the log-probs of its training tell of the sampler. */
function comparable({ old, behaviour, sampledUnder, trainedUnder }: Trajectory): boolean {
  return sameContext(sampledUnder, trainedUnder) && (old === undefined || sameConditions(old.conditions, behaviour.conditions));
}

/** The gap of a batch before its training: empty where that will tell it, else measured on one group by a pass of its own. */
export function gapBeside(groups: readonly Group[], lab: Lab): Gap | Promise<Gap> {
  return groups.some((group) => trained(group).some(comparable)) ? new Gap() : gapAsSampled(groups, lab);
}

/**
 * The gap of a batch that other weights are going to train, or that is trained under other contexts: one group, the first in key order that can be compared, scored
 * by the trainer under the conditions that it was sampled under.
 */
export async function gapAsSampled(groups: readonly Group[], lab: Lab): Promise<Gap> {
  const told = (group: Group): Trajectory[] =>
    trained(group).filter(({ role, sampled, behaviour }) => role === "policy" && sampled.includes(1) && behaviour.conditions.truncation === undefined);
  const rows = [...groups]
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(told)
    .find((some) => some.length > 0);
  const gap = new Gap();
  if (rows === undefined) return gap;
  const sequences = rows.map(({ sampledUnder, response, behaviour }) => {
    return { context: sampledUnder, response, weights: lab.policy, temperature: behaviour.conditions.temperature };
  });
  const scores = await lab.book("aux").score(sequences);
  rows.forEach((row, i) => gap.compare(row, scores[i] as Scores));
  return gap;
}
