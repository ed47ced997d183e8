import { beforeAll, describe, expect, it } from "vitest";
import { lax } from "../../test/support/lax-task.js";
import { snapshot } from "../../test/support/run-writer.js";
import { type Schedule, ScheduledEngine } from "../../test/support/scheduled-engine.js";
import { options, tablePolicy } from "../../test/support/tabular.js";
import type { Engine } from "../engine/contract.js";
import { PoolEngine } from "../engine/remote/pool.js";
import { TableEngine } from "../engine/table/engine.js";
import { anyMethod } from "../methods/catalogue.js";
import { defineMethod } from "../methods/define.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});

const schedules: readonly Schedule[] = ["samples first", "trains first", "one at a time", "keyed"];

/** Six steps of two updates; three batches make an epoch. */
const settings = (more: Partial<TrainOptions> = {}): TrainOptions =>
  options(model, {
    task: lax(),
    steps: 6,
    minibatches: 2,
    overlap: 1,
    eval: { every: 3, problems: 2, samples: 2 },
    method: { name: "grpo", options: { kl_coef: 0.01 } },
    ...more,
  });

const events = (folder: string) => [...RunReader.open(folder).events()];
const metricsOf = (folder: string) =>
  events(folder).flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { readonly [name: string]: number }] : []));
const groupsOf = async (folder: string, step: number) => (await RunReader.open(folder).groups(step)).map(({ group }) => group);

/** The files of a run. */
async function filesOf(more: Partial<TrainOptions>): Promise<{ [path: string]: string }> {
  const run = settings(more);
  await train(run);
  return snapshot(run.out);
}

/** Names of the files that one run has otherwise than another; of checkpoints only those that both have. */
function differing(whole: { [path: string]: string }, is: { [path: string]: string }): string[] {
  const extra = Object.keys(is).filter((path) => whole[path] === undefined && !path.startsWith("checkpoints/"));
  return [...Object.keys(whole).filter((path) => is[path] !== whole[path]), ...extra];
}

describe("with overlap k", () => {
  it.each([1, 2])("= %d, step n trains on answers of the weights after step n - 1 - k, the first k + 1 on those of the start", async (overlap) => {
    const run = settings({ overlap });
    await train(run);
    for (let step = 1; step <= 6; step++) {
      const from = Math.max(0, step - 1 - overlap);
      for (const { trajectories } of await groupsOf(run.out, step)) {
        for (const { policyVersion, behaviour, old } of trajectories) {
          expect({ policyVersion, weights: behaviour.conditions.weights, old }).toEqual({
            policyVersion: 2 * from,
            weights: `policy@${2 * from}`,
            old: undefined,
          });
        }
      }
    }
    expect(metricsOf(run.out).map(({ lag }) => lag)).toEqual([1, 2, 3, 4, 5, 6].map((step) => Math.min(overlap, step - 1)));
  });

  it("= 0 nothing changes, and nothing says that there could be any", async () => {
    const whole = await filesOf({ overlap: 0 });
    const { overlap: _, ...without } = settings();
    await train(without);
    expect(differing(whole, snapshot(without.out))).toEqual([]);
    expect(Object.keys(whole).filter((path) => path.includes("ahead"))).toEqual([]);
    expect(metricsOf(without.out)[0]).not.toHaveProperty("lag");
  });

  it("the first batch is the one of a run without, and each step has the same problems", async () => {
    const [ahead, plain] = [settings(), settings({ overlap: 0 })];
    await train(ahead);
    await train(plain);
    const path = "rollouts/columns/00000001.safetensors";
    expect(snapshot(ahead.out)[path]).toBe(snapshot(plain.out)[path]);
    expect(snapshot(ahead.out)[path.replace("1", "3")]).not.toBe(snapshot(plain.out)[path.replace("1", "3")]);
    for (const step of [2, 3, 6])
      expect((await groupsOf(ahead.out, step)).map(({ key }) => key)).toEqual((await groupsOf(plain.out, step)).map(({ key }) => key));
  });

  it.each([1, 2])("= %d, no byte depends on what is done first", async (overlap) => {
    for (const method of [settings().method, "dapo+tis"] as const) {
      const whole = await filesOf({ overlap, method });
      for (const schedule of schedules) {
        expect({ method, schedule, differ: differing(whole, await filesOf({ overlap, method, engine: new ScheduledEngine(schedule) })) }).toEqual({
          method,
          schedule,
          differ: [],
        });
      }
    }
  });

  it("no byte depends on the number of verifier workers", async () => {
    const more = { task: "test/support/successor-task.ts", overlap: 2, steps: 3 };
    const whole = await filesOf({ ...more, verifier_workers: 0 });
    expect(differing(whole, await filesOf({ ...more, verifier_workers: 2 }))).toEqual([]);
  });
});

