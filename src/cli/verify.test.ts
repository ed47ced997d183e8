import { describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";

const verify = (...args: string[]) => run(process.execPath, ["--import", "tsx", "src/cli/main.ts", "verify", ...args], { cwd: repository });
const answer = (reference: string, response: string): string[] => ["--reference", reference, "--response", response];

describe("touchstone verify", () => {
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

  it.each<[string[], string]>([
    [["number"], "option --reference: it is missing; give --reference and --response, or --file"],
    [["number", "--reference", "1"], "option --response: it is missing; give --reference and --response, or --file"],
    [["number", "--file", "x.jsonl", "--response", "1"], "option --response: a file has its own; leave it out, or --file"],
    [["numbr", ...answer("1", "1")], 'verifier: there is no verifier "numbr"; did you mean "number"?'],
    [["number", ...answer("1", "1"), "--options", '{"percnt":"refuse"}'], "number(), option percnt: "],
  ])("refuses %j", async (args, says) => {
    const { err, code } = await verify(...args);
    expect(code).toBe(2);
    expect(err).toContain(says);
  });
});
