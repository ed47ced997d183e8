import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../../test/support/batch.js";
import { lax } from "../../../test/support/lax-task.js";
import { lossAt, made, resolved } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { options as runOf, tablePolicy } from "../../../test/support/tabular.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Batch, Trajectory } from "../../core/trajectory.js";
import { accept, reject } from "../../core/verdict.js";
import { RunReader } from "../../train/store/reader.js";
import { train } from "../../train/train.js";
import { lossOf } from "../coefficients.js";
import type { Method } from "../contract.js";
import { Credit } from "../credit.js";
import { dapo } from "../dapo/dapo.js";
import { grpo } from "../grpo/grpo.js";
import { gspo } from "../gspo/gspo.js";
import { keepTokens } from "../keep.js";
import { ocGrpo } from "../oc-grpo/oc-grpo.js";
import { compose, resolve, tableText } from "../resolve.js";
import { vigor } from "../vigor/vigor.js";
import { hispo, hispoOptions } from "./hispo.js";
import { boundaries, saliency, segmentsNote, segmentsOf, smoothed } from "./segments.js";

const peaks = { smoothing: 1, quantile: 0.5, window: 2 };
const entropy = [0.1, 1, 0.2, 0.1, 0.9, 0.1];

const answer = (member: number, right: boolean, h: readonly number[], mask?: readonly number[]): Trajectory => ({
  ...row("p", member, { old: h.map((_, t) => -1 - t / 8), verdict: right ? accept() : reject("no"), ...(mask ? { mask } : {}) }),
  entropy: Float64Array.from(h),
});
const two = (): Batch => batch(group("p", [answer(0, true, entropy), answer(1, false, [0.4, 0.4])]));
/** Log-probs at which each token's log-ratio is the one named. */
const moved = (b: Batch, logs: readonly (readonly number[])[]) =>
  b.groups.flatMap(({ trajectories }) => trajectories).map(({ behaviour }, i) => [...behaviour.values].map((x, t) => x + (logs[i]?.[t] as number)));
const random = (seed: number) => new Stream(randomKey({ seed, purpose: "test" }));
const entropies = (stream: Stream, length: number): number[] => Array.from({ length }, () => stream.next() * 2);

describe("segments, by hand", () => {
  it("entropies are smoothed by 0.3 H + 0.7 of what was before", () => {
    [0.1, 0.37, 0.319, 0.2533, 0.44731, 0.343117].forEach((x, t) => expect(smoothed(entropy, 0.3)[t]).toBeCloseTo(x, 12));
  });

  it("end with the peaks: tokens 2 and 5", () => {
    expect(boundaries(entropy, peaks)).toEqual([2, 5]);
    expect(boundaries(entropy, { ...peaks, smoothing: 0.3, quantile: 0.8 })).toEqual([2, 5]);
    expect([...segmentsOf(answer(0, true, entropy), peaks, "none")]).toEqual([0, 0, 1, 1, 1, 2]);
  });

  it("a peak below the quantile, within the window of a kept one, or of a larger one ends none", () => {
    expect(boundaries(entropy, { ...peaks, quantile: 0.9 })).toEqual([2]); // the quantile is 0.95
    expect(boundaries(entropy, { ...peaks, window: 3 })).toEqual([2, 5]);
    expect(boundaries(entropy, { ...peaks, window: 4 })).toEqual([2]);
    expect(boundaries([0, 1, 0, 2, 0, 0, 0, 0], { ...peaks, window: 4 })).toEqual([4]); // 2 is near by
  });

  it("neither the first nor the last token is a peak, and level entropies have none", () => {
    expect(boundaries([9, 0, 0, 0, 9], peaks)).toEqual([]);
    expect(boundaries([1, 1, 1, 1, 1, 1], { ...peaks, window: 1 })).toEqual([]);
    for (const short of [[], [1], [1, 2]]) expect(boundaries(short, peaks)).toEqual([]);
  });

  it("are cut as if observed tokens were not there", () => {
    const seen = answer(0, true, [0.1, 1, 7, 8, 0.2, 0.1, 0.9, 0.1], [1, 1, 0, 0, 1, 1, 1, 1]);
    segmentsOf(seen, peaks, "none");
    expect(segmentsNote.get(seen)).toEqual([0, 4, 7]);
  });
});

