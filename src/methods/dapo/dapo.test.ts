import { describe, expect, it } from "vitest";
import { batch, group, rewarded, row } from "../../../test/support/batch.js";
import { lossAt, made, resolved, settings } from "../../../test/support/method.js";
import { options, tablePolicy, tokenizer } from "../../../test/support/tabular.js";
import type { Problem } from "../../core/problem.js";
import type { Group, Trajectory } from "../../core/trajectory.js";
import { accept, reject, unscored } from "../../core/verdict.js";
import { defineTask } from "../../tasks/define.js";
import { RunReader } from "../../train/store/reader.js";
import { train } from "../../train/train.js";
import { Cells } from "../cell.js";
import type { Step } from "../contract.js";
import { grpo } from "../grpo/grpo.js";
import { checkSettings, compose } from "../resolve.js";
import { dapo, dapoOptions, dynamicSampling, overlong } from "./dapo.js";

const off = { dynamic_sampling: false, overlong_punishment: 0 };
const two = batch(group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: [-1, -2], verdict: reject("no") })]));

describe("the loss, by hand", () => {
  it("ratio 1.25 of a good token is kept, 1.3 is cut at 1.28, and every token of the batch weighs 1/3", async () => {
    const of = (ratio: number) => lossAt(compose(made(grpo, { std: "none" }), made(dapo, off)), two, [[-1 + Math.log(ratio)], [-1, -2]]);
    expect((await of(1.25)).value).toBeCloseTo(-(1 / 3) * (1.25 * 0.5 - 0.5 - 0.5), 12);
    const cut = await of(1.3);
    expect(cut.value).toBeCloseTo(-(1 / 3) * (1.28 * 0.5 - 0.5 - 0.5), 12);
    [0, 1 / 6, 1 / 6].forEach((x, i) => expect(cut.d.flat()[i]).toBeCloseTo(x, 12));
  });
});

describe("the soft overlong punishment", () => {
  it("of a budget of 20 with a buffer of 4 is 0 to 16, -1/4 at 17, -1 at 20 and beyond", () => {
    expect([1, 16, 17, 18, 20, 25].map((n) => overlong(n, 20, 4))).toEqual([0, 0, -0.25, -0.5, -1, -1]);
  });

  it("is added to rewards before advantages, a fifth of the budget by default: R = 1 and 1 - 1/3", async () => {
    const long = group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: new Array<number>(14).fill(-1), verdict: accept() })]);
    const { c } = await lossAt(made(dapo, { dynamic_sampling: false }), batch(long), [[-1], new Array<number>(14).fill(-1)]);
    // 16 tokens, of which a fifth is 3: from 13 on.
    expect(c.rewards.values[1]).toBeCloseTo(1 - 1 / 3, 12);
    expect(Math.sign(c.credit.trajectory[0] as number)).toBe(1);
  });

  it("leaves an unscored answer unscored", async () => {
    const b = batch(group("p", [row("p", 0, { old: new Array<number>(16).fill(-1), verdict: unscored("lost") }), row("p", 1, { old: [-1] })]));
    const { c } = await lossAt(made(dapo, { dynamic_sampling: false }), b, [new Array<number>(16).fill(-1), [-1]]);
    expect(c.rewards.values).toEqual([undefined, 0]);
  });

  it("is refused with a buffer beyond the budget", () => {
    expect(() => checkSettings(resolved(made(dapo, { overlong_buffer: 17 })), settings)).toThrow(
      "method dapo, option overlong_buffer: it is 17, and an answer has at most 16 tokens; lower it, or raise max_tokens",
    );
  });
});

/** Dynamic sampling over problems whose groups have these rewards; three a batch of two answers each. */
async function sample(most: number, ...rewards: readonly (readonly (0 | 1 | null)[])[]) {
  const groups = rewarded(...rewards).groups;
  let next = 0;
  const step = {
    step: 1,
    settings: { ...settings, problems: 3, group: 2 },
    async propose(n: number): Promise<Problem[]> {
      const from = next;
      next = Math.min(groups.length, from + n);
      return groups.slice(from, next).map(({ problem }) => problem);
    },
    async *expand(problem: Problem): AsyncGenerator<Trajectory> {
      yield* (groups.find((each) => each.problem === problem) as Group).trajectories;
    },
  } as unknown as Step;
  const cells = new Cells();
  const state = cells.cell("dapo", dapo.initial);
  const batched: Group[] = [];
  for await (const each of dynamicSampling(most, state).run(step)) batched.push(each);
  return { keys: batched.map(({ problem }) => problem.key), proposed: next, state: state.get() };
}

