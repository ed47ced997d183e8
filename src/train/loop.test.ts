import { beforeAll, describe, expect, it } from "vitest";
import { lax } from "../../test/support/lax-task.js";
import { snapshot } from "../../test/support/run-writer.js";
import { options, successor, tablePolicy, tokenizer } from "../../test/support/tabular.js";
import * as throwing from "../../test/support/throwing.js";
import { TableEngine } from "../engine/table/engine.js";

import { defineTask } from "../tasks/define.js";
import { RunReader } from "./store/reader.js";
import { train } from "./train.js";

const events = (folder: string) => [...RunReader.open(folder).events()];
const rows = Array.from({ length: 8 }, (_, i) => ({ prompt: `${i}`, answer: "1", split: "train" as const }));
const judged = (verify: (input: { response: string }) => boolean) =>
  defineTask({ name: "judged", rows: () => rows, verify, maxTokens: () => 3, tokenizer: () => tokenizer })();

let model0: string;
beforeAll(async () => {
  model0 = await tablePolicy();
});

describe("a run", () => {
  it("has the same bytes with 0, 1, 2 and 5 verifier workers", async () => {
    const model = await tablePolicy();
    const runs = await Promise.all(
      [0, 1, 2, 5].map(async (verifier_workers) => {
        const run = options(model, { task: "test/support/successor-task.ts", steps: 3, verifier_workers, eval: { every: 3, problems: 2 } });
        await train(run);
        return snapshot(run.out);
      }),
    );
    expect(Object.keys(runs[0] as object).some((path) => path.endsWith("policy/model.safetensors"))).toBe(true);
    for (const other of runs.slice(1)) expect(other).toEqual(runs[0]);
  });

  it("with learning rate 0 leaves weights and log-probs as they are", async () => {
    const run = options(await tablePolicy(), { lr: 0, epochs: 2, steps: 2, method: { name: "grpo", options: { kl_coef: 0.1 } } });
    await train(run);
    const all = snapshot(run.out);
    expect(all["checkpoints/00000002/policy/model.safetensors"]).toBe(all["checkpoints/00000000/policy/model.safetensors"]);
    for (const { kind, data } of events(run.out)) {
      if (kind === "step") expect(data.metrics).toMatchObject({ gap_mean: 0, gap_max: 0, kl_reference: 0, kl_k3: 0, ratio_max: 1 });
    }
  });

  it("at a temperature other than 1 is trained at that temperature: sampler and trainer agree", async () => {
    const run = options(await tablePolicy({ init: 1 }), { task: lax(), temperature: 0.6, lr: 0.3, steps: 3, eval: { every: 3, problems: 2 } });
    await train(run);
    const steps = events(run.out).filter(({ kind }) => kind === "step");
    expect(steps).toHaveLength(3);
    for (const { data } of steps) expect((data.metrics as { gap_max: number }).gap_max).toBeLessThan(1e-12);
    for (const { group } of await RunReader.open(run.out).groups(2))
      for (const { behaviour } of group.trajectories) expect(behaviour.conditions.temperature).toBe(0.6);
  });

  it("is measured by evaluation's own verifier where it has one, and rewarded by the task's", async () => {
    const task = defineTask({
      name: "two-verifiers",
      rows: () => [...rows, ...[0, 1, 2, 3].map((i) => ({ prompt: `${i}${i}`, answer: "never", split: "eval" as const }))],
      verify: () => true,
      maxTokens: () => 3,
      tokenizer: () => tokenizer,
    })();
    const [own, other] = [undefined, "exact"].map((verifier) =>
      options(model0, { task, steps: 1, problems: 2, eval: { every: 1, problems: 4, ...(verifier && { verifier }) } }),
    );
    await train(own!);
    await train(other!);
    const scores = ({ out }: { out: string }) => events(out).flatMap(({ kind, data }) => (kind === "evaluation" ? [data.score] : []));
    const rewards = ({ out }: { out: string }) =>
      events(out).flatMap(({ kind, data }) => (kind === "step" ? [(data.metrics as { reward: number }).reward] : []));
    expect([scores(own!), rewards(own!)]).toEqual([[1, 1], [1]]);
    expect([scores(other!), rewards(other!)]).toEqual([[0, 0], [1]]);
  });

  it("records each step with its diagnosis, rollouts and ledger", async () => {
    const run = options(await tablePolicy(), { task: judged(({ response }) => response.includes("1")), steps: 2, checkpoint: { every: 0 } });
    await train(run);
    const all = events(run.out);
    expect(all.map(({ kind, step }) => `${kind} ${step}`)).toEqual(["start 0", "step 1", "step 2", "end 2"]);
    const { data, clock } = all[2] as (typeof all)[number];
    const metrics = data.metrics as { [name: string]: number };
    for (const name of ["reward", "groups_silent", "entropy", "tokens_mean", "truncated", "loss", "unscored", "groups.equal"])
      expect(metrics[name]).toEqual(expect.any(Number));
    expect(Object.keys(clock ?? {})).toEqual(expect.arrayContaining(["idle", "ms", "sampled_per_s", "trained_per_s"]));
    const groups = [...(await RunReader.open(run.out).groups(1)), ...(await RunReader.open(run.out).groups(2))];
    const tokens = groups.flatMap(({ group }) => group.trajectories).reduce((n, { response }) => n + response.length, 0);
    expect(data.ledger).toMatchObject({ sampled: { train: tokens, discarded: 0, evaluation: 0 }, rollouts: 32 });
    const [first] = groups;
    const verdicts = data.verdicts as { accept: number; reject: number };
    expect(verdicts.accept + verdicts.reject).toBe(16);
    for (const { trajectory, numbers, columns } of first?.rollouts ?? []) {
      expect([...trajectory.loss]).toEqual([...trajectory.sampled]);
      expect(numbers.reward).toBe(trajectory.verdict.kind === "accept" ? 1 : 0);
      expect([...(columns.coefficient ?? [])]).toEqual(Array.from(trajectory.response, () => numbers.advantage));
    }
  });

  it("prefills the prompt of a group once", async () => {
    const run = options(await tablePolicy({ maxTokens: 1024 }), {
      task: defineTask({
        name: "long",
        rows: () => [{ prompt: "7".repeat(198), answer: "8", split: "train" }],
        verify: () => true,
        maxTokens: () => 2,
        tokenizer: () => tokenizer,
      })(),
      problems: 1,
      group: 16,
      steps: 1,
    });
    await train(run);
    expect(events(run.out).find(({ kind }) => kind === "step")?.data.metrics).toMatchObject({ prefill_tokens: 200, rows: 16 });
  });
});

