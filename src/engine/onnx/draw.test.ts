import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drawOnlyGraph } from "./draw.js";
import { padded } from "./head.js";
import { extreme, hashes, hashOf, inclusiveSums, inverseTransform, logitsOf, names, uniformsFor } from "./test-distributions.js";
import { Drawer, differences } from "./test-draws.js";
import { runInRuntime } from "./test-reference.js";
import { tensor } from "./test-tensor.js";

/** Tokens drawn from masses over a small vocabulary, one row a uniform. */
async function drawn(masses: readonly number[], uniforms: readonly number[]): Promise<number[]> {
  const width = padded(masses.length);
  const e = uniforms.flatMap(() => [...masses, ...Array<number>(width - masses.length).fill(0)]);
  const feeds = { e: tensor([uniforms.length, width], e), u: tensor([uniforms.length, 1], uniforms) };
  return [...(await runInRuntime(drawOnlyGraph(masses.length), feeds)).token.data];
}

const largest = 1 - 2 ** -53;

describe("the draw", () => {
  it("gives each token the share of its mass, limits belonging to the token above", async () => {
    expect(await drawn([1, 2, 0, 1], [0, 0.2, 0.25, 0.74, 0.75, largest])).toEqual([0, 0, 1, 1, 3, 3]);
  });

  it("finds tokens beyond the first block, and limits between blocks", async () => {
    const masses = Array.from({ length: 700 }, (_, v) => (v === 255 || v === 256 || v === 699 ? 1 : 0));
    const third = 1 / 3;
    expect(await drawn(masses, [0, 0.33, third + 1e-15, 0.66, 0.67, largest])).toEqual([255, 255, 256, 256, 699, 699]);
  });

  it("never gives a token of mass 0, at either end or between, for the smallest and the largest uniform", async () => {
    const masses = Array.from({ length: 768 }, (_, v) => (v === 300 || v === 310 ? Math.fround(0.1) : 0));
    expect(await drawn(masses, [0, 2 ** -53, 0.5 - 1e-12, 0.5 + 1e-12, largest])).toEqual([300, 300, 300, 310, 310]);
  });

  it("never gives a token of mass 0 where a block's sum and its running sum round differently", async () => {
    // 2⁻⁵⁴ is lost when it is added to 1, but not where such masses are added to each other first.
    const masses = Array.from({ length: 256 }, (_, v) => (v === 0 ? 1 : v <= 200 ? 2 ** -54 : 0));
    for (const token of await drawn(masses, [largest, 1 - 2 ** -52])) expect(masses[token]).toBeGreaterThan(0);
  });

  it("gives the last token of a long flat distribution no more than its share", async () => {
    // A single float32 sum over as many tokens would miss mass, all of which would fall to the last one.
    const n = 49_152;
    const share = 1 / n;
    const uniforms = [1 - 3.5 * share, 1 - 2.5 * share, 1 - 1.5 * share, 1 - 0.5 * share];
    expect(await drawn(Array<number>(n).fill(Math.fround(0.1)), uniforms)).toEqual([n - 4, n - 3, n - 2, n - 1]);
  });
});

describe("the inverse transform that draws are held to", () => {
  it("is the first token whose inclusive sum exceeds the target", () => {
    const sums = inclusiveSums(Float32Array.of(0, 1, 0, 2, 1, 0));
    expect([0, 0.2, 0.25, 0.7, 0.75, largest].map((u) => inverseTransform(sums, u))).toEqual([1, 1, 3, 3, 4, 4]);
  });

  it("is tried with as many uniforms as asked, all in [0, 1), ends and limits among them", () => {
    const uniforms = uniformsFor(Float32Array.of(1, 1, 2), 100, 20);
    expect(uniforms.length).toBe(100);
    expect(uniforms.every((u) => u >= 0 && u < 1)).toBe(true);
    for (const u of [0, largest, 0.25 - 1e-12, 0.25 + 1e-12, 0.5 - 1e-12, 0.5 + 1e-12]) expect(uniforms).toContain(u);
  });
});

describe("the draw from twelve stored distributions over 49,152 tokens", () => {
  let drawer: Drawer;
  beforeAll(async () => {
    drawer = await Drawer.create();
  });
  afterAll(() => drawer.close());

  it.each(names)("equals the inverse transform in float64 over the engine's own exponentials: %s", async (name) => {
    const logits = logitsOf(name);
    expect(hashOf(logits)).toBe(hashes[name]);
    const masses = await drawer.masses(logits);
    const uniforms = uniformsFor(masses.e, 600, 100);
    const { tokens, totals } = await drawer.drawOnly(masses, uniforms, 100);
    expect(differences(masses, uniforms, tokens)).toEqual([]);
    expect(tokens.filter((token) => masses.e[token] === 0)).toEqual([]);
    expect(Math.abs(totals[0] / (inclusiveSums(masses.e).at(-1) as number) - 1)).toBeLessThan(1e-14);
  });

  it("are twelve, next to an extreme one", () => {
    expect(names).toHaveLength(12);
    expect(Object.keys(hashes).sort()).toEqual([...names, extreme].sort());
  });
});
