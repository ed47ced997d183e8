import { describe, expect, it } from "vitest";
import type { Problem } from "../../core/problem.js";
import { scoreOf, unscored } from "../../core/verdict.js";
import { judge } from "../contract.js";
import { number } from "../number/number.js";
import { verifierOf } from "../simple.js";
import { middleLevel, runningShare, trinary, trinaryOf } from "./trinary.js";

const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "5", version: 0 } };
const [strict, lenient] = [number({ from: { after: "####" } }), number()];
const score = async (response: string, middle = 0.5): Promise<number | undefined> =>
  scoreOf(await judge(trinaryOf(strict, lenient, { middle }), problem, response));

describe("trinary", () => {
  it("pays right above right in another form above wrong, for every middle", async () => {
    for (const middle of [0.01, 0.5, 0.99]) {
      const [right, other, wrong] = await Promise.all(["#### 5", "It is 5", "#### 6"].map((response) => score(response, middle)));
      expect([right, other, wrong]).toEqual([1, middle, 0]);
    }
  });

  it("is binary where both verifiers are one", async () => {
    const both = trinaryOf(strict, strict, { middle: 0.5 });
    const scores = await Promise.all(["#### 5", "It is 5", "#### 6", ""].map(async (response) => scoreOf(await judge(both, problem, response))));
    expect(scores).toEqual([1, 0, 0, 0]);
  });

  it("logs form and content apart", async () => {
    expect(await judge(trinaryOf(strict, lenient, { middle: 0.5 }), problem, "It is 5")).toMatchObject({
      kind: "partial",
      score: 0.5,
      parts: { strict: 0, content: 1 },
      evidence: { strict: { reason: "no-answer" } },
    });
    expect(await judge(trinaryOf(strict, lenient, { middle: 0.5 }), problem, "It is 6")).toMatchObject({
      kind: "reject",
      reason: "wrong",
      parts: { strict: 0, content: 0 },
    });
  });

  it("is unscored where a fault leaves it open", async () => {
    const broken = verifierOf("broken", () => unscored("judge-down"));
    expect(await judge(trinaryOf(broken, lenient, { middle: 0.5 }), problem, "#### 5")).toMatchObject({ kind: "unscored", reason: "judge-down" });
    expect(await judge(trinaryOf(strict, broken, { middle: 0.5 }), problem, "#### 5")).toMatchObject({ kind: "accept" });
    expect(await judge(trinaryOf(strict, broken, { middle: 0.5 }), problem, "It is 5")).toMatchObject({ kind: "unscored" });
  });

  it("takes verifiers by name, and refuses what is none", async () => {
    const named = await trinary({ strict: { name: "number", options: { from: "boxed" } }, lenient: { name: "number" } });
    expect(scoreOf(await judge(named, problem, "\\boxed{5}"))).toBe(1);
    expect(scoreOf(await judge(named, problem, "It is 5"))).toBe(0.5);
    await expect(trinary({ strict: { name: "nmber" } })).rejects.toThrow('trinary(), option strict: there is no verifier "nmber"');
    await expect(trinary({ middle: 1 })).rejects.toThrow("trinary(), option middle");
  });

  it("has a middle level that falls as the form is learnt", () => {
    expect([0, 0.5, 1].map((share) => middleLevel(share))).toEqual([0.8, 0.5, 0.2]);
    expect(runningShare(0.4, 1)).toBeCloseTo(0.43, 12);
  });
});
