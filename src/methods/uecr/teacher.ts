/** What the teacher says of a batch's answers, and how it shares out an answer's credit. */
import { Stream } from "../../core/random.js";
import type { Batch, Trajectory } from "../../core/trajectory.js";
import type { Sequence } from "../../engine/contract.js";
import type { Lab } from "../contract.js";
import { rowsOf } from "../credit.js";
import { sameContext } from "../old.js";

/** `noise`: the teacher's gaps at other tokens of the batch; `entropies`: its entropies at other tokens of the answer. */
export const controls = ["none", "noise", "entropies"] as const;
export type Control = (typeof controls)[number];

/** Numbers of one answer, [tokens] of its response. */
export interface Told {
  /** 1 where the policy's loss may fall. */
  readonly mask: Uint8Array;
  /** Log-prob under the teacher less the own at the weights of the rollout, both at temperature 1 (delta). */
  readonly gap: Float64Array;
  /** Of the teacher's distribution at temperature 1, nats. */
  readonly entropy: Float64Array;
}

const at = (row: Trajectory, weights: Sequence["weights"]): Sequence => ({ context: row.trainedUnder, response: row.response, weights, temperature: 1 });

/** The own log-probs at temperature 1: those of the rollout where it had that temperature, else computed. [rows][tokens] */
async function ownLogp(rows: readonly Trajectory[], lab: Lab): Promise<Float64Array[]> {
  const known = rows.map(({ old, behaviour, sampledUnder, trainedUnder }) => {
    const logp = old ?? (sameContext(sampledUnder, trainedUnder) ? behaviour : undefined);
    return logp?.conditions.temperature === 1 ? logp.values : undefined;
  });
  const missing = [...rows.keys()].filter((i) => known[i] === undefined);
  const scored = missing.length === 0 ? [] : await lab.score(missing.map((i) => at(rows[i], lab.policy)));
  const added = new Map(missing.map((i, n) => [i, scored[n].logp]));
  return known.map((logp, i) => logp ?? (added.get(i) as Float64Array));
}

/** What the teacher says of each row. Asked twice in a step, the lab remembers its scores. */
export async function told(batch: Batch, lab: Lab, control: Control): Promise<Told[]> {
  const rows = rowsOf(batch);
  const teacher = await lab.score(
    rows.map((row) => at(row, { role: "teacher" })),
    { entropy: true },
  );
  const own = await ownLogp(rows, lab);
  const all = rows.map(
    (row, i): Told => ({
      mask: row.reward.map((m, t) => m & row.loss[t]),
      gap: teacher[i].logp.map((logp, t) => logp - own[i][t]),
      entropy: teacher[i].entropy as Float64Array,
    }),
  );
  if (control === "none") return all;
  const random = new Stream(lab.key({ purpose: `uecr/${control}`, step: lab.step }));
  if (control === "entropies") return all.map((each) => ({ ...each, entropy: shuffledWithin([each], "entropy", random)[0] }));
  const gaps = shuffledWithin(all, "gap", random);
  return all.map((each, i) => ({ ...each, gap: gaps[i] }));
}

/** One of the numbers, at other valid tokens of these answers. */
function shuffledWithin(all: readonly Told[], what: "gap" | "entropy", random: Stream): Float64Array[] {
  const places = all.flatMap(({ mask }, i) => [...mask.keys()].filter((t) => mask[t] === 1).map((t) => [i, t] as const));
  const result = all.map((each) => each[what].slice());
  random.shuffle(places).forEach(([i, t], n) => {
    const [j, u] = places[n];
    result[j][u] = all[i][what][t];
  });
  return result;
}

/** Mean gap of each episode, on each of its rows (RT): the teacher's score of an answer. [rows] */
export function scoresOf(batch: Batch, all: readonly Told[]): Float64Array {
  const episodes = new Map<string, { sum: number; count: number }>();
  const rows = rowsOf(batch);
  rows.forEach(({ episode }, i) => {
    const { mask, gap } = all[i];
    const seen = episodes.get(episode) ?? { sum: 0, count: 0 };
    episodes.set(episode, seen);
    mask.forEach((m, t) => {
      if (m !== 1) return;
      seen.sum += gap[t];
      seen.count++;
    });
  });
  return Float64Array.from(rows, ({ episode }) => {
    const { sum, count } = episodes.get(episode) as { sum: number; count: number };
    return count === 0 ? 0 : sum / count;
  });
}

export interface Softness {
  readonly tau_gap: number;
  readonly tau_entropy: number;
}

/** q of an answer whose task credit has this sign: between -1 and 1, 0 outside the mask, and of sum 0. [tokens] */
export function redistribution({ mask, gap, entropy }: Told, sign: number, { tau_gap, tau_entropy }: Softness): Float64Array {
  const direction = gap.map((delta) => Math.tanh((sign * delta) / (2 * tau_gap)));
  const confidence = entropy.map((h, t) => (mask[t] === 1 ? Math.exp(-h / tau_entropy) : 0));
  const total = confidence.reduce((a, b) => a + b, 0);
  if (total === 0) return new Float64Array(mask.length);
  const mean = confidence.reduce((sum, c, t) => sum + c * direction[t], 0) / total;
  return confidence.map((c, t) => 0.5 * c * (direction[t] - mean));
}
