/** A fixture model loaded into the embedded engine, with the numbers that a plain float64 transformer computed (test/fixtures/README.md). */
import { copyFileSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { plainContext } from "../../src/core/problem.js";
import type { Derivatives, Scores, Sequence, Targets, TensorValue } from "../../src/engine/contract.js";
import { OnnxEngine } from "../../src/engine/onnx/engine.js";
import { SafetensorsFile } from "../../src/engine/safetensors.js";
import { fixture } from "../paths.js";

export interface Case {
  readonly value: number;
  readonly total_norm: number;
  readonly gradients: { readonly [name: string]: { readonly l2: number; readonly max_abs: number; readonly index: number[]; readonly value: number[] } };
}
export interface Target {
  readonly sequence: number;
  readonly position: number;
  readonly ids: number[];
  readonly q: number[];
  readonly q_tail: number;
  readonly weight: number;
}
export interface Expected {
  readonly sequences: { readonly ids: number[] }[];
  readonly coefficients: number[][];
  readonly sparse_targets: Target[];
  readonly signed_scores: { readonly sequence: number; readonly position: number; readonly ids: number[]; readonly s: number[]; readonly s_tail: number }[];
  // biome-ignore lint/suspicious/noExplicitAny: the cases have fields of their own, listed in the fixtures' README
  readonly cases: { readonly [name: string]: Case & { readonly [field: string]: any } };
}

/** Ten times what float32 was off by (test/fixtures/README.md); the tail term is the least exact. */
export const gradientTolerance = 1e-4;

export interface FixtureModel {
  readonly folder: string;
  /** Name of the files with the expected numbers. */
  readonly expected: string;
  /** Whether they hold more than log-probs and the gradient of one loss. */
  readonly full: boolean;
  /** Of llama-rope: the configuration in place of its own. */
  readonly config?: string;
}

export const fixtureModels: readonly FixtureModel[] = [
  { folder: "llama-tied", expected: "expected", full: true },
  { folder: "smollm", expected: "expected", full: true },
  { folder: "qwen2", expected: "expected", full: true },
  { folder: "qwen3", expected: "expected", full: true },
  { folder: "qwen3-bf16-sharded", expected: "expected", full: false },
  { folder: "llama-f16", expected: "expected", full: false },
  ...["default", "linear", "yarn", "yarn-untruncated", "llama3"].map((kind) => ({
    folder: "llama-rope",
    expected: `expected.${kind}`,
    full: false,
    config: `configs/${kind}.json`,
  })),
];

/** A loss of what forward returned, with its derivatives. */
export type FixtureLoss = (scores: readonly Scores[]) => { readonly value: number; readonly derivatives: readonly Derivatives[] };

/** A folder with the weights of a model and another configuration of its folder. */
export function withConfig(path: string, config: string): string {
  const folder = mkdtempSync(join(tmpdir(), "fixture-"));
  for (const name of ["model.safetensors", "generation_config.json"]) copyFileSync(join(path, name), join(folder, name));
  copyFileSync(join(path, config), join(folder, "config.json"));
  return folder;
}

export class Fixture {
  private constructor(
    readonly path: string,
    readonly expected: Expected,
    readonly engine: OnnxEngine,
    /** Names of the model's tensors. */
    readonly names: readonly string[],
    readonly arrays: SafetensorsFile,
  ) {}

  /** Loads the model as the role `policy`, with the snapshot `start` of its weights. */
  static async open({ folder, expected: name, full, config }: FixtureModel): Promise<Fixture> {
    const path = fixture("models", folder);
    const expected = JSON.parse(readFileSync(`${path}/${name}.json`, "utf8")) as Expected;
    const arrays = await SafetensorsFile.open(`${path}/${name}.safetensors`);
    const engine = await OnnxEngine.create({ threads: 1 });
    const info = await engine.weights.load({
      role: "policy",
      source: { from: "folder", path: config === undefined ? path : withConfig(path, config) },
      trainable: true,
      ...(full ? { valueHead: true } : {}),
    });
    await engine.weights.snapshot("policy", "start");
    return new Fixture(
      path,
      expected,
      engine,
      info.tensors.map((tensor) => tensor.name),
      arrays,
    );
  }

  async close(): Promise<void> {
    await this.arrays.close();
    await this.engine.close();
  }

  async array(key: string): Promise<ArrayLike<number>> {
    return (await this.arrays.readFloat64(key)) as ArrayLike<number>;
  }

  sequences(temperature = 1): Sequence[] {
    return this.expected.sequences.map(({ ids }) => ({
      context: plainContext(ids.slice(0, 1)),
      response: Int32Array.from(ids.slice(1)),
      weights: { role: "policy" },
      temperature,
    }));
  }

  /** Backward of a case's derivatives, compared with every listed entry of every tensor. */
  async compare(of: Case, temperature: number, want: { entropy?: boolean; values?: boolean; targets?: Targets[] }, loss: FixtureLoss): Promise<TensorValue[]> {
    const { engine } = this;
    const { handle, scores } = await engine.forward(this.sequences(temperature), want);
    const { value, derivatives } = loss(scores);
    expect(Math.abs(value - of.value)).toBeLessThan(1e-5 * Math.max(1, Math.abs(of.value)) * 2);
    await engine.backward(handle, derivatives, "role:policy");
    const listed = Object.keys(of.gradients);
    const gradient = await engine.weights.readGradient("role:policy", listed);
    await engine.weights.zeroGradient("role:policy");
    for (const { name: tensor, data } of gradient) {
      const { index, value: values, max_abs, l2 } = of.gradients[tensor];
      index.forEach((at, i) => {
        expect(Math.abs(data[at] - values[i]), `${tensor}[${at}]`).toBeLessThan(gradientTolerance * max_abs + 1e-12);
      });
      expect(Math.abs(Math.hypot(...data) - l2)).toBeLessThan(gradientTolerance * l2 + 1e-12);
    }
    return gradient;
  }
}

export function close(got: ArrayLike<number>, want: ArrayLike<number>, tolerance: number): void {
  expect(got.length).toBe(want.length);
  let worst = 0;
  for (let i = 0; i < want.length; i++) worst = Math.max(worst, Math.abs(got[i] - want[i]));
  expect(worst).toBeLessThan(tolerance);
}

/** Σ coefficient · log-prob. */
export const policyLoss =
  (coefficients: readonly (readonly number[])[]): FixtureLoss =>
  (scores: readonly Scores[]) => ({
    value: scores.reduce((sum, { logp }, s) => logp.reduce((a, x, t) => a + x * coefficients[s][t], sum), 0),
    derivatives: coefficients.map((c) => ({ dLogp: Float64Array.from(c) })),
  });
