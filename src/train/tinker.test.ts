/** Runs on a server of the Tinker protocol: the same run folder, steps made once whatever happens, and refusals before any work. */
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import even from "../../test/support/even-task.js";
import { scratch } from "../../test/support/tabular.js";
import { baseFolder } from "../../test/support/tinker-base.js";
import { type StubOptions, TinkerStub } from "../../test/support/tinker-stub.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

const stubs: TinkerStub[] = [];
afterEach(async () => {
  await Promise.all(stubs.splice(0).map((stub) => stub.stop()));
});

async function serve(options: Partial<StubOptions> = {}): Promise<TinkerStub> {
  const stub = await TinkerStub.start({ dialect: "protobuf", ...options });
  stubs.push(stub);
  return stub;
}

const model = baseFolder();
const on = (stub: TinkerStub, more: Partial<TrainOptions> = {}): TrainOptions => ({
  model,
  out: join(scratch(), "run"),
  task: even(),
  engine: { name: "tinker", base_url: stub.url, away_s: 5, deadline_s: 20 },
  steps: 5,
  problems: 3,
  group: 4,
  lr: 0.1,
  checkpoint: { every: 2, keep_last: 100 },
  verifier_workers: 0,
  ...more,
});

type Step = { readonly [name: string]: number };
const stepsOf = (folder: string): Step[] => [...RunReader.open(folder).events()].flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as Step] : []));

/** Numbers of two runs agree to what a server's rounding leaves. */
function alike(folder: string, other: string): void {
  const [own, their] = [stepsOf(folder), stepsOf(other)];
  expect(own).toHaveLength(their.length);
  own.forEach((metrics, i) => {
    for (const name of ["reward", "grad_norm", "tokens_mean", "updates"])
      expect(metrics[name], `${name} of step ${i + 1}`).toBeCloseTo(their[i][name] as number, 4);
  });
}

describe.each(["json", "protobuf"] as const)("a run on a %s server", (dialect) => {
  it("writes a run folder, learns, and gives its models back", async () => {
    const stub = await serve({ dialect });
    const run = on(stub, { steps: 12, group: 8, lr: 0.3, eval: { every: 12, problems: 4, greedy: true } });
    const result = await train(run);
    expect(result.reason).toBe("done");
    const steps = stepsOf(run.out);
    const mean = (some: readonly Step[]): number => some.reduce((sum, { reward }) => sum + (reward as number), 0) / some.length;
    expect(mean(steps.slice(-3))).toBeGreaterThan(mean(steps.slice(0, 3)) + 0.1);
    expect(steps[0]?.gap_mean).toBeLessThan(1e-5);
    expect(steps[0]).not.toHaveProperty("entropy");
    expect(result.evaluation["eval.score"]).toBeGreaterThan(0);
    expect(stub.models.size).toBe(0);
    const { config, fingerprint } = RunReader.open(run.out).run as unknown as { config: { max_norm?: number }; fingerprint: { engine: { server: object } } };
    expect(config.max_norm).toBeUndefined();
    expect(fingerprint.engine.server).toMatchObject({ dialect, deduplicates: dialect === "protobuf", resets: dialect === "protobuf", moments: true });
  });

  it("that is interrupted goes on where it was, at another address too", async () => {
    const stub = await serve({ dialect });
    const whole = on(stub);
    await train(whole);
    const stop = new AbortController();
    const run = on(stub, { signal: stop.signal, onProgress: (progress) => void (progress.kind === "step" && progress.step === 3 && stop.abort()) });
    expect((await train(run)).reason).toBe("interrupted");
    await stub.stop();
    stub.port = 0;
    await stub.listen();
    const messages: string[] = [];
    const onProgress: TrainOptions["onProgress"] = (progress) => void (progress.kind === "message" && messages.push(progress.text));
    await expect(resume(run.out, { task: even(), baseUrl: "ftp://nowhere" })).rejects.toThrow(/engine.base_url/);
    expect((await resume(run.out, { task: even(), baseUrl: stub.url, onProgress })).reason).toBe("done");
    alike(run.out, whole.out);
    expect(messages.join("\n")).toContain("This resume repeats a run within rounding, not byte by byte");
    expect(stub.models.size).toBe(0);
  });

  it("whose server goes away pauses with a line, goes on when it is back, and makes no step twice", async () => {
    const stub = await serve({ dialect });
    const whole = on(stub);
    await train(whole);
    const messages: string[] = [];
    const run = on(stub, {
      onProgress: (progress) => {
        if (progress.kind === "message") messages.push(progress.text);
        // In the middle of a step: answers are drawn, and the update is not made.
        if (progress.kind === "await" && progress.what === "updates" && !messages.includes("stopped") && stepsSoFar === 2) {
          messages.push("stopped");
          void stub.stop().then(() => setTimeout(() => void stub.listen(), 400));
        }
        if (progress.kind === "step") stepsSoFar = progress.step;
      },
    });
    let stepsSoFar = 0;
    expect((await train(run)).reason).toBe("done");
    expect(messages.join("\n")).toMatch(/does not answer \(.*\): waiting up to 5 s for it/);
    expect(messages.join("\n")).toMatch(/the model of policy was loaded anew from tinker:/);
    alike(run.out, whole.out);
  });
});

