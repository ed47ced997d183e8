/**
 * The frames that cross the engine's process border. A frame is
 *
 *     "TSTN" · version u32 · header length u32 · number of arrays u32 · body length u64     (24 bytes)
 *     header: JSON, padded with spaces to a multiple of 8
 *     body:   the arrays' raw bytes, each padded with zeros to a multiple of 8
 *
 * with all numbers little-endian. In the header's `message` each typed array is replaced by `{"$array": index}`, and
 * `arrays` lists `[dtype, length]`. Numbers that JSON cannot carry and undefined entries of arrays have markers too;
 * keys of the caller's own that begin with `$` get a second one.
 */
import { EngineError } from "../../core/errors.js";

/** Raised with every change of the frames or of the messages in them. */
export const protocolVersion = 3;

const magic = 0x4e545354; // "TSTN" read as a little-endian u32
const greetingBytes = 8;
const lengthsBytes = 16;
const prefixBytes = greetingBytes + lengthsBytes;
/** Arrays of at least this many bytes are neither copied by the sender nor share a buffer at the receiver. */
const largeBytes = 16384;

/** The largest frame taken unless a limit is given: well above the weights of any model that trains here. */
export const defaultFrameLimit = 16 * 2 ** 30;

const constructors = { f64: Float64Array, f32: Float32Array, i32: Int32Array, u8: Uint8Array, i64: BigInt64Array } as const;
type Dtype = keyof typeof constructors;
type WireArray = Float64Array | Float32Array | Int32Array | Uint8Array | BigInt64Array;

function dtypeOf(array: ArrayBufferView): Dtype {
  for (const [dtype, type] of Object.entries(constructors)) if (array instanceof type) return dtype as Dtype;
  throw new TypeError(`a frame cannot carry a ${array.constructor.name}`);
}

const padded = (bytes: number): number => Math.ceil(bytes / 8) * 8;

/** A message as the chunks to be written in order. Large arrays are not copied: they must not change until they are written. */
export function encodeFrame(message: unknown): Uint8Array[] {
  const arrays: WireArray[] = [];
  const packed = pack(message, arrays);
  const text = Buffer.from(JSON.stringify({ message: packed, arrays: arrays.map((array) => [dtypeOf(array), array.length]) }));
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt32LE(magic, 0);
  prefix.writeUInt32LE(protocolVersion, 4);
  prefix.writeUInt32LE(text.length, 8);
  prefix.writeUInt32LE(arrays.length, 12);
  prefix.writeBigUInt64LE(BigInt(arrays.reduce((sum, array) => sum + padded(array.byteLength), 0)), 16);

  const chunks: Uint8Array[] = [];
  let run: Uint8Array[] = [prefix, text, padding(text.length, " ")];
  for (const array of arrays) {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    if (bytes.length >= largeBytes) {
      chunks.push(Buffer.concat(run), bytes);
      run = [];
    } else run.push(bytes);
    run.push(padding(bytes.length, "\0"));
  }
  const rest = Buffer.concat(run);
  if (rest.length > 0) chunks.push(rest);
  return chunks;
}

const padding = (bytes: number, fill: string): Uint8Array => Buffer.from(fill.repeat(padded(bytes) - bytes));

function pack(value: unknown, arrays: WireArray[]): unknown {
  if (typeof value === "number") {
    if (Number.isFinite(value) && !Object.is(value, -0)) return value;
    return { $number: Object.is(value, -0) ? "-0" : String(value) };
  }
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (value === undefined) return { $undefined: true };
  if (ArrayBuffer.isView(value)) return { $array: arrays.push(value as WireArray) - 1 };
  if (Array.isArray(value)) return value.map((entry) => pack(entry, arrays));
  const prototype: unknown = typeof value === "object" ? Object.getPrototypeOf(value) : undefined;
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(`a frame cannot carry ${typeof value === "object" ? `a ${value.constructor.name}` : `a ${typeof value}`}`);
  }
  const entries: [string, unknown][] = [];
  for (const [key, entry] of Object.entries(value as object)) {
    if (entry !== undefined) entries.push([key.startsWith("$") ? `$${key}` : key, pack(entry, arrays)]);
  }
  return Object.fromEntries(entries);
}

type Node = { [key: string]: unknown };

