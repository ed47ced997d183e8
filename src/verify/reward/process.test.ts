/** Rewards in real processes: programs that answer, die, hang, speak out of turn, and Python functions. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";
import { rewardOf, type Verdict } from "../../core/verdict.js";
import { namedVerifier } from "../catalogue.js";
import { judge, type Verifier } from "../contract.js";
import { startPool } from "../pool.js";
import { refuseUnlessTotal } from "../probe.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-reward-"));
const opened: Verifier[] = [];
afterEach(async () => {
  for (const verifier of opened.splice(0)) await verifier.external?.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const problem: Problem = {
  key: "p",
  prompt: [{ role: "user", content: "1+1=" }],
  reference: { state: "gold", answer: "2", version: 0 },
  tags: { data_source: "sums" },
  privileged: { level: 3, extra_info: { index: 7 } },
};
const write = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
async function open(name: string, options: Json = {}): Promise<Verifier> {
  const { verifier } = await namedVerifier(name, options);
  opened.push(verifier);
  return verifier;
}
const all = (verifier: Verifier, responses: readonly string[]): Promise<Verdict[]> =>
  Promise.all(responses.map((response) => judge(verifier, problem, response)));
const brief = (verdicts: readonly Verdict[]): (number | string)[] =>
  verdicts.map((verdict) => (verdict.kind === "unscored" ? verdict.reason : (rewardOf(verdict) as number)));

/** A program in JavaScript: `answer(items, id, line)` gives the results of a batch, or writes by itself and gives nothing. */
let programs = 0;
function program(body: string): string {
  const file = write(
    `program-${programs++}.mjs`,
    `import { createInterface } from "node:readline"; import { appendFileSync } from "node:fs";
const log = (text) => appendFileSync(${JSON.stringify(join(folder, `log-${programs}`))}, text + "\\n");
log("start");
const say = (value) => process.stdout.write((typeof value === "string" ? value : JSON.stringify(value)) + "\\n");
const answer = (items, id) => { ${body} };
for await (const line of createInterface({ input: process.stdin })) { const { id, items } = JSON.parse(line); log("batch " + items.length); const results = answer(items, id); if (results) say({ id, results }); }`,
  );
  return `command:"${process.execPath}" "${file}"`;
}
const logOf = (): string[] =>
  readFileSync(join(folder, `log-${programs}`), "utf8")
    .trim()
    .split("\n");

describe("a program", () => {
  it("gets what waits together as batches, and gives each answer its own result", async () => {
    const verifier = await open(program("return items.map(({ response, problem }) => Number(response) / Number(problem.reference));"), {
      range: [0, 100],
      batch: 40,
    });
    const responses = Array.from({ length: 100 }, (_, i) => String(2 * i));
    expect(brief(await all(verifier, responses))).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(logOf()).toEqual(["start", "batch 40", "batch 40", "batch 20"]);
    expect(verifier.external?.faults).toBe(0);
  });

  it("sees the problem with its reference, tags and further columns", async () => {
    const verifier = await open(program("return items.map((item) => ({ reward: 1, seen: item }));"));
    const [verdict] = await all(verifier, ["x"]);
    expect(verdict?.evidence?.seen).toEqual({
      problem: { key: "p", prompt: problem.prompt, reference: "2", tags: { data_source: "sums" }, info: { level: 3, extra_info: { index: 7 } } },
      response: "x",
      truncated: false,
    });
  });

  it("that one answer kills loses that answer alone, and is started again", async () => {
    const verifier = await open(program('if (items.some(({ response }) => response === "bomb")) process.exit(3); return items.map(() => 1);'));
    const responses = Array.from({ length: 16 }, (_, i) => (i === 5 ? "bomb" : "fine"));
    const verdicts = await all(verifier, responses);
    expect(brief(verdicts)).toEqual(responses.map((response) => (response === "bomb" ? "crashed" : 1)));
    expect(verdicts[5]?.evidence?.message).toContain("it ended with code 3");
    expect(verifier.external?.faults).toBe(1);
    expect(brief(await all(verifier, ["fine"]))).toEqual([1]);
  });

  it("that one answer keeps busy for ever is killed with its children at the deadline", async () => {
    const marker = join(folder, "still-there");
    const body = `if (items.some(({ response }) => response === "loop")) for (;;); return items.map(() => 0.5);`;
    // The shell starts a child of its own, which would leave a mark if it lived on.
    const verifier = await open(`command:(sleep 3; touch "${marker}") & ${program(body).replace("command:", "")}`, { deadline_ms: 1200 });
    expect(brief(await all(verifier, ["a", "loop", "b"]))).toEqual([0.5, "timeout", 0.5]);
    await verifier.external?.close();
    await new Promise((resolve) => setTimeout(resolve, 3500));
    expect(existsSync(marker)).toBe(false);
  });

  it("that never starts well is given up on after so many failures in a row", async () => {
    const verifier = await open(program("process.exit(1);"), { restarts: 2, batch: 1 });
    expect(brief(await all(verifier, ["a", "b", "c", "d", "e"]))).toEqual(["crashed", "crashed", "crashed", "gone", "gone"]);
    expect(logOf().filter((line) => line === "start")).toHaveLength(3);
  });

  it.each([
    ["writes something else", 'say("debug: 12"); return items.map(() => 1);', "malformed"],
    ["gives too few results", "return items.slice(1).map(() => 1);", "malformed"],
    ["answers another batch", "say({ id: id + 1, results: items.map(() => 1) });", "malformed"],
    ["gives results of no known form", 'return items.map(() => "good");', "malformed"],
    ["says that it failed", 'say({ id, error: "no model" });', "failed"],
    ["gives null", "return items.map(() => null);", "no-score"],
    ["gives what is no number", "return items.map(() => ({ reward: 'NaN' }));", "malformed"],
  ])("that %s leaves answers unscored", async (_, body, reason) => {
    const verifier = await open(program(body));
    expect(brief(await all(verifier, ["a", "b"]))).toEqual([reason, reason]);
  });

  it("that speaks out of turn is not taken at its word", async () => {
    // Two lines for one batch: the second would be taken for the next one's.
    const verifier = await open(
      program("const results = items.map(({ response }) => Number(response)); say({ id, results }); say({ id: id + 1, results: [1] });"),
    );
    expect(brief(await all(verifier, ["0.25"]))).toEqual([0.25]);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(brief(await all(verifier, ["0.75"]))).not.toEqual([1]);
  });

  it("that is not there is told before a run begins", async () => {
    const verifier = await open("command:no-such-program --flag");
    await expect(refuseUnlessTotal(problem, verifier)).rejects.toThrow(
      /^verifier command: it fails on an empty response \(the command no-such-program --flag: it ended with code 127 .*\); let it give/,
    );
    await expect(namedVerifier("command: ")).rejects.toThrow("verifier: no command stands behind command:; write command:PROGRAM ARGUMENTS");
    await expect(namedVerifier("command:cat", { bach: 1 })).rejects.toThrow('verifier, option bach: there is no such option; did you mean "batch"?');
    await expect(namedVerifier("command:cat", { range: [1, 0] })).rejects.toThrow(/option range: .*the first number must be below the second/);
  });

  it("works through a pool, which ends it; and keeps no program from ending", async () => {
    const verifier = await open(program("return items.map(() => 1);"));
    const pool = await startPool({ verifier, workers: 3 });
    expect(await pool.judge(problem, "x", false)).toMatchObject({ kind: "accept", elapsedMs: expect.any(Number) });
    expect(pool.starved).toBe(0);
    await pool.close();
    expect(brief(await all(verifier, ["again"]))).toEqual([1]);
  });
});

