import { describe, expect, it } from "vitest";
import { plainContext } from "../../src/core/problem.js";
import { TableEngine } from "../../src/engine/table/engine.js";
import { enumerate } from "../../src/engine/table/enumerate.js";
import { train } from "../../src/train/train.js";
import { options, successor, tablePolicy, tokenizer } from "../../test/support/tabular.js";
import { explained, explainedByCritic, explainedExactly, valuedAnswers } from "./exact-value.js";

describe("explained variance, by hand", () => {
  // Two answers of two tokens: R = 1, 0; Var(R) = 1/4.
  const answers = [
    { reward: 1, share: [0.5, 1], critic: [0.5, 1] },
    { reward: 0, share: [0.5, 0], critic: [0.5, 0.5] },
  ];

  it("of the exact values is what is not left within prefixes", () => {
    // V (1 - V): 1/4 by 4/3 for two of four tokens, so 1/6 in the mean.
    expect(explainedExactly(answers, 4)).toBeCloseTo(1 - 1 / 6 / (1 / 4), 12);
  });

  it("of a critic is that of what it leaves", () => {
    // R - V: 1/2, 0, -1/2, -1/2; mean -1/8, mean square 3/16, variance 11/64.
    expect(explainedByCritic(answers)).toBeCloseTo(1 - 11 / 64 / (1 / 4), 12);
    expect(explained(answers, 4)).toMatchObject({ answers: 2, right: 0.5, critic: expect.closeTo(5 / 16, 12) });
  });
});

it("by continuations agrees with the values of all answers that there are", async () => {
  const { model } = await train(options(await tablePolicy({ order: 3 }), { steps: 22, problems: 8, group: 16, checkpoint: { every: 0 } }));
  const engine = new TableEngine();
  await engine.weights.load({ role: "policy", source: { from: "folder", path: model }, trainable: false });
  const task = successor();
  const problems = task.problems("train", 12, 0);
  const continuations = 64;
  const answers = await valuedAnswers({ engine, task, problems, continuations, seed: 3 });
  // Before the first token: the chance of the right answer.
  for (const [i, { prompt, reference }] of problems.entries()) {
    const context = plainContext(tokenizer.render(prompt, { addGenerationPrompt: true }));
    const outcomes = await enumerate(engine, { context, weights: { role: "policy" }, temperature: 1, maxTokens: 3, stopIds: tokenizer.eosIds });
    const right = outcomes.filter(({ ids }) => tokenizer.decode(ids) === reference.answer);
    const chance = right.reduce((sum, { probability }) => sum + probability, 0);
    const four = 4 * Math.sqrt((chance * (1 - chance)) / continuations);
    expect(Math.abs((answers[i].share[0] as number) - chance)).toBeLessThan(four + 1 / continuations);
  }
  expect(answers.some(({ reward }) => reward === 1)).toBe(true);
});
