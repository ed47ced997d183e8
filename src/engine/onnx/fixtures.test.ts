/** The embedded engine against numbers that a plain float64 transformer computed (test/fixtures/README.md). */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import { plainContext } from "../../core/problem.js";
import type { Derivatives, Scores, Sequence, Targets } from "../contract.js";
import { SafetensorsFile } from "../safetensors.js";
import { OnnxEngine } from "./engine.js";

interface Case {
  readonly value: number;
  readonly total_norm: number;
  readonly gradients: { readonly [name: string]: { readonly l2: number; readonly max_abs: number; readonly index: number[]; readonly value: number[] } };
}
interface Target {
  readonly sequence: number;
  readonly position: number;
  readonly ids: number[];
  readonly q: number[];
  readonly q_tail: number;
  readonly weight: number;
}
interface Expected {
  readonly sequences: { readonly ids: number[] }[];
  readonly coefficients: number[][];
  readonly sparse_targets: Target[];
  readonly signed_scores: { readonly sequence: number; readonly position: number; readonly ids: number[]; readonly s: number[]; readonly s_tail: number }[];
  // biome-ignore lint/suspicious/noExplicitAny: the cases have fields of their own, listed in the fixtures' README
  readonly cases: { readonly [name: string]: Case & { readonly [field: string]: any } };
}

/** Ten times what float32 was off by (test/fixtures/README.md); the tail term is the least exact. */
const gradientTolerance = 1e-4;

const models = [
  { folder: "llama-tied", expected: "expected", full: true },
  { folder: "smollm", expected: "expected", full: true },
  { folder: "llama-rope", expected: "expected.default", full: false },
];

