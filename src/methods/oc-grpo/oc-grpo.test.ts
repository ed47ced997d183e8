import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { made } from "../../../test/support/method.js";
import { snapshot } from "../../../test/support/run-writer.js";
import { tokenizer as digits, options, scratch, tablePolicy } from "../../../test/support/tabular.js";
import { alphabetTokenizer, saveAlphabet } from "../../core/alphabet.js";
import type { Json } from "../../core/json.js";
import type { SampleRequest } from "../../engine/contract.js";
import { TableEngine } from "../../engine/table/engine.js";
import { clip } from "../../losses/clip.js";
import { defineTask } from "../../tasks/define.js";
import { RunReader } from "../../train/store/reader.js";
import { resume, type TrainOptions, train } from "../../train/train.js";
import { defineMethod } from "../define.js";
import { omGrpo } from "../om-grpo/om-grpo.js";
import { compose } from "../resolve.js";
import { ocGrpo, ocGrpoOptions } from "./oc-grpo.js";
import { hardSource } from "./source.js";

const tokenizer = alphabetTokenizer([..."0123456789 ~"]);
const idOf = (symbol: string): number => tokenizer.encode(symbol)[0] as number;

/**
 * The policy says the last symbol of its prompt and stops. Problem i (prompt i) has the five numbers after i as its solution,
 * and the answer is one of them: the more of the solution stands in the prompt, the further that symbol. Two more are easy.
 */
const words = (i: number): number[] => [1, 2, 3, 4, 5].map((k) => (i + k) % 10);
const rows = [
  ...[0, 1, 2, 3, 4].map((i) => ({ prompt: `${i}`, key: `p${i}`, answer: `${words(i)[i]}`, solution: words(i).join(" "), split: "train" as const })),
  ...[8, 9].map((i) => ({ prompt: `${i}`, key: `easy${i}`, answer: `${i}`, solution: words(i).join(" "), split: "train" as const })),
];
const task = (more: object = {}) =>
  defineTask({
    name: "words",
    rows: () => rows.map((row) => ({ ...row, ...more })),
    verify: ({ response, reference }) => response === reference,
    maxTokens: () => 2,
    tokenizer: () => tokenizer,
  })();
const prompts = { continue_prompt: "{problem}~{guidance}", verify_prompt: "{problem}~{guidance}" };
const use = (more: { readonly [option: string]: Json } = {}) => ({ name: "oc-grpo", options: { ...prompts, ...more } });

let copier: string;
beforeAll(async () => {
  copier = join(scratch(), "copier");
  const engine = new TableEngine();
  const { size } = tokenizer;
  await engine.weights.load({
    role: "policy",
    source: { from: "config", config: { kind: "table", vocabulary: size, order: 2, init: 0, maxTokens: 32 }, seed: 0 },
    trainable: true,
  });
  const [tensor] = await engine.weights.read({ role: "policy" }, ["logits.weight"]);
  if (tensor === undefined) throw new Error("no tensor");
  const assistant = tokenizer.render([], { addGenerationPrompt: true })[0] as number;
  for (const symbol of "0123456789") {
    const id = idOf(symbol);
    tensor.data[(assistant * (size + 1) + id) * size + id] = 8;
    tensor.data[(id * (size + 1) + assistant) * size] = 8;
  }
  await engine.weights.write("policy", [tensor]);
  await engine.weights.save({ role: "policy" }, copier);
  await saveAlphabet(tokenizer, copier);
  await engine.close();
});

const run = (more: Partial<TrainOptions> = {}): TrainOptions =>
  options(copier, { task: task(), problems: 5, group: 4, steps: 2, lr: 0.01, method: use(), checkpoint: { every: 1, keep_last: 9 }, ...more });
