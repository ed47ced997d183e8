import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../../test/support/batch.js";
import { type Asked, hintedLab } from "../../../test/support/hinted.js";
import { lossAt, made, resolved } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { options as runOf, successor, tablePolicy } from "../../../test/support/tabular.js";
import type { Batch } from "../../core/trajectory.js";
import { accept, reject, unscored } from "../../core/verdict.js";
import { RunReader } from "../../train/store/reader.js";
import { train } from "../../train/train.js";
import { groupAdvantages } from "../advantages.js";
import { coefficientsOf } from "../coefficients.js";
import type { Lab } from "../contract.js";
import { defineMethod } from "../define.js";
import { compose } from "../resolve.js";
import { type CscrOptions, cscr, cscrOptions } from "./cscr.js";
import { median, redistributed, sensitivity, tokenWeight } from "./sensitivity.js";

const old = [
  [-1, -2, -3, -0.5],
  [-1, -1],
  [-2, -1, -1],
];
const verdicts = [accept(), reject("wrong"), reject("wrong")];
const own = (): Batch =>
  batch(
    group(
      "p",
      old.map((each, i) => row("p", i, { old: each, verdict: verdicts[i] })),
    ),
  );

/** What each claim adds to the log-probs of the rows. */
type Moves = readonly (readonly number[])[];
const right: Moves = [
  [0.2, 1.5, -0.9, 0],
  [0.1, 3],
  [0, 0, 0],
];
const wrong: Moves = [
  [0.5, 1.0, 0.4, -0.1],
  [-0.2, 2],
  [0.3, -0.5, 0.1],
];
const claims = (up: Moves, down: Moves, asked: Asked[] = [], more: Partial<Lab> = {}): Lab =>
  hintedLab(
    ({ sequence }, i) => {
      const move = (sequence.context.label === "claimed-right" ? up : down)[i % old.length] as readonly number[];
      return scores((old[i % old.length] as number[]).map((x, t) => x + (move[t] as number)));
    },
    asked,
    more,
  );

const tokensOf = async (b: Batch, lab: Lab, options: object = {}) => {
  const c = await coefficientsOf(resolved(made(cscr, options)), b, lab);
  return { c, tokens: c.credit.token.map((each) => [...each]), base: [...(c.waterfall[0]?.token ?? [])].map((each) => [...each]) };
};
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const close = (is: readonly (readonly number[])[], wanted: readonly (readonly number[])[]): void =>
  is.forEach((each, i) => each.forEach((x, t) => expect(x).toBeCloseTo(wanted[i]?.[t] as number, 10)));

describe("sensitivities and weights", () => {
  it("by hand: s is the larger of both reactions, and the weight falls by e a nat beyond the threshold, down to w_min", () => {
    const s = sensitivity({ right: Float64Array.of(0.2, 1.5, -0.9, 0), wrong: Float64Array.of(0.5, 1, 0.4, -0.1) });
    expect([...s]).toEqual([0.5, 1.5, 0.9, 0.1]);
    const weights = [...s, 9].map((each) => tokenWeight(each, 0.5, { beta: 1, w_min: 0.1, inverted: false }));
    [1, Math.exp(-1), Math.exp(-0.4), 1, 0.1].forEach((w, t) => expect(weights[t]).toBeCloseTo(w, 14));
  });

  it("never rise with the sensitivity, and inverted never fall", () => {
    const grid = Array.from({ length: 60 }, (_, i) => i / 10);
    for (const inverted of [false, true]) {
      const weights = grid.map((s) => tokenWeight(s, 0.5, { beta: 0.7, w_min: 0.05, inverted }));
      weights.slice(1).forEach((w, i) => expect(inverted ? w >= (weights[i] as number) : w <= (weights[i] as number)).toBe(true));
    }
  });

  it("keep the positive and the negative sum of unlike coefficients, and leave what is masked", () => {
    const [a, w, mask] = [Float64Array.of(1, 3, -2, -4, 9), Float64Array.of(1, 0.5, 0.1, 0.9, 0.1), Uint8Array.of(1, 1, 1, 1, 0)];
    const is = [...redistributed(a, w, mask)];
    // 4 over 1 + 1.5; 6 over 0.2 + 3.6.
    [1.6, 2.4, -0.2 * (6 / 3.8), -3.6 * (6 / 3.8), 9].forEach((x, t) => expect(is[t]).toBeCloseTo(x, 12));
  });

  it("have a median of the middle, or of the two in the middle", () => {
    expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([])]).toEqual([2, 2.5, 0]);
  });
});