describe.each(models)("model $folder", ({ folder, expected: name, full }) => {
  const path = fixture("models", folder);
  const expected = JSON.parse(readFileSync(`${path}/${name}.json`, "utf8")) as Expected;
  const last = expected.sequences.length;
  let arrays: SafetensorsFile;
  let engine: OnnxEngine;
  let names: string[];

  beforeAll(async () => {
    arrays = await SafetensorsFile.open(`${path}/${name}.safetensors`);
    engine = await OnnxEngine.create({ threads: 1 });
    const info = await engine.weights.load({ role: "policy", source: { from: "folder", path }, trainable: true, ...(full ? { valueHead: true } : {}) });
    names = info.tensors.map((tensor) => tensor.name);
    await engine.weights.snapshot("policy", "start");
  });
  afterAll(async () => {
    await arrays.close();
    await engine.close();
  });

  const array = async (key: string): Promise<ArrayLike<number>> => (await arrays.readFloat64(key)) as ArrayLike<number>;
  const sequences = (temperature = 1): Sequence[] =>
    expected.sequences.map(({ ids }) => ({
      context: plainContext(ids.slice(0, 1)),
      response: Int32Array.from(ids.slice(1)),
      weights: { role: "policy" },
      temperature,
    }));
  const close = (got: ArrayLike<number>, want: ArrayLike<number>, tolerance: number) => {
    expect(got.length).toBe(want.length);
    let worst = 0;
    for (let i = 0; i < want.length; i++) worst = Math.max(worst, Math.abs(got[i] - want[i]));
    expect(worst).toBeLessThan(tolerance);
  };

  /** Backward of a case's derivatives, compared with every listed entry of every tensor. */
  const compare = async (
    of: Case,
    temperature: number,
    want: { entropy?: boolean; values?: boolean; targets?: Targets[] },
    loss: (scores: readonly Scores[]) => { value: number; derivatives: Derivatives[] },
  ) => {
    const { handle, scores } = await engine.forward(sequences(temperature), want);
    const { value, derivatives } = loss(scores);
    expect(Math.abs(value - of.value)).toBeLessThan(1e-5 * Math.max(1, Math.abs(of.value)) * 2);
    await engine.backward(handle, derivatives, "role:policy");
    const listed = Object.keys(of.gradients);
    const gradient = await engine.weights.readGradient("role:policy", listed);
    await engine.weights.zeroGradient("role:policy");
    for (const { name: tensor, data } of gradient) {
      const { index, value: values, max_abs, l2 } = of.gradients[tensor];
      index.forEach((at, i) => {
        expect(Math.abs(data[at] - values[i]), `${tensor}[${at}]`).toBeLessThan(gradientTolerance * max_abs + 1e-12);
      });
      expect(Math.abs(Math.hypot(...data) - l2)).toBeLessThan(gradientTolerance * l2 + 1e-12);
    }
    return gradient;
  };
  const policy = (coefficients: number[][]) => (scores: readonly Scores[]) => ({
    value: scores.reduce((sum, { logp }, s) => logp.reduce((a, x, t) => a + x * coefficients[s][t], sum), 0),
    derivatives: coefficients.map((c) => ({ dLogp: Float64Array.from(c) })),
  });

  it("gives log-probs, entropies and whole distributions", async () => {
    const scores = await engine.score(sequences(), { entropy: true, full: true, topK: 8, hidden: full ? [0, 1, "final"] : [] });
    for (let s = 0; s < last; s++) {
      close(scores[s].logp, await array(`logp.s${s}`), 1e-4);
      const entropy = Array.from(await array(`entropy.s${s}`)).slice(0, scores[s].logp.length);
      close(scores[s].entropy as Float64Array, entropy, 1e-4);
    }
    const logits = Array.from(await array("logits.s0"));
    const V = logits.length / expected.sequences[0].ids.length;
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
    for (const layer of ["0", "1", "final"]) close(scores[0].hidden?.[layer] as Float32Array, await array(`hidden.${layer}.s0`), 1e-4);
    const ids = Array.from(await arrays.readInt64("top8_ids.s0"), Number);
    const tokens = scores[0].logp.length;
    expect(Array.from(scores[0].top?.ids ?? [])).toEqual(ids.slice(0, tokens * 8));
    close(
      scores[0].top?.tail as Float64Array,
      Array.from(await array("top8_tail.s0"), Number)
        .slice(0, tokens)
        .map((x) => Math.log(x)),
      1e-4,
    );
  });

  it("tempers log-probs and entropies", async () => {
    const scores = await engine.score(sequences(0.7), { entropy: true });
    for (let s = 0; s < last; s++) close(scores[s].logp, await array(`logp_t0.7.s${s}`), 2e-4);
  });

  it("has the gradient of a policy loss in every entry", async () => {
    const gradient = await compare(expected.cases.policy, 1, {}, policy(expected.coefficients));
    if (folder !== "llama-tied") return;
    const whole = await SafetensorsFile.open(`${path}/policy-gradients-full.safetensors`);
    for (const { name: tensor, data } of gradient) {
      const want = (await whole.readFloat64(tensor)) as ArrayLike<number>;
      close(data, want, gradientTolerance * Math.max(...Array.from(want, Math.abs)));
    }
    await whole.close();
  });

  it.runIf(full)("has the gradient at a temperature and with entropies", async () => {
    await compare(expected.cases["policy_t0.7"], 0.7, {}, policy(expected.coefficients));
    const { weights, beta } = expected.cases.policy_entropy as unknown as { weights: number[][]; beta: number };
    await compare(expected.cases.policy_entropy, 1, { entropy: true }, (scores) => ({
      value:
        policy(expected.coefficients)(scores).value +
        beta * scores.reduce((sum, { entropy }, s) => (entropy as Float64Array).reduce((a, h, t) => a + h * weights[s][t], sum), 0),
      derivatives: expected.coefficients.map((c, s) => ({ dLogp: Float64Array.from(c), dEntropy: Float64Array.from(weights[s], (w) => w * beta) })),
    }));
  });

  /** A loss over listed outcomes: value and its derivative by the log-prob of an outcome, given p and the target's number. */
  const sparse = (
    targets: readonly { sequence: number; position: number; ids: number[]; q: number[]; q_tail: number; weight: number }[],
    term: (logp: number, q: number) => [value: number, derivative: number],
  ) => {
    const k = 8;
    const all = sequences();
    const ids = all.map(({ response }) => Int32Array.from({ length: response.length * k }, (_, i) => i % k));
    for (const target of targets) ids[target.sequence].set(target.ids, target.position * k);
    const wanted = all.map((_, s): Targets => ({ k, ids: ids[s] }));
    const loss = (scores: readonly Scores[]) => {
      let value = 0;
      const derivatives = scores.map(({ logp }) => ({ dTargetLogp: new Float64Array(logp.length * k), dTargetTail: new Float64Array(logp.length) }));
      for (const { sequence, position, q, q_tail, weight } of targets) {
        const { targetLogp, targetTail } = scores[sequence];
        q.forEach((x, j) => {
          const [v, d] = term((targetLogp as Float64Array)[position * k + j], x);
          value += weight * v;
          derivatives[sequence].dTargetLogp[position * k + j] = weight * d;
        });
        const [v, d] = term((targetTail as Float64Array)[position], q_tail);
        value += weight * v;
        derivatives[sequence].dTargetTail[position] = weight * d;
      }
      return { value, derivatives };
    };
    return { wanted, loss };
  };

  it.runIf(full)("has the gradients of divergences and signed scores over listed outcomes and their tail", async () => {
    const run = async (name: string, targets: readonly Target[], term: (logp: number, q: number) => [number, number]) => {
      const { wanted, loss } = sparse(targets, term);
      await compare(expected.cases[name], 1, { targets: wanted }, loss);
    };
    const { sparse_targets: targets } = expected;
    await run("forward_kl_sparse", targets, (l, q) => (q === 0 ? [0, 0] : [q * (Math.log(q) - l), -q]));
    await run(
      "reverse_kl_sparse",
      targets.filter((t) => t.q_tail > 0),
      (l, q) => [Math.exp(l) * (l - Math.log(q)), Math.exp(l) * (l - Math.log(q) + 1)],
    );
    await run("js_sparse", targets, (l, q) => {
      const p = Math.exp(l);
      const m = (p + q) / 2;
      return [0.5 * (q === 0 ? 0 : q * Math.log(q / m)) + 0.5 * p * Math.log(p / m), 0.5 * p * Math.log(p / m)];
    });
    const signed = expected.signed_scores.map(({ s, s_tail, ...rest }) => ({ ...rest, q: s, q_tail: s_tail, weight: 1 }));
    await run("signed_logp", signed, (l, s) => [s * l, s]);
    await run("expected_reward", signed, (l, s) => [s * Math.exp(l), s * Math.exp(l)]);
  });

  it.runIf(full)("has the gradient of a divergence over the whole vocabulary", async () => {
    const target = Array.from(await array("full_target.s1"));
    const T = expected.sequences[1].ids.length;
    const V = target.length / T;
    // The fixture's sum runs over every position; the last one predicts a token that is not there, so one is appended.
    const all = sequences();
    all[1] = { ...all[1], response: Int32Array.from([...all[1].response, 0]) };
    const targets = all.map(({ response }, s): Targets | undefined =>
      s === 1 ? { k: V, ids: Int32Array.from({ length: response.length * V }, (_, i) => i % V) } : undefined,
    );
    const { handle, scores } = await engine.forward(all, { targets });
    const value = target.reduce((sum, q, i) => sum + (q > 0 ? q * (Math.log(q) - (scores[1].targetLogp as Float64Array)[i]) : 0), 0);
    const { forward_kl_full: of } = expected.cases;
    expect(Math.abs(value - of.value)).toBeLessThan(1e-4);
    await engine.backward(handle, [{}, { dTargetLogp: Float64Array.from(target, (q) => -q) }, {}], "role:policy");
    for (const { name: tensor, data } of await engine.weights.readGradient("role:policy", Object.keys(of.gradients))) {
      const { index, value: values, max_abs } = of.gradients[tensor];
      index.forEach((at, i) => {
        expect(Math.abs(data[at] - values[i]), tensor).toBeLessThan(gradientTolerance * max_abs);
      });
    }
    await engine.weights.zeroGradient("role:policy");
  });

  it.runIf(full)("has values and the gradient of their squared error", async () => {
    const { returns, weights } = expected.cases.value_mse as unknown as { returns: number[][]; weights: number[][] };
    await compare(expected.cases.value_mse, 1, { values: true }, (scores) => {
      const error = scores.map(({ values }, s) => Float64Array.from(values as Float64Array, (v, t) => v - returns[s][t]));
      return {
        value: error.reduce((sum, e, s) => e.reduce((a, x, t) => a + weights[s][t] * x * x, sum), 0),
        derivatives: error.map((e, s) => ({ dValue: e.map((x, t) => 2 * weights[s][t] * x) })),
      };
    });
    const scores = await engine.score(sequences(), { values: true });
    for (let s = 0; s < last; s++) close(scores[s].values as Float64Array, await array(`values.s${s}`), 1e-4);
  });

  it.runIf(full)("differentiates the weights of the second minibatch, not those of the rollout", async () => {
    const c = expected.cases.ppo_second_minibatch as unknown as {
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
    const first = await engine.forward(sequences());
    await engine.backward(first.handle, loss(first.scores).derivatives, "role:policy");
    const step = await engine.step({ set: "role:policy", update: { rule: "sgd", rate: c.lr } });
    expect(Math.abs(step.gradNorm - c.first.total_norm)).toBeLessThan(1e-4 * c.first.total_norm);
    await compare({ ...c.second, value: (c.second as unknown as { loss: number }).loss }, 1, {}, loss);
    await engine.weights.restore("policy", "start");
  });

  it.runIf(full)("steps AdamW with clipping and exclusions", async () => {
    const c = expected.cases.adamw as unknown as {
      lr: number;
      beta1: number;
      beta2: number;
      eps: number;
      weight_decay: number;
      max_norm: number;
      no_decay: string[];
      steps: { gradient_norm_before_clipping: number; parameters: { [name: string]: { index: number[]; update: number[] } } }[];
    };
    const listed = names.filter((tensor) => !tensor.startsWith("value_head"));
    const before = new Map((await engine.weights.read({ role: "policy" }, listed)).map((tensor) => [tensor.name, tensor.data]));
    for (const { gradient_norm_before_clipping: norm, parameters } of c.steps) {
      const { handle } = await engine.forward(sequences());
      await engine.backward(
        handle,
        expected.coefficients.map((x) => ({ dLogp: Float64Array.from(x, (y) => -y) })),
        "role:policy",
      );
      const step = await engine.step({
        set: "role:policy",
        update: { rule: "adamw", rate: c.lr, beta1: c.beta1, beta2: c.beta2, epsilon: c.eps, weightDecay: c.weight_decay },
        maxNorm: c.max_norm,
        groups: [{ match: "norm|value_head", weightDecay: 0 }],
      });
      expect(Math.abs(step.gradNorm - norm)).toBeLessThan(1e-4 * norm);
      expect(step.clipped).toBe(norm > c.max_norm);
      for (const { name: tensor, data } of await engine.weights.read({ role: "policy" }, Object.keys(parameters))) {
        const start = before.get(tensor) as Float64Array;
        parameters[tensor].index.forEach((at, i) => {
          expect(Math.abs(data[at] - start[at] - parameters[tensor].update[i]), `${tensor}[${at}]`).toBeLessThan(2e-3 * c.lr);
        });
      }
    }
    await engine.weights.restore("policy", "start");
  });
});
