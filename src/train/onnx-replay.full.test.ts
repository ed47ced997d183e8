/** On the onnx engine: refills, a critic, two sources with weights and conversations, interrupted, resumed and judged elsewhere, to the same bytes. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repository } from "../../test/paths.js";
import { snapshot } from "../../test/support/run-writer.js";
import { saveAlphabet } from "../core/alphabet.js";
import { startOnnx } from "../engine/onnx/start.js";
import { guess } from "../tasks/guess/guess.js";
import { policyConfig } from "./starter.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-onnx-replay-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const starter = join(repository, "starters", "chain-100k");
const player = join(folder, "player");

beforeAll(async () => {
  const engine = await startOnnx({ engine: { threads: 1 } });
  const { tokenizer } = guess();
  await engine.weights.load({ role: "policy", trainable: false, source: { from: "config", config: policyConfig("100k", tokenizer!, 64), seed: 1 } });
  await engine.weights.save({ role: "policy" }, player);
  await saveAlphabet(tokenizer!, player);
  await engine.close();
});

function source(name: string, from: number, n: number): string {
  const file = join(folder, name);
  writeFileSync(
    file,
    Array.from({ length: n }, (_, i) => `${JSON.stringify({ prompt: `${(from + i) % 7}+${i % 7}`, answer: `${i}`, key: `${name}${i}` })}\n`).join(""),
  );
  return file;
}

/** A reward of which these policies get some: how long an answer is, even or odd. */
function parity(): string {
  const file = join(folder, "parity.ts");
  writeFileSync(file, "export default (_: unknown, response: string) => response.length % 2;\n");
  return file;
}

const chain = { name: "chain", options: { modulus: 7 } };
const runs: { readonly [what: string]: () => Partial<TrainOptions> } = {
  "groups without signal that are drawn again": () => ({ task: chain, method: "dapo", problems: 6, group: 4 }),
  "Muon on the matrices of the layers": () => ({ task: chain, optimizer: { rule: "muon" } }),
  "a critic": () => ({ task: chain, method: "ppo", roles: { critic: { lr: 1e-3 } } }),
  "an adapter, its reference, and a batch drawn ahead": () => ({
    task: chain,
    lora: { rank: 4 },
    method: { name: "grpo", options: { kl_coef: 0.01 } },
    overlap: 1,
    save: { form: "merged", dtype: "bf16" },
  }),
  "an adapter, with a critic that is one too": () => ({
    task: chain,
    lora: { rank: 2, targets: ["q_proj", "v_proj"] },
    method: "ppo",
    roles: { critic: { lr: 1e-3 } },
  }),
  "an adapter and its moving average": () => ({
    task: chain,
    lora: { rank: 2 },
    method: { name: "grpo", options: { kl_coef: 0.01 } },
    roles: { reference: { average: { decay: 0.5 } } },
  }),
  "two sources with weights": () => ({
    data: {
      key_column: "key",
      sources: [
        { file: source("small.jsonl", 0, 7), weight: 1 },
        { file: source("large.jsonl", 1, 7), weight: 2, bad_rows: "skip" },
      ],
    },
    verifier: parity(),
    max_tokens: 12,
  }),
  conversations: () => ({ model: player, task: "guess", verifier: parity() }),
  "conversations, with a batch drawn ahead": () => ({ model: player, task: "guess", verifier: parity(), overlap: 1 }),
};

describe("a run on the onnx engine has the bytes of one that was left alone and judged on no thread", () => {
  it.each(Object.keys(runs))("with %s", async (what) => {
    const common = {
      model: starter,
      steps: 3,
      problems: 4,
      group: 4,
      minibatches: 2,
      lr: 3e-4,
      checkpoint: { every: 2, keep_last: 100 },
      engine: { threads: 1, workers: 1 },
    };
    const more = (runs[what] as (typeof runs)[string])();
    const name = what.replaceAll(" ", "-");
    const whole = { ...common, ...more, out: join(folder, name, "whole"), verifier_workers: 0 } as TrainOptions;
    await train(whole);
    const controller = new AbortController();
    const onProgress: TrainOptions["onProgress"] = (progress) => progress.kind === "step" && progress.step === 1 && controller.abort();
    const cut = { ...whole, out: join(folder, name, "cut"), verifier_workers: 2, signal: controller.signal, onProgress };
    expect((await train(cut)).reason).toBe("interrupted");
    expect(await resume(cut.out)).toMatchObject({ reason: "done", steps: 3 });
    const [expected, is] = [snapshot(whole.out), snapshot(cut.out)];
    expect(Object.keys(expected).filter((path) => is[path] !== expected[path])).toEqual([]);
    const steps = [...RunReader.open(whole.out).events()].filter(({ kind }) => kind === "step");
    expect(steps.some(({ data }) => (data.metrics as { updates: number }).updates > 0)).toBe(true);
  });
});
