import { describe, expect, it } from "vitest";
import * as progress from "../../test/support/broken-hook.js";
import { options, tablePolicy, tokenizer } from "../../test/support/tabular.js";
import type { Task } from "../tasks/contract.js";
import { defineTask } from "../tasks/define.js";
import { RunReader } from "./store/reader.js";
import { resume, train } from "./train.js";

const rewards = (folder: string): number[] =>
  [...RunReader.open(folder).events()].flatMap(({ kind, data }) => (kind === "step" ? [(data.metrics as { reward: number }).reward] : []));

describe("a task that draws from few problems", () => {
  const few = (): Task =>
    defineTask({
      name: "few",
      draw: (random) => ({ prompt: String(random.int(10)), answer: "1" }),
      shares: { eval: 0.4, train: 0.6, warm: 0 },
      verify: ({ response, reference }) => response === reference,
      maxTokens: 2,
      tokenizer,
    })();

  it("is trained on all of them again and again, which is told", async () => {
    const messages: string[] = [];
    const drawn: number[] = [];
    const run = options(await tablePolicy(), {
      task: few(),
      steps: 5,
      problems: 3,
      eval: { every: 5 },
      onProgress: (progress) => {
        if (progress.kind === "message") messages.push(progress.text);
        if (progress.kind === "pose") drawn.push(progress.total);
      },
    });
    await train(run);
    const { config } = RunReader.open(run.out).run as unknown as { config: { train_problems: number; eval: { problems: number } } };
    expect(config.train_problems + config.eval.problems).toBe(10);
    expect(messages.filter((text) => text.startsWith("task few"))).toEqual([
      `task few has ${config.train_problems} different problems to train on: they come round again`,
      `task few has ${config.eval.problems} different problems to evaluate on`,
    ]);
    expect(new Set(drawn)).toEqual(new Set([15, 200]));
  });

  it("is refused where more are asked for, by the name of the option", async () => {
    const run = options(await tablePolicy(), { task: few(), problems: 2, train_problems: 50 });
    await expect(train(run)).rejects.toThrow(
      /^train_problems: it is 50, and task few has \d different problems to train on; set it to at most \d, or leave it out/,
    );
  });
});

describe("what the caller hands over", () => {
  it("is refused in one sentence where it is nothing", async () => {
    const nothing = undefined as never;
    await expect(train(nothing)).rejects.toThrow("train: it was given nothing in place of its options; give an object, such as { model:");
    await expect(resume(nothing)).rejects.toThrow(
      'resume: it was given nothing in place of the folder of a run; give the folder, such as resume("runs/first")',
    );
    expect(() => defineTask(nothing)).toThrow("defineTask: it was given null, not the parts of a task; give a name,");
  });

  it.each([
    ["throws", () => progress.broken()],
    ["rejects", async () => progress.broken()],
    [
      "rejects after a while",
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        progress.broken();
      },
    ],
  ])("and is a hook that %s is an error of that hook, which ends the run", async (_, onProgress) => {
    const run = options(await tablePolicy(), { steps: 30, onProgress: onProgress as () => void });
    await expect(train(run)).rejects.toThrow(/^onProgress, .*test\/support\/broken-hook\.ts:3: it throws \(no such chart\); correct the function$/);
  });
});

describe("training on a table", () => {
  it("GRPO raises the reward of a small task from chance to nearly always, on held-out problems too", async () => {
    const result = await train(
      options(await tablePolicy(), { steps: 60, problems: 12, group: 16, lr: 0.2, checkpoint: { every: 0 }, eval: { every: 30, problems: 4, samples: 50 } }),
    );
    const curve = rewards(result.folder);
    expect(result).toMatchObject({ reason: "done", steps: 60 });
    expect(curve[0]).toBeLessThan(0.1);
    expect(curve.at(-1)).toBeGreaterThan(0.9);
    const scores = [...RunReader.open(result.folder).events()].flatMap(({ kind, data }) => (kind === "evaluation" ? [data.score as number] : []));
    expect(scores).toHaveLength(3);
    expect(scores[2]).toBeGreaterThan((scores[0] as number) + 0.5);
    expect(result.evaluation["eval.score"]).toBe(scores[2]);
  });
});
