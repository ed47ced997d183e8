import { expect, it } from "vitest";
import { batch, group, row, scores } from "../../../test/support/batch.js";
import { made, resolved, settings } from "../../../test/support/method.js";
import { accept, reject, unscored } from "../../core/verdict.js";
import { coefficientsOf, lossOf } from "../coefficients.js";
import type { Lab, Method } from "../contract.js";
import { grpo } from "../grpo/grpo.js";
import { checkNeeds } from "../needs.js";
import { compose } from "../resolve.js";
import { entropyBonus, entropyBonusOptions } from "./entropy-bonus.js";

const b = batch(
  group("p", [
    row("p", 0, { old: [-1], verdict: accept() }),
    row("p", 1, { old: [-1, -1], verdict: reject("no") }),
    row("p", 2, { old: [-1], verdict: unscored("lost") }),
  ]),
);
const now = [scores([-1], [0.5]), scores([-1, -1], [1, 2]), scores([-1], [9])];
const all = [0, 1, 2];

it("by hand: the loss falls by coef times the mean entropy, aggregated as the policy's loss is", async () => {
  const of = (...methods: readonly Method[]) => coefficientsOf(resolved(compose(...methods)), b, { settings } as Lab);
  const plain = lossOf(await of(made(grpo)), all, now);
  const bonus = lossOf(await of(made(grpo), made(entropyBonus, { coef: 0.1 })), all, now);
  // seq-mean-token-mean over two scored answers: 1/2 (0.5 + (1 + 2)/2) = 1.
  expect(bonus.value - plain.value).toBeCloseTo(-0.1, 12);
  expect(bonus.derivatives.map(({ dEntropy }) => [...(dEntropy ?? [])])).toEqual([[-0.05], [-0.025, -0.025], [0]]);
  bonus.derivatives.forEach(({ dLogp }, i) => expect(dLogp).toEqual(plain.derivatives[i]?.dLogp));
});

it("needs an engine that gives entropies a gradient", () => {
  const engine = { name: "plain", has: new Set(["sample", "train"] as const), lacks: { "train.entropy": "it is plain" }, fingerprint: {} };
  expect(() => checkNeeds(made(entropyBonus), engine, new Set(["policy"]))).toThrow("method entropy-bonus: the gradient of entropies needs train.entropy");
});

it("has the documented defaults", () => expect(entropyBonusOptions.parse({})).toEqual({ coef: 0.001 }));
