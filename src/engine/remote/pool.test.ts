import { afterEach, describe, expect, it } from "vitest";
import { BigramEngine, loaded, vocabulary } from "../../../test/remote/bigram-engine.js";
import { ArgumentError, EngineError } from "../../core/errors.js";
import { plainContext } from "../../core/problem.js";
import type { Engine, Sample, SampleRequest, Sequence, TensorValue } from "../contract.js";
import type { Replica } from "../replica.js";
import { TableEngine } from "../table/engine.js";
import { RemoteEngine } from "./client.js";
import { PoolEngine } from "./pool.js";
import { serveEngine } from "./server.js";
import { spawnEngine } from "./spawn.js";

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const weights = { role: "policy" };
const set = "role:policy";
const sequence = (seed: number, length = 1 + ((seed * 7) % 13)): Sequence => ({
  context: plainContext([seed % vocabulary]),
  response: Int32Array.from({ length }, (_, i) => (seed + i * i) % vocabulary),
  weights,
  temperature: 1,
});
const request = (seed: number): SampleRequest => ({
  context: plainContext([seed % 3]),
  weights,
  temperature: 0.9,
  maxTokens: 25,
  stop: { ids: [0] },
  key: [seed, 1, 1, 1],
});
const endless = (seed: number): SampleRequest => ({ ...request(seed), maxTokens: 1_000_000_000, stop: { ids: [] } });
const sequences = Array.from({ length: 11 }, (_, i) => sequence(i));

/** In the order of the requests, whatever finished first. */
async function all(samples: AsyncIterable<Sample>): Promise<Sample[]> {
  const list: Sample[] = [];
  for await (const sample of samples) list[sample.index] = sample;
  return list;
}

async function remote(): Promise<RemoteEngine> {
  const server = await serveEngine({ engine: new BigramEngine(), listen: { host: "127.0.0.1", port: 0 } });
  open.push(() => server.close());
  return RemoteEngine.connect({ address: server.address });
}

async function pool(workers: number, make: () => Promise<Replica> = remote): Promise<PoolEngine> {
  const engine = new PoolEngine(await Promise.all(Array.from({ length: workers }, make)));
  open.push(() => engine.close());
  return loaded(engine);
}

/** A squared-error-like loss, so that derivatives differ between tokens. */
async function accumulate(engine: Engine, batch: readonly Sequence[]): Promise<void> {
  const { handle, scores } = await engine.forward(batch);
  await engine.backward(
    handle,
    scores.map(({ logp }) => ({ dLogp: logp.map((x) => x + 1) })),
    set,
  );
}

interface Outcome {
  readonly samples: Sample[];
  readonly logp: Float64Array[];
  readonly gradient: Float64Array;
  readonly gradNorm: number;
  readonly table: Float64Array;
}

async function train(engine: Engine): Promise<Outcome> {
  await accumulate(engine, sequences);
  await accumulate(engine, sequences.slice(0, 2));
  const [{ data: gradient }] = await engine.weights.readGradient(set, ["table"]);
  await accumulate(engine, sequences.slice(3));
  const { gradNorm, weights: identity } = await engine.step({ set, update: { rule: "sgd", rate: 0.05 } });
  expect(identity).toBe("policy@1");
  const samples = await all(engine.sample(Array.from({ length: 12 }, (_, i) => request(i))));
  expect(samples.map((sample) => sample.weights)).toEqual(new Array(12).fill("policy@1"));
  const [{ data: table }] = await engine.weights.read(weights, ["table"]);
  return { samples, logp: (await engine.score(sequences)).map(({ logp }) => logp), gradient, gradNorm, table };
}

it("listens to one signal for each of many workers without a warning", async () => {
  const warnings: string[] = [];
  const warned = ({ name }: Error): number => warnings.push(name);
  process.on("warning", warned);
  const engine = await pool(12);
  const requests = Array.from({ length: 24 }, (_, i) => request(i));
  for await (const sample of engine.sample(requests, { signal: new AbortController().signal })) expect(sample.ids.length).toBeGreaterThan(0);
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", warned);
  expect(warnings).toEqual([]);
});

