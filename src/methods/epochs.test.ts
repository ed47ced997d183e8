import { describe, expect, it } from "vitest";
import type { Problem } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import { Cells } from "./cell.js";
import type { Lab, ProblemSource } from "./contract.js";
import { type EpochsState, repeated, shuffledEpochs } from "./epochs.js";

const problem = (key: string): Problem => ({ key, prompt: [], reference: { state: "gold", version: 0 } });
const pool = ["a", "b", "c", "d", "e"].map(problem);
const labOf = (seed: number, more: Partial<ProblemSource> = {}): Lab =>
  ({
    problems: { size: pool.length, get: (i: number) => pool[i], ...more },
    key: (meaning: object) => randomKey({ seed, purpose: "shuffle", ...meaning }),
  }) as unknown as Lab;
const keys = (problems: readonly Problem[]) => problems.map((p) => p.key);

describe("selection in shuffled epochs", () => {
  it("hands out every problem once an epoch, each epoch in its own order", async () => {
    const select = shuffledEpochs(new Cells().cell("s", { cursor: 0 }));
    const first = keys(await select.propose(5, labOf(1)));
    const second = keys(await select.propose(5, labOf(1)));
    expect([...first].sort()).toEqual(["a", "b", "c", "d", "e"]);
    expect([...second].sort()).toEqual(["a", "b", "c", "d", "e"]);
    expect(second).not.toEqual(first);
  });

  it("goes on at any position, across the boundary of an epoch, from the cursor alone", async () => {
    const whole = keys(await shuffledEpochs(new Cells().cell("s", { cursor: 0 })).propose(15, labOf(3)));
    for (let cut = 0; cut <= 15; cut++) {
      const resumed = shuffledEpochs(new Cells().cell("s", { cursor: cut }));
      expect(keys(await resumed.propose(15 - cut, labOf(3)))).toEqual(whole.slice(cut));
    }
  });

  it("depends on the seed", async () => {
    const orders = await Promise.all(
      [1, 2, 3, 4].map(async (seed) => keys(await shuffledEpochs(new Cells().cell("s", { cursor: 0 })).propose(5, labOf(seed))).join("")),
    );
    expect(new Set(orders).size).toBeGreaterThan(1);
  });
});

describe("a mixture", () => {
  const mixture = [
    { name: "small", weight: 3, indices: [0, 1] },
    { name: "large", weight: 1, indices: [2, 3, 4] },
  ];
  const lab = (seed: number) => labOf(seed, { mixture });
  const start: EpochsState = { cursor: 0 };
  const drawn = async (n: number, seed = 1) => keys(await shuffledEpochs(new Cells().cell("s", start)).propose(n, lab(seed)));
  const isSmall = (key: string): boolean => key === "a" || key === "b";

  it("gives each source its share of the places", async () => {
    const n = 4000;
    const small = (await drawn(n)).filter(isSmall).length;
    // Binomial with p = 3/4: four standard deviations.
    expect(Math.abs(small - 0.75 * n)).toBeLessThan(4 * Math.sqrt(n * 0.75 * 0.25));
  });

  it("hands out every problem of a source once an epoch of its own", async () => {
    const order = await drawn(400);
    const small = order.filter(isSmall);
    for (let i = 0; i + 1 < small.length; i += 2) expect(small.slice(i, i + 2).sort()).toEqual(["a", "b"]);
    const large = order.filter((key) => !isSmall(key));
    for (let i = 0; i + 2 < large.length; i += 3) expect(large.slice(i, i + 3).sort()).toEqual(["c", "d", "e"]);
  });

  it("draws the source of a place from seed and place alone, however many are asked for at once", async () => {
    const whole = await drawn(60);
    for (const sizes of [[60], [1, 59], Array(60).fill(1), [7, 13, 40]]) {
      const select = shuffledEpochs(new Cells().cell("s", start));
      const order: string[] = [];
      for (const n of sizes) order.push(...keys(await select.propose(n as number, lab(1))));
      expect(order).toEqual(whole);
    }
    expect(await drawn(60, 2)).not.toEqual(whole);
  });

  it("goes on at any place from what a checkpoint keeps", async () => {
    const whole = await drawn(30);
    for (let cut = 0; cut <= 30; cut++) {
      const cells = new Cells();
      await shuffledEpochs(cells.cell("s", start)).propose(cut, lab(1));
      cells.commit();
      const restored = new Cells();
      restored.restore(JSON.parse(JSON.stringify(cells.toJson())));
      expect(keys(await shuffledEpochs(restored.cell("s", start)).propose(30 - cut, lab(1)))).toEqual(whole.slice(cut));
    }
  });
});

describe("weighted problems", () => {
  it("come up as often as their weights say, rounded up or down, and exactly so on average", () => {
    const weights = [1, 2, 0.5, 4, 2.5];
    const sums = [0, 0, 0, 0, 0];
    const offsets = 1000;
    for (let i = 0; i < offsets; i++) {
      const chosen = repeated([0, 1, 2, 3, 4], weights, (i + 0.5) / offsets);
      expect(chosen.length).toBe(5);
      for (const [index, weight] of weights.entries()) {
        const count = chosen.filter((each) => each === index).length;
        sums[index] = (sums[index] as number) + count;
        // 5 places and weights that sum to 10.
        expect(count === Math.floor(weight / 2) || count === Math.ceil(weight / 2)).toBe(true);
      }
    }
    for (const [index, weight] of weights.entries()) expect((sums[index] as number) / offsets).toBeCloseTo(weight / 2, 2);
  });

  it("are a plain epoch where all weights are equal", () => {
    expect(repeated([4, 2, 9], [0, 0, 7, 0, 7, 0, 0, 0, 0, 7], 0.999)).toEqual([4, 2, 9]);
    expect(repeated([0, 1, 2], [0.1, 0.1, 0.1], 0)).toEqual([0, 1, 2]);
  });
});
