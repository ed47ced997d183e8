/** What a sequence's neighbours, the split of a batch and the layout of memory must not change. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { randomKey, Stream } from "../../core/random.js";
import type { Derivatives, Scores, Sequence, TensorValue } from "../contract.js";
import { OnnxEngine, type OnnxEngineOptions } from "./engine.js";
import {
  accumulate,
  distance,
  gradientOf,
  policySet,
  randomDerivatives,
  randomModel,
  randomSequence,
  readWeights,
  type Shape,
  sameBytes,
  takeGradient,
} from "./test-engine.js";

const shape: Shape = { layers: 2, width: 48, heads: 4, kvHeads: 2, mlp: 100, vocabulary: 97 };
const tolerance = 1e-5;

/** 14 sequences of 2 to 90 tokens, prompts of 1 to 30. */
const lengths: readonly (readonly [context: number, response: number])[] = [
  [1, 1],
  [3, 7],
  [30, 60],
  [2, 40],
  [17, 5],
  [1, 63],
  [8, 8],
  [5, 1],
  [12, 33],
  [4, 19],
  [25, 2],
  [9, 50],
  [1, 12],
  [6, 28],
];
const temperatures = [1, 0.7, 1.5];
const sequences = lengths.map(([context, response], i) => randomSequence(context, response, shape.vocabulary, i, temperatures[i % 3]));
const derivatives = randomDerivatives(sequences, 77);
const eos = 5;

const start = async (options: Partial<OnnxEngineOptions> = {}): Promise<OnnxEngine> => {
  const engine = await OnnxEngine.create({ threads: 1, ...options });
  await engine.weights.load({ role: "policy", source: randomModel(shape, 11), trainable: true });
  return engine;
};

let engine: OnnxEngine;
beforeAll(async () => {
  engine = await start();
});
afterAll(() => engine.close());

/** The largest difference of log-probs, relative to the largest log-prob. */
const apart = (a: Scores, b: Scores): number => Math.max(...a.logp.map((x, t) => Math.abs(x - b.logp[t]))) / Math.max(...a.logp.map(Math.abs));

describe("a sequence", () => {
  const mine = 3;
  let alone: Scores;
  let gradient: TensorValue[];
  beforeAll(async () => {
    [alone] = await engine.score([sequences[mine]]);
    gradient = await gradientOf(engine, [sequences[mine]], [derivatives[mine]]);
  });

  const inCompany = async (by: OnnxEngine, order: readonly number[]): Promise<void> => {
    const at = order.indexOf(mine);
    const batch = order.map((i) => sequences[i]);
    const scores = await by.score(batch);
    expect(apart(alone, scores[at])).toBeLessThan(tolerance);
    const own = order.map((i): Derivatives => (i === mine ? derivatives[mine] : {}));
    expect(distance(gradient, await gradientOf(by, batch, own))).toBeLessThan(tolerance);
  };

  it.each([0, 1, 2])("has the same log-probs and gradient packed with others in order %i", async (order) => {
    await inCompany(engine, new Stream(randomKey({ seed: order, purpose: "order" })).shuffle(sequences.map((_, i) => i)));
  });

  it("has the same log-probs and gradient in several packs", async () => {
    const small = await start({ packPlaces: 100 });
    await inCompany(
      small,
      sequences.map((_, i) => i),
    );
    await small.close();
  });

  it("has the same log-probs and gradient when padded: tokens after it change nothing before them", async () => {
    const { response } = sequences[mine];
    const padding = 57;
    const padded: Sequence = { ...sequences[mine], response: Int32Array.from([...response, ...new Array(padding).fill(0)]) };
    const [scores] = await engine.score([padded]);
    expect(apart(alone, { ...scores, logp: scores.logp.subarray(0, response.length) })).toBeLessThan(tolerance);
    const dLogp = Float64Array.from([...(derivatives[mine].dLogp as Float64Array), ...new Array(padding).fill(0)]);
    expect(distance(gradient, await gradientOf(engine, [padded], [{ dLogp }]))).toBeLessThan(tolerance);
  });

  it("has the same log-probs whichever of its tokens are called context", async () => {
    const { context, response } = sequences[mine];
    const later = 9;
    const [scores] = await engine.score([
      { ...sequences[mine], context: { ...context, ids: Int32Array.from([...context.ids, ...response.subarray(0, later)]) }, response: response.slice(later) },
    ]);
    expect(apart({ ...alone, logp: alone.logp.subarray(later) }, scores)).toBeLessThan(tolerance);
  });
});

