/** Low-rank adapters: against the fixtures of PEFT's formula, and what must hold of every adapter. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import { type Case, close, Fixture, gradientTolerance, policyLoss } from "../../../test/support/loaded-model.js";
import { randomKey } from "../../core/random.js";
import type { AdapterSource, Engine, SampleRequest, Sequence } from "../contract.js";
import { SafetensorsFile } from "../safetensors.js";
import { OnnxEngine } from "./engine.js";
import { accumulate, distance, fillAdapter, policySet, randomDerivatives, randomModel, randomSequence, sameBytes, sampleAll } from "./test-engine.js";

const folder = (): string => mkdtempSync(join(tmpdir(), "adapter-"));

describe.each(["llama-tied", "qwen2"])("the adapter of %s", (name) => {
  const path = fixture("models", name);
  let model: Fixture;
  beforeAll(async () => {
    model = await Fixture.open({ folder: name, expected: "expected", full: true });
    const source = { from: "folder", path } as const;
    const adapter = { from: "folder", path: `${path}/lora` } as const;
    const info = await model.engine.weights.load({ role: "policy", source, adapter, trainable: true });
    expect(info.adapter).toMatchObject({ rank: 4, alpha: 8, targets: ["q_proj", "v_proj"] });
  });
  afterAll(() => model.close());

  it("gives the log-probs of its formula", async () => {
    const scores = await model.engine.score(model.sequences());
    for (let s = 0; s < scores.length; s++) close(scores[s].logp, await model.array(`lora.logp.s${s}`), 1e-4);
  });

  it("has the gradient of A and B in every entry, and none of the base", async () => {
    const { engine, expected } = model;
    const { handle, scores } = await engine.forward(model.sequences());
    const { value, derivatives } = policyLoss(expected.coefficients)(scores);
    const of = expected.cases.lora as Case & { readonly value: number };
    expect(Math.abs(value - of.value)).toBeLessThan(1e-4 * Math.max(1, Math.abs(of.value)));
    await engine.backward(handle, derivatives, policySet);
    const { adapter } = await engine.weights.info("policy");
    const gradient = await engine.weights.readGradient(policySet, adapter?.tensors.map((tensor) => tensor.name) ?? []);
    for (const { name: tensor, data } of gradient) {
      if (tensor.startsWith("value_head.")) continue;
      const [, module, side] = /^base_model\.model\.(.+)\.lora_([AB])\.weight$/.exec(tensor) as unknown as [string, string, string];
      const want = await model.array(`lora.grad.${side}.${module}`);
      close(data, want, gradientTolerance * Math.max(...Array.from(want, Math.abs)));
    }
    await expect(engine.weights.readGradient(policySet, ["model.norm.weight"])).rejects.toThrow(/has no tensor model.norm.weight/);
    const { gradNorm } = await engine.step({ set: policySet, update: { rule: "sgd", rate: 0 } });
    expect(Math.abs(gradNorm - of.total_norm)).toBeLessThan(1e-4 * of.total_norm);
  });
});

const shape = { layers: 2, width: 32, heads: 4, kvHeads: 2, mlp: 48, vocabulary: 40, tied: true } as const;
const adapterOf = (seed = 7): AdapterSource => ({ from: "new", rank: 3, alpha: 6, targets: "all-linear", seed });
const sequencesOf = (role = "policy", scale?: number): Sequence[] =>
  [5, 9, 2].map((length, i) => ({ ...randomSequence(4, length, shape.vocabulary, i), weights: { role, ...(scale !== undefined && { scale }) } }));

async function logp(engine: Engine, sequences = sequencesOf()): Promise<number[][]> {
  return (await engine.score(sequences)).map((scores) => Array.from(scores.logp));
}

const requests = (role: string): SampleRequest[] =>
  [0, 1, 2].map((member) => ({
    context: { ids: Int32Array.of(3, 1, member), label: "plain" },
    weights: { role },
    temperature: 1,
    maxTokens: 8,
    stop: { ids: [] },
    key: randomKey({ seed: 5, purpose: "sample", member }),
  }));

describe("an adapter", () => {
  let engine: OnnxEngine;
  beforeAll(async () => {
    engine = await OnnxEngine.create({ threads: 1 });
    await engine.weights.load({ role: "base", source: randomModel(shape, 1), trainable: false });
  });
  afterAll(() => engine.close());

  const policy = async (): Promise<void> => {
    await engine.weights.load({ role: "policy", source: { from: "base", role: "base" }, adapter: adapterOf(), trainable: true });
  };

  it("changes no bit of the base as it begins, of scores and of samples", async () => {
    await policy();
    expect(await logp(engine)).toEqual(await logp(engine, sequencesOf("base")));
    const [drawn, plain] = [await sampleAll(engine, requests("policy")), await sampleAll(engine, requests("base"))];
    expect(drawn.map(({ ids, logp }) => [...ids, ...logp])).toEqual(plain.map(({ ids, logp }) => [...ids, ...logp]));
  });

  it("is the base bit for bit at scale 0, and something else at 1 and in between", async () => {
    await policy();
    await fillAdapter(engine);
    const [base, off, half, on] = await Promise.all([
      logp(engine, sequencesOf("base")),
      logp(engine, sequencesOf("policy", 0)),
      logp(engine, sequencesOf("policy", 0.5)),
      logp(engine),
    ]);
    expect(off).toEqual(base);
    const apart = (a: number[][], b: number[][]): number => Math.max(...a.flatMap((row, i) => row.map((x, t) => Math.abs(x - b[i][t]))));
    expect(apart(on, base)).toBeGreaterThan(0.05);
    expect(apart(half, base)).toBeGreaterThan(0.02);
    expect(apart(half, on)).toBeGreaterThan(0.02);
  });

  it("samples and scores alike", async () => {
    await policy();
    await fillAdapter(engine);
    const asked = requests("policy");
    const drawn = await sampleAll(engine, asked);
    const scored = await engine.score(drawn.map(({ ids }, i) => ({ context: asked[i].context, response: ids, weights: { role: "policy" }, temperature: 1 })));
    drawn.forEach((sample, i) => close(sample.logp, scored[i].logp, 1e-5));
  });

  it("merged into its weights gives the same log-probs, and full training goes on from there", async () => {
    await policy();
    await fillAdapter(engine);
    const before = await logp(engine);
    const names = ["model.layers.1.mlp.down_proj.weight", "model.layers.0.self_attn.q_proj.weight", "model.norm.weight"];
    const read = await engine.weights.read({ role: "policy" }, names);
    const info = await engine.weights.merge("policy");
    expect(info.adapter).toBeUndefined();
    (await logp(engine)).forEach((row, i) => close(row, before[i], 1e-5));
    (await engine.weights.read({ role: "policy" }, names)).forEach(({ data }, i) => close(data, read[i].data, 1e-6));
    await accumulate(engine, sequencesOf(), randomDerivatives(sequencesOf(), 1));
    await engine.step({ set: policySet, update: { rule: "adamw", rate: 1e-3 } });
    expect((await engine.weights.read({ role: "policy" }, ["model.norm.weight"]))[0].data).not.toEqual(read[2].data);
    // The base that it was shared with stayed as it was.
    await policy();
    expect(await logp(engine)).toEqual(await logp(engine, sequencesOf("base")));
  });

  it("learns alone: its base keeps its bytes, a snapshot its adapter, and a reset begins anew", async () => {
    await policy();
    const { tensors, adapter } = await engine.weights.info("base").then(async (base) => ({ ...(await engine.weights.info("policy")), tensors: base.tensors }));
    const names = tensors.map(({ name }) => name);
    const own = adapter?.tensors.map(({ name }) => name) ?? [];
    const before = await engine.weights.read({ role: "base" }, names);
    const begun = await engine.weights.read({ role: "policy" }, own);
    for (let step = 0; step < 3; step++) {
      await accumulate(engine, sequencesOf(), randomDerivatives(sequencesOf(), step));
      if (step === 2) await engine.weights.snapshot("policy", "kept");
      await engine.step({ set: policySet, update: { rule: "adamw", rate: 1e-2 } });
    }
    expect(sameBytes(await engine.weights.read({ role: "base" }, names), before)).toBe(true);
    const learnt = await engine.weights.read({ role: "policy" }, own);
    expect(distance(learnt, begun)).toBeGreaterThan(0.01);
    expect(sameBytes(await engine.weights.read({ role: "policy", at: "kept" }, own), learnt)).toBe(false);
    await engine.weights.restore("policy", "kept");
    expect(sameBytes(await engine.weights.read({ role: "policy" }, own), learnt)).toBe(false);
    await expect(engine.weights.merge("policy")).rejects.toThrow("drop them first");
    await expect(engine.weights.write("policy", [before[0]])).rejects.toThrow(/has no tensor/);
    await engine.weights.resetAdapter("policy", 7);
    expect(sameBytes(await engine.weights.read({ role: "policy" }, own), begun)).toBe(true);
    expect(await logp(engine)).toEqual(await logp(engine, sequencesOf("base")));
  });

  it("has the gradient of central differences, in A, B and a value head", async () => {
    await engine.weights.load({ role: "policy", source: { from: "base", role: "base" }, adapter: adapterOf(), valueHead: true, trainable: true });
    await fillAdapter(engine);
    const sequences = sequencesOf();
    const derivatives = sequences.map(({ response }, s) => ({
      dLogp: Float64Array.from(response, (_, t) => Math.cos(3 * t + s)),
      dValue: Float64Array.from({ length: response.length + 1 }, (_, t) => Math.sin(t + s)),
    }));
    const loss = async (): Promise<number> => {
      const scores = await engine.score(sequences, { values: true });
      return scores.reduce((sum, { logp, values }, s) => sum + dot(logp, derivatives[s].dLogp) + dot(values as Float64Array, derivatives[s].dValue), 0);
    };
    const { handle } = await engine.forward(sequences, { values: true });
    await engine.backward(handle, derivatives, policySet);
    const layers = ["self_attn.k_proj.lora_A", "self_attn.o_proj.lora_B", "mlp.gate_proj.lora_A", "mlp.up_proj.lora_B", "mlp.down_proj.lora_A"];
    const names = [...layers.map((end) => `base_model.model.model.layers.0.${end}.weight`), "value_head.weight", "value_head.bias"];
    const gradient = await engine.weights.readGradient(policySet, names);
    await engine.weights.zeroGradient(policySet);
    const values = await engine.weights.read({ role: "policy" }, names);
    for (const [i, { name, shape: dims, data }] of values.entries()) {
      const size = 0.005;
      const direction = data.map((_, j) => Math.sin(j + i));
      const at = async (sign: number): Promise<number> => {
        await engine.weights.write("policy", [{ name, shape: dims, data: data.map((x, j) => x + sign * size * direction[j]) }]);
        return loss();
      };
      const measured = ((await at(1)) - (await at(-1))) / (2 * size);
      await engine.weights.write("policy", [values[i]]);
      const wanted = dot(gradient[i].data, direction);
      expect(Math.abs(measured - wanted), name).toBeLessThan(0.01 * Math.max(1, Math.abs(wanted)));
    }
  });

  it("begins as PEFT does: B zero, A uniform within 1 / sqrt(inputs), by seed", async () => {
    await engine.weights.load({
      role: "wide",
      source: { from: "base", role: "base" },
      adapter: { ...adapterOf(), rank: 32 } as AdapterSource,
      trainable: true,
    });
    const { adapter } = await engine.weights.info("wide");
    for (const { name, data, shape: dims } of await engine.weights.read({ role: "wide" }, adapter?.tensors.map((tensor) => tensor.name) ?? [])) {
      if (name.includes("lora_B")) expect(data.every((x) => x === 0)).toBe(true);
      else {
        const bound = 1 / Math.sqrt(dims[1]);
        expect(Math.max(...data.map(Math.abs))).toBeLessThanOrEqual(bound);
        expect(Math.max(...data.map(Math.abs))).toBeGreaterThan(0.95 * bound);
        const deviation = Math.sqrt(data.reduce((sum, x) => sum + x * x, 0) / data.length);
        expect(Math.abs(deviation / (bound / Math.sqrt(3)) - 1)).toBeLessThan(0.06);
      }
    }
    await engine.weights.unload("wide");
  });
});

const dot = (a: ArrayLike<number>, b: ArrayLike<number>): number => Array.from(a).reduce((sum, x, i) => sum + x * b[i], 0);

describe("a PEFT folder", () => {
  let engine: OnnxEngine;
  let base: string;
  beforeAll(async () => {
    engine = await OnnxEngine.create({ threads: 1 });
    base = join(folder(), "base");
    await engine.weights.load({ role: "policy", source: randomModel(shape, 1), trainable: false });
    await engine.weights.save({ role: "policy" }, base);
    await engine.weights.load({ role: "policy", source: { from: "folder", path: base }, adapter: adapterOf(), trainable: true });
    await fillAdapter(engine);
  });
  afterAll(() => engine.close());

  it("is written and read back to the byte, and names its base", async () => {
    const path = join(folder(), "adapter");
    await engine.weights.save({ role: "policy" }, path);
    const config = JSON.parse(readFileSync(join(path, "adapter_config.json"), "utf8"));
    expect(config).toMatchObject({ peft_type: "LORA", r: 3, lora_alpha: 6, base_model_name_or_path: base });
    expect(config.target_modules).toEqual(["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]);
    await engine.weights.load({ role: "again", source: { from: "folder", path: base }, adapter: { from: "folder", path }, trainable: true });
    expect(await logp(engine, sequencesOf("again"))).toEqual(await logp(engine));
    const twice = join(folder(), "twice");
    await engine.weights.save({ role: "again" }, twice);
    for (const name of ["adapter_config.json", "adapter_model.safetensors"]) expect(readFileSync(join(twice, name))).toEqual(readFileSync(join(path, name)));
  });

  it("keeps what the fixture's has, byte for byte", async () => {
    const lora = fixture("models", "llama-tied", "lora");
    const source = { from: "folder", path: fixture("models", "llama-tied") } as const;
    await engine.weights.load({ role: "fixture", source, adapter: { from: "folder", path: lora }, trainable: false });
    const path = join(folder(), "adapter");
    await engine.weights.save({ role: "fixture" }, path);
    const [wrote, had] = await Promise.all([path, lora].map((each) => SafetensorsFile.open(join(each, "adapter_model.safetensors"))));
    expect([...wrote.entries.keys()]).toEqual([...had.entries.keys()]);
    for (const name of had.entries.keys()) expect(await wrote.readBytes(name)).toEqual(await had.readBytes(name));
    await Promise.all([wrote.close(), had.close()]);
  });

  it("can be saved merged instead, in float32 and in bfloat16", async () => {
    const before = await logp(engine);
    for (const [dtype, tolerance] of [
      ["f32", 1e-5],
      ["bf16", 0.1],
    ] as const) {
      const path = join(folder(), dtype);
      await engine.weights.save({ role: "policy" }, path, { form: "merged", dtype });
      expect(JSON.parse(readFileSync(join(path, "config.json"), "utf8")).torch_dtype).toBe(dtype === "f32" ? "float32" : "bfloat16");
      await engine.weights.load({ role: "merged", source: { from: "folder", path }, trainable: false });
      (await logp(engine, sequencesOf("merged"))).forEach((row, i) => close(row, before[i], tolerance));
    }
  });

  it("of another base, kind or rank is refused in one sentence", async () => {
    const path = join(folder(), "adapter");
    await engine.weights.save({ role: "policy" }, path);
    const load = (adapter: string, source = base) =>
      engine.weights.load({ role: "bad", source: { from: "folder", path: source }, adapter: { from: "folder", path: adapter }, trainable: true });
    await expect(load(path, fixture("models", "qwen2"))).rejects.toThrow(
      /it is an adapter of another base: tensor .+ has the shape \[3,32\] and .+qwen2 needs \[3,56\]/,
    );
    const other = join(folder(), "other");
    await engine.weights.load({ role: "other", source: randomModel(shape, 2), trainable: false });
    await engine.weights.save({ role: "other" }, other);
    await expect(load(path, other)).rejects.toThrow(/has other weights than those it was trained on; name the base/);
    const changed = async (change: object): Promise<string> => {
      const copy = join(folder(), "copy");
      await cp(path, copy, { recursive: true });
      const file = join(copy, "adapter_config.json");
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...change }));
      return copy;
    };
    await expect(load(await changed({ peft_type: "IA3" }))).rejects.toThrow('peft_type is "IA3"');
    await expect(load(await changed({ use_dora: true }))).rejects.toThrow("use_dora is true, which is not supported");
    await expect(load(await changed({ modules_to_save: ["lm_head"] }))).rejects.toThrow('modules_to_save is ["lm_head"]');
    await expect(load(await changed({ r: 5 }))).rejects.toThrow("is of rank 3, and adapter_config.json says r 5");
    await expect(load(await changed({ r: 0 }))).rejects.toThrow("r is 0");
    await expect(load(join(folder(), "nothing"))).rejects.toThrow("cannot be read (ENOENT)");
    await expect(load(folder())).rejects.toThrow("cannot be read (ENOENT)");
  });

  it("with rsLoRA's factor computes what PEFT would", async () => {
    const path = join(folder(), "adapter");
    await engine.weights.save({ role: "policy" }, path);
    const file = join(path, "adapter_config.json");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), use_rslora: true }));
    await engine.weights.load({ role: "rs", source: { from: "folder", path: base }, adapter: { from: "folder", path }, trainable: false });
    const want = await logp(engine, sequencesOf("policy", Math.sqrt(3)));
    (await logp(engine, sequencesOf("rs"))).forEach((row, i) => close(row, want[i], 1e-5));
  });
});
