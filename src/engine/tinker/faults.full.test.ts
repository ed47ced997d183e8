/** What happens on the way to a server and in it, laid on a real server's paths: no hang beyond the deadline, no step lost, none made twice. */
import { afterEach, describe, expect, it } from "vitest";
import { baseFolder } from "../../../test/support/tinker-base.js";
import { type Fault, type StubOptions, TinkerStub } from "../../../test/support/tinker-stub.js";
import { plainContext } from "../../core/problem.js";
import type { SampleRequest, Sequence } from "../contract.js";
import type { Limits } from "./connection.js";
import type { TinkerEngine } from "./engine.js";
import type { TinkerOptions } from "./link.js";
import { connectTinker } from "./start.js";

const dialects = ["json", "protobuf"] as const;
const folder = baseFolder();
const limits: Limits = { deadlineMs: 4_000, requestMs: 400, pollMs: 300, awayMs: 3_000, pauseMs: 5 };
const sequence: Sequence = { context: plainContext([1, 2]), response: Int32Array.of(3, 4, 5), weights: { role: "policy" }, temperature: 1 };
const request: SampleRequest = {
  context: plainContext([3, 1]),
  weights: { role: "policy" },
  temperature: 1,
  maxTokens: 5,
  stop: { ids: [0] },
  key: [1, 2, 3, 4],
};

const open: { stub: TinkerStub; engine?: TinkerEngine }[] = [];
afterEach(async () => {
  for (const { stub, engine } of open.splice(0)) {
    await engine?.close();
    await stub.stop();
  }
});

interface Bench {
  readonly stub: TinkerStub;
  readonly engine: TinkerEngine;
  readonly notices: string[];
  /** One step of a rate of its own, along the log-probs of one sequence. */
  step(rate: number, dLogp?: number): Promise<string>;
  logp(): Promise<number[]>;
}

async function bench(options: StubOptions, more: Partial<TinkerOptions> = {}): Promise<Bench> {
  const stub = await TinkerStub.start(options);
  const kept: (typeof open)[number] = { stub };
  open.push(kept);
  const notices: string[] = [];
  const engine = await connectTinker({ baseUrl: stub.url, limits, onNotice: (text) => notices.push(text), ...more });
  kept.engine = engine;
  await engine.weights.load({ role: "policy", source: { from: "folder", path: folder }, trainable: true });
  return {
    stub,
    engine,
    notices,
    step: async (rate, dLogp = 1) => {
      const { handle } = await engine.forward([sequence]);
      await engine.backward(handle, [{ dLogp: Float64Array.of(dLogp, -0.5, 0.25) }], "role:policy");
      const result = await engine.step({ set: "role:policy", update: { rule: "adamw", rate } });
      return result.skipped ? "skipped" : result.weights;
    },
    logp: async () => [...(await engine.score([sequence]))[0].logp],
  };
}

const rates = [0.01, 0.02, 0.03, 0.04];

/** What the same steps give where nothing happens. */
async function expected(options: StubOptions): Promise<number[]> {
  const { step, logp } = await bench(options);
  for (const rate of rates) await step(rate);
  return logp();
}

const close = (found: readonly number[], wanted: readonly number[]): void => found.forEach((x, i) => expect(x).toBeCloseTo(wanted[i], 6));