const levelsAt = (folder: string, step: number): unknown => {
  const { cells } = RunReader.open(folder).checkpoints.read(step).state as { readonly cells: { readonly "oc-grpo": { readonly levels: Json } } };
  return cells["oc-grpo"].levels;
};
const metricsOf = (folder: string) =>
  [...RunReader.open(folder).events()].filter(({ kind }) => kind === "step").map(({ data }) => data.metrics as { [name: string]: number });
/** The numbers that a run's weights went through. */
const weightsOf = ({ folder }: { folder: string }) => {
  const files = snapshot(folder);
  return Object.keys(files)
    .filter((path) => path.endsWith("policy/model.safetensors"))
    .map((path) => files[path]);
};

describe("before step 1", () => {
  it("finds the problems that are never solved, and the smallest part of the solution that solves each once", async () => {
    const { folder } = await train(run());
    expect(levelsAt(folder, 0)).toEqual({ p0: 1, p1: 2, p2: 3, p3: 4, p4: 5 });
    for (const step of [1, 2]) {
      const keys = (await RunReader.open(folder).groups(step)).map(({ group }) => group.problem.key);
      expect(keys.sort()).toEqual(["p0", "p1", "p2", "p3", "p4"]);
    }
    expect(levelsAt(folder, 2)).toEqual(levelsAt(folder, 0));
  });

  it("draws 64 answers of temperature 0.7 and top-p 0.95 for those, in rounds that the others fall out of", async () => {
    const asked: SampleRequest[] = [];
    class Watched extends TableEngine {
      override async *sample(...call: Parameters<TableEngine["sample"]>): ReturnType<TableEngine["sample"]> {
        asked.push(...call[0]);
        yield* super.sample(...call);
      }
    }
    await train(run({ engine: new Watched(), steps: 1 }));
    const trying = asked.filter(({ temperature }) => temperature === 0.7);
    expect(trying.length).toBe(5 * 64 + 2 * 8);
    expect(trying.every(({ truncation }) => truncation?.topP === 0.95)).toBe(true);
    expect(new Set(trying.map(({ key }) => key.join())).size).toBe(trying.length);
    // Four answers a level until one solves it; the fifth level needs no proof.
    expect(asked.length - trying.length).toBe(4 * (1 + 2 + 3 + 4 + 4) + 5 * 4);
  });

  it("takes an answer that was cut off for none: with one token there is no room for an end", async () => {
    const { folder } = await train(run({ max_tokens: 1, problems: 7, steps: 1 }));
    expect(Object.values(levelsAt(folder, 0) as object)).toEqual(new Array(7).fill(5));
  });

  it("keeps problems whose GRPO gradient is 0", async () => {
    const result = await train(run({ method: use({ guidance: "none" }), steps: 3 }));
    expect(metricsOf(result.folder).map(({ groups_silent, updates }) => [groups_silent, updates])).toEqual(new Array(3).fill([1, 0]));
    expect(new Set(weightsOf(result)).size).toBe(1);
  });

  it("is not done twice for the same problems and options", async () => {
    const stages = [
      { method: use(), steps: 1 },
      { method: use(), steps: 1 },
    ];
    const { method: _, ...rest } = run();
    const once = metricsOf((await train(run())).folder).length;
    const { folder } = await train({ ...rest, stages });
    expect(once).toBe(2);
    const ledgers = [...RunReader.open(folder).events()]
      .filter(({ kind }) => kind === "step")
      .map(({ data }) => (data.ledger as { sampled: { aux: number } }).sampled.aux);
    expect(ledgers[0]).toBe(ledgers[1]);
  });
});

