import { describe, expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import { lossAt, made, referenceOf } from "../../../test/support/method.js";
import { accept, reject, unscored } from "../../core/verdict.js";
import { opd } from "./opd.js";

const old = [[-1, -2], [-3]];
const teacher = referenceOf([[-0.5, -2], [-4]]);
const pair = batch(group("p", [row("p", 0, { old: old[0], verdict: accept() }), row("p", 1, { old: old[1], verdict: reject("no") })]));

describe("on-policy distillation", () => {
  it("by hand: a token's coefficient is the teacher's log-prob less its own, in the mean over the batch's 3 tokens", async () => {
    const { c, value, d } = await lossAt(made(opd), pair, old, teacher);
    expect(c.credit.token.map((row) => [...row])).toEqual([[0.5, 0], [-1]]);
    expect(value).toBeCloseTo(-(0.5 - 1) / 3, 12);
    [-0.5 / 3, 0, 1 / 3].forEach((x, i) => expect(d.flat()[i]).toBeCloseTo(x, 12));
  });

  it("has a gradient of 0 where the teacher is the policy", async () => {
    const { d } = await lossAt(made(opd), pair, old, referenceOf(old));
    expect(d.flat().every((x) => x === 0)).toBe(true);
  });

  it("adds the group's advantage where it is asked to, and learns from unscored answers where not", async () => {
    const { c } = await lossAt(made(opd, { reward_coef: 2 }), pair, old, teacher);
    expect(c.credit.token.map((row) => [...row])).toEqual([[1.5, 1], [-2]]);
    const silent = batch(group("p", [row("p", 0, { old: old[0], verdict: unscored("down") }), row("p", 1, { old: old[1], verdict: unscored("down") })]));
    expect((await lossAt(made(opd), silent, old, teacher)).d.flat()[0]).not.toBe(0);
  });
});
