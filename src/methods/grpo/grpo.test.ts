import { describe, expect, it } from "vitest";
import { batch, group, rewarded, row, scores } from "../../../test/support/batch.js";
import { accept, reject, unscored } from "../../core/verdict.js";
import { groupAdvantages, groupCounts } from "../advantages.js";
import { verdictReward } from "../base.js";
import { Cells } from "../cell.js";
import { coefficientsOf, groupsWithoutCoefficient, lossOf } from "../coefficients.js";
import type { Lab, Settings } from "../contract.js";
import { checkSettings, resolve, tableText } from "../resolve.js";
import { grpo, grpoOptions } from "./grpo.js";

const make = (options: object = {}) => grpo.make(grpoOptions.parse(options), new Cells().cell("grpo", grpo.initial));
const resolved = (options: object = {}) => resolve(make(options), make());
const lab = {} as Lab;
const sample = { std: "sample", eps: 1e-4 } as const;
const settings: Settings = { group: 8, problems: 4, temperature: 1, maxTokens: 16, stop: { ids: [0] } };

describe("advantages, by hand", () => {
  it("rewards 1, 0, 0, 1: mean 1/2, sample deviation sqrt(1/3)", () => {
    const b = rewarded([1, 0, 0, 1]);
    const a = 0.5 / (Math.sqrt(1 / 3) + 1e-4);
    expect([...groupAdvantages(b, verdictReward(b), sample)]).toEqual([a, -a, -a, a]);
  });

  it("rewards 1, 0, 0, 0 with the population deviation sqrt(3)/4, and without any", () => {
    const b = rewarded([1, 0, 0, 0]);
    const spread = Math.sqrt(3) / 4 + 1e-4;
    const got = groupAdvantages(b, verdictReward(b), { std: "population", eps: 1e-4 });
    [0.75, -0.25, -0.25, -0.25].forEach((x, i) => expect(got[i]).toBeCloseTo(x / spread, 12));
    expect([...groupAdvantages(b, verdictReward(b), { std: "none", eps: 1e-4 })]).toEqual([0.75, -0.25, -0.25, -0.25]);
  });

  it("an unscored member is left out of mean, deviation and count, and has advantage 0", () => {
    const b = rewarded([1, null, 0, null]);
    const a = 0.5 / (Math.sqrt(1 / 2) + 1e-4); // of 1 and 0 alone
    expect([...groupAdvantages(b, verdictReward(b), sample)]).toEqual([a, 0, -a, 0]);
  });

  it("a group whose rewards are all equal has exactly 0, also where the mean is not exact", () => {
    const b = rewarded([1, 1, 1]);
    const values = [0.1, 0.1, 0.1]; // their sum over three is 0.10000000000000002
    expect([...groupAdvantages(b, { values }, sample)]).toEqual([0, 0, 0]);
  });

  it("a group with one scored member, or none, has 0", () => {
    const b = rewarded([null, 1], [null, null], [1]);
    expect([...groupAdvantages(b, verdictReward(b), sample)]).toEqual([0, 0, 0, 0, 0]);
    expect(groupCounts(b, verdictReward(b))).toEqual({ varied: 0, equal: 0, oneScored: 2, unscored: 1 });
  });

  it("a spike is bounded: one success among 64 is sqrt(63) deviations, not thousands", () => {
    const b = rewarded([1, ...new Array<0>(63).fill(0)]);
    expect(groupAdvantages(b, verdictReward(b), sample)[0]).toBeLessThan(8);
  });

  it("groups do not see each other", () => {
    const b = rewarded([1, 0], [0, 0, 1]);
    const alone = rewarded([0, 0, 1]);
    expect([...groupAdvantages(b, verdictReward(b), sample)].slice(2)).toEqual([...groupAdvantages(alone, verdictReward(alone), sample)]);
  });

  it("episodes count once, however many rows they have", () => {
    const [good, bad] = [accept(), reject("wrong")];
    const b = batch(
      group("p", [
        row("p", 0, { old: [-1], episode: "a", turn: 0, verdict: good }),
        row("p", 1, { old: [-1], episode: "a", turn: 1, verdict: good }),
        row("p", 2, { old: [-1], episode: "b", turn: 0, verdict: bad }),
      ]),
    );
    const a = 0.5 / (Math.sqrt(1 / 2) + 1e-4);
    expect([...groupAdvantages(b, verdictReward(b), sample)]).toEqual([a, a, -a]);
  });

  it("trajectories that are not trained enter no statistic", () => {
    const b = batch(
      group("p", [
        row("p", 0, { old: [-1], verdict: accept() }),
        row("p", 1, { old: [-1], purpose: "aux", verdict: reject("no") }),
        row("p", 2, { old: [-1], verdict: accept() }),
      ]),
    );
    expect([...groupAdvantages(b, verdictReward(b), sample)]).toEqual([0, 0]);
  });
});

