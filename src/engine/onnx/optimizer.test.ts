import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import type { UpdateRule } from "../contract.js";
import { SafetensorsFile } from "../safetensors.js";
import { writeSafetensors } from "../safetensors-write.js";
import { parseModelConfig } from "./config.js";
import { loadFolder } from "./folder.js";
import { Optimizer } from "./optimizer.js";
import { ParameterStore } from "./params.js";
import { runHere, StepThreads } from "./step-threads.js";
import { copyWeights, flatWeights } from "./test-engine.js";
import type { Job } from "./update.js";

const folder = mkdtempSync(join(tmpdir(), "optimizer-"));
afterAll(() => rmSync(folder, { recursive: true }));

const sizes = {
  vocab_size: 40,
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 16,
};
const config = parseModelConfig({ architectures: ["LlamaForCausalLM"], ...sizes }, "test");
const adamw: UpdateRule = { rule: "adamw", rate: 0.01, weightDecay: 0.1 };
const k = "model.layers.0.self_attn.k_proj.weight";
const q = "model.layers.0.self_attn.q_proj.weight";

function store(seed = 1): ParameterStore {
  const made = ParameterStore.random(config, seed, true);
  setGradient(made, 0);
  return made;
}

function setGradient(to: ParameterStore, step: number): void {
  for (const [p, parameter] of to.parameters.entries()) to.gradient(parameter).forEach((_, i, grad) => (grad[i] = 0.01 * Math.sin(1 + i + 31 * p + 7 * step)));
}

async function steps(optimizer: Optimizer, to: ParameterStore, from: number, count: number): Promise<void> {
  for (let step = from; step < from + count; step++) {
    setGradient(to, step);
    await optimizer.step(to, adamw, { maxNorm: 0.05 });
  }
}

