import { describe, expect, it } from "vitest";
import { hashJson, type Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import type { Verdict } from "../../core/verdict.js";
import { verifierId } from "../../verify/contract.js";
import type { Task } from "../contract.js";
import { problemKey } from "../define.js";
import { beginningOf, chain, chainOf, choice, fillers, forms, hinted, misconception, responseTokens, workedSolution } from "./chain.js";
import { formNames, readAsked } from "./forms.js";
import { readPhrased } from "./notation.js";

const solve = (task: Task, problem: Problem, seed = 1): string =>
  task.solution?.(problem, randomKey({ seed, purpose: "solution", problem: problem.key })) as string;
const judged = (task: Task, problem: Problem, response: string, truncated = false): Verdict => {
  const verdict = task.verifier.verify({ reference: problem.reference.answer as string, response, problem, truncated });
  if (verdict instanceof Promise) throw new Error("the verifier answers at once");
  return verdict;
};
const outcome = (verdict: Verdict): string => (verdict.kind === "reject" ? verdict.reason : verdict.kind);
const share = <T>(list: readonly T[], of: (item: T) => boolean): number => list.filter(of).length / list.length;
/** Four standard errors of a share. */
const near = (observed: number, expected: number, n: number): void =>
  expect(Math.abs(observed - expected)).toBeLessThan(4 * Math.sqrt((expected * (1 - expected)) / n));
const text = (problem: Problem): string => problem.prompt[0]?.content as string;
const allForms = Object.fromEntries(formNames.map((form) => [form, 1])) as { [form in (typeof formNames)[number]]: number };
const example: Problem = {
  key: "p",
  prompt: [{ role: "user", content: "5+3*4-2" }],
  reference: { state: "gold", answer: "8", version: 0 },
  privileged: { solution: "+3=8\n*4=10\n-2=8\n#8", answer: "8", steps: "8 10 8" },
};

describe("chains without further options", () => {
  it("are the problems, solutions and identities that starters and records were made with", () => {
    const seen = [{}, { modulus: 7, ...misconception }].map((options) => {
      const task = chain(options);
      const problems = (["train", "warm", "eval"] as const).flatMap((split) => task.problems(split, 100, 3));
      const solutions = problems.map((problem) => solve(task, problem, 5));
      return [task.id, verifierId(task.verifier), task.tokenizer?.id, task.maxTokens, ...[problems, solutions].map((of) => hashJson(of as Json).slice(0, 16))];
    });
    expect(seen).toEqual([
      ["chain:66fec2b0ee2aa379", "chain:ce57188f3cb3e1be", "alphabet:6a9a2502ec74251b", 33, "df8875c9cbb12015", "244d12555cca531e"],
      ["chain:2bbc90240072b05b", "chain:9e3e303690765671", "alphabet:a4de67fd6b495dc5", 33, "9ea7459e1d96ce5e", "19332ed16ace6f76"],
    ]);
  });
});

describe("lengths and difficulty", () => {
  it("follow their weights", () => {
    const task = chain({ min_operations: 2, max_operations: 5, lengths: [6, 3, 0, 1] });
    const lengths = task.problems("train", 2000, 1).map((problem) => problem.tags?.operations);
    near(
      share(lengths, (n) => n === 2),
      0.6,
      2000,
    );
    near(
      share(lengths, (n) => n === 5),
      0.1,
      2000,
    );
    expect(lengths).not.toContain(4);
  });

  it("have one operation as often as drawn, at even places, and say so", () => {
    const task = chain({ min_operations: 4, max_operations: 4, counts: { operation: "*", weights: [1, 0, 1, 0, 0, 2] } });
    const problems = task.problems("train", 2000, 1);
    const places = [0, 0, 0, 0];
    for (const problem of problems) {
      const products = chainOf(problem).operations.map(({ operator }, i) => (operator === "*" ? i : -1));
      expect(problem.tags?.difficulty).toBe(products.filter((i) => i >= 0).length);
      if (problem.tags?.difficulty === 2) for (const i of products) if (i >= 0) places[i] = (places[i] as number) + 1;
    }
    const difficulties = problems.map((problem) => problem.tags?.difficulty);
    // Five is more than there are lines.
    expect([...new Set(difficulties)].sort()).toEqual([0, 2, 4]);
    near(
      share(difficulties, (n) => n === 4),
      0.5,
      2000,
    );
    const all = places.reduce((a, b) => a + b, 0);
    for (const count of places) near(count / all, 0.25, all);
  });

  it("are refused where they name lengths that are none, or nothing", () => {
    expect(() => chain({ min_operations: 3, max_operations: 4, lengths: [1, 1, 1] })).toThrow("task chain, option lengths: got");
    expect(() => chain({ lengths: [0, 0] })).toThrow("give one weight above 0 at least");
    expect(() => chain({ forms: { plain: 0 } })).toThrow("give one weight above 0 at least");
    expect(() => chain({ modulus: 7, popular: { answer: 7, below: 2, rate: 0.5 } })).toThrow(
      "task chain, option popular.answer: got 7; give a number below modulus",
    );
    expect(() => chain({ forms: { rigt: 1 } } as object)).toThrow('did you mean "right"?');
  });
});

describe("strict answers", () => {
  const cases: readonly [string, string, string][] = [
    ["+3=8\n*4=10\n-2=8\n#8", "accept", "every line right"],
    ["+3=9\n*4=10\n-2=8\n#8", "wrong", "right by chance"],
    ["+3=9\n*4=3\n-2=1\n#1", "wrong", "a slip that goes on"],
    ["#8", "wrong", "no work shown"],
    ["+3=8\n*4=10\n#8", "wrong", "a line left out"],
    ["+3=8\n*4=10\n-2=8\n+0=8\n#8", "wrong", "a line too many"],
    ["-2=3\n+3=6\n*4=2\n#2", "wrong", "another order"],
    ["+3=8\n*4=10\n-2=8\n#7", "wrong", "right lines, another answer"],
    ["*4=10\n-2=8\n+3=8\n#8", "wrong", "the right results on the wrong lines"],
  ];
  it.each(cases)("%j: %s (%s)", (response, expected) => {
    expect(outcome(judged(chain({ strict: true }), example, response))).toBe(expected);
  });

  it("are as likely as every line is right: 0.35^products * 0.97^lines with the starter's habit", () => {
    const task = chain({ modulus: 7, strict: true, min_operations: 4, max_operations: 4, counts: { operation: "*", weights: [0, 0, 1] }, ...misconception });
    const problems = task.problems("warm", 4000, 2);
    // Products whose sum is the same (0*0, 2*2) are right with the habit too: 6 of 49 pairs of value and operand (x*y = x+y has (x-1)(y-1) = 1).
    const line = 0.35 + (0.65 * 6) / 49;
    const expected = line ** 2 * 0.97 ** 4;
    const right = share(problems, (problem) => judged(task, problem, solve(task, problem)).kind === "accept");
    expect(Math.abs(right - expected)).toBeLessThan(0.03);
  });
});

describe("habits", () => {
  it("may be a random result of one operation: the noise of an imperfect teacher", () => {
    const task = chain({ modulus: 7, habit: { operation: "-", as: "random", rate: 0.2 } });
    const count = { minus: 0, wrong: 0 };
    for (const problem of task.problems("warm", 2000, 1)) {
      let before = chainOf(problem).start;
      for (const line of solve(task, problem).split("\n").slice(0, -1).map(readPhrased)) {
        if (line === undefined) throw new Error("a line without form");
        const right = (((line.operator === "*" ? before * line.operand : line.operator === "+" ? before + line.operand : before - line.operand) % 7) + 7) % 7;
        if (line.operator === "-") {
          count.minus++;
          if (line.result !== right) count.wrong++;
        } else expect(line.result).toBe(right);
        before = line.result;
      }
    }
    near(count.wrong / count.minus, 0.2, count.minus);
  });

  it("may be a popular answer after right lines, on the share of problems with a low start", () => {
    const task = chain({ modulus: 10, popular: { answer: 3, below: 3, rate: 0.6, elsewhere: 0.05 } });
    const problems = task.problems("warm", 4000, 1);
    const low = problems.filter((problem) => chainOf(problem).start < 3);
    near(low.length / problems.length, 0.3, problems.length);
    const popular = (list: readonly Problem[]): number => {
      const others = list.filter((problem) => problem.reference.answer !== "3");
      return share(others, (problem) => solve(task, problem).endsWith("#3"));
    };
    near(popular(low), 0.6, low.length);
    near(popular(problems.filter((problem) => chainOf(problem).start >= 3)), 0.05, 2700);
    for (const problem of problems.slice(0, 200)) expect(judged(task, problem, solve(task, problem)).parts).toEqual({ lines: 1 });
    expect(judged(task, problems[0] as Problem, problems[0]?.privileged?.solution as string).kind).toBe("accept");
  });
});

describe("fillers", () => {
  const task = chain({ modulus: 7, fillers: true, forms: { plain: 1, right: 1, wrong: 1 }, slips: 0.1 });
  const problems = task.problems("warm", 3000, 1);
  const shares = (form: string): number[] => {
    const lines = problems.filter((problem) => problem.tags?.form === form).flatMap((problem) => solve(task, problem).split("\n").slice(0, -1));
    return fillers.map((phrase) => share(lines, (line) => line.replace(/[-+*].*/, "") === phrase));
  };

  it("begin every line, and any of them or none is accepted", () => {
    const [problem] = problems as [Problem];
    const solution = problem.privileged?.solution as string;
    expect(solution).toMatch(/^(so[-+*]\d=\d\n)+#\d$/);
    expect(outcome(judged(task, problem, solution))).toBe("accept");
    expect(outcome(judged(task, problem, solution.replaceAll("so", "and").replace("and", "")))).toBe("accept");
    for (const bad of ["so so", "so ", "well", "SO", "sonow"]) expect(outcome(judged(task, problem, solution.replace("so", bad)))).toBe("format");
    expect(outcome(judged(chain({ modulus: 7 }), problem, solution))).toBe("format");
    expect(task.maxTokens).toBe(39);
    expect(task.tokenizer?.encode(solution).length).toBe(6 * chainOf(problem).operations.length + 2);
  });

  it("change with either claim about the outcome, each phrase in the same direction", () => {
    const [plain, right, wrong] = ["plain", "right", "wrong"].map(shares) as [number[], number[], number[]];
    plain.forEach((before, i) => {
      const change = [right, wrong].map((after) => Math.sign((after[i] as number) - before));
      expect(change).toEqual(i < 3 ? [-1, -1] : [1, 1]);
    });
    expect(plain[0]).toBeCloseTo(6 / 15, 1);
  });

  it("change nothing else: the lines are those of the same chances without phrases", () => {
    const bare = chain({ modulus: 7, slips: 0.1 });
    for (const problem of problems.slice(0, 200)) {
      const plain = { ...problem, prompt: [{ role: "user", content: text(problem).replace(/\(.*/, "") }] } as Problem;
      expect(solve(task, problem).replaceAll(/[a-z]/g, "")).toBe(solve(bare, plain));
    }
  });

  it("are known by index, as is what else a token is and in which line", () => {
    const ids = task.tokenizer?.encode("so+3=1\nnow*4=4\n#4") as Int32Array;
    expect(responseTokens([...ids, 0], task.tokenizer as NonNullable<Task["tokenizer"]>).map(({ kind, line }) => `${kind} ${line}`)).toEqual([
      ...["filler 0", "operator 0", "operand 0", "other 0", "value 0", "other 0"],
      ...["filler 1", "operator 1", "operand 1", "other 1", "value 1", "other 1"],
      ...["other 2", "answer 2", "other 2"],
    ]);
  });
});

describe("forms of prompts", () => {
  const options = { modulus: 7, forms: allForms, fillers: true, ...misconception };
  const task = chain(options);
  const problems = task.problems("warm", 3000, 1);
  const of = (form: string): Problem[] => problems.filter((problem) => problem.tags?.form === form);

  it("are written by hand", () => {
    expect(hinted(example, "right")).toEqual([{ role: "user", content: "5+3*4-2(right)" }]);
    const content = (messages: readonly { readonly content: string }[]): string => messages[0]?.content as string;
    expect(content(hinted(example, "wrong"))).toBe("5+3*4-2(wrong)");
    expect(content(hinted(example, "answer"))).toBe("5+3*4-2(answer 8)");
    expect(content(hinted(example, "steps"))).toBe("5+3*4-2(steps 8 10 8)");
    expect(content(hinted(example, "begin"))).toBe("5+3*4-2(begin +3=8)");
    expect(content(hinted(example, "begin", { share: 0.85 }))).toBe("5+3*4-2(begin +3=8\n*4=10\n-2=8)");
    expect(content(hinted(example, "solution", { solution: "#8" }))).toBe("5+3*4-2(solution #8)");
    expect(content(choice(example, "#8", "#7"))).toBe("5+3*4-2(A #8)(B #7)");
    expect(() => hinted({ ...example, privileged: {} }, "steps")).toThrow("problem p: it has no privileged steps; pose problems of the task chain");
  });

  it("cut the beginning of a solution at the end of a line, never within, and the longer begins with the shorter", () => {
    const solution = "so+3=8\nso*4=10\n#10";
    expect([0, 0.1, 0.33, 0.35, 0.77, 0.8, 1].map((part) => beginningOf(solution, part))).toEqual([
      "",
      "",
      "",
      "so+3=8",
      "so+3=8",
      "so+3=8\nso*4=10",
      solution,
    ]);
    for (const part of [0, 0.3, 0.6, 0.9, 1]) expect(solution.startsWith(beginningOf(solution, part))).toBe(true);
  });

  it("are posed at their weights, keyed by the chain alone, with the answer and the steps for training", () => {
    for (const form of formNames) near(of(form).length / problems.length, 1 / 8, problems.length);
    for (const problem of problems.slice(0, 300)) {
      const plain = text(problem).replace(/\([\s\S]*/, "");
      expect(problem.key).toBe(problemKey("chain", plain));
      expect(String(problem.privileged?.steps).split(" ").at(-1)).toBe(problem.privileged?.answer);
      expect(readAsked(text(problem))?.form).toBe(problem.tags?.form);
      expect(task.tokenizer?.render(problem.prompt, { addGenerationPrompt: true }).length).toBeLessThan(128 - (problem.tags?.form === "judge" ? 2 : 41));
    }
    const plainly = chain({ modulus: 7, forms: {} }).problems("train", 50, 4);
    for (const problem of plainly) expect([problem.tags?.form, problem.key]).toEqual(["plain", problemKey("chain", text(problem))]);
  });

  it("are read back as what they tell", () => {
    expect(readAsked("5+3(answer 1)")).toMatchObject({ form: "answer", values: [1], answer: 1 });
    expect(readAsked("5+3*2(steps 1 2)")).toMatchObject({ form: "steps", values: [1, 2], answer: 2 });
    expect(readAsked("5+3*2(begin so+3=1)")).toMatchObject({ form: "begin", values: [1] });
    expect(readAsked("5+3*2(begin )")).toMatchObject({ form: "begin", values: [undefined] });
    expect(readAsked("5+3(solution +3=1\n#1)")).toMatchObject({ form: "solution", values: [1, undefined], answer: 1 });
    expect(readAsked("5+3(A #1)(B #2)")).toMatchObject({ form: "judge", choices: ["#1", "#2"] });
    for (const bad of ["", "(right)", "5+3(maybe)", "5+3(A #1)", "5+3)", "5+3(right", "x(right)"]) expect(readAsked(bad)).toBe(undefined);
  });

  it("help: solutions are right far more often with steps or a solution, a little with the answer or a beginning, not with a claim", () => {
    const strict = chain({ ...options, strict: true });
    const right = Object.fromEntries(
      formNames.map((form) => [form, share(of(form), (problem) => judged(strict, problem, solve(strict, problem)).kind === "accept")]),
    );
    expect(right.steps).toBeGreaterThan(0.75);
    expect(right.solution).toBeGreaterThan(0.75);
    expect(right.begin).toBeGreaterThan((right.plain as number) + 0.05);
    for (const claim of ["right", "wrong"]) expect(Math.abs((right[claim] as number) - (right.plain as number))).toBeLessThan(0.12);
    const answered = share(of("answer"), (problem) => judged(task, problem, solve(task, problem)).kind === "accept");
    expect(answered).toBeGreaterThan(0.9);
    expect(right.answer).toBeLessThan(0.6);
  });

  it("ask for choices that are one right and one wrong answer, in both orders alike", () => {
    const asked = of("judge");
    near(
      share(asked, (problem) => problem.reference.answer === "A"),
      0.5,
      asked.length,
    );
    for (const problem of asked) {
      const [first, second] = readAsked(text(problem))?.choices ?? ["", ""];
      const ends = [first, second].map((solution) => solution.endsWith(`#${problem.privileged?.answer}`));
      expect(ends).toEqual(problem.reference.answer === "A" ? [true, false] : [false, true]);
      expect(solve(task, problem)).toBe(problem.reference.answer);
      expect(task.tokenizer?.encode(solve(task, problem)).length).toBe(1);
    }
    const [problem] = asked as [Problem];
    const [good, bad] = problem.reference.answer === "A" ? ["A", "B"] : ["B", "A"];
    expect([good, bad, "", "AB", `${good}\n`, "a", "#1"].map((response) => outcome(judged(task, problem, response as string)))).toEqual([
      ...["accept", "wrong", "no-answer", "format", "format", "format", "format"],
    ]);
    expect(outcome(judged(task, problem, good as string, true))).toBe("truncated");
    expect([task, chain({ modulus: 7 })].map(({ verifier }) => verifier.checkReference("A"))).toEqual([undefined, "a whole number below 7 as text is needed"]);
  });

  it("have templates that say the same as the helpers", () => {
    const problem = of("plain")[0] as Problem;
    const values: { readonly [name: string]: string } = { problem: text(problem), steps: problem.privileged?.steps as string };
    expect(forms.steps.replace(/\{(\w+)\}/g, (_, name: string) => values[name] as string)).toBe(hinted(problem, "steps")[0]?.content);
  });

  it("leave the flawless solution as it is", () => {
    const problem = of("plain")[0] as Problem;
    expect(workedSolution(chainOf(problem), { modulus: 7, slips: 0, fillers: true })).toBe(problem.privileged?.solution);
  });
});
