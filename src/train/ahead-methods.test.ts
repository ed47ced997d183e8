/** What methods, stages and failures see of batches that are drawn ahead. */
import { setTimeout } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { lax } from "../../test/support/lax-task.js";
import { snapshot } from "../../test/support/run-writer.js";
import { type Schedule, ScheduledEngine } from "../../test/support/scheduled-engine.js";
import { options, tablePolicy } from "../../test/support/tabular.js";
import type { Json } from "../core/json.js";
import type { CallOptions, SampleRequest } from "../engine/contract.js";
import { TableEngine } from "../engine/table/engine.js";
import { drawGroups } from "../methods/base.js";
import { anyMethod } from "../methods/catalogue.js";
import type { Cell, Slots } from "../methods/contract.js";
import { defineMethod } from "../methods/define.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

let model: string;
beforeAll(async () => {
  model = await tablePolicy();
});

const settings = (more: Partial<TrainOptions> = {}): TrainOptions => options(model, { task: lax(), group: 8, steps: 4, overlap: 1, ...more });
/** Settings with a method of one's own beside GRPO. */
function having<S extends Json>(initial: S, slots: (state: Cell<S>) => Slots, more: Partial<TrainOptions> = {}): TrainOptions {
  const own = defineMethod<Record<string, never>, S>({ name: "own", initial, make: (_, state) => ({ slots: slots(state) }) });
  return settings({ methods: [anyMethod(own)], method: ["grpo", "own"], ...more });
}
const events = (folder: string) => [...RunReader.open(folder).events()];
const stepsOf = (folder: string) => events(folder).filter(({ kind }) => kind === "step");
const metricsOf = (folder: string) => stepsOf(folder).map(({ data }) => data.metrics as { readonly [name: string]: number });
const trajectories = async (folder: string, step: number) => (await RunReader.open(folder).groups(step)).flatMap(({ group }) => group.trajectories);

/** The table engine with samples that are changed, put off or refused. */
class Sampler extends TableEngine {
  constructor(private readonly act: (request: SampleRequest, options: CallOptions | undefined) => number | Promise<number>) {
    super();
  }

  override async *sample(requests: readonly SampleRequest[], options?: CallOptions): ReturnType<TableEngine["sample"]> {
    const off: number[] = [];
    for (const request of requests) off.push(await this.act(request, options));
    for await (const answer of super.sample(requests, options)) yield { ...answer, logp: answer.logp.map((x) => x - (off[answer.index] as number)) };
  }
}

describe("the ratio of a stale batch", () => {
  it("is to the weights that sampled it", async () => {
    const run = settings();
    await train(run);
    const ratios = metricsOf(run.out).map(({ ratio_max }) => ratio_max as number);
    expect(ratios[0]).toBe(1);
    for (const ratio of ratios.slice(1)) expect(ratio).toBeGreaterThan(1.001);
    for (const { old } of await trajectories(run.out, 3)) expect(old).toBeUndefined();
  });

  it("is to the present weights under TIS, whose weights are the distance of the two", async () => {
    const run = settings({ method: "grpo+tis" });
    await train(run);
    for (const [i, metrics] of metricsOf(run.out).entries()) {
      expect(metrics.ratio_max).toBe(1);
      if (i === 0) expect(metrics["tis.weight"]).toBe(1);
      else expect(Math.abs((metrics["tis.weight"] as number) - 1)).toBeGreaterThan(1e-6);
    }
    const engine = new TableEngine();
    const { checkpoints } = RunReader.open(run.out);
    await engine.weights.load({ role: "policy", source: { from: "folder", path: `${checkpoints.pathOf(2)}/policy` }, trainable: false });
    for (const { old, behaviour, response, trainedUnder } of await trajectories(run.out, 3)) {
      expect([behaviour, old].map((logp) => logp?.conditions.weights)).toEqual(["policy@1", "policy@2"]);
      const [scores] = await engine.score([{ context: trainedUnder, response, weights: { role: "policy" }, temperature: 1 }]);
      expect(old?.values).toEqual(scores?.logp);
    }
  });

  it("has old log-probs of the weights that sampled it where it is trained under another temperature", async () => {
    const run = having(null, () => ({ prepare: { run: (request) => ({ ...request, temperature: 1.5 }) } }));
    await train(run);
    for (const { old, behaviour } of await trajectories(run.out, 4)) {
      expect([behaviour.conditions, old?.conditions]).toEqual([
        { context: "plain", weights: "policy@2", temperature: 1.5 },
        { context: "plain", weights: "policy@2", temperature: 1 },
      ]);
    }
  });
});

