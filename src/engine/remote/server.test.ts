import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { BigramEngine, loaded, vocabulary } from "../../../test/remote/bigram-engine.js";
import { ArgumentError, CapabilityError, ConfigError, EngineError } from "../../core/errors.js";
import { plainContext } from "../../core/problem.js";
import type { Engine, Sample, SampleRequest, Sequence } from "../contract.js";
import { RemoteEngine } from "./client.js";
import { encodeFrame } from "./frames.js";
import { type Address, parseAddress } from "./messages.js";
import { type EngineServer, serveEngine } from "./server.js";

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function serve(engine: Engine, options: { listen?: Address; token?: string; frameLimit?: number } = {}): Promise<EngineServer> {
  const server = await serveEngine({ engine, listen: { host: "127.0.0.1", port: 0 }, ...options });
  open.push(() => server.close());
  return server;
}

async function client(server: EngineServer, options: { token?: string; frameLimit?: number } = {}): Promise<RemoteEngine> {
  const remote = await RemoteEngine.connect({ address: server.address, ...options });
  open.push(() => remote.close());
  return remote;
}

const weights = { role: "policy" };
const sequence = (seed: number, length: number): Sequence => ({
  context: plainContext([seed % vocabulary]),
  response: Int32Array.from({ length }, (_, i) => (seed + i * i) % vocabulary),
  weights,
  temperature: 1,
});
const request = (seed: number, maxTokens: number): SampleRequest => ({
  context: plainContext([seed % vocabulary]),
  weights,
  temperature: 0.9,
  maxTokens,
  stop: { ids: [0] },
  key: [seed, 1, 1, 1],
});

async function all(samples: AsyncIterable<Sample>): Promise<Sample[]> {
  const list: Sample[] = [];
  for await (const sample of samples) list.push(sample);
  return list;
}