describe("a step of AdamW on a model", () => {
  it("agrees with the reference of llama-tied: norm, clipping, exclusions, listed entries", async () => {
    const model = await loadFolder(fixture("models", "llama-tied"), { valueHead: false });
    const before = model.clone();
    const expected = JSON.parse(readFileSync(fixture("models", "llama-tied", "expected.json"), "utf8")).cases.adamw;
    const gradients = await SafetensorsFile.open(fixture("models", "llama-tied", "policy-gradients-full.safetensors"));
    for (const { name } of model.tensors) {
      // The file has the gradient of the objective, which is to grow.
      const { parameters } = model;
      const parameter = parameters.find(({ parts }) => parts.some((part) => part.name === name))!;
      const part = parameter.parts.find((p) => p.name === name)!;
      const at = part.rowStart * (parameter.shape[1] ?? 1);
      model.gradient(parameter).set(
        (await gradients.readFloat32(name)).map((x) => -x),
        at,
      );
    }
    await gradients.close();
    const rule: UpdateRule = {
      rule: "adamw",
      rate: expected.lr,
      beta1: expected.beta1,
      beta2: expected.beta2,
      epsilon: expected.eps,
      weightDecay: expected.weight_decay,
    };
    const result = await new Optimizer().step(model, rule, { maxNorm: expected.max_norm, groups: [{ match: "norm\\.weight$", weightDecay: 0 }] });
    const [first] = expected.steps;
    expect(result.gradNorm / first.gradient_norm_before_clipping).toBeCloseTo(1, 6);
    expect(result.clipped).toBe(true);
    for (const [name, { index, update, update_l2 }] of Object.entries(first.parameters) as [
      string,
      { index: number[]; update: number[]; update_l2: number },
    ][]) {
      const [w0, w1] = [before.read(name), model.read(name)];
      for (const [i, at] of index.entries()) expect(Math.abs(w1[at] - w0[at] - update[i])).toBeLessThan(2e-3 * expected.lr);
      expect(Math.hypot(...w1.map((w, i) => w - w0[i])) / update_l2).toBeCloseTo(1, 2);
    }
  });

  it("takes rates and decays from the first group that matches a Hugging Face name, within one fused array", async () => {
    const model = store();
    const before = model.clone();
    const plain = store();
    await new Optimizer().step(plain, adamw);
    const groups = [
      { match: "k_proj", rateScale: 0 },
      { match: "_proj", rateScale: 2, weightDecay: 0.1 },
    ];
    await new Optimizer().step(model, adamw, { groups });
    expect(model.read(k)).toEqual(before.read(k));
    expect(model.read("model.norm.weight")).toEqual(plain.read("model.norm.weight"));
    const [b, once, twice] = [before.read(q), plain.read(q), model.read(q)];
    for (let i = 0; i < b.length; i++) expect(Math.abs(twice[i] - b[i] - 2 * (once[i] - b[i]))).toBeLessThan(1e-7);
    await expect(new Optimizer().step(model, adamw, { groups: [{ match: "(" }] })).rejects.toThrow(/the group's match "\(" is no regular expression/);
  });

  it("reports the norm before clipping, and clips only above the limit", async () => {
    const model = store();
    const exact = Math.sqrt(model.parameters.reduce((sum, { grad }) => sum + grad!.reduce((s, x) => s + x * x, 0), 0));
    const loose = await new Optimizer().step(model, { ...adamw, rate: 0 }, { maxNorm: exact * 1.001 });
    expect(loose.gradNorm).toBeCloseTo(exact, 12);
    expect(loose.clipped).toBe(false);
    expect((await new Optimizer().step(model, { ...adamw, rate: 0 }, { maxNorm: exact * 0.999 })).clipped).toBe(true);
  });

  it("scales the gradient by maxNorm / (norm + 1e-6) when it clips", async () => {
    const model = store();
    const before = model.clone();
    const { gradNorm } = await new Optimizer().step(model, { rule: "sgd", rate: 1 }, { maxNorm: 0.01 });
    const moved = Math.hypot(...flatWeights(model).map((w, i) => w - flatWeights(before)[i]));
    expect(moved).toBeCloseTo((0.01 * gradNorm) / (gradNorm + 1e-6), 6);
  });

  it("with rate 0 leaves every weight's bits", async () => {
    const model = store();
    const before = flatWeights(model);
    const result = await new Optimizer().step(model, { ...adamw, rate: 0 });
    expect(new Uint32Array(flatWeights(model).buffer)).toEqual(new Uint32Array(before.buffer));
    expect(result.gradNorm).toBeGreaterThan(0);
  });

  it("treats a parameter on which nothing fell as having gradient 0", async () => {
    const [with0, without] = [store(), store()];
    with0.get("valueWeight").grad!.fill(0);
    without.get("valueWeight").grad = undefined;
    await new Optimizer().step(with0, adamw);
    await new Optimizer().step(without, adamw);
    expect(flatWeights(without)).toEqual(flatWeights(with0));
  });
});

describe("a gradient that is not finite", () => {
  it.each([Number.NaN, Number.POSITIVE_INFINITY])("of %s skips the step, names the tensor, counts, and changes nothing", async (value) => {
    const [model, twin] = [store(), store()];
    const [optimizer, other] = [new Optimizer(), new Optimizer()];
    await steps(optimizer, model, 0, 2);
    await steps(other, twin, 0, 2);
    const before = flatWeights(model);
    for (const count of [1, 2]) {
      setGradient(model, 9);
      model.get("layers.0.k").grad![3] = value;
      model.get("norm").grad![0] = value;
      const result = await optimizer.step(model, adamw, { maxNorm: 1 });
      expect(result).toMatchObject({ clipped: false, skipped: { parameter: k, count } });
      expect(Number.isFinite(result.gradNorm)).toBe(false);
      expect(flatWeights(model)).toEqual(before);
    }
    // Moments and step count are untouched, too: the next steps are those of a twin that never saw it.
    await steps(optimizer, model, 2, 2);
    await steps(other, twin, 2, 2);
    expect(flatWeights(model)).toEqual(flatWeights(twin));
  });
});

describe("threads", () => {
  const jobsOf = (model: ParameterStore): Job[] =>
    model.parameters.map(({ data, grad }) => ({
      ranges: [{ start: 0, end: data.length, rate: 0.01, decay: 0.1 }],
      data,
      grad: grad!,
      first: new Float32Array(data.length),
      second: new Float32Array(data.length),
    }));
  const update = { rule: "adamw", beta1: 0.9, beta2: 0.999, epsilon: 1e-8, t: 1 } as const;

  it("give the same bits, norm and order of inspections as one, for 2 and 3", async () => {
    const alone = jobsOf(store());
    let expected: readonly unknown[] = [];
    runHere(alone, (inspections) => {
      expected = inspections;
      return { update, clip: 0.5 };
    });
    for (const count of [2, 3]) {
      const threads = new StepThreads(count);
      const jobs = jobsOf(store());
      let seen: readonly unknown[] = [];
      await threads.run(jobs, (inspections) => {
        seen = inspections;
        return { update, clip: 0.5 };
      });
      await threads.close();
      expect(seen).toEqual(expected);
      expect(jobs).toEqual(alone);
    }
  });

  it("give buffers back as they were when the step is left out, also for two steps asked for at once", async () => {
    const threads = new StepThreads(2);
    const [one, two] = [jobsOf(store(1)), jobsOf(store(2))];
    const skip = { update: undefined, clip: 0 };
    await Promise.all([threads.run(one, () => skip), threads.run(two, () => skip)]);
    await threads.close();
    expect(one).toEqual(jobsOf(store(1)));
    expect(two).toEqual(jobsOf(store(2)));
  });

  it("are used for a large model with the same result as one, and give its arrays back", async () => {
    const large = { ...config, vocabulary: 19_000, width: 80, headDim: 20 };
    const made = [1, 2].map(() => ParameterStore.random(large, 1));
    expect(made[0].count).toBeGreaterThan(3_000_000);
    for (const [i, model] of made.entries()) {
      setGradient(model, 0);
      const optimizer = new Optimizer(i + 1);
      const held = model.parameters.map(({ data }) => data);
      await optimizer.step(model, adamw, { maxNorm: 1 });
      // Buffers that were on another thread come back under new views, and the old ones are empty.
      expect(held.some((data) => data.length === 0)).toBe(i === 1);
      for (const { data, shape, grad } of model.parameters) for (const array of [data, grad!]) expect(array.length).toBe(shape[0] * (shape[1] ?? 1));
    }
    const [one, two] = made.map((model) => Buffer.from(flatWeights(model).buffer));
    expect(two.equals(one)).toBe(true);
  });

  it("that end in the middle of a step make an error that says so", async () => {
    const threads = new StepThreads(2);
    const running = threads.run(jobsOf(store()), () => ({ update, clip: 1 }));
    await threads.close();
    await expect(running).rejects.toThrow(/a thread of the optimizer ended with code \d; start the engine again/);
  });
});

describe("saved state", () => {
  it("continues byte for byte", async () => {
    const [model, twin] = [store(), store()];
    const [optimizer, resumed] = [new Optimizer(), new Optimizer()];
    await steps(optimizer, model, 0, 3);
    const file = join(folder, "state");
    await optimizer.save(file, model, { version: "@3" });
    await steps(resumed, twin, 0, 1);
    copyWeights(model, twin);
    expect(await resumed.load(file, twin)).toMatchObject({ version: "@3", steps: "3", skipped: "0" });
    await resumed.save(join(folder, "again"), twin, { version: "@3" });
    expect(readFileSync(join(folder, "again"))).toEqual(readFileSync(file));
    await steps(optimizer, model, 3, 2);
    await steps(resumed, twin, 3, 2);
    expect(flatWeights(twin)).toEqual(flatWeights(model));
  });

  it("has moments by Hugging Face names: after one step a tenth of the gradient", async () => {
    const model = store();
    const optimizer = new Optimizer();
    await optimizer.step(model, adamw);
    await optimizer.save(join(folder, "named"), model);
    const opened = await SafetensorsFile.open(join(folder, "named"));
    const first = await opened.readFloat64(`exp_avg.${k}`);
    expect(opened.entry(`exp_avg_sq.${k}`).shape).toEqual([8, 16]);
    await opened.close();
    model.readGradient(k).forEach((g, i) => {
      expect(first[i]).toBeCloseTo(0.1 * g, 8);
    });
  });

  it("keeps the momentum of SGD", async () => {
    const [model, twin] = [store(), store()];
    const rule: UpdateRule = { rule: "sgd", rate: 0.1, momentum: 0.9 };
    const [optimizer, resumed] = [new Optimizer(), new Optimizer()];
    await optimizer.step(model, rule);
    await optimizer.save(join(folder, "sgd"), model);
    await resumed.load(join(folder, "sgd"), twin);
    copyWeights(model, twin);
    await optimizer.step(model, rule);
    await resumed.step(twin, rule);
    expect(flatWeights(twin)).toEqual(flatWeights(model));
  });

  it("of another model, damaged, or no state at all is refused, and the state stays", async () => {
    const model = store();
    const optimizer = new Optimizer();
    await optimizer.step(model, adamw);
    const kept = join(folder, "kept");
    await optimizer.save(kept, model);
    const load = (name: string) => optimizer.load(join(folder, name), model);
    await expect(optimizer.load(fixture("models", "llama-tied", "model.safetensors"), model)).rejects.toThrow(/it holds no optimizer state/);
    const text = { format: "touchstone-optimizer", steps: "1", skipped: "0" };
    await writeSafetensors(join(folder, "other"), [{ name: "exp_avg.model.extra", shape: [1], data: new Float32Array(1) }], text);
    await expect(load("other")).rejects.toThrow(/tensor exp_avg.model.extra belongs to no parameter/);
    await writeSafetensors(join(folder, "shape"), [{ name: "exp_avg.model.norm.weight", shape: [4], data: new Float32Array(4) }], text);
    await expect(load("shape")).rejects.toThrow(/tensor exp_avg.model.norm.weight is F32 \[4\] where the model has F32 \[16\]/);
    await writeSafetensors(join(folder, "part"), [{ name: "exp_avg.model.norm.weight", shape: [16], data: new Float32Array(16) }], text);
    await expect(load("part")).rejects.toThrow(/tensor exp_avg.model.embed_tokens.weight is missing/);
    await optimizer.save(join(folder, "after"), model);
    expect(readFileSync(join(folder, "after"))).toEqual(readFileSync(kept));
  });
});
