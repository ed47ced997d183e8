/**
 * From sequences of the contract to those of the protocol, and the one place that makes a server's reduction into the
 * plain sum that the contract asks for. Numbers of a batch lie in one array, of which its sequences have views: a step's
 * thousands of small arrays would cost more than all that is computed with them.
 *
 * A response token t of a context of c tokens is x[c + t]; position c + t - 1 of the n - 1 targets scores it.
 */
import type { Sequence } from "../contract.js";
import { type Datum, responseLength } from "./wire.js";

/**
 * What a server makes of a batch of token losses l[s,t] before the optimizer: their sum; or, with w the token weights, the
 * mean over the sequences s of the batch of (sum over t of w l) / (sum over t of w).
 */
export type Reduction = "sum" | "sequence-mean-then-batch-mean";

/**
 * The factor on the coefficients of a sequence by which a server with that reduction sums them after all: 1, or L N for a
 * sequence whose weights are 1 on L tokens in a batch of N sequences. It is positive, so clipping by min and max stays as it is.
 */
export function summingFactor(reduction: Reduction, tokens: number, sequences: number): number {
  return reduction === "sum" ? 1 : tokens * sequences;
}

/** Whole sequences with nothing but their targets: for a forward pass, whose loss nobody reads. Without weights a server would make them all 1, and their sum may be divided by. */
export function forwardData(sequences: readonly Sequence[]): Datum[] {
  const all = new Int32Array(sequences.reduce((sum, { context, response }) => sum + context.ids.length + response.length, 0));
  let at = 0;
  return sequences.map(({ context, response }) => {
    const start = at;
    all.set(context.ids, start);
    all.set(response, start + context.ids.length);
    at += context.ids.length + response.length;
    return { ids: all.subarray(start, at), from: context.ids.length - 1, weight: 1 };
  });
}

/** What the loss of a sequence gives beside its targets, [response tokens] each. */
export interface TokenInputs {
  readonly datum: Datum;
  /** Log-probs below the ratio. */
  readonly logp: ArrayLike<number>;
  /** Derivatives of the loss by the log-probs: minus the coefficients. */
  readonly dLogp: ArrayLike<number>;
}

/** All sequences of an optimizer step, with the inputs of a policy-gradient loss whose gradient is the sum of theirs. */
export function trainData(inputs: readonly TokenInputs[], reduction: Reduction): Datum[] {
  const total = inputs.reduce((sum, { datum }) => sum + responseLength(datum), 0);
  const logprobs = new Float32Array(total);
  const advantages = new Float32Array(total);
  let at = 0;
  return inputs.map(({ datum, logp, dLogp }) => {
    const count = responseLength(datum);
    const factor = summingFactor(reduction, count, inputs.length);
    for (let t = 0; t < count; t++) {
      logprobs[at + t] = logp[t] as number;
      advantages[at + t] = -(dLogp[t] as number) * factor;
    }
    at += count;
    return { ...datum, policy: { logprobs: logprobs.subarray(at - count, at), advantages: advantages.subarray(at - count, at) } };
  });
}

export function allFinite(values: ArrayLike<number>): boolean {
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) return false;
  return true;
}

/** A request holds at most so many sequences, and about so many bytes, as the protocol's own client has it. */
const most = { sequences: 1024, bytes: 5_000_000 } as const;
/** Bytes of a position with all inputs: of five arrays, in JSON's digits or in the tensors of protobuf. */
const positionBytes = { json: 45, protobuf: 24 } as const;

/** Runs of sequences that fit into a request each, in order. */
export function chunksOf(data: readonly Datum[], dialect: keyof typeof positionBytes): Datum[][] {
  const chunks: Datum[][] = [];
  let bytes = 0;
  for (const datum of data) {
    const own = (datum.ids.length - 1) * positionBytes[dialect];
    const last = chunks.at(-1);
    if (last === undefined || last.length === most.sequences || bytes + own > most.bytes) {
      chunks.push([datum]);
      bytes = own;
    } else {
      last.push(datum);
      bytes += own;
    }
  }
  return chunks;
}
