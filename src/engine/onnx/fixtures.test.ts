/** Log-probs, hidden states, gradients and steps of the embedded engine against numbers that a plain float64 transformer computed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Case, close, Fixture, fixtureModels, gradientTolerance, policyLoss } from "../../../test/support/loaded-model.js";
import { plainContext } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import type { Scores, Sequence } from "../contract.js";
import { SafetensorsFile } from "../safetensors.js";

describe.each(fixtureModels)("model $folder, $expected", (given) => {
  const { full, folder } = given;
  let model: Fixture;
  beforeAll(async () => {
    model = await Fixture.open(given);
  });
  afterAll(() => model.close());

  it("gives log-probs, entropies and whole distributions", async () => {
    const scores = await model.engine.score(model.sequences(), { entropy: true, full: true, topK: 8, hidden: full ? [0, 1, "final"] : [] });
    for (let s = 0; s < model.expected.sequences.length; s++) {
      close(scores[s].logp, await model.array(`logp.s${s}`), 1e-4);
      const entropy = Array.from(await model.array(`entropy.s${s}`)).slice(0, scores[s].logp.length);
      close(scores[s].entropy as Float64Array, entropy, 1e-4);
    }
    const logits = Array.from(await model.array("logits.s0"));
    const V = logits.length / model.expected.sequences[0].ids.length;
    for (let t = 0; t < scores[0].logp.length; t++) {
      const row = logits.slice(t * V, (t + 1) * V);
      const top = Math.max(...row);
      const lse = top + Math.log(row.reduce((a, x) => a + Math.exp(x - top), 0));
      close(
        (scores[0].full as Float64Array).subarray(t * V, (t + 1) * V),
        row.map((x) => x - lse),
        1e-4,
      );
    }
    if (!full) return;
    for (const layer of ["0", "1", "final"]) close(scores[0].hidden?.[layer] as Float32Array, await model.array(`hidden.${layer}.s0`), 1e-4);
    const ids = Array.from(await model.arrays.readInt64("top8_ids.s0"), Number);
    const tokens = scores[0].logp.length;
    expect(Array.from(scores[0].top?.ids ?? [])).toEqual(ids.slice(0, tokens * 8));
    close(
      scores[0].top?.tail as Float64Array,
      Array.from(await model.array("top8_tail.s0"), Number)
        .slice(0, tokens)
        .map((x) => Math.log(x)),
      1e-4,
    );
  });

  it("tempers log-probs and entropies", async () => {
    const scores = await model.engine.score(model.sequences(0.7), { entropy: true });
    for (let s = 0; s < model.expected.sequences.length; s++) close(scores[s].logp, await model.array(`logp_t0.7.s${s}`), 2e-4);
  });

  it("has the gradient of a policy loss in every entry", async () => {
    const gradient = await model.compare(model.expected.cases.policy, 1, {}, policyLoss(model.expected.coefficients));
    if (folder !== "llama-tied") return;
    const whole = await SafetensorsFile.open(`${model.path}/policy-gradients-full.safetensors`);
    for (const { name: tensor, data } of gradient) {
      const want = (await whole.readFloat64(tensor)) as ArrayLike<number>;
      close(data, want, gradientTolerance * Math.max(...Array.from(want, Math.abs)));
    }
    await whole.close();
  });

  it.runIf(full)("has the gradient at a temperature and with entropies", async () => {
    await model.compare(model.expected.cases["policy_t0.7"], 0.7, {}, policyLoss(model.expected.coefficients));
    const { weights, beta } = model.expected.cases.policy_entropy as unknown as { weights: number[][]; beta: number };
    await model.compare(model.expected.cases.policy_entropy, 1, { entropy: true }, (scores) => ({
      value:
        policyLoss(model.expected.coefficients)(scores).value +
        beta * scores.reduce((sum, { entropy }, s) => (entropy as Float64Array).reduce((a, h, t) => a + h * weights[s][t], sum), 0),
      derivatives: model.expected.coefficients.map((c, s) => ({ dLogp: Float64Array.from(c), dEntropy: Float64Array.from(weights[s], (w) => w * beta) })),
    }));
  });

  it.runIf(full)("has values and the gradient of their squared error", async () => {
    const { returns, weights } = model.expected.cases.value_mse as unknown as { returns: number[][]; weights: number[][] };
    await model.compare(model.expected.cases.value_mse, 1, { values: true }, (scores) => {
      const error = scores.map(({ values }, s) => Float64Array.from(values as Float64Array, (v, t) => v - returns[s][t]));
      return {
        value: error.reduce((sum, e, s) => e.reduce((a, x, t) => a + weights[s][t] * x * x, sum), 0),
        derivatives: error.map((e, s) => ({ dValue: e.map((x, t) => 2 * weights[s][t] * x) })),
      };
    });
    const scores = await model.engine.score(model.sequences(), { values: true });
    for (let s = 0; s < model.expected.sequences.length; s++) close(scores[s].values as Float64Array, await model.array(`values.s${s}`), 1e-4);
  });

  it.runIf(full)("differentiates the weights of the second minibatch, not those of the rollout", async () => {
    const c = model.expected.cases.ppo_second_minibatch as unknown as {
      clip_low: number;
      clip_high: number;
      advantages: number[][];
      mask: number[][];
      N: number;
      logp_old: number[][];
      lr: number;
      first: Case;
      second: Case & { logp: number[][] };
    };
    const loss = (scores: readonly Scores[]) => {
      let value = 0;
      const derivatives = scores.map(({ logp }, s) => ({
        dLogp: logp.map((l, t) => {
          if (!c.mask[s][t]) return 0;
          const A = c.advantages[s][t];
          const r = Math.exp(l - c.logp_old[s][t]);
          const clipped = Math.min(Math.max(r, 1 - c.clip_low), 1 + c.clip_high);
          value -= Math.min(r * A, clipped * A) / c.N;
          return r * A <= clipped * A ? (-r * A) / c.N : 0;
        }),
      }));
      return { value, derivatives };
    };
    const first = await model.engine.forward(model.sequences());
    await model.engine.backward(first.handle, loss(first.scores).derivatives, "role:policy");
    const step = await model.engine.step({ set: "role:policy", update: { rule: "sgd", rate: c.lr } });
    expect(Math.abs(step.gradNorm - c.first.total_norm)).toBeLessThan(1e-4 * c.first.total_norm);
    await model.compare({ ...c.second, value: (c.second as unknown as { loss: number }).loss }, 1, {}, loss);
    await model.engine.weights.restore("policy", "start");
  });

  it.runIf(full)("steps AdamW with clipping and exclusions", async () => {
    const c = model.expected.cases.adamw as unknown as {
      lr: number;
      beta1: number;
      beta2: number;
      eps: number;
      weight_decay: number;
      max_norm: number;
      no_decay: string[];
      steps: { gradient_norm_before_clipping: number; parameters: { [name: string]: { index: number[]; update: number[] } } }[];
    };
    const listed = model.names.filter((tensor) => !tensor.startsWith("value_head"));
    const before = new Map((await model.engine.weights.read({ role: "policy" }, listed)).map((tensor) => [tensor.name, tensor.data]));
    for (const { gradient_norm_before_clipping: norm, parameters } of c.steps) {
      const { handle } = await model.engine.forward(model.sequences());
      await model.engine.backward(
        handle,
        model.expected.coefficients.map((x) => ({ dLogp: Float64Array.from(x, (y) => -y) })),
        "role:policy",
      );
      const step = await model.engine.step({
        set: "role:policy",
        update: { rule: "adamw", rate: c.lr, beta1: c.beta1, beta2: c.beta2, epsilon: c.eps, weightDecay: c.weight_decay },
        maxNorm: c.max_norm,
        groups: [{ match: "norm|bias|value_head", weightDecay: 0 }],
      });
      expect(Math.abs(step.gradNorm - norm)).toBeLessThan(1e-4 * norm);
      expect(step.clipped).toBe(norm > c.max_norm);
      for (const { name: tensor, data } of await model.engine.weights.read({ role: "policy" }, Object.keys(parameters))) {
        const start = before.get(tensor) as Float64Array;
        parameters[tensor].index.forEach((at, i) => {
          expect(Math.abs(data[at] - start[at] - parameters[tensor].update[i]), `${tensor}[${at}]`).toBeLessThan(2e-3 * c.lr);
        });
      }
    }
    await model.engine.weights.restore("policy", "start");
  });
});

describe("a model whose rotation depends on the length (dynamic)", () => {
  let model: Fixture;
  beforeAll(async () => {
    model = await Fixture.open({ folder: "llama-rope", expected: "expected.dynamic", full: false, config: "configs/dynamic.json" });
  });
  afterAll(() => model.close());

  it("gives log-probs up to its base length", async () => {
    const [scores] = await model.engine.score([model.sequences()[1] as Sequence]);
    close(scores.logp, await model.array("logp.s1"), 1e-4);
  });

  it("refuses what is longer, to score and to sample, since cached keys would keep the old rotation", async () => {
    await expect(model.engine.score([model.sequences()[0] as Sequence])).rejects.toThrow(/26 response tokens exceed the model.s 16/);
    const request = {
      context: plainContext(Int32Array.of(1)),
      weights: { role: "policy" },
      temperature: 1,
      maxTokens: 16,
      stop: { ids: [] },
      key: randomKey({ seed: 0, purpose: "fixtures" }),
    };
    await expect(
      (async () => {
        for await (const _ of model.engine.sample([request]));
      })(),
    ).rejects.toThrow(/1 context and 16 response tokens exceed the model.s 16/);
  });
});