describe("a batch", () => {
  it("has the same gradient in 1, 2, 3, 7 and 14 parts", async () => {
    const whole = await gradientOf(engine, sequences, derivatives);
    for (const parts of [2, 3, 7, sequences.length]) {
      for (let part = 0; part < parts; part++) {
        const inPart = <T>(list: readonly T[]): T[] => list.filter((_, i) => i % parts === part);
        await accumulate(engine, inPart(sequences), inPart(derivatives));
      }
      expect(distance(whole, await takeGradient(engine)), `${parts} parts`).toBeLessThan(tolerance);
    }
  });

  it("has the same gradient whether activations are kept or computed again, in one pack or several", async () => {
    const whole = await gradientOf(engine, sequences, derivatives);
    for (const options of [{ activations: "keep" }, { packPlaces: 100 }, { packPlaces: 100, activations: "keep" }, { packPlaces: 1 }] as const) {
      const other = await start(options);
      expect(distance(whole, await gradientOf(other, sequences, derivatives)), JSON.stringify(options)).toBeLessThan(tolerance);
      await other.close();
    }
  });

  it("has a gradient of the derivatives given: negative ones turn it round, half of them halve it", async () => {
    const whole = await gradientOf(engine, sequences, derivatives);
    const halved = derivatives.map(({ dLogp }) => ({ dLogp: (dLogp as Float64Array).map((x) => -x / 2) }));
    const other = (await gradientOf(engine, sequences, halved)).map((tensor) => ({ ...tensor, data: tensor.data.map((x) => -2 * x) }));
    expect(distance(whole, other)).toBeLessThan(tolerance);
    expect(Math.hypot(...whole.map(({ data }) => Math.hypot(...data)))).toBeGreaterThan(1);
  });

  it("gives exactly 0 where its mask is empty", async () => {
    const zeros = sequences.map(({ response }) => ({ dLogp: new Float64Array(response.length) }));
    for (const empty of [zeros, sequences.map(() => ({}))]) {
      await accumulate(engine, sequences, empty);
      const { gradNorm, skipped } = await engine.step({ set: policySet, update: { rule: "sgd", rate: 1 } });
      expect([gradNorm, skipped]).toEqual([0, undefined]);
      for (const { name, data } of await gradientOf(engine, sequences, empty)) {
        expect(
          data.every((x) => x === 0),
          name,
        ).toBe(true);
      }
    }
  });

  it.each([{ rule: "sgd", rate: 0, momentum: 0.9, weightDecay: 0.1 } as const, { rule: "adamw", rate: 0, weightDecay: 0.1 } as const])(
    "leaves weights and log-probs byte-identical at learning rate 0 ($rule)",
    async (update) => {
      const [before, scores] = [await readWeights(engine), await engine.score(sequences)];
      for (let step = 0; step < 3; step++) {
        await accumulate(engine, sequences, derivatives);
        expect((await engine.step({ set: policySet, update, maxNorm: 1 })).gradNorm).toBeGreaterThan(0);
      }
      expect(sameBytes(await readWeights(engine), before)).toBe(true);
      expect((await engine.score(sequences)).map(({ logp }) => logp)).toStrictEqual(scores.map(({ logp }) => logp));
    },
  );
});

describe("a sampled end token", () => {
  it("is part of the response and becomes more likely when it is reinforced, and only then", async () => {
    const base = { context: sequences[8].context, weights: { role: "policy" }, temperature: 1, maxTokens: 200, stop: { ids: [eos] } };
    for (let seed = 0; ; seed++) {
      const samples = [];
      for await (const sample of engine.sample([{ ...base, key: randomKey({ seed, purpose: "eos" }) }])) samples.push(sample);
      const [{ ids, stop, logp }] = samples;
      if (stop !== "eos") continue;
      expect([ids.at(-1), ids.indexOf(eos), logp.length]).toEqual([eos, ids.length - 1, ids.length]);
      const sequence: Sequence = { context: base.context, weights: base.weights, temperature: 1, response: ids };
      const last = ids.length - 1;
      const before = (await engine.score([sequence]))[0].logp[last];
      const train = async (weight: number): Promise<number> => {
        await engine.weights.snapshot("policy", "before");
        await accumulate(engine, [sequence], [{ dLogp: Float64Array.from(ids, (_, t) => (t === last ? -weight : 0)) }]);
        await engine.step({ set: policySet, update: { rule: "sgd", rate: 0.01 } });
        const after = (await engine.score([sequence]))[0].logp[last];
        await engine.weights.restore("policy", "before");
        return after;
      };
      expect(await train(1)).toBeGreaterThan(before + 1e-3);
      expect(await train(0)).toBe(before);
      return;
    }
  });
});
