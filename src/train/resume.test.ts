import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { snapshot } from "../../test/support/run-writer.js";
import { options, successor, tablePolicy } from "../../test/support/tabular.js";
import type { Engine } from "../engine/contract.js";
import { PoolEngine } from "../engine/remote/pool.js";
import { TableEngine } from "../engine/table/engine.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

const steps = 6;
let model: string;
let whole: { [path: string]: string };

/** A run of six steps with three minibatches each; twelve problems by four a step make an epoch of three steps. */
const settings = (more: Partial<TrainOptions> = {}): TrainOptions =>
  options(model, {
    steps,
    minibatches: 2,
    epochs: 2,
    eval: { every: 3, problems: 2, samples: 2 },
    method: { name: "grpo", options: { kl_coef: 0.01 } },
    ...more,
  });

/** Starts a run that is interrupted when a progress report says so. */
async function interruptedWhen(test: (kind: string, step: number, what?: string) => boolean, engine: Engine = new TableEngine()): Promise<string> {
  const controller = new AbortController();
  let finished = 0;
  const run = settings({
    engine,
    signal: controller.signal,
    onProgress: (progress) => {
      if (progress.kind === "step") finished = progress.step;
      if (test(progress.kind, finished, progress.kind === "await" ? progress.what : undefined)) controller.abort();
    },
  });
  const result = await train(run);
  expect(result.reason).toBe("interrupted");
  return run.out;
}

/** What must be equal: logs, columns, and the checkpoints that both have. */
function same(folder: string): void {
  const is = snapshot(folder);
  expect(Object.keys(whole).filter((path) => is[path] !== whole[path])).toEqual([]);
  const extra = Object.keys(is).filter((path) => whole[path] === undefined);
  expect(extra.filter((path) => !path.startsWith("checkpoints/"))).toEqual([]);
}

beforeAll(async () => {
  model = await tablePolicy();
  const run = settings();
  await train(run);
  whole = snapshot(run.out);
  expect(Object.keys(whole).filter((path) => path.endsWith("checkpoint.json"))).toHaveLength(5); // 0, 2, 3, 4, 6
});

