/** What goes wrong around an onnx engine: its process dies, a model folder is damaged, a caller changes its mind. */
import { existsSync } from "node:fs";
import { cp, mkdtemp, open, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { EngineError, ModelError } from "../../core/errors.js";
import { plainContext } from "../../core/problem.js";
import type { Engine, Sample, SampleRequest, Sequence } from "../contract.js";
import { RemoteEngine } from "../remote/client.js";
import { OnnxEngine } from "./engine.js";
import { startOnnx } from "./start.js";
import { randomModel, randomSequence, readWeights, type Shape, sameBytes, sampleAll } from "./test-engine.js";

const shape: Shape = { layers: 4, width: 128, heads: 4, kvHeads: 4, mlp: 512, vocabulary: 64 };
const policy = { role: "policy", source: randomModel(shape, 1), trainable: true } as const;
const sequence: Sequence = randomSequence(3, 5, shape.vocabulary, 1);

/** A long answer that no token ends. */
const request = (i: number, maxTokens: number): SampleRequest => ({
  context: plainContext([i % shape.vocabulary, 2, 3]),
  weights: { role: "policy" },
  temperature: 1,
  maxTokens,
  stop: { ids: [] },
  key: [i, 1, 2, 3],
});

const running: Engine[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((engine) => engine.close()));
});

async function started(workers = 1): Promise<Engine> {
  const engine = await startOnnx({ workers, engine: { threads: 1 } });
  running.push(engine);
  await engine.weights.load(policy);
  return engine;
}

async function inProcess(): Promise<OnnxEngine> {
  const engine = await OnnxEngine.create({ threads: 1 });
  running.push(engine);
  await engine.weights.load(policy);
  return engine;
}

describe("an engine whose process is killed", () => {
  const calls: { readonly [call: string]: (engine: Engine, begun: () => void) => Promise<unknown> } = {
    sample: async (engine, begun) => {
      // The short answer comes first, and the long ones are then under way.
      for await (const { index } of engine.sample([request(0, 2), ...Array.from({ length: 31 }, (_, i) => request(i + 1, 900))])) if (index === 0) begun();
    },
    forward: (engine, begun) => {
      const answer = engine.forward(Array.from({ length: 300 }, (_, i) => randomSequence(1, 500, shape.vocabulary, i)));
      setTimeout(begun, 100);
      return answer;
    },
  };

  it.each(Object.keys(calls))("in the middle of %s says so within two seconds, and a new one starts and works", async (call) => {
    const engine = await started();
    const expected = await engine.score([sequence]);
    if (!(engine instanceof RemoteEngine)) throw new Error("one worker is one process");
    let killed = Number.POSITIVE_INFINITY;
    const failure = await calls[call](engine, () => {
      killed = performance.now();
      process.kill(engine.pid, "SIGKILL");
    }).then(
      () => undefined,
      (error: unknown) => error,
    );
    // The bound is part of what is promised; it is not a measurement.
    expect(performance.now() - killed).toBeLessThan(2000);
    expect(failure).toBeInstanceOf(EngineError);
    expect((failure as EngineError).message).toMatch(new RegExp(`process ${engine.pid} ended \\(killed by SIGKILL.*during ${call}`));
    await expect(engine.score([sequence])).rejects.toThrow(EngineError);
    expect(await (await started()).score([sequence])).toStrictEqual(expected);
  });
});

