/**
 * What training on a server of the Tinker protocol costs this side: processor time a step, large batches there and back, and memory over many steps.
 *
 *     npm run bench remote [-- --steps 30]
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { plainContext } from "../src/core/problem.js";
import { randomKey, Stream } from "../src/core/random.js";
import type { Engine, Sequence } from "../src/engine/contract.js";
import { connectTinker } from "../src/engine/tinker/start.js";
import { vocabulary } from "../test/support/tinker-model.js";
import type { StubOptions } from "../test/support/tinker-stub.js";
import { median, say } from "./lib/peers.js";

const dialects = ["json", "protobuf"] as const;
const policy = { role: "policy" } as const;
const tokens = 256;
const prompt = 64;
const stream = new Stream(randomKey({ seed: 1, purpose: "bench-remote" }));

function baseFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "touchstone-bench-"));
  const config = {
    vocab_size: vocabulary,
    max_position_embeddings: 1024,
    hidden_size: 16,
    num_hidden_layers: 2,
    num_attention_heads: 2,
    intermediate_size: 32,
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  return folder;
}

const folder = baseFolder();

/** Runs with an engine on a server in another process. */
async function on<T>(options: StubOptions, act: (engine: Engine) => Promise<T>): Promise<T> {
  const program = fileURLToPath(new URL("./lib/tinker-server.ts", import.meta.url));
  const child: ChildProcess = spawn(process.execPath, ["--import", "tsx", program, JSON.stringify(options)], { stdio: ["pipe", "pipe", "inherit"] });
  const [url] = await new Promise<string[]>((resolve) =>
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).once("line", (line) => resolve([line])),
  );
  const engine = await connectTinker({ baseUrl: url as string });
  try {
    await engine.weights.load({ role: "policy", source: { from: "folder", path: folder }, trainable: true });
    return await act(engine);
  } finally {
    await engine.close();
    child.stdin?.end();
  }
}

const ids = (count: number): Int32Array => Int32Array.from({ length: count }, () => 1 + stream.int(vocabulary - 1));
const sequence = (context: Int32Array, response: Int32Array): Sequence => ({ context: plainContext(context), response, weights: policy, temperature: 1 });

/** A step as training makes it: answers to `problems` prompts, a forward and a backward pass over them, and the update. */
async function step(engine: Engine, problems: number, group: number, length: number): Promise<void> {
  const prompts = Array.from({ length: problems }, () => plainContext(ids(prompt)));
  const requests = prompts.flatMap((context, p) =>
    Array.from({ length: group }, (_, member) => ({
      context,
      weights: policy,
      temperature: 1,
      maxTokens: length - prompt,
      stop: { ids: [] },
      key: randomKey({ seed: 2, purpose: "bench", problem: String(p), member }),
    })),
  );
  const sequences: Sequence[] = [];
  for await (const { index, ids: response } of engine.sample(requests))
    sequences[index] = { ...sequence(prompts[0].ids, response), context: requests[index].context };
  const { handle, scores } = await engine.forward(sequences);
  await engine.backward(
    handle,
    scores.map(({ logp }, i) => ({ dLogp: Float64Array.from(logp, () => (i % 2 === 0 ? 1 : -1) / (group * problems)) })),
    "role:policy",
  );
  await engine.step({ set: "role:policy", update: { rule: "adamw", rate: 1e-4 } });
}

/** Milliseconds of wall clock, and of this process's processors. */
async function cost(act: () => Promise<void>): Promise<{ readonly wall: number; readonly cpu: number }> {
  const from = process.cpuUsage();
  const start = performance.now();
  await act();
  const { user, system } = process.cpuUsage(from);
  return { wall: performance.now() - start, cpu: (user + system) / 1000 };
}

const number = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
};

say(`${availableParallelism()} cores, the server in a process of its own`);
for (const dialect of dialects) {
  await on({ dialect, latencyMs: 700 }, async (engine) => {
    const costs: Awaited<ReturnType<typeof cost>>[] = [];
    for (let i = 0; i < number("--steps", 10) + 2; i++) costs.push(await cost(() => step(engine, 16, 8, tokens)));
    const kept = costs.slice(2);
    const [cpu, wall] = [median(kept.map((each) => each.cpu)), median(kept.map((each) => each.wall))];
    say(
      `${dialect}: a step of 128 sequences of ${tokens} tokens`,
      `${cpu.toFixed(0)} ms of processors`,
      `${((100 * cpu) / wall).toFixed(1)} % of a step of ${(wall / 1000).toFixed(1)} s`,
    );
  });
}
for (const dialect of dialects) {
  await on({ dialect }, async (engine) => {
    const sequences = Array.from({ length: 4096 }, () => sequence(ids(prompt), ids(tokens - prompt)));
    const times: number[] = [];
    for (let i = 0; i < 3; i++) {
      const { cpu } = await cost(async () => {
        const { handle, scores } = await engine.forward(sequences);
        if (scores.length !== sequences.length) throw new Error(`${scores.length} results`);
        await engine.release(handle);
      });
      times.push(cpu);
    }
    say(`${dialect}: 4,096 sequences of ${tokens} tokens there and back`, `${(median(times) / 1000).toFixed(2)} s of processors`);
  });
}
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
for (const dialect of dialects) {
  await on({ dialect }, async (engine) => {
    const heap: number[] = [];
    for (let i = 1; i <= 1000; i++) {
      await step(engine, 2, 4, 96);
      if (i % 200 !== 0) continue;
      collect();
      const { heapUsed, external, arrayBuffers } = process.memoryUsage();
      heap.push((heapUsed + external + arrayBuffers) / 1e6);
    }
    say(`${dialect}: memory after 200, 400 … 1,000 steps`, `${heap.map((each) => each.toFixed(1)).join(", ")} MB`);
  });
}