describe("a resumed run is the run that was never interrupted, byte for byte", () => {
  it.each([
    ["before the first step", (kind: string) => kind === "checkpoint"],
    ["during the first step", (_: string, step: number, what?: string) => step === 0 && what === "updates"],
    ["after step 2, with problems of the epoch left", (kind: string, step: number) => kind === "step" && step === 2],
    ["at the end of an epoch", (kind: string, step: number) => kind === "step" && step === 3],
    ["between checkpoints", (kind: string, step: number) => kind === "step" && step === 5],
    ["while the start is evaluated", (_: string, step: number, what?: string) => step === 0 && what === "evaluation"],
    ["while step 3 is evaluated", (_: string, step: number, what?: string) => step === 2 && what === "evaluation"],
    ["while the last step is evaluated", (_: string, step: number, what?: string) => step === 5 && what === "evaluation"],
  ])("%s", async (_, test) => {
    const folder = await interruptedWhen(test);
    const result = await resume(folder, { task: successor() });
    expect(result).toMatchObject({ reason: "done", steps });
    same(folder);
  });

  it("where an evaluation was cut short after some of its answers, which is recorded", async () => {
    const controller = new AbortController();
    const evaluated: number[] = [];
    const run = settings({
      engine: new TableEngine(),
      signal: controller.signal,
      eval: { every: 3, problems: 4, samples: 50 },
      onProgress: (progress) => {
        if (progress.kind !== "await" || progress.what !== "evaluation" || progress.done === undefined) return;
        evaluated.push(progress.done);
        if (progress.done === 3) controller.abort();
      },
    });
    expect(await train(run)).toMatchObject({
      reason: "interrupted",
      message: expect.stringContaining("interrupted after step 0 of 6, while it was evaluated"),
    });
    expect(Math.max(...evaluated)).toBeLessThan(200);
    const said = [...RunReader.open(run.out).events()].map(({ kind, data }) => `${kind} ${String(data.message)}`);
    expect(said).toContain("warning the evaluation after step 0 was cut short");
    await resume(run.out, { task: successor() });
    const full = settings({ eval: { every: 3, problems: 4, samples: 50 } });
    await train(full);
    const [is, expected] = [snapshot(run.out), snapshot(full.out)];
    expect(Object.keys(expected).filter((path) => is[path] !== expected[path])).toEqual([]);
  });

  it("after the last step there is nothing left to do, and nothing changes", async () => {
    const run = settings();
    await train(run);
    expect(await resume(run.out, { task: successor() })).toMatchObject({ reason: "done", steps, updates: 24 });
    same(run.out);
  });

  it("with several workers as one engine: each of them goes on with the weights' identity", async () => {
    const pool = (): PoolEngine => new PoolEngine([new TableEngine(), new TableEngine()]);
    const run = settings({ engine: pool() });
    await train(run);
    const expected = snapshot(run.out);
    const folder = await interruptedWhen((kind, step) => kind === "step" && step === 3, pool());
    await resume(folder, { task: successor(), engine: pool() });
    const is = snapshot(folder);
    expect(Object.keys(expected).filter((path) => is[path] !== expected[path])).toEqual([]);
  });

  it("from the checkpoint before a damaged one", async () => {
    const folder = await interruptedWhen((kind, step) => kind === "step" && step === 5);
    const path = join(RunReader.open(folder).checkpoints.pathOf(5), "optimizer.safetensors");
    writeFileSync(path, "damaged");
    const messages: string[] = [];
    await resume(folder, { task: successor(), onProgress: (progress) => progress.kind === "message" && messages.push(progress.text) });
    expect(messages.join(" ")).toMatch(/Skipped a checkpoint: .*optimizer.safetensors.* Resuming from the checkpoint of step 4\./);
    same(folder);
  });

  it("is refused with other data, and for a folder that is no run", async () => {
    const folder = await interruptedWhen((kind, step) => kind === "step" && step === 2);
    const other = { ...successor(), problems: (...args: Parameters<ReturnType<typeof successor>["problems"]>) => [...successor().problems(...args)].reverse() };
    await expect(resume(folder, { task: other })).rejects.toThrow("its data set has changed since it began; give the data it began with, or start a new run");
    await expect(resume(mkdtempSync(join(tmpdir(), "empty-")))).rejects.toThrow("it is not the folder of a run");
    await expect(train({ ...settings(), out: folder })).rejects.toThrow("it already holds a run; resume it with --resume, or give another folder");
  });
});

it("a new run from the policy of a checkpoint takes its weights, to the byte, and nothing of its optimizer", async () => {
  const first = settings();
  const { model: trained } = await train(first);
  const run = settings({ model: trained, steps: 2 });
  await train(run);
  const files = snapshot(run.out);
  expect(files["checkpoints/00000000/policy/model.safetensors"]).toBe(whole["checkpoints/00000006/policy/model.safetensors"]);
  expect(files["checkpoints/00000000/optimizer.safetensors"]).toBe(whole["checkpoints/00000000/optimizer.safetensors"]);
  expect(whole["checkpoints/00000006/optimizer.safetensors"]).not.toBe(whole["checkpoints/00000000/optimizer.safetensors"]);
});

it("a run's checkpoint can be named as the policy or the reference of another run, which records its folder", async () => {
  const first = settings();
  const { model: trained } = await train(first);
  const named = settings({
    model: `${first.out}@last`,
    steps: 1,
    roles: { reference: { model: `${first.out}@first` } },
    method: { name: "grpo", options: { kl_coef: 0.1 } },
  });
  await train(named);
  const { config } = RunReader.open(named.out).run as unknown as { config: { model: string; roles: object } };
  expect(config).toMatchObject({ model: trained, roles: { reference: { model: join(first.out, "checkpoints", "00000000", "policy") } } });
  await expect(train(settings({ model: `${first.out}@5` }))).rejects.toThrow(/@5: there is no checkpoint 5; give one of 0, .*first, last or best$/);
});

it("another seed, and only another seed, gives other rollouts", async () => {
  const again = settings();
  await train(again);
  same(again.out);
  const other = settings({ seed: 1 });
  await train(other);
  expect(snapshot(other.out)["events.jsonl"]).not.toBe(whole["events.jsonl"]);
});
