import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { extreme, hashes, hashOf, logitsOf, names, uniformsFor } from "./test-distributions.js";
import { Drawer, differences } from "./test-draws.js";

describe("20,000 draws by a decoding step's own graph", () => {
  let drawer: Drawer;
  beforeAll(async () => {
    drawer = await Drawer.create();
  });
  afterAll(() => drawer.close());

  const drawAll = async (name: string) => {
    const logits = logitsOf(name);
    expect(hashOf(logits)).toBe(hashes[name]);
    const masses = await drawer.masses(logits);
    const uniforms = uniformsFor(masses.e, 20_000, 1000);
    const { tokens, z } = await drawer.draw(logits, uniforms, 100);
    // The same bits of z: the exponentials compared with are those that were drawn from.
    expect(tokens.filter((token, i) => masses.z[token] !== z[i])).toEqual([]);
    expect(tokens.filter((token) => !(masses.e[token] > 0))).toEqual([]);
    return differences(masses, uniforms, tokens);
  };

  it.each(names)("equal the inverse transform in float64, each and every one: %s", async (name) => {
    expect(await drawAll(name)).toEqual([]);
  });

  it("differ by a neighbour in single cases, and only within the rounding of the sum, where masses span forty orders of magnitude", async () => {
    // 49,152 additions in double, each off by up to 1.1e-16 of the sum so far.
    const different = await drawAll(extreme);
    expect(different.length).toBeLessThan(5);
    for (const { distance } of different) expect(distance).toBeLessThan(1e-14);
  });
});