describe("a Python function", () => {
  const python = (name: string, text: string): string => `python:${write(name, text)}:reward`;

  it("of verl's form gets data source, solution, ground truth and extra info", async () => {
    const verifier = await open(
      python(
        "verl.py",
        `def reward(data_source, solution_str, ground_truth, extra_info=None):
    print("this goes to standard error")
    return {"score": float(solution_str == ground_truth), "acc": solution_str == ground_truth, "of": f"{data_source}/{extra_info['index']}"}
`,
      ),
    );
    expect(await all(verifier, ["2", "3"])).toEqual([
      { kind: "accept", evidence: { acc: true, of: "sums/7" } },
      { kind: "reject", reason: "wrong", evidence: { acc: false, of: "sums/7" } },
    ]);
  });

  it("of TRL's form gets the batch, with columns by name and texts or messages", async () => {
    const text = `def reward(prompts, completions, answer, level, **kwargs):
    first = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    assert len(prompts) == len(completions) and "data_source" in kwargs
    return [None if c == "skip" else (level[i] if c == answer[i] else -1) for i, c in enumerate(first)]
`;
    for (const completions of ["text", "messages"]) {
      const verifier = await open(python("trl.py", text), { completions });
      expect(brief(await all(verifier, ["2", "3", "skip"]))).toEqual([3, -1, "no-score"]);
    }
  });

  it("of a plain form, async too, loses only the answers on which it raises, and what is not finite", async () => {
    const verifier = await open(
      python(
        "plain.py",
        `import asyncio, math
async def reward(problem, response):
    await asyncio.sleep(0)
    if response == "raise":
        raise ValueError("cannot read it")
    return {"nan": math.nan, "inf": {"reward": math.inf}}.get(response, 0.5)
`,
      ),
    );
    const verdicts = await all(verifier, ["a", "raise", "nan", "inf", "b"]);
    expect(brief(verdicts)).toEqual([0.5, "exception", "not-finite", "not-finite", 0.5]);
    expect(verdicts[1]?.evidence?.message).toBe("ValueError: cannot read it (line 5 of plain.py)");
    expect(verifier.external?.faults).toBe(0);
  });

  it("of TRL's form that raises on one answer loses that one alone", async () => {
    const verifier = await open(python("raises.py", `def reward(completions, **kwargs):\n    return [1 / len(c) for c in completions]\n`));
    expect(brief(await all(verifier, ["ab", "", "abcd", "a"]))).toEqual([0.5, "failed", 0.25, 1]);
  });

  it("that cannot be had is told before a run begins, each in a sentence", async () => {
    const good = python("good.py", "def reward(problem, response):\n    return 1\n");
    await expect(namedVerifier(good, { python: "python-of-nowhere" })).rejects.toThrow(
      "verifier: there is no python-of-nowhere on the PATH, and a Python reward needs one; install Python 3, or name the interpreter by the option python",
    );
    await expect(namedVerifier("python:gone.py:reward")).rejects.toThrow("verifier: there is no file gone.py; check the path");
    await expect(namedVerifier("python:reward.py")).rejects.toThrow('verifier: "python:reward.py" names no function of a file; write python:FILE.py:FUNCTION');
    const wrong = await open(good.replace(/reward$/, "rewrad"));
    await expect(refuseUnlessTotal(problem, wrong)).rejects.toThrow(/it ended with code 1 \(.*good\.py has no function rewrad\)/);
    const broken = await open(python("broken.py", "import no_such_module\n"));
    await expect(refuseUnlessTotal(problem, broken)).rejects.toThrow(/ModuleNotFoundError: No module named 'no_such_module'/);
    await expect(refuseUnlessTotal(problem, await open(good))).resolves.toBeUndefined();
  });
});
