import { describe, expect, it } from "vitest";
import type { Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import { scoreOf, type Verdict } from "../../core/verdict.js";
import { evaluate, parseFormula } from "./expression.js";
import { type FormulaOptions, formula } from "./formula.js";

const reference = { formula: "weight / height^2", answer: 25 };
const problem: Problem = {
  key: "p",
  prompt: [{ role: "user", content: "A person of 100 kg is 2 m tall, 41 years old, and has 7 cats. What is the index?" }],
  reference: { state: "gold", answer: reference, version: 0 },
};
const verdictOf = (response: string, options: Partial<FormulaOptions> = {}, of: Json = reference): Verdict =>
  formula(options).verify({ reference: of, response, problem, truncated: false }) as Verdict;
const answered = (stated: string, inputs: string, answer: string): string => `<formula>${stated}</formula><inputs>${inputs}</inputs><answer>${answer}</answer>`;
const inputs = "weight = 100, height = 2";

describe("the formula verifier", () => {
  it("has its numbers by hand", () => {
    expect(verdictOf(answered("weight / height^2", inputs, "25"))).toMatchObject({
      kind: "accept",
      parts: { form: 1, formula: 1, grounded: 1, consistent: 1, knowledge: 1, answer: 1 },
    });
    // e = 0.5 / 1.25 = 0.4, so 0.8; consistent fails: 0.1 + 0.3 · 0.5 + 0.6 · 0.8
    expect(verdictOf(answered("weight / height^2", inputs, "25.5"))).toMatchObject({ kind: "partial", score: expect.closeTo(0.73, 10) });
    // wrong formula, consistently evaluated: 0.1 + 0.3 · 0.5 + 0
    expect(verdictOf(answered("weight / height", inputs, "50"))).toMatchObject({ score: expect.closeTo(0.25, 10), parts: { knowledge: 0.5, answer: 0 } });
    expect(verdictOf("25")).toMatchObject({ kind: "reject", reason: "format" });
  });

  it("does not change with a rewriting of the formula", () => {
    for (const same of [
      "weight * height^(-2)",
      "bmi = (weight / height) / height",
      "weight/(height*height)",
      "Weight ÷ Height²",
      "(2*weight) / (2*height**2)",
      "weight/height^2 + weight - weight",
    ])
      expect(verdictOf(answered(same, inputs, "25"))).toMatchObject({ kind: "accept" });
    for (const other of ["weight / height^3", "height / weight^2", "100 / height^2", "25", "weight / height^2 + 1e-6 * weight"])
      expect(verdictOf(answered(other, inputs, "25"))).toMatchObject({ parts: { formula: 0 } });
  });

  it("never pays the right formula less than a wrong one", () => {
    for (const answer of ["25", "24", "26.2", "30", "none"]) {
      const right = scoreOf(verdictOf(answered("weight / height^2", inputs, answer))) as number;
      for (const wrong of ["weight / height", "weight", ""])
        expect(right).toBeGreaterThanOrEqual(scoreOf(verdictOf(answered(wrong, inputs, answer))) as number);
    }
  });

  it("pays nothing for inputs that the problem does not have", () => {
    const invented = answered("weight / height^2", "weight = 6.25, height = 0.5", "25");
    expect(verdictOf(invented)).toMatchObject({ parts: { grounded: 0, consistent: 0 } });
    expect(verdictOf(invented, { inputs: "any" })).toMatchObject({ kind: "accept" });
  });

  it("is right for a rule only when exact", () => {
    const rule = { formula: "weight / height^2", answer: 25, kind: "rule" };
    expect(verdictOf(answered("weight / height^2", inputs, "25"), {}, rule)).toMatchObject({ kind: "accept" });
    expect(verdictOf(answered("weight / height^2", inputs, "25.1"), {}, rule)).toMatchObject({ parts: { answer: 0 } });
  });

  it("gives no answer part, and no exception, for what has no value", () => {
    for (const stated of [
      "weight / 0",
      "0 / 0",
      "weight ^ 9999 ^ 9999",
      "ln(0 - weight)",
      "weight /",
      "import('fs')",
      "__proto__",
      "constructor(weight)",
      "((((",
      "-".repeat(5000),
      "(".repeat(1000),
    ]) {
      const verdict = verdictOf(answered(stated, inputs, "7"));
      expect(verdict).toMatchObject({ parts: { formula: 0, consistent: 0, answer: 0 } });
    }
    expect(verdictOf(answered("weight / 0", inputs, "Infinity"))).toMatchObject({ parts: { consistent: 0, answer: 0 } });
  });

  it("gives a score from 0 to 1 for any text", () => {
    const random = new Stream(randomKey({ seed: 9, purpose: "fuzz" }));
    const pieces = [
      "<formula>",
      "</formula>",
      "<inputs>",
      "</inputs>",
      "<answer>",
      "</answer>",
      "weight",
      "height",
      "=",
      "/",
      "^",
      "2",
      "25",
      "1e999",
      "(",
      ")",
      ",",
      "\n",
      "-",
      "<think>",
      "\u0000",
    ];
    for (let i = 0; i < 3000; i++) {
      const score = scoreOf(verdictOf(Array.from({ length: random.int(30) }, () => random.pick(pieces)).join("")));
      expect(score !== undefined && score >= 0 && score <= 1).toBe(true);
    }
  });

  it("says what is wrong with a reference", () => {
    expect(formula().checkReference({ formula: "a +", answer: 1 })).toBe('its formula "a +" cannot be read');
    expect(formula().checkReference("25")).toContain("is needed");
    expect(formula().checkReference(reference)).toBe(undefined);
  });
});

describe("formulas", () => {
  const value = (text: string, values: { [name: string]: number } = {}): number | undefined => {
    const tree = parseFormula(text);
    return tree && evaluate(tree, new Map(Object.entries(values)));
  };

  it("bind as usual", () => {
    expect(value("1 + 2 * 3 ^ 2")).toBe(19);
    expect(value("2 ^ 3 ^ 2")).toBe(512);
    expect(value("-2 ^ 2")).toBe(-4);
    expect(value("8 / 2 / 2 - 1 - 1")).toBe(0);
    expect(value("2 * -3")).toBe(-6);
    expect(value("max(min(a, 3), 1) + sqrt(16) + abs(-2)", { a: 2 })).toBe(8);
    expect(value("ln(exp(2)) + log10(1000)")).toBe(5);
    expect(value("body_mass * 1.5e2", { body_mass: 2 })).toBe(300);
  });

  it("are read whole or not at all", () => {
    for (const text of ["", "1 +", "1 2", "2x", "(1", "1)", "a b", "sin(1)", "sqrt(1, 2)", "min(1)", "1 = 2 = 3", "a$b"])
      expect(parseFormula(text)).toBe(undefined);
  });
});