describe("a guided answer", () => {
  it("is sampled with guidance and trained without, from its own plain prompt", async () => {
    const { folder } = await train(run({ steps: 1 }));
    for (const { group } of await RunReader.open(folder).groups(1)) {
      const plain = tokenizer.render(group.problem.prompt, { addGenerationPrompt: true });
      const { solution } = group.problem.privileged as { readonly solution: string };
      const at = Number(group.problem.key[1]) + 1;
      const content = `${group.problem.prompt[0]?.content}~${solution.split(" ").slice(0, at).join(" ")}`;
      for (const { sampledUnder, trainedUnder, behaviour, old } of group.trajectories) {
        expect([...trainedUnder.ids]).toEqual([...plain]);
        expect([...sampledUnder.ids]).toEqual([...tokenizer.render([{ role: "user", content }], { addGenerationPrompt: true })]);
        expect([sampledUnder.label, trainedUnder.label, behaviour.conditions.context, old?.conditions.context]).toEqual(["guided", "plain", "guided", "plain"]);
      }
    }
    // Guidance makes the answer likely (0.99) that is rare without it (e^8 times as rare as saying the prompt's last symbol).
    expect(metricsOf(folder)[0]).toMatchObject({ "oc-grpo.guided": 1, "oc-grpo.level": expect.closeTo(0.6, 12), "oc-grpo.kl": expect.any(Number) });
    expect(metricsOf(folder)[0]?.["oc-grpo.kl"]).toBeGreaterThan(2);
  });

  it("of another problem's solution with guidance at random", async () => {
    const { folder } = await train(run({ steps: 1, problems: 7, method: use({ guidance: "random", hard_samples: 0, levels: [1] }) }));
    const group = (await RunReader.open(folder).groups(1)).find(({ group }) => group.problem.key === "p1")?.group;
    const shown = tokenizer.decode(group?.trajectories[0]?.sampledUnder.ids ?? []);
    expect(rows.filter(({ key }) => key !== "p1").map(({ solution }) => `1~${solution}`)).toContain(shown);
  });

  it("in the response has forced tokens that nothing is trained on, and one context", async () => {
    const started = run({ steps: 1, max_tokens: 8, method: use({ place: "response" }) });
    const { folder } = await train(started);
    for (const { group } of await RunReader.open(folder).groups(1)) {
      for (const { response, sampled, reward, loss, text, trainedUnder, sampledUnder, old } of group.trajectories) {
        const forced = sampled.indexOf(1);
        const solution = group.problem.privileged?.solution as string;
        expect(forced).toBeGreaterThan(0);
        expect(solution.startsWith(tokenizer.decode(response.subarray(0, forced)))).toBe(true);
        expect(text.startsWith(tokenizer.decode(response.subarray(0, forced)))).toBe(true);
        for (const mask of [reward, loss]) expect([...mask]).toEqual([...sampled]);
        expect(trainedUnder).toEqual(sampledUnder);
        expect(old).toBe(undefined);
      }
    }
  });

  it("uncorrected has both sides of its ratio under one context: with guidance, or without", async () => {
    for (const [correction, context] of [
      ["guided", "guided"],
      ["plain", "plain"],
    ] as const) {
      const { folder } = await train(run({ steps: 1, temperature: 4, group: 16, method: use({ correction, level_samples: 64 }) }));
      const [first] = (await RunReader.open(folder).groups(1)).flatMap(({ group }) => group.trajectories);
      expect([first?.sampledUnder.label, first?.trainedUnder.label]).toEqual(["guided", context]);
      expect(metricsOf(folder)[0]?.ratio_max).toBeCloseTo(1, 12);
    }
  });

  it("has its sampler compared with the trainer all the same, and a sampler that is off stops the run", async () => {
    const { folder } = await train(run({ steps: 1 }));
    expect(metricsOf(folder)[0]?.gap_max).toBeCloseTo(0, 12);
    class Off extends TableEngine {
      override async *sample(...call: Parameters<TableEngine["sample"]>): ReturnType<TableEngine["sample"]> {
        for await (const sample of super.sample(...call)) yield { ...sample, logp: sample.logp.map((x) => x - 0.1) };
      }
    }
    await expect(train(run({ engine: new Off(), temperature: 4 }))).rejects.toThrow(/their log-probs of the same tokens differ by 0.100 nats/);
  });
});

