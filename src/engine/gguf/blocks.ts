/**
 * The types in which GGUF files hold numbers: plain ones, and blocks of quantised ones. Each product and sum is rounded to
 * float32 where the reference implementation rounds, so that the numbers are its numbers bit for bit.
 */
import { bfloat16ToFloat32, float16ToFloat32 } from "../half.js";

export interface BlockType {
  readonly name: string;
  /** Numbers a block. */
  readonly size: number;
  /** Bytes a block. */
  readonly bytes: number;
  /** Numbers of whole blocks into `target`; absent for types that are known by name alone. */
  readonly expand?: (bytes: Uint8Array, target: Float32Array) => void;
}

const half = new Float32Array(1);
const halfBits = new Uint16Array(1);
function halfAt(bytes: Uint8Array, at: number): number {
  halfBits[0] = (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
  float16ToFloat32(halfBits, half);
  return half[0] as number;
}

/** A block at a time: `block(from, to)` reads from byte `from` and writes from number `to`. */
function blocks(bytes: Uint8Array, type: { readonly size: number; readonly bytes: number }, block: (from: number, to: number) => void): void {
  const count = bytes.length / type.bytes;
  for (let b = 0; b < count; b++) block(b * type.bytes, b * type.size);
}

const round = Math.fround;
const low = (byte: number): number => byte & 15;
const high = (byte: number): number => byte >> 4;

/** 32 numbers of 4 bits, the first 16 in low and the others in high nibbles: q · d + offset, or (q − 8) · d without a minimum. */
const nibbles = (hasMinimum: boolean) => {
  const type = { size: 32, bytes: hasMinimum ? 20 : 18 };
  return (bytes: Uint8Array, x: Float32Array): void =>
    blocks(bytes, type, (from, to) => {
      const d = halfAt(bytes, from);
      const m = hasMinimum ? halfAt(bytes, from + 2) : 0;
      const at = from + (hasMinimum ? 4 : 2);
      for (let i = 0; i < 16; i++) {
        const byte = bytes[at + i] as number;
        x[to + i] = hasMinimum ? round(d * low(byte)) + m : d * (low(byte) - 8);
        x[to + 16 + i] = hasMinimum ? round(d * high(byte)) + m : d * (high(byte) - 8);
      }
    });
};

/** As nibbles, with a fifth bit each in a word of 32. */
const fives = (hasMinimum: boolean) => {
  const type = { size: 32, bytes: hasMinimum ? 24 : 22 };
  return (bytes: Uint8Array, x: Float32Array): void => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    blocks(bytes, type, (from, to) => {
      const d = halfAt(bytes, from);
      const m = hasMinimum ? halfAt(bytes, from + 2) : 0;
      const at = from + (hasMinimum ? 4 : 2);
      const fifth = view.getUint32(at, true);
      for (let i = 0; i < 32; i++) {
        const byte = bytes[at + 4 + (i % 16)] as number;
        const q = (i < 16 ? low(byte) : high(byte)) | (((fifth >>> i) & 1) << 4);
        x[to + i] = hasMinimum ? round(d * q) + m : d * (q - 16);
      }
    });
  };
};

function bytes8(bytes: Uint8Array, x: Float32Array): void {
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  blocks(bytes, { size: 32, bytes: 34 }, (from, to) => {
    const d = halfAt(bytes, from);
    for (let i = 0; i < 32; i++) x[to + i] = d * (signed[from + 2 + i] as number);
  });
}

/** The scale and minimum of part j (of 8) of a block of 256, packed as 6 bits each into 12 bytes. */
function packed(bytes: Uint8Array, at: number, j: number): readonly [scale: number, minimum: number] {
  const byte = (i: number): number => bytes[at + i] as number;
  if (j < 4) return [byte(j) & 63, byte(j + 4) & 63];
  return [low(byte(j + 4)) | ((byte(j - 4) >> 6) << 4), high(byte(j + 4)) | ((byte(j) >> 6) << 4)];
}

