import type { Derivatives, Scores, ScoreWant, Sequence, Want } from "../contract.js";
import { entropyOf, logitGradient, tailOf, topOf } from "../values.js";
import type { Features, TableModel } from "./model.js";
import type { Weighted } from "./roles.js";

/** One sequence run under its weights: what `backward` needs later. */
export interface Pass {
  readonly sequence: Sequence;
  readonly model: TableModel;
  readonly weights: Weighted;
  /** Features before each response token and after the last; log-probs of all but the last. */
  readonly features: readonly Features[];
  readonly distributions: readonly Float64Array[];
}

/** What was asked for, of one pass. */
export function report({ sequence, model, weights, features, distributions }: Pass, want: ScoreWant, index: number): Scores {
  const { context, response } = sequence;
  const targets = want.targets?.[index];
  const per = (f: (logp: Float64Array, t: number) => number): Float64Array => Float64Array.from(distributions, f);
  const tops = want.topK === undefined ? [] : distributions.map((logp) => topOf(logp, want.topK!));
  const listed = (t: number): Int32Array => targets!.ids.subarray(t * targets!.k, (t + 1) * targets!.k);
  const hidden = (): Float32Array => {
    const ids = [...context.ids, ...response];
    return joined32(ids.map((_, position) => model.dense(model.features(context, ids, position))));
  };
  return {
    logp: per((logp, t) => logp[response[t]]),
    ...(want.entropy ? { entropy: per(entropyOf) } : {}),
    ...(want.values ? { values: Float64Array.from(features, (here) => model.value(weights.tensors, here)) } : {}),
    ...(targets
      ? {
          targetLogp: joined(distributions.map((logp, t) => Float64Array.from(listed(t), (id) => logp[id]))),
          targetTail: per((logp, t) => tailOf(logp, listed(t))),
        }
      : {}),
    ...(want.topK === undefined
      ? {}
      : {
          top: {
            k: want.topK,
            ids: Int32Array.from(tops.flatMap(({ ids }) => [...ids])),
            logp: joined(tops.map(({ logp }) => logp)),
            tail: Float64Array.from(tops, ({ tail }) => tail),
          },
        }),
    ...(want.hidden ? { hidden: Object.fromEntries(want.hidden.map((layer) => [String(layer), hidden()])) } : {}),
    ...(want.full ? { full: joined(distributions) } : {}),
    weights: weights.identity,
  };
}

/** dL/dlogits before response token t. */
export function logitsGradient({ sequence, distributions }: Pass, t: number, given: Derivatives, want: Want, index: number): Float64Array {
  const targets = want.targets?.[index];
  const range = [t * (targets?.k ?? 0), (t + 1) * (targets?.k ?? 0)] as const;
  const ids = targets?.ids.subarray(...range) ?? [];
  return logitGradient(distributions[t], sequence.temperature, {
    token: sequence.response[t],
    dLogp: given.dLogp?.[t] ?? 0,
    dEntropy: given.dEntropy?.[t] ?? 0,
    ids,
    dTargetLogp: given.dTargetLogp?.subarray(...range) ?? new Float64Array(ids.length),
    dTargetTail: given.dTargetTail?.[t] ?? 0,
  });
}

/** Arrays end to end. */
export function joined(arrays: readonly Float64Array[]): Float64Array {
  return fill(arrays, new Float64Array(lengthOf(arrays)));
}

function joined32(arrays: readonly Float32Array[]): Float32Array {
  return fill(arrays, new Float32Array(lengthOf(arrays)));
}

function lengthOf(arrays: readonly { readonly length: number }[]): number {
  return arrays.reduce((sum, { length }) => sum + length, 0);
}

function fill<T extends Float32Array | Float64Array>(arrays: readonly T[], result: T): T {
  let offset = 0;
  for (const array of arrays) {
    result.set(array, offset);
    offset += array.length;
  }
  return result;
}
