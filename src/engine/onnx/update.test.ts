import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import initWabt from "wabt";
import { fixture } from "../../../test/paths.js";
import { applyUpdate, inspect, type Job, type Range, type Update } from "./update.js";
import { updateWasm } from "./update-wasm.js";

it("the binary is what update.wat assembles to", async () => {
  const wabt = await initWabt();
  const source = readFileSync(new URL("./update.wat", import.meta.url), "utf8");
  const { buffer } = wabt.parseWat("update.wat", source, { simd: true }).toBinary({});
  expect(updateWasm).toBe(Buffer.from(buffer).toString("base64"));
});

/** The same numbers for everyone who asks. */
const numbers = (length: number, scale: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => scale * Math.sin(1 + i * 12.9898 + seed * 78.233));
const job = (length: number, ranges: Range[], momentum = true): Job => ({
  ranges,
  data: numbers(length, 1, 1),
  grad: numbers(length, 0.1, 2),
  first: momentum ? numbers(length, 0.05, 3) : undefined,
  second: numbers(length, 0.01, 4).map(Math.abs),
});
const copy = (x: Job): Job => ({ ranges: x.ranges, data: x.data.slice(), grad: x.grad.slice(), first: x.first?.slice(), second: x.second?.slice() });
const bits = (x: Float32Array | undefined): Uint32Array => new Uint32Array(x!.slice().buffer);

describe("inspect", () => {
  it("sums squares in float64, whatever the length is a multiple of", () => {
    for (const length of [0, 1, 3, 4, 5, 8191, 8192, 8193, 20_001]) {
      const x = numbers(length, 3, 5);
      const { squares, bad } = inspect(x);
      const exact = x.reduce((sum, value) => sum + value * value, 0);
      expect(Math.abs(squares - exact)).toBeLessThanOrEqual(1e-12 * exact);
      expect(bad).toBe(-1);
    }
  });

  it("does not overflow where float32 squares would, and sees what is lost beside a large number in float32", () => {
    expect(inspect(Float32Array.of(3e38, 1)).squares).toBe(Math.fround(3e38) ** 2 + 1);
    expect(inspect(new Float32Array(4096 * 4).fill(1e-4).fill(1, 0, 1)).squares).toBeCloseTo(1 + (4096 * 4 - 1) * 1e-8, 9);
  });

  it("gives the index of the first number that is not finite", () => {
    for (const [value, at] of [
      [Number.NaN, 0],
      [Number.POSITIVE_INFINITY, 9000],
      [Number.NEGATIVE_INFINITY, 16_386],
    ] as const) {
      const x = numbers(16_387, 1, 1);
      x[at] = value;
      x[16_386] = value;
      expect(inspect(x).bad).toBe(at);
    }
  });
});

