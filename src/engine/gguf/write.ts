/** Writes GGUF files (version 3, little-endian): beside, then renamed, a tensor at a time. */
import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ModelError } from "../../core/errors.js";
import { syncFolder } from "../safetensors-write.js";
import { bytesOfType, quantised, type WritableType, writable } from "./quantise.js";

/** A value of the metadata, with its type in the file. */
export type MetaValue =
  | { readonly text: string }
  | { readonly count: number } // unsigned, 32 bits
  | { readonly float: number } // float32
  | { readonly flag: boolean }
  | { readonly texts: readonly string[] }
  | { readonly ints: readonly number[] } // signed, 32 bits
  | { readonly floats: readonly number[] };

export type Metadata = readonly (readonly [key: string, value: MetaValue])[];

export interface GgufTensorToWrite {
  readonly name: string;
  /** Rows first; the file lists the sizes the other way round. */
  readonly shape: readonly number[];
  readonly type: WritableType;
  fetch(): Promise<Float32Array>;
}

const alignment = 32;
const padded = (bytes: number): number => Math.ceil(bytes / alignment) * alignment;
const countOf = (shape: readonly number[]): number => shape.reduce((product, n) => product * n, 1);

/** Throws ModelError for a number that its type cannot hold; then there is no file. */
export async function writeGguf(path: string, metadata: Metadata, tensors: readonly GgufTensorToWrite[]): Promise<void> {
  const beside = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    const file = await open(beside, "w");
    try {
      await write(file, headerOf(metadata, tensors));
      for (const tensor of tensors) await write(file, await bytesOf(tensor));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

async function bytesOf({ name, type, shape, fetch }: GgufTensorToWrite): Promise<Uint8Array> {
  const bytes = quantised(await fetch(), type);
  if (bytes === undefined)
    throw new ModelError({
      place: `tensor ${name}`,
      cause: `it has a number that is too large for ${type}`,
      mend: "choose another type, or check the weights",
    });
  const whole = new Uint8Array(padded(bytesOfType(type, countOf(shape))));
  whole.set(bytes);
  return whole;
}

async function write(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done, Math.min(1 << 30, bytes.length - done))).bytesWritten;
}

function headerOf(metadata: Metadata, tensors: readonly GgufTensorToWrite[]): Buffer {
  const parts = [Buffer.from("GGUF"), u32(3), u64(tensors.length), u64(metadata.length)];
  for (const [key, value] of metadata) parts.push(text(key), encoded(value));
  let offset = 0;
  for (const { name, shape, type } of tensors) {
    parts.push(text(name), u32(shape.length), ...[...shape].reverse().map(u64), u32(writable[type]), u64(offset));
    offset += padded(bytesOfType(type, countOf(shape)));
  }
  const header = Buffer.concat(parts);
  return Buffer.concat([header], padded(header.length));
}

/** Numbers of the types of values. */
const kinds = { u32: 4, i32: 5, f32: 6, bool: 7, text: 8, list: 9 } as const;

function encoded(value: MetaValue): Buffer {
  if ("text" in value) return Buffer.concat([u32(kinds.text), text(value.text)]);
  if ("count" in value) return Buffer.concat([u32(kinds.u32), u32(value.count)]);
  if ("float" in value) return Buffer.concat([u32(kinds.f32), f32(value.float)]);
  if ("flag" in value) return Buffer.concat([u32(kinds.bool), Buffer.of(value.flag ? 1 : 0)]);
  if ("texts" in value) return list(kinds.text, value.texts.map(text));
  if ("ints" in value) return list(kinds.i32, value.ints.map(i32));
  return list(kinds.f32, value.floats.map(f32));
}

const list = (kind: number, parts: readonly Buffer[]): Buffer => Buffer.concat([u32(kinds.list), u32(kind), u64(parts.length), ...parts]);

function text(content: string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function sized(bytes: number, fill: (buffer: Buffer) => void): Buffer {
  const buffer = Buffer.alloc(bytes);
  fill(buffer);
  return buffer;
}
const u32 = (value: number): Buffer => sized(4, (buffer) => buffer.writeUInt32LE(value));
const i32 = (value: number): Buffer => sized(4, (buffer) => buffer.writeInt32LE(value));
const f32 = (value: number): Buffer => sized(4, (buffer) => buffer.writeFloatLE(value));
const u64 = (value: number): Buffer => sized(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
