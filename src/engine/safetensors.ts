/**
 * Files of named tensors in the safetensors format: 8 bytes with the length of a JSON header, the header, the data, all
 * little-endian and row-major. Tensors are read one by one with positioned reads, so a file may be larger than memory.
 */
import { type FileHandle, open } from "node:fs/promises";
import { ModelError } from "../core/errors.js";
import type { Json } from "../core/json.js";
import { bfloat16ToFloat32, float16ToFloat32 } from "./half.js";

/** Bytes an element. */
export const widths = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
  F8_E4M3: 1,
  F8_E5M2: 1,
} as const;
export type Dtype = keyof typeof widths;

/** Where a tensor lies; `begin` and `end` are bytes from the start of the file. */
export interface TensorEntry {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

/** The format's own bound on the header, which keeps a damaged length from allocating the machine's memory. */
const largestHeader = 100_000_000;
/** One read call may not pass 2 GiB. */
const largestRead = 1 << 30;
/** Elements converted at a time. */
const chunk = 1 << 20;

function refuse(file: string, cause: string, mend = "fetch or write the file again"): never {
  throw new ModelError({ place: file, cause, mend });
}

export const countOf = (shape: readonly number[]): number => shape.reduce((product, n) => product * n, 1);

/** An open file whose header was checked whole; tensors are read on request. */
export class SafetensorsFile {
  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
    readonly entries: ReadonlyMap<string, TensorEntry>,
    readonly metadata: { readonly [key: string]: string },
  ) {}

  /** Opens a file and checks its header against its size; a ModelError names file and tensor. */
  static async open(path: string): Promise<SafetensorsFile> {
    const handle = await open(path, "r").catch((error: NodeJS.ErrnoException) => refuse(path, `it cannot be read (${error.code})`, "check the path"));
    try {
      const about = await handle.stat();
      if (!about.isFile()) refuse(path, "it is a folder", "put the file there");
      const { size } = about;
      const { entries, metadata } = await readHeader(handle, path, size);
      return new SafetensorsFile(path, handle, entries, metadata);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  entry(name: string): TensorEntry {
    return this.entries.get(name) ?? refuse(this.path, `it has no tensor ${name}`, `name one of: ${[...this.entries.keys()].join(", ")}`);
  }

  /** The raw bytes of a tensor, in a buffer of their own. */
  async readBytes(name: string): Promise<Uint8Array> {
    const { begin, end } = this.entry(name);
    const bytes = new Uint8Array(end - begin);
    await readFully(this.handle, bytes, begin, this.path);
    return bytes;
  }

  /** Some raw bytes of a tensor, counted from its start, in a buffer of their own. */
  async readPart(name: string, from: number, to: number): Promise<Uint8Array> {
    const { begin, end } = this.entry(name);
    if (from < 0 || to < from || begin + to > end) refuse(this.path, `tensor ${name} has no bytes from ${from} to ${to}`, "ask for bytes that it has");
    const bytes = new Uint8Array(to - from);
    await readFully(this.handle, bytes, begin + from, this.path);
    return bytes;
  }

  /** A floating-point tensor as float32 (F64 is rounded), into `target` when given, which must have its length. */
  async readFloat32(name: string, target?: Float32Array): Promise<Float32Array> {
    const entry = this.entry(name);
    const into = this.fitting(entry, target ?? new Float32Array(countOf(entry.shape)));
    if (entry.dtype === "F32") {
      await readFully(this.handle, new Uint8Array(into.buffer, into.byteOffset, into.byteLength), entry.begin, this.path);
    } else await this.convert(entry, into);
    return into;
  }

  /** The first numbers of a floating-point tensor as float32, at most `count`. */
  async readFirst(name: string, count: number): Promise<Float32Array> {
    const entry = this.entry(name);
    const into = new Float32Array(Math.min(count, countOf(entry.shape)));
    await this.convert(entry, into);
    return into;
  }

  /** A floating-point tensor as float64. */
  async readFloat64(name: string): Promise<Float64Array> {
    const entry = this.entry(name);
    const into = new Float64Array(countOf(entry.shape));
    if (entry.dtype === "F64") await readFully(this.handle, new Uint8Array(into.buffer), entry.begin, this.path);
    else await this.convert(entry, into);
    return into;
  }

  /** A tensor of I64 as it is. */
  async readInt64(name: string): Promise<BigInt64Array> {
    const entry = this.entry(name);
    if (entry.dtype !== "I64") refuse(this.path, `tensor ${name} holds ${entry.dtype}`, "give one that holds I64");
    return new BigInt64Array((await this.readBytes(name)).buffer as ArrayBuffer);
  }

  private fitting<T extends Float32Array>(entry: TensorEntry, target: T): T {
    const count = countOf(entry.shape);
    if (target.length !== count)
      refuse(this.path, `tensor ${entry.name} has ${count} elements, and ${target.length} are wanted`, "use the weights that belong to the shape");
    return target;
  }

  private async convert(entry: TensorEntry, into: Float32Array | Float64Array): Promise<void> {
    const width = widths[entry.dtype];
    const bytes = new Uint8Array(Math.min(chunk, into.length) * width);
    for (let done = 0; done < into.length; done += chunk) {
      const count = Math.min(chunk, into.length - done);
      await readFully(this.handle, bytes.subarray(0, count * width), entry.begin + done * width, this.path);
      const part = into.subarray(done, done + count);
      if (entry.dtype === "F32") part.set(new Float32Array(bytes.buffer, 0, count));
      else if (entry.dtype === "F64") part.set(new Float64Array(bytes.buffer, 0, count));
      else if (entry.dtype === "F16") float16ToFloat32(new Uint16Array(bytes.buffer, 0, count), part);
      else if (entry.dtype === "BF16") bfloat16ToFloat32(new Uint16Array(bytes.buffer, 0, count), part);
      else refuse(this.path, `tensor ${entry.name} holds ${entry.dtype}`, "give one that holds F32, F16, BF16 or F64");
    }
  }
}

async function readFully(handle: FileHandle, bytes: Uint8Array, position: number, file: string): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, done, Math.min(largestRead, bytes.length - done), position + done);
    if (bytesRead === 0) refuse(file, `it ends at byte ${position + done}, before its tensors do`);
    done += bytesRead;
  }
}

