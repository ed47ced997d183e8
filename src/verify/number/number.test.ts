import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../../test/paths.js";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Verdict } from "../../core/verdict.js";
import { judge, rejectReasons, type Verifier, verifierId } from "../contract.js";
import { type NumberOptions, number } from "./number.js";

interface CaseGroup {
  readonly about: string;
  readonly from: NumberOptions["from"];
  readonly options?: Partial<NumberOptions>;
  readonly cases: readonly (readonly [response: string, reference: string, outcome: string])[];
}
const groups = JSON.parse(readFileSync(new URL("./number.cases.json", import.meta.url), "utf8")) as CaseGroup[];

const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "18", version: 0 } };
const verdictOf = (verifier: Verifier, response: string, reference: string | number, truncated = false): Verdict =>
  verifier.verify({ reference, response, problem, truncated }) as Verdict;
const outcome = (verdict: Verdict): string => (verdict.kind === "reject" ? verdict.reason : verdict.kind);

describe.each(groups)("number: $about", ({ from, options, cases }) => {
  const verifier = number({ from, ...options });
  it.each(cases)("%j against %j: %s", (response, reference, expected) => {
    expect(verifier.checkReference(reference)).toBe(undefined);
    expect(outcome(verdictOf(verifier, response, reference))).toBe(expected);
  });
});

const rows = ["gsm8k-test.jsonl", "gsm8k-train-sample.jsonl"].flatMap((file) =>
  readFileSync(join(repository, "test", "data", file), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { answer: string }).answer),
);

describe("number on GSM8K", () => {
  const marked = number({ from: { after: "####" }, reference_after: "####" });
  const loose = number({ reference_after: "####" });
  const answers = rows.map((answer) => (answer.split("####").at(-1) as string).trim());

  it("reads every reference, and accepts every worked solution against itself", () => {
    expect(rows.length).toBe(4023);
    expect(rows.filter((row) => marked.checkReference(row) !== undefined)).toEqual([]);
    expect(rows.filter((row) => verdictOf(marked, row, row).kind !== "accept")).toEqual([]);
    expect(rows.filter((row) => verdictOf(loose, row, row).kind !== "accept")).toEqual([]);
  });

  it("accepts every answer in other clothes", () => {
    for (const dress of [
      (a: string) => `#### ${a}.`,
      (a: string) => `The sum:\n####${a} apples`,
      (a: string) => `#### ${a.replaceAll(",", "")}.00`,
      (a: string) => `#### **${a}**`,
    ]) {
      expect(answers.filter((answer, i) => verdictOf(marked, dress(answer), rows[i] as string).kind !== "accept")).toEqual([]);
    }
  });

  it("accepts no answer that is off by one, whatever its size", () => {
    const plain = answers.map((answer) => BigInt(answer.replaceAll(",", "").replace(/\.0+$/, "")));
    for (const step of [1n, -1n]) {
      const wrong = plain.map((value, i) => outcome(verdictOf(marked, `#### ${value + step}`, rows[i] as string)));
      expect(new Set(wrong)).toEqual(new Set(["wrong"]));
    }
    const hundredfold = plain.filter((value, i) => value !== 0n && verdictOf(marked, `#### ${value}00`, rows[i] as string).kind === "accept");
    expect(hundredfold).toEqual([]);
  });
});

