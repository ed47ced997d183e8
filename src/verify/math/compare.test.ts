import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { compare } from "./compare.js";
import { resolvePolicies } from "./policies.js";
import { read } from "./read.js";
import { Budget, type Comparison } from "./types.js";

interface Group {
  readonly about: string;
  readonly policies?: Parameters<typeof resolvePolicies>[0];
  readonly equal: readonly (readonly [string, string])[];
  readonly different: readonly (readonly [string, string])[];
  /** The policy treats the reference differently. */
  readonly sided?: boolean;
}
const groups = JSON.parse(readFileSync(new URL("./compare.cases.json", import.meta.url), "utf8")) as Group[];

function compared(reference: string, answer: string, chosen: Parameters<typeof resolvePolicies>[0] = {}, steps?: number): Comparison {
  const policies = resolvePolicies(chosen);
  const [a, b] = [reference, answer].map((text) => read(text, policies, new Budget(steps)));
  return compare(a as ReturnType<typeof read>, b as ReturnType<typeof read>, policies, new Budget(steps));
}

describe.each(groups)("$about", ({ policies, equal, different, sided }) => {
  it("are cases enough on both sides", () => {
    expect(Math.min(equal.length, different.length)).toBeGreaterThanOrEqual(5);
  });
  it.each(equal)("%j is %j", (a, b) => {
    expect(compared(a, b, policies)).toMatchObject({ kind: "equal" });
    if (sided !== true) expect(compared(b, a, policies)).toMatchObject({ kind: "equal" });
  });
  it.each(different)("%j is not %j", (a, b) => {
    expect(compared(a, b, policies)).not.toMatchObject({ kind: "equal" });
    if (sided !== true) expect(compared(b, a, policies)).not.toMatchObject({ kind: "equal" });
  });
});

describe("compare", () => {
  it("tells the rule and the reason", () => {
    expect(compared("1/2", "0.5").rule).toBe("exact value");
    expect(compared("x+1", "$x+1$")).toEqual({ kind: "equal", rule: "identity", reason: "both are spelled alike" });
    expect(compared("(x+1)^2", "x^2+2x+1").reason).toMatch(/3 prime fields; if they differed, the chance is below 2\^-\d\d$/);
    expect(compared("\\sin 2x", "2\\sin x\\cos x").reason).toBe("they agree at 6 random points, to 19 digits or more");
    expect(compared("\\sin 2x", "2\\sin x").reason).toMatch(/^they differ at x = -?\d/);
  });

  it("is the same every time", () => {
    for (const [a, b] of [
      ["\\sin 2x", "2\\sin x"],
      ["(x+1)^2", "x^2+1"],
    ] as const)
      expect(compared(a, b)).toEqual(compared(a, b));
  });

  it.each(["9^{9^{9^{9}}}", "(10^6)!", "\\sum_{k=1}^{10^9} k", "2^{10^{12}}", "\\prod_{k=1}^{10^7} (x+k)", "((((3!)!)!)!)!", "\\sum_{k=1}^{300} (x+k)^{k}"])(
    "%s ends within its steps",
    (text) => {
      for (const other of ["140", "x", "9^{9^{9}}", "\\pi"]) expect(["different", "unsupported", "out-of-steps"]).toContain(compared(other, text).kind);
    },
  );

  it("says out of steps where the budget is too small", () => {
    expect(compared("\\sin 2x", "2\\sin x\\cos x", {}, 500)).toMatchObject({ kind: "out-of-steps" });
  });
});