function unpack(value: unknown, arrays: readonly WireArray[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((entry) => unpack(entry, arrays));
  const node = value as Node;
  if (Object.hasOwn(node, "$array")) {
    const array = arrays[node.$array as number];
    if (!array) throw new RangeError(`the message names array ${String(node.$array)} of ${arrays.length}`);
    return array;
  }
  if (Object.hasOwn(node, "$number")) return Number(node.$number);
  if (Object.hasOwn(node, "$undefined")) return undefined;
  return Object.fromEntries(Object.entries(node).map(([key, entry]) => [key.startsWith("$$") ? key.slice(1) : key, unpack(entry, arrays)]));
}

export interface DecoderOptions {
  /** Names the other side in errors. */
  readonly place: string;
  /** Frames of more bytes are refused before anything is allocated. */
  readonly limit?: number;
}

type ArrayEntry = readonly [Dtype, number];

interface Header {
  readonly message: unknown;
  readonly arrays: readonly ArrayEntry[];
}

function isArrayEntry(entry: unknown): entry is ArrayEntry {
  return Array.isArray(entry) && Object.hasOwn(constructors, String(entry[0])) && Number.isSafeInteger(entry[1]) && entry[1] >= 0;
}

function bytesOf([dtype, length]: ArrayEntry): number {
  return padded(length * constructors[dtype].BYTES_PER_ELEMENT);
}

/** Turns the chunks of a byte stream, however cut, into messages. Every byte is copied once, large arrays into buffers of their own. */
export class FrameDecoder {
  limit: number;
  private readonly place: string;
  private part: "greeting" | "lengths" | "header" | "body" = "greeting";
  private target: Uint8Array = new Uint8Array(greetingBytes);
  private filled = 0;
  private headerLength = 0;
  private arrayCount = 0;
  private bodyLength = 0;
  private message: unknown;
  private arrays: WireArray[] = [];
  private readonly buffers: Uint8Array[] = [];

  constructor(options: DecoderOptions) {
    this.place = options.place;
    this.limit = options.limit ?? defaultFrameLimit;
  }

  /** The messages that this chunk completes, in order; throws an EngineError when the stream is not of this protocol. */
  push(chunk: Uint8Array): unknown[] {
    const messages: unknown[] = [];
    let offset = 0;
    while (offset < chunk.length) {
      const take = Math.min(this.target.length - this.filled, chunk.length - offset);
      this.target.set(chunk.subarray(offset, offset + take), this.filled);
      this.filled += take;
      offset += take;
      if (this.filled === this.target.length) this.advance(messages);
    }
    return messages;
  }

  /** To be called at the end of the stream; throws an EngineError when it ends within a frame. */
  end(): void {
    if (this.part === "greeting" && this.filled === 0) return;
    throw this.fault(
      `the stream ended within a frame (${this.filled} of ${this.target.length} bytes of its ${this.part})`,
      "the other side died or was cut off; start it again",
    );
  }

  private advance(messages: unknown[]): void {
    switch (this.part) {
      case "greeting":
        this.readGreeting();
        this.expect("lengths", new Uint8Array(lengthsBytes));
        return;
      case "lengths":
        this.readLengths();
        this.expect("header", new Uint8Array(padded(this.headerLength)));
        return;
      case "header":
        this.readHeader();
        break;
      case "body":
    }
    const next = this.buffers.shift();
    if (next) {
      this.expect("body", next);
      return;
    }
    let message: unknown;
    try {
      message = unpack(this.message, this.arrays);
    } catch (error) {
      throw this.malformed((error as Error).message);
    }
    messages.push(message);
    this.message = undefined;
    this.arrays = [];
    this.expect("greeting", new Uint8Array(greetingBytes));
  }

  private expect(part: FrameDecoder["part"], target: Uint8Array): void {
    this.part = part;
    this.target = target;
    this.filled = 0;
  }

  private readGreeting(): void {
    const view = new DataView(this.target.buffer);
    if (view.getUint32(0, true) !== magic) {
      throw this.fault("what it sent is not a Touchstone frame", "check that the address is that of a Touchstone engine");
    }
    const version = view.getUint32(4, true);
    if (version !== protocolVersion) {
      throw this.fault(
        `it speaks version ${version} of the engine protocol and this side version ${protocolVersion}`,
        "install the same version of touchstone on both sides",
      );
    }
  }

  private readLengths(): void {
    const view = new DataView(this.target.buffer);
    this.headerLength = view.getUint32(0, true);
    this.arrayCount = view.getUint32(4, true);
    this.bodyLength = Number(view.getBigUint64(8, true));
    const total = prefixBytes + padded(this.headerLength) + this.bodyLength;
    if (total > this.limit) {
      throw this.fault(`a frame of ${total} bytes is over the limit of ${this.limit}`, "ask for less in one call or raise the limit");
    }
    if (this.headerLength === 0) throw this.malformed("its header is empty");
  }

  private readHeader(): void {
    let header: Partial<Header> | null;
    try {
      header = JSON.parse(Buffer.from(this.target.buffer).toString("utf8")) as Partial<Header> | null;
    } catch {
      throw this.malformed("its header is not JSON");
    }
    const list = header?.arrays;
    if (!Array.isArray(list) || list.length !== this.arrayCount || !list.every(isArrayEntry)) throw this.malformed("its list of arrays is not as announced");
    const total = (list as ArrayEntry[]).reduce((sum, entry) => sum + bytesOf(entry), 0);
    if (total !== this.bodyLength) throw this.malformed(`its arrays need ${total} bytes and it has ${this.bodyLength}`);
    this.message = header?.message;
    this.allocate(list);
  }

  /** A buffer for each large array, and one for each run of small arrays between them. */
  private allocate(list: readonly ArrayEntry[]): void {
    let run: ArrayEntry[] = [];
    const flush = (): void => {
      const bytes = run.reduce((sum, entry) => sum + bytesOf(entry), 0);
      const { buffer } = Buffer.allocUnsafeSlow(bytes);
      let offset = 0;
      for (const entry of run) {
        this.arrays.push(new constructors[entry[0]](buffer, offset, entry[1]));
        offset += bytesOf(entry);
      }
      if (bytes > 0) this.buffers.push(new Uint8Array(buffer));
      run = [];
    };
    for (const entry of list) {
      const large = bytesOf(entry) >= largeBytes;
      if (large) flush();
      run.push(entry);
      if (large) flush();
    }
    flush();
  }

  private malformed(cause: string): EngineError {
    return this.fault(`it sent a malformed frame: ${cause}`, "start it again, and report this if it happens twice");
  }

  private fault(cause: string, mend: string): EngineError {
    return new EngineError({ place: this.place, cause, mend });
  }
}
