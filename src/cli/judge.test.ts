/** `--verifier judge` where a user would give it: train, eval, verify and serve, with a judge that knows the task's rule. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type StubServer, stubServer } from "../../test/support/stub-server.js";
import { tablePolicy } from "../../test/support/tabular.js";
import { RunReader } from "../train/store/reader.js";
import { runProgram } from "./program.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-judge-"));
const data = join(folder, "problems.jsonl");
let model: string;
let server: StubServer;
/** Each third request fails while it is set. */
let shaky = false;

beforeAll(async () => {
  model = await tablePolicy();
  writeFileSync(data, Array.from({ length: 8 }, (_, i) => `${JSON.stringify({ prompt: String(10 + i), answer: String((i + 1) % 10) })}\n`).join(""));
  server = await stubServer(({ body, number }) => {
    const [, answer, right] = /answer=(.*);reference=(\d)/.exec((JSON.parse(body) as { messages: { content: string }[] }).messages[0]?.content as string) ?? [];
    if (shaky && number % 3 === 0) return { status: 500 };
    return {
      afterMs: 10,
      body: {
        choices: [
          { message: { content: JSON.stringify({ grade: answer === right ? 2 : answer?.startsWith(right as string) ? 1 : 0 }) }, finish_reason: "stop" },
        ],
      },
    };
  });
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => {
  process.exitCode = 0;
});

const options = (): string =>
  JSON.stringify({
    base_url: `${server.url}/v1`,
    model: "grader",
    prompt: "answer={{response}};reference={{reference}}",
    range: [0, 2],
    field: "grade",
    retries: 0,
  });

async function printed(...args: string[]): Promise<string> {
  let out = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += text;
    return true;
  });
  try {
    await runProgram(args);
  } finally {
    write.mockRestore();
  }
  return out;
}

const grade = (text: string, right: string): number => (text === right ? 1 : text.startsWith(right) ? 0.5 : 0);

describe("a judge", () => {
  it("rewards a run, leaves out what it could not judge, and is told in the run's notes", async () => {
    shaky = true;
    const out = join(folder, "run");
    const small = ["--set", "engine.name=table", "--steps", "3", "--problems", "4", "--group", "4", "--max-tokens", "3", "--lr", "0.3"];
    await printed("train", "--model", model, "--data", data, "--verifier", "judge", "--verifier-options", options(), ...small, "--out", out, "--json");
    shaky = false;
    const reader = RunReader.open(out);
    const [start, ...events] = reader.events();
    expect(start?.data.notes).toEqual([expect.stringMatching(/^answers are judged outside of this program \(judge\): /)]);
    let [scored, unscored] = [0, 0];
    for (const step of [1, 2, 3]) {
      for (const { group, rollouts } of await reader.groups(step)) {
        for (const { trajectory, numbers } of rollouts) {
          const { verdict } = trajectory;
          if (verdict.kind === "unscored") {
            unscored++;
            expect(verdict.reason).toBe("failed");
            expect(numbers.reward).toBeNull();
          } else {
            scored++;
            expect(numbers.reward).toBeCloseTo(grade(trajectory.text, String(group.problem.reference.answer)), 12);
          }
        }
      }
    }
    expect([scored > 20, unscored > 5, scored + unscored]).toEqual([true, true, 48]);
    expect(events.filter(({ kind }) => kind === "step")).toHaveLength(3);
    expect(readFileSync(join(out, "run.json"), "utf8")).toContain("answer={{response}}");
  });

  it("measures answers of a file, many at once, and says what it saw", async () => {
    const cases = join(folder, "cases.jsonl");
    writeFileSync(
      cases,
      Array.from(
        { length: 40 },
        (_, i) => `${JSON.stringify({ gold: String(i % 10), pred: i % 4 === 0 ? "x" : String(i % 10), expected: i % 4 !== 0 })}\n`,
      ).join(""),
    );
    const lines = (await printed("verify", "judge", "--options", options(), "--file", cases, "--json")).trim().split("\n");
    expect(JSON.parse(lines.at(-1) as string)).toMatchObject({ n: 40, false_accepts: 0, false_rejects: 0, unscored: 0 });
    expect(lines.slice(0, -1).map((line) => JSON.parse(line).row)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    expect(server.most).toBeGreaterThan(4);
    const one = await printed("verify", "judge", "--options", options(), "--reference", "4", "--response", "42");
    expect(one).toMatch(/partial/);
    expect(one).toContain('{"grade":1}');
  });

  it("that is not there is refused before a run writes anything", async () => {
    const gone = JSON.stringify({ base_url: "http://127.0.0.1:9/v1", model: "grader", retries: 0 });
    const error = await runProgram([
      "train",
      "--model",
      model,
      "--data",
      data,
      "--verifier",
      "judge",
      "--verifier-options",
      gone,
      "--set",
      "engine.name=table",
      "--steps",
      "1",
      "--max-tokens",
      "3",
      "--problems",
      "4",
      "--out",
      join(folder, "none"),
    ]).catch((thrown: unknown) => thrown);
    expect((error as Error).message).toMatch(
      /^verifier judge: it cannot be reached \(judge grader at http:\/\/127\.0\.0\.1:9: .*\); start the server, or correct its address$/,
    );
    expect(() => readFileSync(join(folder, "none", "run.json"))).toThrow();
  });
});
