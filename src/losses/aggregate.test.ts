import { describe, expect, it } from "vitest";
import { batch, group, row } from "../../test/support/batch.js";
import { aggregations, aggregator, type TokenMask } from "./aggregate.js";

const rowOf = (member: number, tokens: number) => row("p", member, { old: new Array(tokens).fill(-1) });
const b = batch(group("p", [rowOf(0, 3), rowOf(1, 2), rowOf(2, 2)]));
const mask = (...tokens: number[][]): TokenMask => ({ rows: new Uint8Array(tokens.length).fill(1), tokens: tokens.map((t) => Uint8Array.from(t)) });
const m = mask([1, 1, 0], [1, 1], [1, 0]); // |y| = 2, 2, 1; N = 3

describe("aggregation weights, by hand", () => {
  it.each([
    [
      "token-mean",
      1,
      [
        [1 / 5, 1 / 5, 0],
        [1 / 5, 1 / 5],
        [1 / 5, 0],
      ],
    ],
    [
      "seq-mean-token-mean",
      1,
      [
        [1 / 6, 1 / 6, 0],
        [1 / 6, 1 / 6],
        [1 / 3, 0],
      ],
    ],
    [
      "seq-mean-token-sum",
      1,
      [
        [1 / 3, 1 / 3, 0],
        [1 / 3, 1 / 3],
        [1 / 3, 0],
      ],
    ],
    [
      "seq-mean-token-sum",
      8,
      [
        [1 / 24, 1 / 24, 0],
        [1 / 24, 1 / 24],
        [1 / 24, 0],
      ],
    ],
    [
      "token-sum",
      4,
      [
        [1 / 4, 1 / 4, 0],
        [1 / 4, 1 / 4],
        [1 / 4, 0],
      ],
    ],
  ] as const)("%s with constant %d", (name, constant, expected) => {
    expect(aggregator(name, constant)(b, m).map((w) => [...w])).toEqual(expected);
  });

  it("a row that does not count leaves N; one without a trained token stays in it", () => {
    const out = aggregator("seq-mean-token-mean")(b, { rows: Uint8Array.from([1, 0, 1]), tokens: m.tokens });
    expect(out.map((w) => [...w])).toEqual([
      [1 / 4, 1 / 4, 0],
      [0, 0],
      [1 / 2, 0],
    ]);
    const masked = aggregator("seq-mean-token-mean")(b, mask([1, 1, 0], [0, 0], [1, 0]));
    expect(masked.map((w) => [...w])).toEqual([
      [1 / 6, 1 / 6, 0],
      [0, 0],
      [1 / 3, 0],
    ]);
  });

  it.each(aggregations)("%s: an empty mask weighs exactly 0", (name) => {
    expect(
      aggregator(name)(b, mask([0, 0, 0], [0, 0], [0, 0]))
        .flatMap((w) => [...w])
        .every((w) => w === 0),
    ).toBe(true);
  });

  it("kinds are normalised apart and a group's weight multiplies its tokens", () => {
    const two = batch(group("p", [rowOf(0, 2)]), group("q", [row("q", 0, { old: [-1, -1] })], "reflection", 0.5));
    expect(aggregator("token-mean")(two, mask([1, 1], [1, 1])).map((w) => [...w])).toEqual([
      [0.5, 0.5],
      [0.25, 0.25],
    ]);
  });

  it("trajectories that are not trained are no rows", () => {
    const withAux = batch(group("p", [row("p", 0, { old: [-1], purpose: "aux" }), rowOf(1, 2)]));
    expect(aggregator("token-mean")(withAux, mask([1, 1])).map((w) => [...w])).toEqual([[0.5, 0.5]]);
  });

  it("refuses a constant that divides by nothing", () => {
    expect(() => aggregator("token-sum", 0)).toThrow("aggregation constant: it is 0; give a number above 0");
  });
});