describe("what a run asks of a server that would do otherwise", () => {
  const refused = async (more: Partial<TrainOptions>, says: RegExp, options: Partial<StubOptions> = {}): Promise<void> => {
    const stub = await serve(options);
    const run = on(stub, more);
    await expect(train(run)).rejects.toThrow(says);
    // The probes of the start have rates of their own.
    expect(stub.steps).not.toContain(0.1);
    expect(stub.models.size).toBe(0);
    expect(() => RunReader.open(run.out)).toThrow();
  };
  const url = { name: "tinker", base_url: "http://127.0.0.1:1" } as const;

  it.each([
    ["a gradient norm", { max_norm: 1 }, /max_norm: engine tinker cannot do optimizer.clip/],
    ["a temperature", { temperature: 0.7 }, /temperature 0.7: engine tinker cannot do sample.temperature/],
    ["SGD", { optimizer: { rule: "sgd" } }, /optimizer of options: this engine has no "sgd"; use adamw/],
    ["a restricted evaluation", { eval: { every: 1, top_p: 0.9 } }, /eval: engine tinker cannot do sample.truncation/],
    ["batches drawn ahead", { overlap: 1 }, /drawing batches ahead needs snapshots of the engine tinker/],
    ["a merged model", { save: {} }, /save.form: it is merged, and the base's weights are on the server; set it to adapter/],
    ["an alpha", { lora: { alpha: 8 } }, /lora.alpha: adapters of the engine tinker are the server's, which takes their rank alone; leave it out/],
    ["a base", { base: "other" }, /option base: the base is the server's; leave it out/],
    ["threads", { engine: { ...url, threads: 2 } }, /engine.threads: it is 2, and the engine tinker runs on a server; set it to 1/],
    ["activations", { engine: { ...url, activations: "keep" } }, /engine.activations: it belongs to the engine onnx, and this is tinker; leave it out/],
    ["no address", { engine: { name: "tinker" } }, /engine.base_url: it is missing; give the server's address/],
    ["a key that is not there", { engine: { ...url, key_env: "NO_SUCH_KEY" } }, /engine.key_env: there is no environment variable NO_SUCH_KEY/],
  ] as [string, Partial<TrainOptions>, RegExp][])("%s is refused before any work", (_, more, says) => refused(more, says));

  it("a server's address is refused where the engine is here", async () => {
    await expect(train({ ...on(await serve()), engine: { name: "onnx", base_url: "http://127.0.0.1:1" } })).rejects.toThrow(
      /engine.base_url: it belongs to the engine tinker, and this is onnx; leave it out/,
    );
  });

  it("another base is refused", () => refused({}, /engine.served_model: the server at .* trains a, b; name the one to be trained/, { models: ["a", "b"] }));

  const stages = [
    { method: "grpo", steps: 1 },
    { method: "grpo", optimizer: "reset" as const },
  ];
  it("a new optimizer is refused where the server keeps the old one", () =>
    refused({ stages }, /stages, optimizer reset: engine tinker cannot do optimizer.reset \(this server loads a checkpoint with its optimizer/, {
      dialect: "json",
    }));

  it("betas are refused where the server goes by its own, and left out where nobody wrote them", async () => {
    await refused({ optimizer: { beta2: 0.99 } }, /optimizer: engine tinker cannot do optimizer.moments \(this server takes the rate/, { ownNumbers: true });
    const stub = await serve({ ownNumbers: true });
    expect((await train(on(stub, { steps: 1 }))).reason).toBe("done");
  });
});
