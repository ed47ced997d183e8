import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { scratch } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";

const verify = (...args: string[]) => run(process.execPath, [...command, "verify", ...args], { cwd: repository });
const answer = (reference: string, response: string): string[] => ["--reference", reference, "--response", response];

describe("touchstone verify", () => {
  it("explains a verdict: what was found, how both sides were read, which rule decided", async () => {
    const { out, code } = await verify("math", ...answer("\\frac12", "so it is \\boxed{0.5}."));
    expect(code).toBe(0);
    const lines = out.trimEnd().split("\n");
    expect(lines[0]).toBe("accept");
    expect(lines.slice(1).map((line) => line.trim().split(/ {2,}/)[0])).toEqual([
      "reference",
      "reference read as",
      "answer found",
      "found by",
      "characters",
      "answer read as",
      "decided by",
      "why",
      "policies (hash)",
    ]);
    expect(out).toMatch(/^ {2}characters +9 to 20: \\boxed\{0\.5\}$/m);
    expect(out).toMatch(/^ {2}found by +box$/m);
  });

  it("gives one verdict as JSON, of any verifier", async () => {
    const { out } = await verify("number", ...answer("18", "It is 17 apples"), "--json");
    expect(JSON.parse(out)).toEqual({
      row: 1,
      verdict: "reject",
      reason: "wrong",
      evidence: { expected: "18", text: "17", read: "17" },
      ms: expect.any(Number),
    });
    const choice = await verify("choice", ...answer('{"answer": "B", "choices": ["1", "2"]}', "The answer is 2."), "--json");
    expect(JSON.parse(choice.out)).toMatchObject({ verdict: "accept", evidence: { read: "B" } });
  });

  it("judges as a task of one's own does, by its file", async () => {
    const file = join(scratch(), "task.ts");
    writeFileSync(
      file,
      `import { defineTask } from "touchstone-rl";
export default defineTask({
  name: "ends",
  draw: () => ({ prompt: "say 5", answer: "5" }),
  verify: ({ response, reference }) => response.endsWith(\`#\${reference}\`),
});
`,
    );
    expect((await verify(file, ...answer("5", "so #5"))).out.split("\n")[0]).toBe("accept");
    expect((await verify(file, ...answer("5", "so #6"))).out.split("\n")[0]).toBe("reject (wrong)");
  });

  it("judges the rows of a file as they come, and sums up where they have labels", async () => {
    const rows = [
      { gold: "1/2", pred: "0.5", expected: true, category: "fraction", kind: "answer" },
      { gold: "7", pred: "<think>\\boxed{8}</think> The answer is 7.", expected: true, category: "thinking", id: "t" },
      { gold: "7", pred: "so \\boxed{8}", expected: true, category: "thinking", kind: "response" },
      { gold: "20\\%", pred: "20", expected: false, policy: { "percent-number": "strict" } },
      { gold: "\\frac{", pred: "1", expected: false },
    ];
    const file = join(scratch(), "cases.jsonl");
    writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const { out, code } = await verify("math", "--file", file, "--json");
    expect(code).toBe(0);
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { [key: string]: unknown });
    expect(lines.slice(0, -1).map(({ row, verdict, right }) => [row, verdict, right])).toEqual([
      [1, "accept", true],
      [2, "accept", true],
      [3, "reject", false],
      [4, "reject", true],
      [5, "unscored", true],
    ]);
    expect(lines[1]).toMatchObject({ id: "t", evidence: { rule: "phrase" } });
    expect(lines.at(-1)).toEqual({
      n: 5,
      false_accepts: 0,
      false_rejects: 1,
      unscored: 1,
      by_category: {
        fraction: { n: 1, false_accepts: 0, false_rejects: 0 },
        thinking: { n: 2, false_accepts: 0, false_rejects: 1 },
        none: { n: 2, false_accepts: 0, false_rejects: 0 },
      },
      median_ms: expect.any(Number),
      p99_ms: expect.any(Number),
    });
    const text = await verify("math", "--file", file);
    expect(text.out).toContain("\n5 labelled, 0 accepted wrongly, 1 rejected wrongly, 1 unscored; ");
    expect(text.out).toMatch(/^3: reject \(wrong\).* {2}expected accept$/m);
  });

  it("tells a reference that cannot be read, by its exit code too", async () => {
    const { out, code } = await verify("math", ...answer("\\frac{", "\\boxed{1}"));
    expect(code).toBe(1);
    expect(out).toMatch(/^unscored \(bad-reference\)\n/);
  });

  it.each<[string[], string]>([
    [["math"], "option --reference: it is missing; give --reference and --response, or --file"],
    [["math", "--reference", "1"], "option --response: it is missing; give --reference and --response, or --file"],
    [["math", "--file", "x.jsonl", "--response", "1"], "option --response: a file has its own; leave it out, or --file"],
    [["mth", ...answer("1", "1")], 'verifier: there is no verifier "mth"; did you mean "math"?'],
    [["math", ...answer("1", "1"), "--options", '{"kind":"box"}'], "math(), option kind: "],
  ])("refuses %j", async (args, says) => {
    const { err, code } = await verify(...args);
    expect(code).toBe(2);
    expect(err).toContain(says);
  });
});
