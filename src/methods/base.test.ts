import { describe, expect, it } from "vitest";
import { batch, group, rewarded, row } from "../../test/support/batch.js";
import { ArgumentError } from "../core/errors.js";
import type { Problem } from "../core/problem.js";
import { accept, partial, reject, unscored } from "../core/verdict.js";
import { fixedGroups, plainAnswers, verdictReward } from "./base.js";
import { Cells } from "./cell.js";
import { coefficientsOf } from "./coefficients.js";
import type { Lab, Method, Request, Step } from "./contract.js";
import { grpo, grpoOptions } from "./grpo/grpo.js";
import { compose, resolve } from "./resolve.js";

const problem = (key: string): Problem => ({ key, prompt: [], reference: { state: "gold", version: 0 } });
it("rollout: one group a problem in order of proposal, members in order whatever order they finish in", async () => {
  const step: Step = {
    step: 7,
    settings: { group: 3, problems: 2, temperature: 1, maxTokens: 4, stop: { ids: [0] } },
    propose: async () => [problem("z"), problem("y")],
    request: async (p: Problem, member: number) => ({ problem: p, member }) as Request,
    async *draw(requests: readonly Request[]) {
      for (const r of [...requests].reverse()) yield row(r.problem.key, r.member, { old: [-1] });
    },
    expand(p: Problem, n: number, from = 0) {
      return plainAnswers.run(p, n, step, from);
    },
  } as unknown as Step;
  const groups = [];
  for await (const g of fixedGroups.run(step)) groups.push(g);
  expect(groups.map((g) => [g.key, g.trajectories.map((t) => t.member)])).toEqual([
    ["7:z", [0, 1, 2]],
    ["7:y", [0, 1, 2]],
  ]);
});

it("rewards: accept 1, reject 0, partial its score, unscored no number", () => {
  const verdicts = [accept(), reject("wrong"), partial(0.25), unscored("worker lost")];
  const b = batch(
    group(
      "p",
      verdicts.map((verdict, i) => row("p", i, { old: [-1], verdict })),
    ),
  );
  expect(verdictReward(b).values).toEqual([1, 0, 0.25, undefined]);
});

describe("what a slot returns is checked", () => {
  const base = grpo.make(grpoOptions.parse({}), new Cells().cell("grpo", grpo.initial));
  const run = (slots: Method["slots"]) => coefficientsOf(resolve(compose({ name: "m", slots }), base), rewarded([1, 0]), {} as Lab);

  it("rewards of another number of trajectories", async () => {
    await expect(run({ reward: { owns: () => ({ values: [1] }) } })).rejects.toThrow(ArgumentError);
    await expect(run({ reward: { owns: () => ({ values: [1] }) } })).rejects.toThrow("reward of m: 1 rewards were given for 2 trajectories");
  });

  it("a reward that is not a number, with the trajectory", async () => {
    await expect(run({ reward: { owns: () => ({ values: [1, Number.NaN] }) } })).rejects.toThrow(
      "reward of m: the reward of 1:p0/1 is NaN; return a number, or unscored(reason) where there is none",
    );
  });

  it("token weights of another shape", async () => {
    await expect(run({ aggregate: { owns: () => [new Float64Array(1), new Float64Array(3)] } })).rejects.toThrow(
      "aggregate of m: 3 numbers were given for the 1 tokens of 1:p0/1",
    );
  });

  it("masks of another shape", async () => {
    await expect(run({ keep: { run: () => ({ rows: new Uint8Array(1), policy: [], terms: [] }) } })).rejects.toThrow(
      "keep of m: its masks do not have the shape of the batch",
    );
  });
});