it("where a step makes no update, weights keep their name, and what they sampled is trained as theirs", async () => {
  const run = having(
    null,
    () => ({
      adjust: { run: (_, rewards, lab) => (lab.step === 3 ? { ...rewards, values: rewards.values.map((value) => value && 0) } : rewards) },
    }),
    { steps: 5 },
  );
  await train(run);
  expect(metricsOf(run.out).map(({ updates }) => updates)).toEqual([1, 1, 0, 1, 1]);
  const seen = await Promise.all([1, 2, 3, 4, 5].map(async (step) => (await trajectories(run.out, step))[0]));
  expect(seen.map((t) => [t?.behaviour.conditions.weights, t?.old])).toEqual(
    ["policy@0", "policy@0", "policy@1", "policy@2", "policy@2"].map((name) => [name, undefined]),
  );
  expect(metricsOf(run.out)[3]).toMatchObject({ lag: 1, ratio_max: 1, gap_max: 0 });
});

describe("the gap of a stale batch", () => {
  it("is measured at the weights that sampled it", async () => {
    const run = settings({ overlap: 2 });
    await train(run);
    expect(metricsOf(run.out).map(({ gap_max }) => gap_max)).toEqual([0, 0, 0, 0]);
    // One group of eight answers each for the batches of steps 2 to 4.
    const scored = stepsOf(run.out)
      .map(({ data }) => (data.ledger as { scored: { aux: number } }).scored.aux)
      .at(-1);
    const first = await Promise.all([2, 3, 4].map(async (step) => (await trajectories(run.out, step)).slice(0, 8)));
    expect(scored).toBe(first.flat().reduce((n, { response }) => n + response.length, 0));
  });

  it("stops the run where sampler and trainer differ in it", async () => {
    const engine = new Sampler(({ weights }) => (weights.at === "step-1" ? 0.1 : 0));
    const run = settings({ engine });
    await expect(train(run)).rejects.toThrow(/log-probs of the same tokens differ by 0.100 nats/);
    expect(events(run.out).at(-1)).toMatchObject({ kind: "end", step: 2, data: { reason: "gap" } }); // Step 3 is the first to train on those weights.
  });
});

describe("a selection that learns", () => {
  it.each([0, 1, 2])("knows, with overlap %d, the outcomes of the steps whose weights sample", async (overlap) => {
    const known: { [step: number]: number } = {};
    const run = having(
      { cursor: 0, learnt: 0 },
      (state) => ({
        select: {
          owns: {
            propose(n, { problems, step }) {
              const { cursor, learnt } = state.get();
              known[step] = learnt;
              state.set({ cursor: cursor + n, learnt });
              return Array.from({ length: n }, (_, i) => problems.get((cursor + i) % problems.size));
            },
            learn: () => state.set({ ...state.get(), learnt: state.get().learnt + 1 }),
          },
        },
      }),
      { overlap },
    );
    await train(run);
    expect(known).toEqual(Object.fromEntries([1, 2, 3, 4].map((step) => [step, Math.max(0, step - 1 - overlap)])));
  });

  it("and a rollout may not change what training changes too", async () => {
    const run = having({ n: 0 }, (state) => {
      const counted = <T>(value: T): T => {
        state.set({ n: state.get().n + 1 });
        return value;
      };
      return { enrich: { run: async (groups) => counted([...groups]) }, observe: { run: () => counted({}) } };
    });
    await expect(train(run)).rejects.toThrow(
      "state of the method own, before step 2: a rollout and the training of an earlier step both changed n, and under overlap neither sees the other; keep under keys of their own",
    );
    await train({ ...run, out: `${run.out}-0`, overlap: 0 });
  });

  it("may have a state that the rollout changes late, unless its allocation says that problems are all it asks for", async () => {
    const late = (once: boolean) =>
      having({ cursor: 0 }, (state) => ({
        select: {
          owns: {
            propose(n, { problems }) {
              state.set({ cursor: state.get().cursor + n });
              return Array.from({ length: n }, (_, i) => problems.get((state.get().cursor + i) % problems.size));
            },
            learn() {},
          },
        },
        allocate: {
          owns: {
            appends: false,
            ...(once ? { once } : {}),
            async *run(step) {
              yield* await drawGroups(step, await step.propose(2));
              state.set({ cursor: state.get().cursor + 1 });
              if (!once) yield* await drawGroups(step, await step.propose(2));
            },
          },
        },
      }));
    await train(late(false));
    await expect(train(late(true))).rejects.toThrow(
      "rollout of own: the rollout changes a state after its problems are known, and its allocate slot says `once`",
    );
  });
});

