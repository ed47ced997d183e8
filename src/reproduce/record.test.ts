import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { methodFolders, methodOf } from "../methods/catalogue.js";
import { demonstrations, loadDemonstration } from "./find.js";
import { statementOf } from "./judge.js";
import { reproductionsPage } from "./page.js";
import { recordOf, recordSabotage, records, writeRecord } from "./record.js";
import type { Reproduction } from "./reproduce.js";

const reproduction: Reproduction = {
  id: "P99",
  paper: "P99 NONE, our choice",
  method: "none",
  testbed: "Nothing.",
  seeds: [0, 1],
  outcome: "not shown",
  claims: [
    { claim: "more", statement: "m: a - b > 0", mean: 0.5, interval: { low: -0.1, high: 1.1, n: 2, by: "t" }, values: [0.4, 0.6], outcome: "not shown" },
  ],
  arms: [{ arm: "a", metrics: { m: { mean: 0.5, interval: null, seeds: [0.4, 0.6] } } }],
  failed: [],
  differences: ["It is small."],
  commit: "a".repeat(40),
  optionsCommit: "b".repeat(40),
  partsOfOtherCommits: {},
  date: "2026-12-02",
  minutes: 1.5,
  machine: { processor: "one", cores: 2, node: "20.19.0" },
};
const folder = (): string => mkdtempSync(join(tmpdir(), "touchstone-records-"));

describe("records", () => {
  it("keep what came out of earlier runs and the remark, and count a run written twice once", () => {
    const here = folder();
    writeRecord(reproduction, "Too few steps.", here);
    writeRecord(reproduction, undefined, here);
    expect(recordOf("P99", here)).toMatchObject({ earlier: [], remark: "Too few steps." });
    writeRecord({ ...reproduction, outcome: "shown", commit: "c".repeat(40) }, undefined, here);
    const { earlier, remark, outcome } = recordOf("P99", here) as NonNullable<ReturnType<typeof recordOf>>;
    expect([outcome, remark]).toEqual(["shown", "Too few steps."]);
    expect(earlier).toEqual([{ commit: "a".repeat(40), optionsCommit: "b".repeat(40), date: "2026-12-02", seeds: 2, outcome: "not shown" }]);
    expect(records(here)).toHaveLength(1);
  });

  it("say what the sabotaged method showed", () => {
    const here = folder();
    expect(recordSabotage("P99", { about: "no clip", outcomes: ["shown", "not shown"] }, here)).toBeUndefined();
    writeRecord(reproduction, undefined, here);
    recordSabotage("P99", { about: "no clip", outcomes: ["shown", "not shown"] }, here);
    expect(reproductionsPage(records(here), [])).toContain("the sabotaged method (no clip) on two sets of seeds: shown, not shown");
  });
});

describe("docs/reproductions.md", () => {
  it("is what the records say; `npm run docs` writes it anew", async () => {
    expect(readFileSync(join(repository, "docs", "reproductions.md"), "utf8")).toBe(reproductionsPage(records(), await demonstrations()));
  });

  it("shows numbers, claims and where they come from, and how each is run", async () => {
    const page = reproductionsPage([{ ...reproduction, earlier: [], remark: "Too few steps." }], await demonstrations());
    for (const text of [
      "**not shown**",
      "Too few steps.",
      "+0.5 | -0.1 to +1.1 | 2",
      "commit aaaaaaaaaaaa, claims and options as of bbbbbbbbbbbb",
      "It is small.",
      "touchstone reproduce P06 --record && touchstone reproduce P06 --sabotage --record",
    ])
      expect(page).toContain(text);
  });
});

it("every demonstration is of the method beside it, by name and paper", async () => {
  const known = await demonstrations();
  expect(new Set(known.map(({ id }) => id)).size).toBe(known.length);
  for (const { module, demonstration, name } of methodFolders()) {
    if (demonstration === undefined) continue;
    const { demonstration: of } = await loadDemonstration(demonstration);
    if (module === undefined) continue;
    const method = await methodOf({ name, module });
    expect([of.method, of.paper]).toEqual([name, method.paper]);
  }
});

it("no record has a sabotaged method that shows the claims on both sets of seeds, which no demonstration may", () => {
  for (const { id, sabotage } of records()) expect(sabotage?.outcomes.every((outcome) => outcome === "shown") ?? false, id).toBe(false);
});

it("every record is of a demonstration that is there, with the claims that it has now, on a commit without changes", async () => {
  const known = await demonstrations();
  for (const { id, claims, commit } of records()) {
    const file = known.find((each) => each.id === id)?.file as string;
    const { demonstration } = await loadDemonstration(file);
    expect(claims.map(({ claim, statement }) => [claim, statement])).toEqual(
      Object.entries(demonstration.claims).map(([name, claim]) => [name, statementOf(claim)]),
    );
    expect(commit).toMatch(/^[0-9a-f]{40}$/);
  }
});
