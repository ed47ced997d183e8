import { describe, expect, it } from "vitest";
import { type LossRowOptions, lossRow } from "../../test/support/batch.js";
import { clip } from "./clip.js";
import { type LossFunction, type LossRow, mergeStatistics, readStatistics, type Surrogate } from "./contract.js";
import { softGate } from "./gate.js";
import { geometric } from "./geometric.js";
import { importance } from "./importance.js";
import type { Unit } from "./ratio.js";
import { cispo, reinforce } from "./weighted.js";

const logs = (...ratios: number[]) => ratios.map(Math.log);
const bounded = (surrogate: Surrogate, options: LossRowOptions) => lossRow({ bounds: surrogate.bounds, ...options });
const runOne = (surrogate: Surrogate, options: LossRowOptions) => {
  const { value, derivatives, statistics } = surrogate.run([bounded(surrogate, options)]);
  return { value, d: [...(derivatives[0]!.dLogp as Float64Array)], statistics: readStatistics(statistics) };
};
const close = (got: readonly number[], expected: readonly number[]) => {
  expect(got.length).toBe(expected.length);
  got.forEach((x, i) => expect(x).toBeCloseTo(expected[i] as number, 12));
};

/** Largest difference between dLogp and central differences of the value, over all tokens. */
function differenceError(loss: LossFunction, rows: readonly LossRow[]): number {
  const h = 1e-6;
  const { derivatives } = loss.run(rows);
  let worst = 0;
  rows.forEach((row, i) => {
    row.now.logp.forEach((l, t) => {
      const at = (x: number) => {
        const logp = row.now.logp.slice();
        logp[t] = x;
        return loss.run(rows.map((r, j) => (j === i ? { ...r, now: { ...r.now, logp } } : r))).value;
      };
      worst = Math.max(worst, Math.abs((at(l + h) - at(l - h)) / (2 * h) - (derivatives[i]?.dLogp?.[t] as number)));
    });
  });
  return worst;
}

describe("clip", () => {
  const surrogate = clip({ clip_low: 0.2, clip_high: 0.5 });

  it("by hand: inside, above and below the bounds, for both signs", () => {
    // ratios 1, 2, 0.5 (old log-prob 0). A = 3: min(3, 3) = 3; min(6, 4.5) = 4.5, cut; min(1.5, 2.4) = 1.5, kept.
    const good = runOne(surrogate, { old: [0, 0, 0], now: logs(1, 2, 0.5), coefficient: 3, weights: [1, 0.5, 0.25] });
    expect(good.value).toBeCloseTo(-(3 + 4.5 * 0.5 + 1.5 * 0.25), 12);
    close(good.d, [-3, 0, -0.25 * 3 * 0.5]);
    expect(good.statistics).toMatchObject({ clip_high: 1 / 3, clip_low: 0, ratio_max: 2 });
    // A = -3: -3; min(-6, -4.5) = -6, kept; min(-1.5, -2.4) = -2.4, cut.
    const bad = runOne(surrogate, { old: [0, 0, 0], now: logs(1, 2, 0.5), coefficient: -3 });
    expect(bad.value).toBeCloseTo(3 + 6 + 2.4, 12);
    close(bad.d, [3, 6, 0]);
    expect(bad.statistics).toMatchObject({ clip_high: 0, clip_low: 1 / 3 });
  });

  it("dual clip: a bad answer's token far above the ratio costs c times A and has no gradient", () => {
    const dual = runOne(clip({ clip_low: 0.2, clip_high: 0.2, dual_clip: 3 }), { old: [0, 0], now: logs(5, 2), coefficient: -1 });
    expect(dual.value).toBeCloseTo(3 + 2, 12);
    close(dual.d, [0, 2]);
    expect(dual.statistics.clip_dual).toBe(0.5);
  });

  it("at ratio 1 has the policy gradient -w A, and value -w A", () => {
    const { value, d } = runOne(surrogate, { old: [-1, -2], now: [-1, -2], coefficient: [2, -1], weights: [0.5, 0.25] });
    expect(value).toBeCloseTo(-1 + 0.25, 12);
    close(d, [-1, 0.25]);
  });

  it("the second optimizer step of a batch: ratios are those of the weights being differentiated", () => {
    // A softmax over two actions with logit x for the first; old weights x = 0, so log pi = -log 2. A = 1, rate 1.
    // Step 1: ratio 1, dloss/dl = -1, dl/dx = 1 - 1/2; x becomes 1/2. Step 2: l = -log(1 + e^-0.5), ratio 2/(1 + e^-0.5) = 1.2449…
    const step = (x: number) => runOne(surrogate, { old: [-Math.LN2], now: [-Math.log1p(Math.exp(-x))], coefficient: 1 });
    close(step(0).d, [-1]);
    close(step(0.5).d, [-2 / (1 + Math.exp(-0.5))]);
    expect(step(0.5).statistics.ratio).toBeCloseTo(1.244918662403709, 12);
  });

  it("refuses bounds that cannot be meant", () => {
    expect(() => clip({ clip_low: -0.1, clip_high: 0.2 })).toThrow("clip_low, clip_high: they are -0.1 and 0.2");
    expect(() => clip({ clip_low: 0.2, clip_high: 0.2, dual_clip: 1 })).toThrow("dual_clip: it is 1; give a ratio above 1");
  });
});

