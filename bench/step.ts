/**
 * `npm run bench step`: whole GRPO steps of `train`, how much of each is spent outside the engine, and the same step of TRL's
 * GRPOTrainer where the peers' environment is there: same shape, prompts, group, answer lengths and allocator settings.
 *
 *     npm run bench step [-- 1M 135M] [-- --rounds 3]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { alphabetTokenizer } from "../src/core/alphabet.js";
import { accept, partial, reject } from "../src/core/verdict.js";
import { OnnxEngine } from "../src/engine/onnx/engine.js";
import { localForm } from "../src/engine/onnx/start.js";
import { anyMethod } from "../src/methods/catalogue.js";
import { defineTask } from "../src/tasks/define.js";
import { train } from "../src/train/train.js";
import { allocator, best, median, peer, peersSaid, say, share, steady, sum } from "./lib/peers.js";
import { configOf, type ShapeName, shapes } from "./lib/shapes.js";

/** The peers' byte-level tokenizer has so many tokens; the tiny shapes get an embedding of that size on both sides. */
const tinyVocabulary = 400;

interface Row {
  readonly shape: ShapeName;
  readonly problems: number;
  readonly group: number;
  readonly tokens: number;
  readonly steps: number;
  readonly warmup: number;
  readonly lr: number;
  /** Answers in one pass of the peer; ours decides itself. */
  readonly micro: number;
}

const rows: readonly Row[] = [
  { shape: "1M", problems: 16, group: 8, tokens: 32, steps: 20, warmup: 3, lr: 1e-3, micro: 128 },
  { shape: "135M", problems: 4, group: 8, tokens: 64, steps: 3, warmup: 1, lr: 1e-5, micro: 8 },
];

/** Answers run to their budget, as the peer's do: no id ends one. */
const endless = anyMethod({
  name: "endless",
  paper: "our choice",
  options: z.strictObject({}),
  initial: null,
  make: () => ({ name: "endless", slots: { prepare: { run: (request) => ({ ...request, stop: { ids: [] } }) } } }),
});

/** Toy sums, paid by the share of even digits among the digits of the answer, as in bench/peers/trl_grpo.py. */
const sums = ({ tokens }: Row) =>
  defineTask({
    name: "sums",
    draw: (random) => ({ prompt: `${1 + random.int(49)} + ${1 + random.int(49)} =`, answer: "" }),
    verify: ({ response }) => {
      const digits = [...response].filter((c) => c >= "0" && c <= "9");
      const even = digits.filter((c) => Number(c) % 2 === 0).length / Math.max(1, digits.length);
      return even === 0 ? reject("odd") : even === 1 ? accept() : partial(even);
    },
    maxTokens: tokens,
    tokenizer: alphabetTokenizer([..."0123456789+= "]),
  });

async function randomPolicy({ shape }: Row, folder: string): Promise<void> {
  const config = { ...configOf(shape), vocab_size: Math.max(tinyVocabulary, shapes[shape].vocabulary) };
  const engine = await OnnxEngine.create({ threads: 1 });
  await engine.weights.load({ role: "policy", source: { from: "config", config, seed: 1 }, trainable: false });
  await engine.weights.save({ role: "policy" }, folder);
  await engine.close();
}

interface Step {
  /** From the end of the step before to this one's: its records on disk are in it. */
  readonly ms: number;
  readonly sampleMs: number;
  readonly trainMs: number;
  /** Time in which an engine process, on average over them, computed. */
  readonly engineMs: number;
}

/** The steps of a run, those of the warm-up left out. */
async function ours(row: Row, model: string): Promise<Step[]> {
  const { problems, group, tokens, lr } = row;
  const out = mkdtempSync(join(tmpdir(), "touchstone-bench-"));
  const steps: Step[] = [];
  let last = 0;
  try {
    await train({
      model,
      out: join(out, "run"),
      task: sums(row),
      method: ["grpo", "endless"],
      methods: [endless],
      problems,
      group,
      max_tokens: tokens,
      lr,
      schedule: { kind: "constant" },
      steps: row.warmup + row.steps,
      checkpoint: { every: 0 },
      onProgress: (progress) => {
        const now = performance.now();
        if (progress.kind === "step") {
          const { ms, sample_ms, train_ms, idle } = progress.clock;
          // The last step writes the final checkpoint, which is no part of a step.
          if (progress.step > row.warmup && progress.step < progress.steps) {
            steps.push({ ms: now - last, sampleMs: sample_ms, trainMs: train_ms, engineMs: (1 - idle) * ms });
          }
        }
        if (progress.kind === "step" || progress.kind === "checkpoint") last = now;
      },
    });
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
  return steps;
}

async function compare(row: Row, rounds: number): Promise<void> {
  const { shape, problems, group, tokens } = row;
  const folder = mkdtempSync(join(tmpdir(), "touchstone-bench-"));
  const ratios: number[] = [];
  const overheads: number[] = [];
  try {
    await randomPolicy(row, folder);
    for (let round = 0; round < rounds; round++) {
      const steps = await ours(row, folder);
      const total = sum(steps.map(({ ms }) => ms));
      const outside = 1 - sum(steps.map(({ engineMs }) => engineMs)) / total;
      overheads.push(outside);
      const ms = median(steps.map((step) => step.ms));
      const args = { shape, prompts: problems, group, new: tokens, micro: row.micro, lr: row.lr, steps: row.steps, warmup: row.warmup };
      const other = await peer(
        "trl_grpo.py",
        Object.entries(args).flatMap(([name, value]) => [`--${name}`, String(value)]),
      );
      const still = other === undefined || steady(other.gemm_gflops_before, other.gemm_gflops_after);
      if (other && still) ratios.push(other.step_ms_median / ms);
      say(
        `${shape}, ${problems}x${group} answers of ${tokens} tokens`,
        `${ms.toFixed(0)} ms a step (best ${best(steps.map((step) => step.ms)).toFixed(0)})`,
        `sampling ${median(steps.map(({ sampleMs }) => sampleMs)).toFixed(0)}`,
        `training ${median(steps.map(({ trainMs }) => trainMs)).toFixed(0)}`,
        `outside the engine ${share(outside)}`,
        other
          ? `TRL ${other.step_ms_median.toFixed(0)} ms (generation ${other.generation_ms_median.toFixed(0)}, training ${other.training_ms_median.toFixed(0)})`
          : "no TRL here",
        still ? "" : "void: the product rate moved",
      );
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  say(`  outside the engine: median ${share(median(overheads))}`);
  if (ratios.length > 0) say(`  TRL / ours: median ${median(ratios).toFixed(2)} (${best(ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`);
}

const args = process.argv.slice(2);
const at = args.indexOf("--rounds");
const rounds = at < 0 ? 1 : Number(args[at + 1]);
const wanted = args.filter((arg) => rows.some(({ shape }) => shape === arg));
Object.assign(process.env, allocator); // For the engine's processes, which inherit it.
say(`${availableParallelism()} cores; peers: ${peersSaid}`);
for (const row of rows) {
  if (wanted.length > 0 && !wanted.includes(row.shape)) continue;
  const { workers, threads } = localForm(row.shape === "135M" ? 135e6 : 1e6);
  say(`${row.shape}: ${workers} engine process${workers === 1 ? "" : "es"} with ${threads} thread${threads === 1 ? "" : "s"}`);
  await compare(row, rounds);
}
