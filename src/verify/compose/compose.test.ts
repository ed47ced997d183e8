import { describe, expect, it } from "vitest";
import type { Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";
import { accept, partial, unscored, type Verdict } from "../../core/verdict.js";
import { judge, verifierId } from "../contract.js";
import { verifierOf } from "../simple.js";
import { compose, composed } from "./compose.js";

const problem = (answer: Json): Problem => ({ key: "p", prompt: [], reference: { state: "gold", answer, version: 0 } });
const always = (verdict: Verdict) => verifierOf("always", () => verdict);
const part = (name: string, verdict: Verdict, more: { weight?: number; gate?: boolean } = {}) => ({
  name,
  verifier: always(verdict),
  weight: 1,
  gate: false,
  ...more,
});

describe("compose", () => {
  it("is the weighted mean of its parts, each logged apart", async () => {
    const verifier = composed(
      [
        part("answer", accept(), { weight: 3 }),
        part("style", partial(0.5, { parts: { length: 12 }, evidence: { words: 3 } })),
        part("logged", partial(0.1), { weight: 0 }),
      ],
      {},
    );
    // (3 · 1 + 1 · 0.5 + 0) / 4
    expect(await judge(verifier, problem("1"), "x")).toEqual({
      kind: "partial",
      score: 0.875,
      parts: { answer: 1, style: 0.5, "style.length": 12, logged: 0.1 },
      evidence: { answer: {}, style: { words: 3 }, logged: {} },
    });
  });

  it("earns nothing where a gate is not passed, and says which reason", async () => {
    const gated = (gate: Verdict) => composed([part("answer", accept()), part("form", gate, { gate: true, weight: 0 })], {});
    expect(await judge(gated(accept()), problem("1"), "x")).toMatchObject({ kind: "accept", parts: { answer: 1, form: 1 } });
    expect(await judge(gated(partial(0.9)), problem("1"), "x")).toMatchObject({ kind: "reject", reason: "format", parts: { answer: 1, form: 0.9 } });
    expect(await judge(gated({ kind: "reject", reason: "ambiguous" }), problem("1"), "x")).toMatchObject({
      kind: "reject",
      reason: "ambiguous",
      parts: { answer: 1, form: 0 },
    });
  });

  it("is unscored where a part is, whatever the others say", async () => {
    const verifier = composed([part("answer", accept()), part("form", unscored("judge-down"), { gate: true })], {});
    expect(await judge(verifier, problem("1"), "x")).toMatchObject({ kind: "unscored", reason: "judge-down", parts: { answer: 1 } });
  });

  it("takes verifiers by name, each with its own entry of the reference", async () => {
    const verifier = await compose({
      parts: {
        answer: { name: "number", weight: 2, reference: "value" },
        unit: { name: "exact", options: { from: { after: "Unit:" } }, reference: "unit" },
      },
    });
    expect(verifier.checkReference({ value: "5", unit: "cm" })).toBe(undefined);
    expect(verifier.checkReference({ value: "5" })).toBe("for its part unit: it has no entry unit");
    expect(verifier.checkReference({ value: "five", unit: "cm" })).toContain("for its part answer: ");
    const reference = problem({ value: "5", unit: "cm" });
    expect(await judge(verifier, reference, "Unit: cm\nIt is 5")).toMatchObject({ kind: "accept", parts: { answer: 1, unit: 1 } });
    expect(await judge(verifier, reference, "Unit: km\nIt is 5")).toMatchObject({ kind: "partial", score: 2 / 3, parts: { answer: 1, unit: 0 } });
    expect(await judge(verifier, reference, "It is 6")).toMatchObject({
      kind: "reject",
      reason: "wrong",
      evidence: { answer: { reason: "wrong" }, unit: { reason: "no-answer" } },
    });
    expect(verifier.extract?.("It is 5")).toBe("5");
  });

  it("is known by its parts and their options, and refuses what weighs nothing or is not there", async () => {
    const make = (options: object) => compose(options as Parameters<typeof compose>[0]);
    const [a, b] = [
      await make({ parts: { answer: { name: "number" } } }),
      await make({ parts: { answer: { name: "number", options: { percent: "refuse" } } } }),
    ];
    expect(verifierId(a)).not.toBe(verifierId(b));
    await expect(make({ parts: { answer: { name: "number", weight: 0 } } })).rejects.toThrow("the sum of the weights");
    await expect(make({ parts: { answer: { name: "numbr" } } })).rejects.toThrow(
      'compose(), option parts.answer: there is no verifier "numbr"; did you mean "number"?',
    );
    await expect(make({ part: {} })).rejects.toThrow("did you mean");
  });
});