describe.each(dialects)("a %s server", (dialect) => {
  const pass = "forward_backward";
  const laid: readonly [string, Fault][] = [
    ...[pass, "optim_step"].flatMap((path) =>
      (["lose", "drop", "silence", "half", "close", 408, 425, 429, 500, 503] as const).map((fault): [string, Fault] => [path, fault]),
    ),
    ...(["lose", "drop", "silence", "half", "close", "twice", "try_again", 408, 429, 500, 503, 410, 404] as const).map((fault): [string, Fault] => [
      "retrieve_future",
      fault,
    ]),
  ];

  it.each(laid)("that does this to a %s: %s, makes every step once", async (path, fault) => {
    const wanted = await expected({ dialect });
    const { stub, step, logp } = await bench({ dialect });
    await step(rates[0]);
    // Of a step's requests for results, the second is that of the backward pass, after the forward pass's.
    stub.lay(path, fault, { after: path === "retrieve_future" ? 1 : 0 });
    for (const rate of rates.slice(1)) expect(await step(rate)).toMatch(/^policy@\d$/);
    close(await logp(), wanted);
    // The model that is left has made each step once, whatever became of others.
    const [left] = [...stub.models.keys()];
    expect(stub.models.size).toBe(1);
    expect((stub.applied.get(left) ?? []).filter((rate) => rate > 0)).toEqual(rates);
  });

  it.each(["save_weights", "save_weights_for_sampler", "create_model", "load_weights", "asample", "unload_model"])(
    "that loses the answer to a %s is asked again",
    async (path) => {
      const { stub, engine, step } = await bench({ dialect }, { saveEvery: 1 });
      stub.lay(path, "lose");
      await step(0.01);
      for await (const sample of engine.sample([request])) expect(sample.ids.length).toBeGreaterThan(0);
      const copy = { role: "copy", source: { from: "role", role: "policy" }, trainable: true } as const;
      await engine.weights.load(copy);
      const [first, second] = await engine.score([sequence, { ...sequence, weights: { role: "copy" } }]);
      close([...second.logp], [...first.logp]);
      await engine.weights.unload("copy");
      expect(stub.calls.get(path)).toBeGreaterThanOrEqual(2);
    },
  );

  it("that says nothing for longer than the deadline ends the call with a sentence, and the next call goes on", async () => {
    const { stub, engine, logp } = await bench({ dialect });
    const before = await logp();
    stub.lay("retrieve_future", "silence", { times: 1_000 });
    await expect(logp()).rejects.toThrow(/forward was not done within 4 s.*raise engine.deadline_s/);
    await expect(engine.sample([request]).next()).rejects.toThrow(/save_weights_for_sampler was not done within 4 s/);
    stub.unlay();
    close(await logp(), before);
  });

  it("that is gone and comes back without its models is waited for, and the run goes on where it was", async () => {
    const wanted = await expected({ dialect });
    const { stub, step, logp, notices } = await bench({ dialect }, { saveEvery: 2 });
    for (const rate of rates.slice(0, 3)) await step(rate);
    await stub.stop();
    const last = step(rates[3]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await stub.listen();
    expect(await last).toBe("policy@4");
    close(await logp(), wanted);
    expect(notices.join("\n")).toMatch(/does not answer \(.*\): waiting up to 3 s for it/);
    expect(notices.join("\n")).toMatch(/the model of policy was loaded anew from tinker:.*, and 1 of its steps were made again/);
  });

  it("that stays away ends the call with a sentence", async () => {
    const { stub, logp } = await bench({ dialect });
    await stub.stop();
    await expect(logp()).rejects.toThrow(/it has not answered for 3 s .*; start it again, or give the address of another/);
  });

  it("that tells numbers that are none has the step left out, on weights as they were before it", async () => {
    const { stub, step, logp } = await bench({ dialect });
    await step(0.01);
    const before = await logp();
    stub.lay("retrieve_future", "null", { after: 1 });
    expect(await step(0.02)).toBe("skipped");
    close(await logp(), before);
    expect(await step(0.03)).toBe("policy@2");
    stub.lay("retrieve_future", "null");
    await expect(logp()).rejects.toThrow(/the log-prob of response token 0 under policy is NaN/);
  });

  it("that can never write a result down has the step left out", async () => {
    const { stub, step, logp } = await bench({ dialect });
    await step(0.01);
    const before = await logp();
    // Of a step two results are asked for; where one question's connection goes with the other's failure, its count begins anew.
    stub.lay("retrieve_future", 500, { after: 1, times: 40 });
    const outcome = await step(0.02);
    stub.unlay();
    expect(outcome).toBe("skipped");
    close(await logp(), before);
  });

  it("that says that an operation failed is asked for it three times, on a model loaded anew", async () => {
    const { stub, step } = await bench({ dialect });
    stub.lay("retrieve_future", "error", { after: 1, times: 2 });
    expect(await step(0.01)).toBe("policy@1");
    expect(stub.steps.length).toBeGreaterThanOrEqual(1);
    stub.lay("optim_step", 402, { times: 2 });
    expect(await step(0.02)).toBe("policy@2");
  });

  it("gets its models back when the engine closes, and keeps none of the probes", async () => {
    const { stub, engine } = await bench({ dialect });
    await engine.weights.load({ role: "other", source: { from: "folder", path: folder }, trainable: true });
    expect(stub.models.size).toBe(2);
    await engine.close();
    expect(stub.models.size).toBe(0);
  });

  it("that keeps one place for trainer and sampler: training goes on from its own weights, samples are of the last step", async () => {
    const { stub, engine, step, logp } = await bench({ dialect });
    const drawn = async (): Promise<number[]> => {
      for await (const { rawLogp, ids } of engine.sample([request])) {
        const [scored] = await engine.score([{ ...request, response: ids }]);
        close([...rawLogp], [...scored.logp]);
        return [...rawLogp];
      }
      return [];
    };
    const first = await drawn();
    await step(0.1);
    const between = await logp();
    expect(await drawn()).not.toEqual(first);
    close(await logp(), between);
    await step(0.1);
    await drawn();
    // Only the last sampler's checkpoint is left on the server.
    expect([...stub.checkpoints.keys()].filter((at) => at.includes("/sampler_weights/"))).toHaveLength(1);
  });
});
