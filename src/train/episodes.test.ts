import { beforeAll, describe, expect, it } from "vitest";
import { snapshot } from "../../test/support/run-writer.js";
import { options, tablePolicy } from "../../test/support/tabular.js";
import { alphabetTokenizer } from "../core/alphabet.js";
import type { Json } from "../core/json.js";
import { plainContext } from "../core/problem.js";
import { randomKey, Stream } from "../core/random.js";
import type { Trajectory } from "../core/trajectory.js";
import { TableEngine } from "../engine/table/engine.js";
import { evaluate } from "../evaluate/evaluate.js";
import { limitsOf, startHost } from "../rollout/environment.js";
import { drawEpisodes, episodeKeys } from "../rollout/episodes.js";
import { Rounds } from "../rollout/rounds.js";
import type { Environment } from "../tasks/contract.js";
import { defineTask } from "../tasks/define.js";
import { guess } from "../tasks/guess/guess.js";
import { judge } from "../verify/contract.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

const tokenizer = alphabetTokenizer([..."0123456789#"]);
/** Answers anything by a number from its randomness, until it reads a #; half of what is said last is right. */
const task = defineTask({
  name: "chatter",
  rows: () =>
    Array.from({ length: 16 }, (_, i) => ({
      prompt: String(i % 10).repeat(1 + (i % 3)),
      key: `p${i}`,
      answer: i % 2,
      split: i < 12 ? ("train" as const) : ("eval" as const),
    })),
  verify: ({ response, reference }) => response.length % 2 === reference,
  maxTokens: 48,
  tokenizer,
  environment: {
    limits: { turns: 4, turnTokens: 8 },
    start: (_, key) => ({ said: [new Stream(key).int(1000)] }),
    step: ({ said }: { said: number[] }, action, key) => {
      const next = [...said, new Stream(key).int(1000)];
      return { state: { said: next }, observation: [{ role: "tool", content: next.join("") }], info: { said: next.length }, done: action.includes("#") };
    },
  },
})();
const environment = task.environment as Environment<Json>;
let model: string;

const settings = (more: Partial<TrainOptions> = {}): TrainOptions =>
  options(model, { task, steps: 4, problems: 4, group: 6, eval: { every: 2, problems: 4, samples: 3 }, ...more });

beforeAll(async () => {
  model = await tablePolicy({ order: 2, init: 1.5 }, 3, tokenizer);
});

async function rollouts(folder: string): Promise<Trajectory[]> {
  const reader = RunReader.open(folder);
  const all: Trajectory[] = [];
  for (const { step } of reader.rolloutIndex()) for (const { group } of await reader.groups(step)) all.push(...group.trajectories);
  return all;
}

