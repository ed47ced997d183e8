import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../../test/paths.js";
import { rejectReasons } from "../contract.js";
import { extractFaults } from "./extract-types.js";
import { comparedKinds, extractionKinds, outcomeOf, referenceStates } from "./verdicts.js";

const all = referenceStates.flatMap((reference) =>
  extractionKinds.flatMap((extraction) => comparedKinds.map((compared) => ({ reference, extraction, compared }))),
);

describe("the table of verdicts", () => {
  it("has all states of both stages", () => {
    expect(all.length).toBe(2 * 7 * 5);
    expect(extractionKinds).toEqual(["found", "cut-off", ...Object.keys(extractFaults)]);
  });

  it("accepts one pair alone: an answer that was found and is equal to a reference that was read", () => {
    const accepted = all.filter(({ reference, extraction, compared }) => outcomeOf(reference, extraction, compared).kind === "accept");
    expect(accepted).toEqual([{ reference: "read", extraction: "found", compared: "equal" }]);
  });

  it("leaves unscored what the reference causes, and nothing else", () => {
    for (const { reference, extraction, compared } of all)
      expect(outcomeOf(reference, extraction, compared).kind === "unscored").toBe(reference === "unreadable");
  });

  it("rejects all the rest with a reason of the closed set: unsupported as unreadable, out of steps as over budget", () => {
    for (const { reference, extraction, compared } of all) {
      const outcome = outcomeOf(reference, extraction, compared);
      if (outcome.kind === "reject") expect(Object.keys(rejectReasons)).toContain(outcome.reason);
    }
    const found = Object.fromEntries(comparedKinds.map((compared) => [compared, outcomeOf("read", "found", compared)]));
    expect(found).toEqual({
      equal: { kind: "accept" },
      different: { kind: "reject", reason: "wrong" },
      unsupported: { kind: "reject", reason: "unreadable" },
      "out-of-steps": { kind: "reject", reason: "over-budget" },
      none: { kind: "reject", reason: "unreadable" },
    });
  });

  it("is what the documentation shows", () => {
    const page = readFileSync(join(repository, "docs", "verifiers.md"), "utf8");
    for (const extraction of extractionKinds) {
      const cells = comparedKinds.map((compared) => {
        const outcome = outcomeOf("read", extraction, compared);
        return outcome.kind === "reject" ? outcome.reason : outcome.kind;
      });
      expect(page).toContain(`| ${extraction} | ${cells.join(" | ")} |`);
    }
  });
});
