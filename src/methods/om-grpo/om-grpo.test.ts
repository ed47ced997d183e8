import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { batch, group, row, scores } from "../../../test/support/batch.js";
import { lossAt, made, referenceOf, settings } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { tokenizer as digits, options, scratch, tablePolicy } from "../../../test/support/tabular.js";
import { alphabetTokenizer } from "../../core/alphabet.js";
import type { Json } from "../../core/json.js";
import { plainContext } from "../../core/problem.js";
import type { Batch, Trajectory } from "../../core/trajectory.js";
import { unscored } from "../../core/verdict.js";
import type { Scores, ScoreWant, Sequence } from "../../engine/contract.js";
import { defineTask } from "../../tasks/define.js";
import { RunReader } from "../../train/store/reader.js";
import { resume, type TrainOptions, train } from "../../train/train.js";
import { number } from "../../verify/number/number.js";
import { verifierOf } from "../../verify/simple.js";
import { anyMethod } from "../catalogue.js";
import type { Lab } from "../contract.js";
import { rowsOf } from "../credit.js";
import { defineMethod } from "../define.js";
import { grpo } from "../grpo/grpo.js";
import { compose } from "../resolve.js";
import { omGrpo, omGrpoOptions } from "./om-grpo.js";

const letters = alphabetTokenizer([..."0123456789AB:;|"]);
const prompts = { judge_prompt: "{first}|{second}:", judge_choices: ["A", "B"] };
const [A, B] = [letters.encode("A")[0] as number, letters.encode("B")[0] as number];

/** One group whose answers are these numbers; undefined: cut off by the budget. */
function answered(...answers: readonly (string | undefined)[]): Batch {
  const old = new Array<number>(answers.length).fill(-1);
  const trajectory = (answer: string | undefined, i: number): Trajectory => ({
    ...row("p", i, { old, verdict: unscored("no-reference") }),
    text: answer ?? "99",
    stop: answer === undefined ? "length" : "eos",
  });
  return batch(group("p", answers.map(trajectory)));
}

/** A lab whose judge gives the first answer this probability to win, and what it was asked. */
function judging(first: (question: string) => number, asked: string[] = []): Partial<Lab> {
  const { extract, same, locate } = number({ thinking: "none" });
  const lab: Lab = {
    settings,
    answers: { extract, same, locate } as Lab["answers"],
    tokenizer: letters,
    policy: { role: "policy" },
    weights: { info: async () => ({ maxTokens: 64 }) } as unknown as Lab["weights"],
    render: (messages: Parameters<Lab["render"]>[0], label: string) => plainContext(letters.encode(messages.map(({ content }) => content).join("")), label),
    score: async (sequences: readonly Sequence[], want: ScoreWant): Promise<Scores[]> =>
      sequences.map(({ context }, i) => {
        const question = letters.decode(context.ids);
        asked.push(question);
        expect([...(want.targets?.[i]?.ids ?? [])]).toEqual([A, B]);
        const p = first(question);
        // Both choices together need not have all the mass.
        return { ...scores([-1]), targetLogp: Float64Array.of(Math.log(0.4 * p), Math.log(0.4 * (1 - p))) };
      }),
    book: () => lab,
  } as unknown as Lab;
  return lab;
}

const rewardsOf = async (b: Batch, lab: Partial<Lab>, more: object = {}): Promise<readonly (number | undefined)[]> => {
  const now = rowsOf(b).map(({ response }) => new Array<number>(response.length).fill(-1));
  return (await lossAt(made(omGrpo, { mask: false, ...prompts, ...more }), b, now, lab)).c.rewards.values;
};

/** The judge holds the first answer for right with the probability that its value has. */
const bradley = (strength: { readonly [answer: string]: number }) => (question: string) => {
  const [first, second] = question.slice(0, -1).split("|") as [string, string];
  return (strength[first] as number) / ((strength[first] as number) + (strength[second] as number));
};