describe("a resumed run with overlap is the run that was never interrupted, byte for byte", () => {
  type When = (kind: string, finished: number, what?: string) => boolean;
  const moments: readonly (readonly [string, When])[] = [
    ["before the first step", (kind) => kind === "checkpoint"],
    ["during the first step", (_, step, what) => step === 0 && what === "updates"],
    ["after the first step", (kind, step) => kind === "step" && step === 1],
    ["after step 2, at a checkpoint", (kind, step) => kind === "step" && step === 2],
    ["at the end of an epoch", (kind, step) => kind === "step" && step === 3],
    ["with fewer batches in flight than there are steps of overlap", (kind, step) => kind === "step" && step === 5],
  ];
  const methods: { readonly [name: string]: Partial<TrainOptions> } = {
    "grpo with a KL": {},
    "dapo+tis": { method: "dapo+tis" },
    "a selection that learns": { method: ["grpo", "learning"] },
  };

  for (const overlap of [1, 2]) {
    it.each(Object.keys(methods))(`overlap ${overlap}, %s, whenever it is interrupted`, async (name) => {
      const more = { overlap, methods: [anyMethod(learning)], ...methods[name] };
      const whole = await filesOf(more);
      for (const [moment, when] of name === "dapo+tis" ? moments.slice(3) : moments) {
        const out = await interrupted(more, when);
        await resume(out, { task: lax(), methods: [anyMethod(learning)] });
        expect({ moment, differ: differing(whole, snapshot(out)) }).toEqual({ moment, differ: [] });
      }
    });
  }

  it("again and again", async () => {
    const whole = await filesOf({ overlap: 2 });
    const out = await interrupted({ overlap: 2 }, (kind, step) => kind === "step" && step === 1);
    for (const last of [2, 3, 5]) {
      const controller = new AbortController();
      await resume(out, { task: lax(), signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === last && controller.abort() });
    }
    await resume(out, { task: lax() });
    expect(differing(whole, snapshot(out))).toEqual([]);
  });

  it("from the checkpoint before, when it died in a step or while a checkpoint was written", async () => {
    const whole = await filesOf({ overlap: 2 });
    for (const at of [
      { call: "step", count: 7 },
      { call: "saveOptimizer", count: 3 },
    ]) {
      const run = settings({ overlap: 2, engine: dying(at.call, at.count) });
      await expect(train(run)).rejects.toThrow("died");
      await resume(run.out, { task: lax(), engine: new TableEngine() });
      const files = snapshot(run.out);
      expect(differing(whole, files)).toEqual([]);
    }
  });

  it("where an evaluation was cut short, also when the resume that makes up for it is interrupted at once", async () => {
    const whole = await filesOf({ overlap: 2 });
    const out = await interrupted({ overlap: 2 }, (kind, step, what) => step === 2 && kind === "await" && what === "evaluation");
    const controller = new AbortController();
    const again = { task: lax(), signal: controller.signal, onProgress: ({ kind }: { readonly kind: string }) => kind === "checkpoint" && controller.abort() };
    expect(await resume(out, again)).toMatchObject({ reason: "interrupted", steps: 3 });
    await resume(out, { task: lax() });
    expect(differing(whole, snapshot(out))).toEqual([]);
  });

  it("with several workers as one engine", async () => {
    const engine = (): Engine => new PoolEngine([new ScheduledEngine("keyed"), new TableEngine()]);
    const whole = await filesOf({ engine: engine(), overlap: 2 });
    const out = await interrupted({ engine: engine(), overlap: 2 }, (kind, step) => kind === "step" && step === 3);
    await resume(out, { task: lax(), engine: engine() });
    expect(differing(whole, snapshot(out))).toEqual([]);
  });

  async function interrupted(more: Partial<TrainOptions>, when: When): Promise<string> {
    const controller = new AbortController();
    let finished = 0;
    const run = settings({
      ...more,
      signal: controller.signal,
      onProgress: (progress) => {
        if (progress.kind === "step") finished = progress.step;
        if (when(progress.kind, finished, progress.kind === "await" ? progress.what : undefined)) controller.abort();
      },
    });
    expect((await train(run)).reason).toBe("interrupted");
    return run.out;
  }

  /** An engine whose call dies the n-th time. */
  function dying(call: string, count: number): Engine {
    const engine = new TableEngine();
    const owner = (call in engine ? engine : engine.weights) as unknown as { [call: string]: (...args: unknown[]) => unknown };
    const before = (owner[call] as (...args: unknown[]) => unknown).bind(owner);
    let calls = 0;
    owner[call] = (...args) => {
      if (++calls === count) throw new Error("died");
      return before(...args);
    };
    return engine;
  }
});

/** Learns how often each problem was solved, and hands problems out in an order that depends on it; its rollouts say what was known. */
const learning = defineMethod<Record<string, never>, { cursor: number; seen: { [problem: string]: number }; trained: number }>({
  name: "learning",
  initial: { cursor: 0, seen: {}, trained: 0 },
  make: (_, state) => ({
    slots: {
      select: {
        owns: {
          propose(n, { problems }) {
            const { cursor, seen } = state.get();
            state.set({ ...state.get(), cursor: cursor + n });
            const known = Object.keys(seen).length;
            return Array.from({ length: n }, (_, i) => problems.get((cursor + i + known) % problems.size));
          },
          learn(outcomes) {
            const seen = { ...state.get().seen };
            for (const { problem, trajectories } of outcomes)
              seen[problem.key] = (seen[problem.key] ?? 0) + trajectories.filter(({ verdict }) => verdict.kind === "accept").length;
            state.set({ ...state.get(), seen });
          },
        },
      },
      observe: {
        run() {
          state.set({ ...state.get(), trained: state.get().trained + 1 });
          return { "learning.cursor": state.get().cursor, "learning.trained": state.get().trained, "learning.known": Object.keys(state.get().seen).length };
        },
      },
    },
  }),
});
