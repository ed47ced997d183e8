/** What goes over the wire, without a dialect: sequences with the inputs of a loss, and results. */
import type { HttpOptions } from "../../core/http.js";

/**
 * One sequence of a forward or backward pass. Of the n tokens x a server takes x[0 .. n-1) and is told the targets
 * x[1 .. n), with one number a target of each input of the loss. What stands before `from` is 0 in all of them, and no
 * array holds it: the dialects write it.
 */
export interface Datum {
  /** All n tokens. */
  readonly ids: Int32Array;
  /** The first target that counts: of the n - 1, those from here on are the response. */
  readonly from: number;
  /** Weight of each target of the response. */
  readonly weight: number;
  /** What a policy-gradient loss gets beside them, [response tokens] each. */
  readonly policy?: { readonly logprobs: Float32Array; readonly advantages: Float32Array };
}

/** How many targets of a sequence count. */
export const responseLength = ({ ids, from }: Datum): number => ids.length - 1 - from;

/** A datum's inputs of the loss, in the order in which they are written. */
export const inputNames = ["target_tokens", "weights", "logprobs", "advantages"] as const;

/** A loss by the name that the protocol gives it. */
export type LossName = string;

export interface PassRequest {
  readonly model: string;
  /** The model's counter: a repeated number with the same bytes is the same request, where the server knows that. */
  readonly seq: number;
  readonly data: readonly Datum[];
  readonly loss: LossName;
  readonly config?: { readonly [key: string]: number };
  readonly forwardOnly: boolean;
}

/** Log-probs of the response's tokens of each datum, NaN where the server said so. Views of one array. */
export type PassResult = readonly Float64Array[];

/** Log-probs of a pass, sequence by sequence into one array; undefined where one is not of its sequence. */
export function eachResponse(data: readonly Datum[], read: (index: number, datum: Datum, into: Float64Array) => boolean): PassResult | undefined {
  const all = new Float64Array(data.reduce((sum, datum) => sum + responseLength(datum), 0));
  const result: Float64Array[] = [];
  let at = 0;
  for (const [index, datum] of data.entries()) {
    const into = all.subarray(at, at + responseLength(datum));
    at += into.length;
    if (!read(index, datum, into)) return undefined;
    result.push(into);
  }
  return result;
}

export interface WireSample {
  readonly ids: Int32Array;
  readonly logprobs: Float64Array;
  readonly stop: "stop" | "length";
}

export interface SampleResult {
  readonly sequences: readonly WireSample[];
  /** Of the prompt's tokens; how many there are differs by server. */
  readonly promptLogprobs?: Float64Array;
}

/** A request as it is sent. */
export interface Encoded {
  readonly path: string;
  readonly type: string;
  readonly body: Uint8Array | string;
}

/** How a server wants passes: in JSON with an endpoint of their own for forward passes, or in protobuf with a flag. */
export type Dialect = "json" | "protobuf";

/** What goes with every request: the key, where there is one. */
export const sentWith = (key: string | undefined): HttpOptions => ({ place: "engine.base_url", ...(key !== undefined && { headers: { "x-api-key": key } }) });