describe("a pool of workers", () => {
  it.each([1, 2, 3])("of %i answers, before any step, with the very bits of one engine", async (workers) => {
    const one = await loaded(new BigramEngine());
    const many = await pool(workers);
    const requests = Array.from({ length: 30 }, (_, i) => request(i));
    expect(await all(many.sample(requests))).toEqual(await all(one.sample(requests)));
    expect(await many.score(sequences)).toEqual(await one.score(sequences));
    const [pass, reference] = [await many.forward(sequences), await one.forward(sequences)];
    expect(pass.scores).toEqual(reference.scores);
    const nothing = sequences.map(() => ({}));
    expect(await many.backward(pass.handle, nothing, "inputs")).toEqual(await one.backward(reference.handle, nothing, "inputs"));
    const { busyMs: _, ...usage } = await many.usage();
    expect(usage).toMatchObject({ sampledTokens: (await one.usage()).sampledTokens, scoredTokens: (await one.usage()).scoredTokens });
    expect(many.info).toEqual({ ...one.info, fingerprint: { version: 1, workers } });
  });

  it("trains to the same bytes run to run, and nearly so for other numbers of workers", async () => {
    const one = await train(await loaded(new BigramEngine()));
    for (const workers of [1, 2, 3]) {
      const [first, second] = [await train(await pool(workers)), await train(await pool(workers))];
      expect(second).toEqual(first);
      if (workers === 1) expect(first).toEqual(one);
      const scale = Math.max(...one.gradient.map(Math.abs));
      one.gradient.forEach((value, i) => {
        expect(Math.abs(first.gradient[i] - value)).toBeLessThanOrEqual(1e-6 * scale);
      });
      expect(first.gradNorm).toBeCloseTo(one.gradNorm, 5);
    }
  });

  it("does not depend on which worker is the faster", async () => {
    const slowed = (slow: number): (() => Promise<Replica>) => {
      let made = 0;
      return async () => (made++ === slow ? new SlowEngine() : new BigramEngine());
    };
    const outcomes = await Promise.all([0, 1, 2].map(async (slow) => train(await pool(3, slowed(slow)))));
    expect(outcomes[1]).toEqual(outcomes[0]);
    expect(outcomes[2]).toEqual(outcomes[0]);
  });

  it("keeps all copies equal through snapshots, writes and steps called at once", async () => {
    const workers = await Promise.all([remote(), remote(), remote()]);
    const engine = await loaded(new PoolEngine(workers));
    open.push(() => engine.close());
    await accumulate(engine, sequences);
    const written = { name: "table", shape: [vocabulary, vocabulary], data: new Float64Array(vocabulary * vocabulary).fill(0.25) };
    await Promise.all([
      engine.weights.snapshot("policy", "start"),
      engine.step({ set, update: { rule: "sgd", rate: 0.1 } }),
      engine.weights.write("policy", [written]),
      engine.step({ set, update: { rule: "sgd", rate: 0.1 } }),
    ]);
    const read = (): Promise<TensorValue[][]> => Promise.all(workers.map((worker) => worker.weights.read(weights, ["table"])));
    const tables = await read();
    expect(tables[0]).toEqual([{ ...written, data: new Float64Array(vocabulary * vocabulary).fill(0.25) }]);
    expect((await Promise.all(workers.map((worker) => worker.score([sequence(1)])))).map(([{ weights }]) => weights)).toEqual(new Array(3).fill("policy@2"));
    expect(tables[1]).toEqual(tables[0]);
    expect(tables[2]).toEqual(tables[0]);
    await engine.weights.restore("policy", "start");
    const fresh = await (await loaded(new BigramEngine())).weights.read(weights, ["table"]);
    for (const table of await read()) expect(table).toEqual(fresh);
  });

  it("scores what is called before a step with the weights before it, and what is called after it with those after it", async () => {
    const engine = await pool(2);
    const before = engine.score(sequences);
    await engine.step({ set, update: { rule: "sgd", rate: 0.1 } });
    expect((await before).map((scores) => scores.weights)).toEqual(sequences.map(() => "policy@0"));
    await engine.weights.load({ role: "policy", source: { from: "config", config: {}, seed: 5 }, trainable: true });
    await accumulate(engine, sequences);
    const step = engine.step({ set, update: { rule: "sgd", rate: 0.1 } });
    expect((await engine.score(sequences)).map((scores) => scores.weights)).toEqual(sequences.map(() => "policy@1"));
    await step;
  });

  it("takes fewer sequences than it has workers, and none", async () => {
    const engine = await pool(3);
    expect(await engine.score([sequence(4)])).toEqual(await (await loaded(new BigramEngine())).score([sequence(4)]));
    expect(await engine.score([])).toEqual([]);
    expect(await all(engine.sample([]))).toEqual([]);
    await accumulate(engine, [sequence(4)]);
    expect((await engine.step({ set, update: { rule: "sgd", rate: 1 } })).gradNorm).toBeGreaterThan(0);
  });

  it("refuses handles it does not have and derivatives that do not fit", async () => {
    const engine = await pool(2);
    const { handle } = await engine.forward(sequences);
    await expect(engine.backward(handle, [{}], set)).rejects.toThrow("derivatives of 1 sequences and its forward had 11");
    await expect(engine.backward(handle, new Array(11).fill({ dLogp: new Float64Array(99) }), set)).rejects.toThrow(ArgumentError);
    await expect(engine.score(sequences, { targets: [undefined] })).rejects.toThrow(/targets/);
    await engine.release(handle);
    await expect(engine.release(handle)).rejects.toThrow(ArgumentError);
    expect(() => new PoolEngine([])).toThrow("no workers");
  });
});

