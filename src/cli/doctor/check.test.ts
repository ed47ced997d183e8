import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { randomKey, uniform } from "../../core/random.js";
import { OnnxEngine } from "../../engine/onnx/engine.js";
import { checkConfig, checkContext, checkResponse, checkSeed, checkTemperature, checkTensors, entropyWeight, selfCheck, stored } from "./check.js";
import { distributions, type Shape, type Tensors } from "./test-decoder.js";

const shape: Shape = {
  layers: checkConfig.num_hidden_layers,
  width: checkConfig.hidden_size,
  heads: checkConfig.num_attention_heads,
  kvHeads: checkConfig.num_key_value_heads,
  theta: checkConfig.rope_theta,
  epsilon: checkConfig.rms_norm_eps,
  vocabulary: checkConfig.vocab_size,
};
const entropyOf = (p: Float64Array): number => -p.reduce((sum, x) => sum + (x > 0 ? x * Math.log(x) : 0), 0);

/** Distributions before each response token. */
const before = (tensors: Tensors): Float64Array[] =>
  distributions(tensors, shape, [...checkContext, ...checkResponse.slice(0, -1)], checkTemperature).slice(checkContext.length - 1);

const loss = (tensors: Tensors): number => before(tensors).reduce((sum, p, i) => sum - Math.log(p[checkResponse[i]]) + entropyWeight * entropyOf(p), 0);

describe("the self-check", () => {
  let engine: OnnxEngine;
  let tensors: Tensors;
  let names: string[];
  beforeAll(async () => {
    engine = await OnnxEngine.create({ threads: 1 });
    const info = await engine.weights.load({ role: "m", source: { from: "config", config: checkConfig, seed: checkSeed }, trainable: true });
    names = info.tensors.map(({ name }) => name);
    tensors = Object.fromEntries((await engine.weights.read({ role: "m" }, names)).map(({ name, data }) => [name, data]));
  });
  afterAll(() => engine.close());

  it("compares twenty numbers, all of which agree", async () => {
    const numbers = await selfCheck(engine);
    expect(numbers.filter(({ agrees }) => !agrees)).toEqual([]);
    expect(numbers).toHaveLength(20);
    expect(new Set(numbers.map(({ name }) => name)).size).toBe(20);
    await expect(engine.weights.info("self-check")).rejects.toThrow();
  });

  it("has stored log-probs and entropies of a plain float64 decoder", () => {
    const p = before(tensors);
    stored.logp.forEach((value, i) => expect(value).toBeCloseTo(Math.log(p[i][checkResponse[i]]), 7));
    stored.entropy.forEach((value, i) => expect(value).toBeCloseTo(entropyOf(p[i]), 7));
  });

  it("has stored tokens that the inverse transform draws in float64, none of them near a boundary", () => {
    const key = randomKey({ seed: checkSeed, purpose: "self-check" });
    stored.tokens.forEach((token, i) => {
      const p = distributions(tensors, shape, [...checkContext, ...stored.tokens.slice(0, i)], checkTemperature).at(-1) as Float64Array;
      const below = p.slice(0, token).reduce((a, b) => a + b, 0);
      expect(uniform(key, i) - below).toBeGreaterThan(1e-4);
      expect(below + p[token] - uniform(key, i)).toBeGreaterThan(1e-4);
    });
  });

  it("has stored gradient norms that central differences of the float64 loss confirm", async () => {
    const role = "role:m";
    const { handle } = await engine.forward(
      [
        {
          context: { ids: Int32Array.from(checkContext), label: "plain" },
          response: Int32Array.from(checkResponse),
          weights: { role: "m" },
          temperature: checkTemperature,
        },
      ],
      { entropy: true },
    );
    const ones = new Float64Array(checkResponse.length).fill(1);
    await engine.backward(handle, [{ dLogp: ones.map(() => -1), dEntropy: ones.map(() => entropyWeight) }], role);
    const gradient = await engine.weights.readGradient(role, names);
    // Along its own direction a gradient's slope is its norm; a wrong direction or length would show.
    const slope = (of: readonly string[], norm: number): number => {
      const moved = (h: number): Tensors =>
        Object.fromEntries(gradient.map(({ name, data }) => [name, of.includes(name) ? tensors[name].map((w, i) => w + (h * data[i]) / norm) : tensors[name]]));
      return (loss(moved(1e-4)) - loss(moved(-1e-4))) / 2e-4;
    };
    stored.norms.forEach((norm, i) => {
      const found = slope(i < checkTensors.length ? [checkTensors[i]] : names, norm);
      expect(Math.abs(found / norm - 1), `${checkTensors[i]} ${found} ${norm}`).toBeLessThan(1e-5);
    });
  });

  it("sees an engine that computes another model", async () => {
    const load = engine.weights.load.bind(engine.weights);
    engine.weights.load = (request) => load({ ...request, source: { from: "config", config: { ...checkConfig, rms_norm_eps: 3e-4 }, seed: checkSeed } });
    const off = (await selfCheck(engine)).filter(({ agrees }) => !agrees);
    expect(off.length).toBeGreaterThan(5);
  });
});