describe("CSCR", () => {
  it("by hand: A is shared out by weights that sum to the number of tokens", async () => {
    const { tokens, base } = await tokensOf(own(), claims(right, wrong));
    const weights = [
      [1, Math.exp(-1), Math.exp(-0.4), 1],
      [1, Math.max(0.1, Math.exp(-2.5))],
      [1, 1, 1],
    ];
    close(
      tokens,
      weights.map((w, i) => w.map((x) => ((base[i]?.[0] as number) * x * w.length) / sum(w))),
    );
  });

  it("keeps the sum of each answer to 1e-9 and the sign of every token, shuffled and inverted too, and leaves unscored answers at 0", async () => {
    const b = batch(
      group(
        "p",
        old.map((each, i) =>
          row("p", i, { old: each, verdict: i === 2 ? unscored("lost") : verdicts[i], mask: each.map((_, t) => (i === 0 && t === 1 ? 0 : 1)) }),
        ),
      ),
    );
    for (const control of ["none", "shuffled", "inverted"]) {
      const { tokens, base, c } = await tokensOf(b, claims(right, wrong), { control, beta: 3 });
      tokens.forEach((each, i) => {
        const inside = (values: readonly number[]) => values.filter((_, t) => c.mask.policy[i]?.[t] === 1);
        const [is, was] = [inside(each), inside(base[i] as number[])];
        expect(Math.abs(sum(is) - sum(was))).toBeLessThanOrEqual(1e-9 * Math.abs(sum(was)));
        is.forEach((x, t) => expect(Math.sign(x)).toBe(Math.sign(was[t] as number)));
      });
      expect(tokens[2]).toEqual([0, 0, 0]);
    }
  });

  it("is GRPO exactly for beta 0, and where no token passes the threshold", async () => {
    for (const options of [{ beta: 0 }, { kappa: 3 }]) {
      const { tokens, base } = await tokensOf(own(), claims(right, wrong), options);
      expect(tokens).toEqual(base);
    }
  });

  it("is the same with the claims swapped, and leaves an answer of one token", async () => {
    const [one, other] = [await tokensOf(own(), claims(right, wrong)), await tokensOf(own(), claims(wrong, right))];
    expect(one.tokens).toEqual(other.tokens);
    const single = batch(group("p", [row("p", 0, { old: [-1], verdict: accept() }), row("p", 1, { old: [-2], verdict: reject("no") })]));
    const lab = hintedLab(({ sequence }) => scores(sequence.context.label === "claimed-right" ? [3] : [-9]));
    const { tokens, base } = await tokensOf(single, lab);
    close(tokens, base);
  });

  it("gives shuffled sensitivities to other tokens of the same answer, the same for a seed", async () => {
    const b = batch(group("p", [row("p", 0, { old: new Array(30).fill(-1), verdict: accept() }), row("p", 1, { old: [-1], verdict: reject("no") })]));
    const lab = hintedLab(({ sequence }) => scores(Array.from(sequence.response, (_, t) => -1 + t / 10)));
    const [plain, shuffled, again] = [await tokensOf(b, lab), await tokensOf(b, lab, { control: "shuffled" }), await tokensOf(b, lab, { control: "shuffled" })];
    const sorted = (values: readonly number[] | undefined) => [...(values ?? [])].sort((x, y) => x - y);
    expect(shuffled.tokens[0]).not.toEqual(plain.tokens[0]);
    close([sorted(shuffled.tokens[0])], [sorted(plain.tokens[0])]);
    expect(again.tokens).toEqual(shuffled.tokens);
  });

  it("takes the batch's median for a threshold: at most half of the tokens lose", async () => {
    const { tokens, base } = await tokensOf(own(), claims(right, wrong), { kappa: "median" });
    // s: 0.5 1.5 0.9 0.1, 0.2 3, 0.3 0.5 0.1; the middle one is 0.5.
    const lowered = tokens.map((each, i) => each.map((x, t) => Math.abs(x) < Math.abs(base[i]?.[t] as number)));
    expect(lowered).toEqual([
      [false, true, true, false],
      [false, true],
      [false, false, false],
    ]);
  });

  it("asks both claims in one call, in the words of its templates, of the policy's own weights and temperature", async () => {
    const asked: Asked[] = [];
    let calls = 0;
    const lab = claims(right, wrong, asked);
    const score: Lab["score"] = (...given) => {
      calls++;
      return lab.score(...given);
    };
    const counting = { ...lab, score };
    await tokensOf(own(), counting, { right_prompt: "[{problem}] right", wrong_prompt: "[{problem}] wrong" });
    expect(calls).toBe(1);
    expect(asked.map(({ text }) => text)).toEqual([...old.map(() => "[what is p?] right"), ...old.map(() => "[what is p?] wrong")]);
    expect(new Set(asked.map(({ sequence }) => JSON.stringify([sequence.weights, sequence.temperature])))).toEqual(new Set(['[{"role":"policy"},1]']));
  });

  it("scores the plain context too where the weights are no longer those of the rollout", async () => {
    const asked: Asked[] = [];
    const moved = hintedLab(({ sequence }, i) => {
      const up = sequence.context.label === "plain" ? 0 : ((sequence.context.label === "claimed-right" ? right : wrong)[i % old.length] as readonly number[]);
      return { ...scores((old[i % old.length] as number[]).map((x, t) => x - 0.7 + (typeof up === "number" ? up : (up[t] as number)))), weights: "policy@4" };
    }, asked);
    close((await tokensOf(own(), moved)).tokens, (await tokensOf(own(), claims(right, wrong))).tokens);
    expect(asked.filter(({ sequence }) => sequence.context.label === "plain").length).toBe(old.length);
  });

  it("leaves an answer that does not fit beside a claim, and says how many", async () => {
    const lab = claims(right, wrong, [], { weights: { info: async () => ({ maxTokens: 40, vocabulary: 3 }) } as unknown as Lab["weights"] });
    const method = made(cscr);
    const c = await coefficientsOf(resolved(method), own(), lab);
    expect(c.credit.token.map((each) => [...each])).toEqual(c.waterfall[0]?.token.map((each) => [...each]));
    expect(resolved(method).stages.observe[0]?.run({ batch: c.batch } as never)).toEqual({ "cscr.skipped": 1 });
  });

  it("reports shares of tokens that both claims move one way or opposite ways, and sensitivities by span", async () => {
    const method = made(cscr, { floor: 0.05 });
    const b = batch(
      group(
        "p",
        old.map((each, i) => row("p", i, { old: each, verdict: verdicts[i], spans: i === 0 ? [{ name: "answer", start: 2, end: 4 }] : [] })),
      ),
    );
    await coefficientsOf(resolved(method), b, claims(right, wrong));
    const is = resolved(method).stages.observe[0]?.run({ batch: b } as never) ?? {};
    // Above 0.05: 9 tokens. Same way: 0.2/0.5, 1.5/1, 3/2. Opposite: -0.9/0.4, 0.1/-0.2. The others have a claim that moves nothing.
    expect(is["cscr.same_direction"]).toBeCloseTo(3 / 9, 12);
    expect(is["cscr.reversal"]).toBeCloseTo(2 / 9, 12);
    expect(is["cscr.sensitivity"]).toBeCloseTo((0.5 + 1.5 + 0.9 + 0.1 + 0.2 + 3 + 0.3 + 0.5 + 0.1) / 9, 12);
    expect(is["cscr.sensitivity.answer"]).toBeCloseTo(0.5, 12);
    expect(is["cscr.skipped"]).toBe(0);
  });

  it("composes with what reads answers' advantages: the trajectory level stays what it was", async () => {
    const trust = made(
      defineMethod({
        name: "trust",
        make: () => ({
          slots: {
            bounds: {
              run: (_, credit, bounds) => bounds.map(({ low, high }, i) => ({ low, high: high.map((x) => x + Math.abs(credit.trajectory[i] as number)) })),
            },
          },
        }),
      }),
    );
    const b = own();
    const advantages = groupAdvantages(b, { values: [1, 0, 0] }, { std: "sample", eps: 1e-4 });
    const { c } = await lossAt(compose(made(cscr), trust), b, old, claims(right, wrong));
    expect(c.bounds.map(({ high }) => high[0])).toEqual([...advantages].map((a) => 1.2 + Math.abs(a)));
    expect([...c.credit.trajectory]).toEqual([...advantages]);
  });

  it("has the specification's numbers as defaults", () => {
    expect(cscrOptions.parse({})).toMatchObject({ beta: 1, kappa: 0.5, w_min: 0.1, control: "none" } satisfies Partial<CscrOptions>);
  });
});