describe("segments", () => {
  it("part the tokens, their ends at least a window apart, and saliencies are above 0 and sum to 1", () => {
    const stream = random(1);
    for (let round = 0; round < 300; round++) {
      const window = 1 + stream.int(6);
      const h = entropies(stream, 1 + stream.int(40));
      const cuts = boundaries(h, { smoothing: 0.3, quantile: stream.next(), window });
      cuts.forEach((b, k) => {
        expect(b).toBeGreaterThan(1);
        expect(b).toBeLessThan(h.length);
        if (k > 0) expect(b - (cuts[k - 1] as number)).toBeGreaterThanOrEqual(window);
      });
      const segments = segmentsOf(answer(0, true, h), { smoothing: 0.3, quantile: 0.5, window }, "none");
      [...segments].forEach((k, t) => expect(k - (segments[t - 1] ?? 0)).toBeOneOf(t === 0 ? [0] : [0, 1]));
      const { parts, sum, sizes } = saliency(segments, h, new Uint8Array(h.length).fill(1));
      expect(sizes.reduce((a, b) => a + b)).toBe(h.length);
      expect(Math.min(...parts)).toBeGreaterThan(0);
      expect(parts.reduce((s, part) => s + part / sum, 0)).toBeCloseTo(1, 12);
    }
  });

  it("and their weights stay when the policy moves: only the entropies of the rollout are read", async () => {
    const b = two();
    const still = await lossAt(
      made(hispo, peaks),
      b,
      moved(b, [
        [0, 0, 0, 0, 0, 0],
        [0, 0],
      ]),
    );
    const later = await lossAt(
      made(hispo, peaks),
      b,
      moved(b, [
        [1, -1, 0, 2, 0, 3],
        [0.5, 0],
      ]),
    );
    expect(later.c.weights).toEqual(still.c.weights);
    expect(segmentsNote.get(b.groups[0].trajectories[0])).toEqual([0, 2, 5]);
  });

  it("shuffled, are those of the same entropies elsewhere", () => {
    const [own, shuffled] = [0, 0].map(() => answer(0, true, entropies(random(2), 40)));
    segmentsOf(own, { ...peaks, window: 4 }, "none");
    segmentsOf(shuffled, { ...peaks, window: 4 }, "shuffled");
    expect(segmentsNote.get(shuffled)).not.toEqual(segmentsNote.get(own));
    expect((segmentsNote.get(shuffled) as readonly number[]).length).toBeGreaterThan(1);
  });
});

