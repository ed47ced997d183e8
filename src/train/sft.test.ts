import { describe, expect, it } from "vitest";
import { TableEngine } from "../engine/table/engine.js";
import { type Example, epochs, type SftStep, sft } from "./sft.js";

const example = (context: number[], response: number[]): Example => ({ context: Int32Array.from(context), response: Int32Array.from(response) });
const flat = { kind: "table", vocabulary: 4, order: 1, init: 0, maxTokens: 16 };

async function engine(): Promise<TableEngine> {
  const table = new TableEngine();
  await table.weights.load({ role: "policy", source: { from: "config", config: flat, seed: 1 }, trainable: true });
  return table;
}

describe("supervised training", () => {
  it("starts a flat table at log 4 a token and learns what follows what", async () => {
    const table = await engine();
    const seen: SftStep[] = [];
    const batch = () => [example([0], [1, 2, 3]), example([0], [1])];
    const reports = await sft(table, { batch, steps: 60, schedule: { kind: "constant", rate: 0.2 }, onStep: (step) => seen.push(step) });
    expect(reports).toEqual(seen);
    expect(reports[0].loss).toBeCloseTo(Math.log(4), 12);
    expect(reports[0].tokens).toBe(4);
    expect(reports.at(-1)!.loss).toBeLessThan(0.05);
  });

  it("weighs every response token alike, whatever the length of its example, and no prompt token", async () => {
    // By hand: four tokens, each with derivative −1/4.
    const sgd = await engine();
    const { handle, scores } = await sgd.forward(
      [example([0], [1, 2, 3]), example([0], [2])].map(({ context, response }) => ({
        context: { ids: context, label: "plain" },
        response,
        weights: { role: "policy" },
        temperature: 1,
      })),
    );
    await sgd.backward(
      handle,
      scores.map(({ logp }) => ({ dLogp: new Float64Array(logp.length).fill(-1 / 4) })),
      "role:policy",
    );
    const { gradNorm } = await sgd.step({ set: "role:policy", update: { rule: "sgd", rate: 0 } });
    const [report] = await sft(await engine(), {
      batch: () => [example([0], [1, 2, 3]), example([0], [2])],
      steps: 1,
      schedule: { kind: "constant", rate: 0 },
    });
    expect(report.gradNorm).toBeCloseTo(gradNorm, 14);
  });

  it("goes through all examples in each epoch, in an order of its own that the seed decides", () => {
    const all = Array.from({ length: 7 }, (_, i) => example([0], [i]));
    const names = (batch: (step: number) => Example[]) => Array.from({ length: 7 }, (_, step) => batch(step).map(({ response }) => response[0])).flat();
    const drawn = names(epochs(all, 2, 5));
    expect([...drawn.slice(0, 7)].sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect([...drawn.slice(7)].sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(drawn.slice(0, 7)).not.toEqual(drawn.slice(7));
    expect(names(epochs(all, 2, 5))).toEqual(drawn);
    expect(names(epochs(all, 2, 6))).not.toEqual(drawn);
  });

  it("refuses no examples and batches without a response token", async () => {
    expect(() => epochs([], 2, 0)).toThrow(/sft data: there are no examples; give at least one/);
    const empty = sft(await engine(), { batch: () => [example([0], [])], steps: 1, schedule: { kind: "constant", rate: 1 } });
    await expect(empty).rejects.toThrow(/sft step 1: its examples have no response token/);
  });

  it("ends between steps when it is told to, with what was trained kept", async () => {
    const table = await engine();
    const stop = new AbortController();
    const running = sft(table, {
      batch: () => [example([0], [1])],
      steps: 100,
      schedule: { kind: "constant", rate: 0.1 },
      signal: stop.signal,
      onStep: ({ step }) => step === 3 && stop.abort(),
    });
    expect(await running).toHaveLength(3);
    const [score] = await table.score([
      { context: { ids: Int32Array.of(0), label: "plain" }, response: Int32Array.of(1), weights: { role: "policy" }, temperature: 1 },
    ]);
    expect(score.weights).toBe("policy@3");
  });
});
