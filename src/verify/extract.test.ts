import { expect, it } from "vitest";
import type { Problem } from "../core/problem.js";
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
