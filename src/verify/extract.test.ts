import { expect, it } from "vitest";
import type { Problem } from "../core/problem.js";
import { exact } from "./exact/exact.js";
import { number } from "./number/number.js";

const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "18", version: 0 } };
const words = "so we go on and on, ".repeat(2000);

it.each([
  ["last-number", "It is 18"],
  [{ after: "####" } as const, "#### 18\n"],
  ["boxed", "\\boxed{18}"],
  [{ between: ["<answer>", "</answer>"] } as const, "<answer>18</answer>"],
] as const)("finds the answer wherever it stands in a long response", (from, answer) => {
  const verifier = number({ from: from as NonNullable<Parameters<typeof number>[0]>["from"] });
  const verdict = (response: string) => verifier.verify({ reference: "18", response, problem, truncated: false });
  for (const response of [`${words}${answer}`, `${answer}. ${words}`, `${words}${answer}. ${words}`])
    expect(verdict(response)).toMatchObject({ kind: "accept" });
  expect(verdict(`${words}${answer.replace("18", "17")}. ${words}`)).toMatchObject({ kind: "reject", reason: "wrong" });
});

it.each([
  ["last-number", "so 5, and it is 1,800 apples", "1,800"],
  ["last-number", "that is $\\frac{3}{4}$.", "$\\frac{3}{4}$."],
  ["boxed", "\\boxed{3} no, \\boxed{ 18 } it is", "18 }"],
  [{ after: "####" } as const, "18\n#### 18 \nyes", "18"],
  [{ between: ["<a>", "</a>"] } as const, "<a>18</a> is it", "18</a>"],
] as const)("%j: the answer of %j stands at %j, what closes it included", (from, response, answer) => {
  const verifier = number({ from: from as NonNullable<Parameters<typeof number>[0]>["from"] });
  const lead = "<think> 7 \\boxed{7} </think>";
  for (const before of ["", lead]) {
    const { start, end } = verifier.locate?.(before + response) ?? { start: 0, end: 0 };
    expect((before + response).slice(start, end)).toBe(answer);
  }
  expect(verifier.locate?.("nothing")).toBe(undefined);
  expect(verifier.locate?.("<think> 18")).toBe(undefined);
});

it("an answer that is all of the response stands nowhere in particular", () => {
  expect(exact().locate).toBe(undefined);
  const { start, end } = exact({ from: "last-line" }).locate?.("so\n  blue \n") ?? { start: 0, end: 0 };
  expect([start, end]).toEqual([5, 9]);
});
