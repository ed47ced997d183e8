import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { caseDue, faultsOf, loadProof, type Proof, proofNames, type Recorded, record, recordsFolder } from "./record.js";

describe("the records in docs/proofs", () => {
  it("are one for each proof, within the limits that it declares", async () => {
    const names = proofNames();
    const records = existsSync(recordsFolder) ? readdirSync(recordsFolder).filter((file) => file.endsWith(".json")) : [];
    expect(records.sort()).toEqual(names.map((name) => `${name}.json`));
    const faults = await Promise.all(
      names.map(async (name) => faultsOf(name, await loadProof(name), JSON.parse(readFileSync(join(recordsFolder, `${name}.json`), "utf8")))),
    );
    expect(faults.flat()).toEqual([]);
  });
});

describe("the check of a record", () => {
  const proof = { claim: "Water is wet.", limits: { reward: { atLeast: 0.5 }, gap: { atMost: 1e-3 }, equal: { equals: true } } };
  const good: Recorded = {
    proof: "water",
    claim: "Water is wet.",
    metrics: { reward: 0.5, gap: 0.001, equal: true, unlimited: 7 },
    commit: "0123456789012345678901234567890123456789",
    partsOfOtherCommits: {},
    date: "2026-01-02",
    minutes: 0.1,
    machine: { processor: "any" },
    details: {},
  };
  const metrics = (changed: object) => ({ ...good, metrics: { ...good.metrics, ...changed } });

  it("finds nothing wrong with metrics on their limits", () => {
    expect(faultsOf("water", proof, good)).toEqual([]);
  });

  it.each([
    ["a metric below its limit", metrics({ reward: 0.499 }), "reward is 0.499, less than 0.5"],
    ["a metric above its limit", metrics({ gap: 0.002 }), "gap is 0.002, more than 0.001"],
    ["another value", metrics({ equal: false }), "equal is false instead of true"],
    ["NaN, which JSON turns into null", JSON.parse(JSON.stringify(metrics({ reward: Number.NaN }))), "did not record reward"],
    ["a text instead of a number", metrics({ reward: "high" }), "reward is high"],
    ["a missing metric", metrics({ gap: undefined }), "did not record gap"],
    ["another claim", { ...good, claim: "Water is dry." }, "claims something else"],
    ["the record of another proof", { ...good, proof: "fire" }, "the record of fire"],
    ["no commit", { ...good, commit: "" }, "without its commit"],
    ["no machine", { ...good, machine: {} }, "without its machine"],
    ["no time", { ...good, minutes: undefined }, "without its time"],
    ["no record", undefined, "has no record"],
  ])("refuses %s", (_, recorded, said) => {
    const faults = faultsOf("water", proof, recorded);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(said);
  });

  it("refuses a proof without limits, and an empty limit", () => {
    expect(faultsOf("water", { ...proof, limits: {} }, good)).toHaveLength(1);
    expect(faultsOf("water", { ...proof, limits: { reward: {} } }, good)).toHaveLength(1);
  });
});

describe("shortened cases", () => {
  it("are there for each proof", async () => {
    for (const name of proofNames()) expect(Object.keys((await loadProof(name)).short).length, name).toBeGreaterThan(0);
  });

  it("come round one after another, turn by turn", () => {
    const short = Object.fromEntries(["a", "b", "c"].map((name) => [name, { limits: {}, run: async () => ({}) }]));
    expect([7, 8, 9, 10].map((turn) => caseDue({ short }, turn))).toEqual(["b", "c", "a", "b"]);
    expect(Object.keys(short)).toContain(caseDue({ short }));
  });
});

describe("recording", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "touchstone-proofs-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const twoParts = (computed: string[], fails: boolean): Proof => ({
    claim: "Two parts add up.",
    limits: { sum: { equals: 3 } },
    short: {},
    async run(work) {
      const first = await work.part("first", async () => {
        computed.push("first");
        return 1;
      });
      const second = await work.part("second", async () => {
        computed.push("second");
        if (fails) throw new Error("interrupted");
        return 2;
      });
      work.detail("parts", [first, second]);
      return { sum: first + second };
    },
  });
  const options = () => ({ records: join(folder, "records"), work: join(folder, "work"), log: () => {} });

  it("goes on where an interrupted run ended, then forgets its parts", async () => {
    const computed: string[] = [];
    await expect(record("two", twoParts(computed, true), options())).rejects.toThrow("interrupted");
    expect(existsSync(join(folder, "records"))).toBe(false);
    const { path, faults } = await record("two", twoParts(computed, false), options());
    expect(computed).toEqual(["first", "second", "second"]);
    expect(faults).toEqual([]);
    const recorded = JSON.parse(readFileSync(path, "utf8")) as Recorded;
    expect(recorded).toMatchObject({ proof: "two", metrics: { sum: 3 }, details: { parts: [1, 2] } });
    await record("two", twoParts(computed, false), options());
    expect(computed.slice(3)).toEqual(["first", "second"]);
  });

  it("names the parts that another commit computed, and starts anew when asked", async () => {
    const computed: string[] = [];
    await expect(record("two", twoParts(computed, true), options())).rejects.toThrow();
    const [kept] = readdirSync(join(folder, "work", "two"));
    const path = join(folder, "work", "two", kept);
    writeFileSync(path, readFileSync(path, "utf8").replace(/"commit": "[^"]*"/, '"commit": "earlier"'));
    const { path: first } = await record("two", twoParts(computed, false), options());
    expect((JSON.parse(readFileSync(first, "utf8")) as Recorded).partsOfOtherCommits).toEqual({ first: "earlier" });
    await expect(record("two", twoParts(computed, true), options())).rejects.toThrow();
    computed.length = 0;
    await record("two", twoParts(computed, false), { ...options(), fresh: true });
    expect(computed).toEqual(["first", "second"]);
  });

  it("writes a record that misses its limit too, and says so", async () => {
    const { faults } = await record("two", { ...twoParts([], false), limits: { sum: { atLeast: 4 } } }, options());
    expect(faults).toEqual(["two: sum is 3, less than 4"]);
  });
});