describe("a run stops by itself", () => {
  it("when batch after batch brings no signal, and says why", async () => {
    const run = options(await tablePolicy(), { task: judged(() => false), limits: { silent_batches: 3 }, steps: 10 });
    const result = await train(run);
    expect(result).toMatchObject({ reason: "no-signal", steps: 3, updates: 0 });
    expect(result.message).toBe(
      "stopped after step 3: 3 batches in a row brought no signal: in every group all answers have the same score, in the last batch 0 (most often: wrong); the problems are too hard, or the prompt does not ask for what the verifier reads: look at the rollouts, give easier problems or larger groups",
    );
    const all = events(run.out);
    expect(all.find(({ kind }) => kind === "warning")?.data.message).toMatch(/^all 16 answers of the first batch have the score 0 \(most often: wrong\)/);
    expect(all.at(-1)).toMatchObject({ kind: "end", data: { reason: "no-signal" } });
    expect(RunReader.open(run.out).checkpoints.steps().at(-1)).toBe(3);
  });

  it("when sampler and trainer differ by more than the limit", async () => {
    // A sampler of another precision: its log-probs are off by 0.1.
    class Off extends TableEngine {
      override async *sample(...call: Parameters<TableEngine["sample"]>): ReturnType<TableEngine["sample"]> {
        for await (const sample of super.sample(...call)) yield { ...sample, logp: sample.logp.map((x) => x - 0.1) };
      }
    }
    const run = options(await tablePolicy(), { engine: new Off(), group: 16, task: judged(({ response }) => response.includes("1")) });
    await expect(train(run)).rejects.toThrow(/sampler and trainer: their log-probs of the same tokens differ by 0.100 nats/);
    expect(events(run.out).at(-1)).toMatchObject({ kind: "end", step: 0, data: { reason: "gap", data: { gap_mean: expect.closeTo(0.1, 9) } } });
  });

  it("not because of an evaluation that fails, which is recorded", async () => {
    const broken = { ...successor(), verifier: successor().verifier };
    class Forgetful extends TableEngine {
      calls = 0;
      override async *sample(...call: Parameters<TableEngine["sample"]>): ReturnType<TableEngine["sample"]> {
        if (call[0].some(({ greedy }) => greedy)) throw new Error("the sampler is away");
        yield* super.sample(...call);
      }
    }
    const run = options(await tablePolicy(), { engine: new Forgetful(), task: broken, steps: 2, eval: { every: 1, problems: 2, greedy: true } });
    expect(await train(run)).toMatchObject({ reason: "done", evaluation: {} });
    expect(
      events(run.out)
        .filter(({ kind }) => kind === "warning")
        .map(({ data }) => data.message),
    ).toEqual(expect.arrayContaining(["the evaluation failed and training goes on: the sampler is away"]));
    const strict = options(await tablePolicy(), {
      engine: new Forgetful(),
      task: broken,
      steps: 2,
      eval: { every: 1, problems: 2, greedy: true, on_failure: "stop" },
    });
    await expect(train(strict)).rejects.toThrow("the sampler is away");
  });
});

