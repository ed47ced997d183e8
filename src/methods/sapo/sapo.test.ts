import { expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import { lossAt, made } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { grpo } from "../grpo/grpo.js";
import { compose } from "../resolve.js";
import { sapo, sapoOptions } from "./sapo.js";

const two = batch(group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: [-1], verdict: reject("no") })]));
const plain = (options: object = {}) => compose(made(grpo, { std: "none" }), made(sapo, options));
const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

it("by hand: good answers pass the gate of tau_pos, bad ones that of tau_neg", async () => {
  const ratio = 2;
  const { value, d } = await lossAt(plain({ tau_pos: 1, tau_neg: 3 }), two, [[-1 + Math.log(ratio)], [-1 + Math.log(ratio)]]);
  // A = 1/2 and -1/2, N = 2.
  expect(value).toBeCloseTo(-0.5 * (4 * sigmoid(1) * 0.5 - (4 / 3) * sigmoid(3) * 0.5), 12);
  const slope = (tau: number) => 4 * sigmoid(tau) * (1 - sigmoid(tau));
  expect(d[0]?.[0]).toBeCloseTo(-0.5 * 0.5 * ratio * slope(1), 12);
  expect(d[1]?.[0]).toBeCloseTo(0.5 * 0.5 * ratio * slope(3), 12);
});

it("at ratio 1 has GRPO's gradient, for any tau", async () => {
  const now = [[-1], [-1]];
  const [soft, hard] = [await lossAt(plain({ tau_pos: 7, tau_neg: 0.3 }), two, now), await lossAt(made(grpo, { std: "none" }), two, now)];
  soft.d.flat().forEach((x, i) => expect(x).toBeCloseTo(hard.d.flat()[i] as number, 12));
});

it("has the paper's temperatures as defaults", () => expect(sapoOptions.parse({})).toEqual({ tau_pos: 1, tau_neg: 1.05 }));
