/** The task that the README writes in ten lines, trained by the command that stands below it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { repository } from "./paths.js";
import { run } from "./run.js";
import { command } from "./support/touchstone.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-readme-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("the README's task is learnt by the starter with the README's command", async () => {
  const text = readFileSync(join(repository, "README.md"), "utf8");
  const [, task] = /```ts\n([^`]*name: "product"[^`]*`#\$\{reference\}`[^`]*)```/.exec(text) ?? [];
  const [, written] = /^ {4}touchstone (train .*product\.ts.*)$/m.exec(text) ?? [];
  writeFileSync(join(folder, "product.ts"), task as string);
  const words = (written as string).replace("./product.ts", join(folder, "product.ts")).replace("runs/product", join(folder, "run")).split(" ");
  const ran = await run(process.execPath, [...command, ...words, "--json"], { cwd: repository, deadlineMs: 600_000 });
  expect(ran.code, ran.err).toBe(0);
  const { rewards, evaluation } = JSON.parse(ran.out) as { rewards: number[]; evaluation: { "eval.score": number } };
  expect(rewards[0]).toBeLessThan(0.3);
  expect(evaluation["eval.score"]).toBeGreaterThan(0.5);
});
