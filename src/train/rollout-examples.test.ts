import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { options, scratch, tablePolicy, tokenizer } from "../../test/support/tabular.js";
import { alphabetTokenizer } from "../core/alphabet.js";
import { rolloutExamples } from "./rollout-examples.js";
import { RunReader } from "./store/reader.js";
import { train } from "./train.js";

const folder = scratch();
const rollout = (key: string, ids: number[], kind: string, more: object = {}) => ({
  problem: { key },
  tokenizer: tokenizer.id,
  prompt_ids: [1, 2],
  ids,
  verdict: { kind },
  ...more,
});
function write(name: string, rollouts: readonly object[]): string {
  const file = join(folder, name);
  writeFileSync(file, rollouts.map((each) => `${JSON.stringify(each)}\n`).join(""));
  return file;
}
const all = { accepted: false };

describe("rollouts of a file", () => {
  const rollouts = [
    rollout("a", [3, 0], "accept"),
    rollout("a", [3, 0], "accept"),
    rollout("a", [5, 3, 0], "accept"),
    rollout("a", [4, 0], "reject", { prompt_ids: [9] }),
    rollout("b", [6, 0], "partial"),
    rollout("b", [7, 0], "unscored"),
    rollout("c", [8, 0], "accept"),
  ];
  const file = write("rollouts.jsonl", rollouts);

  it("are learnt by the ids that were sampled: all, the accepted, or so many different ones a problem", async () => {
    const whole = await rolloutExamples(file, tokenizer, 8, all);
    expect(whole).toMatchObject({ total: 7, problems: 3 });
    expect(whole.examples).toEqual(rollouts.map(({ prompt_ids, ids }) => ({ context: Int32Array.from(prompt_ids), response: Int32Array.from(ids) })));
    const accepted = await rolloutExamples(file, tokenizer, 8, { accepted: true });
    expect(accepted).toMatchObject({ total: 7, problems: 2 });
    expect(accepted.examples.map(({ response }) => [...response])).toEqual([
      [3, 0],
      [3, 0],
      [5, 3, 0],
      [8, 0],
    ]);
    const one = await rolloutExamples(file, tokenizer, 8, { accepted: true, perProblem: 1 });
    expect(one.examples.map(({ response }) => [...response])).toEqual([
      [3, 0],
      [8, 0],
    ]);
    const two = await rolloutExamples(file, tokenizer, 8, { accepted: true, perProblem: 2 });
    expect(two.examples.map(({ response }) => [...response])).toEqual([
      [3, 0],
      [5, 3, 0],
      [8, 0],
    ]);
  });

  it("of another tokenizer, too long, or none of them accepted are refused", async () => {
    const other = alphabetTokenizer([..."abc"]);
    await expect(rolloutExamples(file, other, 8, all)).rejects.toThrow(
      `${file}, line 1: its token ids are of the tokenizer ${tokenizer.id}, and the model has ${other.id}; begin with a model of the same tokenizer`,
    );
    await expect(rolloutExamples(file, tokenizer, 4, all)).rejects.toThrow(
      `${file}: 1 of the 7 chosen rollouts have more than the 4 tokens that the model takes`,
    );
    const bad = write("bad.jsonl", [rollout("a", [3, 0], "reject")]);
    await expect(rolloutExamples(bad, tokenizer, 8, { accepted: true })).rejects.toThrow(`${bad}: none of its 1 rollouts is accepted; draw more samples`);
    const odd = write("odd.jsonl", [rollout("a", [3, 99], "accept"), { prompt: "1", response: "2" }, rollout("a", [], "accept")]);
    await expect(rolloutExamples(odd, tokenizer, 8, all)).rejects.toThrow(
      /3 of 3 lines cannot be used \(line 1: it has the token 99, and the tokenizer has \d+; line 2: it is no rollout with token ids \(tokenizer: .*\); line 3: .*; give a file of touchstone sample --out, or the folder of a run$/,
    );
  });
});

it("rollouts of a run are learnt by the ids under which they were trained", async () => {
  const run = options(await tablePolicy(), { steps: 3 });
  await train(run);
  const { examples, total } = await rolloutExamples(run.out, tokenizer, 64, { accepted: true });
  expect(total).toBe(3 * 4 * 4);
  const reader = RunReader.open(run.out);
  const groups = (await Promise.all([1, 2, 3].map((step) => reader.groups(step)))).flat();
  const accepted = groups.flatMap(({ group }) => group.trajectories.filter(({ verdict }) => verdict.kind === "accept"));
  expect(accepted.length).toBeGreaterThan(0);
  expect(examples).toEqual(accepted.map(({ trainedUnder, response }) => ({ context: trainedUnder.ids, response })));
});
