import { describe, expect, it } from "vitest";
import { batch, group, rewarded, row } from "../../../test/support/batch.js";
import { lax } from "../../../test/support/lax-task.js";
import { lossAt, made, resolved } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { options as runOf, tablePolicy } from "../../../test/support/tabular.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Batch } from "../../core/trajectory.js";
import { RunReader } from "../../train/store/reader.js";
import { train } from "../../train/train.js";
import type { Method } from "../contract.js";
import { Credit, rowsOf } from "../credit.js";
import { grpo } from "../grpo/grpo.js";
import { gspo } from "../gspo/gspo.js";
import { opd } from "../opd/opd.js";
import { compose } from "../resolve.js";
import { boundsFor, gapo, gapoOptions } from "./gapo.js";

const defaults = gapoOptions.parse({});
const clipped = { low: 0.8, high: 1.28 };
/** A credit of these advantages, in place of GRPO's. */
const given = (...advantages: number[]) => ({
  name: "given",
  slots: { credit: { owns: (of: Batch) => Credit.zero(of).with("trajectory", Float64Array.from(advantages)) } },
});
const exact = { std: "population", eps: 1e-12 };
/** The loss where the token of each answer has this ratio. */
const at = (b: Batch, ratios: readonly number[], ...methods: Method[]) =>
  lossAt(
    compose(...methods),
    b,
    ratios.map((ratio) => [-1 + Math.log(ratio)]),
  );

describe("bounds, by hand", () => {
  it("of one right answer in eight: sqrt 7 times as far up, and half as far down for the seven wrong ones", async () => {
    const b = rewarded([1, 0, 0, 0, 0, 0, 0, 0]);
    const { c } = await at(b, new Array(8).fill(1), made(grpo, { ...exact, clip_high: 0.28 }), made(gapo));
    expect(c.credit.trajectory[0]).toBeCloseTo(2.6458, 4);
    expect(c.bounds[0].high[0]).toBeCloseTo(1 + 0.28 * Math.sqrt(7), 10);
    expect(c.bounds[0].low[0]).toBeCloseTo(1 - 0.2 * Math.sqrt(7), 10);
    expect(c.bounds[1].low[0]).toBeCloseTo(0.9, 12); // |A| = 0.378, and k_min is 0.5
    expect(c.bounds[1].high[0]).toBeCloseTo(1.14, 12);
  });

  it("linear: k between k_min and k_max, and 0.8 below at most", () => {
    const of = (size: number, more = {}) => boundsFor(size, clipped, { ...defaults, ...more });
    [of(2).low, of(2).high].forEach((x, i) => expect(x).toBeCloseTo([0.6, 1.56][i], 12));
    [of(9).low, of(9).high].forEach((x, i) => expect(x).toBeCloseTo([0.4, 1.84][i], 12));
    expect(of(9, { k_max: 5 }).low).toBeCloseTo(0.2, 12);
    expect(of(4, { a_ref: 2 })).toEqual(of(2));
  });

  it("exponential: 1.28^|A| up and down, without k", () => {
    const of = (size: number) => boundsFor(size, clipped, { ...defaults, form: "exponential" });
    [of(2).low, of(2).high].forEach((x, i) => expect(x).toBeCloseTo([1.28 ** -2, 1.28 ** 2][i], 12));
    expect(of(0)).toEqual({ low: 1, high: 1 });
    expect(of(10).low).toBeCloseTo(0.2, 12);
  });

  it("of a loss that has none stay away", () => {
    const none = { low: 0, high: Number.POSITIVE_INFINITY };
    for (const form of ["linear", "exponential"] as const) expect(boundsFor(2, none, { ...defaults, form })).toEqual(none);
  });

  it("on the side of right answers alone, and as a mean that knows nothing of them", async () => {
    const b = rewarded([1, 0, 0]);
    const highs = async (options: object) =>
      (await at(b, [1, 1, 1], given(2, -1, -1.5), made(gapo, options))).c.bounds.map(({ low, high }) => [low[0], high[0]]);
    const close = (is: number[][], wanted: number[][]) => is.flat().forEach((x, i) => expect(x).toBeCloseTo(wanted.flat()[i], 12));
    close(await highs({ sides: "positive" }), [
      [0.6, 1.4],
      [0.8, 1.2],
      [0.8, 1.2],
    ]);
    close(await highs({ control: "mean" }), [
      [0.7, 1.3],
      [0.7, 1.3],
      [0.7, 1.3],
    ]);
    close(await highs({ control: "mean", sides: "positive" }), [
      [0.6, 1.4],
      [0.8, 1.2],
      [0.8, 1.2],
    ]);
  });

  it("scale the answers' bounds of GSPO, too", async () => {
    const { c, d } = await at(rewarded([1, 0]), [1.0009, 1], given(2.5, -1), made(gspo), made(gapo));
    expect(c.bounds[0].high[0]).toBeCloseTo(1.001, 12);
    expect(d[0][0]).not.toBe(0);
    expect((await at(rewarded([1, 0]), [1.0009, 1], given(2.5, -1), made(gspo))).d[0][0]).toBe(-0);
  });
});

