/** Overlap on the onnx engine: no byte depends on what its process does first, nor on where a run was killed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../src/engine/contract.js";
import { startOnnx } from "../src/engine/onnx/start.js";
import { type TrainOptions, train } from "../src/train/train.js";
import { snapshot } from "../test/support/run-writer.js";
import { KilledRuns } from "./lib/killed-runs.js";
import { settings } from "./lib/training-process.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-overlap-"));
let runs: KilledRuns;
beforeAll(async () => {
  runs = await KilledRuns.create(folder, { overlap: 2 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** An engine that begins a call when the one before has ended. */
function oneAtATime(engine: Engine): Engine {
  let last: Promise<void> = Promise.resolve();
  const begun = async (): Promise<() => void> => {
    const before = last;
    let end: () => void = () => undefined;
    last = new Promise((resolve) => (end = resolve));
    await before;
    return end;
  };
  const alone = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      const end = await begun();
      return call(...args).finally(end);
    };
  };
  return {
    info: engine.info,
    weights: engine.weights,
    release: (handle) => engine.release(handle),
    usage: () => engine.usage(),
    close: () => engine.close(),
    async *sample(...args) {
      const end = await begun();
      try {
        yield* engine.sample(...args);
      } finally {
        end();
      }
    },
    score: alone(engine.score.bind(engine)),
    forward: alone(engine.forward.bind(engine)),
    backward: alone(engine.backward.bind(engine)),
    step: alone(engine.step.bind(engine)),
  };
}

describe("a run with overlap on the onnx engine", () => {
  it("trains, two steps behind", () => {
    expect(runs.updates).toBe(48);
    expect(runs.whole["checkpoints/00000008/policy/model.safetensors"]).not.toBe(runs.whole["checkpoints/00000000/policy/model.safetensors"]);
    expect(Object.keys(runs.whole).filter((path) => path.endsWith("ahead/step-5/model.safetensors"))).toEqual([
      "checkpoints/00000006/ahead/step-5/model.safetensors",
    ]);
  });

  it.each([
    ["a step", { phase: "step", step: 6 }],
    ["a checkpoint", { phase: "checkpoint", step: 4 }],
  ] as const)("that is killed with kill -9 in %s and resumed ends with the bytes of one that was left alone", async (_, aim) => {
    const { hit, differing } = await runs.kill(aim, 0.5);
    expect(hit).toHaveLength(1);
    expect(differing).toEqual([]);
  });

  it("has the same bytes with one call at a time, and with as many as there are, also of two processes", async () => {
    for (const workers of [1, 2]) {
      const files: { [path: string]: string }[] = [];
      for (const form of [oneAtATime, (engine: Engine) => engine]) {
        const engine = await startOnnx({ engine: { threads: 1 }, workers });
        try {
          const out = join(folder, `calls-${workers}-${files.length}`);
          await train({ ...(settings as unknown as TrainOptions), model: join(folder, "policy"), out, overlap: 2, engine: form(engine) });
          files.push(snapshot(out));
        } finally {
          await engine.close();
        }
      }
      expect(files[1]).toEqual(files[0]);
    }
  });
});
