import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { lax } from "../../test/support/lax-task.js";
import { snapshot } from "../../test/support/run-writer.js";
import { options, tablePolicy } from "../../test/support/tabular.js";
import { anyMethod } from "../methods/catalogue.js";
import { defineMethod } from "../methods/define.js";
import { dryRun } from "./dry-run.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});

/** Counts its setups and the steps that it was asked for, so that a stage can end by its metric. */
const counting = defineMethod<Record<string, never>, { setups: number; steps: number }>({
  name: "counting",
  initial: { setups: 0, steps: 0 },
  make: (_, state) => ({
    slots: {
      setup: { run: async () => state.set({ ...state.get(), setups: state.get().setups + 1 }) },
      observe: {
        run() {
          const next = { ...state.get(), steps: state.get().steps + 1 };
          state.set(next);
          return { "counting.setups": next.setups, "counting.steps": next.steps };
        },
      },
    },
  }),
});

const settings = (more: Partial<TrainOptions> = {}): TrainOptions =>
  options(model, {
    task: lax(),
    methods: [anyMethod(counting)],
    group: 8,
    problems: 12,
    steps: 6,
    checkpoint: { every: 1, keep_last: 100 },
    stages: [
      { method: "reinforce", steps: 2 },
      { method: ["grpo", "counting"], until: { metric: "counting.steps", at_least: 2 }, optimizer: "reset" },
      { method: "rloo+tis" },
    ],
    ...more,
  });
const events = (folder: string) => [...RunReader.open(folder).events()].filter(({ kind }) => kind !== "warning");
const metricsOf = (folder: string) =>
  events(folder).flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { readonly [name: string]: number }] : []));
/** AdamW steps behind an optimizer's state in a checkpoint. */
const optimizerSteps = (folder: string, step: number, file = "optimizer.safetensors"): number => {
  const bytes = readFileSync(join(RunReader.open(folder).checkpoints.pathOf(step), file));
  const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0))).toString()) as { __metadata__: { steps: string } };
  return Number(header.__metadata__.steps);
};

describe("stages", () => {
  let whole: { [path: string]: string };
  let folder: string;
  beforeAll(async () => {
    const run = settings();
    await train(run);
    folder = run.out;
    whole = snapshot(folder);
  });

  it("follow each other at the step that their ends say, each recorded with its reason", () => {
    expect(events(folder).map(({ kind, step, data }) => (kind === "stage" ? `stage ${step}: ${JSON.stringify(data)}` : `${kind} ${step}`))).toEqual([
      "start 0",
      "step 1",
      "step 2",
      'stage 2: {"ended":1,"method":"grpo+counting","optimizer":"reset","reason":"2 steps are done","stage":2}',
      "step 3",
      "step 4",
      'stage 4: {"ended":2,"method":"rloo+tis","optimizer":"keep","reason":"counting.steps is 2, at least 2","stage":3}',
      "step 5",
      "step 6",
      "end 6",
    ]);
    const metrics = metricsOf(folder).map((step) => Object.keys(step));
    expect(metrics.map((names) => names.includes("counting.steps"))).toEqual([false, false, true, true, false, false]);
    expect(metrics.map((names) => names.includes("tis.weight"))).toEqual([false, false, false, false, true, true]);
  });

  it("set up each method as its stage begins, once", () => {
    expect(metricsOf(folder)[2]?.["counting.setups"]).toBe(1);
  });

  it("reset the optimizer where they say so, and keep it elsewhere", () => {
    expect(metricsOf(folder).map(({ updates }) => updates)).toEqual([1, 1, 1, 1, 1, 1]);
    // The checkpoint of step 2 is that of the new stage.
    expect([1, 2, 3, 4, 5, 6].map((step) => optimizerSteps(folder, step))).toEqual([1, 0, 1, 2, 3, 4]);
  });

  it("go on byte for byte where a run was interrupted: in a stage, and just as one began", async () => {
    for (const stop of [1, 2, 3, 4, 5]) {
      const controller = new AbortController();
      const run = settings({ signal: controller.signal, onProgress: (progress) => progress.kind === "step" && progress.step === stop && controller.abort() });
      expect((await train(run)).reason).toBe("interrupted");
      expect(await resume(run.out, { task: lax(), methods: [anyMethod(counting)] })).toMatchObject({ reason: "done", steps: 6 });
      const is = snapshot(run.out);
      expect(Object.keys(whole).filter((path) => is[path] !== whole[path])).toEqual([]);
    }
  });

  it("end the run with the last of them, measured, and a resume finds nothing left to do", async () => {
    const run = settings({ steps: 50, stages: [{ steps: 1 }, { method: "dr-grpo", steps: 2 }], eval: { every: 50, problems: 2 } });
    const message = "the last of 2 stages ended after step 3";
    expect(await train(run)).toMatchObject({ reason: "done", steps: 3, message });
    expect(events(run.out).map(({ kind, step }) => `${kind} ${step}`)).toEqual([
      ...["start 0", "evaluation 0", "step 1", "stage 1", "step 2", "step 3", "stage 3", "evaluation 3", "end 3"],
    ]);
    expect(await resume(run.out, { task: lax() })).toMatchObject({ reason: "done", steps: 3, message });
  });

  it("of one method twice go on with its state: the epoch of problems goes on across the switch", async () => {
    const keys = async (more: Partial<TrainOptions>) => {
      const run = settings({ problems: 4, steps: 3, ...more });
      await train(run);
      return Promise.all([1, 2, 3].map(async (step) => [...(await RunReader.open(run.out).groups(step))].map(({ group }) => group.problem.key)));
    };
    const [staged, plain] = [await keys({ stages: [{ steps: 1 }, { steps: 1 }, {}] }), await keys({ stages: [{}] })];
    expect(staged).toEqual(plain);
    expect(staged.flat().sort()).toEqual(Array.from({ length: 12 }, (_, i) => `p${i}`).sort());
  });

  it("are in run.json and in a dry run with their tables", async () => {
    const { config, method } = JSON.parse(readFileSync(join(folder, "run.json"), "utf8"));
    expect(config.stages.map(({ method: uses }: { method: { name: string }[] }) => uses.map(({ name }) => name))).toEqual([
      ["reinforce"],
      ["grpo", "counting"],
      ["rloo", "tis"],
    ]);
    expect(config).not.toHaveProperty("method");
    expect(method.map((stage: { method: string; optimizer: string }) => `${stage.method} ${stage.optimizer}`)).toEqual([
      "reinforce keep",
      "grpo+counting reset",
      "rloo+tis keep",
    ]);
    const { stages } = await dryRun(settings());
    expect(stages[2]?.table.find(({ slot }) => slot === "credit")).toMatchObject({ from: "rloo", how: "prefers" });
    expect(stages[2]?.table.find(({ slot }) => slot === "shape")).toMatchObject({ from: "tis", how: "stage" });
  });
});

