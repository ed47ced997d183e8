/** Own cases by kinds, whose verdicts were written down first: pairs of answers, judged as answers and as responses in both directions, and whole responses. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Problem } from "../../core/problem.js";
import { math } from "./math.js";

interface Kind {
  readonly about: string;
  readonly equal: readonly (readonly [string, string])[];
  readonly different: readonly (readonly [string, string])[];
}
const kinds = JSON.parse(readFileSync(new URL("./kinds.cases.json", import.meta.url), "utf8")) as Kind[];
const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "", version: 0 } };
const verifiers = (["answer", "auto"] as const).map((kind) => math({ kind }));

/** In which of the four ways a pair is accepted. */
const accepted = (a: string, b: string): boolean[] =>
  verifiers.flatMap((verifier) =>
    [
      [a, b],
      [b, a],
    ].map(([reference, response]) => {
      const verdict = verifier.verify({ reference: reference as string, response: response as string, problem, truncated: false });
      return !(verdict instanceof Promise) && verdict.kind === "accept";
    }),
  );

describe.each(kinds)("$about", ({ equal, different }) => {
  it("have five cases or more on either side", () => {
    expect(Math.min(equal.length, different.length)).toBeGreaterThanOrEqual(5);
  });
  it("are accepted where they are equal", () => {
    expect(equal.filter(([a, b]) => accepted(a, b).includes(false))).toEqual([]);
  });
  it("are not accepted where they differ", () => {
    expect(different.filter(([a, b]) => accepted(a, b).includes(true))).toEqual([]);
  });
});

interface Responses {
  readonly about: string;
  readonly accepted: readonly (readonly [reference: string, response: string])[];
  readonly rejected: readonly (readonly [reference: string, response: string])[];
}
const responses = JSON.parse(readFileSync(new URL("./responses.cases.json", import.meta.url), "utf8")) as Responses[];

describe.each(responses)("responses: $about", ({ accepted: right, rejected: wrong }) => {
  const isAccepted = ([reference, response]: readonly [string, string]): boolean[] =>
    (["response", "auto"] as const).map((kind) => {
      const verdict = math({ kind }).verify({ reference, response, problem, truncated: false });
      return !(verdict instanceof Promise) && verdict.kind === "accept";
    });
  it("have five cases or more on either side", () => {
    expect(Math.min(right.length, wrong.length)).toBeGreaterThanOrEqual(5);
  });
  it("are accepted where the answer that they commit to is right", () => {
    expect(right.filter((each) => isAccepted(each).includes(false))).toEqual([]);
  });
  it("are not accepted where it is wrong, or where they commit to none", () => {
    expect(wrong.filter((each) => isAccepted(each).includes(true))).toEqual([]);
  });
});
