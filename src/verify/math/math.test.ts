import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";
import type { Verdict } from "../../core/verdict.js";
import { judge, verifierId } from "../contract.js";
import { math } from "./math.js";

interface CaseGroup {
  readonly about: string;
  readonly cases: readonly (readonly [reference: string, response: string, outcome: string])[];
}
const groups = JSON.parse(readFileSync(new URL("./math.cases.json", import.meta.url), "utf8")) as CaseGroup[];
const verifier = math();
const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "5", version: 0 } };
const verdictOf = (reference: Json, response: string, truncated = false, of = verifier): Verdict =>
  of.verify({ reference, response, problem, truncated }) as Verdict;
const outcome = (verdict: Verdict): string => (verdict.kind === "reject" ? verdict.reason : verdict.kind);

describe.each(groups)("math: $about", ({ cases }) => {
  it.each(cases)("%j against %j: %s", (reference, response, expected) => {
    expect(verifier.checkReference(reference)).toBe(undefined);
    expect(outcome(verdictOf(reference, response))).toBe(expected);
  });
});

describe("math", () => {
  it("tells what was found where, how both sides were read, and which rule decided", () => {
    const { kind, evidence } = verdictOf("\\frac12", "so it is \\boxed{0.5}.");
    expect(kind).toBe("accept");
    expect(evidence).toMatchObject({ text: "0.5", rule: "box", span: [9, 20], policies: expect.stringMatching(/^[0-9a-f]{8}$/) });
    expect(Object.keys(evidence ?? {})).toEqual(["expected", "text", "rule", "span", "read", "decided", "why", "policies"]);
    expect(evidence?.expected).toBe(evidence?.read === undefined ? "" : verdictOf("0.5", "\\boxed{\\frac12}").evidence?.read);
  });

  it("refuses references that cannot be read, and never pays for them", async () => {
    for (const bad of ["", " ", "\\frac{", "x -", "(3-9) (5-15"]) expect(verifier.checkReference(bad)).not.toBe(undefined);
    for (const bad of [null, true, ["5"], { answer: 5 }]) expect(verifier.checkReference(bad)).toContain("a text is needed");
    expect(verifier.checkReference(5)).toBe(undefined);
    expect(verifier.checkReference(0.1)).toBe(undefined);
    expect(verifier.checkReference(2 ** 53)).toContain("is not exact; write it as text");
    const broken: Problem = { ...problem, reference: { state: "gold", answer: "\\frac{", version: 0 } };
    for (const response of ["\\frac{", "\\boxed{\\frac{}", "882", ""]) {
      expect(await judge(verifier, broken, response)).toMatchObject({ kind: "unscored", reason: "bad-reference" });
      expect(verdictOf("\\frac{", response)).toMatchObject({ kind: "unscored", reason: "bad-reference" });
    }
  });

  it("reads the answer of a reference that is a whole solution", () => {
    const solution = "(6 points) Part of a tunnel is built. Solution: $185 \\div \\frac{37}{36} = 180$ (days). Therefore, the answer is: 180.";
    expect(outcome(verdictOf(solution, "\\boxed{180}"))).toBe("accept");
    expect(outcome(verdictOf(solution, "\\boxed{185}"))).toBe("wrong");
    const marked = math({ reference_after: "####" });
    expect(outcome(verdictOf("48+24 = 72\n#### 72", "\\boxed{72}", false, marked))).toBe("accept");
    expect(marked.checkReference("72")).toBe('"####" does not occur in it');
  });

  it("is known by its policies, and refuses others", () => {
    const strict = math({ policies: { "percent-number": "strict" } });
    expect(verifierId(strict)).not.toBe(verifierId(verifier));
    expect(verifierId(math({ policies: {} }))).toBe(verifierId(verifier));
    expect(verdictOf("5", "\\boxed{5}", false, strict).evidence?.policies).not.toBe(verdictOf("5", "\\boxed{5}").evidence?.policies);
    expect(() => math({ policies: { "percent-numbr": "strict" } } as object)).toThrow(
      'math(), option policies.percent-numbr: there is no such option; did you mean "percent-number"?',
    );
    expect(() => math({ policies: { "percent-number": "strickt" } } as object)).toThrow("math(), option policies.percent-number");
  });

  it("reads by policy what else would not count", () => {
    const lax = math({ policies: { "require-committed-answer": "no", "unfinished-thinking": "read", "unclosed-box": "read" } });
    for (const response of ["We go on and on until all of it makes 5 in the end of the day", "<think>it is \\boxed{5}", "so \\boxed{5"]) {
      expect(outcome(verdictOf("5", response, false, lax))).toBe("accept");
      expect(outcome(verdictOf("5", response))).not.toBe("accept");
    }
  });

  it("reads a declared place alone, and a bare answer whole", () => {
    const tagged = math({ from: { between: ["<a>", "</a>"] } });
    expect(outcome(verdictOf("5", "\\boxed{6} <a>5</a>", false, tagged))).toBe("accept");
    expect(outcome(verdictOf("5", "\\boxed{5}", false, tagged))).toBe("no-answer");
    expect(outcome(verdictOf("5", "<a>5", false, tagged))).toBe("format");
    const bare = math({ kind: "answer" });
    expect(outcome(verdictOf("10", "4 10/3", false, bare))).not.toBe("accept");
    expect(outcome(verdictOf("5", "$5$.", false, bare))).toBe("accept");
  });

  it("does not read an answer that the token budget may have cut", () => {
    expect(outcome(verdictOf("5", "\\boxed{5} and", true))).toBe("truncated");
    const reads = math({ truncated: "read" });
    expect(outcome(verdictOf("5", "The answer is 5", true, reads))).toBe("truncated");
    expect(outcome(verdictOf("5", "The answer is 5.\nSo", true, reads))).toBe("accept");
  });

  it("groups answers without a reference", () => {
    const [a, b, c] = ["\\boxed{\\frac{1}{2}}", "The answer is 0.5.", "\\boxed{0.25}"].map((text) => verifier.extract?.(text)) as [string, string, string];
    expect([verifier.same?.(a, b), verifier.same?.(b, a), verifier.same?.(a, c), verifier.same?.(a, a)]).toEqual([true, true, false, true]);
    expect(verifier.extract?.("nothing that is said here is an answer to it at all")).toBe(undefined);
    expect(verifier.locate?.("so \\boxed{5}.")).toEqual({ start: 3, end: 12 });
    expect(verifier.locate?.("<think>\\boxed{5}")).toBe(undefined);
  });

  it("rejects as over budget what would take too many steps", () => {
    const short = math({ steps: 1000 });
    const long = Array.from({ length: 300 }, (_, i) => `(x+${i})`).join("");
    expect(outcome(verdictOf("x^2", `\\boxed{${long}}`, false, short))).toBe("over-budget");
  });
});