describe("the other families, by hand", () => {
  it("importance: r A with gradient r A, and none beyond a bound", () => {
    const { value, d } = runOne(importance({ truncate: { low: 0, high: 2 } }), { old: [0, 0, 0], now: logs(0.5, 1.5, 4), coefficient: [2, -1, 1] });
    expect(value).toBeCloseTo(-(1 - 1.5 + 2), 12);
    close(d, [-1, 1.5, 0]);
  });

  it("cispo: the clamped ratio weighs the log-prob and no token loses its gradient", () => {
    const { value, d, statistics } = runOne(cispo({ clip_low: 0.5, clip_high: 1 }), {
      old: [-3, -3, -3],
      now: [-3 + Math.log(4), -3, -3 + Math.log(0.25)],
      coefficient: 1,
    });
    const [a, b, c] = [-3 + Math.log(4), -3, -3 + Math.log(0.25)];
    expect(value).toBeCloseTo(-(2 * a + b + 0.5 * c), 12);
    close(d, [-2, -1, -0.5]);
    expect(statistics).toMatchObject({ clip_low: 1 / 3, clip_high: 1 / 3 });
  });

  it("reinforce: -w A l, whatever the ratio", () => {
    const { value, d } = runOne(reinforce(), { old: [0, 0], now: [-1, -2], coefficient: [2, 3], weights: [1, 0.5] });
    expect(value).toBeCloseTo(2 + 3, 12);
    close(d, [-2, -1.5]);
  });

  it("gate: at ratio 1 the gradient is -A for any tau", () => {
    const { value, d } = runOne(softGate({ tau_pos: 2, tau_neg: 8 }), { old: [0, 0], now: [0, 0], coefficient: [1, -1] });
    expect(value).toBeCloseTo(-(1 - 0.25), 12); // (4/tau) sigmoid(0) A = 2/tau A
    close(d, [-1, 1]);
  });
});

