import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Verdict } from "../../core/verdict.js";
import { rejectReasons } from "../../verify/contract.js";
import type { Task } from "../contract.js";
import { answersTo, differences, type PairOptions, pair, readWanted, wantedOf, workedPair } from "./pair.js";
import { pairVerifier } from "./verify.js";

const solve = (task: Task, problem: Problem): string => task.solution?.(problem, randomKey({ seed: 1, purpose: "solution", problem: problem.key })) as string;
const judged = (problem: Problem, response: string, truncated = false): Verdict => {
  const verdict = pairVerifier(13).verify({ reference: problem.reference.answer as string[], response, problem, truncated });
  if (verdict instanceof Promise) throw new Error("the verifier answers at once");
  return verdict;
};
const options: PairOptions = { modulus: 13, excluded: 3, slips: 0, favourite: 0 };

describe("the task pair", () => {
  const task = pair();
  const problems = task.problems("train", 400, 1);

  it("knows all answers: hand-counted ones, and those that a search over all pairs finds", () => {
    // 0+7, 1+6, 2+5, 3+4, 8+12, 9+11 and 10+10; the last are equal, 0 and 4 are excluded.
    expect(answersTo({ sum: 7, excluded: [0, 4] }, 13)).toEqual(["1 6", "2 5", "8 12", "9 11"]);
    for (const problem of problems) {
      const { sum, excluded } = wantedOf(problem);
      const found: string[] = [];
      for (let a = 0; a < 13; a++)
        for (let b = a + 1; b < 13; b++) if ((a + b) % 13 === sum && !excluded.includes(a) && !excluded.includes(b)) found.push(`${a} ${b}`);
      expect(problem.reference.answer).toEqual(found);
      expect(problem.tags?.answers).toBe(found.length);
      expect(found.length).toBeGreaterThanOrEqual(3);
    }
  });

  it("poses several right answers a problem, in four tokens each", () => {
    const counts = problems.map((problem) => problem.tags?.answers as number);
    expect([Math.min(...counts), Math.max(...counts)]).toEqual([3, 5]);
    expect(task.tokenizer?.size).toBe(20);
    for (const problem of problems) {
      expect(judged(problem, problem.privileged?.solution as string).kind).toBe("accept");
      expect(task.tokenizer?.encode(solve(task, problem)).length).toBe(3);
      expect(task.tokenizer?.render(problem.prompt, { addGenerationPrompt: true }).length).toBe(9);
    }
  });

  it("keeps the splits apart, and poses the same problems for the same seed", () => {
    const texts = (list: readonly Problem[]): (string | undefined)[] => list.map((problem) => problem.prompt[0]?.content);
    const lists = [task.problems("train", 1000, 1), task.problems("warm", 2000, 2), task.problems("eval", 350, 3)].map(texts);
    expect(new Set(lists.flat()).size).toBe(3350);
    expect(texts(pair().problems("eval", 20, 3))).toEqual((lists[2] as string[]).slice(0, 20));
    expect(texts(pair().problems("eval", 20, 4))).not.toEqual((lists[2] as string[]).slice(0, 20));
  });

  it("always has an answer, and refuses options and problems without", () => {
    for (const [modulus, excluded] of [
      [5, 0],
      [8, 2],
      [9, 2],
      [12, 4],
    ] as const)
      for (const split of ["train", "warm"] as const)
        for (const problem of pair({ modulus, excluded }).problems(split, 2, 0)) expect((problem.reference.answer as string[]).length).toBeGreaterThan(0);
    expect(() => pair({ modulus: 9, excluded: 3 })).toThrow("task pair, option excluded: got 3; give at most half of modulus - 4");
    expect(readWanted("7!0!4")).toEqual({ sum: 7, excluded: [0, 4] });
    for (const content of ["", "!7", "7!", "7 0", "seven"])
      expect(() => wantedOf({ ...(problems[0] as Problem), prompt: [{ role: "user", content }] })).toThrow("asks for no pair; pose problems of the task pair");
  });
});

