import { describe, expect, it } from "vitest";
import { type LossRowOptions, lossRow } from "../../../test/support/batch.js";
import { type Context, plainContext } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import { TableEngine } from "../../engine/table/engine.js";
import { enumerate, expectation, type Outcome } from "../../engine/table/enumerate.js";
import { clip } from "../../losses/clip.js";
import type { LossRow } from "../../losses/contract.js";
import { type Correction, gammaNote, offContextLoss, offContextRatios, quantile } from "./loss.js";

const clips = { clip_low: 0.2, clip_high: 0.2 };
const guidedContext = plainContext([1, 2, 9], "guided");

/** A row that was sampled under guidance. */
function guided(options: LossRowOptions, index = 0): LossRow {
  const row = lossRow(options, index);
  return { ...row, trajectory: { ...row.trajectory, sampledUnder: guidedContext } };
}
const cut = { low: 0, high: 2 };
const of = (ratio: number, coefficient: number): LossRowOptions => ({ old: [-2], behaviour: [-1], now: [-1 + Math.log(ratio)], coefficient, bounds: cut });
const slope = (correction: Correction, row: LossRow): number => offContextLoss(correction, clips).run([row]).derivatives[0]?.dLogp?.[0] as number;

describe("the loss of a guided answer, by hand", () => {
  it("has the ratio to the guided distribution as its weight, 2 at most and nothing at least, whatever the sign", () => {
    for (const a of [1.5, -1.5]) {
      const weights = [0.01, 0.5, 1, 1.9, 2.5, 40].map((ratio) => -slope("token", guided(of(ratio, a))) / a);
      [0.01, 0.5, 1, 1.9, 2, 2].forEach((weight, i) => expect(weights[i]).toBeCloseTo(weight, 12));
    }
    const { value, statistics } = offContextLoss("token", clips).run([guided(of(2.5, 1.5)), guided(of(0.5, 1.5))]);
    expect(value).toBeCloseTo(-(2 * 1.5 + 0.5 * 1.5), 12);
    expect(statistics.clip_high).toEqual({ sum: 1, count: 2 });
    expect(statistics.clip_low).toEqual({ sum: 0, count: 2 });
  });

  it("shaped: at gamma 3 and ratio 1 the value is A/4 and the slope 3A/16", () => {
    const row = guided(of(1, 2));
    gammaNote.set(row.trajectory, 3);
    const { value, derivatives } = offContextLoss("shaped", clips).run([row]);
    expect(value).toBeCloseTo(-2 / 4, 12);
    expect(derivatives[0]?.dLogp?.[0]).toBeCloseTo((-2 * 3) / 16, 12);
  });

  it("of a sequence has the product of its tokens' ratios on each of them", () => {
    const row = guided({ old: [-1, -1], behaviour: [-1, -2], now: [-1 + Math.log(3), -2 + Math.log(0.5)], coefficient: 2, weights: [0.25, 0.25] });
    const { value, derivatives } = offContextLoss("sequence", clips).run([row]);
    expect(value).toBeCloseTo(-0.5 * 1.5 * 2, 12);
    for (const t of [0, 1]) expect(derivatives[0]?.dLogp?.[t]).toBeCloseTo(-0.5 * 1.5 * 2, 12);
  });
});

describe("answers that were sampled under their own context", () => {
  const rows = [0.7, 0.9, 1.1, 1.4].flatMap((ratio, i) =>
    [1, -1].map((a, j) => lossRow({ old: [-1], now: [-1 + Math.log(ratio)], coefficient: a, bounds: { low: 0.8, high: 1.2 } }, 2 * i + j)),
  );

  it("have GRPO's clipped loss, bit for bit, also beside guided ones", () => {
    const plain = clip(clips).run(rows);
    expect(offContextLoss("token", clips).run(rows)).toEqual(plain);
    const mixed = [guided(of(3, 1)), ...rows.slice(0, 3), guided(of(0.1, -1)), ...rows.slice(3)];
    const { derivatives, value } = offContextLoss("token", clips).run(mixed);
    expect([...derivatives.slice(1, 4), ...derivatives.slice(5)]).toEqual(plain.derivatives);
    expect([derivatives[0]?.dLogp?.[0], derivatives[4]?.dLogp?.[0]]).toEqual([expect.closeTo(-2, 12), expect.closeTo(0.1, 12)]);
    expect(value).toBeCloseTo(plain.value - 2 + 0.1, 12);
  });
});

it("ratios are read at the weights of the rollout, of guided answers' trained tokens alone, and a quantile lies between them", () => {
  const rows = [
    guided({ old: [-1, -3], behaviour: [-2, -2], mask: [1, 0], now: [0, 0], coefficient: 1 }),
    lossRow({ old: [-5], behaviour: [-1], now: [0], coefficient: 1 }),
  ];
  expect(offContextRatios(rows.map(({ trajectory }) => trajectory))).toEqual([Math.exp(1)]);
  expect([quantile([5, 1, 3], 0.5), quantile([1, 2], 0.9), quantile([4], 0.9)]).toEqual([3, 1.9, 4]);
});