describe("number", () => {
  it("gives a verdict with a known reason for any text, and the same one twice", () => {
    const random = new Stream(randomKey({ seed: 5, purpose: "fuzz" }));
    const pieces = [
      "0",
      "7",
      "18",
      "1,234",
      ".",
      ",",
      "-",
      "−",
      "/",
      "%",
      "$",
      " ",
      "\n",
      "e",
      "^",
      "_",
      "(",
      "{",
      "}",
      "\\",
      "\\boxed{",
      "\\frac{",
      "####",
      "<think>",
      "</think>",
      "or",
      "not",
      "½",
      "²",
      "x",
      "é",
      "\ud83d",
      "\u200b",
      "٣",
      "<answer>",
      "</answer>",
      "million",
      "\u0000",
    ];
    const verifiers = groups.map(({ from, options }) => number({ from, ...options }));
    const known = new Set<string>(["accept", ...Object.keys(rejectReasons)]);
    const unknown: string[] = [];
    for (let i = 0; i < 10_000; i++) {
      const text = Array.from({ length: random.int(24) }, () => (random.int(4) === 0 ? String.fromCharCode(random.int(65536)) : random.pick(pieces))).join("");
      const verifier = verifiers[i % verifiers.length] as Verifier;
      const verdict = verdictOf(verifier, text, "18", i % 7 === 0);
      if (!known.has(outcome(verdict)) || JSON.stringify(verdict) !== JSON.stringify(verdictOf(verifier, text, "18", i % 7 === 0))) unknown.push(text);
      const extracted = verifier.extract?.(text);
      if (extracted !== undefined && verifier.same?.(extracted, extracted) !== true) unknown.push(text);
    }
    expect(unknown).toEqual([]);
  });

  it("comes to an end on long texts that are hard for patterns, and accepts none of them", () => {
    const long = 200_000;
    const texts = [
      "1".repeat(long),
      "1,".repeat(long),
      "1 ".repeat(long),
      " ".repeat(long),
      "-".repeat(long),
      "\\boxed{".repeat(long / 10),
      "####".repeat(long / 10),
      "1/".repeat(long),
      "{".repeat(long),
      "\\frac{".repeat(long / 10),
      "<think>".repeat(long / 10),
      "a1".repeat(long),
      "\n".repeat(long),
      "wait 1 ".repeat(long / 10),
      `#### 17${" or".repeat(long / 10)}`,
    ];
    for (const { from, options } of groups) {
      const verifier = number({ from, ...options });
      for (const text of texts) expect(outcome(verdictOf(verifier, text, "18"))).not.toBe("accept");
    }
    expect(outcome(verdictOf(number(), "1".repeat(long), "18"))).toBe("over-budget");
  });

  it("is symmetric: two answers accept each other or neither", () => {
    const spellings = ["18", "18.0", "36/2", "$18", "1,800", "1800", "-18", "0.018e3", "17", "17 3/3"];
    const verifier = number();
    for (const a of spellings) {
      for (const b of spellings) {
        if (verifier.checkReference(a) !== undefined || verifier.checkReference(b) !== undefined) continue;
        expect(verdictOf(verifier, a, b).kind).toBe(verdictOf(verifier, b, a).kind);
      }
    }
  });

  it("does not read an answer that the token budget may have cut", () => {
    expect(outcome(verdictOf(number(), "#### 18", "18", true))).toBe("truncated");
    const reads = number({ truncated: "read" });
    expect(outcome(verdictOf(reads, "It is 18", "18", true))).toBe("truncated");
    expect(outcome(verdictOf(reads, "It is 18 apples", "18", true))).toBe("accept");
    const marked = number({ truncated: "read", from: { after: "####" } });
    expect(outcome(verdictOf(marked, "#### 18", "18", true))).toBe("truncated");
    expect(outcome(verdictOf(marked, "#### 18\nSo", "18", true))).toBe("accept");
  });

  it("groups answers without a reference", () => {
    const verifier = number();
    const [a, b, c] = ["It is 1,500", "1.5e3 apples", "15"].map((text) => verifier.extract?.(text)) as [string, string, string];
    expect([a, b, c]).toEqual(["1500", "1500", "15"]);
    expect([verifier.same?.(a, b), verifier.same?.(a, c)]).toEqual([true, false]);
    expect(verifier.extract?.("none")).toBe(undefined);
    expect(verifier.extract?.("1/3")).toBe("1/3");
  });

  it("says what is wrong with a reference", () => {
    const verifier = number();
    expect(verifier.checkReference(18)).toBe(undefined);
    expect(verifier.checkReference(0.1)).toBe(undefined);
    expect(verifier.checkReference("")).toBe('"" is not one number (no-answer)');
    expect(verifier.checkReference("eighteen")).toBe('"eighteen" is not one number (unreadable)');
    expect(verifier.checkReference("1 or 2")).toBe('"1 or 2" is not one number (ambiguous)');
    expect(verifier.checkReference(2 ** 53)).toContain("is not exact; write it as text");
    expect(verifier.checkReference(Number.NaN)).toContain("not exact");
    for (const bad of [null, true, ["18"], { answer: 18 }]) expect(verifier.checkReference(bad)).toContain("a number or a text is needed");
    expect(number({ reference_after: "####" }).checkReference("18")).toBe('"####" does not occur in it');
  });

  it("never pays for a reference that cannot be read", async () => {
    const broken: Problem = { ...problem, reference: { state: "gold", answer: "none", version: 0 } };
    expect(await judge(number(), broken, "none")).toMatchObject({ kind: "unscored", reason: "bad-reference" });
  });

  it("shows what it read", () => {
    expect(verdictOf(number({ from: { after: "####" } }), "#### $1,234.50 in all", "1234")).toEqual({
      kind: "reject",
      reason: "wrong",
      evidence: { expected: "1234", text: "$1,234.50 in all", read: "2469/2" },
    });
  });

  it("is known by its options, and refuses others", () => {
    expect(verifierId(number())).toBe(verifierId(number({ percent: "ignore" })));
    expect(verifierId(number({ percent: "fraction" }))).not.toBe(verifierId(number()));
    expect(() => number({ toleranse: "1" } as object)).toThrow('number(), option toleranse: there is no such option; did you mean "tolerance"?');
    expect(() => number({ tolerance: "a" })).toThrow("number(), option tolerance");
  });
});
