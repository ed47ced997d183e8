import { describe, expect, it } from "vitest";
import { randomKey, Stream } from "../core/random.js";
import { pairedInterval } from "../evaluate/paired.js";
import type { Claim } from "../methods/demonstration.js";
import { judged, type Results, statementOf } from "./judge.js";

const resultsOf = (a: readonly (number | undefined)[], b: readonly (number | undefined)[]): Results =>
  a.map((value, seed) => ({ seed, arms: { a: { m: value }, b: { m: b[seed] } } }));
const outcomeOf = (claim: Claim, a: readonly number[], b: readonly number[] = a.map(() => 0)) => judged({ it: claim }, resultsOf(a, b)).claims[0];
const between = { metric: "m", arm: "a", than: "b" };

// Differences 0.1, 0.2, 0.3, 0.4, 0.5: mean 0.3, deviation sqrt(0.025) = 0.158114, standard error 0.0707107, t(4) = 2.776445, half width 0.196324.
const rising = [0.1, 0.2, 0.3, 0.4, 0.5];
const [low, high] = [0.103676, 0.496324];

describe("a claim of five pairs", () => {
  it("has the interval of Student's t by hand where that is the wider one", () => {
    const { mean, interval, values } = outcomeOf({ kind: "above", ...between }, rising);
    expect(mean).toBeCloseTo(0.3, 12);
    expect(interval).toMatchObject({ by: "t", n: 5 });
    expect(interval?.low).toBeCloseTo(low, 5);
    expect(interval?.high).toBeCloseTo(high, 5);
    expect(values).toEqual(rising);
  });

  it("is never narrower than the bootstrap over all 3,125 resamplings", () => {
    const means: number[] = [];
    for (let i = 0; i < 5 ** 5; i++) means.push([0, 1, 2, 3, 4].reduce((sum, place) => sum + (rising[Math.floor(i / 5 ** place) % 5] as number), 0) / 5);
    means.sort((a, b) => a - b);
    // The 79th and 3,047th of 3,125 ordered means are 0.18 and 0.42.
    expect([means[78], means[3046]].map((mean) => Number(mean?.toFixed(6)))).toEqual([0.18, 0.42]);
    const { interval } = outcomeOf({ kind: "above", ...between }, rising);
    expect((interval?.low as number) < 0.18 && (interval?.high as number) > 0.42).toBe(true);
  });

  it("is shown, not shown or reversed by where the interval lies", () => {
    const outcome = (claim: Partial<Claim> & { kind: Claim["kind"] }, sign = 1) =>
      outcomeOf(
        { ...between, ...claim } as Claim,
        rising.map((value) => sign * value),
      ).outcome;
    expect(outcome({ kind: "above" })).toBe("shown");
    expect(outcome({ kind: "above" }, -1)).toBe("reversed");
    expect(outcome({ kind: "below" })).toBe("reversed");
    expect(outcome({ kind: "below" }, -1)).toBe("shown");
    expect(outcome({ kind: "above", margin: 0.1 })).toBe("shown");
    // Better, but by less than claimed: the opposite of the claim it is not.
    expect(outcome({ kind: "above", margin: 0.11 })).toBe("not shown");
    expect(outcome({ kind: "above", margin: 0.6 })).toBe("not shown");
    expect(outcome({ kind: "notBelow", margin: 0.02 })).toBe("shown");
    expect(outcome({ kind: "notBelow", margin: 0.5 }, -1)).toBe("shown");
    expect(outcome({ kind: "notBelow", margin: 0.3 }, -1)).toBe("not shown");
    expect(outcome({ kind: "notBelow", margin: 0.1 }, -1)).toBe("reversed");
    expect(outcome({ kind: "notAbove", margin: 0.5 })).toBe("shown");
    expect(outcome({ kind: "notAbove", margin: 0.1 })).toBe("reversed");
    expect(outcome({ kind: "nullDifference", margin: 0.5 })).toBe("shown");
    expect(outcome({ kind: "nullDifference", margin: 0.3 })).toBe("not shown");
    expect(outcome({ kind: "nullDifference", margin: 0.1 })).toBe("reversed");
  });

  it("about a ratio subtracts it, and is reversed only where the plain difference is, too", () => {
    const falls = [0.5, 0.52, 0.48, 0.51, 0.49];
    const from = [1, 1, 1, 1, 1];
    const ratio = { kind: "atMostRatio", metric: "m", arm: "a", than: "b" } as const;
    // 0.5 - 0.7 = -0.2.
    expect(outcomeOf({ ...ratio, ratio: 0.7 }, falls, from)).toMatchObject({ outcome: "shown", statement: "m: a - 0.7 x b < 0" });
    expect(outcomeOf({ ...ratio, ratio: 0.7 }, falls, from).mean).toBeCloseTo(-0.2, 12);
    expect(outcomeOf({ ...ratio, ratio: 0.4 }, falls, from).outcome).toBe("not shown");
    expect(outcomeOf({ ...ratio, ratio: 0.7 }, from, falls).outcome).toBe("reversed");
    expect(outcomeOf({ ...ratio, kind: "atLeastRatio", ratio: 1.9 }, from, falls).outcome).toBe("shown");
    expect(outcomeOf({ ...ratio, kind: "atLeastRatio", ratio: 3 }, from, falls).outcome).toBe("not shown");
  });

  it("may compare with a number, or compute its own from all arms", () => {
    expect(outcomeOf({ kind: "above", metric: "m", arm: "a", than: 0.05 }, rising)).toMatchObject({ outcome: "shown", statement: "m: a - 0.05 > 0" });
    const of = { kind: "above", than: 0, of: ({ a, b }: Results[number]["arms"]) => (a?.m ?? 0) - 2 * (b?.m ?? 0) } as const;
    expect(outcomeOf(of, rising, rising).outcome).toBe("reversed");
  });
});