describe("the reward", () => {
  it("by hand: of 7 7 7 3 3 5 with strengths 1, 3, 1 the three classes win 3/8, 3/4 and 3/8 of their pairs", async () => {
    const asked: string[] = [];
    const values = await rewardsOf(answered("7", "7", "7", "3", "3", "5"), judging(bradley({ 7: 1, 3: 3, 5: 1 }), asked));
    // s_73 = 1/4, s_75 = 1/2, s_37 = s_35 = 3/4; eta = 0.3.
    const [seven, three, five] = [0.7 * (3 / 6) + 0.3 * 0.375, 0.7 * (2 / 6) + 0.3 * 0.75, 0.7 * (1 / 6) + 0.3 * 0.375];
    values.forEach((value, i) => expect(value).toBeCloseTo([seven, seven, seven, three, three, five][i] as number, 12));
    expect(asked).toEqual(["7|3:", "7|5:", "3|7:", "3|5:", "5|7:", "5|3:"]);
  });

  it("gives classes beyond the largest no share of the judge, nor answers that are none", async () => {
    const asked: string[] = [];
    const values = await rewardsOf(
      answered("1", "1", "2", "2", "3", undefined),
      judging(() => 0.5, asked),
      { classes: 2 },
    );
    [1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 6, 0].forEach((soft, i) => expect(values[i]).toBeCloseTo(0.7 * soft + (i < 4 ? 0.15 : 0), 12));
    expect(asked).toEqual(["1|2:", "2|1:"]);
  });

  it("of a single class is 0.7 c + 0.3 without a question, and no answer agrees with no other", async () => {
    const asked: string[] = [];
    const values = await rewardsOf(
      answered("4", "4", undefined, undefined),
      judging(() => 0.5, asked),
    );
    expect(values.map((value) => Number(value?.toFixed(12)))).toEqual([0.65, 0.65, 0, 0]);
    expect(
      await rewardsOf(
        answered(undefined, undefined),
        judging(() => 0.5, asked),
      ),
    ).toEqual([0, 0]);
    expect(asked).toEqual([]);
  });

  it("with a judge that sees only the order is the same for classes of one size: s_ij is 1/2 everywhere", async () => {
    for (const bias of [0.5, 0.9, 0.001]) {
      const values = await rewardsOf(
        answered("1", "2", "3", "1", "2", "3"),
        judging(() => bias),
      );
      for (const value of values) expect(value).toBeCloseTo(0.7 / 3 + 0.15, 12);
    }
  });

  it("gives two classes shares that sum to 1, whatever the judge: s_ij + s_ji = 1", async () => {
    for (const p of [0.1, 0.5, 0.93]) {
      const values = await rewardsOf(
        answered("1", "2"),
        judging((question) => (question === "1|2:" ? p : p * p)),
        { eta: 1 },
      );
      expect((values[0] as number) + (values[1] as number)).toBeCloseTo(1, 12);
      expect(values[0]).toBeCloseTo((p + 1 - p * p) / 2, 12);
    }
  });

  it("calls a pair a draw that is too long for the judge, and counts it", async () => {
    const short = { ...judging(() => 0.9), weights: { info: async () => ({ maxTokens: 4 }) } as unknown as Lab["weights"] };
    expect(await rewardsOf(answered("1", "2"), short, { eta: 1 })).toEqual([0.5, 0.5]);
  });

  it("teaches nothing where all agree", async () => {
    const b = answered("4", "4", "4");
    const { c } = await lossAt(
      made(omGrpo, { mask: false, ...prompts }),
      b,
      rowsOf(b).map(() => [-1, -1, -1]),
      judging(() => 0.9),
    );
    expect([...c.credit.trajectory]).toEqual([0, 0, 0]);
  });

  it("of soft votes with eta 0 asks nobody, and of hard votes is 1 for the most frequent", async () => {
    const b = answered("7", "3", "3", undefined);
    const nobody = { ...judging(() => 0.5), score: undefined as never };
    expect(await rewardsOf(b, nobody, { eta: 0 })).toEqual([0.25, 0.5, 0.5, 0]);
    expect(await rewardsOf(b, nobody, { reward: "soft" })).toEqual([0.25, 0.5, 0.5, 0]);
    expect(await rewardsOf(b, nobody, { reward: "hard" })).toEqual([0, 1, 1, 0]);
  });
});