/** Yields often before it answers, so that its answers come last. */
class SlowEngine extends BigramEngine {
  override async exportGradient(name: typeof set, file: string): Promise<boolean> {
    await pause();
    return super.exportGradient(name, file);
  }

  override async score(batch: readonly Sequence[]): ReturnType<BigramEngine["score"]> {
    await pause();
    return super.score(batch);
  }
}

async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
}

describe("a pool of the table engine", () => {
  const source = { from: "config", config: { kind: "table", vocabulary, init: 0.5 }, seed: 3 } as const;
  const tables = async (engine: Engine): Promise<Engine> => {
    await engine.weights.load({ role: "policy", source, trainable: true });
    await engine.weights.load({ role: "frozen", source, trainable: false });
    return engine;
  };
  const served = async (): Promise<RemoteEngine> => {
    const server = await serveEngine({ engine: new TableEngine(), listen: { host: "127.0.0.1", port: 0 } });
    open.push(() => server.close());
    return RemoteEngine.connect({ address: server.address });
  };

  it("gives the bits of the engine in process, in process, over a socket and from several workers", async () => {
    const step = { set, update: { rule: "adamw", rate: 0.1 } } as const;
    const outcome = async (engine: Engine): Promise<unknown> => {
      const samples = await all(engine.sample(Array.from({ length: 9 }, (_, i) => request(i))));
      const scores = await engine.score(sequences, { entropy: true, topK: 3, full: true, hidden: ["final"] });
      // One sequence lies on one worker, so that its gradient is a sum in one order only.
      await accumulate(engine, [sequence(5)]);
      const names = (await engine.weights.info("policy")).tensors.map((tensor) => tensor.name);
      return [samples, scores, await engine.step(step), await engine.weights.read(weights, names)];
    };
    const local = await outcome(await tables(new TableEngine()));
    const pools = [1, 2, 3].map(async (count) => new PoolEngine(await Promise.all(Array.from({ length: count }, served))));
    for (const engine of [await served(), ...(await Promise.all(pools))]) {
      open.push(() => engine.close());
      expect(await outcome(await tables(engine))).toEqual(local);
    }
  });

  it("refuses in the engine's words, counted over the whole call, and stays usable", async () => {
    const engine = await tables(new PoolEngine([new TableEngine(), new TableEngine()]));
    const wrong = { ...sequence(1), temperature: 0 };
    await expect(engine.score([sequence(9), sequence(2), sequence(3), wrong])).rejects.toThrow(/^score sequence 3: .*temperature/);
    await expect(all(engine.sample([request(1), request(2), { ...request(0), temperature: -1 }]))).rejects.toThrow(/^sample request 2: /);
    await expect(engine.step({ set: "role:frozen", update: { rule: "sgd", rate: 1 } })).rejects.toThrow("frozen");
    const { handle } = await engine.forward(sequences.map((each) => ({ ...each, weights: { role: "frozen" } })));
    await expect(
      engine.backward(
        handle,
        sequences.map(() => ({})),
        "role:frozen",
      ),
    ).rejects.toThrow("frozen");
    await engine.release(handle);
    expect(await engine.score(sequences)).toHaveLength(sequences.length);
  });

  it("answers what was drawn so far when it is cancelled", async () => {
    const engine = await tables(new PoolEngine([await served(), await served()]));
    open.push(() => engine.close());
    const controller = new AbortController();
    const many = [0, 1, 2, 3].map((seed) => ({ ...endless(seed), maxTokens: 60_000 }));
    const answer = all(engine.sample(many, { signal: controller.signal }));
    setTimeout(() => controller.abort(), 50);
    const samples = await answer;
    expect(samples.map(({ stop }) => stop)).toEqual(new Array(4).fill("cancelled"));
    for (const { ids } of samples) expect(ids.length).toBeLessThan(60_000);
  });
});