describe("without guidance it is GRPO, bit for bit", () => {
  const plain = async (method: TrainOptions["method"], more: Partial<TrainOptions> = {}) =>
    weightsOf(await train(options(fresh, { method, minibatches: 2, epochs: 2, ...more })));
  let fresh: string;
  beforeAll(async () => {
    fresh = await tablePolicy();
  });

  it("where it is off", async () => {
    const wanted = await plain("grpo");
    expect(new Set(wanted).size).toBeGreaterThan(2);
    expect(await plain({ name: "oc-grpo", options: { guidance: "none", hard_samples: 0 } })).toEqual(wanted);
  });

  it("where no part of a solution ends at a word", async () => {
    const problems = Array.from({ length: 8 }, (_, i) => ({
      prompt: `${i}${(3 * i) % 10}`,
      key: `q${i}`,
      answer: "5",
      solution: "12345",
      split: "train" as const,
    }));
    const verify = ({ response }: { readonly response: string }): boolean => Number(response[0] ?? "9") < 5;
    const one = { task: defineTask({ name: "one", rows: () => problems, verify, maxTokens: () => 2, tokenizer: () => digits })() };
    expect(await plain({ name: "oc-grpo", options: { levels: [0.5], hard_samples: 0 } }, one)).toEqual(await plain("grpo", one));
  });
});

describe("the adaptive schedule", () => {
  const adaptive = use({ schedule: "adaptive" });

  it("goes down where answers are right and up where none is, no further than its ends", async () => {
    const { folder } = await train(run({ method: adaptive, steps: 3 }));
    expect([0, 1, 2, 3].map((step) => levelsAt(folder, step))).toEqual([
      { p0: 1, p1: 2, p2: 3, p3: 4, p4: 5 },
      { p0: 0, p1: 1, p2: 2, p3: 3, p4: 4 },
      { p0: 1, p1: 2, p2: 3, p3: 4, p4: 5 },
      { p0: 0, p1: 1, p2: 2, p3: 3, p4: 4 },
    ]);
    const unguided = (await RunReader.open(folder).groups(2)).find(({ group }) => group.problem.key === "p0");
    expect(unguided?.group.trajectories[0]?.sampledUnder.label).toBe("plain");
  });

  it("stays where some are right, but less than ease of them", async () => {
    const { folder } = await train(run({ method: use({ schedule: "adaptive", ease: 0.6 }), temperature: 3.5, group: 16, steps: 2 }));
    const moves = new Set<number>();
    for (const step of [1, 2]) {
      const [before, after] = [levelsAt(folder, step - 1), levelsAt(folder, step)] as { readonly [problem: string]: number }[];
      for (const { group } of await RunReader.open(folder).groups(step)) {
        const { key } = group.problem;
        const right = group.trajectories.filter(({ verdict }) => verdict.kind === "accept").length / 16;
        const move = right === 0 ? 1 : right >= 0.6 ? -1 : 0;
        moves.add(move);
        expect(after?.[key]).toBe(Math.min(5, Math.max(0, (before?.[key] as number) + move)));
      }
    }
    expect(moves.has(0)).toBe(true);
  });

  it.each([0, 1])("goes on after an interruption to the same bytes, with an overlap of %d", async (overlap) => {
    const whole = run({ method: adaptive, steps: 4, overlap });
    await train(whole);
    const controller = new AbortController();
    const out = join(scratch(), "run");
    await train({ ...whole, out, signal: controller.signal, onProgress: (p) => p.kind === "step" && p.step === 2 && controller.abort() });
    await resume(out, { task: task() });
    const [is, wanted] = [snapshot(out), snapshot(whole.out)];
    expect(Object.keys(wanted).filter((path) => path !== "run.json" && is[path] !== wanted[path])).toEqual([]);
  });
});