describe("a verifier that fails", () => {
  const failing = (verify: (input: { response: string }) => unknown) => judged(verify as never);
  async function told(verify: (input: { response: string }) => unknown) {
    const messages: string[] = [];
    const run = options(await tablePolicy(), {
      task: failing(verify),
      steps: 2,
      onProgress: (progress) => progress.kind === "message" && messages.push(progress.text),
    });
    return { result: await train(run), messages };
  }

  it("is told when it first does, with its message, file and line, and at the end of a run that learnt nothing", async () => {
    const { result, messages } = await told(throwing.verify);
    expect(messages[0]).toMatch(
      /^verifier judged, .*test\/support\/throwing\.ts:6: verifier-failed \(TypeError: no such field\); answers without a score are left out$/,
    );
    expect(messages.filter((text) => text.startsWith("verifier judged"))).toHaveLength(1);
    expect(messages[1]).toBe("no answer of the first batch has a score (most often: verifier-failed, first because TypeError: no such field)");
    expect(result.reason).toBe("no-signal");
    expect(result.message).toMatch(
      /^2 steps are done, and nothing was learnt: 2 batches in a row brought no signal: .*TypeError: no such field\); mend the verifier/,
    );
  });

  it.each([
    [undefined, "it returned undefined, not true, false or a verdict"],
    ["true", 'it returned the text "true", not true, false or a verdict'],
  ])("by returning %j is told too", async (value, sentence) => {
    const { messages } = await told(({ response }) => (response === "" ? false : value));
    expect(messages[0]).toContain(sentence);
  });

  it("is stopped at its deadline where it is a function of this program that loops for ever", async () => {
    const run = options(await tablePolicy(), {
      task: judged(({ response }) => {
        if (response.startsWith("1")) for (;;);
        return response.includes("1");
      }),
      verifier_deadline_ms: 50,
      steps: 3,
    });
    await train(run);
    expect(events(run.out).map(({ kind }) => kind)).toContain("nonreplayable");
  });

  it("and judges on a thread that can be ended, unless it is told otherwise", async () => {
    const run = options(await tablePolicy(), { task: "test/support/looping-task.ts", verifier_deadline_ms: 300, steps: 1, problems: 1, group: 2 });
    await train(run);
    expect(events(run.out).map(({ kind }) => kind)).toContain("nonreplayable");
  });
});

describe("unscored answers", () => {
  const faulty = defineTask({
    name: "faulty",
    rows: () => rows,
    verify: ({ response, problem }) => {
      if (problem.prompt[0]?.content === "3") throw new Error("the judge is away");
      return response.includes("1");
    },
    maxTokens: () => 3,
    tokenizer: () => tokenizer,
  });

  it.each(["drop-sample", "drop-group"] as const)("leave means and counts, by %s", async (unscored) => {
    const run = options(await tablePolicy(), { task: faulty(), unscored, problems: 8, group: 4, steps: 1 });
    await train(run);
    const data = events(run.out).find(({ kind }) => kind === "step")?.data as {
      metrics: { [name: string]: number };
      ledger: { sampled: { discarded: number } };
    };
    const dropped = unscored === "drop-group";
    expect(data.metrics).toMatchObject(dropped ? { groups: 7, unscored: 0, groups_dropped: 1 } : { groups: 8, unscored: 1 / 8, "groups.unscored": 1 / 8 });
    expect(data.ledger.sampled.discarded > 0).toBe(dropped);
  });
});
