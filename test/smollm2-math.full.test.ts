/** SmolLM2-135M-Instruct trained for ten steps on problems of GSM8K, judged by `math`: every answer gets a verdict. */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { smollm2 } from "./models.js";
import { repository } from "./paths.js";
import { run } from "./run.js";

const model = await smollm2();
const steps = 10;
const form = "Answer in one short sentence that ends with the answer as a number.";

interface Event {
  readonly kind: string;
  readonly data: { readonly metrics?: { readonly [name: string]: number } };
}

describe.skipIf(!model)("SmolLM2-135M-Instruct on GSM8K", () => {
  it("trains for ten steps under math with no answer left unscored", async () => {
    const out = join(mkdtempSync(join(tmpdir(), "touchstone-smollm2-")), "run");
    const options = JSON.stringify({ reference_after: "####", truncated: "read", policies: { "require-committed-answer": "no" } });
    const { code, err } = await run(
      process.execPath,
      [
        ...["--import", "tsx", join(repository, "src/cli/main.ts"), "train", "--model", model as string, "--out", out],
        ...["--data", join(repository, "test/data/gsm8k-train-sample.jsonl"), "--prompt-column", "question", "--answer-column", "answer"],
        ...["--verifier", "math", "--verifier-options", options, "--set", `data.system=${form}`, "--steps", String(steps)],
        ...["--problems", "2", "--group", "2", "--max-tokens", "48", "--lr", "1e-6"],
      ],
      { cwd: repository, deadlineMs: 900_000 },
    );
    expect(code, err).toBe(0);
    const events = readFileSync(join(out, "events.jsonl"), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Event);
    const metrics = events.flatMap(({ kind, data }) => (kind === "step" && data.metrics ? [data.metrics] : []));
    expect(metrics).toHaveLength(steps);
    expect(metrics.map(({ unscored }) => unscored)).toEqual(metrics.map(() => 0));
    console.log(`SmolLM2 under math: rewards of ${steps} steps ${metrics.map(({ reward }) => reward).join(", ")}`);
  });
});
