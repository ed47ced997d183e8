/** An open GGUF file: its metadata, and its tensors as float32, read one by one. */
import { type FileHandle, open } from "node:fs/promises";
import { gguf } from "@huggingface/gguf";
import { ModelError } from "../../core/errors.js";
import { blockTypes, readable } from "./blocks.js";

/** A value of the metadata. */
export type Meta = string | number | bigint | boolean | readonly Meta[] | undefined;

export interface GgufTensor {
  readonly name: string;
  /** Rows first, as everywhere here; the file lists the sizes the other way round. */
  readonly shape: readonly number[];
  readonly type: string;
  /** Bytes from the start of the file. */
  readonly begin: number;
  readonly bytes: number;
}

export class GgufFile {
  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
    private readonly meta: { readonly [key: string]: Meta },
    readonly tensors: ReadonlyMap<string, GgufTensor>,
  ) {}

  /** Opens a file and checks where its tensors lie against its size. Throws ModelError, naming file and tensor. */
  static async open(path: string): Promise<GgufFile> {
    const handle = await open(path, "r").catch((error: NodeJS.ErrnoException) => refuse(path, `it cannot be read (${error.code})`, "check the path"));
    try {
      const { size } = await handle.stat();
      const magic = Buffer.alloc(4);
      await handle.read(magic, 0, 4, 0);
      if (magic.toString("latin1") !== "GGUF") refuse(path, "it does not begin as a GGUF file does", "give a GGUF file");
      const parsed = await gguf(path, { allowLocalFile: true }).catch((error: unknown) =>
        refuse(path, `its header cannot be read (${error instanceof Error ? error.message.replaceAll("\n", " ") : String(error)})`),
      );
      if (!parsed.littleEndian) refuse(path, "its numbers are big-endian", "convert it to little-endian");
      const base = Number(parsed.tensorDataOffset);
      if (base > size || !Number.isSafeInteger(base)) refuse(path, `it is truncated: its header alone needs ${base} bytes, and it has ${size}`);
      const tensors = parsed.tensorInfos.map(({ name, shape, dtype, offset }) => tensorOf(path, name, shape.map(Number), dtype, base + Number(offset)));
      for (const { name, begin, bytes } of tensors)
        if (begin + bytes > size) refuse(path, `it is truncated: tensor ${name} ends at byte ${begin + bytes} of ${size}`);
      const meta = parsed.metadata as unknown as { readonly [key: string]: Meta };
      return new GgufFile(path, handle, meta, new Map(tensors.map((tensor) => [tensor.name, tensor])));
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.handle.close();
  }

  /** Whether the metadata has a value. */
  has(key: string): boolean {
    return this.meta[key] !== undefined;
  }

  number(key: string, fallback?: number): number {
    const value = this.meta[key] ?? fallback;
    if (typeof value !== "number" && typeof value !== "bigint") refuse(this.path, `its metadata says no number for ${key}`, "convert the model again");
    return Number(value);
  }

  /** A float32 as the shortest decimal number that is it: 1e-5 rather than 9.99999975e-6. */
  decimal(key: string, fallback?: number): number {
    const value = this.number(key, fallback);
    for (let digits = 1; digits <= 9; digits++) {
      const short = Number(value.toPrecision(digits));
      if (Math.fround(short) === Math.fround(value)) return short;
    }
    return value;
  }

  text(key: string, fallback?: string): string {
    const value = this.meta[key] ?? fallback;
    if (typeof value !== "string") refuse(this.path, `its metadata says no text for ${key}`, "convert the model again");
    return value;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.meta[key] ?? fallback;
    if (typeof value !== "boolean") refuse(this.path, `${key} of its metadata is neither true nor false`, "convert the model again");
    return value;
  }

  /** A list; empty where there is none. */
  list(key: string): readonly Meta[] {
    const value = this.meta[key] ?? [];
    if (!Array.isArray(value)) refuse(this.path, `${key} of its metadata is no list`, "convert the model again");
    return value as readonly Meta[];
  }

  tensor(name: string): GgufTensor {
    return this.tensors.get(name) ?? refuse(this.path, `tensor ${name} is missing`, "convert the model again, or take a whole file");
  }

  /** All numbers of a tensor, row-major. Throws ModelError for a type that cannot be read. */
  async read(name: string): Promise<Float32Array> {
    const { shape, type } = this.tensor(name);
    const { expand } = Object.values(blockTypes).find((each) => each.name === type) ?? {};
    if (expand === undefined) refuse(this.path, `tensor ${name} is of the type ${type}, which cannot be read`, `take a file with ${readable.join(", ")} alone`);
    const values = new Float32Array(shape.reduce((product, n) => product * n, 1));
    expand(await this.bytes(name), values);
    return values;
  }

  /** A tensor as it lies in the file. */
  async bytes(name: string): Promise<Uint8Array> {
    const { begin, bytes } = this.tensor(name);
    const raw = new Uint8Array(bytes);
    for (let done = 0; done < bytes; ) {
      const { bytesRead } = await this.handle.read(raw, done, Math.min(1 << 30, bytes - done), begin + done);
      if (bytesRead === 0) refuse(this.path, `it ends within tensor ${name}`);
      done += bytesRead;
    }
    return raw;
  }
}

function tensorOf(path: string, name: string, sizes: readonly number[], type: number, begin: number): GgufTensor {
  const known = blockTypes[type];
  const shape = [...sizes].reverse();
  // Refused when it is read: a file may carry what the model does not need.
  if (known === undefined) return { name, shape, type: `number ${type}`, begin, bytes: 0 };
  const count = sizes.reduce((product, n) => product * n, 1);
  if ((sizes[0] ?? 0) % known.size !== 0) refuse(path, `the rows of tensor ${name} have ${sizes[0]} numbers, and blocks of ${known.name} have ${known.size}`);
  return { name, shape, type: known.name, begin, bytes: (count / known.size) * known.bytes };
}

function refuse(place: string, cause: string, mend = "fetch the file again"): never {
  throw new ModelError({ place, cause, mend });
}
