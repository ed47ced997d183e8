import { describe, expect, it } from "vitest";
import { randomKey, Stream } from "../../core/random.js";
import { type Pack, pack, packMask } from "./pack.js";

const random = new Stream(randomKey({ seed: 1, purpose: "pack" }));
const lengthsOf: { readonly [kind: string]: (n: number) => number[] } = {
  "all equal": (n) => Array<number>(n).fill(random.int(200) + 1),
  uniform: (n) => Array.from({ length: n }, () => random.int(500) + 1),
  "mostly short, few long": (n) => Array.from({ length: n }, () => (random.int(10) === 0 ? 400 + random.int(600) : random.int(8) + 1)),
  "one long among ones": (n) => [5000, ...Array<number>(n - 1).fill(1)],
  "just over half of the longest": (n) => [100, ...Array.from({ length: n - 1 }, () => 51 + random.int(3))],
  "powers of two": (n) => Array.from({ length: n }, () => 2 ** random.int(11)),
  "two sizes that do not fit together": (n) => Array.from({ length: n }, (_, i) => (i % 2 ? 67 : 34)),
  "heavy tail": (n) => Array.from({ length: n }, () => Math.ceil(1 / (0.0005 + random.next()))),
};
const counts = [1, 2, 3, 5, 17, 64, 300];
const budgets = [1, 64, 1000, 8192, 1_000_000];
const lists = Object.entries(lengthsOf).flatMap(([kind, make]) => counts.map((n) => ({ kind, lengths: make(n) })));

const tokens = (p: Pack, lengths: readonly number[]): number => p.places.reduce((sum, { sequence }) => sum + lengths[sequence], 0);
const slots = (packs: readonly Pack[]): number => packs.reduce((sum, p) => sum + p.rows * p.length, 0);

describe("packing", () => {
  it.each(Object.keys(lengthsOf))("places each sequence once, without overlap, within its row, with at most a tenth empty: %s", (kind) => {
    for (const { lengths } of lists.filter((list) => list.kind === kind))
      for (const budget of budgets)
        for (const attention of [0, 1e-4, 0.1]) {
          const packs = pack(lengths, budget, attention);
          const placed = packs.flatMap(({ places }) => places.map(({ sequence }) => sequence)).sort((a, b) => a - b);
          expect(placed).toEqual([...lengths.keys()]);
          for (const p of packs) {
            const taken = new Uint8Array(p.rows * p.length);
            for (const { sequence, row, start } of p.places) {
              if (row >= p.rows || start + lengths[sequence] > p.length) throw new Error("a sequence reaches out of its row");
              for (let i = 0; i < lengths[sequence]; i++) taken[row * p.length + start + i]++;
            }
            expect(Math.max(...taken)).toBe(1);
            expect(tokens(p, lengths)).toBeGreaterThanOrEqual(0.9 * p.rows * p.length);
            expect(new Set(p.places.map(({ row }) => row)).size).toBe(p.rows);
          }
        }
  });

  it("keeps to the budget: its tokens, and with the empty places a ninth more; only a sequence longer than that has a pack of its own", () => {
    for (const { lengths } of lists)
      for (const budget of budgets)
        for (const p of pack(lengths, budget, 1e-3)) {
          if (p.places.length > 1) expect(tokens(p, lengths)).toBeLessThanOrEqual(budget);
          expect(p.rows * p.length).toBeLessThanOrEqual(Math.max(budget / 0.9, lengths[p.places[0].sequence]));
        }
  });

  it("gives the same rectangles for the same lengths in any order", () => {
    for (const { lengths } of lists) {
      const order = random.shuffle([...lengths.keys()]);
      const shape = (packs: readonly Pack[], of: readonly number[]) =>
        packs.map(({ rows, length, places }) => ({ rows, length, places: places.map(({ sequence, row, start }) => [of[sequence], row, start]) }));
      const shuffled = order.map((i) => lengths[i]);
      expect(shape(pack(shuffled, 1000, 1e-3), shuffled)).toEqual(shape(pack(lengths, 1000, 1e-3), lengths));
    }
  });

  it("gives equal lengths a row each, without an empty place", () => {
    expect(pack([7, 7, 7], 100, 0.01)).toEqual([{ rows: 3, length: 7, places: [0, 1, 2].map((sequence) => ({ sequence, row: sequence, start: 0 })) }]);
  });

  it("takes longer rows where attention is cheap than where it is dear", () => {
    const lengths = Array.from({ length: 60 }, (_, i) => 20 + ((7 * i) % 31));
    const [cheap] = pack(lengths, 1e6, 0);
    const [dear] = pack(lengths, 1e6, 1);
    expect(slots([cheap])).toBeLessThanOrEqual(slots([dear]));
    expect(dear.length).toBeLessThan(cheap.length);
  });

  it("of nothing is nothing", () => {
    expect(pack([], 100, 0.1)).toEqual([]);
  });
});

describe("the mask of a pack", () => {
  const picture = ({ data, rows }: { data: Float32Array; rows: number }, length: number): string[][] =>
    Array.from({ length: rows }, (_, r) =>
      Array.from({ length }, (_, i) =>
        Array.from(data.subarray((r * length + i) * length, (r * length + i + 1) * length), (v) => (v === 0 ? "x" : ".")).join(""),
      ),
    );

  it("lets each place see itself and what precedes it in its own sequence; an empty place sees itself", () => {
    const packed: Pack = {
      rows: 2,
      length: 5,
      places: [
        { sequence: 1, row: 0, start: 0 },
        { sequence: 0, row: 0, start: 3 },
        { sequence: 2, row: 1, start: 0 },
      ],
    };
    const mask = packMask(packed, [2, 3, 3]);
    expect(picture(mask, 5)).toEqual([
      ["x....", "xx...", "xxx..", "...x.", "...xx"],
      ["x....", "xx...", "xxx..", "...x.", "....x"],
    ]);
    expect(new Set(mask.data)).toEqual(new Set([0, -1e9]));
  });

  it("is causality alone, once for all rows, where every row holds one sequence", () => {
    const packed: Pack = { rows: 2, length: 3, places: [0, 1].map((sequence) => ({ sequence, row: sequence, start: 0 })) };
    expect(picture(packMask(packed, [3, 2]), 3)).toEqual([["x..", "xx.", "xxx"]]);
  });

  it("hides every other sequence, for random packs", () => {
    for (const { lengths } of lists.filter(({ lengths: l }) => l.length === 17 && Math.max(...l) < 600)) {
      for (const p of pack(lengths, 1500, 1e-3)) {
        const { data, rows } = packMask(p, lengths);
        for (const { sequence, row, start } of p.places)
          for (let i = 0; i < lengths[sequence]; i++) {
            const line = data.subarray(((row % rows) * p.length + start + i) * p.length).subarray(0, p.length);
            expect([line.indexOf(0), line.lastIndexOf(0)]).toEqual([start, start + i]);
            expect(line.reduce((seen, v) => seen + Number(v === 0), 0)).toBe(i + 1);
          }
      }
    }
  });
});