describe("GAPO", () => {
  it("with |A| = a_ref everywhere is the fixed clip, bit for bit", async () => {
    const b = rewarded([1, 0, 1, 0]);
    const ratios = [1.27, 0.7, 1.4, 0.95];
    for (const base of [made(grpo, { clip_high: 0.28 }), made(gspo)]) {
      const fixed = await at(b, ratios, base, given(1.3, -1.3, 1.3, -1.3));
      const own = await at(b, ratios, base, given(1.3, -1.3, 1.3, -1.3), made(gapo, { a_ref: 1.3 }));
      expect(own.c.bounds).toEqual(fixed.c.bounds);
      expect(own).toMatchObject({ value: fixed.value, d: fixed.d });
      const switchedOff = await at(b, ratios, base, given(0.1, -7, 2, -1), made(gapo, { k_min: 1, k_max: 1 }));
      expect(switchedOff.d).toEqual((await at(b, ratios, base, given(0.1, -7, 2, -1))).d);
    }
  });

  it("at ratio 1 is GRPO for any advantages, value and gradient", async () => {
    const stream = new Stream(randomKey({ seed: 1, purpose: "test" }));
    for (let round = 0; round < 20; round++) {
      const a = given(...Array.from({ length: 4 }, () => 8 * (stream.next() - 0.5)));
      const form = stream.pick(["linear", "exponential"]);
      const [own, plain] = [await at(rewarded([1, 0, 1, 0]), [1, 1, 1, 1], a, made(gapo, { form })), await at(rewarded([1, 0, 1, 0]), [1, 1, 1, 1], a)];
      expect(own).toMatchObject({ value: plain.value, d: plain.d });
    }
  });

  it("gives more room to larger advantages, never less", () => {
    for (const form of ["linear", "exponential"] as const) {
      const all = Array.from({ length: 60 }, (_, i) => boundsFor(i / 10, clipped, { ...defaults, form }));
      all.slice(1).forEach(({ low, high }, i) => {
        expect(high).toBeGreaterThanOrEqual(all[i].high);
        expect(low).toBeLessThanOrEqual(all[i].low);
      });
    }
  });

  it("takes the gradient of a token exactly where its own bound is passed on the side that its sign makes binding", async () => {
    const stream = new Stream(randomKey({ seed: 2, purpose: "test" }));
    let cut = 0;
    for (let round = 0; round < 300; round++) {
      const a = 6 * (stream.next() - 0.5);
      const ratio = Math.exp(2 * (stream.next() - 0.5));
      const { c, d } = await at(rewarded([1, 0]), [ratio, 1], given(a, 1), made(gapo));
      const { low, high } = { low: c.bounds[0].low[0], high: c.bounds[0].high[0] };
      const beyond = a > 0 ? ratio > high : ratio < low;
      expect(d[0][0] === 0).toBe(beyond);
      if (beyond) cut++;
    }
    expect(cut).toBeGreaterThan(20);
  });

  it("exponential has as much room as the best policy under a KL to the old one takes: eta (A_1 - A_2) between two actions", () => {
    const [eta, a, p] = [Math.log(1.28), [1.7, -0.6], 0.3];
    // Gradient ascent in the log-odds of action 1 on E[A] - KL / eta.
    let x = 0;
    const old = Math.log(p / (1 - p));
    for (let i = 0; i < 20_000; i++) {
      const now = 1 / (1 + Math.exp(-x));
      x += 0.5 * now * (1 - now) * (a[0] - a[1] - (x - old) / eta);
    }
    const [up, down] = a.map((each) => boundsFor(Math.abs(each), { low: 0.5, high: 1.28 }, { ...defaults, form: "exponential" }));
    expect(x - old).toBeCloseTo(eta * (a[0] - a[1]), 9);
    expect(Math.log(up.high) - Math.log(down.low)).toBeCloseTo(x - old, 9);
  });

  it("reads the level of answers, whatever stages make of tokens, and tokens where there is nothing else", async () => {
    const b = batch(group("p", [row("p", 0, { old: [-1, -1] }), row("p", 1, { old: [-1, -1] })]));
    const tokens = {
      name: "tokens",
      slots: {
        shape: {
          level: "token" as const,
          run: (_: Batch, credit: Credit) =>
            credit.with(
              "token",
              rowsOf(b).map(() => Float64Array.of(9, 9)),
            ),
        },
      },
    };
    const zeros = [
      [-1, -1],
      [-1, -1],
    ];
    const shaped = await lossAt(compose(given(2, -1), tokens, made(gapo)), b, zeros);
    expect(shaped.c.bounds.map(({ high }) => high[0])).toEqual([1.4, 1.2]);
    const only = { name: "only", slots: { credit: { owns: (of: Batch) => Credit.zero(of).with("token", [Float64Array.of(3, -1), Float64Array.of(0, -2)]) } } };
    const distilled = await lossAt(compose(only, made(gapo)), b, zeros);
    expect(distilled.c.bounds.map(({ high }) => Number(high[0].toFixed(12)))).toEqual([1.4, 1.2]);
  });

  it("leaves OPD as it is, which has no bounds", async () => {
    const { stages } = resolved(compose(made(opd), made(gapo)));
    const free = [{ low: Float64Array.of(0), high: Float64Array.of(Number.POSITIVE_INFINITY) }];
    const b = batch(group("p", [row("p", 0, { old: [-1] })]));
    expect(stages.bounds[0].run(b, Credit.zero(b).with("trajectory", Float64Array.of(4)), free)).toEqual(free);
  });

  it("refuses factors out of order", () => {
    expect(() => made(gapo, { k_min: 2, k_max: 1 })).toThrow("2 is above 1");
  });
});

