/** Tensors in float64 in a safetensors file, and a model's folder. Files are written beside and renamed: never half a file. */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import type { TensorValue } from "../contract.js";

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** Writes tensors as F64 with text metadata. */
export async function writeTensors(file: string, tensors: readonly TensorValue[], metadata: { readonly [key: string]: string } = {}): Promise<void> {
  const header: { [name: string]: Json } = { __metadata__: metadata };
  let offset = 0;
  for (const { name, shape, data } of tensors) {
    header[name] = { dtype: "F64", shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  const text = JSON.stringify(header);
  const head = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(head.length));
  const body = tensors.map(({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  const beside = `${file}.${process.pid}.part`;
  await writeFile(beside, Buffer.concat([length, head, ...body]));
  await rename(beside, file);
}

/** Reads what `writeTensors` wrote; throws a ModelError that says what is wrong with the file. */
export async function readTensors(file: string): Promise<{ tensors: TensorValue[]; metadata: { readonly [key: string]: string } }> {
  const bytes = await readBytes(file);
  const wrong = (cause: string): ModelError => new ModelError({ place: file, cause, mend: "save it again" });
  const head = bytes.length < 8 ? Infinity : Number(bytes.readBigUInt64LE(0));
  if (8 + head > bytes.length) throw wrong(`the file ends within its header, after ${bytes.length} bytes`);
  let header: { [name: string]: Entry };
  try {
    header = JSON.parse(bytes.toString("utf8", 8, 8 + head));
  } catch {
    throw wrong("its header is not JSON");
  }
  const { __metadata__: metadata, ...entries } = header;
  const tensors = Object.entries(entries).map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [start, end],
      },
    ]) => {
      if (dtype !== "F64") throw wrong(`tensor ${name} is ${dtype}, and a table is stored as F64`);
      if (8 + head + end > bytes.length) throw wrong(`the file ends within tensor ${name}, after ${bytes.length} bytes`);
      // A copy, because the bytes of a file are not aligned for float64.
      const data = new Float64Array(bytes.buffer.slice(bytes.byteOffset + 8 + head + start, bytes.byteOffset + 8 + head + end));
      return { name, shape, data };
    },
  );
  return { tensors, metadata: (metadata ?? {}) as unknown as { [key: string]: string } };
}

async function readBytes(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new ModelError({ place: file, cause: `it cannot be read (${(error as Error).message})`, mend: "check the path" }, { cause: error });
  }
}

/** Writes config.json and model.safetensors as one folder, which appears whole; a folder that was there is replaced. */
export async function writeFolder(folder: string, config: Json, tensors: readonly TensorValue[]): Promise<void> {
  const beside = `${folder}.${process.pid}.part`;
  const old = `${folder}.${process.pid}.old`;
  await rm(beside, { recursive: true, force: true });
  await mkdir(beside, { recursive: true });
  await writeFile(join(beside, "config.json"), `${JSON.stringify(config, null, 2)}\n`);
  await writeTensors(join(beside, "model.safetensors"), tensors);
  await rename(folder, old).catch(() => undefined);
  await rename(beside, folder);
  await rm(old, { recursive: true, force: true });
}

/** Reads a folder of `writeFolder`. */
export async function readFolder(folder: string): Promise<{ config: Json; tensors: TensorValue[] }> {
  const file = join(folder, "config.json");
  const text = (await readBytes(file)).toString();
  let config: Json;
  try {
    config = JSON.parse(text);
  } catch {
    throw new ModelError({ place: file, cause: "it is not JSON", mend: "save the model again" });
  }
  return { config, tensors: (await readTensors(join(folder, "model.safetensors"))).tensors };
}
