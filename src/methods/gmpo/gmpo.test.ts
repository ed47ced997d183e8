import { describe, expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import { lossAt, made } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { grpo } from "../grpo/grpo.js";
import { compose } from "../resolve.js";
import { gmpo, gmpoOptions } from "./gmpo.js";

const two = batch(group("p", [row("p", 0, { old: [-2, -2], verdict: accept() }), row("p", 1, { old: [-2, -2], verdict: reject("no") })]));
const plain = (options: object = {}) => compose(made(grpo, { std: "none" }), made(gmpo, options));
const at = (...x: readonly number[]) => x.map((d) => -2 + d);

describe("GMPO, by hand", () => {
  it("log-ratios 1 and 0.2: the first is cut at 0.4, the mean is 0.3, and the cut token has no gradient", async () => {
    const { value, d, statistics } = await lossAt(plain(), two, [at(1, 0.2), at(0, 0)]);
    // A = 1/2 and -1/2, N = 2.
    expect(value).toBeCloseTo(-0.5 * (0.5 * Math.exp(0.3) - 0.5), 12);
    [0, -0.125 * Math.exp(0.3), 0.125, 0.125].forEach((x, i) => expect(d.flat()[i]).toBeCloseTo(x, 12));
    expect(statistics.clip_high).toBe(0.25);
  });

  it("a bad answer is cut below and not above: -1 counts as -0.4, and 1 as 1", async () => {
    const { value, d, statistics } = await lossAt(plain(), two, [at(0, 0), at(-1, 1)]);
    expect(value).toBeCloseTo(-0.5 * (0.5 - 0.5 * Math.exp(0.3)), 12);
    [-0.125, -0.125, 0, 0.125 * Math.exp(0.3)].forEach((x, i) => expect(d.flat()[i]).toBeCloseTo(x, 12));
    expect(statistics.clip_low).toBe(0.25);
  });

  it("its derivative is that of its value, by central differences", async () => {
    const now = [at(0.35, -0.7), at(0.6, -0.1)];
    const { d } = await lossAt(plain(), two, now);
    const h = 1e-6;
    for (const [i, r] of now.entries()) {
      for (const t of r.keys()) {
        const moved = (by: number) => lossAt(plain(), two, now.map((logp, j) => logp.map((x, s) => (j === i && s === t ? x + by : x)))); // biome-ignore format: one thought
        expect(((await moved(h)).value - (await moved(-h)).value) / (2 * h)).toBeCloseTo(d[i]?.[t] as number, 8);
      }
    }
  });

  it("a ratio of e^100 in a bad answer stays finite and has no gradient", async () => {
    const { value, d } = await lossAt(plain(), two, [at(0, 0), at(100, 100)]);
    expect(value).toBeCloseTo(-0.25 + 0.25 * Math.exp(20), 3);
    expect(d[1]?.map(Math.abs)).toEqual([0, 0]);
  });
});

it("has the paper's bounds as defaults", () => expect(gmpoOptions.parse({})).toEqual({ clip_low: 0.4, clip_high: 0.4 }));
