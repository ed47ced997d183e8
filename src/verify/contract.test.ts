import { describe, expect, it } from "vitest";
import type { Json } from "../core/json.js";
import type { LabelState, Problem } from "../core/problem.js";
import { accept, partial, type Verdict } from "../core/verdict.js";
import { judge, type VerifierInput, verifierId } from "./contract.js";
import { exact } from "./exact/exact.js";
import { type Check, verifierOf } from "./simple.js";

const problem = (answer?: Json, state: LabelState = "gold"): Problem => ({ key: "p", prompt: [], reference: { state, answer, version: 0 } });

describe("judging", () => {
  it("gives the verifier's verdict, and passes all that the verifier may see", async () => {
    let seen: VerifierInput | undefined;
    const verifier = verifierOf("half", (input) => {
      seen = input;
      return partial(0.5);
    });
    const posed = problem("a");
    expect(await judge(verifier, posed, "b", true)).toEqual(partial(0.5));
    expect(seen).toEqual({ reference: "a", response: "b", problem: posed, truncated: true });
  });

  it("leaves unscored what has no reference or must not know it, before the verifier is asked", async () => {
    const verifier = verifierOf("never", () => accept());
    for (const posed of [problem(undefined, "none"), problem("a", "withheld"), problem(undefined)]) {
      expect(await judge(verifier, posed, "a")).toEqual({ kind: "unscored", reason: "no-reference" });
    }
    expect((await judge(verifier, problem("a", "pseudo"), "a")).kind).toBe("accept");
  });

  it("never turns a fault of ours into a score", async () => {
    const faults: Check[] = [
      () => {
        throw new Error("no such judge");
      },
      async () => Promise.reject(new Error("no such judge")),
      () => undefined as unknown as Verdict,
      () => 1 as unknown as Verdict,
      () => ({ kind: "maybe" }) as unknown as Verdict,
    ];
    for (const check of faults)
      expect(await judge(verifierOf("broken", check), problem("a"), "a")).toMatchObject({ kind: "unscored", reason: "verifier-failed" });
    expect(await judge(verifierOf("broken", faults[0] as Check), problem("a"), "a")).toMatchObject({
      evidence: { verifier: "broken", message: "no such judge" },
    });
    expect(await judge(exact(), problem(""), "")).toMatchObject({ kind: "unscored", reason: "bad-reference", evidence: { fault: "it is empty" } });
  });
});

describe("a verifier from a check", () => {
  it("accepts true and rejects false", async () => {
    const verifier = verifierOf("even", ({ response }) => Number(response) % 2 === 0);
    expect((await judge(verifier, problem("any"), "4")).kind).toBe("accept");
    expect(await judge(verifier, problem("any"), "5")).toMatchObject({ kind: "reject", reason: "wrong" });
  });

  it("is another verifier once its name or its version is another, whatever its text is", () => {
    const ids = [verifierOf("a", () => true), verifierOf("b", () => true), verifierOf("a", () => true, "2")].map(verifierId);
    expect(new Set(ids).size).toBe(3);
    expect(verifierId(verifierOf("a", () => 1 + 1 === 2))).toBe(ids[0]);
  });
});
