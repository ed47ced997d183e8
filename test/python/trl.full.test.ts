/** examples/trl_reward.py in TRL itself: GRPOTrainer learns from the rewards of `touchstone serve`, and answers without a score are no zeros there. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fixture, repository } from "../paths.js";
import { run } from "../run.js";
import { type Running, startTouchstone } from "../support/touchstone.js";
import { pythonOf, trl } from "./environment.js";

const python = await pythonOf(trl);

describe.skipIf(!python)("TRL's GRPOTrainer", () => {
  let server: Running;
  beforeAll(async () => {
    server = await startTouchstone(["serve", "--verifier", join(repository, "test/python/even-digits.ts"), "--port", "0", "--token", "word"]);
  });
  afterAll(() => server.end());

  it("learns from our rewards, and leaves out what has none", async () => {
    const args = [join(repository, "test/python/trl_run.py"), join(repository, "examples"), fixture("tokenizer", "chatml"), "30"];
    const env = {
      ...process.env,
      TOUCHSTONE_SERVE_URL: server.address,
      TOUCHSTONE_SERVE_TOKEN: "word",
      HF_HUB_OFFLINE: "1",
      CUDA_VISIBLE_DEVICES: "",
      OMP_NUM_THREADS: "1",
    };
    const ran = await run(python as string, args, { env, deadlineMs: 600_000 });
    expect(ran.code, ran.err.slice(-3000)).toBe(0);
    const { logged, seen } = JSON.parse(ran.out.trim().split("\n").at(-1) as string) as { logged: number[]; seen: [string, string, number | null][] };
    expect(seen).toHaveLength(30 * 64);
    for (const [text, , reward] of seen) {
      const digits = [...text].filter((each) => each >= "0" && each <= "9");
      const share = digits.length === 0 ? 0 : digits.filter((digit) => Number(digit) % 2 === 0).length / digits.length;
      if (text.startsWith("7")) expect(reward).toBeNull();
      else expect(reward).toBeCloseTo(share, 12);
    }
    expect(seen.some(([, , reward]) => reward === null)).toBe(true);
    // What TRL logs is the mean of those that have a score: null counts as nothing there, and not as 0.
    expect(logged).toHaveLength(30);
    logged.forEach((mean, step) => {
      const scored = seen.slice(64 * step, 64 * (step + 1)).flatMap(([, , reward]) => reward ?? []);
      expect(mean).toBeCloseTo(scored.reduce((sum, each) => sum + each, 0) / scored.length, 5);
    });
    const mean = (values: readonly number[]): number => values.reduce((sum, each) => sum + each, 0) / values.length;
    expect(mean(logged.slice(-5))).toBeGreaterThan(mean(logged.slice(0, 5)) + 0.1);
    console.log(
      `TRL: reward ${mean(logged.slice(0, 5)).toFixed(3)} in the first five steps, ${mean(logged.slice(-5)).toFixed(3)} in the last; ${seen.filter(([, , reward]) => reward === null).length} of ${seen.length} without a score`,
    );
  });
});
