/**
 * From sequences of the contract to those of the protocol, and the one place that makes a server's reduction into the
 * plain sum that the contract asks for.
 *
 * A response token t of a context of c tokens is x[c + t]; position c + t - 1 of the n - 1 targets scores it.
 */
import type { Sequence } from "../contract.js";
import type { Datum } from "./wire.js";

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

/** What a loss gets beside the targets, [response tokens] each. */
export interface TokenInputs {
  /** Log-probs below the ratio. */
  readonly logprobs: ArrayLike<number>;
  /** Negative derivative of the loss, or advantage times token weight. */
  readonly coefficients: ArrayLike<number>;
}

/** The whole sequence with nothing but its targets: for a forward pass, whose loss nobody reads. */
export function forwardDatum(sequence: Sequence): Datum {
  const { tokens, targets, from } = shifted(sequence);
  // Without weights a server would make them all 1, and their sum may be divided by.
  return { tokens, inputs: { target_tokens: targets, weights: new Float32Array(targets.length).fill(1, from) } };
}

/** The sequence with the inputs of a policy-gradient loss. `of`: how many sequences the next optimizer step is made of. */
export function trainDatum(sequence: Sequence, { logprobs, coefficients }: TokenInputs, reduction: Reduction, of: number): Datum {
  const { tokens, targets, from } = shifted(sequence);
  const length = targets.length;
  const count = sequence.response.length;
  const factor = summingFactor(reduction, count, of);
  const column = (value: (t: number) => number): Float32Array => {
    const array = new Float32Array(length);
    for (let t = 0; t < count; t++) array[from + t] = value(t);
    return array;
  };
  return {
    tokens,
    inputs: {
      target_tokens: targets,
      weights: new Float32Array(length).fill(1, from),
      logprobs: column((t) => logprobs[t] as number),
      advantages: column((t) => (coefficients[t] as number) * factor),
    },
  };
}

/** Log-probs of the response out of those of all targets. */
export function responseOf(logprobs: Float64Array, { context, response }: Sequence): Float64Array {
  const from = context.ids.length - 1;
  return logprobs.slice(from, from + response.length);
}

/** All tokens but the last, all but the first, and the place of the first response token among the latter. */
function shifted({ context, response }: Sequence): { readonly tokens: Int32Array; readonly targets: Int32Array; readonly from: number } {
  const all = new Int32Array(context.ids.length + response.length);
  all.set(context.ids);
  all.set(response, context.ids.length);
  // Views of one array: a batch has many of them.
  return { tokens: all.subarray(0, -1), targets: all.subarray(1), from: context.ids.length - 1 };
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
    const own = datum.tokens.length * positionBytes[dialect];
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
