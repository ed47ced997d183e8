import { describe, expect, it } from "vitest";
import { accept, partial, reject, unscored, type Verdict } from "../core/verdict.js";
import { wilson } from "../core/wilson.js";
import { estimateOf, metricsOf } from "./metrics.js";
import { type EvaluatedSample, voted } from "./samples.js";

const sample = (problem: string, member: number, verdict: Verdict, vote: number | null = 0, tokens = 2): EvaluatedSample => ({
  problem,
  member,
  ids: new Int32Array(tokens),
  text: "",
  logp: -1,
  rawLogp: -1,
  entropy: 0.5,
  stop: "eos",
  verdict,
  answer: "",
  vote,
});

const group = (problem: string, verdicts: readonly Verdict[]): EvaluatedSample[] => verdicts.map((verdict, member) => sample(problem, member, verdict, member));
const wrong = reject("wrong");

describe("metrics", () => {
  it("are means over problems, by hand: two of four right, and none of two", () => {
    const metrics = metricsOf([...group("a", [accept(), accept(), wrong, wrong]), ...group("b", [wrong, wrong])], { k: [1, 2], seed: 1 });
    expect(estimateOf(metrics, "avg")!.value).toBeCloseTo((0.5 + 0) / 2, 15);
    expect(estimateOf(metrics, "pass", 1)!.value).toBeCloseTo((0.5 + 0) / 2, 15);
    expect(estimateOf(metrics, "pass", 2)!.value).toBeCloseTo((1 - 1 / 6) / 2, 15);
    expect(estimateOf(metrics, "pass", 2)!.n).toEqual({ min: 2, max: 4 });
    expect(metrics).toMatchObject({ problems: 2, samples: 6, scored: 6, unscored: 0, reasons: { wrong: 4 }, tokens: { total: 12, mean: 2, max: 2 } });
    expect(metrics.entropy).toBeCloseTo(0.5, 15);
  });

  it("leave unscored samples out of every mean, and count them", () => {
    const metrics = metricsOf([...group("a", [accept(), unscored("starved"), unscored("starved")]), ...group("b", [wrong, accept(), wrong])], {
      k: [1, 2],
      seed: 1,
    });
    expect(estimateOf(metrics, "avg")!.value).toBeCloseTo((1 + 1 / 3) / 2, 15);
    expect(metrics).toMatchObject({ samples: 6, scored: 4, unscored: 2, reasons: { starved: 2, wrong: 2 } });
    // Problem a has one scored sample: too few for pass@2.
    expect(estimateOf(metrics, "pass", 2)).toMatchObject({ value: 1 - 1 / 3, problems: 1, leftOut: 1, n: { min: 3, max: 3 } });
  });

  it("have no value, rather than 0, where nothing was scored", () => {
    const metrics = metricsOf(group("a", [unscored("starved")]), { k: [1], seed: 1 });
    expect(estimateOf(metrics, "avg")).toMatchObject({ value: null, interval: null, problems: 0, leftOut: 1 });
    expect(metricsOf([], { k: [1], seed: 1 }).estimates[0]).toMatchObject({ value: null });
  });

  it("count partial scores in avg, and only acceptance in pass and maj", () => {
    const metrics = metricsOf(group("a", [partial(0.5), accept()]), { k: [1], seed: 1 });
    expect(estimateOf(metrics, "avg")!.value).toBeCloseTo(0.75, 15);
    expect(estimateOf(metrics, "pass", 1)!.value).toBeCloseTo(0.5, 15);
  });

  it("have Wilson's interval for one sample a problem, else the bootstrap's", () => {
    const single = metricsOf(
      ["a", "b", "c", "d"].flatMap((key) => group(key, [key === "a" ? accept() : wrong])),
      { k: [1], seed: 1 },
    );
    expect(estimateOf(single, "pass", 1)!.interval).toEqual(wilson(1, 4));
    const several = metricsOf(
      ["a", "b", "c", "d"].flatMap((key) => group(key, [key === "a" ? accept() : wrong, wrong])),
      { k: [1], seed: 1 },
    );
    expect(estimateOf(several, "pass", 1)!.interval!.by).toBe("bootstrap");
  });
});

describe("votes", () => {
  const texts = (...all: readonly string[]) => all.map((text, member) => ({ ...sample("a", member, wrong), text }));

  it("fall into the classes of the verifier's extract and same; without an answer there is none", () => {
    const verifier = {
      extract: (text: string) => /\d+/.exec(text)?.[0],
      same: (a: string, b: string) => Number(a) === Number(b),
    };
    const votes = voted(texts("it is 7", "none", "07", "8"), verifier);
    expect(votes.map(({ vote }) => vote)).toEqual([0, null, 0, 1]);
    expect(votes.map(({ answer }) => answer)).toEqual(["7", null, "07", "8"]);
  });

  it("are for whole texts where the verifier extracts nothing", () => {
    expect(voted(texts("a", "b", "a"), {}).map(({ vote }) => vote)).toEqual([0, 1, 0]);
  });

  it("decide maj@k: the right answer is given by two of five, the others differ", () => {
    const answers = ["4", "4", "5", "6", "7"];
    const judged = texts(...answers).map((one) => ({ ...one, verdict: one.text === "4" ? accept() : wrong }));
    const metrics = metricsOf(voted(judged, {}), { k: [1, 5], seed: 1 });
    expect(estimateOf(metrics, "maj", 5)!.value).toBe(1);
    expect(estimateOf(metrics, "pass", 1)!.value).toBeCloseTo(0.4, 15);
  });
});
