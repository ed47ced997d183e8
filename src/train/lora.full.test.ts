/** GRPO on an adapter alone takes the starter of T-CHAIN up, and the base stays as it was. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { type TrainOptions, train } from "./train.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-lora-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const starter = join(repository, "starters", "chain-100k");

it("rises by 20 points on held-out problems of chain in 60 steps", async () => {
  const before = readFileSync(join(starter, "model.safetensors"));
  const scores: number[] = [];
  const onProgress: TrainOptions["onProgress"] = (progress) => {
    if (progress.kind === "evaluation" && progress.score !== undefined) scores.push(progress.score);
  };
  const task = { name: "chain", options: { modulus: 7 } };
  const lora = { rank: 8 };
  const settings = { model: starter, task, lora, steps: 60, problems: 16, group: 8, minibatches: 4, lr: 3e-3, checkpoint: { every: 0 } };
  await train({ ...settings, eval: { every: 60, problems: 400 }, out: join(folder, "run"), onProgress });
  expect(scores).toHaveLength(2);
  expect((scores[1] as number) - (scores[0] as number)).toBeGreaterThan(0.2);
  expect(readFileSync(join(starter, "model.safetensors"))).toEqual(before);
});
