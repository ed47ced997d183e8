/** The two examples, by the documented command, on the policy that ships: the same run from scratch and by the library. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { repository } from "./paths.js";
import { run } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-examples-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const example = (...args: string[]) => run(process.execPath, ["scripts/run.mjs", "examples", ...args], { cwd: repository, deadlineMs: 120_000 });
const held = /^step 0: (\d+\.\d) % of 40 held-out problems$/m;

describe("an example", () => {
  it.each(["from-scratch", "chain"])("%s: samples, trains, measures before and after, and saves the changed policy", async (name) => {
    const ran = await example(name, "--steps", "2", "--eval-problems", "40", "--out", join(folder, name));
    expect(ran.code, ran.err).toBe(0);
    for (const step of [1, 2]) expect(ran.out).toMatch(new RegExp(`^step ${step}: reward 0\\.\\d{3}\\b`, "m"));
    const [, before] = held.exec(ran.out) ?? [];
    // What the starter is made to be: often wrong, and sometimes right.
    expect(Number(before)).toBeGreaterThan(15);
    expect(Number(before)).toBeLessThan(65);
    const [, said, after, policy] = /^held-out: (\d+\.\d) % at step 0, (\d+\.\d) % at step 2\nThe policy is in (.+)$/m.exec(ran.out) ?? [];
    expect(said).toBe(before);
    expect(Number(after)).toBeGreaterThan(15);
    const [old, made] = [join(repository, "starters", "chain-1M"), policy as string];
    expect(readFileSync(join(made, "touchstone_tokenizer.json"))).toEqual(readFileSync(join(old, "touchstone_tokenizer.json")));
    expect(readFileSync(join(made, "model.safetensors")).equals(readFileSync(join(old, "model.safetensors")))).toBe(false);
  });

  it("is listed with its first sentence", async () => {
    const { out } = await example();
    expect(out).toMatch(/^ {2}chain +The run of from-scratch\.ts by the library: .*\n {2}from-scratch +GRPO from scratch, in one file: /m);
  });

  it("refuses an output folder that is there", async () => {
    const ran = await example("from-scratch", "--out", folder);
    expect(ran.code).toBe(1);
    expect(ran.err).toContain("--out a folder that is not there yet");
  });
});
