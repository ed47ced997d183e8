/** The JSON dialect: passes as requests, and results of passes and samples. A number that is null is one that JSON cannot write. */
import { type Datum, type Encoded, eachResponse, inputNames, type PassRequest, type PassResult, responseLength, type SampleResult } from "./wire.js";

/** Digits that give a float32 back exactly. */
const digits = 9;

function numbers(values: Float32Array): string {
  const parts = new Array<string>(values.length);
  // Writing a number is what takes the time, and advantages repeat along a sequence.
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

function datum(each: Datum): string {
  const { ids, from, weight, policy } = each;
  // Tokens and targets are the same text, without its last or its first number.
  const all = ids.join();
  const before = "0,".repeat(from);
  const texts = [
    all.slice(all.indexOf(",") + 1),
    before + `${weight},`.repeat(responseLength(each)).slice(0, -1),
    policy && before + numbers(policy.logprobs),
    policy && before + numbers(policy.advantages),
  ];
  const tensors = inputNames.flatMap((name, i) => {
    const type = i === 0 ? "int64" : "float32";
    return texts[i] === undefined ? [] : [`"${name}":{"data":[${texts[i]}],"dtype":"${type}","shape":[${ids.length - 1}]}`];
  });
  return `{"model_input":{"chunks":[{"type":"encoded_text","tokens":[${all.slice(0, all.lastIndexOf(","))}]}]},"loss_fn_inputs":{${tensors.join()}}}`;
}

export function encodePass({ model, seq, data, loss, config, forwardOnly }: PassRequest): Encoded {
  const name = forwardOnly ? "forward" : "forward_backward";
  const input = `{"data":[${data.map(datum).join(",")}],"loss_fn":"${loss}","loss_fn_config":${JSON.stringify(config ?? null)}}`;
  return { path: `/api/v1/${name}`, type: "application/json", body: `{"model_id":${JSON.stringify(model)},"seq_id":${seq},"${name}_input":${input}}` };
}

type Numbers = readonly (number | null)[];

function column(values: Numbers): Float64Array {
  const array = new Float64Array(values.length);
  for (let i = 0; i < array.length; i++) array[i] = values[i] ?? Number.NaN;
  return array;
}

/** Undefined where the body is not of a pass over these sequences: half of it, or twice. */
export function decodePass(json: unknown, data: readonly Datum[]): PassResult | undefined {
  type Output = { readonly logprobs?: { readonly data?: Numbers } } | null;
  const { loss_fn_outputs: outputs } = (json ?? {}) as { loss_fn_outputs?: readonly Output[] };
  if (!Array.isArray(outputs) || outputs.length !== data.length) return undefined;
  return eachResponse(data, (i, { ids, from }, into) => {
    const values = (outputs[i] as Output)?.logprobs?.data;
    if (values?.length !== ids.length - 1) return false;
    for (let t = 0; t < into.length; t++) into[t] = values[from + t] ?? Number.NaN;
    return true;
  });
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