describe("units of the ratio", () => {
  const options: LossRowOptions = { old: [0, 0, 0, 0], now: logs(2, 1, 0.5, 8), coefficient: 1, mask: [1, 1, 0, 1] };

  it("sequence, mean: the geometric mean of the trained tokens' ratios", () => {
    // (2 * 1 * 8)^(1/3); the masked token has no part in it. Weights 1/3 each: the unit weighs 1.
    const s = 16 ** (1 / 3);
    const { value, d } = runOne(importance({ unit: "sequence" }), { ...options, weights: [1 / 3, 1 / 3, 0, 1 / 3] });
    expect(value).toBeCloseTo(-s, 12);
    close(d, [-s / 3, -s / 3, 0, -s / 3]);
  });

  it("sequence, sum: the product", () => {
    const { value, d } = runOne(importance({ unit: "sequence", reduce: "sum" }), { ...options, weights: [1 / 3, 1 / 3, 0, 1 / 3] });
    expect(value).toBeCloseTo(-16, 12);
    close(d, [-16, -16, 0, -16]);
  });

  it("turns and segments: one ratio each", () => {
    const spans = [
      { name: "turn", start: 0, end: 2 },
      { name: "turn", start: 3, end: 4 },
    ];
    const byTurn = runOne(importance({ unit: "turn" }), { ...options, spans });
    expect(byTurn.value).toBeCloseTo(-(2 * Math.sqrt(2) + 8), 12);
    const segments: Unit = () => Int32Array.from([0, 1, -1, 1]);
    const bySegment = runOne(importance({ unit: segments }), options);
    expect(bySegment.value).toBeCloseTo(-(2 + 2 * Math.sqrt(8)), 12);
    expect(() => runOne(importance({ unit: () => Int32Array.from([0, 1, -1, -1]) }), options)).toThrow("token 3 is inside the loss mask but in no segment");
  });

  it("own: each token keeps its own coefficient and gradient under the shared ratio", () => {
    const s = 16 ** (1 / 3);
    const { d } = runOne(importance({ unit: "sequence", gradient: "own" }), { ...options, coefficient: [1, 2, 3, -1] });
    close(d, [-s, -2 * s, 0, s]);
  });

  it("behaviour: the ratio stands on the log-probs of sampling when a loss says so", () => {
    const { value } = runOne(importance({ denominator: "behaviour" }), { old: [0], behaviour: [-Math.LN2], now: [0], coefficient: 1 });
    expect(value).toBeCloseTo(-2, 12);
  });
});