describe("the mask", () => {
  const spans = [{ name: "answer", start: 1, end: 3 }];
  const old = [-1, -2, -3, -1];
  const texts = ["7", "7", "3"];
  const b = batch(
    group(
      "p",
      texts.map((text, i) => ({ ...row("p", i, { old, spans: i === 2 ? [] : spans }), text })),
    ),
  );
  const now = [old.map((x) => x + 0.1), old, old.map((x) => x - 0.05)];
  const of = (more: object, ...others: ReturnType<typeof made>[]) =>
    lossAt(compose(...others, made(omGrpo, { ...prompts, reward: "soft", ...more })), b, now, { ...judging(() => 0.5), ...referenceOf([old, old, old]) });

  it("takes the gradient off the answer exactly, and leaves the other tokens theirs up to the normaliser 4/2", async () => {
    const [masked, whole] = [await of({}), await of({ mask: false })];
    for (const i of [0, 1]) {
      expect([masked.d[i]?.[1], masked.d[i]?.[2]]).toEqual([0, 0]);
      for (const t of [0, 3]) expect(masked.d[i]?.[t]).toBeCloseTo(2 * (whole.d[i]?.[t] as number), 12);
    }
    expect(masked.d[2]).toEqual(whole.d[2]); // without an answer
    expect(whole.d[0]?.[1]).not.toBe(0);
  });

  it("changes no other row's normaliser in a mean over answers, and the common one in a mean over tokens: 8 of 12 tokens are left", async () => {
    const mean = { aggregation: "token-mean" };
    const [masked, whole] = [await of({}, made(grpo, mean)), await of({ mask: false }, made(grpo, mean))];
    expect(masked.d[2]?.[0]).toBeCloseTo(((whole.d[2]?.[0] as number) * 12) / 8, 12);
  });

  it("leaves a KL on all tokens: on the answer its derivative is all there is", async () => {
    const { d } = await of({}, made(grpo, { kl_coef: 0.5 }));
    // k3 = exp(f - l) - (f - l) - 1 with f - l = -0.1: derivative 1 - exp(-0.1), over 3 answers of 4 tokens each.
    for (const t of [1, 2]) expect(d[0]?.[t]).toBeCloseTo((0.5 * (1 - Math.exp(-0.1))) / 12, 12);
  });
});

/** Two digits in answer to two: the first counts. Nothing may be verified in training. */
const task = (verify: (input: { readonly reference: Json; readonly response: string }) => boolean) =>
  defineTask({
    name: "first",
    rows: () =>
      Array.from({ length: 12 }, (_, i) => ({
        prompt: `${i % 6}${i % 4}`,
        key: `p${i}`,
        answer: String(i % 6),
        solution: "secret",
        split: i < 8 ? ("train" as const) : ("eval" as const),
      })),
    verifier: {
      ...verifierOf("first", verify, "1"),
      extract: (response) => response[0],
      same: (a, b) => a === b,
      locate: (response) => (response === "" ? undefined : { start: 0, end: 1 }),
    },
    maxTokens: () => 3,
    tokenizer: () => digits,
  })();
const onDigits = { judge_prompt: "{problem}{first}{second}", judge_choices: ["0", "1"] };
const use = (more: object = {}) => ({ name: "om-grpo", options: { ...onDigits, ...more } });
/** The start of a run tries its verifier on an empty response. */
const forbidden = task(({ response }) => {
  if (response !== "") throw new Error("a verdict was asked for");
  return false;
});

