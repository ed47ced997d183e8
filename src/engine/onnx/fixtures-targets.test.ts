/** Losses over listed outcomes and over whole distributions, against numbers that a plain float64 transformer computed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fixture, fixtureModels, gradientTolerance, type Target } from "../../../test/support/loaded-model.js";
import type { Scores, Targets } from "../contract.js";

describe.each(fixtureModels.filter(({ full }) => full))("model $folder", (given) => {
  let model: Fixture;
  beforeAll(async () => {
    model = await Fixture.open(given);
  });
  afterAll(() => model.close());

  /** A loss over listed outcomes: value and its derivative by the log-prob of an outcome, given p and the target's number. */
  const sparse = (
    targets: readonly { sequence: number; position: number; ids: number[]; q: number[]; q_tail: number; weight: number }[],
    term: (logp: number, q: number) => [value: number, derivative: number],
  ) => {
    const k = 8;
    const all = model.sequences();
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

  it("has the gradients of divergences and signed scores over listed outcomes and their tail", async () => {
    const run = async (name: string, targets: readonly Target[], term: (logp: number, q: number) => [number, number]) => {
      const { wanted, loss } = sparse(targets, term);
      await model.compare(model.expected.cases[name], 1, { targets: wanted }, loss);
    };
    const { sparse_targets: targets } = model.expected;
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
    const signed = model.expected.signed_scores.map(({ s, s_tail, ...rest }) => ({ ...rest, q: s, q_tail: s_tail, weight: 1 }));
    await run("signed_logp", signed, (l, s) => [s * l, s]);
    await run("expected_reward", signed, (l, s) => [s * Math.exp(l), s * Math.exp(l)]);
  });

  it("has the gradient of a divergence over the whole vocabulary", async () => {
    const target = Array.from(await model.array("full_target.s1"));
    const T = model.expected.sequences[1].ids.length;
    const V = target.length / T;
    // The fixture's sum runs over every position; the model.expected.sequences.length one predicts a token that is not there, so one is appended.
    const all = model.sequences();
    all[1] = { ...all[1], response: Int32Array.from([...all[1].response, 0]) };
    const targets = all.map(({ response }, s): Targets | undefined =>
      s === 1 ? { k: V, ids: Int32Array.from({ length: response.length * V }, (_, i) => i % V) } : undefined,
    );
    const { handle, scores } = await model.engine.forward(all, { targets });
    const value = target.reduce((sum, q, i) => sum + (q > 0 ? q * (Math.log(q) - (scores[1].targetLogp as Float64Array)[i]) : 0), 0);
    const { forward_kl_full: of } = model.expected.cases;
    expect(Math.abs(value - of.value)).toBeLessThan(1e-4);
    await model.engine.backward(handle, [{}, { dTargetLogp: Float64Array.from(target, (q) => -q) }, {}], "role:policy");
    for (const { name: tensor, data } of await model.engine.weights.readGradient("role:policy", Object.keys(of.gradients))) {
      const { index, value: values, max_abs } = of.gradients[tensor];
      index.forEach((at, i) => {
        expect(Math.abs(data[at] - values[i]), tensor).toBeLessThan(gradientTolerance * max_abs);
      });
    }
    await model.engine.weights.zeroGradient("role:policy");
  });
});
