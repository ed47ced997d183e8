/** The JSON dialect: passes as requests, and results of passes and samples. A number that is null is one that JSON cannot write. */
import type { Datum, Encoded, PassRequest, PassResult, SampleResult } from "./wire.js";

/** Digits that give a float32 back exactly. */
const digits = 9;

function numbers(values: ArrayLike<number>): string {
  const parts = new Array<string>(values.length);
  // Writing a number is what takes the time, and weights and advantages repeat along a sequence.
  let last = Number.NaN;
  let text = "";
  for (let i = 0; i < values.length; i++) {
    const x = values[i] as number;
    if (x !== last) {
      last = x;
      text = Number.isInteger(x) && Math.abs(x) < 1e15 ? `${x}` : x.toPrecision(digits);
    }
    parts[i] = text;
  }
  return parts.join(",");
}

function tensor(values: Int32Array | Float32Array): string {
  return `{"data":[${numbers(values)}],"dtype":"${values instanceof Int32Array ? "int64" : "float32"}","shape":[${values.length}]}`;
}

function datum({ tokens, inputs }: Datum): string {
  const fields = Object.entries(inputs).map(([name, values]) => `"${name}":${tensor(values as Float32Array)}`);
  return `{"model_input":{"chunks":[{"type":"encoded_text","tokens":[${tokens.join(",")}]}]},"loss_fn_inputs":{${fields.join(",")}}}`;
}

export function encodePass({ model, seq, data, loss, config, forwardOnly }: PassRequest): Encoded {
  const name = forwardOnly ? "forward" : "forward_backward";
  const input = `{"data":[${data.map(datum).join(",")}],"loss_fn":"${loss}","loss_fn_config":${JSON.stringify(config ?? null)}}`;
  return { path: `/api/v1/${name}`, type: "application/json", body: `{"model_id":${JSON.stringify(model)},"seq_id":${seq},"${name}_input":${input}}` };
}

type Column = { readonly data?: readonly (number | null)[] } | undefined;
const column = (values: readonly (number | null)[]): Float64Array => Float64Array.from(values, (x) => x ?? Number.NaN);

/** Undefined where the body is not of a pass. */
export function decodePass(json: unknown): PassResult | undefined {
  const { loss_fn_outputs: outputs, metrics } = (json ?? {}) as {
    loss_fn_outputs?: readonly { readonly logprobs?: Column }[];
    metrics?: { [name: string]: number | null };
  };
  if (!Array.isArray(outputs)) return undefined;
  const logprobs = outputs.map((output) => column((output as { logprobs?: Column } | null)?.logprobs?.data ?? []));
  return { logprobs, metrics: Object.fromEntries(Object.entries(metrics ?? {}).map(([name, value]) => [name, value ?? Number.NaN])) };
}

export function decodeSample(json: unknown): SampleResult | undefined {
  type Sequence = { tokens?: number[]; logprobs?: (number | null)[] | null; stop_reason?: string };
  const { sequences, prompt_logprobs: prompt } = (json ?? {}) as { sequences?: readonly Sequence[]; prompt_logprobs?: readonly (number | null)[] | null };
  if (!Array.isArray(sequences)) return undefined;
  return {
    sequences: (sequences as readonly Sequence[]).map(({ tokens, logprobs, stop_reason }) => ({
      ids: Int32Array.from(tokens ?? []),
      logprobs: column(logprobs ?? []),
      stop: stop_reason === "stop" ? "stop" : "length",
    })),
    ...(prompt ? { promptLogprobs: column(prompt) } : {}),
  };
}
