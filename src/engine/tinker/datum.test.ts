import { describe, expect, it } from "vitest";
import { plainContext } from "../../core/problem.js";
import type { Sequence } from "../contract.js";
import { chunksOf, forwardData, summingFactor, trainData } from "./datum.js";
import { decodePass as fromJson } from "./json.js";
import { encodePass } from "./model.js";
import { messages } from "./proto.js";
import type { Datum, Dialect } from "./wire.js";

const sequence: Sequence = { context: plainContext([5, 6, 7]), response: Int32Array.of(8, 9), weights: { role: "policy" }, temperature: 1 };

/** What a server makes of it: by sequence sum(w l) / sum(w), over sequences the mean; or the sum of all. */
function loss(data: readonly Datum[], reduction: "sum" | "sequence-mean-then-batch-mean", ratio: number): number {
  const parts = data.map(({ weight, policy }) => {
    const total = policy!.advantages.reduce((sum, a) => sum - weight * ratio * a, 0);
    return reduction === "sum" ? total : total / (weight * policy!.advantages.length);
  });
  const sum = parts.reduce((a, b) => a + b, 0);
  return reduction === "sum" ? sum : sum / data.length;
}

const other: Sequence = { ...sequence, context: plainContext([70_000]), response: Int32Array.of(-1, 3, 2 ** 31 - 1) };

/** Sequences as a server reads them. */
function wired(dialect: Dialect, data: readonly Datum[]): { tokens: number[]; inputs: { [name: string]: number[] } }[] {
  const { body } = encodePass(dialect, { model: "m", seq: 1, data, loss: "ppo", config: { a: 0.5 }, forwardOnly: false });
  if (dialect === "json") {
    const read = JSON.parse(body as string) as {
      model_id: string;
      seq_id: number;
      forward_backward_input: {
        loss_fn: string;
        loss_fn_config: object;
        data: { model_input: { chunks: { tokens: number[] }[] }; loss_fn_inputs: { [name: string]: { data: number[]; shape: number[] } } }[];
      };
    };
    const { loss_fn, loss_fn_config, data: sent } = read.forward_backward_input;
    expect([read.model_id, read.seq_id, loss_fn, loss_fn_config]).toEqual(["m", 1, "ppo", { a: 0.5 }]);
    return sent.map(({ model_input, loss_fn_inputs }) => ({
      tokens: model_input.chunks[0].tokens,
      inputs: Object.fromEntries(
        Object.entries(loss_fn_inputs).map(([name, tensor]) => {
          expect(tensor.shape).toEqual([tensor.data.length]);
          return [name, tensor.data];
        }),
      ),
    }));
  }
  const read = messages.request.toObject(messages.request.decode(body as Uint8Array), { longs: Number }) as {
    model_id: string;
    seq_id: number;
    loss_fn: string;
    loss_fn_config: object;
    data: { model_input: { encoded_text: { tokens: Buffer } }[]; loss_fn_inputs: { [name: string]: { dense: Buffer; dtype: number; shape: number[] } } }[];
  };
  expect([read.model_id, read.seq_id, read.loss_fn, read.loss_fn_config]).toEqual(["m", 1, "ppo", { a: 0.5 }]);
  return read.data.map(({ model_input, loss_fn_inputs }) => {
    const { tokens } = model_input[0].encoded_text;
    return {
      tokens: Array.from({ length: tokens.length / 4 }, (_, i) => tokens.readInt32LE(4 * i)),
      inputs: Object.fromEntries(
        Object.entries(loss_fn_inputs).map(([name, { dense, dtype, shape }]) => {
          const values = Array.from({ length: shape[0] }, (_, i) => (dtype === 2 ? Number(dense.readBigInt64LE(8 * i)) : dense.readFloatLE(4 * i)));
          expect(dense.length).toBe(shape[0] * (dtype === 2 ? 8 : 4));
          return [name, values];
        }),
      ),
    };
  });
}

describe.each(["json", "protobuf"] as const)("sequences in %s", (dialect) => {
  it("are shifted by one: position i scores token i + 1, and only the response counts", () => {
    expect(wired(dialect, forwardData([sequence, other]))).toEqual([
      { tokens: [5, 6, 7, 8], inputs: { target_tokens: [6, 7, 8, 9], weights: [0, 0, 1, 1] } },
      { tokens: [70_000, -1, 3], inputs: { target_tokens: [-1, 3, 2 ** 31 - 1], weights: [1, 1, 1] } },
    ]);
  });

  it("carry log-probs and coefficients at the response's positions", () => {
    const [datum, second] = forwardData([sequence, other]);
    const data = trainData(
      [
        { datum, logp: [-1.5, -2], dLogp: [-0.5, 1] },
        { datum: second, logp: [-3, -0.25, 0], dLogp: [3, 0.5, 2] },
      ],
      "sum",
    );
    expect(wired(dialect, data).map(({ inputs }) => inputs)).toEqual([
      { target_tokens: [6, 7, 8, 9], weights: [0, 0, 1, 1], logprobs: [0, 0, -1.5, -2], advantages: [0, 0, 0.5, -1] },
      { target_tokens: [-1, 3, 2 ** 31 - 1], weights: [1, 1, 1], logprobs: [-3, -0.25, 0], advantages: [-3, -0.5, -2] },
    ]);
  });

  it("of a thousand tokens and more are as whole as short ones", () => {
    for (const length of [31, 32, 130, 16_384, 40_000]) {
      const response = Int32Array.from({ length }, (_, i) => i);
      const [read] = wired(dialect, forwardData([{ ...sequence, response }]));
      expect(read.tokens).toEqual([5, 6, 7, ...response.subarray(0, -1)]);
      expect(read.inputs.weights).toEqual([0, 0, ...Array.from(response, () => 1)]);
    }
  });
});

it("a result of the pass is read at the response's positions, and refused where it is of another shape", () => {
  const data = forwardData([sequence, other]);
  const result = (...each: unknown[]) => ({ loss_fn_outputs: each.map((values) => ({ logprobs: { data: values } })) });
  expect(fromJson(result([-1, -2, -3, null], [-4, -5, -6]), data)!.map((each) => [...each])).toEqual([
    [-3, Number.NaN],
    [-4, -5, -6],
  ]);
  for (const wrong of [result([-1, -2, -3, -4]), result([-1, -2, -3, -4], [-5, -6]), result([-1, -2, -3, -4], [-4, -5, -6], [-1]), result(1, 2), {}, null, "x"])
    expect(fromJson(wrong, data)).toBeUndefined();
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
      const whole = forwardData(all.map(({ of }) => of));
      const data = trainData(
        all.map(({ coefficients }, i) => ({ datum: whole[i], logp: coefficients.map(() => -1), dLogp: coefficients.map((x) => -x) })),
        reduction,
      );
      expect(loss(data, reduction, 1.25)).toBeCloseTo(expected, 5);
    }
  });
});

describe("requests", () => {
  it("hold at most 1,024 sequences and some megabytes, in order, and no sequence is left out or split", () => {
    const datum = (length: number): Datum => ({ ids: new Int32Array(length + 1), from: 0, weight: 1 });
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
