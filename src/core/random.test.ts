import { describe, expect, it } from "vitest";
import { type Meaning, philox, type RandomKey, randomKey, Stream, toUniform, uniform } from "./random.js";

const hex = (words: Uint32Array): string => [...words].map((word) => word.toString(16).padStart(8, "0")).join(" ");
const block = (counter: readonly number[], key: readonly number[]): string => {
  const [c0, c1, c2, c3] = counter as [number, number, number, number];
  const [k0, k1] = key as [number, number];
  return hex(philox(c0, c1, c2, c3, k0, k1, new Uint32Array(4)));
};

/** Philox4x32-10 again, from the paper's description and in BigInt, for blocks that have no published answer. */
function philoxByBigInt(counter: readonly number[], key: readonly number[]): string {
  let [c0, c1, c2, c3] = counter.map(BigInt) as [bigint, bigint, bigint, bigint];
  let [k0, k1] = key.map(BigInt) as [bigint, bigint];
  const low = 0xffffffffn;
  for (let round = 0; round < 10; round++) {
    const p0 = 0xd2511f53n * c0;
    const p1 = 0xcd9e8d57n * c2;
    [c0, c1, c2, c3] = [(p1 >> 32n) ^ c1 ^ k0, p1 & low, (p0 >> 32n) ^ c3 ^ k1, p0 & low];
    k0 = (k0 + 0x9e3779b9n) & low;
    k1 = (k1 + 0xbb67ae85n) & low;
  }
  return hex(Uint32Array.from([c0, c1, c2, c3].map(Number)));
}

describe("Philox4x32-10", () => {
  it("gives the known answers of Random123", () => {
    expect(block([0, 0, 0, 0], [0, 0])).toBe("6627e8d5 e169c58d bc57ac4c 9b00dbd8");
    const ones = 0xffffffff;
    expect(block([ones, ones, ones, ones], [ones, ones])).toBe("408f276d 41c83b0e a20bc7c6 6d5451fd");
    expect(block([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0])).toBe("d16cfe09 94fdcceb 5001e420 24126ea1");
  });

  it("agrees with exact arithmetic on blocks of all kinds of words", () => {
    const words = [0, 1, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffeffff, 0xffffffff, 0xdeadbeef];
    let same = 0;
    for (let i = 0; i < 500; i++) {
      const at = (j: number): number => words[(i * (j + 1) + j * j + Math.floor(i / 9)) % words.length] as number;
      const counter = [at(0), at(1), at(2), at(3)];
      const key = [at(4), at(5)];
      if (block(counter, key) === philoxByBigInt(counter, key)) same++;
    }
    expect(same).toBe(500);
  });
});

describe("a uniform number", () => {
  it("has 53 bits: 0, the smallest step and 1 - 2^-53 are all reached, 1 is not", () => {
    expect(toUniform(0, 0)).toBe(0);
    expect(toUniform(0, 64)).toBe(2 ** -53);
    expect(toUniform(0xffffffff, 0xffffffff)).toBe(1 - 2 ** -53);
    expect(toUniform(0x80000000, 0)).toBe(0.5);
    expect(toUniform(0x80000000, 64)).toBe(0.5 + 2 ** -53);
  });

  it("is a pure function of key and position, in both lanes", () => {
    const key = randomKey({ seed: 7, purpose: "sample" });
    const forward = Array.from({ length: 50 }, (_, i) => uniform(key, i));
    const backward = Array.from({ length: 50 }, (_, i) => uniform(key, 49 - i)).reverse();
    expect(backward).toEqual(forward);
    expect(new Set([...forward, ...forward.map((_, i) => uniform(key, i, 1))]).size).toBe(100);
  });

  it("tells positions above 2^32 apart", () => {
    const key: RandomKey = [1, 2, 3, 4];
    const [low, high] = [5, 2 ** 32 + 5];
    expect(uniform(key, low)).not.toBe(uniform(key, high));
    const out = philox(5, 1, 3, 4, 1, 2, new Uint32Array(4));
    expect(uniform(key, high)).toBe(toUniform(out[0] as number, out[1] as number));
  });

  it("has the mean and variance of a uniform, and no correlation between neighbours or lanes", () => {
    const key = randomKey({ seed: 1, purpose: "moments" });
    const n = 40_000;
    const a = Array.from({ length: n }, (_, i) => uniform(key, i) - 0.5);
    const b = Array.from({ length: n }, (_, i) => uniform(key, i, 1) - 0.5);
    const mean = (f: (i: number) => number): number => a.reduce((sum, _, i) => sum + f(i), 0) / n;
    expect(Math.abs(mean((i) => a[i] as number))).toBeLessThan((4 * Math.sqrt(1 / 12)) / Math.sqrt(n));
    expect(mean((i) => (a[i] as number) ** 2)).toBeCloseTo(1 / 12, 2);
    // A product of two independent centred uniforms has deviation 1/12: 4 / (12 sqrt n) is four standard errors.
    expect(Math.abs(mean((i) => (a[i] as number) * (b[i] as number)))).toBeLessThan(4 / (12 * Math.sqrt(n)));
    expect(Math.abs(mean((i) => (a[i] as number) * (a[(i + 1) % n] as number)))).toBeLessThan(4 / (12 * Math.sqrt(n)));
  });
});

