/** Rejection sampling by two commands, with the real engine: what `sample` writes, `sft` learns. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { command } from "../../test/support/touchstone.js";
import { chain } from "../tasks/chain/chain.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-rollouts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const touchstone = (...args: string[]) => run(process.execPath, [...command, ...args], { cwd: repository });
const starter = "starters/chain-1M";
const learning = ["--steps", "2", "--batch-size", "8", "--warmup", "0", "--lr", "1e-4"];

describe("rejection sampling", () => {
  it("learns the accepted rollouts of a sample as they were sampled", async () => {
    const file = join(folder, "rollouts.jsonl");
    const sampled = await touchstone(
      "sample",
      starter,
      "--task",
      "chain",
      "--n-problems",
      "8",
      "--n",
      "8",
      "--threads",
      "1",
      "--verifier-workers",
      "0",
      "--out",
      file,
    );
    expect(sampled.code, sampled.err).toBe(0);
    const lines = readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const tokenizer = chain().tokenizer!;
    for (const { problem, prompt_ids: context, ids, text, tokenizer: id } of lines) {
      expect(id).toBe(tokenizer.id);
      expect(context).toEqual([...tokenizer.render(problem.prompt, { addGenerationPrompt: true })]);
      expect(tokenizer.decode(ids)).toBe(text);
    }
    const accepted = lines.filter(({ verdict }) => verdict.kind === "accept");
    expect(accepted.length).toBeGreaterThan(0);
    expect(accepted.length).toBeLessThan(lines.length);
    const learnt = await touchstone("sft", "--rollouts", file, "--accepted", "--model", starter, ...learning, "--out", join(folder, "better"));
    expect(learnt.code, learnt.err).toBe(0);
    const problems = new Set(accepted.map(({ problem }) => problem.key)).size;
    expect(learnt.err).toContain(`note: learning ${accepted.length} of 64 rollouts, of ${problems} problems`);
    expect(learnt.out).toMatch(/^Saved .*better after 2 steps/);
  });

  it("asks for what it needs", async () => {
    const file = join(folder, "rollouts.jsonl");
    expect(await touchstone("sft", "--data", "x.jsonl", "--accepted", "--model", starter, "--out", join(folder, "a"))).toMatchObject({
      code: 2,
      err: "error: option --accepted: there are no --rollouts to choose from; give them, or leave it out\n",
    });
    expect(await touchstone("sft", "--rollouts", file, "--size", "100k", "--out", join(folder, "a"))).toMatchObject({
      code: 2,
      err: "error: option --size: rollouts are token ids, and a new policy has no tokenizer yet; begin with --model\n",
    });
  });
});

it("touchstone sft --task learns the solutions that rows have", async () => {
  writeFileSync(
    join(folder, "task.ts"),
    `import { defineTask } from "touchstone-rl";
export default defineTask({
  name: "rows",
  rows: [{ prompt: "1+2", answer: 3, solution: "+2=3\\n#3" }, { prompt: "2+2", answer: 4, solution: "+2=4\\n#4" }, { prompt: "3+3", answer: 6 }].map((row) => ({ ...row, split: "train" as const })),
  verify: ({ response, reference }) => response.endsWith(String(reference)),
});
`,
  );
  const learnt = await touchstone("sft", "--task", join(folder, "task.ts"), "--model", starter, ...learning, "--out", join(folder, "rows"), "--json");
  expect(learnt.code, learnt.err).toBe(0);
  expect(JSON.parse(learnt.out)).toMatchObject({ steps: 2 });
});
