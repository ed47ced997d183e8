import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import type { Json } from "../../core/json.js";
import { reader } from "./fields.js";
import { anglesOf, ropeFields, ropeOf } from "./rope.js";

const read = (file: string): { readonly [key: string]: Json } => JSON.parse(readFileSync(fixture("models", "llama-rope", file), "utf8"));

/** The frequencies that a plain float64 transformer used for a sequence of the fixtures. */
function expected(kind: string, sequence: number): { readonly frequencies: number[]; readonly scale: number } {
  const { rope } = read(`expected.${kind}.json`) as unknown as { rope: { inverse_frequencies: number[][]; factor_on_cos_and_sin: number[] } };
  return { frequencies: rope.inverse_frequencies[sequence] as number[], scale: rope.factor_on_cos_and_sin[sequence] as number };
}

/** From config.json's fields with these rotary parameters. */
const rope = (parameters: { readonly [key: string]: Json }, max = 256) => ropeOf(reader({ max_position_embeddings: max, rope_parameters: parameters }, "c"));

describe("frequencies", () => {
  // Of dynamic the sequence that is shorter than the base length of 16.
  it.each([
    ["default", 0],
    ["linear", 0],
    ["dynamic", 1],
    ["yarn", 0],
    ["yarn-untruncated", 0],
    ["llama3", 0],
  ])("of %s are those of the fixtures", (kind, sequence) => {
    const { frequencies, scale } = anglesOf({ headDim: 16, ...ropeOf(reader(read(`configs/${kind}.json`), "c")) });
    const want = expected(kind, sequence);
    expect(frequencies.length).toBe(want.frequencies.length);
    for (const [i, f] of want.frequencies.entries()) expect(Math.abs(frequencies[i] / f - 1)).toBeLessThan(1e-14);
    expect(scale).toBeCloseTo(want.scale, 14);
  });

  it("of yarn have the magnitude 0.1 ln s + 1, or a quotient of such where two are given, or the one given", () => {
    const yarn = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 64 };
    const scale = (more: { readonly [key: string]: Json }) => anglesOf({ headDim: 16, ...rope({ ...yarn, ...more }) }).scale;
    expect(scale({})).toBeCloseTo(0.1 * Math.log(4) + 1, 15);
    expect(scale({ mscale: 1, mscale_all_dim: 1 })).toBe(1);
    expect(scale({ mscale: 2, mscale_all_dim: 1 })).toBeCloseTo((0.2 * Math.log(4) + 1) / (0.1 * Math.log(4) + 1), 15);
    expect(scale({ attention_factor: 1.5 })).toBe(1.5);
  });

  it("of a factor 1 are the default's", () => {
    const plain = anglesOf({ headDim: 16, ropeTheta: 10000, rope: { kind: "default" } });
    for (const rope_type of ["linear", "yarn", "llama3"]) {
      const { frequencies, scale } = anglesOf({ headDim: 16, ...rope({ rope_type, factor: 1, low_freq_factor: 1, high_freq_factor: 4 }) });
      expect(scale).toBe(1);
      for (const [i, f] of plain.frequencies.entries()) expect(Math.abs(frequencies[i] / f - 1)).toBeLessThan(1e-14);
    }
  });
});

describe("reading", () => {
  it.each<[string, { readonly [key: string]: Json }, RegExp]>([
    ["an unknown kind", { rope_type: "su" }, /c, rope_parameters: the rotary embedding "su" is not known; use a model with one of default, linear/],
    ["a factor that is missing", { rope_type: "linear" }, /factor is missing/],
    ["a factor below 1", { rope_type: "dynamic", factor: 0.5 }, /factor is 0.5/],
    [
      "frequencies in the wrong order",
      { rope_type: "llama3", factor: 8, low_freq_factor: 4, high_freq_factor: 1 },
      /high_freq_factor 1 is not above low_freq_factor 4/,
    ],
    ["a flag that is none", { rope_type: "yarn", factor: 2, truncate: 1 }, /truncate is 1/],
  ])("refuses %s", (_what, parameters, says) => {
    expect(() => rope(parameters)).toThrow(says);
  });

  it("takes the model's length where no original one is given", () => {
    expect(rope({ rope_type: "yarn", factor: 2 }, 77).rope).toMatchObject({ original: 77 });
  });

  it.each(["linear", "dynamic", "yarn", "yarn-untruncated", "llama3"])("gives back what was written of %s", (kind) => {
    const config = reader(read(`configs/${kind}.json`), "c");
    const first = ropeOf(config);
    expect(ropeOf(reader({ ...config.fields, rope_parameters: null, ...ropeFields(first) }, "d"))).toEqual(first);
  });
});
