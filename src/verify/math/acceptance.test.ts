/** What the verifier is held to: the labelled cases of test/cases, the answers of MATH-500 in twenty settings, and neighbours of whole numbers. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../../test/paths.js";
import type { Problem } from "../../core/problem.js";
import { type Case, type JudgedCase, judgeCases, readCases, summaryOf } from "../cases.js";
import { math } from "./math.js";

const problem: Problem = { key: "p", prompt: [], reference: { state: "gold", answer: "", version: 0 } };
const cases = (name: string): Promise<Case[]> => readCases(join(repository, "test", "cases", name));

async function judged(all: readonly Case[]): Promise<JudgedCase[]> {
  const found: JudgedCase[] = [];
  for await (const each of judgeCases(all, "math", {})) found.push(each);
  return found;
}

const wrong = (all: readonly JudgedCase[], expected: boolean) =>
  all
    .filter(({ case: one, verdict }) => one.expected === expected && (verdict.kind === "accept") !== expected)
    .map(({ case: one }) => [one.id, one.gold, one.pred]);

describe("labelled cases", () => {
  it("of public reports: none is accepted wrongly, and at most two are rejected wrongly", async () => {
    const disputed = new Set(
      readFileSync(join(repository, "test", "cases", "math-bug-reports.jsonl"), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { id: string; disputed?: string })
        .filter((row) => row.disputed !== undefined)
        .map(({ id }) => id),
    );
    const all = await judged((await cases("math-bug-reports.jsonl")).filter(({ id, policy }) => policy === undefined && !disputed.has(id as string)));
    expect(all.length).toBe(68);
    expect(wrong(all, false)).toEqual([]);
    expect(wrong(all, true).slice(2)).toEqual([]);
  });

  it("made by rewriting and mutation: none is accepted wrongly, and at most 1 % are rejected wrongly", async () => {
    const all = await judged(await cases("math-metamorphic-sample.jsonl"));
    expect(all.length).toBe(600);
    expect(wrong(all, false)).toEqual([]);
    expect(wrong(all, true).slice(6)).toEqual([]);
    expect(summaryOf(all)).toMatchObject({ n: 600 });
  });
});

const settings: { readonly [name: string]: (answer: string) => string } = {
  bare: (a) => a,
  dollars: (a) => `$${a}$`,
  "double dollars": (a) => `$$${a}$$`,
  "round brackets": (a) => `\\(${a}\\)`,
  "square brackets": (a) => `\\[${a}\\]`,
  box: (a) => `\\boxed{${a}}`,
  "box with blanks": (a) => `\\boxed{ ${a} }`,
  "box with a full stop": (a) => `\\boxed{${a}.}`,
  fbox: (a) => `\\fbox{${a}}`,
  "full stop in dollars": (a) => `$${a}.$`,
  "full stop": (a) => `${a}.`,
  "lines in dollars": (a) => `$\n${a}\n$`,
  "newline behind": (a) => `${a}\n`,
  "blanks around": (a) => `  ${a}  `,
  "thin spaces": (a) => `$\\,${a}\\,$`,
  braces: (a) => `\${${a}}$`,
  displaystyle: (a) => `$\\displaystyle ${a}$`,
  dfrac: (a) => a.replaceAll("\\frac", "\\dfrac"),
  tfrac: (a) => a.replaceAll("\\frac", "\\tfrac"),
  bold: (a) => `**${a}**`,
  sentence: (a) => `The answer is ${a}.`,
};

const answers = readFileSync(join(repository, "test", "data", "math500.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => (JSON.parse(line) as { answer: string }).answer);

describe("the answers of MATH-500", () => {
  const verifier = math();
  it("are all references", () => {
    expect(answers.length).toBe(500);
    expect(answers.filter((answer) => verifier.checkReference(answer) !== undefined)).toEqual([]);
  });

  it.each(Object.entries(settings))("set by %s are accepted as responses, as answers and without a word of what they are", (_, set) => {
    for (const kind of ["response", "answer", "auto"] as const) {
      const judge = math({ kind });
      const rejected = answers.filter(
        (answer) =>
          judge.verify({ reference: answer, response: set(answer), problem, truncated: false }) instanceof Promise ||
          (judge.verify({ reference: answer, response: set(answer), problem, truncated: false }) as { kind: string }).kind !== "accept",
      );
      expect(rejected.slice(2)).toEqual([]);
    }
  });
});

describe("whole numbers", () => {
  const verifier = math({ kind: "answer" });
  const accepts = (reference: string, response: string): boolean =>
    (verifier.verify({ reference, response, problem, truncated: false }) as { kind: string }).kind === "accept";

  it("are never their neighbours, whatever their size", () => {
    for (let digits = 1; digits <= 60; digits++) {
      for (const lead of [1n, 7n, 9n]) {
        const value = lead * 10n ** BigInt(digits - 1) + BigInt(digits);
        for (const signed of [value, -value]) {
          expect(accepts(String(signed), String(signed))).toBe(true);
          for (const step of [1n, -1n, 10n ** BigInt(digits - 1)]) expect(accepts(String(signed), String(signed + step))).toBe(false);
        }
      }
    }
  });
});