describe("training on a task with an environment", () => {
  it("trains what was sampled and nothing else, in every conversation, as stored", async () => {
    const run = settings();
    await train(run);
    const all = await rollouts(run.out);
    expect(all).toHaveLength(96);
    const turns = all.map((row) => row.turns?.length ?? 0);
    expect(Math.max(...turns)).toBeGreaterThan(2);
    const { turnTokens = 0 } = limitsOf(environment);
    for (const row of all) {
      const owner = Array.from(row.response, () => "");
      for (const { name, start, end } of row.spans) owner.fill(name, start, end);
      expect(owner.includes("")).toBe(false);
      const drawn = owner.map((name) => (name === "turn" ? 1 : 0));
      expect([[...row.sampled], [...row.loss], [...row.reward]]).toEqual([drawn, drawn, drawn]);
      expect(row.spans.filter(({ name }) => name === "turn")).toHaveLength(row.turns?.length ?? 0);
      for (const { name, start, end } of row.spans) if (name === "turn") expect(end - start).toBeLessThanOrEqual(turnTokens);
      expect(row.response.length).toBeLessThanOrEqual(48);
      row.spans.forEach(({ name, start, end }) => {
        if (name === "observation") expect([row.response[start], row.response[end - 1]]).toEqual([4, 3]); // <tool> and <assistant>
      });
    }
    // The sampler and the trainer see the same tokens before each token, across all turns.
    const gaps = [...RunReader.open(run.out).events()].flatMap(({ kind, data }) => (kind === "step" ? [(data.metrics as { gap_max: number }).gap_max] : []));
    expect(Math.max(...gaps)).toBeLessThan(1e-9);
    const [first] = [...RunReader.open(run.out).events()].flatMap(({ kind, data }) => (kind === "step" ? [data.metrics as { [name: string]: number }] : []));
    const own = all.slice(0, 24);
    const sum = (of: (row: Trajectory) => number): number => own.reduce((total, row) => total + of(row), 0);
    expect(first).toMatchObject({ turns: expect.closeTo(sum(({ turns }) => turns!.length) / 24, 12), turns_faults: 0, observed_cut: 0 });
    const drawn = sum(({ sampled }) => sampled.reduce((a, b) => a + b, 0));
    expect(first!.observed).toBeCloseTo(1 - drawn / sum(({ response }) => response.length), 12);
    expect(first!["info.said"]).toBeGreaterThan(1);
  });

  it("names every limit of a conversation as it starts", async () => {
    const said: string[] = [];
    await train(settings({ steps: 1, onProgress: (progress) => progress.kind === "message" && said.push(progress.text) }));
    expect(said).toContain(
      "a conversation has at most 4 actions of at most 8 tokens and 48 tokens with its observations, each of at most 4000 characters and 1000 tokens; a step of its environment takes at most 30000 ms",
    );
  });

  it("names the environment as the owner of the expansion", async () => {
    const run = settings({ steps: 1 });
    await train(run);
    const table = RunReader.open(run.out).run.method as { readonly slot: string; readonly from: string }[];
    expect(table.find(({ slot }) => slot === "expand")?.from).toBe("environment");
  });

  it("is resumed to the byte in the middle, in its environment's randomness too", async () => {
    const whole = settings();
    await train(whole);
    const controller = new AbortController();
    const cut = settings({ signal: controller.signal, onProgress: (progress) => progress.kind === "step" && progress.step === 3 && controller.abort() });
    expect((await train(cut)).reason).toBe("interrupted");
    expect((await resume(cut.out, { task })).reason).toBe("done");
    const [is, expected] = [snapshot(cut.out), snapshot(whole.out)];
    expect(Object.keys(expected).filter((path) => is[path] !== expected[path])).toEqual([]);
  });

  it.each([0, 1])(
    "that is named, whose conversations a thread of their own plays, is the same to the byte resumed and judged elsewhere, with overlap %d",
    async (overlap) => {
      const policy = await tablePolicy({ order: 2, init: 1.5 }, 3, guess().tokenizer);
      const named = (more: Partial<TrainOptions>): TrainOptions => options(policy, { task: "guess", steps: 3, problems: 3, group: 4, overlap, ...more });
      const whole = named({ verifier_workers: 0 });
      await train(whole);
      const controller = new AbortController();
      const onProgress: TrainOptions["onProgress"] = (progress) => progress.kind === "step" && progress.step === 1 && controller.abort();
      const cut = named({ verifier_workers: 2, signal: controller.signal, onProgress });
      expect((await train(cut)).reason).toBe("interrupted");
      expect((await resume(cut.out)).reason).toBe("done");
      const [is, expected] = [snapshot(cut.out), snapshot(whole.out)];
      expect(Object.keys(expected).filter((path) => is[path] !== expected[path])).toEqual([]);
      expect(Math.max(...(await rollouts(whole.out)).map(({ turns }) => turns?.length ?? 0))).toBeGreaterThan(1);
    },
  );
});

describe("evaluation", () => {
  it("plays the conversations that training plays: the same tokens, turns and verdicts for the same keys", async () => {
    const engine = new TableEngine();
    await engine.weights.load({ role: "policy", source: { from: "folder", path: model }, trainable: false });
    const host = await startHost({ environment });
    const problems = task.problems("eval", 4, 0);
    const common = { tokenizer, maxTokens: 48 };
    const { samples } = await evaluate(engine, {
      ...common,
      weights: { role: "policy" },
      problems,
      verifier: task.verifier,
      environment: host,
      n: 5,
      k: [1],
      seed: 9,
    });
    const keyOf = (problem: string, member: number) => episodeKeys("evaluation", { problem, member }, (meaning) => randomKey({ seed: 9, ...meaning }));
    const requests = problems.flatMap((problem) =>
      [0, 1, 2, 3, 4].map((member) => {
        const context = plainContext(tokenizer.render(problem.prompt, { addGenerationPrompt: true }));
        const key = randomKey({ seed: 9, purpose: "evaluation", problem: problem.key, member });
        const fixed = { turn: 0, role: "policy", purpose: "train", temperature: 1, maxTokens: 48 } as const;
        return { ...fixed, problem, member, context, trainedUnder: context, weights: { role: "policy" }, stop: { ids: tokenizer.eosIds }, key };
      }),
    );
    const rows: Trajectory[] = [];
    const trained = drawEpisodes(requests, ({ problem, member }) => keyOf(problem.key, member), {
      host,
      tokenizer,
      step: 1,
      policyVersion: 0,
      rounds: new Rounds((asked) => engine.sample(asked)),
      judge: (problem, response, truncated) => judge(task.verifier, problem, response, truncated),
    });
    for await (const row of trained) rows.push(row);
    expect(rows).toHaveLength(20);
    for (const row of rows) {
      const sample = samples.find(({ problem, member }) => problem === row.problem && member === row.member);
      expect([sample?.ids, sample?.sampled, sample?.turns, sample?.text, sample?.stop]).toEqual([row.response, row.sampled, row.turns, row.text, row.stop]);
      expect({ ...sample?.verdict }).toEqual({ ...row.verdict });
    }
    expect(Math.max(...samples.map(({ turns }) => turns?.length ?? 0))).toBeGreaterThan(1);
    await engine.close();
  });
});
