/**
 * `npm run bench engine`: forward and backward, optimizer and decoding of the onnx engine, as shares of the matrix-product
 * rate of the same threads in the same processes, and beside PyTorch and transformers where their environment is
 * there (bench/peers/README.md; its folder in TOUCHSTONE_PEERS, else bench/peers/venv).
 *
 *     npm run bench engine [-- 135M 1M 100k] [-- --rounds 3]
 */
import { availableParallelism } from "node:os";
import { measure } from "./lib/measure.js";
import { best, median, peer, peersSaid, say, share, steady, sum } from "./lib/peers.js";
import { modelFlops, type ShapeName, shapes } from "./lib/shapes.js";
import type { Found, Work } from "./lib/worker.js";

const cores = availableParallelism();
/** The product rate of all workers together, and whether it moved by over 15 %. */
function gemm(found: readonly Found[]): { rate: number; still: boolean } {
  const before = sum(found.map((f) => f.gemm[0]));
  const after = sum(found.map((f) => f.gemm[1]));
  return { rate: Math.max(before, after), still: steady(before, after) };
}

interface Training {
  readonly shape: ShapeName;
  readonly batch: number;
  readonly tokens: number;
  readonly workers: number;
  readonly activations: "keep" | "recompute";
  readonly repeats: number;
}

const trainings: readonly Training[] = [
  { shape: "135M", batch: 4, tokens: 256, workers: 1, activations: "recompute", repeats: 5 },
  { shape: "135M", batch: 4, tokens: 256, workers: 1, activations: "keep", repeats: 5 },
  { shape: "1M", batch: 64, tokens: 64, workers: cores, activations: "recompute", repeats: 40 },
  { shape: "1M", batch: 64, tokens: 64, workers: cores, activations: "keep", repeats: 40 },
  { shape: "100k", batch: 128, tokens: 32, workers: cores, activations: "keep", repeats: 100 },
];

async function training(row: Training, rounds: number): Promise<void> {
  const { shape, batch, tokens, workers, activations, repeats } = row;
  const works = Array.from(
    { length: workers },
    (): Work => ({ kind: "train", shape, batch: batch / workers, tokens, threads: cores / workers, activations, repeats }),
  );
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const found = await measure(works);
    const { rate, still } = gemm(found);
    const ms = Math.max(...found.map((f) => best(f.ms)));
    const optimizer = Math.max(...found.map((f) => best(f.optimizerMs)));
    const flops = modelFlops(shape, batch, tokens) / ms / 1e6;
    const other = await peer("torch_train.py", [
      "--shape",
      shape,
      "--batch",
      String(batch),
      "--tokens",
      String(tokens),
      "--steps",
      shape === "135M" ? "4" : "30",
    ]);
    const torch = other?.fwd_bwd_ms_best;
    if (torch && still) ratios.push(torch / ms);
    say(
      `train ${shape} ${batch}x${tokens} ${activations}`,
      `${ms.toFixed(1)} ms`,
      `${flops.toFixed(0)} GFLOP/s = ${share(flops / rate)} of ${rate.toFixed(0)}${still ? "" : " (void: the rate moved)"}`,
      `optimizer ${share(optimizer / ms)}`,
      `peak ${Math.max(...found.map((f) => f.peakGb)).toFixed(2)} GB`,
      torch ? `PyTorch ${torch.toFixed(1)} ms` : "no PyTorch here",
    );
  }
  if (ratios.length > 0) say(`  PyTorch / ours: median ${median(ratios).toFixed(2)} (${best(ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`);
}

async function decoding(shape: ShapeName, batch: number, rounds: number): Promise<void> {
  const small = shape !== "135M";
  const workers = small ? cores : 1;
  const work = (tokens: number, prompt: number, count: number): Work => ({
    kind: "decode",
    shape,
    batch: batch / count,
    tokens,
    prompt,
    threads: cores / count,
    activations: "recompute",
    repeats: 3,
  });
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const found = await measure(Array.from({ length: workers }, () => work(small ? 64 : 24, 8, workers)));
    const ms = Math.max(...found.map((f) => best(f.ms)));
    const other = await peer("hf_generate.py", ["--shape", shape, "--batch", String(batch), "--new", small ? "64" : "24", "--repeats", "3"]);
    const torch = other?.step_ms_best;
    if (torch) ratios.push(torch / ms);
    say(
      `decode ${shape}, ${batch} sequences`,
      `${ms.toFixed(2)} ms a step`,
      `${((1000 * batch) / ms).toFixed(0)} tokens/s`,
      torch ? `generate ${torch.toFixed(2)} ms` : "no transformers here",
    );
  }
  if (ratios.length > 0) say(`  generate / ours: median ${median(ratios).toFixed(2)} (${best(ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`);
  // What 900 more cached positions cost, beside one thread's copy of as many bytes.
  const { layers, width, heads, kvHeads } = shapes[shape];
  const [near, far] = [await measure([work(12, 100, 1)]), await measure([work(12, 1000, 1)])];
  const bytes = 2 * layers * kvHeads * (width / heads) * 4 * 900 * batch;
  const copy = bytes / 1e6 / (far[0].copyGbs || 1);
  say(
    `  1,000 cached positions over 100: ${(best(far[0].ms) - best(near[0].ms)).toFixed(2)} ms, a copy of the added cache ${copy.toFixed(2)} ms: ${((best(far[0].ms) - best(near[0].ms)) / copy).toFixed(2)} times`,
  );
}

const args = process.argv.slice(2);
const at = args.indexOf("--rounds");
const rounds = at < 0 ? 1 : Number(args[at + 1]);
const wanted = args.filter((arg) => arg in shapes);
const all = (shape: string) => wanted.length === 0 || wanted.includes(shape);
say(`${cores} cores; peers: ${peersSaid}`);
for (const row of trainings) if (all(row.shape)) await training(row, rounds);
for (const [shape, batch] of [
  ["135M", 32],
  ["1M", 64],
] as const)
  if (all(shape)) await decoding(shape, batch, rounds);
