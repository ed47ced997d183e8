/** The gradient of the embedding table where many places add to one row: threads must not lose any of them. */
import { expect, it } from "vitest";
import { plainContext } from "../../core/problem.js";
import type { Derivatives, Sequence, TensorValue } from "../contract.js";
import { OnnxEngine } from "./engine.js";
import { gradientOf, randomDerivatives, randomIds, randomModel, type Shape, sameBytes } from "./test-engine.js";

const shape: Shape = { layers: 1, width: 128, heads: 4, kvHeads: 2, mlp: 64, vocabulary: 61 };
const embedding = "model.embed_tokens.weight";
const common = 7;
const places = 48;

/** 8 sequences in which every second token is the common one. */
const sequences = Array.from({ length: 8 }, (_, s): Sequence => {
  const ids = randomIds(places, shape.vocabulary, s).map((id, i) => (i % 2 === s % 2 ? common : id));
  return { context: plainContext(ids.slice(0, 1)), response: ids.slice(1), weights: { role: "policy" }, temperature: 1 };
});
const derivatives: Derivatives[] = randomDerivatives(sequences, 9);

async function withModel<T>(threads: number, tied: boolean, use: (engine: OnnxEngine) => Promise<T>): Promise<T> {
  const engine = await OnnxEngine.create({ threads });
  try {
    await engine.weights.load({ role: "policy", source: randomModel({ ...shape, tied }, 21), trainable: true });
    return await use(engine);
  } finally {
    await engine.close();
  }
}

/** The gradient of each place's input embedding by one thread, summed by token in float64. */
const summedInputs = (): Promise<Float64Array> =>
  withModel(1, false, async (engine) => {
    const { handle } = await engine.forward(sequences);
    const { inputs = [] } = await engine.backward(handle, derivatives, "inputs");
    const table = new Float64Array(shape.vocabulary * shape.width);
    sequences.forEach(({ context, response }, s) => {
      [...context.ids, ...response].forEach((id, at) => {
        for (let i = 0; i < shape.width; i++) table[id * shape.width + i] += inputs[s][at * shape.width + i];
      });
    });
    return table;
  });

const ofOneThread = (): Promise<Float64Array> =>
  withModel(1, true, async (engine) => {
    const gradient = await gradientOf(engine, sequences, derivatives);
    return (gradient.find(({ name }) => name === embedding) as TensorValue).data;
  });

const cases = [
  { tied: false, runs: 100, reference: summedInputs, of: "float64 sums over places" },
  { tied: true, runs: 20, reference: ofOneThread, of: "one thread's, head included," },
];

it.each(cases)("with two threads equals $of in $runs of $runs runs, bit for bit the same", async ({ tied, runs, reference }) => {
  const expected = await reference();
  const largest = Math.max(...expected.map(Math.abs));
  const row = Math.max(...expected.subarray(common * shape.width, (common + 1) * shape.width).map(Math.abs));
  expect(row).toBeGreaterThan(largest / 100);
  await withModel(2, tied, async (engine) => {
    let first: TensorValue[] | undefined;
    for (let run = 0; run < runs; run++) {
      const gradient = await gradientOf(engine, sequences, derivatives);
      first ??= gradient;
      const { data } = gradient.find(({ name }) => name === embedding) as TensorValue;
      const worst = expected.reduce((most, x, i) => Math.max(most, Math.abs(x - data[i])), 0);
      // Float32 sums over 192 places: rounding is below 1e-5 of the largest entry, a lost place is about 1e-2 of it.
      expect(worst / largest, `run ${run}`).toBeLessThan(2e-5);
      expect(sameBytes(gradient, first), `run ${run}`).toBe(true);
    }
  });
});
