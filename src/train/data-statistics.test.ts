import { describe, expect, it } from "vitest";
import type { Problem } from "../core/problem.js";
import type { Trajectory } from "../core/trajectory.js";
import { accept, partial, reject, unscored, type Verdict } from "../core/verdict.js";
import type { Coefficients } from "../methods/coefficients.js";
import type { Credit } from "../methods/credit.js";
import { sourceMetrics, sourceScores, turnMetrics } from "./data-statistics.js";

const problem = (key: string, tags?: Problem["tags"]): Problem => ({ key, prompt: [], reference: { state: "none", version: 0 }, ...(tags && { tags }) });

describe("numbers by source", () => {
  /** Groups of two answers: verdicts, and the coefficient of each answer's one token. */
  const batchOf = (...groups: { tags?: Problem["tags"]; verdicts: readonly [Verdict, Verdict]; coefficients: readonly [number, number] }[]): Coefficients => {
    const batch = {
      step: 1,
      groups: groups.map(({ tags, verdicts }, g) => ({
        key: `g${g}`,
        problem: problem(`p${g}`, tags),
        kind: "main",
        weight: 1,
        trajectories: verdicts.map(
          (verdict, member) => ({ purpose: "train", verdict, member, response: Int32Array.of(1), loss: Uint8Array.of(1) }) as unknown as Trajectory,
        ),
      })),
    };
    const rows = batch.groups.flatMap(({ trajectories }) => trajectories);
    const token = groups.flatMap(({ coefficients }) => coefficients.map((value) => Float64Array.of(value)));
    const policy = rows.map(() => Uint8Array.of(1));
    return {
      batch,
      rows,
      credit: { token } as unknown as Credit,
      mask: { rows: new Uint8Array(rows.length).fill(1), policy, terms: policy },
    } as unknown as Coefficients;
  };

  it("are means over each source's own answers, and what is unscored is no 0", () => {
    const metrics = sourceMetrics(
      batchOf(
        { tags: { source: "a" }, verdicts: [accept(), reject("wrong")], coefficients: [1, -1] },
        { tags: { source: "b" }, verdicts: [partial(0.25), unscored("judge")], coefficients: [0, 0] },
        { tags: { source: "a" }, verdicts: [accept(), accept()], coefficients: [0, 0] },
        { tags: { source: "c", data_source: "x" }, verdicts: [unscored("judge"), unscored("judge")], coefficients: [0, 0] },
      ),
    );
    expect(metrics).toEqual({
      "reward.a": 0.75,
      "unscored.a": 0,
      "rows.a": 0.5,
      "groups_silent.a": 0.5,
      "reward.b": 0.25,
      "unscored.b": 0.5,
      "rows.b": 0.25,
      "groups_silent.b": 1,
      "reward.c": undefined,
      "unscored.c": 1,
      "rows.c": 0.25,
      "groups_silent.c": 1,
    });
  });

  it("are of data_source where there is no mixture, and of nothing without either or with a name for each problem", () => {
    const group = (tags?: Problem["tags"]) => ({ ...(tags && { tags }), verdicts: [accept(), accept()] as const, coefficients: [0, 0] as const });
    expect(Object.keys(sourceMetrics(batchOf(group({ data_source: "openai/gsm8k" }), group())))).toEqual([
      "reward.openai/gsm8k",
      "unscored.openai/gsm8k",
      "rows.openai/gsm8k",
      "groups_silent.openai/gsm8k",
    ]);
    expect(sourceMetrics(batchOf(group(), group()))).toEqual({});
    expect(sourceMetrics(batchOf(...Array.from({ length: 33 }, (_, i) => group({ source: i }))))).toEqual({});
  });

  it("of an evaluation are means over each source's problems that have a score", () => {
    const problems = [
      problem("p1", { source: "a" }),
      problem("p2", { source: "a" }),
      problem("p3", { source: "b" }),
      problem("p4", { source: "a" }),
      problem("p5"),
    ];
    const scores = new Map([
      ["p1", 1],
      ["p2", 0.5],
      ["p5", 1],
    ]);
    expect(sourceScores(problems, scores)).toEqual({ "eval.score.a": 0.75 });
  });
});

describe("numbers of conversations", () => {
  const turn = (info: { [name: string]: number }, more: object = {}) => ({ action: "", observation: "", info, ...more });
  const row = (sampled: readonly number[], turns?: readonly object[]): Trajectory =>
    ({ response: new Int32Array(sampled.length), sampled: Uint8Array.from(sampled), ...(turns && { turns }) }) as unknown as Trajectory;

  it("are means over conversations, over their turns, and over all their tokens", () => {
    const rows = [
      row([1, 0, 0, 1], [turn({ calls: 2, failed: 1 }), turn({ calls: 0 }, { cut: 5 })]),
      row([1, 1], [turn({ calls: 1, failed: 0 }, { fault: "it threw" })]),
      row([], []),
    ];
    const metrics = turnMetrics(rows);
    expect(metrics).toEqual({
      turns: 1,
      turns_max: 2,
      turns_faults: 1 / 3,
      observed: expect.closeTo(2 / 6, 14),
      observed_cut: 1 / 3,
      "info.calls": 1,
      "info.failed": 0.5,
    });
  });

  it("do not exist where answers are no conversations", () => {
    expect(turnMetrics([row([1, 1])])).toEqual({});
  });
});
