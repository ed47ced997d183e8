import { expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import { lossAt, made } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { grpo } from "../grpo/grpo.js";
import { compose } from "../resolve.js";
import { cispo, cispoOptions } from "./cispo.js";

const two = batch(group("p", [row("p", 0, { old: [-4, -4], verdict: accept() }), row("p", 1, { old: [-1], verdict: reject("no") })]));
const plain = (options: object = {}) => compose(made(grpo, { std: "none" }), made(cispo, options));

it("by hand: the weight of a token is its ratio, at most 5, and the mean is over the batch's 3 tokens", async () => {
  const now = [[-4 + Math.log(8), -4 + Math.log(0.1)], [-1]];
  const { value, d } = await lossAt(plain(), two, now);
  // A = 1/2 and -1/2; weights 5, 0.1 and 1.
  const [a, b] = now[0] as [number, number];
  expect(value).toBeCloseTo(-(1 / 3) * (5 * 0.5 * a + 0.1 * 0.5 * b - 0.5 * -1), 12);
  [-2.5 / 3, -0.05 / 3, 0.5 / 3].forEach((x, i) => expect(d.flat()[i]).toBeCloseTo(x, 12));
});

it("a lower bound raises small weights", async () => {
  const { d } = await lossAt(plain({ clip_low: 0.5 }), two, [[-4, -4 + Math.log(0.1)], [-1]]);
  expect(d[0]?.[1]).toBeCloseTo(-0.25 / 3, 12);
});

it("has the documented defaults", () => expect(cispoOptions.parse({})).toEqual({ clip_high: 4 }));