describe("the whole", () => {
  const claims = { up: { kind: "above", ...between }, far: { kind: "above", margin: 0.2, ...between } } as const;

  it("is shown where all claims are, reversed where one is", () => {
    expect(judged({ up: claims.up }, resultsOf(rising, [0, 0, 0, 0, 0])).outcome).toBe("shown");
    expect(judged(claims, resultsOf(rising, [0, 0, 0, 0, 0])).outcome).toBe("not shown");
    expect(judged(claims, resultsOf([0, 0, 0, 0, 0], rising)).outcome).toBe("reversed");
  });

  it("leaves out pairs that lack a number, and shows nothing with fewer than two", () => {
    const lacking = judged({ up: claims.up }, resultsOf([0.1, undefined, 0.2], [0, 0, 0])).claims[0];
    expect(lacking).toMatchObject({ interval: { n: 2 }, values: [0.1, null, 0.2] });
    expect(judged({ up: claims.up }, resultsOf([0.1, undefined], [0, 0])).claims[0]).toMatchObject({ mean: 0.1, interval: null, outcome: "not shown" });
    expect(judged({ up: claims.up }, resultsOf([Number.NaN, undefined], [0, 0])).claims[0]?.mean).toBeNull();
  });

  it("has statements that read as formulas", () => {
    expect(statementOf({ kind: "notBelow", margin: 0.01, ...between })).toBe("m: a - b > -0.01");
    expect(statementOf({ kind: "nullDifference", margin: 0.01, ...between })).toBe("|m: a - b| < 0.01");
  });
});

/** Shares of 500 experiments without any effect in which a claim of five pairs comes out shown or reversed. */
function falseOutcomes(draw: (stream: Stream) => number): { shown: number; reversed: number } {
  const shares = { shown: 0, reversed: 0 };
  for (let trial = 0; trial < 500; trial++) {
    const stream = new Stream(randomKey({ seed: trial, purpose: "test/no-effect" }));
    const side = () => Array.from({ length: 5 }, () => draw(stream));
    const { outcome } = outcomeOf({ kind: "above", ...between }, side(), side());
    if (outcome !== "not shown") shares[outcome] += 1 / 500;
  }
  return shares;
}

describe("without any effect, five seeds", () => {
  const uniform = (stream: Stream) => stream.next();
  const normal = (stream: Stream) => Math.sqrt(-2 * Math.log(1 - stream.next())) * Math.cos(2 * Math.PI * stream.next());

  it.each([
    ["normal", normal],
    ["uniform", uniform],
    ["skewed", (stream: Stream) => -Math.log(1 - stream.next())],
    ["right or wrong on 20 problems", (stream: Stream) => Array.from({ length: 20 }, () => Number(stream.next() < 0.4)).reduce((a, b) => a + b, 0) / 20],
  ])("show a difference either way in at most one experiment of twenty: %s numbers", (_, draw) => {
    const { shown, reversed } = falseOutcomes(draw);
    // 5 % and three standard errors of 500 trials.
    expect(shown + reversed).toBeLessThan(0.05 + 3 * Math.sqrt((0.05 * 0.95) / 500));
    expect(shown + reversed).toBeGreaterThan(0.005);
  });

  it("the bootstrap alone would show one far more often, which is why it is not alone", () => {
    let found = 0;
    for (let trial = 0; trial < 300; trial++) {
      const stream = new Stream(randomKey({ seed: trial, purpose: "test/no-effect" }));
      const values = Array.from({ length: 5 }, () => normal(stream));
      const both = pairedInterval(values);
      expect(both?.by).toBe("t");
      const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - values.reduce((a, b) => a + b, 0) / 5) ** 2, 0) / 5);
      // The bootstrap's interval of a mean is about 1.96 of the population's standard errors.
      const mean = values.reduce((a, b) => a + b, 0) / 5;
      if (Math.abs(mean) > (1.96 * deviation) / Math.sqrt(5)) found++;
    }
    expect(found / 300).toBeGreaterThan(0.08);
  });
});
