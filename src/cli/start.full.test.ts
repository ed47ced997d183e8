/** `touchstone start` with the starter policy that ships: its numbers, and that `touchstone eval` gives the same. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { command } from "../../test/support/touchstone.js";

let folder: string;
const touchstone = (...args: string[]) => run(process.execPath, [...command, ...args], { cwd: repository, deadlineMs: 300_000 });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "touchstone-start-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("touchstone start", () => {
  it("begins with a policy that is often wrong, trains it, and gives the numbers that eval gives for the run's first and last checkpoint", async () => {
    const out = join(folder, "run");
    const started = await touchstone("start", "--steps", "3", "--out", out, "--json");
    expect(started.code, started.err).toBe(0);
    const result = JSON.parse(started.out);
    expect(Object.keys(result)).toEqual(["before", "after", "before_ci", "after_ci", "greedy_before", "greedy_after", "n", "steps", "wall_s"]);
    expect(result).toMatchObject({ n: 1000, steps: 3 });
    expect(result.before).toBeGreaterThan(0.25);
    expect(result.before).toBeLessThan(0.45);
    expect(result.greedy_before).toBeLessThan(0.4);
    const measured = async (mark: string, ...flags: string[]) =>
      JSON.parse((await touchstone("eval", `${out}@${mark}`, ...flags, "--json")).out).metrics["avg@1"];
    const first = await measured("first", "--task", "chain");
    expect([first.value, first.low, first.high]).toEqual([result.before, ...result.before_ci]);
    const last = await measured("last");
    expect([last.value, last.low, last.high]).toEqual([result.after, ...result.after_ci]);
    expect([(await measured("first", "--greedy")).value, (await measured("last", "--greedy")).value]).toEqual([result.greedy_before, result.greedy_after]);
    // The first look at the run has them too.
    const shown = JSON.parse((await touchstone("show", out, "--json")).out);
    expect(shown.evaluations.map(({ step, estimates: [{ value }] }: { step: number; estimates: { value: number }[] }) => [step, value])).toEqual([
      [0, result.before],
      [3, result.after],
    ]);
  });
});
