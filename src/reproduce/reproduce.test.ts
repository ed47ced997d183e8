/** Whole reproductions within this process; arms are functions. */
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { place, written } from "../../test/support/toy-demonstration.js";
import { findDemonstration } from "./find.js";
import { pictureOf } from "./plot.js";
import { reproduce, sabotaged } from "./reproduce.js";

const everyPart = [0, 1, 2].flatMap((seed) => [`better ${seed}`, `plain ${seed}`]).sort();

describe("a reproduction", () => {
  it("runs all arms with all seeds once, and judges the claims by pairs", async () => {
    const { file, out, ran } = place();
    const found = await findDemonstration(file);
    const result = await reproduce(found, { out, atOnce: 0 });
    expect(ran()).toEqual(everyPart);
    expect(result).toMatchObject({ id: "toy", outcome: "shown", seeds: [0, 1, 2], failed: [], partsOfOtherCommits: {} });
    // The noise is the seed's, and so falls out of each pair.
    for (const value of result?.claims[0]?.values ?? []) expect(value).toBeCloseTo(0.1, 12);
    expect(result?.arms.map(({ arm, about }) => [arm, about])).toEqual([
      ["plain", undefined],
      ["better", "a tenth more"],
    ]);
    expect(result?.arms[0]?.metrics.other).toMatchObject({ mean: 1, seeds: [1, null, 1] });
    expect(pictureOf(result as NonNullable<typeof result>).marks).toHaveLength(2);
    // All parts are there, so nothing runs again; further seeds are added.
    await reproduce(found, { out, atOnce: 0 });
    expect(ran()).toEqual(everyPart);
    await reproduce(found, { out, atOnce: 0, seeds: 4 });
    expect(ran()).toHaveLength(8);
  });

  it("that is interrupted keeps what is done, and ends with the same numbers", async () => {
    const whole = place();
    const first = await reproduce(await findDemonstration(whole.file), { out: whole.out, atOnce: 0 });
    const cut = place();
    const found = await findDemonstration(cut.file);
    const stop = new AbortController();
    const interrupted = await reproduce(found, { out: cut.out, atOnce: 0, signal: stop.signal, onProgress: ({ done }) => done === 2 && stop.abort() });
    expect(interrupted).toBeUndefined();
    expect(cut.ran().length).toBeLessThan(everyPart.length);
    const kept: number[] = [];
    const again = await reproduce(found, { out: cut.out, atOnce: 0, onProgress: ({ done, part }) => part === undefined && kept.push(done) });
    expect(kept).toEqual([2]);
    expect([again?.arms, again?.claims]).toEqual([first?.arms, first?.claims]);
  });

  it("that is quick has numbers and no verdict", async () => {
    const { file, out, ran } = place();
    const result = await reproduce(await findDemonstration(file), { out, atOnce: 0, quick: true });
    expect(result).toMatchObject({ outcome: null, seeds: [0], claims: [{ outcome: null, interval: null }] });
    expect(ran()).toHaveLength(2);
  });

  it("runs what must be made first before the arms, and lays it over their options", async () => {
    const { file, out } = place(written(`prepare: { per: "demonstration", run: async () => ({ offset: 7 }) },`));
    const result = await reproduce(await findDemonstration(file), { out, atOnce: 0, seeds: 1 });
    expect(result?.arms[0]?.metrics.score?.mean).toBeGreaterThan(7);
  });

  it("refuses a folder of another version of the demonstration, of the method beside it, or of quick parts", async () => {
    const { file, out } = place();
    const found = await findDemonstration(file);
    await reproduce(found, { out, atOnce: 0, seeds: 1 });
    await expect(reproduce(found, { out, atOnce: 0, quick: true })).rejects.toThrow("its parts are full ones");
    appendFileSync(join(file, "..", "toy.ts"), "export const changed = 1;");
    await expect(reproduce(found, { out, atOnce: 0, seeds: 1 })).rejects.toThrow("its parts are of another version of the demonstration");
    rmSync(out, { recursive: true });
    await expect(reproduce(found, { out, atOnce: 0, seeds: 1 })).resolves.toBeDefined();
    appendFileSync(file, "// another claim");
    await expect(reproduce(found, { out, atOnce: 0, seeds: 1 })).rejects.toThrow("its parts are of another version of the demonstration");
  });

  it("that fails says which arm and seed, where and why", async () => {
    const { file, out } = place(written().replace("const noise", 'if (seed === 1 && arm === "better") throw new Error("no such luck"); const noise'));
    await expect(reproduce(await findDemonstration(file), { out, atOnce: 0 })).rejects.toThrow("arm better, seed 1: it throws (no such luck)");
  });
});

describe("a sabotaged method", () => {
  it("is run in its arm's place on two sets of seeds that have none in common, and must not show the claims on both", async () => {
    const { file, out, ran } = place();
    const result = await sabotaged(await findDemonstration(file), { out, atOnce: 0, seeds: 2 });
    expect(result).toMatchObject({
      caught: true,
      sets: [
        { seeds: [0, 1], outcome: "not shown" },
        { seeds: [2, 3], outcome: "not shown" },
      ],
    });
    expect(ran()).toEqual([0, 1, 2, 3].flatMap((seed) => [`plain ${seed}`, `sabotage ${seed}`]).sort());
  });

  it("for which the claims are shown on both sets is a fault of the demonstration", async () => {
    const { file, out } = place(written().replace('stands: "better", arm: arm(0)', 'stands: "better", arm: arm(0.2)'));
    expect((await sabotaged(await findDemonstration(file), { out, atOnce: 0, seeds: 2 }))?.caught).toBe(false);
  });
});

describe("findDemonstration", () => {
  it("refuses what is none, with what there is", async () => {
    await expect(findDemonstration("P99")).rejects.toThrow('there is no demonstration of "P99"');
    const { file } = place("export const one = 1;\n");
    await expect(findDemonstration(file)).rejects.toThrow("its default export is no demonstration");
    const lacking = place("export default { paper: 'P99', arms: {} };\n");
    await expect(findDemonstration(lacking.file)).rejects.toThrow("it lacks method, testbed, metrics, claims, quick, minutes");
  });
});
