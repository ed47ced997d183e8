/** `touchstone init` as a user meets it, in a project where the package is installed: what it writes is checked, tested and trained for real. */
import { execFile } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "../../test/run.js";
import { installedProject, type Project } from "../../test/support/project.js";
import { invocation } from "./invocation.js";
import { runProgram } from "./program.js";

let project: Project;
beforeAll(async () => {
  project = await installedProject();
});
afterAll(() => rmSync(project.folder, { recursive: true, force: true }));

/** A printed command with other numbers of steps, run by a shell. */
const shell = (command: string, more = "") => promisify(execFile)("sh", ["-c", `${command}${more}`], { cwd: project.folder });

describe("touchstone init", () => {
  it("writes a folder whose task type-checks, whose test passes, and which trains by the commands that it prints", async () => {
    const made = await project.touchstone("init", "my-task");
    expect(made).toMatchObject({ code: 0, err: "" });
    expect(readdirSync(join(project.folder, "my-task")).sort()).toEqual(
      [".gitignore", "README.md", "config.yaml", "examples.jsonl", "package.json", "problems.jsonl", "task.test.mjs", "task.ts", "tsconfig.json"].sort(),
    );
    const [test, warm, train, look] = made.out
      .trimEnd()
      .split("\n")
      .slice(-4)
      .map((line) => line.trim());
    expect(warm).toMatch(/^node node_modules\/touchstone-rl\/dist\/cli\/main\.js sft --data my-task\/examples\.jsonl /);
    expect(await project.tsc("-p", "my-task")).toEqual({ code: 0, out: "", err: "" });
    expect((await shell(test as string)).stdout).toMatch(/(pass|# pass) 3\b/);
    const warmed = JSON.parse((await shell(warm as string, " --steps 80 --json")).stdout) as { loss: number };
    expect(warmed.loss).toBeLessThan(1.6);
    const trained = JSON.parse((await shell(train as string, " --steps 2 --json")).stdout);
    expect(trained).toMatchObject({ reason: "done", steps: 2, updates: 2, evaluation: { "eval.score": expect.any(Number) } });
    expect((await shell(look as string)).stdout).toMatch(/problem .*, reference "\d{4}"\n {2}user\n {4}\d{4}\n/);
  }, 180_000);

  it("has a test that finds a wrong verifier", async () => {
    expect((await project.touchstone("init", "lax", "--json")).code).toBe(0);
    const file = join(project.folder, "lax", "task.ts");
    writeFileSync(file, readFileSync(file, "utf8").replace("response === reference", "reference.includes(response)"));
    await expect(shell("node --test lax/task.test.mjs")).rejects.toMatchObject({ code: 1 });
  });

  it("makes the package known where it is not installed, as its dependency says", async () => {
    const other = realpathSync(mkdtempSync(join(tmpdir(), "touchstone-elsewhere-")));
    const main = join(project.folder, "node_modules", "touchstone-rl", "dist", "cli", "main.js");
    const made = await run(process.execPath, [main, "init", join("tasks", "far-away"), "--json"], { cwd: other });
    const said = JSON.parse(made.out) as { linked: string; next: string[] };
    expect(said.linked).toBe(join(project.folder, "node_modules", "touchstone-rl"));
    const folder = join(other, "tasks", "far-away");
    expect(lstatSync(join(folder, "node_modules", "touchstone-rl")).isSymbolicLink()).toBe(true);
    expect(said.next[1]).toContain(`node ${main} sft --data tasks/far-away/examples.jsonl `);
    const tested = await run(process.execPath, ["--test", "task.test.mjs"], { cwd: folder });
    expect(tested.code, tested.out).toBe(0);
    expect(await run(process.execPath, [join(dirname(main), "..", "..", "node_modules", "typescript", "bin", "tsc"), "-p", folder])).toMatchObject({ code: 0 });
    rmSync(other, { recursive: true });
  });

  it("refuses names that are none, and folders that are not free", async () => {
    const at = (name: string): string => join(project.folder, name);
    mkdirSync(at("used"));
    writeFileSync(join(at("used"), "notes.txt"), "");
    writeFileSync(at("a-file"), "");
    const mend = "give a folder such as my-task";
    for (const name of ["My-task", "my task", "my--task", "-task", "1st", "a".repeat(61)]) {
      await expect(runProgram(["init", "--", at(name)])).rejects.toThrow(mend);
      expect(existsSync(at(name))).toBe(false);
    }
    await expect(runProgram(["init", at("used")])).rejects.toThrow(`folder ${at("used")}: it holds other files; give a new or empty folder`);
    await expect(runProgram(["init", at("a-file")])).rejects.toThrow(`folder ${at("a-file")}: it is a file; give a new or empty folder`);
    await expect(runProgram(["init", join(at("a-file"), "x")])).rejects.toThrow("is a file; give a folder that can be written to");
    await expect(runProgram(["init"])).rejects.toThrow("touchstone init: missing required argument 'folder'; see touchstone init --help");
    expect(readdirSync(at("used"))).toEqual(["notes.txt"]);
  });
});

describe("a command that is printed", () => {
  const called = (script: string, env = {}, execArgv: string[] = []) => invocation({ argv: ["/bin/node", script], execArgv, env, folder: "/home/me" });

  it("begins as the caller's own did", () => {
    expect(called("/home/me/.npm/bin/touchstone")).toBe("touchstone");
    expect(called("/home/me/node_modules/.bin/touchstone", { npm_command: "exec" })).toBe("npx touchstone");
    expect(called("/home/me/.npm/_npx/0a1/node_modules/.bin/touchstone-rl", { npm_command: "exec" })).toBe("npx touchstone-rl");
    expect(called("/home/me/dist/cli/main.js")).toBe("node dist/cli/main.js");
    expect(called("/opt/my tools/main.js", {}, ["--import", "tsx"])).toBe(
      process.platform === "win32" ? 'node --import tsx "/opt/my tools/main.js"' : "node --import tsx '/opt/my tools/main.js'",
    );
  });
});