describe("the loss", () => {
  const wide = { clip_low: 5, clip_high: 5 };
  const plain = (options: object) => compose(made(grpo, { std: "none" }), made(hispo, { ...peaks, ...options }));

  it("by hand: ratios are geometric means of segments, weighed by the softmax of 0.55, 0.4 and 0.1", async () => {
    const b = two();
    const { value, d } = await lossAt(
      plain(wide),
      b,
      moved(b, [
        [0.4, 0, 0.3, 0, 0, 0.5],
        [0.2, 0],
      ]),
    );
    const e = [0.55, 0.4, 0.1].map(Math.exp);
    const w = e.map((x) => x / (e[0] + e[1] + e[2]));
    const m = [0.2, 0.1, 0.5].map(Math.exp);
    // A = 1/2 and -1/2, N = 2.
    expect(value).toBeCloseTo(-0.25 * (w[0] * m[0] + w[1] * m[1] + w[2] * m[2] - Math.exp(0.1)), 12);
    const slopes = [0, 0, 1, 1, 1, 2].map((k) => (-0.25 * w[k] * m[k]) / [2, 3, 1][k]);
    d[0].forEach((x, t) => expect(x).toBeCloseTo(slopes[t], 12));
    d[1].forEach((x) => expect(x).toBeCloseTo((0.25 * Math.exp(0.1)) / 2, 12));
  });

  it("at ratio 1 an answer's coefficients sum to A / G", async () => {
    const stream = random(3);
    const b = batch(
      group(
        "p",
        Array.from({ length: 4 }, (_, i) => answer(i, i === 0, entropies(stream, 5 + 9 * i))),
      ),
    );
    const { c, d } = await lossAt(
      made(hispo, { window: 4 }),
      b,
      moved(
        b,
        [0, 1, 2, 3].map((i) => new Array(5 + 9 * i).fill(0)),
      ),
    );
    d.forEach((row, i) => expect(-row.reduce((x, y) => x + y)).toBeCloseTo(c.credit.trajectory[i] / 4, 12));
  });

  it("cuts segments, not tokens: one beyond the bound has no gradient while its neighbour has", async () => {
    const b = two();
    const { d, statistics } = await lossAt(
      plain({ clip_high: 0.1 }),
      b,
      moved(b, [
        [0.4, 0, 0.15, 0, 0, 0],
        [0, 0],
      ]),
    );
    expect(d[0].map((x) => x !== 0)).toEqual([false, false, true, true, true, true]);
    expect(statistics.clip_high).toBeCloseTo(2 / 8, 12);
  });

  it("has the derivatives that central differences find", async () => {
    const stream = random(4);
    const b = batch(
      group(
        "p",
        Array.from({ length: 3 }, (_, i) => answer(i, i === 1, entropies(stream, 12))),
      ),
    );
    const now = moved(
      b,
      [0, 1, 2].map(() => Array.from({ length: 12 }, () => (stream.next() - 0.5) / 2)),
    );
    const { c, d } = await lossAt(made(hispo, { window: 3, quantile: 0.5 }), b, now);
    const at = (i: number, t: number, step: number) =>
      lossOf(
        c,
        [0, 1, 2],
        now.map((logp, j) => scores(logp.map((x, u) => (j === i && u === t ? x + step : x)))),
      ).value;
    for (let i = 0; i < 3; i++) for (let t = 0; t < 12; t++) expect((at(i, t, 1e-6) - at(i, t, -1e-6)) / 2e-6).toBeCloseTo(d[i][t], 6);
  });

  it("with one segment an answer is GSPO, value and gradient, bit for bit", async () => {
    const logs = [
      [0.4, 0, 0.3, -0.2, 0, 0.15],
      [0.2, -0.4],
    ];
    const bounds = { clip_low: 0.1, clip_high: 0.1 };
    const [a, b] = [two(), two()];
    const own = await lossAt(made(hispo, { ...bounds, control: "whole" }), a, moved(a, logs));
    const its = await lossAt(made(gspo, bounds), b, moved(b, logs));
    expect(own).toMatchObject({ value: its.value, d: its.d });
    // Entropies that rise throughout peak nowhere.
    const rising = (): Batch => batch(group("p", [answer(0, true, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), answer(1, false, [0.4, 0.4])]));
    const [c, d] = [rising(), rising()];
    const unpeaked = await lossAt(made(hispo, bounds), c, moved(c, logs));
    const alike = await lossAt(made(gspo, bounds), d, moved(d, logs));
    expect(unpeaked).toMatchObject({ value: alike.value, d: alike.d });
  });

  it("with one token a segment and level entropies is GRPO, bit for bit", async () => {
    const level = (): Batch => batch(group("p", [answer(0, true, new Array(49).fill(0.7)), answer(1, false, [0.7, 0.7, 0.7])]));
    const stream = random(5);
    const logs = [49, 3].map((length) => Array.from({ length }, () => stream.next() - 0.5));
    const [a, b] = [level(), level()];
    for (const trajectory of a.groups[0].trajectories) segmentsNote.set(trajectory, [...trajectory.response.keys()]);
    const own = await lossAt(made(hispo), a, moved(a, logs));
    const its = await lossAt(made(grpo), b, moved(b, logs));
    expect(own).toMatchObject({ value: its.value, d: its.d });
  });

  it("shares a segment's gradient where its tokens have coefficients of their own", async () => {
    const b = two();
    const own = {
      name: "own",
      slots: { credit: { owns: (of: Batch) => Credit.zero(of).with("token", [Float64Array.of(4, 2, 0, 0, 0, 0), new Float64Array(2)]) } },
    };
    const { d } = await lossAt(
      compose(made(hispo, { ...peaks, ...wide }), own),
      b,
      moved(b, [
        [0, 0, 0, 0, 0, 0],
        [0, 0],
      ]),
    );
    const e = [0.55, 0.4, 0.1].map(Math.exp);
    const w = e[0] / (e[0] + e[1] + e[2]);
    [-1.5 * (w / 2), -1.5 * (w / 2), 0, 0, 0, 0].forEach((x, t) => expect(d[0][t]).toBeCloseTo(x, 12));
  });

  it("leaves out of mean and softmax what another method masks", async () => {
    const b = two();
    const gate = { name: "gate", slots: { keep: { run: (of: Batch) => keepTokens(of, (_, t, i) => i === 1 || t < 2 || t === 4) } } };
    const { c } = await lossAt(
      compose(made(hispo, peaks), gate),
      b,
      moved(b, [
        [0, 0, 0, 0, 0, 0],
        [0, 0],
      ]),
    );
    const e = [0.55, 0.9].map(Math.exp);
    [e[0] / 2, e[0] / 2, 0, 0, e[1], 0].forEach((x, t) => expect(c.weights[0][t]).toBeCloseTo(x / (e[0] + e[1]) / 2, 12));
  });
});