describe("worked pairs", () => {
  const wanted = { sum: 7, excluded: [0, 4] };
  const drawn = (habits: Partial<PairOptions>, n = 4000): string[] =>
    Array.from({ length: n }, (_, seed) => workedPair(wanted, { ...options, ...habits }, new Stream(randomKey({ seed, purpose: "pair" }))));
  const share = (list: readonly string[], of: (text: string) => boolean): number => list.filter(of).length / list.length;
  const problem = { key: "p", prompt: [{ role: "user", content: "7!0!4" }], reference: { state: "gold", answer: answersTo(wanted, 13), version: 0 } } as const;

  it("cover every answer in both orders alike, without habits", () => {
    const all = drawn({});
    expect([...new Set(all)].sort()).toEqual(["1 6", "11 9", "12 8", "2 5", "5 2", "6 1", "8 12", "9 11"]);
    for (const text of new Set(all)) expect(Math.abs(share(all, (each) => each === text) - 1 / 8)).toBeLessThan(4 * Math.sqrt(0.11 / 4000));
  });

  it("have the sum as their difference at the stated rate, and are right for about a third", () => {
    const habitual = drawn({ habit: { rate: 0.65 } });
    expect(
      Math.abs(
        share(habitual, (text) => {
          const [a, b] = text.split(" ").map(Number) as [number, number];
          return (a - b + 13) % 13 === 7;
        }) - 0.65,
      ),
    ).toBeLessThan(4 * Math.sqrt(0.23 / 4000));
    const task = pair(differences);
    const problems = task.problems("warm", 2000, 5);
    const right = problems.filter((each) => judged(each, solve(task, each)).kind === "accept").length / problems.length;
    // 0.35 * 0.97 at least; a difference is right too where the first number is the sum and 0 may be used, a slip now and then.
    expect(right).toBeGreaterThan(0.31);
    expect(right).toBeLessThan(0.42);
  });

  it("begin with the least number that can be used where they have a favourite", () => {
    const narrow = drawn({ favourite: 0.8 });
    expect(Math.abs(share(narrow, (text) => text.startsWith("1 ")) - (0.8 + 0.2 / 8))).toBeLessThan(4 * Math.sqrt(0.15 / 4000));
    expect(share(narrow, (text) => judged(problem, text).kind === "accept")).toBe(1);
  });
});

describe("the verifier of pairs", () => {
  const problem: Problem = {
    key: "p",
    prompt: [{ role: "user", content: "7!0!4" }],
    reference: { state: "gold", answer: ["1 6", "2 5", "8 12", "9 11"], version: 0 },
  };
  const cases = JSON.parse(readFileSync(new URL("./pair.cases.json", import.meta.url), "utf8")) as [string, string, string | null, string][];

  it.each(cases)("%j: %s (class %j: %s)", (response, outcome, read) => {
    const verdict = judged(problem, response);
    expect(verdict.kind === "reject" ? verdict.reason : verdict.kind).toBe(outcome);
    expect(pairVerifier(13).extract?.(response) ?? null).toBe(read);
    expect(pairVerifier(13).locate?.(response)).toEqual(read === null ? undefined : { start: 0, end: response.length });
  });

  it("rejects what the token budget cut, and takes lists of answers alone as references", () => {
    expect(judged(problem, "1 6", true)).toEqual({ kind: "reject", reason: "truncated" });
    const { checkReference } = pairVerifier(13);
    expect(checkReference(["1 6"])).toBe(undefined);
    for (const bad of [[], ["6 1"], ["3 3"], ["1 13"], ["1 6", "1"], "1 6", null])
      expect(checkReference(bad)).toBe("a list of answers is needed, each two different numbers below 13, the smaller first");
  });

  it("gives a verdict with a known reason for any text of its alphabet and beyond", () => {
    const random = new Stream(randomKey({ seed: 8, purpose: "fuzz" }));
    const pieces = ["1", "6", "12", " ", "!", "1 6", "\n", "-", "\ud800"];
    const known = new Set(["accept", ...Object.keys(rejectReasons)]);
    const seen = new Set<string>();
    for (let i = 0; i < 10_000; i++) {
      const verdict = judged(problem, Array.from({ length: random.int(6) }, () => random.pick(pieces)).join(""));
      seen.add(verdict.kind === "reject" ? verdict.reason : verdict.kind);
    }
    expect([...seen].filter((name) => !known.has(name))).toEqual([]);
    expect(seen.has("accept")).toBe(true);
  });
});
