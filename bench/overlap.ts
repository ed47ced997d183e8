/**
 * What `overlap` gains: steps of `train` on the small starter with a sampler that answers late, as one elsewhere does, and without the delay.
 *
 *     npm run bench overlap [-- --delay 1000] [-- --rounds 2]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Engine } from "../src/engine/contract.js";
import { startLocal } from "../src/engine/onnx/start.js";
import { train } from "../src/train/train.js";
import { median, say } from "./lib/peers.js";

const model = fileURLToPath(new URL("../starters/chain-100k", import.meta.url));
const steps = 16;
/** Steps at the start that do not count: the engine builds its graphs in them, and the first batches are drawn in one go. */
const warmup = 4;
const overlaps = [0, 1, 2, 4];

/** The engine with a wait before each call to sample. A call waits on its own, so that waits of several calls go by together. */
function late(engine: Engine, ms: number): Engine {
  const call = <K extends "score" | "forward" | "backward" | "step" | "release" | "usage">(name: K): Engine[K] => engine[name].bind(engine) as Engine[K];
  return {
    info: engine.info,
    weights: engine.weights,
    close: async () => undefined, // The bench closes it, after several runs.
    release: call("release"),
    usage: call("usage"),
    score: call("score"),
    forward: call("forward"),
    backward: call("backward"),
    step: call("step"),
    async *sample(requests, options) {
      if (ms > 0) await sleep(ms, undefined, options?.signal ? { signal: options.signal } : {});
      yield* engine.sample(requests, options);
    },
  };
}

/** Milliseconds a step. */
async function msOf(engine: Engine, overlap: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "touchstone-bench-"));
  let [begun, ended] = [0, 0];
  try {
    await train({
      model,
      out: join(folder, "run"),
      task: { name: "chain", options: { modulus: 7 } },
      steps,
      overlap,
      lr: 1e-4,
      checkpoint: { every: 0 },
      engine,
      onProgress: (progress) => {
        if (progress.kind !== "step") return;
        if (progress.step === warmup) begun = performance.now();
        ended = performance.now();
      },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return (ended - begun) / (steps - warmup);
}

const number = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
};
const rounds = number("--rounds", 2);
const engine = await startLocal(1e5);
say(`${availableParallelism()} cores, ${steps - warmup} steps of 16x8 answers, median of ${rounds} round${rounds === 1 ? "" : "s"}`);
try {
  for (const delay of [number("--delay", 1000), 0]) {
    const found = new Map<number, number[]>(overlaps.map((overlap) => [overlap, []]));
    for (let round = 0; round < rounds; round++) {
      for (const overlap of overlaps) found.get(overlap)?.push(await msOf(late(engine, delay), overlap));
    }
    const plain = median(found.get(0) as number[]);
    say(delay > 0 ? `sampling begins ${delay} ms late` : "one embedded engine");
    for (const [overlap, ms] of found)
      say(`  overlap ${overlap}`, `${median(ms).toFixed(0)} ms a step`, `${(plain / median(ms)).toFixed(2)} times as fast as without`);
  }
} finally {
  await engine.close();
}