describe("tokens beyond a bound", () => {
  it("are counted by how often their group is right and which way they are pushed", async () => {
    const b = rewarded([1, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]);
    const ratios = [3, 0.1, 1, 1, 3, 1, 1, 1, 3, 3, 1, 0.1, 3, 3, 3, 3];
    const { statistics } = await at(b, ratios, made(grpo, exact), made(gapo));
    expect(statistics).toMatchObject({
      "gapo.hard.up.clipped": 1,
      "gapo.middle.up.clipped": 1 / 2,
      "gapo.middle.down.clipped": 0,
      "gapo.easy.up.clipped": 2 / 3,
      "gapo.easy.down.clipped": 1,
    });
    expect(statistics["gapo.hard.down.clipped"]).toBeCloseTo(1 / 3, 12);
  });
});

describe("in runs", () => {
  const trained = async (method: unknown, more: object = {}) => {
    const model = await tablePolicy({ maxTokens: 24 });
    return train(runOf(model, { task: lax(), method: method as never, minibatches: 4, steps: 3, max_tokens: 12, lr: 1, ...more }));
  };
  const metricsOf = (folder: string) =>
    [...RunReader.open(folder).events()].filter(({ kind }) => kind === "step").map(({ data }) => data.metrics as { [name: string]: number });

  it("is refused where there is one optimizer step a batch, unless batches are drawn ahead", async () => {
    const refusal = "method gapo: there is one optimizer step a batch, so all ratios are 1 and no bound is ever met; set minibatches or epochs to 2 or more";
    await expect(trained("gapo", { minibatches: 1 })).rejects.toThrow(refusal);
    await expect(trained(["dapo", "gapo"], { minibatches: 1 })).rejects.toThrow(refusal);
    expect(await trained("gapo", { minibatches: 1, epochs: 2 })).toMatchObject({ reason: "done" });
    expect(await trained("gapo", { minibatches: 1, overlap: 1 })).toMatchObject({ reason: "done" });
  });

  it("with k = 1 trains as GRPO does, to the last byte of the policy", async () => {
    const policies = [["grpo", { name: "gapo", options: { k_min: 1, k_max: 1 } }], "grpo"].map(async (method) => {
      const { folder } = await trained(method);
      return Object.entries(snapshot(folder)).filter(([path]) => path.endsWith("policy/model.safetensors"));
    });
    const [own, its] = await Promise.all(policies);
    expect(own.length).toBeGreaterThan(0);
    expect(own).toEqual(its);
  });

  it("writes factor and clipped shares by class, and trains beside CSCR, DAPO and HISPO", async () => {
    const numbers = metricsOf((await trained("gapo")).folder).flatMap((metrics) => Object.entries(metrics));
    for (const [name, value] of numbers) if (name.startsWith("gapo.") && name.endsWith(".clipped")) expect(value).toBeLessThanOrEqual(1);
    expect(new Set(numbers.map(([name]) => name).filter((name) => name.startsWith("gapo.")))).toContain("gapo.factor");
    expect(numbers.filter(([name]) => /^gapo\.(hard|middle|easy)\.(up|down)\.clipped$/.test(name)).length).toBeGreaterThan(0);
    const cscr = { name: "cscr", options: { right_prompt: "{problem}1", wrong_prompt: "{problem}0", kappa: 0 } };
    for (const method of [
      [cscr, "gapo"],
      ["dapo", "gapo"],
      ["hispo", "gapo"],
    ])
      expect(await trained(method)).toMatchObject({ reason: "done" });
  });
});

it("has our choices as defaults", () => {
  expect(gapoOptions.parse({})).toEqual({ a_ref: 1, k_min: 0.5, k_max: 3, max_low: 0.8, form: "linear", sides: "both", control: "none" });
});
