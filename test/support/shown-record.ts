/** A record of a reproduction as the view shows it. */
import type { ShownRecord } from "../../src/view/shapes.js";

export function recordOf(id: string): ShownRecord {
  const curve = (slope: number) => [0, 10, 20, 30].map((step) => ({ step, mean: 0.2 + slope * step, low: 0.15 + slope * step, high: 0.25 + slope * step }));
  return {
    id,
    paper: "A method that helps a little",
    method: "ours",
    testbed: "Chains of operations modulo 11, a policy of 100,000 parameters.",
    seeds: [0, 1, 2, 3, 4],
    outcome: "shown",
    claims: [
      {
        claim: "better",
        statement: "accuracy: ours - grpo > 0",
        about: "held-out answers that are right",
        mean: 0.06,
        interval: { low: 0.02, high: 0.1 },
        values: [0.03, 0.08, 0.05, 0.09, 0.05],
        outcome: "shown",
      },
    ],
    arms: [
      {
        arm: "ours",
        about: "the method",
        metrics: { accuracy: { mean: 0.62, interval: { low: 0.58, high: 0.66 }, seeds: [0.6, 0.62, 0.64, 0.63, 0.61] } },
        curve: curve(0.014),
      },
      { arm: "grpo", metrics: { accuracy: { mean: 0.56, interval: { low: 0.52, high: 0.6 }, seeds: [0.57, 0.54, 0.59, 0.54, 0.56] } }, curve: curve(0.012) },
    ],
    failed: [],
    differences: ["a smaller model"],
    commit: "0123456789abcdef0123",
    date: "2026-12-03",
    minutes: 31,
    sabotage: { about: "its key line neutralised", outcomes: ["not shown", "not shown"] },
    earlier: [{ commit: "fedcba9876543210", date: "2026-12-01", seeds: 5, outcome: "not shown" }],
    remark: "",
  };
}
