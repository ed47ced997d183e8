import { describe, expect, it } from "vitest";
import { type Demonstration, defineDemonstration } from "./demonstration.js";
import { gspo } from "./gspo/gspo.js";

/** The example of CONTRIBUTING.md, shortened. */
const example: Demonstration = {
  paper: "P06 HISPO, arXiv 2609.15471",
  method: "gspo",
  testbed: "chains",
  shared: { model: "starters/chain-100k", task: { name: "chain", options: { modulus: 7 } }, steps: 100, lr: 3e-4, minibatches: 4 },
  arms: { grpo: {}, gspo: { method: gspo }, narrow: { method: { module: gspo, options: { clip_high: 1e-4 } } } },
  metrics: {
    "pass@8": { kind: "pass", k: 8, samples: 16, problems: 300 },
    "clipped tokens": { kind: "training", metric: "clip_high", last: 20 },
  },
  claims: { coverage: { kind: "above", metric: "pass@8", arm: "gspo", than: "grpo" } },
  quick: { options: { steps: 4 }, heldout: { problems: 20 } },
  minutes: 20,
};

describe("defineDemonstration", () => {
  it("gives a demonstration back that names what it has", () => {
    expect(defineDemonstration(example)).toBe(example);
  });

  it("refuses claims and sabotage that name what is not there, with the nearest name", () => {
    const claimed = (claim: object) => () => defineDemonstration({ ...example, claims: { it: { ...example.claims.coverage, ...claim } as never } });
    expect(claimed({ metric: "pass@9" })).toThrow('claim it names the metric "pass@9"; did you mean "pass@8"?');
    expect(claimed({ arm: "gsp" })).toThrow('claim it names the arm "gsp"; did you mean "gspo"?');
    expect(claimed({ than: "rloo" })).toThrow('names the arm "rloo"');
    expect(() => defineDemonstration({ ...example, claims: {} })).toThrow("it claims nothing");
    const sabotage = { about: "no clip", stands: "gspo", arm: {}, unshown: ["coverages"] };
    expect(() => defineDemonstration({ ...example, sabotage })).toThrow('did you mean "coverage"?');
  });

  it("refuses to compare what a training run does not return", () => {
    const metrics = { ...example.metrics, "pass@8": { kind: "returned" as const } };
    expect(() => defineDemonstration({ ...example, metrics })).toThrow("compares pass@8, which the training run gspo does not return");
    expect(() => defineDemonstration({ ...example, metrics, arms: { grpo: { run: async () => ({}) }, gspo: { run: async () => ({}) } } })).not.toThrow();
  });
});
