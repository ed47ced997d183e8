/** The protobuf dialect, through protobufjs: the part of the protocol's messages that we send and read. Arrays are little-endian bytes. */
import protobuf from "protobufjs";
import { type Datum, type Encoded, eachResponse, inputNames, type PassRequest, type PassResult, responseLength, type SampleResult } from "./wire.js";

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

/**
 * Sequences are written by hand, since of a request they are all but a hundred bytes: protobufjs would make some forty
 * objects and eight arrays of each, and copy them all once more. The messages around them are its own, as is all that is
 * read; a test holds the bytes to what it reads.
 */
class Datums {
  private readonly bytes: Buffer;
  private at = 0;

  constructor(private readonly data: readonly Datum[]) {
    this.bytes = Buffer.allocUnsafe(data.reduce((sum, datum) => sum + fieldBytes(datumBytes(datum)), 0));
  }

  write(): Uint8Array {
    for (const datum of this.data) this.datum(datum);
    return this.bytes;
  }

  private datum(datum: Datum): void {
    const { ids, from, weight, policy } = datum;
    const targets = ids.length - 1;
    const text = fieldBytes(4 * targets);
    this.head(3, datumBytes(datum));
    this.head(1, fieldBytes(text));
    this.head(1, text);
    this.head(1, 4 * targets);
    this.put(bytesOf(ids.subarray(0, -1)));
    const columns = [undefined, filled(weight, responseLength(datum)), policy?.logprobs, policy?.advantages];
    for (const [i, name] of inputNames.entries()) {
      const column = columns[i];
      if (i > 0 && column === undefined) continue;
      const dense = (i === 0 ? 8 : 4) * targets;
      const tensor = tensorBytes(dense, targets);
      this.head(2, entryBytes(name, tensor));
      this.head(1, name.length);
      this.at += this.bytes.write(name, this.at, "latin1");
      this.head(2, tensor);
      this.head(1, dense);
      if (column === undefined) this.put(widened(ids));
      else {
        this.bytes.fill(0, this.at, this.at + 4 * from);
        this.at += 4 * from;
        this.put(bytesOf(column));
      }
      this.varint(0x18);
      this.varint(i === 0 ? types.int64 : types.float32);
      this.head(4, varintBytes(targets));
      this.varint(targets);
    }
  }

