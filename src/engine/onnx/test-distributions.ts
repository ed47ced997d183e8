/** Twelve distributions over a real vocabulary for the draw, made from a seed and held to a hash, and the uniforms that try them. */
import { createHash } from "node:crypto";
import { randomKey, Stream } from "../../core/random.js";

export const vocabulary = 49_152;

/** A logit so low that its float32 probability is exactly 0. */
const never = -1e4;

/** A thirteenth, whose masses differ so much that a sum over them in double is itself inexact. */
export const extreme = "forty orders of magnitude";

type Make = (token: number, random: Stream) => number;

const makers: { readonly [name: string]: Make } = {
  peaked: (v, r) => (v === 30_000 ? 25 : r.normal()),
  typical: (_, r) => 3 * r.normal(),
  flat: () => 0,
  "nearly flat": (_, r) => 0.01 * r.normal(),
  zipf: (_, r) => -1.1 * Math.log(1 + r.int(vocabulary)),
  "two tokens": (v) => (v === 255 || v === 40_000 ? 0 : never),
  "zeros at both ends": (v, r) => (v >= 10_100 && v < 39_052 ? 2 * r.normal() : never),
  "zero blocks between others": (v, r) => (Math.floor(v / 256) % 2 === 1 ? r.normal() : never),
  "every third token zero": (v, r) => (v % 3 === 1 ? never : r.normal()),
  "only the first token": (v) => (v === 0 ? 0 : never),
  "only the last token": (v) => (v === vocabulary - 1 ? 0 : never),
  "rising to the last token": (v) => (20 * (v + 1)) / vocabulary - 20,
  [extreme]: (_, r) => -92 * r.next(),
};

/** The twelve. */
export const names = Object.keys(makers).filter((name) => name !== extreme);

/** Logits of a distribution, float32. */
export function logitsOf(name: string): Float32Array {
  const random = new Stream(randomKey({ seed: 12, purpose: name }));
  return Float32Array.from({ length: vocabulary }, (_, v) => makers[name](v, random));
}

export const hashOf = (logits: Float32Array): string => createHash("sha256").update(new Uint8Array(logits.buffer)).digest("hex").slice(0, 16);

/** What the logits are to be, everywhere and always. */
export const hashes: { readonly [name: string]: string } = {
  peaked: "377464985064174c",
  typical: "50d403056813796c",
  flat: "3381de4ca9f3a477",
  "nearly flat": "335aefa04a67a40b",
  zipf: "4cbef16af732815c",
  "two tokens": "7913dbe59d94a1fa",
  "zeros at both ends": "da75bed75f5a3e87",
  "zero blocks between others": "430ceff057458bef",
  "every third token zero": "fdd606f8d7f592ba",
  "only the first token": "3ae410d1b3facac9",
  "only the last token": "5017dd4767a9c870",
  "rising to the last token": "3577309a863b24f6",
  [extreme]: "31c3887f2e377eae",
};

/** Sums of the first tokens' masses, in the order of tokens, in double: the k-th includes token k. */
export function inclusiveSums(masses: Float32Array): Float64Array {
  let sum = 0;
  return Float64Array.from(masses, (mass) => {
    sum += mass;
    return sum;
  });
}

/** The inverse transform in float64: the first token whose inclusive sum exceeds u times the sum of all. */
export function inverseTransform(sums: Float64Array, u: number): number {
  const target = u * sums[sums.length - 1];
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sums[middle] > target) high = middle;
    else low = middle + 1;
  }
  return low;
}

const largest = 1 - 2 ** -53;

/** `count` uniforms: 0, 1 − 2⁻⁵³, `boundaries` limits between tokens that can be drawn, 1e-12 to either side, and a grid. */
export function uniformsFor(masses: Float32Array, count: number, boundaries: number): Float64Array {
  const random = new Stream(randomKey({ seed: 13, purpose: "boundaries" }));
  const sums = inclusiveSums(masses);
  const total = sums[sums.length - 1];
  const drawable = [...masses.keys()].filter((v) => masses[v] > 0);
  const all = [0, largest];
  for (let i = 0; i < boundaries; i++) {
    // Every other boundary by its token's probability, so that likely tokens have theirs tried too.
    const token = i % 2 ? inverseTransform(sums, random.next()) : random.pick(drawable);
    const boundary = sums[token] / total;
    all.push(Math.max(0, boundary - 1e-12), Math.min(largest, boundary + 1e-12));
  }
  const grid = count - all.length;
  for (let i = 0; i < grid; i++) all.push((i + 0.5) / grid);
  return Float64Array.from(all);
}
