/** What docs/data.md says to type and to write, typed and written. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadTask } from "../src/tasks/catalogue.js";
import { judge } from "../src/verify/contract.js";
import { repository } from "./paths.js";
import { type Ran, run } from "./run.js";

const page = readFileSync(join(repository, "docs", "data.md"), "utf8");
/** Those on a policy that the reader is to have are not run. */
const commands = page.split("\n").filter((line) => line.startsWith("    touchstone ") && !line.includes("my-model"));
const programs = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, text]) => text as string);
const folder = mkdtempSync(join(tmpdir(), "touchstone-data-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A command as a shell reads it, with the source as the program, and runs in a folder of the test. */
const typed = (command: string): Promise<Ran> => {
  const text = command
    .trim()
    .replaceAll("runs/", `${folder}/`)
    .replace(/^touchstone/, `"${process.execPath}" --import tsx src/cli/main.ts`);
  return run("sh", ["-c", text], { cwd: repository });
};

describe.skipIf(process.platform === "win32")("GSM8K by options", () => {
  let ran: Ran[];
  beforeAll(async () => {
    ran = [];
    for (const command of commands) ran.push(await typed(command));
  });

  it("is read whole, and a policy of its letters made, a run shown, and answers judged", () => {
    expect(ran.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(ran[0]?.out).toMatch(/^Saved .*letters after 5 steps/);
    // 2,704 lines in two parts; the answers are what stands behind ####.
    expect(ran[1]?.out).toMatch(/[\d,]+ parameters, 2454 problems/);
    expect(ran[1]?.out).toMatch(/ {2}(reject \([a-z-]+\)|accept), \d+ tokens, \d+ trained, ended by (length|eos)/);
    expect(ran[2]?.out.match(/^problem [0-9a-f]{20}, reference ".*\\n#### -?[\d,.]+"$/gm)).toHaveLength(2);
    expect(ran[2]?.out).toMatch(/ {2}0: reject \((no-answer|truncated|wrong|unreadable|ambiguous)\), /);
  });
});

describe("GSM8K as a task", () => {
  it("accepts all its worked solutions, and no other number", async () => {
    const [task] = programs;
    const file = join(folder, "gsm8k.ts");
    writeFileSync(file, (task as string).replace('"test/data', `"${repository}/test/data`));
    const gsm8k = await loadTask(file);
    const problems = (["train", "eval"] as const).flatMap((split) => gsm8k.problems(split, gsm8k.size(split), 0));
    expect(problems.length).toBe(2704);
    const outcomes = new Map<string, number>();
    for (const problem of problems) {
      const solution = String(problem.privileged?.solution);
      for (const text of [solution, solution.replace(/#### .*$/, "#### 1234567"), ""]) {
        const { kind } = await judge(gsm8k.verifier, problem, text);
        const name = `${kind} ${text === solution ? "solution" : "other"}`;
        outcomes.set(name, (outcomes.get(name) ?? 0) + 1);
      }
    }
    expect(Object.fromEntries(outcomes)).toEqual({ "accept solution": 2704, "reject other": 2 * 2704 });
  });
});