  private put(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Number and length of a field. */
  private head(field: number, length: number): void {
    this.varint((field << 3) | 2);
    this.varint(length);
  }

  private varint(value: number): void {
    let rest = value;
    for (; rest > 127; rest >>>= 7) this.bytes[this.at++] = (rest & 127) | 128;
    this.bytes[this.at++] = rest;
  }
}

const varintBytes = (value: number): number => (value < 1 << 7 ? 1 : value < 1 << 14 ? 2 : value < 1 << 21 ? 3 : value < 1 << 28 ? 4 : 5);
/** Of a field with its number and length. */
const fieldBytes = (length: number): number => 1 + varintBytes(length) + length;
const tensorBytes = (dense: number, targets: number): number => fieldBytes(dense) + 2 + fieldBytes(varintBytes(targets));
const entryBytes = (name: string, tensor: number): number => fieldBytes(name.length) + fieldBytes(tensor);

function datumBytes({ ids, policy }: Datum): number {
  const targets = ids.length - 1;
  let bytes = fieldBytes(fieldBytes(fieldBytes(4 * targets)));
  for (const [i, name] of inputNames.entries())
    if (i < 2 || policy !== undefined) bytes += fieldBytes(entryBytes(name, tensorBytes((i === 0 ? 8 : 4) * targets, targets)));
  return bytes;
}

/** Memory that is written into anew for each array: what is read from it is copied before the next. */
const scratch = { ints: new Int32Array(0), floats: new Float32Array(0) };
/** An array of one number: weights are the same in all of a batch. */
const weights = { value: 1, floats: new Float32Array(0) };

/** All ids but the first as 64-bit numbers, lower half first; many times as fast as by way of BigInt. */
function widened(ids: Int32Array): Uint8Array {
  const length = 2 * (ids.length - 1);
  if (scratch.ints.length < length) scratch.ints = new Int32Array(2 * length);
  const halves = scratch.ints;
  for (let i = 1; i < ids.length; i++) {
    const value = ids[i] as number;
    halves[2 * i - 2] = value;
    halves[2 * i - 1] = value >> 31;
  }
  return bytesOf(halves.subarray(0, length));
}

function filled(weight: number, length: number): Float32Array {
  if (weights.floats.length < length || weights.value !== weight) {
    weights.floats = new Float32Array(2 * length).fill(weight);
    weights.value = weight;
  }
  return weights.floats.subarray(0, length);
}

export function encodePass({ model, seq, data, loss, config, forwardOnly }: PassRequest): Encoded {
  const head = messages.request.encode({ model_id: model, seq_id: seq }).finish();
  const tail = messages.request.encode({ loss_fn: loss, loss_fn_config: config ?? {}, ...(forwardOnly && { forward_only: true }) }).finish();
  return { path: "/api/v1/forward_backward", type: protobufType, body: Buffer.concat([head, new Datums(data).write(), tail]) };
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

/** Float32 from any place of the bytes on, as they lie nowhere in particular. */
function floatsInto(into: Float64Array, bytes: Uint8Array, from: number): void {
  if (scratch.floats.length < into.length) scratch.floats = new Float32Array(2 * into.length);
  const floats = scratch.floats.subarray(0, into.length);
  bytesOf(floats).set(bytes.subarray(from, from + 4 * into.length));
  into.set(floats);
}

function floats(bytes: Uint8Array): Float64Array {
  const values = new Float64Array(numbersOf(bytes));
  floatsInto(values, bytes, 0);
  return values;
}

function ints(bytes: Uint8Array): Int32Array {
  const values = new Int32Array(numbersOf(bytes));
  bytesOf(values).set(bytes);
  return values;
}

function numbersOf({ byteLength }: Uint8Array): number {
  if (byteLength % 4 !== 0) throw new RangeError("an array ends in the middle of a number");
  return byteLength / 4;
}

/** Undefined where the bytes are not of a pass over these sequences with float32 log-probs: half of it, or twice. */
export const decodePass = (body: Uint8Array, data: readonly Datum[]): PassResult | undefined =>
  whole(() => passOf(messages.pass.decode(body) as unknown as ProtoPass, data));
export const decodeSample = (body: Uint8Array): SampleResult | undefined => whole(() => sampleOf(messages.sample.decode(body) as unknown as ProtoSample));

function passOf(message: ProtoPass, data: readonly Datum[]): PassResult | undefined {
  const columns: Uint8Array[] = [];
  for (const { fields = {} } of message.loss_fn_outputs ?? []) {
    const { data: bytes, offsets, dtype } = fields.logprobs ?? {};
    if (bytes === undefined || offsets === undefined || dtype !== types.float32) return undefined;
    // Offsets count bytes: one more than there are sequences.
    const at = new DataView(offsets.buffer, offsets.byteOffset, offsets.byteLength);
    for (let i = 0; i + 16 <= at.byteLength; i += 8) columns.push(bytes.subarray(Number(at.getBigInt64(i, true)), Number(at.getBigInt64(i + 8, true))));
  }
  if (columns.length !== data.length) return undefined;
  return eachResponse(data, (i, { ids, from }, into) => {
    const column = columns[i] as Uint8Array;
    if (column.length !== 4 * (ids.length - 1)) return false;
    floatsInto(into, column, 4 * from);
    return true;
  });
}

function sampleOf({ sequences = [], prompt_logprobs: prompt }: ProtoSample): SampleResult {
  return {
    sequences: sequences.map(({ stop_reason = 0, tokens = new Uint8Array(0), logprobs = new Uint8Array(0) }) => ({
      ids: ints(tokens),
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