describe("every family", () => {
  const families: [string, Surrogate, boolean][] = [];
  const segments: Unit = (t) => Int32Array.from(t.response, (_, i) => (i < 2 ? 0 : 1));
  for (const unit of ["token", "turn", "sequence", segments] as const) {
    for (const reduce of ["mean", "sum"] as const) {
      const name = `${typeof unit === "string" ? unit : "segment"}, ${reduce}`;
      families.push([`clip, ${name}`, clip({ clip_low: 0.2, clip_high: 0.3, dual_clip: 3, unit, reduce }), true]);
      families.push([`importance, ${name}`, importance({ unit, reduce, truncate: { low: 0.3, high: 4 } }), true]);
      families.push([`gate, ${name}`, softGate({ tau_pos: 1, tau_neg: 1.05, unit, reduce }), true]);
      families.push([`cispo, ${name}`, cispo({ clip_high: 0.3, unit, reduce }), false]);
    }
  }
  families.push(["reinforce", reinforce(), true]);
  families.push(["geometric", geometric({ clip_low: 0.25, clip_high: 0.25 }), true]);
  const rowsFor = (surrogate: Surrogate) =>
    [0, 1, 2].map((i) =>
      lossRow(
        {
          old: [-1.1, -0.4, -2.2, -0.7],
          now: [-1.1 + 0.31 * (i - 1), -0.4 + 0.17 * i, -2.2 - 0.21 * i, -0.7 + 0.05],
          coefficient: [1, -0.5, 0.8, -1].map((a) => a * (i + 1)),
          mask: i === 1 ? [1, 0, 1, 1] : [1, 1, 1, 1],
          weights: i === 1 ? [0.2, 0, 0.3, 0.1] : [0.2, 0.1, 0.3, 0.1],
          spans: [
            { name: "turn", start: 0, end: 1 },
            { name: "turn", start: 1, end: 4 },
          ],
          bounds: surrogate.bounds,
        },
        i,
      ),
    );

  it.each(families.filter(([, , differentiable]) => differentiable))("%s: the derivative is that of the value", (_name, surrogate) => {
    expect(differenceError(surrogate, rowsFor(surrogate))).toBeLessThan(1e-8);
  });

  it.each(families)("%s: masked tokens enter nothing, whatever stands there", (_name, surrogate) => {
    const rows = rowsFor(surrogate);
    const spoilt = rows.map((r) => ({
      ...r,
      now: { ...r.now, logp: r.now.logp.map((l, t) => (r.mask[t] ? l : Number.NaN)) },
      coefficient: r.coefficient.map((a, t) => (r.mask[t] ? a : 1e9)),
    }));
    const clean = surrogate.run(rows);
    expect(surrogate.run(spoilt)).toEqual(clean);
    expect(clean.derivatives[1]?.dLogp?.[1]).toBe(0);
  });

  it.each(families)("%s: the split into minibatches changes nothing", (_name, surrogate) => {
    const rows = rowsFor(surrogate);
    const all = surrogate.run(rows);
    const parts = rows.map((r) => surrogate.run([r]));
    expect(parts.reduce((sum, p) => sum + p.value, 0)).toBeCloseTo(all.value, 12);
    expect(parts.flatMap((p) => p.derivatives)).toEqual(all.derivatives);
    const merged = readStatistics(mergeStatistics(parts.map((p) => p.statistics)));
    for (const [name, number] of Object.entries(readStatistics(all.statistics))) expect(merged[name]).toBeCloseTo(number, 12);
  });

  it.each(families)("%s: an empty mask gives exactly 0 and no statistic", (_name, surrogate) => {
    const empty = lossRow({ old: [-1, -1], now: [-2, -1], mask: [0, 0], coefficient: 1 });
    const { value, derivatives, statistics } = surrogate.run([empty]);
    expect(Math.abs(value)).toBe(0);
    expect(derivatives[0]?.dLogp?.every((d) => d === 0)).toBe(true);
    expect(readStatistics(statistics)).toEqual({});
  });

  it.each(families)("%s: log-ratios of 100 and -100 stay finite and are counted", (_name, surrogate) => {
    const { value, derivatives, statistics } = surrogate.run([lossRow({ old: [-101, -1], now: [-1, -101], coefficient: [1, -1], bounds: surrogate.bounds })]);
    expect(Number.isFinite(value)).toBe(true);
    expect(derivatives[0]?.dLogp?.every(Number.isFinite)).toBe(true);
    if (surrogate.name !== "reinforce" && !_name.includes("sequence") && !_name.includes("segment") && !_name.includes("turn"))
      expect(readStatistics(statistics).ratio_clamped).toBe(1);
  });

  it.each(families)("%s: a log-prob that is not a number is told with trajectory and token", (_name, surrogate) => {
    expect(() => surrogate.run([lossRow({ old: [-1, -1], now: [-1, Number.NaN], coefficient: 1, bounds: surrogate.bounds })])).toThrow(
      /trajectory 1:p\/0, token 1: the log-prob is NaN/,
    );
  });
});

describe("statistics", () => {
  it("the approximate KL between the rollout's weights and the present ones", () => {
    const { statistics } = runOne(clip({ clip_low: 0.2, clip_high: 0.2 }), { old: [-1, -1], now: [-1.5, -0.8], coefficient: 1 });
    expect(statistics.kl_k1).toBeCloseTo((0.5 - 0.2) / 2, 12);
    expect(statistics.kl_k3).toBeCloseTo((Math.exp(-0.5) + 0.5 - 1 + Math.exp(0.2) - 0.2 - 1) / 2, 12);
  });

  it("a mean and a maximum of one name are refused", () => {
    expect(() => mergeStatistics([{ x: { max: 1 } }, { x: { sum: 1, count: 1 } }])).toThrow("rename one of them");
  });
});
