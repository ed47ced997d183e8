import { describe, expect, it } from "vitest";
import { batch, group, rewarded, row } from "../../../test/support/batch.js";
import { lossAt, made, referenceOf, resolved, settings } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { checkSettings } from "../resolve.js";
import { returnsToGo } from "../rewards.js";
import { reinforcePp, reinforcePpOptions } from "./reinforce-pp.js";

const two = batch(group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: [-1, -1, -1], verdict: reject("no") })]));
const same = [[-1], [-1, -1, -1]];

describe("REINFORCE++, by hand", () => {
  it("returns 1 on one token and 0 on three: mean 1/4, deviation sqrt(3)/4", async () => {
    const { c, value, d } = await lossAt(made(reinforcePp), two, same);
    const a = [Math.sqrt(3), -1 / Math.sqrt(3)];
    a.forEach((x, i) => expect(c.credit.trajectory[i]).toBeCloseTo(x, 12));
    expect(value).toBeCloseTo(-(1 / 4) * ((a[0] as number) + 3 * (a[1] as number)), 12);
    expect(d[0]?.[0]).toBeCloseTo(-Math.sqrt(3) / 4, 12);
  });

  it("a KL in the reward makes returns to go of it: 1 - 0.1 (2 + 1), 1 - 0.1 (1), and 0", async () => {
    const b = batch(group("p", [row("p", 0, { old: [-1, -1], verdict: accept() }), row("p", 1, { old: [-1], verdict: reject("no") })]));
    const { c } = await lossAt(made(reinforcePp, { kl_coef: 0.1 }), b, [[-1, -1], [-1]], referenceOf([[-3, -2], [-1]]));
    const [x, y, z] = [0.7, 0.9, 0];
    const mean = (x + y + z) / 3;
    const spread = Math.sqrt(((x - mean) ** 2 + (y - mean) ** 2 + (z - mean) ** 2) / 3);
    [x, y, z].forEach((r, i) => expect([...c.credit.token.flatMap((t) => [...t])][i]).toBeCloseTo((r - mean) / spread, 12));
    expect(c.credit.wrote("token")).toBe(true);
  });

  it("with the group's baseline: R - 1/2 = 1/2 and -1/2 (thrice), mean -1/4", async () => {
    const { c } = await lossAt(made(reinforcePp, { baseline: "group" }), two, same);
    const spread = Math.sqrt((0.75 ** 2 + 3 * 0.25 ** 2) / 4);
    expect(c.credit.trajectory[0]).toBeCloseTo(0.75 / spread, 12);
    expect(c.credit.trajectory[1]).toBeCloseTo(-0.25 / spread, 12);
  });

  it("with the group's baseline the KL is k2 in the loss: kl_coef (l - f)^2 / 2, a mean over tokens", async () => {
    const lab = referenceOf([[-3], [-1, -1, -1]]);
    const [plain, penalised] = [await lossAt(made(reinforcePp, { baseline: "group" }), two, same), await lossAt(made(reinforcePp, { baseline: "group", kl_coef: 0.1 }), two, same, lab)]; // biome-ignore format: one thought
    expect(penalised.value - plain.value).toBeCloseTo((0.1 * 2) / 4, 12);
  });
});

describe("REINFORCE++", () => {
  it("is exactly 0 where all returns of a batch are equal", async () => {
    const { c } = await lossAt(made(reinforcePp), rewarded([1, 1], [1, null]), [[-1], [-1], [-1], [-1]]);
    expect([...c.credit.trajectory]).toEqual([0, 0, 0, 0]);
  });

  it("leaves unscored answers and masked tokens out of mean and deviation", async () => {
    const b = batch(
      group("p", [
        row("p", 0, { old: [-1, -1], mask: [1, 0], verdict: accept() }),
        row("p", 1, { old: [-1], verdict: reject("no") }),
        row("p", 2, { old: [-1, -1, -1, -1], verdict: { kind: "unscored", reason: "lost" } }),
      ]),
    );
    const { c } = await lossAt(made(reinforcePp), b, [[-1, -1], [-1], [-1, -1, -1, -1]]);
    expect([...c.credit.trajectory]).toEqual([1, -1, 0]);
  });

  it("takes groups of one, but not with the group's baseline", () => {
    const one = { ...settings, group: 1 };
    expect(() => checkSettings(resolved(made(reinforcePp)), one)).not.toThrow();
    expect(() => checkSettings(resolved(made(reinforcePp, { baseline: "group" })), one)).toThrow("REINFORCE++-baseline compares the answers");
  });

  it("returns to go of an episode reach over its turns: rewards on later tokens, and the last turn's own", () => {
    const b = batch(
      group("p", [
        row("p", 0, { old: [-1, -1], episode: "e", turn: 0, verdict: reject("not yet") }),
        row("p", 1, { old: [-1, -1], episode: "e", turn: 1, verdict: accept() }),
      ]),
    );
    const left = returnsToGo(b, { values: [0, 1], tokens: [Float64Array.of(0.5, 0.25), Float64Array.of(0, 2)] });
    expect(left.map((x) => [...x])).toEqual([
      [3.75, 3.25],
      [3, 3],
    ]);
  });

  it("has the documented defaults", () => {
    expect(reinforcePpOptions.parse({})).toEqual({ baseline: "none", eps: 1e-8, clip_low: 0.2, clip_high: 0.2, kl_coef: 0 });
  });
});
