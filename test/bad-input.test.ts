/** Bad input of every kind that we could think of: one sentence each, before anything is started or written (bad-input/cases.json). */
import { existsSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonLines } from "../src/core/json-lines.js";
import { readConfigFile } from "../src/train/config-file.js";
import { repository } from "./paths.js";
import { run } from "./run.js";
import { argumentsOf, cases, files, filled, names, type Places, prepare, refused } from "./support/bad-input.js";
import { command } from "./support/touchstone.js";

let places: Places;
let before: readonly string[];
const tracked = (): string[] => [...names(places.temp), ...names(join(repository, "test", "bad-input"))];
beforeAll(async () => {
  places = await prepare();
  before = tracked();
});
afterAll(() => {
  for (const folder of [places.temp, dirname(places.model)]) rmSync(folder, { recursive: true, force: true });
});

const posix = process.platform !== "win32";
const titled = cases
  .filter(({ more = [] }) => posix || !more.some((argument) => /^\/|pipe/.test(argument)))
  .map((one) => [[one.as, one.file ?? "", ...(one.more ?? [])].filter((part) => part !== "").join(" "), one] as const);

describe("bad input is refused in one sentence, with nothing started and nothing written", () => {
  it.each(titled)("%s", async (_, one) => {
    const got = await refused(argumentsOf(one, places));
    expect(got).toEqual({ says: filled(one.says, one, places), code: expect.any(Number), ours: true, started: one.started ?? 0 });
    expect([1, 2]).toContain(got.code);
    // Place, cause and mend, and no line end.
    expect(got.says).toMatch(/^[^\n]+: [^\n]+; [^\n]+$/);
    expect(tracked()).toEqual(before);
  });

  it("counts what is started, and sees what is written", async () => {
    const good = ["train", "--model", places.model, "--data", join(files, "good.jsonl"), "--verifier", "number", "--max-tokens", "4"];
    const size = ["--problems", "2", "--group", "2", "--steps", "1", "--workers", "1", "--json"];
    const got = await refused([...good, ...size, "--out", places.out]);
    expect(got).toMatchObject({ says: undefined, code: 0 });
    expect(got.started).toBeGreaterThan(0);
    expect(existsSync(join(places.out, "run.json"))).toBe(true);
    rmSync(places.out, { recursive: true });
  });
});

describe("the program", () => {
  const pick = (file: string): (typeof cases)[number] => cases.find((one) => one.file === file || one.more?.includes(file)) as (typeof cases)[number];

  it.each(["truncated-line.jsonl", "throws.ts", "anchor-loop.yaml", "{temp}/long-line.jsonl"])(
    "ends with that line on stderr and a code for %s",
    async (file) => {
      const one = pick(file);
      const inside = await refused(argumentsOf(one, places));
      const ran = await run(process.execPath, [...command, ...argumentsOf(one, places)], { cwd: repository, deadlineMs: 20_000 });
      expect(ran).toEqual({ code: inside.code, out: "", err: `error: ${filled(one.says, one, places)}\n` });
      expect(tracked()).toEqual(before);
    },
  );
});

describe("a line of 100 MB", () => {
  it("is refused without being held in memory", () => {
    const peak = (): number => process.resourceUsage().maxRSS / 1024;
    const start = peak();
    expect(() => [...jsonLines(join(places.temp, "long-line.jsonl"))]).toThrow("line 1: it is longer than 16 MB");
    expect(peak() - start).toBeLessThan(90);
  });
});

describe("what is odd and yet clear is taken", () => {
  it.each(["byte-order-mark.jsonl", "windows-lines.jsonl", "no-last-line-end.jsonl"])("data in %s", (file) => {
    const records = [...jsonLines(join(files, file))].map(({ record }) => record);
    expect(records).toEqual([
      { prompt: "1+1=", answer: "2" },
      { prompt: "1+2=", answer: "3" },
    ]);
  });

  it.each(["byte-order-mark.yaml", "windows-lines.yaml", "byte-order-mark.json"])("a configuration in %s", async (file) => {
    expect(await readConfigFile(join(files, file))).toEqual({ steps: 3, lr: 0.5 });
  });
});
