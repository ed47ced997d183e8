import { describe, expect, it } from "vitest";
import { batch, group, rewarded, row } from "../../../test/support/batch.js";
import { lossAt, made, referenceOf, resolved, settings } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { leaveOneOut } from "../advantages.js";
import { verdictReward } from "../base.js";
import { checkSettings } from "../resolve.js";
import { rloo, rlooOptions } from "./rloo.js";

const advantages = (...groups: readonly (readonly (0 | 1 | null)[])[]) => {
  const b = rewarded(...groups);
  return [...leaveOneOut(b, verdictReward(b))];
};
const two = batch(group("p", [row("p", 0, { old: [-1, -1], verdict: accept() }), row("p", 1, { old: [-1], verdict: reject("no") })]));

describe("leave-one-out advantages, by hand", () => {
  it("rewards 1, 0, 0, 1: the others' means are 1/3, 2/3, 2/3, 1/3", () => {
    [2 / 3, -2 / 3, -2 / 3, 2 / 3].forEach((a, i) => expect(advantages([1, 0, 0, 1])[i]).toBeCloseTo(a, 12));
  });

  it("an unscored answer is nobody's other, and a lone scored one has 0", () => {
    expect(advantages([1, null, 0], [1, null])).toEqual([1, 0, -1, 0, 0]);
  });

  it("equal rewards give exactly 0, also where their sum is not exact", () => {
    const b = rewarded([1, 1, 1]);
    expect([...leaveOneOut(b, { values: [0.1, 0.1, 0.1] })]).toEqual([0, 0, 0]);
  });

  it("a spike is bounded by the rewards: one success among 64 has 1, the others -1/63", () => {
    const got = advantages([1, ...new Array<0>(63).fill(0)]);
    expect(got[0]).toBe(1);
    expect(got[1]).toBeCloseTo(-1 / 63, 12);
  });
});

describe("the loss, by hand", () => {
  it("reinforce: -(1/2) sum of A times the answer's log-prob", async () => {
    const { value, d } = await lossAt(made(rloo), two, [[-0.5, -1], [-2]]);
    expect(value).toBeCloseTo(-0.5 * (1 * -1.5 + -1 * -2), 12);
    expect(d).toEqual([[-0.5, -0.5], [0.5]]);
  });

  it("sequence-clip: the ratio is that of the whole answer, e^(1/2) e^0 = 1.65 > 1.2", async () => {
    const { value, d, statistics } = await lossAt(made(rloo, { surrogate: "sequence-clip" }), two, [[-0.5, -1], [-1]]);
    expect(value).toBeCloseTo(-0.5 * (1.2 - 1), 12);
    d.flat().forEach((x, i) => expect(x).toBeCloseTo([0, 0, 0.5][i] as number, 12));
    expect(statistics.clip_high).toBeCloseTo(2 / 3, 12);
  });

  it("the KL is in the reward: 1 - 0.1 (2 + 1) = 0.7 against 0", async () => {
    const { c } = await lossAt(made(rloo, { kl_coef: 0.1 }), two, [[-1, -1], [-1]], referenceOf([[-3, -2], [-1]]));
    expect(c.credit.trajectory[0]).toBeCloseTo(0.7, 12);
    expect(c.credit.trajectory[1]).toBeCloseTo(-0.7, 12);
  });
});

describe("RLOO", () => {
  it("refuses groups of one", () => {
    expect(() => checkSettings(resolved(made(rloo)), { ...settings, group: 1 })).toThrow("group: it is 1, and RLOO compares the answers to one problem");
  });

  it("has the documented defaults", () => {
    expect(rlooOptions.parse({})).toEqual({ surrogate: "reinforce", clip_low: 0.2, clip_high: 0.2, kl_coef: 0 });
  });
});
