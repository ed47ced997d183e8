/** An engine process that samples and trains for long keeps its size. */
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { plainContext } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import { RemoteEngine } from "../remote/client.js";
import { startOnnx } from "./start.js";
import { policySet, randomModel, type Shape, sampleAll } from "./test-engine.js";

const shape: Shape = { layers: 4, width: 128, heads: 4, kvHeads: 4, mlp: 512, vocabulary: 64 };
const cycles = 1000;
const warmUp = 50;

async function residentMegabytes(pid: number): Promise<number> {
  return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

it.runIf(process.platform === "linux")(`grows by less than 5 % for ${cycles} cycles of sampling and training at 1M parameters`, async () => {
  const engine = await startOnnx({ engine: { threads: 1 } });
  if (!(engine instanceof RemoteEngine)) throw new Error("one worker is one process");
  await engine.weights.load({ role: "policy", source: randomModel(shape, 1, 0.02), trainable: true });
  const cycle = async (step: number): Promise<void> => {
    const samples = await sampleAll(
      engine,
      Array.from({ length: 4 }, (_, i) => ({
        context: plainContext([step % shape.vocabulary, i]),
        weights: { role: "policy" },
        temperature: 1,
        maxTokens: 4 + ((step + i) % 9),
        stop: { ids: [0] },
        key: randomKey({ seed: 1, purpose: "memory", step, member: i }),
      })),
    );
    const { handle, scores } = await engine.forward(
      samples.map(({ ids }, i) => ({ context: plainContext([step % shape.vocabulary, i]), response: ids, weights: { role: "policy" }, temperature: 1 })),
      { entropy: true },
    );
    const derivatives = scores.map(({ logp }) => ({ dLogp: logp.map(() => -0.01), dEntropy: logp.map(() => -0.001) }));
    if (step % 10 === 3) await engine.release(handle);
    else await engine.backward(handle, derivatives, policySet);
    await engine.step({ set: policySet, update: { rule: "adamw", rate: 1e-4 }, maxNorm: 1 });
  };
  for (let step = 0; step < warmUp; step++) await cycle(step);
  const start = await residentMegabytes(engine.pid);
  const sizes: number[] = [];
  for (let step = 0; step < cycles; step++) {
    await cycle(warmUp + step);
    if (step % 50 === 49) sizes.push(await residentMegabytes(engine.pid));
  }
  await engine.close();
  // Growth from the smallest size so far: that the allocator gives memory back is no fault, and must not hide a leak after it.
  let least = start;
  for (const size of sizes) {
    expect(size / least - 1, `${start} MB, then ${sizes} MB`).toBeLessThan(0.05);
    least = Math.min(least, size);
  }
});