describe("a run", () => {
  const run = async (more: Partial<TrainOptions>) => options(await tablePolicy(), { task: forbidden, problems: 4, group: 6, steps: 3, ...more });

  it("asks for no verdict, sees no reference and no solution, and learns", async () => {
    const started = await run({ method: use() });
    const { folder, updates } = await train(started);
    expect(updates).toBe(3);
    const groups = await RunReader.open(folder).groups(1);
    for (const { group: each } of groups) {
      expect(each.problem).toMatchObject({ reference: { state: "withheld", version: 0 } });
      expect("answer" in each.problem.reference || "privileged" in each.problem).toBe(false);
      for (const { verdict, spans, text } of each.trajectories) {
        expect(verdict).toEqual({ kind: "unscored", reason: "no-reference" });
        expect(spans).toEqual(text === "" ? [] : [expect.objectContaining({ name: "answer", end: expect.any(Number) })]);
      }
    }
    const [first] = groups.flatMap(({ rollouts }) => rollouts);
    expect(first?.numbers.reward).toEqual(expect.any(Number));
    const step = [...RunReader.open(folder).events()].find(({ kind }) => kind === "step");
    expect(step?.data.metrics).toMatchObject({ unscored: 1, "om-grpo.skipped": 0, "om-grpo.agreement": expect.any(Number) });
    expect(step?.data.ledger).toMatchObject({ scored: { aux: expect.any(Number) } });
    expect([...RunReader.open(folder).events()].filter(({ kind }) => kind === "warning")).toEqual([]);
  });

  it("keeps all groups where unscored answers would take theirs with them", async () => {
    const { folder } = await train(await run({ method: use({ reward: "soft" }), unscored: "drop-group", steps: 1 }));
    expect([...RunReader.open(folder).events()].find(({ kind }) => kind === "step")?.data.metrics).toMatchObject({ groups: 4 });
  });

  it("is evaluated with the references that training does not see", async () => {
    const started = await run({ method: use(), task: task(({ response, reference }) => response[0] === reference), eval: { every: 3, problems: 4 } });
    expect((await train(started)).evaluation["eval.score"]).toEqual(expect.any(Number));
  });

  it("has a frozen judge where it is told to: the policy as it started, until it moves the same numbers", async () => {
    const model = await tablePolicy();
    const rewards = async (judge: string) => {
      const { folder } = await train(options(model, { task: forbidden, method: use({ judge }), problems: 4, group: 6, steps: 2, lr: 3 }));
      const of = async (step: number) => (await RunReader.open(folder).groups(step)).flatMap(({ rollouts }) => rollouts.map(({ numbers }) => numbers.reward));
      return [await of(1), await of(2)];
    };
    const [own, frozen] = [await rewards("policy"), await rewards("reference")];
    expect(frozen[0]).toEqual(own[0]);
    expect(frozen[1]).not.toEqual(own[1]);
  });

  it("with hard votes and no mask is majority voting, bit for bit", async () => {
    const majority = anyMethod(
      defineMethod({
        name: "majority",
        make: () => ({
          slots: {
            reward: {
              owns: ({ groups }) => ({
                values: groups.flatMap(({ trajectories }) => {
                  const answers = trajectories.map(({ text, stop }) => (stop === "length" ? "" : text.slice(0, 1)));
                  const count = (answer: string) => (answer === "" ? 0 : answers.filter((each) => each === answer).length);
                  const best = answers.reduce((a, b) => (count(b) > count(a) ? b : a), "");
                  return answers.map((answer) => (answer !== "" && answer === best ? 1 : 0));
                }),
              }),
            },
          },
        }),
      }),
    );
    const plain = { task: task(() => false), minibatches: 2 };
    const model = await tablePolicy();
    const weights = async (more: Partial<TrainOptions>) => snapshot((await train(options(model, { ...plain, ...more, problems: 4, group: 6 }))).folder);
    const [is, wanted] = [await weights({ method: use({ reward: "hard", mask: false }) }), await weights({ methods: [majority], method: "majority" })];
    const files = Object.keys(wanted).filter((path) => path.endsWith("policy/model.safetensors"));
    expect(files.length).toBeGreaterThan(2);
    expect(files.filter((path) => is[path] !== wanted[path])).toEqual([]);
    expect(new Set(files.map((path) => is[path])).size).toBe(files.length);
  });

  it("goes on after an interruption to the same bytes", async () => {
    const whole = await run({ method: use(), steps: 4, checkpoint: { every: 1, keep_last: 9 } });
    await train(whole);
    const controller = new AbortController();
    const out = join(scratch(), "run");
    await train({ ...whole, out, signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === 2 && controller.abort() });
    await resume(out, { task: forbidden });
    const [is, wanted] = [snapshot(out), snapshot(whole.out)];
    expect(Object.keys(wanted).filter((path) => path !== "run.json" && is[path] !== wanted[path])).toEqual([]);
  });

  it("that has nothing to disagree about says so", async () => {
    const same = task(() => false);
    const started = await run({
      method: use({ reward: "soft" }),
      task: { ...same, verifier: { ...same.verifier, extract: () => undefined } },
      max_tokens: 3,
      limits: { silent_batches: 2 },
    });
    const { reason, message } = await train(started);
    expect([reason, message]).toEqual([
      "no-signal",
      "stopped after step 2: 2 batches in a row brought no signal: in every group all answers have the same score; give problems on which answers differ, larger groups, or a higher temperature",
    ]);
  });
});

describe("OM-GRPO", () => {
  const refused = async (more: Partial<TrainOptions>, sentence: string) =>
    expect(train(options(await tablePolicy(), { task: forbidden, method: use(), ...more }))).rejects.toThrow(sentence);

  it("is refused where answers have no classes or no place, and where the judge cannot be asked", async () => {
    const { extract: _, ...unclassed } = forbidden.verifier;
    await refused({ task: { ...forbidden, verifier: unclassed } }, "method om-grpo: the run's verifier does not tell answers apart without a reference");
    const { locate: __, ...placeless } = forbidden.verifier;
    await refused(
      { task: { ...forbidden, verifier: placeless } },
      "method om-grpo, option mask: the run's verifier does not say where the answer of a response stands",
    );
    await refused({ method: use({ judge_choices: ["0", "12"] }) }, 'option judge_choices: "12" is 2 tokens of this model');
    await refused({ method: use({ judge_prompt: "Which?" }) }, '"W" is not in the alphabet');
  });

  it("is refused beside a method that drops groups by their verdicts, both named", () => {
    const filter = made(defineMethod({ name: "filter", make: () => ({ signal: "reward-variance", slots: {} }) }));
    expect(() => compose(filter, made(omGrpo))).toThrow("method om-grpo+filter: om-grpo withholds references, and filter drops groups by their verdicts");
  });

  it("has the specification's numbers as defaults", () => {
    expect(omGrpoOptions.parse({})).toMatchObject({ reward: "contrast", mask: true, eta: 0.3, classes: 3, judge: "policy" });
  });
});
