/** What goes over the wire, without a dialect: sequences with the inputs of a loss, and results. */
import type { HttpOptions } from "../../core/http.js";

/** One sequence of a forward or backward pass. All arrays but `tokens` are of the targets. */
export interface Datum {
  /** x[0 .. n-1) of the n tokens x. */
  readonly tokens: Int32Array;
  readonly inputs: {
    /** x[1 .. n). */
    readonly target_tokens: Int32Array;
    readonly weights?: Float32Array;
    readonly logprobs?: Float32Array;
    readonly advantages?: Float32Array;
  };
}

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

/** Log-probs of the targets of each datum, NaN where the server said so. */
export interface PassResult {
  readonly logprobs: readonly Float64Array[];
  readonly metrics: { readonly [name: string]: number };
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