describe("a random key", () => {
  const base: Meaning = { seed: 1, purpose: "sample", step: 2, problem: "p", member: 3, turn: 4 };

  it("changes with every field, and between a field and its absence", () => {
    const meanings: Meaning[] = [
      base,
      { ...base, seed: 2 },
      { ...base, purpose: "shuffle" },
      { ...base, step: 3 },
      { ...base, problem: "q" },
      { ...base, member: 4 },
      { ...base, turn: 5 },
      { ...base, step: 0 },
      { ...base, step: undefined },
      { ...base, problem: undefined },
      { ...base, problem: "" },
      { ...base, member: undefined },
      { ...base, member: 4, turn: 3 },
    ];
    expect(new Set(meanings.map((meaning) => randomKey(meaning).join(","))).size).toBe(meanings.length);
    expect(randomKey({ ...base })).toEqual(randomKey(base));
  });

  it("is not fooled by texts that run into each other", () => {
    const joined = [
      { seed: 1, purpose: "a", problem: "bc" },
      { seed: 1, purpose: "ab", problem: "c" },
      { seed: 1, purpose: 'a","bc' },
      { seed: 1, purpose: "null", problem: "null" },
      { seed: 1, purpose: "null" },
    ];
    expect(new Set(joined.map((meaning) => randomKey(meaning).join(","))).size).toBe(joined.length);
  });

  it("refuses numbers that are not whole", () => {
    expect(() => randomKey({ seed: 0.5, purpose: "x" })).toThrow("the random key's seed must be a whole number, got 0.5");
    expect(() => randomKey({ seed: 1, purpose: "x", member: Number.NaN })).toThrow("member");
    expect(() => randomKey({ seed: 2 ** 53, purpose: "x" })).toThrow("seed");
  });
});

describe("a stream", () => {
  const stream = (purpose: string): Stream => new Stream(randomKey({ seed: 11, purpose }));

  it("repeats itself for the same key", () => {
    const draw = (s: Stream): unknown[] => [s.next(), s.int(10), s.normal(), s.pick(["a", "b", "c"]), s.shuffle([1, 2, 3, 4])];
    expect(draw(stream("again"))).toEqual(draw(stream("again")));
    expect(draw(stream("other"))).not.toEqual(draw(stream("again")));
  });

  it("draws whole numbers evenly from 0 to n - 1", () => {
    const counts = new Array<number>(7).fill(0);
    const s = stream("int");
    for (let i = 0; i < 14_000; i++) (counts[s.int(7)] as number)++;
    const chi = counts.reduce((sum, count) => sum + (count - 2000) ** 2 / 2000, 0);
    expect(chi).toBeLessThan(22.46); // 99.9 % of chi-square with 6 degrees
    expect(Array.from({ length: 20 }, () => s.int(1))).toEqual(new Array(20).fill(0));
  });

  it("stays below n where n is as large as it gets", () => {
    const top = Number.MAX_SAFE_INTEGER;
    // The largest uniform: what `int` would return for it.
    for (const n of [1, 2, 3, 2 ** 31, 2 ** 52, 2 ** 52 + 2, top - 1, top]) expect(Math.floor((1 - 2 ** -53) * n)).toBeLessThan(n);
    for (const n of [0, -1, 1.5, Number.NaN, 2 ** 53]) expect(() => stream("bad").int(n)).toThrow("needs n of at least 1");
    expect(() => stream("bad").pick([])).toThrow(RangeError);
  });

  it("shuffles into a permutation, leaves its input alone, and reaches all orders equally often", () => {
    const items = Object.freeze(["a", "b", "c"]);
    const s = stream("shuffle");
    const counts = new Map<string, number>();
    for (let i = 0; i < 6000; i++) {
      const order = s.shuffle(items).join("");
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual(["abc", "acb", "bac", "bca", "cab", "cba"]);
    const chi = [...counts.values()].reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
    expect(chi).toBeLessThan(20.52); // 99.9 % of chi-square with 5 degrees
    expect(s.shuffle([])).toEqual([]);
  });

  it("draws normals with mean 0, variance 1 and the right tails, all finite", () => {
    const s = stream("normal");
    const n = 40_000;
    const draws = Array.from({ length: n }, () => s.normal());
    const mean = draws.reduce((sum, x) => sum + x, 0) / n;
    const variance = draws.reduce((sum, x) => sum + (x - mean) ** 2, 0) / n;
    expect(draws.every(Number.isFinite)).toBe(true);
    expect(Math.abs(mean)).toBeLessThan(0.02);
    expect(Math.abs(variance - 1)).toBeLessThan(0.03);
    const beyond = draws.filter((x) => Math.abs(x) > 1.959964).length / n;
    expect(Math.abs(beyond - 0.05)).toBeLessThan(0.005);
  });
});