/** 256 numbers in eight parts with a scale and a minimum each; with `fifth` one more bit a number. */
const kind = (fifth: boolean) => {
  const type = { size: 256, bytes: fifth ? 176 : 144 };
  return (bytes: Uint8Array, x: Float32Array): void =>
    blocks(bytes, type, (from, to) => {
      const d = halfAt(bytes, from);
      const dMinimum = halfAt(bytes, from + 2);
      const numbers = from + 16 + (fifth ? 32 : 0);
      for (let j = 0; j < 8; j++) {
        const [scale, minimum] = packed(bytes, from + 4, j);
        const step = round(d * scale);
        const offset = round(dMinimum * minimum);
        for (let i = 0; i < 32; i++) {
          const byte = bytes[numbers + (j >> 1) * 32 + i] as number;
          const nibble = j % 2 === 0 ? low(byte) : high(byte);
          const q = fifth ? nibble | ((((bytes[from + 16 + i] as number) >> j) & 1) << 4) : nibble;
          x[to + j * 32 + i] = round(step * q) - offset;
        }
      }
    });
};

/** 256 numbers of 6 bits in 16 parts with a signed scale each. */
function sixes(bytes: Uint8Array, x: Float32Array): void {
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  blocks(bytes, { size: 256, bytes: 210 }, (from, to) => {
    const d = halfAt(bytes, from + 208);
    for (let i = 0; i < 256; i++) {
      const [side, within] = [i >> 7, i & 127];
      const quarter = within >> 5;
      const column = within & 31;
      const byte = bytes[from + side * 64 + (quarter % 2) * 32 + column] as number;
      const upper = ((bytes[from + 128 + side * 32 + column] as number) >> (2 * quarter)) & 3;
      const q = ((quarter < 2 ? low(byte) : high(byte)) | (upper << 4)) - 32;
      x[to + i] = round(d * (signed[from + 192 + (i >> 4)] as number)) * q;
    }
  });
}

/** Bits of a plain type, copied where they may not lie aligned. */
const aligned = (bytes: Uint8Array): ArrayBuffer => bytes.slice().buffer as ArrayBuffer;

/** By the number that stands in the file. */
export const blockTypes: { readonly [id: number]: BlockType } = {
  0: { name: "F32", size: 1, bytes: 4, expand: (bytes, x) => x.set(new Float32Array(aligned(bytes))) },
  1: { name: "F16", size: 1, bytes: 2, expand: (bytes, x) => float16ToFloat32(new Uint16Array(aligned(bytes)), x) },
  2: { name: "Q4_0", size: 32, bytes: 18, expand: nibbles(false) },
  3: { name: "Q4_1", size: 32, bytes: 20, expand: nibbles(true) },
  6: { name: "Q5_0", size: 32, bytes: 22, expand: fives(false) },
  7: { name: "Q5_1", size: 32, bytes: 24, expand: fives(true) },
  8: { name: "Q8_0", size: 32, bytes: 34, expand: bytes8 },
  9: { name: "Q8_1", size: 32, bytes: 36 },
  10: { name: "Q2_K", size: 256, bytes: 84 },
  11: { name: "Q3_K", size: 256, bytes: 110 },
  12: { name: "Q4_K", size: 256, bytes: 144, expand: kind(false) },
  13: { name: "Q5_K", size: 256, bytes: 176, expand: kind(true) },
  14: { name: "Q6_K", size: 256, bytes: 210, expand: sixes },
  15: { name: "Q8_K", size: 256, bytes: 292 },
  16: { name: "IQ2_XXS", size: 256, bytes: 66 },
  17: { name: "IQ2_XS", size: 256, bytes: 74 },
  18: { name: "IQ3_XXS", size: 256, bytes: 98 },
  19: { name: "IQ1_S", size: 256, bytes: 50 },
  20: { name: "IQ4_NL", size: 32, bytes: 18 },
  21: { name: "IQ3_S", size: 256, bytes: 110 },
  22: { name: "IQ2_S", size: 256, bytes: 82 },
  23: { name: "IQ4_XS", size: 256, bytes: 136 },
  24: { name: "I8", size: 1, bytes: 1 },
  25: { name: "I16", size: 1, bytes: 2 },
  26: { name: "I32", size: 1, bytes: 4 },
  27: { name: "I64", size: 1, bytes: 8 },
  28: { name: "F64", size: 1, bytes: 8 },
  29: { name: "IQ1_M", size: 256, bytes: 56 },
  30: { name: "BF16", size: 1, bytes: 2, expand: (bytes, x) => bfloat16ToFloat32(new Uint16Array(aligned(bytes)), x) },
  34: { name: "TQ1_0", size: 256, bytes: 54 },
  35: { name: "TQ2_0", size: 256, bytes: 66 },
  39: { name: "MXFP4", size: 32, bytes: 17 },
};

/** Names of the types that can be read. */
export const readable: readonly string[] = Object.values(blockTypes).flatMap(({ name, expand }) => (expand ? [name] : []));