describe("stages that cannot be meant are refused", () => {
  const cases: readonly [string, Partial<TrainOptions>, string][] = [
    ["a method beside them", { method: "grpo" }, "method, stages: both are given; give the method of each stage under stages, and leave method out"],
    ["none", { stages: [] }, "train, option stages: got an empty list; give a list of at least 1"],
    ["an end without a bound", { stages: [{ until: { metric: "reward" } }] }, "give at_least or at_most beside the metric"],
    ["an unknown method", { stages: [{}, { method: "gpro" }] }, 'stages[1].method: there is no method "gpro"; did you mean "grpo"?'],
    [
      "methods that clash",
      { stages: [{ method: "dapo+reinforce" }] },
      "method dapo+reinforce: dapo drops groups whose rewards are equal, and reinforce learns from them",
    ],
  ];
  it.each(cases)("%s", async (_, more, sentence) => {
    await expect(train(settings(more))).rejects.toThrow(sentence);
  });

  it("optimizer state that another rule could not read", async () => {
    const sgd = defineMethod({ name: "plain-sgd", make: () => ({ slots: { optimizer: { owns: { module: "sgd", options: {} } } } }) });
    const of = (optimizer: "keep" | "reset") => settings({ methods: [anyMethod(sgd)], steps: 2, stages: [{ steps: 1 }, { method: "plain-sgd", optimizer }] });
    await expect(train(of("keep"))).rejects.toThrow("stages[1].optimizer: it is keep, and the optimizer changes from adamw to sgd; set it to reset");
    expect(await train(of("reset"))).toMatchObject({ reason: "done", steps: 2 });
  });
});

it("a stage that resets forgets the optimizers of all roles that learn", async () => {
  const run = settings({
    methods: [],
    steps: 3,
    stages: [
      { method: "ppo", steps: 2 },
      { method: "ppo", optimizer: "reset" },
    ],
  });
  await train(run);
  expect([1, 2, 3].map((step) => optimizerSteps(run.out, step, join("roles", "critic.optimizer.safetensors")))).toEqual([1, 0, 1]);
});