describe("an engine's process", () => {
  it("leaves signals to its parent, which may have to save first, and ends when it is asked to", async () => {
    const engine = await started();
    if (!(engine instanceof RemoteEngine)) throw new Error("one worker is one process");
    const expected = await engine.score([sequence]);
    // Its own group, so that a terminal's Ctrl-C does not reach it before it has handlers.
    if (process.platform === "linux") expect((await readFile(`/proc/${engine.pid}/stat`, "utf8")).split(") ")[1].split(" ")[2]).toBe(String(engine.pid));
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(engine.pid, signal);
    expect(await engine.score([sequence])).toStrictEqual(expected);
    await engine.close();
    expect(() => process.kill(engine.pid, 0)).toThrow("ESRCH");
  });

  it("reports nothing to the runtime's maker and leaves no log of it", async () => {
    const home = await mkdtemp(join(tmpdir(), "touchstone-home-"));
    try {
      const engine = await startOnnx({ workers: 1, engine: { threads: 1 }, env: { HOME: home, XDG_CACHE_HOME: join(home, ".cache") } });
      running.push(engine);
      await engine.weights.load(policy);
      await engine.score([sequence]);
      expect(await readdir(home)).toEqual([]);
      expect(existsSync(`/tmp/mat-debug-${(engine as RemoteEngine).pid}.log`)).toBe(false);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});

describe("weights that are not finite", () => {
  it("are not drawn from and not saved, and the folder that was there stays", async () => {
    const folder = await mkdtemp(join(tmpdir(), "touchstone-faults-"));
    try {
      const engine = await inProcess();
      const target = join(folder, "model");
      await engine.weights.save({ role: "policy" }, target);
      const before = await readFile(join(target, "model.safetensors"));
      const { handle } = await engine.forward([sequence]);
      await engine.backward(handle, [{ dLogp: new Float64Array(sequence.response.length).fill(1e20) }], "role:policy");
      await engine.step({ set: "role:policy", update: { rule: "sgd", rate: 1e38 } });
      await expect(engine.weights.save({ role: "policy" }, target)).rejects.toThrow(
        /^saving weights: the tensor \S+ has entries that are not finite; go on from the last checkpoint with a lower learning rate$/,
      );
      expect((await readFile(join(target, "model.safetensors"))).equals(before)).toBe(true);
      await expect(sampleAll(engine, [request(1, 5)])).rejects.toThrow(/sampling from policy: the logits of token 0 under policy@\d+ are not finite/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe("sampling that is cancelled", () => {
  const long = Array.from({ length: 8 }, (_, i) => request(i, 900));
  /** Cancels in the midst of decoding; how many tokens were drawn from then on, and the answers. */
  const drawnAfter = async (engine: Engine): Promise<{ drawn: number; samples: Sample[] }> => {
    const before = (await engine.usage()).sampledTokens;
    const controller = new AbortController();
    const samples: Sample[] = [];
    const sampling = (async () => {
      for await (const sample of engine.sample(long, { signal: controller.signal })) samples.push(sample);
    })();
    const drawn = async (): Promise<number> => (await engine.usage()).sampledTokens;
    while ((await drawn()) - before < 30 * long.length) await new Promise(setImmediate);
    // The engine hears of the two in this order.
    const atAbort = drawn();
    controller.abort();
    await sampling;
    const after = await drawn();
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    expect(await drawn()).toBe(after);
    return { drawn: after - (await atAbort), samples };
  };

  it.each([
    ["in this process", inProcess],
    ["in a process of its own", started],
  ] as const)("stops within two steps %s, answers what it has, and the engine goes on to work", async (_, start) => {
    const engine = await start();
    let { drawn, samples } = await drawnAfter(engine);
    // This process can lose its turn between its two messages, and the engine draws on: the least of a few tries is what the engine does.
    for (let tries = 1; tries < 8 && drawn > 2 * long.length; tries++) ({ drawn, samples } = await drawnAfter(engine));
    expect(drawn).toBeLessThanOrEqual(2 * long.length);
    expect(samples.map(({ stop }) => stop)).toEqual(long.map(() => "cancelled"));
    for (const { ids } of samples) expect(ids.length).toBeGreaterThanOrEqual(30);
    expect((await sampleAll(engine, [request(1, 5)]))[0].ids).toHaveLength(5);
  });
});

describe("a model folder that is damaged", () => {
  let whole: string;
  let folder: string;
  beforeAll(async () => {
    whole = await mkdtemp(join(tmpdir(), "touchstone-faults-"));
    const engine = await OnnxEngine.create({ threads: 1 });
    await engine.weights.load(policy);
    await engine.weights.save({ role: "policy" }, join(whole, "whole"));
    await engine.close();
  });
  afterAll(() => rm(whole, { recursive: true, force: true }));

  const configured = async (change: { readonly [key: string]: unknown }): Promise<void> => {
    const file = join(folder, "config.json");
    await writeFile(file, JSON.stringify({ ...(JSON.parse(await readFile(file, "utf8")) as object), ...change }));
  };
  /** Writes a number over the first one of a tensor. */
  const poison = async (tensor: string, value: number): Promise<void> => {
    const file = await open(join(folder, "model.safetensors"), "r+");
    const size = Buffer.alloc(8);
    await file.read(size, 0, 8, 0);
    const header = Buffer.alloc(Number(size.readBigUInt64LE()));
    await file.read(header, 0, header.length, 8);
    const [from] = (JSON.parse(header.toString()) as { [name: string]: { data_offsets: [number, number] } })[tensor].data_offsets;
    const bytes = Buffer.alloc(4);
    bytes.writeFloatLE(value);
    await file.write(bytes, 0, 4, 8 + header.length + from);
    await file.close();
  };

  const faults: { readonly [fault: string]: { readonly damage: () => Promise<unknown>; readonly says: RegExp } } = {
    "is truncated": {
      damage: async () => {
        const file = join(folder, "model.safetensors");
        await truncate(file, Math.floor((await stat(file)).size / 2));
      },
      says: /model\.safetensors: .*\d+/,
    },
    "has a tensor of another shape": {
      damage: () => configured({ intermediate_size: 500 }),
      says: /model\.safetensors: tensor model\.layers\.0\.mlp\.gate_proj\.weight has the shape \[512,128\] and config\.json asks for \[500,128\]/,
    },
    "is of an unknown architecture": {
      damage: () => configured({ architectures: ["MambaForCausalLM"] }),
      says: /config\.json: the architecture MambaForCausalLM is not known; use a model of .*LlamaForCausalLM/,
    },
    "has a vocabulary larger than its embedding": {
      damage: () => configured({ vocab_size: 70 }),
      says: /model\.safetensors: the vocabulary of 70 is larger than tensor model\.embed_tokens\.weight with its 64 rows/,
    },
    "has a weight that is NaN": {
      damage: () => poison("model.layers.2.mlp.down_proj.weight", Number.NaN),
      says: /model\.safetensors: tensor model\.layers\.2\.mlp\.down_proj\.weight has NaN at index 0/,
    },
    "has a weight that is infinite in its last tensor": {
      damage: () => poison("model.norm.weight", Number.NEGATIVE_INFINITY),
      says: /model\.safetensors: tensor model\.norm\.weight has -Infinity at index 0/,
    },
    "lacks a tensor": {
      damage: () => configured({ num_hidden_layers: 5 }),
      says: /tensor model\.layers\.4\.\S+ is missing/,
    },
  };

  const refused = async (engine: Engine, { damage, says }: (typeof faults)[string]): Promise<void> => {
    folder = join(whole, "damaged");
    await rm(folder, { recursive: true, force: true });
    await cp(join(whole, "whole"), folder, { recursive: true });
    await engine.weights.load({ role: "intact", source: { from: "folder", path: folder }, trainable: false });
    await damage();
    const [before, scores] = [await readWeights(engine), await engine.score([sequence])];
    for (const role of ["policy", "other"]) {
      const error: unknown = await engine.weights
        .load({ role, source: { from: "folder", path: folder }, trainable: false })
        .catch((failure: unknown) => failure);
      expect(error).toBeInstanceOf(ModelError);
      const { message } = error as ModelError;
      expect(message).toMatch(says);
      expect(message).toContain(folder);
      expect(message).not.toMatch(/\n|\.\s/);
    }
    await expect(engine.weights.info("other")).rejects.toThrow(/other/);
    expect((await engine.weights.info("policy")).trainable).toBe(true);
    expect(sameBytes(await readWeights(engine), before)).toBe(true);
    expect(await engine.score([sequence])).toStrictEqual(scores);
  };

  it.each(Object.keys(faults))("%s is refused in one sentence, and nothing of it is loaded", async (fault) => {
    await refused(await inProcess(), faults[fault]);
  });

  it("is refused by every worker of a pool, which goes on to work", async () => {
    const engine = await started(2);
    for (const fault of ["is truncated", "has a weight that is NaN"]) await refused(engine, faults[fault]);
  });
});
