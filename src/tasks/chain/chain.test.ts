import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import { rejectReasons } from "../../verify/contract.js";
import type { Task } from "../contract.js";
import { type ChainOptions, chain, chainOf, misconception, workedSolution } from "./chain.js";
import { apply, chainText, operators, readChain, readLine } from "./notation.js";
import { chainVerifier } from "./verify.js";

const key = (problem: Problem) => randomKey({ seed: 1, purpose: "solution", problem: problem.key });
const solve = (task: Task, problem: Problem): string => task.solution?.(problem, key(problem)) as string;
const judged = (task: Task, problem: Problem, response: string, truncated = false) =>
  chainVerifier(task.options.modulus as number).verify({ reference: problem.reference.answer as string, response, problem, truncated });

/**
 * The share of worked solutions whose answer is right, and of those with every line right, exactly: the joint distribution
 * of the true and the written value, line by line, over even operators and operands.
 */
function rates(options: ChainOptions): { right: number; flawless: number } {
  const { modulus: m, habit, slips } = options;
  const lengths = Array.from({ length: options.max_operations - options.min_operations + 1 }, (_, i) => options.min_operations + i);
  let joint = Array.from({ length: m }, (_, a) => Array.from({ length: m }, (_, b) => (a === b ? 1 / m : 0)));
  const rightAfter: number[] = [1];
  for (let line = 1; line <= options.max_operations; line++) {
    const next = Array.from({ length: m }, () => new Array<number>(m).fill(0));
    for (let a = 0; a < m; a++) {
      for (let b = 0; b < m; b++) {
        const p = (joint[a] as number[])[b] as number;
        for (const operator of operators) {
          for (let operand = 0; operand < m; operand++) {
            const row = next[apply(operator, a, operand, m)] as number[];
            const rate = habit?.operation === operator ? habit.rate : 0;
            for (const [worked, q] of [
              [operator, 1 - rate],
              [habit === undefined || habit.as === "random" ? operator : habit.as, rate],
            ] as const) {
              const result = apply(worked, b, operand, m);
              for (let shift = 0; shift < m; shift++) {
                const to = (result + shift) % m;
                row[to] = (row[to] as number) + (p * q * (shift === 0 ? 1 - slips : slips / (m - 1))) / (operators.length * m);
              }
            }
          }
        }
      }
    }
    joint = next;
    rightAfter.push(joint.reduce((sum, row, a) => sum + (row[a] as number), 0));
  }
  const mean = (f: (n: number) => number): number => lengths.reduce((sum, n) => sum + f(n), 0) / lengths.length;
  const line = (1 - (habit?.rate ?? 0) / 3) * (1 - slips);
  return { right: mean((n) => rightAfter[n] as number), flawless: mean((n) => line ** n) };
}

describe("a chain", () => {
  it("is written and read back", () => {
    const operations = [
      { operator: "+", operand: 3 },
      { operator: "*", operand: 10 },
      { operator: "-", operand: 0 },
    ] as const;
    expect(chainText({ start: 10, operations })).toBe("10+3*10-0");
    expect(readChain("10+3*10-0")).toEqual({ start: 10, operations });
    for (const text of ["", "+3", "3+", "3++4", "3 + 4", "3/4", "a+1"]) expect(readChain(text)).toBe(undefined);
    expect(readLine("*10=7")).toEqual({ operator: "*", operand: 10, result: 7 });
  });

  it("is worked from left to right, modulo", () => {
    expect([apply("+", 8, 5, 11), apply("-", 2, 5, 11), apply("*", 8, 4, 11), apply("-", 0, 0, 7)]).toEqual([2, 8, 10, 0]);
    expect(workedSolution({ start: 5, operations: readChain("5+3*4-2")?.operations ?? [] }, { modulus: 11, slips: 0 })).toBe("+3=8\n*4=10\n-2=8\n#8");
  });
});

