import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../../test/support/batch.js";
import { lossAt, made, resolved, settings } from "../../../test/support/method.js";
import { accept, reject } from "../../core/verdict.js";
import { coefficientsOf } from "../coefficients.js";
import type { Lab } from "../contract.js";
import { ppo, whitened } from "./ppo.js";

const old = [[-1, -2], [-3]];
const values = [Float64Array.of(0.4, 0.6, 9), Float64Array.of(0.5, 9)];
const lab: Partial<Lab> = { score: async () => old.map((logp, i) => ({ ...scores(logp), values: values[i] })) };
const pair = batch(group("p", [row("p", 0, { old: old[0], verdict: accept() }), row("p", 1, { old: old[1], verdict: reject("no") })]));

describe("PPO", () => {
  it("by hand: generalised advantages of the critic's values, lambda 0.5", async () => {
    const { c, d } = await lossAt(made(ppo, { lambda: 0.5, whiten: false }), pair, old, lab);
    // delta: 0.6 - 0.4, 1 - 0.6; -0.5. A: 0.2 + 0.5 0.4, 0.4; -0.5
    const advantages = [0.4, 0.4, -0.5];
    advantages.forEach((a, i) => expect([...c.credit.token[0], ...c.credit.token[1]][i]).toBeCloseTo(a, 12));
    advantages.forEach((a, i) => expect(d.flat()[i]).toBeCloseTo(-a / 3, 12));
  });

  it("trains the critic on returns, in a pass of its own that sends its gradient to the critic", async () => {
    const { c } = await lossAt(made(ppo, { whiten: false }), pair, old, lab);
    const [term] = c.terms;
    expect(term.on?.set).toBe("role:critic");
    expect(term.on?.sequence(1)).toMatchObject({ response: pair.groups[0].trajectories[1].response, weights: { role: "critic" } });
    const now = values.map((v, i) => ({ index: i, now: { ...scores(old[i]), values: v } }));
    const { value, derivatives } = term.run(now as never);
    // G = R (critic_lambda 1): 1, 1 and 0; weights 1/3, value_coef 1/2
    expect(value).toBeCloseTo((0.5 / 3) * 0.5 * (0.6 ** 2 + 0.4 ** 2 + 0.5 ** 2), 12);
    [-0.6, -0.4, 0].forEach((e, t) => expect((derivatives[0].dValue as Float64Array)[t]).toBeCloseTo((0.5 / 3) * e, 12));
    expect([...(derivatives[1].dValue as Float64Array)]).toEqual([expect.closeTo((0.5 / 3) * 0.5, 12), 0]);
  });

  it("with a head on the policy reads the values of the policy's own pass", async () => {
    const method = made(ppo, { critic: "head" });
    expect(method.roles).toEqual([{ name: "policy", valueHead: true }]);
    const { terms } = await coefficientsOf(resolved(method), pair, { settings, ...lab } as Lab);
    expect(terms).toMatchObject([{ name: "value", want: { values: true } }]);
    expect(terms[0].on).toBeUndefined();
  });

  it("frozen leaves the policy without a coefficient, and the critic its targets", async () => {
    const { c } = await lossAt(made(ppo, { policy: "frozen" }), pair, old, lab);
    expect(c.credit.token.flatMap((row) => [...row])).toEqual([0, 0, 0]);
    expect(c.terms).toHaveLength(1);
  });

  it("whitens over the tokens that count", () => {
    const found = whitened([Float64Array.of(1, 5), Float64Array.of(3)], [Uint8Array.of(1, 0), Uint8Array.of(1)]);
    [-1, 0, 1].forEach((a, i) => expect(found.flatMap((row) => [...row])[i]).toBeCloseTo(a, 6));
  });
});