describe("the loss, by hand", () => {
  it("two answers of 1 and 2 tokens: 1/N (1/|y|), clip, and the value's sign", async () => {
    const b = batch(group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: [-1, -2], verdict: reject("wrong") })]));
    const c = await coefficientsOf(resolved({ std: "none" }), b, lab);
    // A = 1/2, -1/2. Row 0: ratio 1.5 > 1.2, cut: 1.2 * 1/2. Row 1: ratios 0.5 < 0.8, cut: 0.8 * -1/2; and 1: -1/2, kept.
    const { value, derivatives, statistics } = lossOf(c, [0, 1], [scores([-1 + Math.log(1.5)]), scores([-1 + Math.log(0.5), -2])]);
    expect(value).toBeCloseTo(-(0.5 * 0.6 + 0.25 * (-0.4 - 0.5)), 12);
    expect(derivatives[0]?.dLogp?.[0]).toBeCloseTo(0, 12);
    expect(derivatives[1]?.dLogp?.[0]).toBeCloseTo(0, 12);
    expect(derivatives[1]?.dLogp?.[1]).toBeCloseTo(0.125, 12);
    expect(statistics.clip_high).toEqual({ sum: 1, count: 3 });
  });

  it("an unscored answer has no weight anywhere, its KL included", async () => {
    const b = batch(
      group("p", [
        row("p", 0, { old: [-1], verdict: accept() }),
        row("p", 1, { old: [-1], verdict: unscored("lost") }),
        row("p", 2, { old: [-1], verdict: reject("no") }),
      ]),
    );
    const reference = { score: async () => [scores([-2]), scores([-2]), scores([-2])] } as unknown as Lab;
    const c = await coefficientsOf(resolved({ kl_coef: 0.1 }), b, reference);
    const { derivatives } = lossOf(c, [0, 1, 2], [scores([-1]), scores([-1]), scores([-1])]);
    expect(derivatives[1]?.dLogp).toEqual(Float64Array.from([0]));
    expect(c.weights.map((w) => w[0])).toEqual([1 / 2, 0, 1 / 2]);
  });

  it("a KL pulls scored answers of groups without signal too, and 0 leaves them alone", async () => {
    const b = batch(group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: [-1], verdict: accept() })]));
    const slopes = async (kl_coef: number) => {
      const reference = { score: async () => [scores([-2]), scores([-2])] } as unknown as Lab;
      const c = await coefficientsOf(resolved({ kl_coef }), b, reference);
      return lossOf(c, [0, 1], [scores([-1]), scores([-1])]).derivatives.map(({ dLogp }) => dLogp?.[0]);
    };
    // k3 at d = log reference - log policy = -1: its slope is 1 - exp(d); each of two answers of one token weighs 1/2.
    for (const slope of await slopes(0.1)) expect(slope).toBeCloseTo((0.1 / 2) * (1 - Math.exp(-1)), 12);
    for (const slope of await slopes(0)) expect(slope).toBeCloseTo(0, 15);
  });

  it("KL in the reward: each answer's reward falls by kl_coef times its summed estimate", async () => {
    const b = batch(group("p", [row("p", 0, { old: [-1, -1], verdict: accept() }), row("p", 1, { old: [-1], verdict: reject("no") })]));
    const reference = { score: async () => [scores([-3, -2]), scores([-1])] } as unknown as Lab;
    const c = await coefficientsOf(resolved({ kl_coef: 0.1, kl_estimator: "k1", kl_place: "reward", std: "none" }), b, reference);
    // R = 1 - 0.1 (2 + 1) = 0.7 and 0; mean 0.35.
    expect(c.credit.trajectory[0]).toBeCloseTo(0.35, 12);
    expect(c.credit.trajectory[1]).toBeCloseTo(-0.35, 12);
    expect(c.terms).toEqual([]);
  });

  it("groups without a coefficient are found", async () => {
    const c = await coefficientsOf(resolved(), rewarded([1, 1], [1, 0], [null, 1]), lab);
    expect(groupsWithoutCoefficient(c)).toEqual([0, 2]);
  });

  it("a batch in which nothing was scored has loss and derivatives 0", async () => {
    const c = await coefficientsOf(resolved(), rewarded([null, null]), lab);
    const { value, derivatives } = lossOf(c, [0, 1], [scores([-2]), scores([-3])]);
    expect(Math.abs(value)).toBe(0);
    expect(derivatives.every((d) => d.dLogp?.every((x) => x === 0))).toBe(true);
  });
});

describe("options and settings", () => {
  it("a group of one is refused and explained before anything runs", () => {
    expect(() => checkSettings(resolved(), { ...settings, group: 1 })).toThrow(
      "group: it is 1, and GRPO compares the answers to one problem with each other: alone, an answer has advantage 0 and nothing is learnt; set group to 2 or more (8 is usual), or take a method without a group baseline",
    );
    expect(() => checkSettings(resolved(), settings)).not.toThrow();
  });

  it("the documented defaults are those in force", () => {
    expect(grpoOptions.parse({})).toEqual({
      clip_low: 0.2,
      clip_high: 0.2,
      std: "sample",
      eps: 1e-4,
      kl_coef: 0,
      kl_estimator: "k3",
      kl_place: "loss",
      aggregation: "seq-mean-token-mean",
      aggregation_constant: 1,
    });
    expect(Object.values(grpoOptions.shape).every((option) => (option.description ?? "").length > 0)).toBe(true);
  });

  it("an unknown option is refused", () => {
    expect(() => grpoOptions.parse({ clip_hi: 0.3 })).toThrow("clip_hi");
  });

  it("a KL needs the role `reference`, and 0 needs none", () => {
    expect(make({ kl_coef: 0.1 }).needs?.map((n) => n.for)).toEqual(["training", "the KL to the reference"]);
    expect(make().needs?.map((n) => n.for)).toEqual(["training"]);
  });

  it("answers every slot, and the table says how", () => {
    expect(tableText(resolved())).toMatchInlineSnapshot(`
      "select                     grpo (prefers)  shuffled epochs
      rollout.allocate           grpo (prefers)  a fixed number of answers a problem
      rollout.expand             grpo (prefers)  one plain answer
      reward                     grpo (prefers)  accept 1, reject 0
      credit                     grpo (prefers)  (R - mean) / (sample deviation + 0.0001) of the group
      loss                       grpo (prefers)  clip(ratio, 1 - 0.2, 1 + 0.2)
      loss.aggregate             grpo (prefers)  seq-mean-token-mean
      optimizer.parametrisation  grpo (prefers)  all weights, or all of an adapter
      optimizer                  grpo (prefers)  AdamW"
    `);
  });
});
