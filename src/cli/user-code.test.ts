/** What a user's own task and verifier may do to the command line: end it, print, fail late, loop for ever. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { scratch, tablePolicy } from "../../test/support/tabular.js";
import { command } from "../../test/support/touchstone.js";

const folder = scratch();
let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});

/** A task file: `top` runs when it is loaded, `draw` for each problem, `verify` for each answer. */
function task(name: string, { top = "", draw = "", verify = "return false;" }: { top?: string; draw?: string; verify?: string }): string {
  const path = join(folder, `${name}.ts`);
  const text = `import { defineTask } from "touchstone-rl";
${top}
export default defineTask({ name: "own", maxTokens: 2,
  rows: () => { ${draw}; return Array.from({ length: 8 }, (_, i) => ({ prompt: String(i), answer: "1", split: "train" })); },
  verify: ({ response }) => { ${verify} } });
`;
  writeFileSync(path, text);
  return path;
}

const args = (file: string, ...more: string[]): string[] => [
  ...[...command, "train", "--model", model],
  ...["--task", file, "--set", "engine.name=table"],
  ...["--problems", "2", "--group", "2", "--steps", "2", "--out", join(scratch(), "run"), ...more],
];
const train = (file: string, ...more: string[]) => run(process.execPath, args(file, ...more), { cwd: repository });

describe("a task of one's own", () => {
  it.each([
    ["when it is loaded", { top: "process.exit(0);" }, 2],
    ["when it gives its rows", { draw: "process.exit(0)" }, 4],
  ])("that ends the process %s is named, and the command fails", async (_, parts, line) => {
    const file = task("ends", parts);
    const { code, err } = await train(file);
    expect(code).toBe(1);
    expect(err).toContain(`error: ${file}:${line}: it calls process.exit(0), which ends the command before its work is done; leave that out\n`);
  });

  it("that prints leaves standard output to the result", async () => {
    const file = task("prints", { top: 'console.log("loaded");', verify: 'console.log("judging"); return response.length > 1;' });
    const { code, out, err } = await train(file, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ steps: 2 });
    for (const line of ["loaded\n", "judging\n"]) expect(err).toContain(line);
  });

  it("whose promise is rejected with nobody to hear of it is named with its line", async () => {
    const file = task("rejects", { top: 'setTimeout(() => void Promise.reject(new Error("no such answer")), 1);' });
    const { code, err } = await train(file);
    expect(code).toBe(1);
    expect(err).toContain(`error: ${file}:2: it throws (no such answer); correct it there\n`);
  });

  it("that loops for ever where it is asked for problems is ended by Ctrl-C", async () => {
    const file = task("loops", { draw: 'console.log("looping"); for (;;)' });
    const child = spawn(process.execPath, args(file), { cwd: repository });
    const ended = new Promise<string | null>((resolve) => child.once("close", (_, signal) => resolve(signal)));
    await new Promise<void>((resolve) => createInterface({ input: child.stderr }).on("line", (line) => line === "looping" && resolve()));
    child.kill("SIGINT");
    expect(await ended).toBe("SIGINT");
  });
});

describe("a verifier of one's own", () => {
  it("that throws on answers is told with file and line when it does", async () => {
    const file = task("throws", { verify: 'if (response === "") return false; throw new Error("no field");' });
    const { out, err } = await train(file);
    expect(err).toContain(`verifier own, ${file}:5: verifier-failed (no field); answers without a score are left out\n`);
    expect(out).toMatch(/2 steps are done, and nothing was learnt: /);
  });
});
