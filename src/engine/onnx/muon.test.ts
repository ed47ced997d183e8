import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fixture } from "../../../test/paths.js";
import type { UpdateRule } from "../contract.js";
import { parseModelConfig } from "./config.js";
import { isHidden, muonStep, type Orthogonalise, orthogonaliser } from "./muon.js";
import { Optimizer } from "./optimizer.js";
import { matrix, type Parameter, ParameterStore } from "./params.js";
import { loadRuntime } from "./runtime.js";
import { Sessions } from "./sessions.js";

interface MuonCase {
  readonly name: string;
  readonly shape: readonly [number, number];
  readonly lr: number;
  readonly momentum: number;
  readonly nesterov: boolean;
  readonly weight_decay: number;
  readonly adjust: "original" | "match_rms_adamw";
  readonly weight: number[];
  readonly steps: readonly { readonly gradient: number[]; readonly weight: number[]; readonly momentum_l2: number; readonly update_l2: number }[];
}

const { cases } = JSON.parse(readFileSync(fixture("optim", "muon.json"), "utf8")) as { cases: MuonCase[] };
const folder = mkdtempSync(join(tmpdir(), "muon-"));
let sessions: Sessions;
let orthogonalise: Orthogonalise;

beforeAll(async () => {
  sessions = new Sessions(await loadRuntime(), 1);
  orthogonalise = orthogonaliser(sessions);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await sessions.close();
});

describe("a step of Muon on a matrix", () => {
  it.each(cases)("equals the reference over three steps: $name", async ({ shape, lr, momentum, nesterov, adjust, weight_decay: decay, weight, steps }) => {
    const [rows, columns] = shape;
    const parameter: Parameter = { ...matrix("m", columns, [["layers.0.m.weight", rows]]), data: Float32Array.from(weight) };
    const moment = new Float32Array(weight.length);
    for (const step of steps) {
      parameter.grad = Float32Array.from(step.gradient);
      await muonStep(parameter, moment, { rate: lr, decay }, { rule: "muon", rate: lr, momentum, nesterov, adjust }, 1, orthogonalise);
      expect(Math.hypot(...moment)).toBeCloseTo(step.momentum_l2, 6);
      // The reference is in float64. Five steps enlarge the rounding of small singular values up to 500 times: within lr / 1000.
      const off = step.weight.map((w, i) => Math.abs(w - (parameter.data[i] as number)));
      expect(Math.max(...off)).toBeLessThan(lr * 1e-3);
    }
  });

  it("clips by the factor that it is given, and rate 0 leaves the weights", async () => {
    const parameter: Parameter = { ...matrix("m", 2, [["layers.0.m.weight", 2]]), data: Float32Array.of(1, 2, 3, 4) };
    parameter.grad = Float32Array.of(4, 0, 0, 2);
    const moment = new Float32Array(4);
    await muonStep(parameter, moment, { rate: 0, decay: 0.5 }, { rule: "muon", rate: 0, momentum: 0.5 }, 0.5, orthogonalise);
    expect([...moment]).toEqual([1, 0, 0, 0.5]);
    expect([...parameter.data]).toEqual([1, 2, 3, 4]);
  });
});

const config = parseModelConfig(
  {
    architectures: ["Qwen2ForCausalLM"],
    vocab_size: 40,
    hidden_size: 16,
    intermediate_size: 24,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    max_position_embeddings: 16,
  },
  "test",
);

function store(): ParameterStore {
  const made = ParameterStore.random(config, 1, true);
  setGradient(made, 0);
  return made;
}
function setGradient(to: ParameterStore, step: number): void {
  for (const [p, parameter] of to.parameters.entries()) to.gradient(parameter).forEach((_, i, grad) => (grad[i] = 0.01 * Math.sin(1 + i + 31 * p + 7 * step)));
}
const muon: UpdateRule = { rule: "muon", rate: 0.01, beta1: 0.8, weightDecay: 0.1 };
const adamw: UpdateRule = { rule: "adamw", rate: 0.01, beta1: 0.8, weightDecay: 0.1 };

describe("a step of Muon on a model", () => {
  it("is AdamW's on embedding, head, norms, biases and value head, and another on the layers' matrices", async () => {
    const [model, other] = [store(), store()];
    await new Optimizer(1, orthogonalise).step(model, muon, { maxNorm: 0.05 });
    await new Optimizer().step(other, adamw, { maxNorm: 0.05 });
    const same = model.tensors.filter(({ name }) => Buffer.compare(Buffer.from(model.read(name).buffer), Buffer.from(other.read(name).buffer)) === 0);
    expect(same.map(({ name }) => name)).toEqual(model.tensors.filter(({ name }) => !/layers\.\d+\..*_proj\.weight$/.test(name)).map(({ name }) => name));
    expect(model.parameters.filter(isHidden)).toHaveLength(14);
  });

  it("takes rates and decays by tensor, and nothing moves where a gradient is not finite", async () => {
    const model = store();
    const before = model.clone();
    const q = "model.layers.0.self_attn.q_proj.weight";
    const optimizer = new Optimizer(1, orthogonalise);
    await optimizer.step(model, muon, { groups: [{ match: "q_proj", rateScale: 0 }] });
    expect(model.read(q)).toEqual(before.read(q));
    const still = model.clone();
    setGradient(model, 1);
    model.gradient(model.get("layers.1.up"))[3] = Number.NaN;
    expect((await optimizer.step(model, muon)).skipped).toEqual({ parameter: "model.layers.1.mlp.up_proj.weight", count: 1 });
    for (const { name } of model.tensors) expect(model.read(name)).toEqual(still.read(name));
  });

  it("goes on from its file with the same bytes", async () => {
    const [model, optimizer] = [store(), new Optimizer(1, orthogonalise)];
    for (const step of [0, 1]) {
      setGradient(model, step);
      await optimizer.step(model, muon);
    }
    const path = join(folder, "state.safetensors");
    await optimizer.save(path, model);
    const [copy, back] = [model.clone(), new Optimizer(1, orthogonalise)];
    await back.load(path, copy);
    for (const [made, to] of [
      [optimizer, model],
      [back, copy],
    ] as const) {
      setGradient(to, 2);
      await made.step(to, muon);
    }
    for (const { name } of model.tensors) expect(copy.read(name), name).toEqual(model.read(name));
  });
});