describe("the task chain", () => {
  const task = chain();
  const problems = task.problems("train", 400, 1);

  it("poses problems whose worked solution is their reference, in one symbol a number", () => {
    for (const problem of problems) {
      expect(judged(task, problem, problem.privileged?.solution as string)).toMatchObject({ kind: "accept", parts: { lines: 1 } });
      expect(solve(task, problem)).toBe(problem.privileged?.solution);
      const { start, operations } = chainOf(problem);
      expect([start, ...operations.map((operation) => operation.operand)].every((n) => n >= 0 && n < 11)).toBe(true);
      expect(problem.tags?.operations).toBe(operations.length);
    }
    const lengths = problems.map((problem) => problem.tags?.operations as number);
    expect([...new Set(lengths)].sort()).toEqual([3, 4, 5, 6]);
  });

  it("has short prompts, and responses of 18 to 33 tokens, 25.5 on average over the lengths", () => {
    const tokenizer = task.tokenizer;
    expect(tokenizer?.size).toBe(22);
    const sizes = new Map<number, Set<number>>();
    for (const problem of problems) {
      const n = problem.tags?.operations as number;
      expect(tokenizer?.render(problem.prompt, { addGenerationPrompt: true }).length).toBe(2 * n + 3);
      const response = (tokenizer?.encode(problem.privileged?.solution as string).length ?? 0) + 1; // and the end token
      sizes.set(n, (sizes.get(n) ?? new Set()).add(response));
    }
    expect([...sizes].sort(([a], [b]) => a - b).map(([n, set]) => [n, ...set])).toEqual([
      [3, 18],
      [4, 23],
      [5, 28],
      [6, 33],
    ]);
    expect(task.maxTokens).toBe(33);
  });

  it("keeps the splits apart, without repeats, whatever the seeds", () => {
    const [train, warm, held] = [chain().problems("train", 2000, 1), chain().problems("warm", 6000, 2), chain().problems("eval", 1000, 3)];
    const keys = [train, warm, held].map((list) => new Set(list.map((problem) => problem.key)));
    expect(keys.map((set) => set.size)).toEqual([2000, 6000, 1000]);
    expect(new Set(keys.flatMap((set) => [...set])).size).toBe(9000);
    const texts = [train, warm, held].map((list) => list.map((problem) => problem.prompt[0]?.content));
    expect(new Set(texts.flat()).size).toBe(9000);
  });

  it("poses the same problems for the same seed, and a smaller number is the beginning of a larger", () => {
    const list = (n: number, seed: number): string[] =>
      chain()
        .problems("eval", n, seed)
        .map((problem) => problem.key);
    expect(list(200, 4)).toEqual(list(200, 4));
    expect(list(50, 4)).toEqual(list(200, 4).slice(0, 50));
    expect(list(50, 5)).not.toEqual(list(50, 4));
  });

  it("has a split in which a thousand problems of the small modulus fit, and says where a split ends", () => {
    expect(chain({ modulus: 7 }).problems("eval", 1000, 0).length).toBe(1000);
    const tiny = chain({ modulus: 2, min_operations: 1, max_operations: 1 });
    expect(() => tiny.problems("warm", 13, 0)).toThrow(
      /task chain, split warm: 13 problems were asked for, and only \d+ different ones were found; ask for fewer/,
    );
  });

  it("refuses options that cannot be meant", () => {
    expect(() => chain({ min_operations: 5, max_operations: 4 })).toThrow("task chain, option max_operations: got 4; give at least min_operations");
    expect(() => chain({ modulos: 7 } as object)).toThrow('task chain, option modulos: there is no such option; did you mean "modulus"?');
    expect(() => chain({ habit: { operation: "*", as: "/", rate: 0.5 } } as object)).toThrow("task chain, option habit.as");
    expect(() => chainOf({ ...(problems[0] as Problem), prompt: [{ role: "user", content: "hello" }] })).toThrow(
      '"hello" is no chain; pose problems of the task chain',
    );
  });
});

