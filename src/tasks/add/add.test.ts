import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Verdict } from "../../core/verdict.js";
import { rejectReasons } from "../../verify/contract.js";
import type { Task } from "../contract.js";
import { add, addendsOf, addVerifier, carriesOf, forgottenCarries, readColumn, workedSum } from "./add.js";

const solve = (task: Task, problem: Problem): string => task.solution?.(problem, randomKey({ seed: 1, purpose: "solution", problem: problem.key })) as string;
const judged = (problem: Problem, response: string, truncated = false): Verdict => {
  const verdict = addVerifier(6).verify({ reference: problem.reference.answer as string, response, problem, truncated });
  if (verdict instanceof Promise) throw new Error("the verifier answers at once");
  return verdict;
};

describe("the task add", () => {
  const task = add();
  const problems = task.problems("train", 400, 1);

  it("is worked from the right, with the carry written", () => {
    expect(workedSum([47, 85], { slips: 0 })).toBe("7+5c0=2c1\n4+8c1=3c1\n#132");
    expect(workedSum([99, 10], { slips: 0 })).toBe("9+0c0=9c0\n9+1c0=0c1\n#109");
    expect(workedSum([999, 999], { slips: 0 })).toBe("9+9c0=8c1\n9+9c1=9c1\n9+9c1=9c1\n#1998");
    expect(readColumn("4+8c1=3c1")).toEqual({ a: 4, b: 8, carry: 1, written: 3, next: 1 });
    expect([carriesOf(47, 85), carriesOf(11, 22), carriesOf(90, 10), carriesOf(19, 11), carriesOf(999, 999)]).toEqual([2, 0, 1, 1, 3]);
  });

  it("poses problems whose worked solution is their reference, in one symbol a digit", () => {
    for (const problem of problems) {
      const [a, b] = addendsOf(problem);
      expect(problem.reference.answer).toBe(String(a + b));
      expect(judged(problem, problem.privileged?.solution as string)).toMatchObject({ kind: "accept", parts: { lines: 1 } });
      expect(solve(task, problem)).toBe(problem.privileged?.solution);
      expect(task.tokenizer?.encode(problem.privileged?.solution as string).length).toBe(17 + String(a + b).length);
      expect(problem.tags?.carries).toBe(carriesOf(a, b));
    }
    expect(task.maxTokens).toBe(21);
    expect(
      [1, 3].map((digits) =>
        add({ digits })
          .problems("eval", 5, 0)
          .every((p) => addendsOf(p).every((n) => String(n).length === digits)),
      ),
    ).toEqual([true, true]);
  });

  it("keeps the splits apart, both orders of a sum in one of them, and poses the same for the same seed", () => {
    const sorted = (list: readonly Problem[]): string[] => list.map((problem) => [...addendsOf(problem)].sort((a, b) => a - b).join("+"));
    const lists = [task.problems("train", 1200, 1), task.problems("warm", 2000, 2), task.problems("eval", 400, 3)].map(sorted);
    expect(new Set(lists.flat()).size).toBe(3600);
    expect(sorted(add().problems("train", 20, 1))).toEqual((lists[0] as string[]).slice(0, 20));
    expect(sorted(add().problems("train", 20, 2))).not.toEqual((lists[0] as string[]).slice(0, 20));
  });

  it("refuses what is no sum of its kind", () => {
    expect(() => add({ digits: 7 })).toThrow("task add, option digits");
    for (const content of ["47+8", "07+12", "47-12", "47+85+1", ""])
      expect(() => addendsOf({ ...(problems[0] as Problem), prompt: [{ role: "user", content }] })).toThrow("is no sum; pose problems of the task add");
  });
});

describe("worked sums with forgotten carries", () => {
  it("are right as often as computed over all sums of two digits", () => {
    // A sum is right if none of its carries is forgotten and no line slips: (1 - 0.75)^carries * 0.97^2, over the 90 * 90 sums.
    let mean = 0;
    for (let a = 10; a < 100; a++) for (let b = 10; b < 100; b++) mean += 0.25 ** carriesOf(a, b) / 8100;
    const expected = mean * 0.97 ** 2;
    expect(expected).toBeGreaterThan(0.25);
    expect(expected).toBeLessThan(0.45);
    const task = add(forgottenCarries);
    const problems = task.problems("warm", 2000, 9);
    const right = problems.filter((problem) => judged(problem, solve(task, problem)).kind === "accept").length / problems.length;
    expect(Math.abs(right - expected)).toBeLessThan(4 * Math.sqrt((expected * (1 - expected)) / problems.length));
  });

  it("forget each carry by itself at the stated rate, and go on from what was written", () => {
    const task = add({ habit: { rate: 0.75 } });
    const count = { carries: 0, forgotten: 0 };
    for (const problem of task.problems("warm", 2000, 10)) {
      let before = 0;
      for (const column of solve(task, problem).split("\n").slice(0, -1).map(readColumn)) {
        if (column === undefined) throw new Error("a line without form");
        expect([column.carry, column.written]).toEqual([before, (column.a + column.b + before) % 10]);
        if (column.a + column.b + before >= 10) {
          count.carries++;
          if (column.next === 0) count.forgotten++;
        } else expect(column.next).toBe(0);
        before = column.next;
      }
    }
    expect(Math.abs(count.forgotten / count.carries - 0.75)).toBeLessThan(4 * Math.sqrt(0.1875 / count.carries));
  });
});

describe("the verifier of sums", () => {
  const problem: Problem = { key: "p", prompt: [{ role: "user", content: "47+85" }], reference: { state: "gold", answer: "132", version: 0 } };
  const cases = JSON.parse(readFileSync(new URL("./add.cases.json", import.meta.url), "utf8")) as [string, string, number | null, number | null, string][];

  it.each(cases)("%j: %s (columns %j, first wrong %j: %s)", (response, outcome, lines, firstWrong) => {
    const verdict = judged(problem, response);
    expect(verdict.kind === "reject" ? verdict.reason : verdict.kind).toBe(outcome);
    expect(verdict.parts?.lines ?? null).toBe(lines);
    expect(verdict.evidence?.first_wrong_line ?? null).toBe(firstWrong);
  });

  it("rejects what the token budget cut, and takes sums as text alone", () => {
    expect(judged(problem, "#132", true)).toEqual({ kind: "reject", reason: "truncated" });
    expect(["20", "198"].map(addVerifier(2).checkReference)).toEqual([undefined, undefined]);
    for (const bad of ["1980", "-3", "020", "", 132, null]) expect(addVerifier(2).checkReference(bad)).toBe("a sum as text is needed");
  });

  it("gives a verdict with a known reason for any text of its alphabet and beyond", () => {
    const random = new Stream(randomKey({ seed: 8, purpose: "fuzz" }));
    const pieces = ["1", "32", "7+5c0=2c1", "4+8c1=3c1", "\n", "#", "#132", "c1", "=", " ", "\ud800"];
    const known = new Set(["accept", ...Object.keys(rejectReasons)]);
    const seen = new Set<string>();
    for (let i = 0; i < 10_000; i++) {
      const verdict = judged(problem, Array.from({ length: random.int(8) }, () => random.pick(pieces)).join(""));
      seen.add(verdict.kind === "reject" ? verdict.reason : verdict.kind);
    }
    expect([...seen].filter((name) => !known.has(name))).toEqual([]);
    expect(seen.has("accept")).toBe(true);
  });
});
