/** Segments of an answer, cut after the peaks of the entropy that it was sampled with. */
import { note } from "../../core/note.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Trajectory } from "../../core/trajectory.js";

export interface Peaks {
  /** Weight of a token's own entropy in the moving average (alpha). */
  readonly smoothing: number;
  /** A peak is at or above this quantile of the answer's smoothed entropies (q_H). */
  readonly quantile: number;
  /** Tokens within which there is one peak (Delta). */
  readonly window: number;
}

/** `shuffled`: an answer's entropies at other tokens of it; `whole`: one segment an answer, which is GSPO. */
export const controls = ["none", "shuffled", "whole"] as const;
export type Control = (typeof controls)[number];

/** On a trajectory: the first token of each segment, ascending, counted from the start of the response. */
export const segmentsNote = note<readonly number[]>("hispo.segments");

/** H~_1 = H_1, H~_t = a H_t + (1 - a) H~_(t-1). */
export function smoothed(entropy: ArrayLike<number>, a: number): Float64Array {
  const result = Float64Array.from(entropy);
  for (let t = 1; t < result.length; t++) result[t] = a * entropy[t] + (1 - a) * result[t - 1];
  return result;
}

/** Tokens before each inner boundary, ascending: a boundary b ends a segment with the b-th token, which is a peak. */
export function boundaries(entropy: ArrayLike<number>, { smoothing, quantile, window }: Peaks): number[] {
  const h = smoothed(entropy, smoothing);
  const length = h.length;
  if (length < 3) return [];
  const threshold = quantileOf(h, quantile);
  const half = Math.floor(window / 2);
  const isLargest = (t: number): boolean => h.subarray(Math.max(0, t - half), t + half + 1).every((x) => x <= h[t]);
  const kept: number[] = [];
  for (let t = 1; t < length - 1; t++) {
    const isPeak = h[t] >= threshold && h[t] >= h[t - 1] && h[t] > h[t + 1];
    const last = kept.at(-1);
    if (isPeak && (last === undefined || t + 1 - last >= window) && isLargest(t)) kept.push(t + 1);
  }
  return kept;
}

function quantileOf(values: Float64Array, share: number): number {
  const sorted = values.slice().sort();
  const at = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (at - Math.floor(at)) * (high - low);
}

/** The tokens of an answer on which the policy's loss may fall: those that segments are made of. */
const validTokens = ({ reward, loss }: Trajectory): number[] => [...reward.keys()].filter((t) => reward[t] === 1 && loss[t] === 1);

/** Entropies of the rollout as a control has them. [tokens] */
export function entropiesOf(row: Trajectory, control: Control): Float64Array {
  if (control !== "shuffled") return row.entropy;
  const valid = validTokens(row);
  const from = new Stream(randomKey({ seed: row.random[0], purpose: "hispo/shuffle", problem: row.key })).shuffle(valid);
  const result = row.entropy.slice();
  valid.forEach((t, i) => {
    result[t] = row.entropy[from[i]];
  });
  return result;
}

/** Index of the segment of each response token. It comes from the entropies of the rollout, is left as a note, and stays whatever the policy becomes. */
export function segmentsOf(row: Trajectory, peaks: Peaks, control: Control): Int32Array {
  let starts = segmentsNote.get(row);
  if (starts === undefined) {
    const valid = validTokens(row);
    const entropies = entropiesOf(row, control);
    const cuts =
      control === "whole"
        ? []
        : boundaries(
            valid.map((t) => entropies[t]),
            peaks,
          );
    starts = [0, ...cuts.map((cut) => valid[cut])];
    segmentsNote.set(row, starts);
  }
  const result = new Int32Array(row.response.length);
  for (const [k, start] of starts.entries()) result.fill(k, start);
  return result;
}

/**
 * Saliency of each segment among the tokens of a mask: the softmax of mean entropies as numerators and their sum, so that
 * equal ones cancel without rounding; and the number of its tokens. Segments outside the mask have none.
 */
export function saliency(
  segments: Int32Array,
  entropy: ArrayLike<number>,
  mask: Uint8Array,
): { readonly parts: Float64Array; readonly sum: number; readonly sizes: Float64Array } {
  const count = segments.reduce((most, k) => Math.max(most, k + 1), 0);
  const [sums, sizes] = [new Float64Array(count), new Float64Array(count)];
  segments.forEach((k, t) => {
    if (mask[t] !== 1) return;
    sums[k] += entropy[t];
    sizes[k]++;
  });
  const means = sums.map((sum, k) => (sizes[k] > 0 ? sum / sizes[k] : Number.NEGATIVE_INFINITY));
  const most = Math.max(...means);
  const parts = means.map((mean, k) => (sizes[k] > 0 ? Math.exp(mean - most) : 0));
  return { parts, sum: parts.reduce((a, b) => a + b, 0), sizes };
}
