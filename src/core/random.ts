/**
 * Counter-based randomness: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 * A number is a pure function of what it is for (seed, purpose, step, problem, member, position), so it does not depend
 * on batch size, concurrency or the order of arrival.
 */
import { createHash } from "node:crypto";

/** Two key words and two counter words, each a uint32; the other two counter words count positions. */
export type RandomKey = readonly [number, number, number, number];

/** What a random number is for. Two different meanings give independent streams. */
export interface Meaning {
  readonly seed: number;
  /** `sample`, `shuffle`, `init`… */
  readonly purpose: string;
  readonly step?: number;
  readonly problem?: string;
  readonly member?: number;
  readonly turn?: number;
}

/** The key of a meaning: the first 16 bytes of a SHA-256 over its fields, each with its name and length, so that no two meanings share a text. */
export function randomKey(meaning: Meaning): RandomKey {
  const { seed, purpose, step, problem, member, turn } = meaning;
  for (const [name, value] of Object.entries({ seed, step, member, turn })) {
    if (value !== undefined && !Number.isSafeInteger(value)) throw new RangeError(`the random key's ${name} must be a whole number, got ${value}`);
  }
  const text = JSON.stringify(["philox", seed, purpose, step ?? null, problem ?? null, member ?? null, turn ?? null]);
  const digest = createHash("sha256").update(text).digest();
  return [digest.readUInt32LE(0), digest.readUInt32LE(4), digest.readUInt32LE(8), digest.readUInt32LE(12)];
}

const M0 = 0xd2511f53;
const M1 = 0xcd9e8d57;
const W0 = 0x9e3779b9;
const W1 = 0xbb67ae85;

/** High 32 bits of the product of two uint32. */
function mulHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const carry = aLow * bHigh + (middle & 0xffff);
  return (aHigh * bHigh + Math.floor(middle / 65536) + Math.floor(carry / 65536)) >>> 0;
}

/** One block of Philox4x32-10: four counter words and two key words to four uint32, written into `out`. */
export function philox(c0: number, c1: number, c2: number, c3: number, k0: number, k1: number, out: Uint32Array): Uint32Array {
  for (let round = 0; round < 10; round++) {
    const high0 = mulHigh(M0, c0);
    const low0 = Math.imul(M0, c0) >>> 0;
    const high1 = mulHigh(M1, c2);
    const low1 = Math.imul(M1, c2) >>> 0;
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0;
    k0 = (k0 + W0) >>> 0;
    k1 = (k1 + W1) >>> 0;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
  return out;
}

const block = new Uint32Array(4);

/** The uniform number of a position: 53 bits, in [0, 1). `lane` 0 or 1 gives two independent numbers a position. */
export function uniform(key: RandomKey, position: number, lane: 0 | 1 = 0): number {
  philox(position >>> 0, Math.floor(position / 4294967296) >>> 0, key[2], key[3], key[0], key[1], block);
  return toUniform(block[2 * lane] as number, block[2 * lane + 1] as number);
}

/** 53-bit uniform from two uint32: 27 high bits of the first, 26 of the second. */
export function toUniform(a: number, b: number): number {
  return ((a >>> 5) * 67108864 + (b >>> 6)) / 9007199254740992;
}

/** A stream of numbers of one key, in order: for shuffles, initial weights and task generators. */
export class Stream {
  private position = 0;
  constructor(private readonly key: RandomKey) {}

  /** Uniform in [0, 1). */
  next(): number {
    return uniform(this.key, this.position++);
  }

  /** Whole number from 0 to n − 1; one number a call, so no result is more likely than another by over 2⁻⁵³. */
  int(n: number): number {
    if (!Number.isSafeInteger(n) || n < 1) throw new RangeError(`a random whole number needs n of at least 1, got ${n}`);
    return Math.floor(this.next() * n);
  }

  /** Standard normal (Box and Muller; one number a position). */
  normal(): number {
    const position = this.position++;
    const radius = Math.sqrt(-2 * Math.log(1 - uniform(this.key, position, 0)));
    return radius * Math.cos(2 * Math.PI * uniform(this.key, position, 1));
  }

  /** One of the items. */
  pick<T>(items: readonly T[]): T {
    return items[this.int(items.length)] as T;
  }

  /** A shuffled copy (Fisher and Yates). */
  shuffle<T>(items: readonly T[]): T[] {
    const result = [...items];
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.int(i + 1);
      [result[i], result[j]] = [result[j] as T, result[i] as T];
    }
    return result;
  }
}
