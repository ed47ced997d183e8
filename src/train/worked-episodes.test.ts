import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { adder, tokenizer } from "../../test/support/adder-task.js";
import { options } from "../../test/support/tabular.js";
import { saveAlphabet } from "../core/alphabet.js";
import type { Json } from "../core/json.js";
import { TableEngine } from "../engine/table/engine.js";
import { evaluate } from "../evaluate/evaluate.js";
import { startHost } from "../rollout/environment.js";
import type { Environment } from "../tasks/contract.js";
import { rolloutExamples } from "./rollout-examples.js";
import { sft } from "./sft.js";
import { train } from "./train.js";
import { workedEpisodes } from "./worked-episodes.js";

const task = adder();
const host = await startHost({ environment: task.environment as Environment<Json> });
const common = { host, tokenizer, batchSize: 12, steps: 150, seed: 1 };

describe("worked conversations", () => {
  it("are learnt without their observations", async () => {
    for (const { response, loss } of await workedEpisodes(task, common)(0)) {
      const shown = [...response].map((id, t) => (loss?.[t] ? tokenizer.decode([id], "show") : "."));
      expect(shown.join("")).toMatch(/^add\(\d\+\d\)<eos>\.\.\.#\d<eos>$/);
    }
    expect(await workedEpisodes(task, common)(3)).toEqual(await workedEpisodes(task, common)(3));
  });

  it("teach a policy to play, and its rollouts teach again with the same mask", async () => {
    const engine = new TableEngine();
    const config = { kind: "table", vocabulary: tokenizer.size, order: 7, buckets: 4000, init: 0, maxTokens: 64 };
    await engine.weights.load({ role: "policy", source: { from: "config", config, seed: 1 }, trainable: true });
    const reports = await sft(engine, { batch: workedEpisodes(task, common), steps: 150, schedule: { kind: "constant", rate: 0.3 } });
    // Nine tokens of the policy's a conversation; the three of the observation count nowhere.
    expect(reports[0]).toMatchObject({ tokens: 12 * 9 });
    expect(reports[0]?.loss).toBeCloseTo(Math.log(tokenizer.size), 10);
    const { metrics } = await evaluate(engine, {
      weights: { role: "policy" },
      problems: task.problems("train", 12, 0),
      verifier: task.verifier,
      environment: host,
      tokenizer,
      maxTokens: 48,
      seed: 1,
    });
    expect(metrics.verdicts.accept).toBeGreaterThan(8);
    const model = join(mkdtempSync(join(tmpdir(), "touchstone-worked-")), "policy");
    await engine.weights.save({ role: "policy" }, model);
    await saveAlphabet(tokenizer, model);
    const run = options(model, { task, steps: 1, lr: 0 });
    await train(run);
    const { examples } = await rolloutExamples(run.out, tokenizer, 64, { accepted: true });
    expect(examples.length).toBeGreaterThan(8);
    for (const { response, loss } of examples) expect([...(loss ?? [])].filter((m) => m === 0)).toHaveLength(response.length === 12 ? 3 : -1);
  });

  it("need a task that has them", () => {
    const { action: _, ...bare } = task;
    expect(() => workedEpisodes(bare, common)).toThrow("task adder: it has no worked conversations; add `action` to the task");
  });
});
