/** The protobuf dialect, through protobufjs: the part of the protocol's messages that we send and read. Arrays are little-endian bytes. */
import protobuf from "protobufjs";
import type { Datum, Encoded, PassRequest, PassResult, SampleResult } from "./wire.js";

const schema = protobuf.parse(
  `
syntax = "proto3";
message EncodedText { bytes tokens = 1; }
message Chunk { EncodedText encoded_text = 1; }
message Tensor { bytes dense = 1; int32 dtype = 3; repeated int64 shape = 4; }
message Datum { repeated Chunk model_input = 1; map<string, Tensor> loss_fn_inputs = 2; }
message ForwardBackwardRequest { string model_id = 1; int64 seq_id = 2; repeated Datum data = 3; string loss_fn = 4; map<string, double> loss_fn_config = 5; bool forward_only = 6; }
message BatchedTensor { bytes data = 1; bytes offsets = 2; int32 dtype = 3; repeated int64 trailing_shape = 4; }
message ArrayRecord { string type_tag = 1; map<string, BatchedTensor> fields = 2; int64 num_datums = 3; }
message ForwardBackwardOutput { string loss_fn_output_type = 1; repeated ArrayRecord loss_fn_outputs = 2; map<string, double> metrics = 3; }
message SampledSequence { int32 stop_reason = 1; bytes tokens = 2; bytes logprobs = 3; }
message SampleResponse { repeated SampledSequence sequences = 1; bytes prompt_logprobs = 2; }
`,
  { keepCase: true },
).root;
/** Exported so that the test server reads and writes the same. */
export const messages = {
  request: schema.lookupType("ForwardBackwardRequest"),
  pass: schema.lookupType("ForwardBackwardOutput"),
  sample: schema.lookupType("SampleResponse"),
} as const;

export const protobufType = "application/x-protobuf";

/** The numbers of tensors' types. */
export const types = { float32: 1, int64: 2 } as const;

const bytesOf = (array: Int32Array | Float32Array): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** As 64-bit numbers, lower half first; many times as fast as by way of BigInt. */
function widened(values: Int32Array): Int32Array {
  const halves = new Int32Array(2 * values.length);
  values.forEach((value, i) => {
    halves[2 * i] = value;
    halves[2 * i + 1] = value >> 31;
  });
  return halves;
}

function tensor(values: Int32Array | Float32Array): object {
  const whole = values instanceof Int32Array;
  return { dense: bytesOf(whole ? widened(values) : values), dtype: whole ? types.int64 : types.float32, shape: [values.length] };
}

const datum = ({ tokens, inputs }: Datum): object => ({
  model_input: [{ encoded_text: { tokens: bytesOf(tokens) } }],
  loss_fn_inputs: Object.fromEntries(Object.entries(inputs).map(([name, values]) => [name, tensor(values as Float32Array)])),
});

export function encodePass({ model, seq, data, loss, config, forwardOnly }: PassRequest): Encoded {
  const message = {
    model_id: model,
    seq_id: seq,
    data: data.map(datum),
    loss_fn: loss,
    loss_fn_config: config ?? {},
    ...(forwardOnly && { forward_only: true }),
  };
  return { path: "/api/v1/forward_backward", type: protobufType, body: messages.request.encode(message).finish() };
}

interface ProtoPass {
  readonly loss_fn_outputs?: readonly {
    readonly fields?: { readonly [name: string]: { readonly data?: Uint8Array; readonly offsets?: Uint8Array; readonly dtype?: number } };
    readonly num_datums?: unknown;
  }[];
  readonly metrics?: { readonly [name: string]: number };
}

interface ProtoSample {
  readonly sequences?: readonly { readonly stop_reason?: number; readonly tokens?: Uint8Array; readonly logprobs?: Uint8Array }[];
  readonly prompt_logprobs?: Uint8Array;
}

/** The bytes in a buffer of their own, at whose start an array of any type may lie. */
const own = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer;

/** Copied once more only where they do not lie as numbers must. */
function floats(bytes: Uint8Array): Float64Array {
  const { buffer, byteOffset, byteLength } = bytes;
  if (byteLength % 4 !== 0) throw new RangeError("an array ends in the middle of a number");
  return new Float64Array(byteOffset % 4 === 0 ? new Float32Array(buffer, byteOffset, byteLength / 4) : new Float32Array(own(bytes)));
}

/** Undefined where the bytes are not of a pass with float32 log-probs. */
export const decodePass = (body: Uint8Array): PassResult | undefined => whole(() => passOf(messages.pass.decode(body) as unknown as ProtoPass));
export const decodeSample = (body: Uint8Array): SampleResult | undefined => whole(() => sampleOf(messages.sample.decode(body) as unknown as ProtoSample));

function passOf(message: ProtoPass): PassResult | undefined {
  const logprobs: Float64Array[] = [];
  for (const { fields = {} } of message.loss_fn_outputs ?? []) {
    const { data, offsets, dtype } = fields.logprobs ?? {};
    if (data === undefined || offsets === undefined || dtype !== types.float32) return undefined;
    // Offsets count bytes: one more than there are sequences.
    const at = Array.from(new BigInt64Array(own(offsets)), Number);
    for (let i = 0; i + 1 < at.length; i++) logprobs.push(floats(data.subarray(at[i] as number, at[i + 1] as number)));
  }
  return { logprobs, metrics: { ...message.metrics } };
}

function sampleOf({ sequences = [], prompt_logprobs: prompt }: ProtoSample): SampleResult {
  return {
    sequences: sequences.map(({ stop_reason = 0, tokens = new Uint8Array(0), logprobs = new Uint8Array(0) }) => ({
      ids: new Int32Array(own(tokens)),
      logprobs: floats(logprobs),
      stop: stop_reason === 0 ? "stop" : "length",
    })),
    ...(prompt !== undefined && prompt.length > 0 ? { promptLogprobs: floats(prompt) } : {}),
  };
}

/** Undefined for bytes that are no message, or with arrays that end in the middle of a number: half a body, say. */
function whole<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