/** Waits, without a limit of its own, until a condition that other events bring about holds. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe("an engine behind a socket", () => {
  it("answers every call as the engine in process does", async () => {
    const local = await loaded(new BigramEngine());
    const remote = await loaded(await client(await serve(new BigramEngine())));
    const requests = Array.from({ length: 20 }, (_, i) => request(i, 30));
    expect(await all(remote.sample(requests))).toEqual(await all(local.sample(requests)));
    const sequences = [sequence(1, 9), sequence(2, 40)];
    expect(await remote.score(sequences)).toEqual(await local.score(sequences));
    for (const engine of [local, remote]) {
      const { handle, scores } = await engine.forward(sequences);
      expect(
        await engine.backward(
          handle,
          scores.map(({ logp }) => ({ dLogp: logp.map(() => -0.5) })),
          "role:policy",
        ),
      ).toEqual({});
    }
    expect(await remote.weights.readGradient("role:policy", ["table"])).toEqual(await local.weights.readGradient("role:policy", ["table"]));
    const update = { rule: "sgd", rate: 0.1 } as const;
    expect(await remote.step({ set: "role:policy", update })).toEqual(await local.step({ set: "role:policy", update }));
    expect(await remote.weights.read(weights, ["table"])).toEqual(await local.weights.read(weights, ["table"]));
    expect(await remote.exportGradient("role:policy", "unused")).toBe(false);
    expect(await remote.usage()).toEqual(await local.usage());
    expect(remote.info).toEqual(local.info);
  });

  it("listens on a socket path too", async () => {
    const path = join(mkdtempSync(join(tmpdir(), "touchstone-test-")), "s");
    open.push(async () => rmSync(join(path, ".."), { recursive: true }));
    const remote = await loaded(await client(await serve(new BigramEngine(), { listen: { path } })));
    expect(await remote.score([sequence(1, 3)])).toHaveLength(1);
  });

  it("keeps two hundred calls in flight apart", async () => {
    const local = await loaded(new BigramEngine());
    const remote = await loaded(await client(await serve(new BigramEngine())));
    const calls = Array.from({ length: 200 }, (_, i) => i);
    const run = (engine: Engine) => (i: number) => (i % 2 === 0 ? engine.score([sequence(i, 1 + i)]) : all(engine.sample([request(i, 1 + (i % 17))])));
    expect(await Promise.all(calls.map(run(remote)))).toEqual(await Promise.all(calls.map(run(local))));
    expect(remote.liveness().pending).toEqual([]);
  });

  it("streams each answer when it is finished", async () => {
    const engine = await loaded(new BigramEngine());
    const remote = await client(await serve(engine));
    const long = { ...request(1, 1_000_000), stop: { ids: [] } };
    for await (const sample of remote.sample([long, { ...request(2, 3), stop: { ids: [] } }])) {
      expect(sample.index).toBe(1);
      break; // the first answer cannot finish before its million steps
    }
    expect(engine.steps).toBeLessThan(1_000_000);
  });

  it("carries megabytes both ways while other calls go on", async () => {
    const remote = await loaded(await client(await serve(new BigramEngine())));
    const long = sequence(3, 400_000);
    const [large, ...small] = await Promise.all([remote.score([long]), ...Array.from({ length: 20 }, (_, i) => remote.score([sequence(i, 2)]))]);
    expect(large?.[0]?.logp).toHaveLength(400_000);
    expect(small.map((scores) => scores?.[0]?.logp.length)).toEqual(new Array(20).fill(2));
  });

  it("lets errors keep their class, message and data", async () => {
    const remote = await client(await serve(new BigramEngine()));
    const failure = await remote.score([sequence(1, 2)]).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ArgumentError);
    expect(failure).toMatchObject({ message: "bigram engine: it has no role policy; load it first", data: { role: "policy" } });
    await expect(all(remote.sample([request(1, 2)]))).rejects.toThrow(ArgumentError);
  });

  it("tells what is pending, and is heard from while its thread is free", async () => {
    const engine = await loaded(new BigramEngine());
    const remote = await client(await serve(engine));
    const controller = new AbortController();
    const answer = all(remote.sample([{ ...request(1, 1_000_000_000), stop: { ids: [] } }], { signal: controller.signal }));
    answer.catch(() => undefined);
    await until(() => engine.steps > 0);
    expect(remote.liveness().pending).toEqual([{ call: "sample", elapsedMs: expect.any(Number) }]);
    const { silentMs } = remote.liveness();
    await until(() => remote.liveness().silentMs < silentMs); // no answer can have come: a beat did
    controller.abort();
    await expect(answer).rejects.toThrow();
  });

  it("names what an engine that is no replica lacks", async () => {
    const inner = new BigramEngine();
    const plain: Engine = {
      ...inner,
      weights: inner.weights,
      sample: inner.sample,
      score: inner.score,
      forward: inner.forward,
      backward: inner.backward,
      release: inner.release,
      step: inner.step,
      usage: inner.usage,
      close: inner.close,
    };
    const remote = await client(await serve(plain));
    await expect(remote.exportGradient("role:policy", "unused")).rejects.toThrow(CapabilityError);
  });
});

describe("cancelling", () => {
  it("reaches an engine that yields, and the caller gets the signal's reason", async () => {
    const engine = await loaded(new BigramEngine());
    const remote = await client(await serve(engine));
    const controller = new AbortController();
    const answer = all(remote.sample([{ ...request(1, 1_000_000_000), stop: { ids: [] } }], { signal: controller.signal }));
    answer.catch(() => undefined);
    await until(() => engine.steps > 3);
    controller.abort(new Error("enough"));
    await expect(answer).rejects.toThrow("enough");
    const { steps } = engine;
    await remote.usage();
    expect(engine.steps).toBe(steps);
  });

  it("before the call sends nothing", async () => {
    const remote = await client(await serve(new BigramEngine()));
    const signal = AbortSignal.abort(new Error("too late"));
    await expect(remote.score([sequence(1, 2)], undefined, { signal })).rejects.toThrow("too late");
    await expect(all(remote.sample([request(1, 2)], { signal }))).rejects.toThrow("too late");
  });

  it("happens by itself when a client goes, which also frees its forward passes", async () => {
    const engine = await loaded(new BigramEngine());
    const server = await serve(engine);
    const [leaving, staying] = [await client(server), await client(server)];
    await leaving.forward([sequence(1, 2)]);
    const kept = await staying.forward([sequence(2, 2)]);
    const answer = all(leaving.sample([{ ...request(1, 1_000_000_000), stop: { ids: [] } }]));
    answer.catch(() => undefined);
    await until(() => engine.steps > 3);
    await leaving.close();
    await expect(answer).rejects.toThrow("closed by this side");
    await until(() => engine.passes.size === 1);
    await staying.usage();
    const { steps } = engine;
    await staying.usage();
    expect(engine.steps).toBe(steps);
    expect(await staying.backward(kept.handle, [{}], "role:policy")).toEqual({});
  });
});

describe("connecting", () => {
  it("needs the token where one is set", async () => {
    const server = await serve(new BigramEngine(), { token: "secret" });
    expect((await client(server, { token: "secret" })).info.name).toBe("bigram");
    await expect(RemoteEngine.connect({ address: server.address, token: "guess" })).rejects.toThrow("token is missing or wrong");
    await expect(RemoteEngine.connect({ address: server.address })).rejects.toThrow(EngineError);
  });

  it("from other machines is not offered without a token", async () => {
    await expect(serve(new BigramEngine(), { listen: { host: "0.0.0.0", port: 0 } })).rejects.toThrow(ConfigError);
  });

  it("to nobody fails with the address", async () => {
    const server = await serve(new BigramEngine());
    await server.close();
    await expect(RemoteEngine.connect({ address: server.address })).rejects.toThrow(/127\.0\.0\.1:\d+: the connection failed/);
  });

  it("to a server that says nothing ends at the deadline", async () => {
    const { createServer } = await import("node:net");
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    open.push(async () => void silent.close());
    const { port } = silent.address() as { port: number };
    await expect(RemoteEngine.connect({ address: { host: "127.0.0.1", port }, deadlineMs: 50 })).rejects.toThrow("did not answer within 50 ms");
  });

  it("with another protocol is refused in one sentence, and the server goes on", async () => {
    const server = await serve(await loaded(new BigramEngine()));
    const socket = connect(server.address as { host: string; port: number });
    const [greeting] = encodeFrame({ type: "hello" }) as [Uint8Array];
    greeting[4] = 9;
    socket.write(greeting);
    const answer: Buffer[] = [];
    for await (const chunk of socket) answer.push(chunk as Buffer);
    expect(Buffer.concat(answer).toString("latin1")).toContain("speaks version 9");
    expect(await (await client(server)).score([sequence(1, 2)])).toHaveLength(1);
  });

  it("takes no large frame before the greeting, and none over the limit after it", async () => {
    const server = await serve(await loaded(new BigramEngine()), { frameLimit: 100_000 });
    await expect(RemoteEngine.connect({ address: server.address, token: "x".repeat(70_000) })).rejects.toThrow("over the limit of 65536");
    const remote = await client(server);
    await expect(remote.score([sequence(1, 40_000)])).rejects.toThrow("over the limit of 100000");
    await expect(remote.usage()).rejects.toThrow("over the limit");
    const modest = await client(server, { frameLimit: 50_000 });
    await expect(modest.score([sequence(1, 10_000)])).rejects.toThrow("over the limit of 50000");
  });
});

describe("an address", () => {
  it("is a host with a port or a path", () => {
    expect(parseAddress("127.0.0.1:7600")).toEqual({ host: "127.0.0.1", port: 7600 });
    expect(parseAddress("[::1]:80")).toEqual({ host: "::1", port: 80 });
    expect(parseAddress("./engine.sock")).toEqual({ path: "./engine.sock" });
    for (const wrong of ["7600", "localhost", "host:", "host:70000", "a:b:1", ""]) expect(() => parseAddress(wrong), wrong).toThrow(ConfigError);
  });
});

describe("a server that closes", () => {
  it("fails the pending calls, which are named", async () => {
    const engine = await loaded(new BigramEngine());
    const server = await serve(engine);
    const remote = await client(server);
    const answer = all(remote.sample([{ ...request(1, 1_000_000_000), stop: { ids: [] } }]));
    answer.catch(() => undefined);
    await until(() => engine.steps > 0);
    await server.close();
    await expect(answer).rejects.toThrow("closed the connection during sample");
    await expect(remote.usage()).rejects.toThrow(EngineError);
  });
});
