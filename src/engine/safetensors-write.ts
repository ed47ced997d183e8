/** Writes files of the safetensors format: the same tensors give the same bytes, and a reader never sees half a file. */
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ArgumentError } from "../core/errors.js";
import { countOf, type Dtype, widths } from "./safetensors.js";

export type TensorData =
  | Float64Array
  | Float32Array
  | BigInt64Array
  | Int32Array
  | Int16Array
  | Int8Array
  | BigUint64Array
  | Uint32Array
  | Uint16Array
  | Uint8Array;

/** A tensor to be written, row-major; its type follows from the array. */
export interface TensorToWrite {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: TensorData;
}

/** A tensor whose numbers are fetched when it is their turn, so that not all of them are in memory together. */
export interface TensorToFetch {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: Dtype;
  fetch(): Promise<TensorData>;
}

const dtypes: { readonly [array: string]: Dtype } = {
  Float64Array: "F64",
  Float32Array: "F32",
  BigInt64Array: "I64",
  Int32Array: "I32",
  Int16Array: "I16",
  Int8Array: "I8",
  BigUint64Array: "U64",
  Uint32Array: "U32",
  Uint16Array: "U16",
  Uint8Array: "U8",
};

/** One write call may not pass 2 GiB. */
const largestWrite = 1 << 30;
const alignment = 8;

/**
 * Writes tensors in the order given (wider types first, so that each is aligned) with text metadata, to a file beside
 * that is then renamed. Throws an ArgumentError for a name given twice or data that do not fill the shape.
 */
export async function writeSafetensors(
  path: string,
  tensors: readonly (TensorToWrite | TensorToFetch)[],
  metadata: { readonly [key: string]: string } = {},
): Promise<void> {
  const ordered = [...tensors].sort((a, b) => widthOf(b) - widthOf(a));
  const beside = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  const header = headerOf(path, ordered, metadata);
  try {
    const file = await open(beside, "w");
    try {
      const write = async (bytes: Uint8Array): Promise<void> => {
        for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done, Math.min(largestWrite, bytes.length - done))).bytesWritten;
      };
      await write(header);
      for (const tensor of ordered) {
        const data = "data" in tensor ? tensor.data : await tensor.fetch();
        if (data.byteLength !== bytesOf(tensor))
          throw fault(path, `tensor ${tensor.name} was fetched with ${data.length} values`, "fetch as many as its shape has");
        await write(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      }
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

const fault = (place: string, cause: string, mend: string): ArgumentError => new ArgumentError({ place, cause, mend });
const dtypeOf = (tensor: TensorToWrite | TensorToFetch): Dtype => ("data" in tensor ? (dtypes[tensor.data.constructor.name] as Dtype) : tensor.dtype);
const widthOf = (tensor: TensorToWrite | TensorToFetch): number => widths[dtypeOf(tensor)];
const bytesOf = (tensor: TensorToWrite | TensorToFetch): number => countOf(tensor.shape) * widthOf(tensor);

/** The length and JSON header that precede the data of tensors, in their order; the first tensor then lies aligned. */
export function headerOf(path: string, tensors: readonly (TensorToWrite | TensorToFetch)[], metadata: { readonly [key: string]: string }): Uint8Array {
  const header: [string, unknown][] = Object.keys(metadata).length > 0 ? [["__metadata__", metadata]] : [];
  const names = new Set(["__metadata__"]);
  let offset = 0;
  for (const tensor of tensors) {
    const { name, shape } = tensor;
    if (names.has(name)) throw fault(path, `the tensor name ${name} is taken`, "give each tensor a name of its own");
    if ("data" in tensor && countOf(shape) !== tensor.data.length)
      throw fault(path, `tensor ${name} of shape ${JSON.stringify(shape)} has ${tensor.data.length} values`, "give data that fill the shape");
    names.add(name);
    header.push([name, { dtype: dtypeOf(tensor), shape, data_offsets: [offset, offset + bytesOf(tensor)] }]);
    offset += bytesOf(tensor);
  }
  // Written by hand, since an object would put names that look like numbers first.
  const text = `{${header.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`;
  const unpadded = new TextEncoder().encode(text);
  const bytes = new Uint8Array(8 + Math.ceil(unpadded.length / alignment) * alignment).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(bytes.length - 8), true);
  bytes.set(unpadded, 8);
  return bytes;
}

/** Makes renames within a folder survive a power failure, where the system can do that for folders. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