describe("worked solutions with a habit", () => {
  const options: ChainOptions = { modulus: 11, min_operations: 3, max_operations: 6, ...misconception };

  it("have every line right in 30 % of problems, and the right answer in 37 %: a start that reinforcement can use", () => {
    // (1 - 0.65/3) * 0.97 = 0.759833 a line; its powers 3 to 6 are 0.43868, 0.33333, 0.25327, 0.19244, with mean 0.30443.
    const { right, flawless } = rates(options);
    expect(flawless).toBeCloseTo(0.30443, 4);
    // By chance and by products with 0, a wrong line may still end right.
    expect(right).toBeCloseTo(0.37214, 5);
    expect(right).toBeGreaterThan(0.25);
    expect(right).toBeLessThan(0.45);
  });

  it("have the habit as their most likely line, so that greedy decoding starts below 40 %", () => {
    const mode = rates({ ...options, habit: { ...misconception.habit, rate: 1 }, slips: 0 });
    expect(mode.flawless).toBeCloseTo((8 / 27 + 16 / 81 + 32 / 243 + 64 / 729) / 4, 12);
    expect(mode.right).toBeCloseTo(0.24889, 5);
    expect(mode.right).toBeLessThan(0.4);
  });

  it("are right as often as computed, and flawless without habit and slips", () => {
    const task = chain(misconception);
    const problems = task.problems("warm", 4000, 9);
    const verdicts = problems.map((problem) => judged(task, problem, solve(task, problem)));
    const share = verdicts.filter((verdict) => "kind" in verdict && verdict.kind === "accept").length / problems.length;
    const { right } = rates(options);
    expect(Math.abs(share - right)).toBeLessThan(4 * Math.sqrt((right * (1 - right)) / problems.length));
    expect(rates({ ...options, habit: undefined, slips: 0 })).toEqual({ right: expect.closeTo(1, 9), flawless: 1 });
  });

  it("break each line by itself at the stated rate, and go on from what was written", () => {
    const task = chain(misconception);
    const count = { product: 0, habitual: 0, other: 0, slipped: 0 };
    for (const problem of task.problems("warm", 3000, 10)) {
      let before = chainOf(problem).start;
      for (const line of solve(task, problem).split("\n").slice(0, -1).map(readLine)) {
        if (line === undefined) throw new Error("a line without form");
        const [product, sum] = [apply("*", before, line.operand, 11), apply("+", before, line.operand, 11)];
        if (line.operator !== "*") {
          count.other++;
          if (line.result !== apply(line.operator, before, line.operand, 11)) count.slipped++;
        } else if (product !== sum) {
          count.product++;
          if (line.result === sum) count.habitual++;
        }
        before = line.result;
      }
    }
    expect(count.slipped / count.other).toBeCloseTo(0.03, 2);
    // A slip can also land on the sum by chance: 0.65 * 0.97 + 0.35 * 0.03 / 10.
    expect(Math.abs(count.habitual / count.product - 0.63155)).toBeLessThan(4 * Math.sqrt(0.23 / count.product));
  });

  it("are a pure function of problem and key", () => {
    const task = chain(misconception);
    const problem = task.problems("warm", 1, 0)[0] as Problem;
    const solutions = Array.from({ length: 40 }, (_, seed) => task.solution?.(problem, randomKey({ seed, purpose: "solution" })));
    expect(task.solution?.(problem, randomKey({ seed: 3, purpose: "solution" }))).toBe(solutions[3]);
    expect(new Set(solutions).size).toBeGreaterThan(3);
  });
});

describe("the verifier of chains", () => {
  const task = chain();
  const problem: Problem = { key: "p", prompt: [{ role: "user", content: "5+3*4-2" }], reference: { state: "gold", answer: "8", version: 0 } };
  const cases = JSON.parse(readFileSync(new URL("./chain.cases.json", import.meta.url), "utf8")) as [string, string, number | null, number | null, string][];

  it.each(cases)("%j: %s (lines %j, first wrong %j: %s)", (response, outcome, lines, firstWrong) => {
    const verdict = judged(task, problem, response);
    if (verdict instanceof Promise) throw new Error("the verifier answers at once");
    expect(verdict.kind === "reject" ? verdict.reason : verdict.kind).toBe(outcome);
    expect(verdict.parts?.lines ?? null).toBe(lines);
    expect(verdict.evidence?.first_wrong_line ?? null).toBe(firstWrong);
  });

  it("rejects what the token budget cut, though it looks complete", () => {
    expect(judged(task, problem, "#8", true)).toEqual({ kind: "reject", reason: "truncated" });
  });

  it("takes references that are residues as text, and no others", () => {
    const verifier = chainVerifier(11);
    expect(["0", "7", "10"].map(verifier.checkReference)).toEqual([undefined, undefined, undefined]);
    for (const bad of ["11", "-1", "07", "", " 7", 7, null]) expect(verifier.checkReference(bad)).toBe("a whole number below 11 as text is needed");
  });

  it("gives a verdict with a known reason for any text of its alphabet and beyond", () => {
    const random = new Stream(randomKey({ seed: 8, purpose: "fuzz" }));
    const pieces = ["0", "8", "10", "+3=8", "*4=10", "\n", "#", "#8", "=", "-", " ", "\ud800", "é"];
    const known = new Set(["accept", ...Object.keys(rejectReasons)]);
    const seen = new Set<string>();
    for (let i = 0; i < 10_000; i++) {
      const verdict = judged(task, problem, Array.from({ length: random.int(12) }, () => random.pick(pieces)).join(""));
      if (verdict instanceof Promise) throw new Error("the verifier answers at once");
      seen.add(verdict.kind === "reject" ? verdict.reason : verdict.kind);
    }
    expect([...seen].filter((name) => !known.has(name))).toEqual([]);
    expect(seen.has("accept")).toBe(true);
  });
});
