import { afterEach, describe, expect, it } from "vitest";
import { BigramEngine, loaded } from "../../../test/remote/bigram-engine.js";
import { plainContext } from "../../core/problem.js";
import type { Sequence, TensorValue, Weights } from "../contract.js";
import type { Replica } from "../replica.js";
import { RemoteEngine } from "./client.js";
import { serveEngine } from "./server.js";
import { spawnEngine } from "./spawn.js";

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Gives back the tensor that it got. */
class Mirror extends BigramEngine {
  private held: readonly TensorValue[] = [];

  override readonly weights: Weights = {
    ...new BigramEngine().weights,
    write: async (_, tensors) => {
      this.held = tensors;
    },
    read: async () => [...this.held],
  };
}

async function connected(engine: Replica): Promise<RemoteEngine> {
  const server = await serveEngine({ engine, listen: { host: "127.0.0.1", port: 0 } });
  open.push(() => server.close());
  const remote = await RemoteEngine.connect({ address: server.address });
  open.push(() => remote.close());
  return remote;
}

const mega = 2 ** 20;

describe("large frames", () => {
  it("of 540 MB, the weights of 135 million parameters, arrive whole both ways without copies piling up", async () => {
    const remote = await connected(new Mirror());
    const sent = new Float64Array(67.5 * mega).map((_, i) => i % 9973);
    const before = process.memoryUsage().arrayBuffers;
    await remote.weights.write("policy", [{ name: "table", shape: [sent.length], data: sent }]);
    const [{ data }] = await remote.weights.read({ role: "policy" }, ["table"]);
    // One copy at the server and one here, both in this process; chunks in flight are small beside them.
    expect((process.memoryUsage().arrayBuffers - before) / sent.byteLength).toBeLessThan(2.3);
    expect(Buffer.compare(Buffer.from(data.buffer, data.byteOffset, data.byteLength), Buffer.from(sent.buffer))).toBe(0);
  });
});

describe("a thousand small calls", () => {
  it("leave the memory of both sides where it was", async () => {
    const engine = await loaded(await spawnEngine({ entry: new URL("../../../test/remote/host.ts", import.meta.url) }));
    open.push(() => engine.close());
    const residentOf = async (pid: number): Promise<number> => {
      const { readFile } = await import("node:fs/promises");
      return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
    };
    const sequence: Sequence = { context: plainContext([1, 2]), response: Int32Array.of(2, 3, 4), weights: { role: "policy" }, temperature: 1 };
    const { signal } = new AbortController();
    const calls = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const { handle } = await engine.forward([sequence, sequence], {}, { signal });
        await engine.backward(handle, [{ dLogp: Float64Array.of(1, 1, 1) }, {}], "role:policy");
        for await (const _ of engine.sample([{ ...sequence, maxTokens: 4, stop: { ids: [] }, key: [i, 0, 0, 0] }], { signal }));
      }
    };
    await calls(1000); // heaps grow to their working size first
    const before = [await residentOf(engine.pid), await residentOf(process.pid)];
    await calls(1000);
    const after = [await residentOf(engine.pid), await residentOf(process.pid)];
    const growth = after.map((value, i) => value / before[i]);
    expect(Math.max(...growth)).toBeLessThan(1.05 + 10 / Math.min(...before));
    expect(engine.liveness().pending).toEqual([]);
  });
});