describe("HISPO with others", () => {
  const of = (...methods: Method[]) => resolve(compose(...methods), made(grpo));

  it("keeps its loss beside GSPO's preference, and says over whom", () => {
    for (const pair of [
      [made(hispo), made(gspo)],
      [made(gspo), made(hispo)],
    ]) {
      const { one } = of(...pair);
      expect(one.loss).toMatchObject({ from: "hispo", how: "owns", over: ["gspo"] });
      expect(one.aggregate).toMatchObject({ from: "hispo", how: "owns", over: ["gspo"] });
      expect(tableText(of(...pair))).toMatch(/^loss +hispo \(owns\), over gspo/m);
    }
  });

  it("has loss and weights over DAPO's preference beside VIGOR, whose allocation DAPO's refills go around", () => {
    const { one } = of(made(dapo), made(vigor), made(hispo));
    expect([one.loss, one.aggregate, one.allocate].map(({ from }) => from)).toEqual(["hispo", "hispo", "vigor"]);
    expect(one.loss.over).toEqual(["dapo"]);
  });

  it("is refused beside another owner of the loss, both named", () => {
    expect(() => of(made(hispo), made(ocGrpo))).toThrow("method hispo+oc-grpo: both own the slot loss");
  });
});

describe("in runs", () => {
  const trained = async (method: unknown, more = {}) => {
    const model = await tablePolicy({ maxTokens: 24 });
    const { folder } = await train(runOf(model, { task: lax(), method: method as never, minibatches: 4, steps: 3, max_tokens: 12, ...more }));
    return folder;
  };

  it("with one segment an answer trains as GSPO does, to the last byte of the policy", async () => {
    const policies = [{ name: "hispo", options: { control: "whole", clip_high: 4e-4, clip_low: 3e-4 } }, "gspo"].map(async (method) => {
      const files = snapshot(await trained(method));
      return Object.entries(files).filter(([path]) => path.endsWith("policy/model.safetensors"));
    });
    const [own, its] = await Promise.all(policies);
    expect(own.length).toBeGreaterThan(0);
    expect(own).toEqual(its);
  });

  it("leaves its segments with the rollouts, beside DAPO and VIGOR too", async () => {
    const folder = await trained(["dapo", "vigor", { name: "hispo", options: { window: 2 } }]);
    const reader = RunReader.open(folder);
    const steps = [...reader.events()].filter(({ kind }) => kind === "step");
    for (const { data } of steps) expect((data.metrics as { [name: string]: number })["hispo.segments"]).toBeGreaterThanOrEqual(1);
    const rows = (await reader.groups(1)).flatMap(({ rollouts }) => rollouts.map(({ trajectory }) => trajectory));
    expect(rows.length).toBeGreaterThan(0);
    for (const each of rows) expect((segmentsNote.get(each) as readonly number[])[0]).toBe(0);
  });
});

it("has the paper's window and our choices as defaults", () => {
  expect(hispoOptions.parse({})).toEqual({ window: 64, smoothing: 0.3, quantile: 0.8, clip_low: 0.2, clip_high: 0.2, control: "none" });
  expect(resolved(made(hispo)).one.loss.value.bounds).toEqual({ low: 0.8, high: 1.2 });
});
