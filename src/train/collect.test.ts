/** What a rollout of one's own may not hand to the trainer. */
import { beforeAll, describe, expect, it } from "vitest";
import { lax } from "../../test/support/lax-task.js";
import { options, tablePolicy } from "../../test/support/tabular.js";
import type { Group, Trajectory } from "../core/trajectory.js";
import { anyMethod } from "../methods/catalogue.js";
import type { Slots } from "../methods/contract.js";
import { defineMethod } from "../methods/define.js";
import { train } from "./train.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});

const refusal = async (slots: Slots): Promise<string> => {
  const own = anyMethod(defineMethod({ name: "own", make: () => ({ slots }) }));
  const run = options(model, { task: lax(), steps: 1, problems: 2, group: 3, methods: [own], method: "own" });
  return train(run).then(
    () => "nothing",
    (error: Error) => error.message,
  );
};
/** An enrich stage that changes the trajectories of the first group. */
const changed = (change: (first: Group, second: Group) => readonly Trajectory[]): Slots => ({
  enrich: {
    run: async ([first, second, ...rest]) => [{ ...(first as Group), trajectories: change(first as Group, second as Group) }, second as Group, ...rest],
  },
});

describe("a batch is refused", () => {
  it("whose group holds an answer to another problem", async () => {
    expect(await refusal(changed((first, second) => [...first.trajectories, second.trajectories[0] as Trajectory]))).toMatch(
      /^rollout of step 1: the group \S+ of problem p\d+ holds 1:p\d+\/0 of problem p\d+; correct the allocate, expand or enrich slot that made it$/,
    );
  });

  it("that has one trajectory twice, or one without a token", async () => {
    expect(await refusal(changed(({ trajectories }) => [...trajectories, trajectories[0] as Trajectory]))).toMatch(/two trajectories are named 1:p\d+\/0/);
    expect(await refusal(changed(({ trajectories }) => trajectories.map((row) => ({ ...row, response: new Int32Array(0) }))))).toMatch(
      /1:p\d+\/0 has no token/,
    );
  });

  it("in which no token is to be trained, by the name of what may have caused it", async () => {
    const forcing: Slots = { prepare: { run: (request) => ({ ...request, forced: Int32Array.of(1, 2) }) } };
    expect(await refusal(forcing)).toBe(
      "rollout of step 1: none of the 6 answers has a token to train on: all their tokens were forced or observed; check the chat template and what forces tokens (a method's prepare or expand)",
    );
  });

  it("of answers that were drawn from a part of the distribution, however they came there", async () => {
    const restricted = changed(({ trajectories }) =>
      trajectories.map((row) => ({ ...row, behaviour: { ...row.behaviour, conditions: { ...row.behaviour.conditions, truncation: { topP: 0.9 } } } })),
    );
    expect(await refusal(restricted)).toMatch(
      /^rollout of step 1: method own trains on answers that were drawn with topP, whose log-probs are not the policy's/,
    );
  });
});