describe("a stage", () => {
  const stages = (more: Partial<TrainOptions> = {}, last = "dapo+tis") =>
    having(
      { seen: 0 },
      (state) => ({
        observe: {
          run() {
            state.set({ seen: state.get().seen + 1 });
            return { "own.seen": state.get().seen };
          },
        },
      }),
      {
        method: undefined,
        steps: 7,
        overlap: 2,
        checkpoint: { every: 1, keep_last: 100 },
        stages: [{ method: "reinforce", steps: 2 }, { method: ["grpo", "own"], until: { metric: "own.seen", at_least: 2 } }, { method: last }],
        ...more,
      } as Partial<TrainOptions>,
    );

  it("begins with batches of the weights there; what the one before had in flight is discarded where its end was not known", async () => {
    const run = stages({}, "rloo");
    await train(run);
    const versions = await Promise.all([1, 2, 3, 4, 5, 6, 7].map(async (step) => (await trajectories(run.out, step))[0]?.policyVersion));
    expect(versions).toEqual([0, 0, 2, 2, 4, 4, 4]);
    expect(metricsOf(run.out).map(({ lag }) => lag)).toEqual([0, 1, 0, 1, 0, 1, 2]);
    const discarded = stepsOf(run.out).map(({ data }) => (data.ledger as { sampled: { discarded: number } }).sampled.discarded);
    // The first stage is known to end with step 2; the second draws the batches of steps 5 and 6 in vain.
    expect(discarded.slice(0, 4)).toEqual([0, 0, 0, 0]);
    expect(discarded[4]).toBeGreaterThan(64); // Two batches of 32 answers, a token each at least.
    const problems = await Promise.all([3, 4, 5, 6].map(async (step) => new Set((await trajectories(run.out, step)).map(({ problem }) => problem))));
    expect(new Set(problems.slice(0, 3).flatMap((some) => [...some])).size).toBeGreaterThan(8); // None is lost with them: an epoch goes on.
  });

  it("has the same bytes whatever is done first, and resumed in it or as it began", async () => {
    const run = stages();
    await train(run);
    const whole = snapshot(run.out);
    for (const schedule of ["samples first", "trains first"] as const) {
      const other = stages({ engine: new ScheduledEngine(schedule) });
      await train(other);
      expect(snapshot(other.out)).toEqual(whole);
    }
    for (const step of [2, 3, 4, 5]) {
      const controller = new AbortController();
      const part = stages({ signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === step && controller.abort() });
      await train(part);
      await resume(part.out, { task: lax(), ...(part.methods ? { methods: part.methods } : {}) });
      expect(snapshot(part.out)).toEqual(whole);
    }
  });
});

describe("a batch that is drawn ahead", () => {
  it("and fails, stops the run at its own step", async () => {
    const away = new Sampler(({ weights }) => {
      if (weights.at === "step-1") throw new Error("the sampler is away");
      return 0;
    });
    const run = settings({ engine: away });
    await expect(train(run)).rejects.toThrow("the sampler is away");
    expect(events(run.out).at(-1)).toMatchObject({ kind: "end", step: 2, data: { reason: "error" } });
    await resume(run.out, { task: lax(), engine: new TableEngine() });
    const whole = settings();
    await train(whole);
    expect(snapshot(run.out)).toEqual(snapshot(whole.out));
  });

  it("keeps nobody waiting when the run is interrupted, and leaves no snapshot behind", async () => {
    const controller = new AbortController();
    const engine = new Sampler(async ({ weights }, options) => {
      if (weights.at === "step-1") await setTimeout(3_600_000, undefined, options?.signal ? { signal: options.signal } : {});
      return 0;
    });
    const run = settings({ engine, signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === 2 && controller.abort() });
    expect((await train(run)).reason).toBe("interrupted");
    for (const name of ["step-0", "step-1"]) await expect(engine.weights.dropSnapshot("policy", name)).rejects.toThrow("step");
  });

  it("may read roles that stay as they are, and no others", async () => {
    const reads = (role: string, method: TrainOptions["method"], more: Partial<TrainOptions> = {}) =>
      having(
        null,
        () => ({
          enrich: {
            async run(groups, step) {
              const answers = groups.flatMap(({ trajectories }) => trajectories);
              await step.score(answers.map(({ trainedUnder, response }) => ({ context: trainedUnder, response, weights: { role }, temperature: 1 })));
              return [...groups];
            },
          },
        }),
        { method, ...more },
      );
    const kl = { name: "grpo", options: { kl_coef: 0.1 } };
    await train(reads("reference", [kl, "own"]));
    await train(reads("policy", [kl, "own"]));
    const follows = { roles: { reference: { average: { of: "policy", decay: 0.5, every: 1 } } } };
    await expect(train(reads("reference", [kl, "own"], follows))).rejects.toThrow(
      "overlap: the rollout reads the role reference, whose weights change while batches are drawn ahead; set overlap to 0",
    );
  });

  it("is the same for a method that reads or scores with the policy itself, whenever it does", async () => {
    const seen = async (schedule: Schedule): Promise<unknown> => {
      const numbers: { [step: number]: unknown } = {};
      const run = having(
        null,
        () => ({
          enrich: {
            async run(groups, step) {
              const [first] = await step.weights.read({ role: "policy" }, ["logits.weight"]);
              const answers = groups.flatMap(({ trajectories }) => trajectories);
              const scores = await step.score(
                answers.map(({ trainedUnder, response }) => ({ context: trainedUnder, response, weights: { role: "policy" }, temperature: 1 })),
              );
              numbers[step.step] = [first?.data, scores.map(({ weights }) => weights)];
              expect(scores.map(({ logp }) => logp)).toEqual(answers.map(({ behaviour }) => behaviour.values));
              return [...groups];
            },
          },
        }),
        { engine: new ScheduledEngine(schedule) },
      );
      await train(run);
      return numbers;
    };
    expect(await seen("trains first")).toEqual(await seen("samples first"));
  });
});
