import { describe, expect, it } from "vitest";
import { batch, group, rewarded, row } from "../../../test/support/batch.js";
import { lossAt, made, resolved, settings } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { groupsWithoutCoefficient } from "../coefficients.js";
import { checkSettings } from "../resolve.js";
import { reinforce, reinforceOptions } from "./reinforce.js";

const two = batch(group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: [-1, -2], verdict: reject("no") })]));

describe("REINFORCE, by hand", () => {
  it("without a baseline: loss -(1/2) R sum of log-probs, whatever the ratio", async () => {
    const { value, d, c } = await lossAt(made(reinforce), two, [[-0.5], [-3, -1]]);
    expect([...c.credit.trajectory]).toEqual([1, 0]);
    expect(value).toBeCloseTo(0.25, 12);
    expect(d).toEqual([[-0.5], [-0, -0]]);
  });

  it("with the batch's mean 1/2: A = 1/2 and -1/2", async () => {
    const { value, d } = await lossAt(made(reinforce, { baseline: "batch" }), two, [[-0.5], [-3, -1]]);
    expect(value).toBeCloseTo(-(1 / 2) * (0.5 * -0.5 - 0.5 * -4), 12);
    expect(d).toEqual([[-0.25], [0.25, 0.25]]);
  });

  it("the batch's mean is over the scored answers of all groups", async () => {
    const { c } = await lossAt(made(reinforce, { baseline: "batch" }), rewarded([1, null], [0, 0]), [[-1], [-1], [-1], [-1]]);
    [2 / 3, 0, -1 / 3, -1 / 3].forEach((a, i) => expect(c.credit.trajectory[i]).toBeCloseTo(a, 12));
    expect(c.weights.map((w) => w[0])).toEqual([1 / 3, 0, 1 / 3, 1 / 3]);
  });
});

describe("REINFORCE", () => {
  it("learns from a group whose answers are all right, and from groups of one", async () => {
    const { c } = await lossAt(made(reinforce), rewarded([1, 1], [0, 0]), [[-1], [-1], [-1], [-1]]);
    expect(groupsWithoutCoefficient(c)).toEqual([1]);
    expect(() => checkSettings(resolved(made(reinforce)), { ...settings, group: 1 })).not.toThrow();
  });

  it("has the documented defaults", () => expect(reinforceOptions.parse({})).toEqual({ baseline: "none" }));
});