describe("faults in a pool", () => {
  it("a failure of one worker cancels the others and frees their passes", async () => {
    const workers = [new BigramEngine(), new BigramEngine()];
    const engine = await loaded(new PoolEngine(workers));
    await workers[1].weights.unload("policy");
    await expect(engine.forward(sequences)).rejects.toThrow("no role policy");
    expect(workers[0].passes.size).toBe(0);
    await expect(all(engine.sample([endless(0), endless(1)]))).rejects.toThrow("no role policy");
    const { steps } = workers[0];
    await pause();
    expect(workers[0].steps).toBe(steps);
  });

  it("a change that only some workers made ends the pool", async () => {
    const workers = [new BigramEngine(), new BigramEngine()];
    const engine = await loaded(new PoolEngine(workers));
    await expect(engine.weights.snapshot("nobody", "x")).rejects.toThrow(ArgumentError);
    expect(await engine.score(sequences)).toHaveLength(sequences.length);
    await workers[1].weights.unload("policy");
    await expect(engine.weights.snapshot("policy", "x")).rejects.toThrow("no role policy");
    await expect(engine.score(sequences)).rejects.toThrow("no longer equal");
  });

  it("cancelling reaches all workers, and so does a consumer that stops", async () => {
    const workers = [new BigramEngine(), new BigramEngine()];
    const engine = await loaded(new PoolEngine(workers));
    const controller = new AbortController();
    const answer = all(engine.sample([endless(0), endless(1)], { signal: controller.signal }));
    setImmediate(() => controller.abort(new Error("enough")));
    await expect(answer).rejects.toThrow("enough");
    for await (const sample of engine.sample([endless(0), request(1), endless(2), endless(3)])) {
      expect(sample.index).toBe(1);
      break;
    }
    const steps = workers.map((worker) => worker.steps);
    await pause();
    expect(workers.map((worker) => worker.steps)).toEqual(steps);
  });

  it("a killed worker process fails what is pending and what comes, saying so", async () => {
    const entry = new URL("../../../test/remote/host.ts", import.meta.url);
    const workers = await Promise.all([spawnEngine({ entry }), spawnEngine({ entry })]);
    const engine = await loaded(new PoolEngine(workers));
    open.push(() => engine.close());
    const answer = all(engine.sample([endless(0), endless(1), endless(2), endless(3)]));
    answer.catch(() => undefined);
    process.kill(workers[1].pid, "SIGKILL");
    await expect(answer).rejects.toThrow(EngineError);
    await expect(engine.score(sequences)).rejects.toThrow("SIGKILL");
    await expect(engine.step({ set, update: { rule: "sgd", rate: 1 } })).rejects.toThrow("SIGKILL");
  });
});