describe("a run of CSCR", () => {
  const digits = { right_prompt: "{problem}1", wrong_prompt: "{problem}0" };

  it("without effect has GRPO's weights bit for bit, and with it others", async () => {
    const model = await tablePolicy();
    const weights = async (method: object | string) => {
      const { folder } = await train(runOf(model, { method: method as never, minibatches: 2, steps: 3 }));
      return Object.entries(snapshot(folder)).filter(([path]) => path.endsWith("policy/model.safetensors"));
    };
    const grpo = await weights("grpo");
    expect(grpo.length).toBeGreaterThan(1);
    expect(await weights({ name: "cscr", options: { ...digits, beta: 0 } })).toEqual(grpo);
    expect(await weights({ name: "cscr", options: { ...digits, kappa: 0, beta: 2 } })).not.toEqual(grpo);
  });

  it("records each answer's coefficients before and after", async () => {
    const { folder } = await train(runOf(await tablePolicy(), { method: { name: "cscr", options: { ...digits, kappa: 0 } }, steps: 1 }));
    const [first] = (await RunReader.open(folder).groups(1)).flatMap(({ rollouts }) => rollouts);
    expect(Object.keys(first?.columns ?? {})).toEqual(expect.arrayContaining(["coefficient.credit.0.grpo", "coefficient.shape.0.cscr"]));
  });

  it("is refused before step 1 where a claim leaves the model no place, or cannot be written in its alphabet", async () => {
    const start = async (options: object) =>
      train(runOf(await tablePolicy({ maxTokens: 9 }), { task: successor(), method: { name: "cscr", options: options as never } }));
    await expect(start({})).rejects.toThrow("is not in the alphabet");
    await expect(start({ ...digits, right_prompt: "{problem}11111111" })).rejects.toThrow(
      /its prompt with a hint of cscr has \d+ tokens, which with \d+ for the response are more than the model's 9/,
    );
  });
});
