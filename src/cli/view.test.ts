import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { buildPage } from "../../test/support/page.js";
import { scratch } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";
import { writtenRun } from "../../test/support/view-run.js";

const view = (...args: string[]) => run(process.execPath, [...command, "view", ...args], { cwd: repository });

describe("touchstone view", () => {
  const folder = join(scratch(), "run");
  writtenRun(folder, 2);
  beforeAll(buildPage);

  it("writes a page in one file, over an earlier one, and over nothing else", async () => {
    const page = join(scratch(), "kept/page.html");
    for (let i = 0; i < 2; i++) {
      const { code, out, err } = await view(folder, "--export", page);
      expect(code, err).toBe(0);
      expect(out).toMatch(/page\.html, 0\.\d MB\n$/);
      expect(readFileSync(page, "utf8")).toMatch(/^<!doctype html>/i);
    }
    const events = join(folder, "events.jsonl");
    const before = readFileSync(events, "utf8");
    const refused = await view(folder, "--export", events);
    expect(refused.code).toBe(2);
    expect(refused.err).toMatch(/events\.jsonl: it is there already and is no page; give a new file\n$/);
    expect(readFileSync(events, "utf8")).toBe(before);
  });

  it("refuses in one sentence what it cannot show or serve, and an empty token that would keep nobody out", async () => {
    const empty = join(scratch(), "empty");
    mkdirSync(empty);
    const text = join(scratch(), "text.json");
    writeFileSync(text, "no report\n");
    for (const [args, wanted, said] of [
      [[join(empty, "nowhere")], 1, "there is no such folder; give folders that touchstone train"],
      [[empty], 1, "it is not the folder of a run, and there is none in it"],
      [[text], 1, "it is no report of a reproduction or an audit"],
      [[folder, "--port", "99999"], 2, "give a number from 0 to 65535"],
      [[folder, "--token", ""], 2, "option --token: it is empty; give a text, or --token alone to have one made"],
      [[folder, "--host", "no.such.host.invalid", "--port", "0"], 2, "the view cannot listen there"],
    ] as const) {
      const { code, out, err } = await view(...args);
      expect([code, out], err).toEqual([wanted, ""]);
      expect(err).toContain(said);
      expect(err.trimEnd().split("\n")).toHaveLength(1);
    }
  });
});
