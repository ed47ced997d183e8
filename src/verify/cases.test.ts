import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratch } from "../../test/support/tabular.js";
import { accept, unscored } from "../core/verdict.js";
import { type JudgedCase, judgeCases, readCases, summaryOf } from "./cases.js";

function fileOf(lines: readonly string[]): string {
  const file = join(scratch(), "cases.jsonl");
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

async function judged(lines: readonly string[], name: string, options = {}): Promise<JudgedCase[]> {
  const found: JudgedCase[] = [];
  for await (const each of judgeCases(await readCases(fileOf(lines)), name, options)) found.push(each);
  return found;
}

describe("labelled cases", () => {
  it("are judged in order, and counted by category", async () => {
    const all = await judged(
      [
        '{"gold":"18","pred":"18.0","expected":true,"category":"spelling","id":"a"}',
        '{"gold":18,"pred":"It is 17","expected":true,"category":"wrong label"}',
        '{"gold":"18","pred":"It is 18","expected":false,"note":"passed over"}',
        '{"gold":"none","pred":"18","expected":false}',
        '{"gold":"18","pred":19}',
      ],
      "number",
    );
    expect(all.map(({ case: { row }, verdict }) => [row, verdict.kind])).toEqual([
      [1, "accept"],
      [2, "reject"],
      [3, "accept"],
      [4, "unscored"],
      [5, "reject"],
    ]);
    expect(summaryOf(all)).toMatchObject({
      n: 4,
      false_accepts: 1,
      false_rejects: 1,
      unscored: 1,
      by_category: {
        spelling: { n: 1, false_accepts: 0, false_rejects: 0 },
        "wrong label": { n: 1, false_accepts: 0, false_rejects: 1 },
        none: { n: 2, false_accepts: 1, false_rejects: 0 },
      },
    });
  });

  it("have no summary without labels, and times that are of the verifier", () => {
    const one = (ms: number, expected?: boolean): JudgedCase => ({
      case: { row: 1, gold: "1", pred: "1", ...(expected !== undefined && { expected }) },
      verdict: accept(),
      ms,
    });
    expect(summaryOf([one(1)])).toBe(undefined);
    expect(summaryOf([3, 1, 2].map((ms) => one(ms, true)))).toMatchObject({ median_ms: 2, p99_ms: 3 });
    expect(summaryOf([{ ...one(1, true), verdict: unscored("starved") }])).toMatchObject({ false_rejects: 1, unscored: 1 });
  });

  it("are refused with every bad row by number", async () => {
    const file = fileOf(['{"gold":"1"}', '{"gold":"1","pred":true}', '{"gold":"1","pred":"1","expected":"yes"}', '{"gold":"1","pred":"1","kind":"box"}', "{"]);
    await expect(readCases(file)).rejects.toThrow(
      /5 of 5 lines cannot be used \(line 1: it has no column "pred" .*line 2: its pred is true, not a text; line 3: its expected is .*, not true or false; line 4: its kind is .*, not "response" or "answer"; line 5, column/,
    );
  });

  it("of a verifier without policies cannot set any", async () => {
    await expect(judged(['{"gold":"1","pred":"1","policy":{"list-order":"any"}}'], "number")).rejects.toThrow(
      "row 1: it has values of policies, and number has none",
    );
    expect((await judged(['{"gold":"1","pred":"1","policy":"list-order"}'], "number")).map(({ verdict }) => verdict.kind)).toEqual(["accept"]);
  });

  it("are judged by a function of one's own", async () => {
    const file = join(scratch(), "reward.mjs");
    writeFileSync(file, "export default (problem, response) => (response === String(problem.reference) ? 1 : problem.prompt[0].content.length / 10);\n");
    const all = await judged(['{"gold":"1","pred":"1"}', '{"gold":"1","pred":"2","problem":"12345"}'], file);
    expect(all.map(({ verdict }) => verdict)).toMatchObject([{ kind: "accept" }, { kind: "partial", score: 0.5 }]);
  });
});
