import { describe, expect, it } from "vitest";
import { type InsightParts, insightOf } from "./insight.js";
import { Series } from "./series.js";
import type { EvaluationPoint, Insight } from "./shapes.js";

/** A run of 40 steps; each number is a constant or goes from one value to another. */
function runOf(numbers: { readonly [name: string]: number | readonly [number, number] }): Series {
  const series = new Series();
  const usual = { reward: [0.2, 0.7] as const, entropy: [1, 0.6] as const, groups_silent: 0.2, truncated: 0, unscored: 0, grad_norm: 0.4, gap_mean: 1e-7 };
  for (let step = 1; step <= 40; step++) {
    const of = (value: number | readonly [number, number]): number =>
      typeof value === "number" ? value : value[0] + ((value[1] - value[0]) * (step - 1)) / 39;
    series.add(
      step,
      Object.entries({ ...usual, ...numbers }).map(([name, value]) => [name, of(value)] as const),
    );
  }
  return series;
}

const evaluation = (step: number, score: number, half = 0.02): EvaluationPoint => ({
  step,
  score,
  problems: 500,
  estimates: [{ name: "avg", k: 1, value: score, interval: { low: score - half, high: score + half } }],
});

function insight(numbers: Parameters<typeof runOf>[0], more: Partial<InsightParts> = {}): Insight {
  return insightOf({ series: runOf(numbers), evaluations: [evaluation(0, 0.2), evaluation(40, 0.6)], config: {}, going: false, ...more });
}

const bad = ({ remarks }: Insight): string[] => remarks.filter(({ level }) => level === "bad").map(({ about }) => about);

describe("whether a run learns", () => {
  it("is said of held-out scores whose intervals lie apart, and of nothing else being wrong", () => {
    const said = insight({});
    expect(said).toMatchObject({ verdict: "learning", headline: "It learns" });
    expect(bad(said)).toEqual([]);
    expect(said.remarks[0]?.text).toBe("Held-out problems: right answers rose from 20 % at step 0 to 60 % at step 40; the intervals lie apart.");
  });

  it("is left open before there is anything to say", () => {
    const series = new Series();
    for (let step = 1; step <= 3; step++)
      series.add(step, [
        ["reward", step / 3],
        ["grad_norm", 0.3],
      ]);
    expect(insightOf({ series, evaluations: [evaluation(0, 0.2)], config: {}, going: true })).toMatchObject({
      verdict: "too early",
      headline: "Too early to say",
    });
  });

  it("is told of a run that ended early with what kept it from learning, and of one that goes on with what to look at", () => {
    const series = new Series();
    for (let step = 1; step <= 3; step++)
      series.add(step, [
        ["groups_silent", 1],
        ["groups.unscored", 1],
        ["unscored", 0.9],
        ["reason.judge-down", 0.9],
      ]);
    const parts = { series, evaluations: [], config: {} };
    expect(insightOf({ ...parts, going: false })).toMatchObject({ verdict: "not learning", headline: "It did not learn, and this is why" });
    expect(insightOf({ ...parts, going: true })).toMatchObject({ verdict: "too early", headline: "Too early to say, but 3 things need a look" });
    const fine = new Series();
    for (let step = 1; step <= 3; step++)
      fine.add(step, [
        ["reward", 0.4],
        ["groups_silent", 0.2],
        ["grad_norm", 0.3],
      ]);
    expect(insightOf({ series: fine, evaluations: [], config: {}, going: false })).toMatchObject({ verdict: "too early", headline: "Too short to say" });
  });

  it("does not wait for evaluations of a run that has ended", () => {
    const learning = (going: boolean): string => insight({}, { evaluations: [], going }).remarks[0]?.text ?? "";
    expect(learning(true)).toMatch(/^No two held-out evaluations yet: /);
    expect(learning(false)).toMatch(/^No held-out evaluation \(--eval-every makes them\): /);
  });

  it("is no where the held-out score falls though the reward rises, with a hint at the verifier", () => {
    const said = insight({}, { evaluations: [evaluation(0, 0.6), evaluation(40, 0.3)] });
    expect(said.verdict).toBe("not learning");
    expect(said.remarks.map(({ text }) => text).join("\n")).toContain("Reward without held-out gain");
  });

  it("rests on the reward alone where intervals overlap or there are no evaluations", () => {
    expect(insight({}, { evaluations: [] }).verdict).toBe("learning");
    expect(insight({ reward: 0.5 }, { evaluations: [evaluation(0, 0.5, 0.2), evaluation(40, 0.52, 0.2)] })).toMatchObject({
      verdict: "not learning",
      headline: "It does not learn so far",
    });
  });
});

describe("why it does not", () => {
  it("names dead groups, with their cause", () => {
    const still = { evaluations: [evaluation(0, 0.02), evaluation(40, 0.02)] };
    const hard = insight({ reward: 0.01, groups_silent: 0.95 }, still);
    expect(hard.headline).toBe("It does not learn, and this is why");
    expect(hard.remarks.find(({ about }) => about === "signal")?.text).toBe(
      "95 % of the groups teach nothing, because nearly all answers are wrong: the problems are too hard, or the verifier does not read what is written.",
    );
    const easy = insight({ reward: 0.97, groups_silent: 0.95 }, still).remarks.find(({ about }) => about === "signal");
    expect(easy).toMatchObject({ level: "note", text: expect.stringContaining("have become too easy") });
  });

  it("names collapse and growth of entropy, but not a policy that has become sure and right", () => {
    expect(bad(insight({ entropy: [0.6, 0], reward: 0.3 }))).toContain("entropy");
    expect(bad(insight({ entropy: [0.6, 0], reward: [0.2, 1.1] }))).not.toContain("entropy");
    expect(bad(insight({ entropy: [0.5, 3] }))).toContain("entropy");
  });

  it("names truncation, verifier faults, one reason for all rejections, the gap, a zero gradient and an end of its own", () => {
    expect(bad(insight({ truncated: 0.6 }))).toEqual(["length"]);
    expect(bad(insight({ unscored: 0.5, "reason.judge lost": 0.5 }))).toEqual(["verifier"]);
    expect(insight({ "verdict.accept": 0, "reason.format": 0.99 }).remarks.find(({ about, level }) => about === "verifier" && level === "bad")?.text).toContain(
      "rejected for one reason (format)",
    );
    expect(bad(insight({ gap_mean: 0.08 }))).toEqual(["gap"]);
    expect(bad(insight({ gap_mean: 0.08 }, { config: { limits: { gap: 10 } } }))).toEqual([]);
    expect(bad(insight({ grad_norm: 0 }))).toEqual(["update"]);
    expect(bad(insight({}, { end: { reason: "no-signal", message: "no signal in 50 batches" } }))).toEqual(["end"]);
    expect(bad(insight({}, { end: { reason: "done", message: "40 steps are done" } }))).toEqual([]);
  });
});
