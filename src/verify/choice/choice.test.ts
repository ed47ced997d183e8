import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Verdict } from "../../core/verdict.js";
import { rejectReasons } from "../contract.js";
import { choice } from "./choice.js";

interface CaseGroup {
  readonly about: string;
  readonly reference: Json;
  readonly prompt?: string;
  readonly cases: readonly (readonly [response: string, outcome: string])[];
}
const groups = JSON.parse(readFileSync(new URL("./choice.cases.json", import.meta.url), "utf8")) as CaseGroup[];
const verifier = choice();
const outcome = (verdict: Verdict): string => (verdict.kind === "reject" ? verdict.reason : verdict.kind);
const problemOf = (reference: Json, prompt = "?"): Problem => ({
  key: "p",
  prompt: [{ role: "user", content: prompt }],
  reference: { state: "gold", answer: reference, version: 0 },
});
const verdictOf = (response: string, reference: Json, prompt?: string, truncated = false): Verdict =>
  verifier.verify({ reference, response, problem: problemOf(reference, prompt), truncated }) as Verdict;

describe.each(groups)("choice: $about", ({ reference, prompt, cases }) => {
  it.each(cases)("%j: %s", (response, expected) => {
    expect(verifier.checkReference(reference)).toBe(undefined);
    expect(outcome(verdictOf(response, reference, prompt))).toBe(expected);
  });
});

describe("choice", () => {
  it("says what is wrong with a reference", () => {
    expect(verifier.checkReference("K")).toContain("a letter from A to J is needed");
    expect(verifier.checkReference("")).toContain("a letter from A to J is needed");
    expect(verifier.checkReference(3)).toContain("a letter from A to J is needed");
    expect(verifier.checkReference({ choices: ["a", "b"] })).toBe("it has no answer");
    expect(verifier.checkReference({ answer: "C", choices: ["a", "b"] })).toBe('its answer "C" is none of its choices');
    expect(verifier.checkReference({ answer: "A", choices: ["a"] })).toBe("its choices are no list of two to ten texts");
    expect(verifier.checkReference({ answer: "A", choices: { A: "x", B: "y" } })).toBe(undefined);
  });

  it("gives a verdict with a known reason for any text", () => {
    const random = new Stream(randomKey({ seed: 8, purpose: "fuzz" }));
    const pieces = [
      "A",
      "B",
      "(B)",
      " ",
      "\n",
      "\\boxed{",
      "}",
      "The answer is ",
      "option ",
      "or",
      "and",
      ",",
      ".",
      "<think>",
      "</think>",
      "\\text{",
      "$",
      "not ",
      "\ud83d",
    ];
    const known = new Set<string>(["accept", ...Object.keys(rejectReasons)]);
    const seen = new Set<string>();
    for (let i = 0; i < 3000; i++) {
      const text = Array.from({ length: random.int(14) }, () => random.pick(pieces)).join("");
      seen.add(outcome(verdictOf(text, i % 2 === 0 ? "B" : { answer: "B", choices: ["x", "and", "or"] }, "A) x B) and")));
      const extracted = verifier.extract?.(text);
      expect(extracted === undefined || verifier.same?.(extracted, extracted)).toBe(true);
    }
    expect([...seen].filter((name) => !known.has(name))).toEqual([]);
    expect(seen.size).toBeGreaterThan(4);
  });

  it("groups answers by letter without a reference, and by text where there is none", () => {
    expect(["\\boxed{B}", "The answer is (b).", "The answer is Paris."].map((text) => verifier.extract?.(text))).toEqual(["B", "B", "paris"]);
    expect(verifier.extract?.("nothing that is said here is an answer to it at all")).toBe(undefined);
    expect(verifier.locate?.("so \\boxed{B}.")).toEqual({ start: 3, end: 12 });
  });

  it("does not read an answer that the token budget may have cut", () => {
    expect(outcome(verdictOf("\\boxed{B}", "B", "?", true))).toBe("truncated");
    const reads = choice({ truncated: "read" });
    const verdict = (response: string): Verdict => reads.verify({ reference: "B", response, problem: problemOf("B"), truncated: true }) as Verdict;
    expect(outcome(verdict("The answer is B"))).toBe("truncated");
    expect(outcome(verdict("The answer is B.\nFor"))).toBe("accept");
  });
});