describe("AdamW", () => {
  const update: Update = { rule: "adamw", beta1: 0.9, beta2: 0.95, epsilon: 1e-8, t: 3 };

  it("agrees with the formula in float64, on blocks, tails and offsets of all kinds", () => {
    for (const [start, end] of [
      [0, 1],
      [0, 8192],
      [3, 8195],
      [8190, 20_003],
      [5, 5],
    ] as const) {
      const before = job(20_003, [{ start, end, rate: 0.01, decay: 0.1 }]);
      const after = copy(before);
      applyUpdate(after, update, 0.5);
      for (let i = 0; i < 20_003; i++) {
        const inside = i >= start && i < end;
        const g = 0.5 * before.grad[i];
        const m = 0.9 * before.first![i] + 0.1 * g;
        const v = 0.95 * before.second![i] + 0.05 * g * g;
        const w = before.data[i] * (1 - 0.01 * 0.1) - (0.01 * (m / (1 - 0.9 ** 3))) / (Math.sqrt(v / (1 - 0.95 ** 3)) + 1e-8);
        const wanted = inside ? [w, m, v] : [before.data[i], before.first![i], before.second![i]];
        const seen = [after.data[i], after.first![i], after.second![i]];
        // A few roundings of float32 on numbers of the sizes that `job` makes.
        const largest = Math.max(...seen.map((x, k) => Math.abs(x - wanted[k]) / [1, 0.05, 0.01][k]));
        if (!(largest < 4e-7)) throw new Error(`element ${i} is ${seen}, not ${wanted}`);
      }
    }
  });

  it("gives the same bits however a parameter is cut into ranges", () => {
    const whole = job(20_003, [{ start: 0, end: 20_003, rate: 0.01, decay: 0.1 }]);
    const cut = {
      ...copy(whole),
      ranges: [0, 1, 7001, 20_003].slice(0, 3).map((start, i, all) => ({ start, end: all[i + 1] ?? 20_003, rate: 0.01, decay: 0.1 })),
    };
    applyUpdate(whole, update, 1);
    applyUpdate(cut, update, 1);
    expect(bits(cut.data)).toEqual(bits(whole.data));
    expect(bits(cut.second)).toEqual(bits(whole.second));
  });

  it("equals the float64 reference over five steps: ordinary, clipped, zero, tiny, ordinary", () => {
    const reference = JSON.parse(readFileSync(fixture("optim", "adamw.json"), "utf8"));
    for (const name of ["matrix", "bias"]) {
      const length = reference.weight[name].length;
      const decay = name === "bias" ? 0 : reference.weight_decay;
      const x: Job = {
        ranges: [{ start: 0, end: length, rate: reference.lr, decay }],
        data: Float32Array.from(reference.weight[name]),
        grad: new Float32Array(length),
        first: new Float32Array(length),
        second: new Float32Array(length),
      };
      for (const [i, step] of reference.steps.entries()) {
        x.grad.set(step.gradient[name]);
        applyUpdate(x, { rule: "adamw", beta1: reference.beta1, beta2: reference.beta2, epsilon: reference.eps, t: i + 1 }, step.clip_coefficient);
        // Weights of about 1 in float32; beta2 as a float32 moves v by 1.3e-5 of itself.
        for (const [j, w] of step.weight[name].entries()) expect(Math.abs(x.data[j] - w)).toBeLessThan(4e-7);
        for (const [j, m] of step.m[name].entries()) expect(Math.abs(x.first![j] - m)).toBeLessThan(1e-6 * Math.abs(m) + 1e-9);
        for (const [j, v] of step.v[name].entries()) expect(Math.abs(x.second![j] - v)).toBeLessThan(2e-5 * v);
      }
    }
  });

  it("with rate 0 changes no bit of the weights, not even of −0, and still moves the moments", () => {
    const x = job(9000, [{ start: 0, end: 9000, rate: 0, decay: 0.1 }]);
    x.data.fill(-0, 0, 100);
    const before = copy(x);
    applyUpdate(x, update, 1);
    expect(bits(x.data)).toEqual(bits(before.data));
    expect(x.first![5]).toBeCloseTo(0.9 * before.first![5] + 0.1 * before.grad[5], 7);
  });

  it("lets moments without gradient fade to 0 rather than into subnormal numbers", () => {
    const x: Job = {
      ranges: [{ start: 0, end: 4, rate: 1e-3, decay: 0 }],
      data: new Float32Array(4),
      grad: new Float32Array(4),
      first: new Float32Array(4).fill(1.2e-38),
      second: new Float32Array(4).fill(1.2e-38),
    };
    applyUpdate(x, update, 1);
    expect([...x.first!, ...x.second!]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it("leaves weights where no gradient ever fell, also with epsilon 0", () => {
    const x: Job = {
      ranges: [{ start: 0, end: 2, rate: 1, decay: 0 }],
      data: Float32Array.of(3, 4),
      grad: new Float32Array(2),
      first: new Float32Array(2),
      second: new Float32Array(2),
    };
    applyUpdate(x, { ...update, epsilon: 0 }, 1);
    expect(x.data).toEqual(Float32Array.of(3, 4));
  });
});

describe("SGD", () => {
  it("follows the gradient and the decay: 2 − 0.1·(0.5·4 + 0.25·2) = 1.75", () => {
    const x: Job = {
      ranges: [{ start: 1, end: 2, rate: 0.1, decay: 0.25 }],
      data: Float32Array.of(2, 2, 2),
      grad: Float32Array.of(4, 4, 4),
      first: undefined,
      second: undefined,
    };
    applyUpdate(x, { rule: "sgd", momentum: 0 }, 0.5);
    expect(x.data).toEqual(Float32Array.of(2, 1.75, 2));
  });

  it("with momentum 0.5 makes steps of g, 1.5 g, 1.75 g", () => {
    const x: Job = {
      ranges: [{ start: 0, end: 1, rate: 0.25, decay: 0 }],
      data: Float32Array.of(1),
      grad: Float32Array.of(1),
      first: new Float32Array(1),
      second: undefined,
    };
    const seen = [1, 2, 3].map(() => {
      applyUpdate(x, { rule: "sgd", momentum: 0.5 }, 1);
      return x.data[0];
    });
    expect(seen).toEqual([0.75, 0.375, -0.0625]);
  });

  it("with rate 0 changes no bit of the weights", () => {
    for (const momentum of [true, false]) {
      const x = job(10, [{ start: 0, end: 10, rate: 0, decay: 0.1 }], momentum);
      x.data[0] = -0;
      const before = copy(x);
      applyUpdate(x, { rule: "sgd", momentum: 0.9 }, 1);
      expect(bits(x.data)).toEqual(bits(before.data));
    }
  });
});