async function readHeader(handle: FileHandle, file: string, size: number): Promise<Pick<SafetensorsFile, "entries" | "metadata">> {
  if (size < 8) refuse(file, `it has ${size} bytes, too few for a safetensors file`);
  const prefix = new Uint8Array(8);
  await readFully(handle, prefix, 0, file);
  // Eight letters read as a length would be a number that says nothing.
  if (new TextDecoder().decode(prefix) === "version ") refuse(file, "it is a pointer of Git LFS in place of the file", "fetch the file itself (git lfs pull)");
  const length = Number(new DataView(prefix.buffer).getBigUint64(0, true));
  if (length > largestHeader)
    refuse(file, `its header is said to have ${length} bytes, more than the ${largestHeader} allowed`, "check that it is a safetensors file");
  if (8 + length > size) refuse(file, `its header of ${length} bytes passes the end of the file (${size} bytes)`);
  const bytes = new Uint8Array(length);
  await readFully(handle, bytes, 8, file);
  const { text, header } = parseHeader(bytes, file);
  const repeated = repeatedKey(text);
  if (repeated !== undefined) refuse(file, `its header names the tensor ${repeated} twice`);
  const entries: TensorEntry[] = [];
  let metadata: { readonly [key: string]: string } = {};
  for (const [name, value] of Object.entries(header)) {
    if (name === "__metadata__") metadata = parseMetadata(value, file);
    else entries.push(parseEntry(name, value, 8 + length, file));
  }
  checkLayout(entries, 8 + length, size, file);
  return { entries: new Map(entries.map((entry) => [entry.name, entry])), metadata };
}

function parseHeader(bytes: Uint8Array, file: string): { text: string; header: { readonly [key: string]: Json } } {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const header: Json = JSON.parse(text);
    if (header !== null && typeof header === "object" && !Array.isArray(header)) return { text, header: header as { readonly [key: string]: Json } };
  } catch {
    // Said below, together with JSON of another kind.
  }
  return refuse(file, "its header is not a JSON object", "check that it is a safetensors file");
}

/** The first key that the outer object of a JSON text has twice; JSON.parse would keep the last one silently. */
function repeatedKey(text: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  for (const [, string, colon, bracket] of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|([{}[\]])/g)) {
    if (bracket !== undefined) depth += bracket === "{" || bracket === "[" ? 1 : -1;
    else if (depth === 1 && colon !== undefined) {
      const key: string = JSON.parse(string);
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return undefined;
}

function parseMetadata(value: Json, file: string): { readonly [key: string]: string } {
  const plain = value !== null && typeof value === "object" && !Array.isArray(value) && Object.values(value).every((text) => typeof text === "string");
  return plain ? (value as { readonly [key: string]: string }) : refuse(file, "its __metadata__ is not an object of strings");
}

const isSize = (value: Json | undefined): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function parseEntry(name: string, value: Json, base: number, file: string): TensorEntry {
  const { dtype, shape, data_offsets: offsets } = (value !== null && typeof value === "object" ? value : {}) as { readonly [key: string]: Json };
  if (typeof dtype !== "string" || !Object.hasOwn(widths, dtype))
    refuse(file, `tensor ${name} has the type ${JSON.stringify(dtype)}, which is not known`, "convert it to F32");
  if (!Array.isArray(shape) || !shape.every(isSize)) refuse(file, `tensor ${name} has the shape ${JSON.stringify(shape)}`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize)) refuse(file, `tensor ${name} has the offsets ${JSON.stringify(offsets)}`);
  const [begin, end] = offsets as [number, number];
  const bytes = countOf(shape) * widths[dtype as Dtype];
  if (end - begin !== bytes) refuse(file, `tensor ${name} of ${dtype} ${JSON.stringify(shape)} needs ${bytes} bytes and has ${end - begin}`);
  return { name, dtype: dtype as Dtype, shape, begin: base + begin, end: base + end };
}

/** Tensors lie end to end from the header to the end of the file: no gap, no overlap, nothing missing, nothing behind. */
function checkLayout(entries: readonly TensorEntry[], base: number, size: number, file: string): void {
  let end = base;
  let before = "the header";
  for (const entry of [...entries].sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (entry.begin < end) refuse(file, `tensor ${entry.name} overlaps ${before}`);
    if (entry.begin > end) refuse(file, `${entry.begin - end} bytes between ${before} and tensor ${entry.name} belong to nothing`);
    if (entry.end > size) refuse(file, `it is truncated: tensor ${entry.name} ends at byte ${entry.end} of ${size}`);
    end = entry.end;
    before = `tensor ${entry.name}`;
  }
  if (end !== size) refuse(file, `${size - end} bytes behind ${before} belong to nothing`);
}
