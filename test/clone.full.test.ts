/** A fresh clone: each command is the first and only one, installs what is missing, and ends as the README says. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "./paths.js";
import { run } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-clone-"));
const clone = join(folder, "clone");
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_config_local_prefix|npm_package_|npm_lifecycle_|touchstone_|vitest|node_env)/i.test(name)),
);
const npm = (...args: string[]) => run("npm", args, { cwd: clone, env: environment, deadlineMs: 300_000 });
const lastLine = (text: string) => text.trimEnd().split("\n").at(-1);

describe("a fresh clone", () => {
  beforeAll(async () => {
    const cloned = await run("git", ["clone", "--quiet", repository, clone]);
    expect(cloned.code, cloned.err).toBe(0);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("starts with npm start alone", async () => {
    const started = await npm("start", "--", "--help");
    expect(started.code, started.err).toBe(0);
    expect(started.out).toContain("touchstone");
    expect(existsSync(join(clone, "node_modules/onnxruntime-node"))).toBe(true);
  });

  it("tests with npm test alone, and ends with the plain line", async () => {
    rmSync(join(clone, "node_modules"), { recursive: true, force: true });
    const tested = await npm("test", "--", "test/structure");
    expect(tested.code, tested.err).toBe(0);
    expect(lastLine(tested.out)).toMatch(/^[1-9]\d* passed, 0 failed$/);
  });

  it("runs an example, which imports the package by its name without a build", async () => {
    rmSync(join(clone, "dist"), { recursive: true, force: true });
    const ran = await npm("run", "examples", "chain", "--", "--steps", "1", "--eval-problems", "10");
    expect(ran.code, ran.err).toBe(0);
    expect(ran.out).toMatch(/^held-out: \d+\.\d % at step 0, \d+\.\d % at step 1$/m);
    expect(existsSync(join(clone, "dist"))).toBe(false);
  });

  it("does not install again", async () => {
    const tested = await npm("test", "--", "test/structure");
    expect(tested.err).not.toContain("Installing");
  });

  it("counts a failed test, a file that does not load and a skipped test", async () => {
    const tests = join(clone, "test", "closing");
    mkdirSync(tests);
    writeFileSync(
      join(tests, "a.test.ts"),
      `import { expect, it } from "vitest"; it("one", () => {}); it("two", () => expect(1).toBe(2)); it.skip("three", () => {}); it.skip("four", () => {});`,
    );
    writeFileSync(join(tests, "b.test.ts"), `import "./missing.js";`);
    const tested = await npm("test", "--", "test/closing");
    expect(tested.code).toBe(1);
    expect(lastLine(tested.out)).toBe("1 passed, 2 failed, 2 skipped");
  });

  it("fails when no test was found", async () => {
    const tested = await npm("test", "--", "no/such/file");
    expect(tested.code).toBe(1);
    expect(lastLine(tested.out)).toBe("0 passed, 1 failed");
  });

  it("adds up the parts of a CI run, and counts none as a failure", async () => {
    const counts = join(folder, "counts");
    mkdirSync(counts);
    const sum = () => run(process.execPath, ["scripts/sum.mjs", counts], { cwd: clone });
    expect(await sum()).toMatchObject({ code: 1, out: "0 passed, 1 failed\n" });
    writeFileSync(join(counts, "quick.json"), JSON.stringify({ passed: 3, failed: 0, skipped: 1 }));
    writeFileSync(join(counts, "lint.json"), JSON.stringify({ passed: 1, failed: 0, skipped: 0 }));
    const passed = await sum();
    expect([passed.code, lastLine(passed.out)]).toEqual([0, "4 passed, 0 failed, 1 skipped"]);
    writeFileSync(join(counts, "types.json"), JSON.stringify({ passed: 0, failed: 1, skipped: 0 }));
    const failed = await sum();
    expect([failed.code, lastLine(failed.out)]).toEqual([1, "4 passed, 1 failed, 1 skipped"]);
  });
});