describe("dynamic sampling", () => {
  it("replaces groups of equal rewards by as many further problems, until the batch is full", async () => {
    const got = await sample(10, [1, 1], [1, 0], [0, 0], [1, 1], [0, 1], [0, 0], [1, 0], [1, 0]);
    // Round 1: p1. Two more: p4. One more, p5, is silent. One more: p6. p7 is not touched.
    expect(got).toEqual({ keys: ["p1", "p4", "p6"], proposed: 7, state: { refills: 3, dropped: 4 } });
  });

  it("needs none where all groups qualify", async () => {
    expect(await sample(10, [1, 0], [0, 1], [1, 0])).toEqual({ keys: ["p0", "p1", "p2"], proposed: 3, state: { refills: 0, dropped: 0 } });
  });

  it("stops after the refills it has, with a smaller batch", async () => {
    const got = await sample(2, [1, 0], [1, 1], [1, 1], [0, 0], [0, 0], [1, 1], [1, 1], [1, 0]);
    expect(got).toEqual({ keys: ["p0"], proposed: 7, state: { refills: 2, dropped: 6 } });
  });

  it("hands over the first groups where none qualifies, and ends where no problem is left", async () => {
    expect(await sample(10, [1, 1], [0, 0], [1, 1], [0, 0])).toEqual({ keys: ["p0", "p1", "p2"], proposed: 4, state: { refills: 1, dropped: 1 } });
  });

  it("counts scored answers alone: one right answer beside an unscored one is no comparison", async () => {
    expect((await sample(0, [1, null], [1, 0], [0, 0])).keys).toEqual(["p1"]);
  });
});

describe("a run with dynamic sampling", () => {
  it("trains on groups with signal alone, counts refills, and books what it dropped as discarded", async () => {
    const task = defineTask({
      name: "half",
      rows: () => Array.from({ length: 24 }, (_, i) => ({ prompt: `${i % 10}${i % 3}`, key: `p${i}`, answer: i % 2, split: "train" as const })),
      // Every second problem can be answered right, and is so at times.
      verify: ({ response, reference }) => reference === 1 && Number(response[0] ?? "9") < 5,
      maxTokens: () => 2,
      tokenizer: () => tokenizer,
    })();
    const run = options(await tablePolicy(), { task, method: { name: "dapo", options: { overlong_punishment: 0 } }, group: 4, problems: 4, steps: 2 });
    await train(run);
    let dropped = 0;
    for (const { step, kind, data } of RunReader.open(run.out).events()) {
      if (kind !== "step") continue;
      const metrics = data.metrics as { readonly [name: string]: number };
      const { sampled, rollouts } = data.ledger as { sampled: { train: number; discarded: number }; rollouts: number };
      dropped += metrics["dapo.dropped"] as number;
      expect(metrics).toMatchObject({ groups: 4, groups_silent: 0 });
      expect(metrics["dapo.refills"]).toBeGreaterThan(0);
      expect(sampled.discarded).toBeGreaterThan(0);
      expect(rollouts).toBe(4 * (4 * step + dropped));
    }
    expect(dropped).toBeGreaterThan(0);
  });
});

describe("DAPO", () => {
  it("refuses groups of one", () => {
    expect(() => checkSettings(resolved(made(dapo)), { ...settings, group: 1 })).toThrow(/^group: it is 1, and DAPO compares/);
  });

  it("has the paper's numbers as defaults", () => {
    expect(dapoOptions.parse({})).toEqual({ clip_low: 0.2, clip_high: 0.28, dynamic_sampling: true, max_refills: 10, overlong_punishment: 1 });
  });
});