it("gamma is the 90 % quantile of the batch's ratios, on each guided answer", async () => {
  const { folder } = await train(run({ steps: 1, method: use({ correction: "shaped" }) }));
  const all = (await RunReader.open(folder).groups(1)).flatMap(({ group }) => group.trajectories);
  const ratios = all.flatMap(({ old, behaviour }) => [...behaviour.values].map((b, t) => Math.exp((old?.values[t] as number) - b))).sort((a, b) => a - b);
  const at = 0.9 * (ratios.length - 1);
  const [low, high] = [ratios[Math.floor(at)] as number, ratios[Math.ceil(at)] as number];
  const record = (await RunReader.open(folder).groups(1)).flatMap(({ rollouts }) => rollouts.map((rollout) => JSON.stringify(rollout)));
  expect(record.length).toBe(20);
  const { gammaNote } = await import("./loss.js");
  for (const trajectory of all) expect(gammaNote.get(trajectory)).toBeCloseTo(low + (at - Math.floor(at)) * (high - low), 12);
});

it("of a mixture with weights the hard problems keep their sources and weights", () => {
  const problems = ["a", "b", "c", "d"].map((key) => ({ key, prompt: [], reference: { state: "none", version: 0 } }) as const);
  const mixture = [
    { name: "x", weight: 1, indices: [0, 1] },
    { name: "y", weight: 2, indices: [2] },
    { name: "z", weight: 3, indices: [3] },
  ];
  const source = { size: 4, get: (i: number) => problems[i] as (typeof problems)[number], mixture, weights: [1, 2, 3, 4] };
  const hard = hardSource(source, { b: 1, d: 2 });
  expect([hard.size, hard.get(0).key, hard.get(1).key, hard.weights]).toEqual([2, "b", "d", [2, 4]]);
  expect(hard.mixture).toEqual([
    { name: "x", weight: 1, indices: [0] },
    { name: "z", weight: 3, indices: [1] },
  ]);
  expect(hardSource(source, { a: 1, b: 1, c: 1, d: 1 })).toBe(source);
});

describe("OC-GRPO", () => {
  const refused = (more: Partial<TrainOptions>, sentence: string) => expect(train(run(more))).rejects.toThrow(sentence);

  it("is refused without solutions, without hard problems, and where guidance leaves the answer no room", async () => {
    await refused({ task: task({ solution: undefined }) }, "it has no solution, and oc-grpo guides by parts of one");
    await refused({ problems: 6 }, "method oc-grpo: 5 of 7 problems have no right answer among 64 without guidance, and a batch takes 6");
    await refused(
      { method: use({ hard_samples: 0 }), task: task({ solution: "1".repeat(40) }) },
      "its prompt with guidance has 44 tokens, which with 2 for the response are more than the model's 32",
    );
    await refused({ method: use({ levels: [0.5, 0.5] }) }, "method oc-grpo, option levels: they are 0.5, 0.5; give shares in ascending order");
  });

  it("is refused beside another owner of the loss, and beside a method that withholds references, both named", () => {
    const hispo = made(defineMethod({ name: "hispo", make: () => ({ slots: { loss: { owns: clip({ clip_low: 0.2, clip_high: 0.2 }) } } }) }));
    expect(() => compose(hispo, made(ocGrpo))).toThrow("method hispo+oc-grpo: both own the slot loss");
    expect(() => compose(made(ocGrpo), made(omGrpo))).toThrow("method om-grpo+oc-grpo: om-grpo withholds references, and oc-grpo reads them");
    expect(() => compose(hispo, made(ocGrpo, { correction: "plain" }))).not.toThrow();
  });

  it("has the specification's numbers as defaults", () => {
    expect(ocGrpoOptions.parse({})).toMatchObject({
      schedule: "fixed",
      correction: "token",
      levels: [0.2, 0.4, 0.6, 0.8, 1],
      rho_max: 2,
      gamma_quantile: 0.9,
      hard_samples: 64,
      hard_temperature: 0.7,
      hard_top_p: 0.95,
    });
  });
});
