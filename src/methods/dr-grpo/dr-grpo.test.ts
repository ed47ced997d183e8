import { expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import { lossAt, made } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { grpo } from "../grpo/grpo.js";
import { compose } from "../resolve.js";
import { drGrpo } from "./dr-grpo.js";

const two = batch(group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: [-1, -2], verdict: reject("no") })]));
const now = [[-1 + Math.log(1.1)], [-1, -2]];

it("by hand: A = 1/2 and -1/2, and every token weighs 1/(N max_tokens) = 1/32, however long its answer", async () => {
  const { value, d, c } = await lossAt(made(drGrpo), two, now);
  expect([...c.credit.trajectory]).toEqual([0.5, -0.5]);
  expect(value).toBeCloseTo(-(1 / 32) * (1.1 * 0.5 - 0.5 - 0.5), 12);
  [-1.1 / 64, 1 / 64, 1 / 64].forEach((x, i) => expect(d.flat()[i]).toBeCloseTo(x, 12));
});

it("another constant takes the budget's place", async () => {
  const { value } = await lossAt(made(drGrpo, { constant: 4 }), two, now);
  expect(value).toBeCloseTo(-(1 / 8) * (1.1 * 0.5 - 0.5 - 0.5), 12);
});

it("takes the bounds of the ratio from GRPO's options", async () => {
  const { value } = await lossAt(compose(made(grpo, { clip_high: 0.05 }), made(drGrpo)), two, now);
  expect(value).toBeCloseTo(-(1 / 32) * (1.05 * 0.5 - 0.5 - 0.5), 12);
});
