/** A model of a million parameters learns random sequences by heart, and to the same bytes each time. */
import { describe, expect, it } from "vitest";
import { type SftStep, sft } from "../../train/sft.js";
import type { Engine, TensorValue } from "../contract.js";
import { startOnnx } from "./start.js";
import { randomIds, randomModel, readWeights, type Shape, sameBytes } from "./test-engine.js";

const shape: Shape = { layers: 4, width: 128, heads: 4, kvHeads: 4, mlp: 512, vocabulary: 64 };
/** 32 sequences of 24 random tokens, told apart by their prompts. */
const examples = Array.from({ length: 32 }, (_, i) => {
  const ids = randomIds(28, shape.vocabulary, i);
  return { context: ids.slice(0, 4), response: ids.slice(4) };
});

async function overfit(workers: number, seed: number, steps: number): Promise<{ reports: SftStep[]; weights: TensorValue[] }> {
  const engine: Engine = await startOnnx({ workers, engine: { threads: 1 } });
  try {
    const { parameters } = await engine.weights.load({ role: "policy", source: randomModel(shape, seed, 0.02), trainable: true });
    expect(parameters).toBeGreaterThan(1e6);
    const reports = await sft(engine, { batch: () => examples, steps, schedule: { kind: "linear", rate: 3e-3, steps, warmup: 10 } });
    return { reports, weights: await readWeights(engine) };
  } finally {
    await engine.close();
  }
}

describe.each([1, 2])("a model in %i engine processes", (workers) => {
  it("overfits 32 sequences to better than -0.05 a token, to the same bytes twice", async () => {
    const [first, second] = [await overfit(workers, 1, 60), await overfit(workers, 1, 60)];
    expect((first.reports.at(-1) as SftStep).loss).toBeLessThan(0.05);
    expect(first.reports[0].loss).toBeGreaterThan(4);
    expect(second.reports).toEqual(first.reports);
    expect(sameBytes(first.weights, second.weights)).toBe(true);
    expect((await overfit(workers, 2, 1)).reports[0].loss).not.toBe(first.reports[0].loss);
  });
});
