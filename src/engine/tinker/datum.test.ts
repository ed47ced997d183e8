import { describe, expect, it } from "vitest";
import { plainContext } from "../../core/problem.js";
import type { Sequence } from "../contract.js";
import { chunksOf, forwardDatum, responseOf, summingFactor, trainDatum } from "./datum.js";
import type { Datum } from "./wire.js";

const sequence: Sequence = { context: plainContext([5, 6, 7]), response: Int32Array.of(8, 9), weights: { role: "policy" }, temperature: 1 };

/** What a server makes of it: by sequence sum(w l) / sum(w), over sequences the mean; or the sum of all. */
function loss(data: readonly Datum[], reduction: "sum" | "sequence-mean-then-batch-mean", ratio: number): number {
  const parts = data.map(({ inputs: { weights = new Float32Array(0), advantages = new Float32Array(0) } }) => {
    const total = weights.reduce((sum, w, i) => sum - w * ratio * advantages[i], 0);
    return reduction === "sum" ? total : total / weights.reduce((a, b) => a + b, 0);
  });
  const sum = parts.reduce((a, b) => a + b, 0);
  return reduction === "sum" ? sum : sum / data.length;
}

describe("sequences of the protocol", () => {
  it("are shifted by one: position i scores token i + 1, and only the response counts", () => {
    const { tokens, inputs } = forwardDatum(sequence);
    expect([[...tokens], [...inputs.target_tokens], [...inputs.weights!]]).toEqual([
      [5, 6, 7, 8],
      [6, 7, 8, 9],
      [0, 0, 1, 1],
    ]);
    expect([...responseOf(Float64Array.of(-1, -2, -3, -4), sequence)]).toEqual([-3, -4]);
  });

  it("carry log-probs and coefficients at the response's positions", () => {
    const { inputs } = trainDatum(sequence, { logprobs: [-1.5, -2], coefficients: [0.5, -1] }, "sum", 3);
    expect([[...inputs.logprobs!], [...inputs.advantages!], [...inputs.weights!]]).toEqual([
      [0, 0, -1.5, -2],
      [0, 0, 0.5, -1],
      [0, 0, 1, 1],
    ]);
  });
});

describe("a server's reduction", () => {
  it("becomes a sum by the factor: 1 on servers that sum, tokens times sequences on those that average twice", () => {
    expect(summingFactor("sum", 5, 8)).toBe(1);
    expect(summingFactor("sequence-mean-then-batch-mean", 5, 8)).toBe(40);
  });

  it("gives the sum over all sequences and tokens, for unequal lengths and coefficients of both signs", () => {
    const long: Sequence = { ...sequence, context: plainContext([1]), response: Int32Array.of(1, 2, 3, 4, 5) };
    const all = [
      { of: sequence, coefficients: [0.5, -1] },
      { of: long, coefficients: [1, 2, -3, 4, 0.25] },
      { of: sequence, coefficients: [0, 7] },
    ];
    const expected = -(0.5 - 1 + 1 + 2 - 3 + 4 + 0.25 + 7) * 1.25;
    for (const reduction of ["sum", "sequence-mean-then-batch-mean"] as const) {
      const data = all.map(({ of, coefficients }) => trainDatum(of, { logprobs: coefficients.map(() => -1), coefficients }, reduction, all.length));
      expect(loss(data, reduction, 1.25)).toBeCloseTo(expected, 5);
    }
  });
});

describe("requests", () => {
  it("hold at most 1,024 sequences and some megabytes, in order, and no sequence is left out or split", () => {
    const datum = (length: number): Datum => ({ tokens: new Int32Array(length), inputs: { target_tokens: new Int32Array(length) } });
    const many = Array.from({ length: 2_500 }, () => datum(4));
    expect(chunksOf(many, "json").map(({ length }) => length)).toEqual([1024, 1024, 452]);
    const long = Array.from({ length: 20 }, (_, i) => datum(20_000 + i));
    for (const dialect of ["json", "protobuf"] as const) {
      const chunks = chunksOf(long, dialect);
      expect(chunks.flat()).toEqual(long);
      expect(chunks.length).toBeGreaterThan(1);
    }
    expect(chunksOf([datum(10_000_000)], "json")).toHaveLength(1);
    expect(chunksOf([], "json")).toEqual([]);
  });
});