/** Answers of one or two tokens out of four, under two contexts that make unlike distributions of them. */
async function bench(maxTokens: number) {
  const engine = new TableEngine();
  const config = { kind: "table", vocabulary: 4, order: 2, init: 0.7, maxTokens: 16 } as never;
  await engine.weights.load({ role: "policy", source: { from: "config", config, seed: 4 }, trainable: true });
  const [plain, hinted] = [plainContext([1, 2]), plainContext([1, 3], "guided")];
  const weights = { role: "policy" };
  const outcomes = (context: Context) => enumerate(engine, { context, weights, temperature: 1, maxTokens, stopIds: [0] });
  /** 1 for answers that hold a 1. */
  const reward = ({ ids }: Pick<Outcome, "ids">): number => (ids.includes(1) ? 1 : 0);
  const sequences = (all: readonly Pick<Outcome, "ids">[]) => all.map(({ ids }) => ({ context: plain, response: ids, weights, temperature: 1 }));
  const gradient = async (all: readonly Pick<Outcome, "ids">[], dLogp: (i: number, tokens: number) => Float64Array): Promise<Float64Array> => {
    const { handle } = await engine.forward(sequences(all));
    await engine.backward(
      handle,
      all.map(({ ids }, i) => ({ dLogp: dLogp(i, ids.length) })),
      "role:policy",
    );
    const [tensor] = await engine.weights.readGradient("role:policy", ["logits.weight"]);
    await engine.weights.zeroGradient("role:policy");
    return tensor?.data as Float64Array;
  };
  /** Gradient of -E[R] without guidance, exactly. */
  const exact = async () => {
    const all = await outcomes(plain);
    return gradient(all, (i, tokens) => new Float64Array(tokens).fill(-(all[i] as Outcome).probability * reward(all[i] as Outcome)));
  };
  /** The loss's derivatives of guided answers with advantage R - baseline, each answer weighing 1. */
  const derivatives = async (all: readonly Pick<Outcome, "ids">[], correction: Correction, baseline: number) => {
    const scored = (context: Context) => engine.score(sequences(all).map((sequence) => ({ ...sequence, context })));
    const [now, behaviour] = [await scored(plain), await scored(hinted)];
    const rows = all.map((outcome, i) => {
      const old = [...(now[i]?.logp ?? [])];
      const bounds = { low: 0, high: Number.POSITIVE_INFINITY };
      const weight = new Array<number>(old.length).fill(correction === "sequence" ? 1 / old.length : 1);
      return guided({ old, now: old, behaviour: [...(behaviour[i]?.logp ?? [])], coefficient: reward(outcome) - baseline, bounds, weights: weight }, i);
    });
    return offContextLoss(correction, clips)
      .run(rows)
      .derivatives.map(({ dLogp }) => dLogp as Float64Array);
  };
  return { engine, plain, hinted, outcomes, reward, gradient, exact, derivatives };
}

const dot = (a: Float64Array, b: Float64Array): number => a.reduce((sum, x, i) => sum + x * (b[i] as number), 0);

describe("the estimate from guided answers", () => {
  it.each([
    ["token", 1],
    ["sequence", 1],
    ["sequence", 2],
  ] as const)("of %s for answers of %d tokens is the unguided gradient in expectation, whatever the baseline", async (correction, tokens) => {
    const { outcomes, hinted, gradient, exact, derivatives } = await bench(tokens);
    const [wanted, all] = [await exact(), await outcomes(hinted)];
    expect(Math.sqrt(dot(wanted, wanted))).toBeGreaterThan(0.05);
    for (const baseline of [0, 0.37, -2]) {
      const d = await derivatives(all, correction, baseline);
      const is = await gradient(all, (i) => (d[i] as Float64Array).map((x) => x * (all[i] as Outcome).probability));
      is.forEach((x, i) => expect(x).toBeCloseTo(wanted[i] as number, 10));
    }
  });

  it("lies within three standard errors of it over 4000 draws; uncorrected it is off by the computed bias", async () => {
    const { engine, outcomes, plain, hinted, reward, gradient, exact, derivatives } = await bench(2);
    const wanted = await exact();
    const direction = wanted.map((x) => x / Math.sqrt(dot(wanted, wanted)));
    const target = dot(wanted, direction);
    const requests = Array.from({ length: 4000 }, (_, member) => ({
      context: hinted,
      weights: { role: "policy" },
      temperature: 1,
      maxTokens: 2,
      stop: { ids: [0] },
      key: randomKey({ seed: 6, purpose: "draws", member }),
    }));
    const counts = new Map<string, { readonly ids: Int32Array; n: number }>();
    for await (const { ids } of engine.sample(requests)) {
      const seen = counts.get(ids.join()) ?? { ids, n: 0 };
      counts.set(ids.join(), { ids, n: seen.n + 1 });
    }
    const drawn = [...counts.values()];
    /** Mean and standard error of single estimates, along the direction. */
    const estimate = async (d: readonly Float64Array[]): Promise<[mean: number, error: number]> => {
      const each = [];
      for (const [i, { ids, n }] of drawn.entries()) each.push({ n, value: dot(await gradient([{ ids }], () => d[i] as Float64Array), direction) });
      const mean = each.reduce((sum, { n, value }) => sum + (n / 4000) * value, 0);
      return [mean, Math.sqrt(each.reduce((sum, { n, value }) => sum + (n / 4000) * (value - mean) ** 2, 0) / 4000)];
    };
    for (const baseline of [0, 0.5]) {
      const [mean, error] = await estimate(await derivatives(drawn, "sequence", baseline));
      expect(Math.abs(mean - target)).toBeLessThan(3 * error);
    }
    // Both sides of the ratio without guidance: the ratio is 1, and answers count as often as guidance brings them.
    const [mean, error] = await estimate(drawn.map(({ ids }) => new Float64Array(ids.length).fill(-reward({ ids }))));
    const all = await outcomes(hinted);
    const biased = await gradient(all, (i, tokens) => new Float64Array(tokens).fill(-(all[i] as Outcome).probability * reward(all[i] as Outcome)));
    expect(Math.abs(mean - dot(biased, direction))).toBeLessThan(3 * error);
    expect(Math.abs(mean - target)).toBeGreaterThan(10 * error);
    const [p, q] = [await outcomes(plain), all].map((list) => expectation(list, reward));
    expect(Math.abs((p as number) - (q as number))).toBeGreaterThan(0.05);
  });
});
