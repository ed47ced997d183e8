import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Verdict } from "../../core/verdict.js";
import { rejectReasons, type Verifier, verifierId } from "../contract.js";
import { type ExactOptions, exact } from "./exact.js";

interface CaseGroup {
  readonly about: string;
  readonly options: Partial<ExactOptions>;
  readonly cases: readonly (readonly [response: string, reference: string | number, outcome: string])[];
}
const groups = JSON.parse(readFileSync(new URL("./exact.cases.json", import.meta.url), "utf8")) as CaseGroup[];

const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "blue", version: 0 } };
const verdictOf = (verifier: Verifier, response: string, reference: string | number, truncated = false): Verdict =>
  verifier.verify({ reference, response, problem, truncated }) as Verdict;
const outcome = (verdict: Verdict): string => (verdict.kind === "reject" ? verdict.reason : verdict.kind);

describe.each(groups)("exact: $about", ({ options, cases }) => {
  const verifier = exact(options);
  it.each(cases)("%j against %j: %s", (response, reference, expected) => {
    expect(verifier.checkReference(reference)).toBe(undefined);
    expect(outcome(verdictOf(verifier, response, reference))).toBe(expected);
  });
});

describe("exact", () => {
  it("gives a verdict with a known reason for any text", () => {
    const random = new Stream(randomKey({ seed: 6, purpose: "fuzz" }));
    const pieces = ["blue", "red", " ", "\n", "{", "}", "\\", "\\boxed{", "Answer:", "<think>", "</think>", "<a>", "</a>", "wrong", "\u0000", "\ud83d"];
    const verifiers = groups.map(({ options }) => exact(options));
    const known = new Set<string>(["accept", ...Object.keys(rejectReasons)]);
    const seen = new Set<string>();
    for (let i = 0; i < 10_000; i++) {
      const text = Array.from({ length: random.int(16) }, () => (random.int(5) === 0 ? String.fromCharCode(random.int(65536)) : random.pick(pieces))).join("");
      const verifier = verifiers[i % verifiers.length] as Verifier;
      seen.add(outcome(verdictOf(verifier, text, "blue")));
      const extracted = verifier.extract?.(text);
      expect(extracted === undefined || verifier.same?.(extracted, extracted)).toBe(true);
    }
    expect([...seen].filter((name) => !known.has(name))).toEqual([]);
    expect(seen.size).toBeGreaterThan(4);
  });

  it("does not read an answer that the token budget may have cut", () => {
    expect(outcome(verdictOf(exact(), "blue", "blue", true))).toBe("truncated");
    const reads = exact({ truncated: "read", from: { after: "Answer:" } });
    expect(outcome(verdictOf(reads, "Answer: blue", "blue", true))).toBe("truncated");
    expect(outcome(verdictOf(reads, "Answer: blue\nSo", "blue", true))).toBe("accept");
  });

  it("says what is wrong with a reference", () => {
    expect(exact().checkReference(" \n")).toBe("it is empty");
    expect(exact().checkReference("a\nb")).toBe(undefined);
    expect(exact({ from: "last-line" }).checkReference("a\nb")).toBe("it has several lines, and the answer is read from one");
    for (const bad of [null, true, ["a"], {}]) expect(exact().checkReference(bad)).toContain("a text is needed");
  });

  it("is known by its options, and refuses others", () => {
    expect(verifierId(exact())).toBe(verifierId(exact({ from: "whole" })));
    expect(verifierId(exact({ case: "ignore" }))).not.toBe(verifierId(exact()));
    expect(() => exact({ from: "lastline" } as object)).toThrow('exact(), option from: got the text "lastline"; did you mean "last-line"?');
    expect(() => exact({ from: { after: "" } })).toThrow("exact(), option from.after");
  });
});
