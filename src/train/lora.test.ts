/** Runs whose policy is an adapter: what they keep, what they share, and what they are read by. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import type { Sequence } from "../engine/contract.js";
import { OnnxEngine } from "../engine/onnx/engine.js";
import { randomSequence } from "../engine/onnx/test-engine.js";
import { findModel, inspectModel, loadRequestOf } from "./find-model.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-lora-"));
const starter = join(repository, "starters", "chain-100k");
const common = {
  model: starter,
  task: { name: "chain", options: { modulus: 7 } },
  lora: { rank: 4 },
  steps: 2,
  problems: 4,
  group: 4,
  lr: 3e-3,
  checkpoint: { every: 1, keep_last: 100 },
} as const satisfies Partial<TrainOptions>;

let engine: OnnxEngine;
let run: string;
const policyOf = (out: string, step: number): string => join(RunReader.open(out).checkpoints.pathOf(step), "policy");
const storeOf = (role: string) => engine.weights.role(role, "test").current;

beforeAll(async () => {
  engine = await OnnxEngine.create({ threads: 1 });
  run = join(folder, "run");
  await train({ ...common, out: run, engine, method: { name: "grpo", options: { kl_coef: 0.01 } }, save: { form: "merged", dtype: "f32" } });
});
afterAll(async () => {
  await engine.close();
  rmSync(folder, { recursive: true, force: true });
});

const sequences = (role: string): Sequence[] => [3, 7].map((length, i) => ({ ...randomSequence(4, length, 18, i), weights: { role } }));
const logp = async (role: string): Promise<number[][]> => (await engine.score(sequences(role))).map((scores) => [...scores.logp]);

describe("a run with an adapter", () => {
  it("has PEFT folders for checkpoints, with the tokenizer beside them and no copy of the base", () => {
    const policy = policyOf(run, 2);
    expect(readdirSync(policy).sort()).toEqual(["adapter_config.json", "adapter_model.safetensors", "generation_config.json", "touchstone_tokenizer.json"]);
    const config = JSON.parse(readFileSync(join(policy, "adapter_config.json"), "utf8"));
    expect(config).toMatchObject({ base_model_name_or_path: starter, r: 4, lora_alpha: 8, target_modules: expect.arrayContaining(["q_proj", "down_proj"]) });
    expect(RunReader.open(run).run.config).toMatchObject({ model: starter, lora: { rank: 4, alpha: 8 } });
  });

  it("has as its reference the base itself, which is there once", () => {
    expect(storeOf("reference").adapter).toBeUndefined();
    expect(storeOf("reference").store).toBe(storeOf("policy").store);
  });

  it("begins at no distance from the reference, and leaves it", () => {
    const kl = [...RunReader.open(run).events()].flatMap(({ kind, data }) =>
      kind === "step" ? [(data.metrics as { readonly [name: string]: number }).kl_reference] : [],
    );
    expect(Math.abs(kl[0] as number)).toBeLessThan(1e-9);
    expect(kl[1]).toBeGreaterThan(1e-7);
  });

  it("writes the final policy merged where that is asked for", async () => {
    await engine.weights.load({ role: "merged", source: { from: "folder", path: join(run, "model") }, trainable: false });
    await engine.weights.load(loadRequestOf(await findModel(run), "found"));
    const [merged, found] = [await logp("merged"), await logp("found")];
    merged.forEach((row, s) => row.forEach((x, t) => expect(Math.abs(x - (found[s]?.[t] as number))).toBeLessThan(1e-5)));
  });

  it("goes on from an adapter, which the reference then begins with too, on one copy of the base", async () => {
    const out = join(folder, "again");
    await train({ ...common, model: `${run}@1`, lora: undefined, out, engine, steps: 1, method: { name: "grpo", options: { kl_coef: 0.01 } } });
    const { config } = RunReader.open(out).run as unknown as { config: { model: string; lora: { from: string; rank: number } } };
    expect(config).toMatchObject({ model: starter, lora: { rank: 4, from: policyOf(run, 1) } });
    expect(storeOf("reference").store).toBe(storeOf("policy").store);
    const weights = (path: string): Buffer => readFileSync(join(path, "adapter_model.safetensors"));
    expect(weights(policyOf(out, 0))).toEqual(weights(policyOf(run, 1)));
    expect(weights(policyOf(out, 1))).not.toEqual(weights(policyOf(run, 1)));
  });

  it.each([
    ["the rank of another than the adapter's", { model: "{run}", lora: { rank: 8 } }, /lora\.rank: it is 8, and the adapter .* that goes on to learn has 4/],
    ["a rank above the width", { lora: { rank: 65 } }, /lora\.rank: it is 65, above the model's width of 64/],
    ["a target that is no layer", { lora: { rank: 2, targets: ["lm_head"] } }, /lora: target "lm_head" is no linear layer/],
    ["an adapter of a run without one", { lora: undefined, save: { form: "adapter" } }, /save\.form: it is adapter, and this run has none/],
    ["an adapter in bfloat16", { save: { form: "adapter", dtype: "bf16" } }, /save\.dtype: it is bf16, and adapters are always f32/],
    ["the base of a whole model", { base: starter }, /option base: .*chain-100k is a whole model and no adapter; leave it out/],
  ] as const)("refuses %s", async (_, more, says) => {
    const options = { ...common, ...more, out: join(folder, "refused") } as TrainOptions;
    await expect(train({ ...options, model: options.model === "{run}" ? run : options.model })).rejects.toThrow(says);
    expect(existsSync(join(folder, "refused"))).toBe(false);
  });
});

describe("a resume", () => {
  it("refuses a base that is not the run's any more, or is gone", async () => {
    const base = join(folder, "base");
    await cp(starter, base, { recursive: true });
    const out = join(folder, "based");
    await train({ ...common, model: base, out, engine });
    const weights = readFileSync(join(base, "model.safetensors"));
    writeFileSync(join(base, "model.safetensors"), weights.fill(0, weights.length - 4000));
    await expect(resume(out, { engine })).rejects.toThrow(/it is an adapter of another base: .*base has other weights than those it was trained on/);
    rmSync(base, { recursive: true });
    await expect(resume(out, { engine })).rejects.toThrow(/^run .*based: its checkpoints are adapters on .*base, which is not here; put that folder back/);
  });
});

describe("a model that is an adapter", () => {
  it("is found with its base: as a folder, as a checkpoint of a run, and by a base that is given", async () => {
    const policy = policyOf(run, 2);
    expect(await findModel(policy)).toEqual({ folder: starter, adapter: policy });
    expect(await findModel(`${run}@1`)).toMatchObject({ folder: starter, adapter: policyOf(run, 1), run: { step: 1 } });
    const moved = join(folder, "moved");
    await cp(starter, moved, { recursive: true });
    expect(await findModel(policy, { base: moved })).toEqual({ folder: moved, adapter: policy });
    expect(await inspectModel({ folder: moved, adapter: policy })).toMatchObject({ family: "llama" });
    await expect(findModel(policy, { base: policy })).rejects.toThrow(/--base .*policy: it is an adapter itself; merge it first/);
    await expect(inspectModel({ folder: join(repository, "starters", "chain-1M"), adapter: policy })).rejects.toThrow("it is an adapter of another base");
  });

  it("that names no base, or one that is not here, says so", async () => {
    const policy = join(folder, "homeless");
    await cp(policyOf(run, 2), policy, { recursive: true });
    const file = join(policy, "adapter_config.json");
    const naming = (base: string | null): void =>
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), base_model_name_or_path: base }));
    naming(null);
    await expect(findModel(policy)).rejects.toThrow(
      /^model .*homeless: it is an adapter that does not say what its base is; name it with --base: its folder, a GGUF file or a hub id$/,
    );
    naming("/nowhere/base");
    await expect(findModel(policy)).rejects.toThrow(/^model .*homeless: it is an adapter, and its base \/nowhere\/base is not here; name it with --base/);
  });
});
