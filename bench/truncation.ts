/**
 * What restricted draws cost: decoding at a vocabulary of 49k and at one of 64, by top-k, top-p and min-p, beside draws from the whole distribution.
 *
 *     npm run bench truncation [-- 135M 1M] [-- --rounds 3]
 */
import { availableParallelism } from "node:os";
import { plainContext } from "../src/core/problem.js";
import { randomKey } from "../src/core/random.js";
import type { Truncation } from "../src/core/trajectory.js";
import { OnnxEngine } from "../src/engine/onnx/engine.js";
import { median, say, share } from "./lib/peers.js";
import { configOf, type ShapeName, shapes } from "./lib/shapes.js";

const rows = [
  { shape: "135M", sequences: 32, tokens: 16, threads: availableParallelism() },
  // Small models get single-threaded processes; this is one of them.
  { shape: "1M", sequences: 64, tokens: 64, threads: 1 },
] as const satisfies readonly { readonly shape: ShapeName; readonly [count: string]: number | string }[];
type Row = (typeof rows)[number];

const draws: readonly (readonly [string, Truncation | undefined])[] = [
  ["whole", undefined],
  ["top-k 50", { topK: 50 }],
  ["top-p 0.95", { topP: 0.95 }],
  ["min-p 0.05", { minP: 0.05 }],
  ["all three", { topK: 50, topP: 0.95, minP: 0.05 }],
];

interface Cost {
  /** Milliseconds of the clock a decode step. */
  readonly wall: number;
  /** Milliseconds of all processors together, which other work on the machine stretches less. */
  readonly busy: number;
}

/** A decode step: the difference of a long and a short call, without the prompt's prefill. */
async function costOf(engine: OnnxEngine, { shape, sequences, tokens }: Row, truncation: Truncation | undefined, round: number): Promise<Cost> {
  const time = async (maxTokens: number): Promise<Cost> => {
    const requests = Array.from({ length: sequences }, (_, member) => ({
      context: plainContext(Array.from({ length: 8 }, (_, t) => (t * 5) % shapes[shape].vocabulary)),
      weights: { role: "policy" },
      temperature: 1,
      ...(truncation && { truncation }),
      maxTokens,
      stop: { ids: [] },
      key: randomKey({ seed: round, purpose: "bench", member }),
    }));
    const [start, before] = [performance.now(), process.cpuUsage()];
    for await (const _ of engine.sample(requests));
    const { user, system } = process.cpuUsage(before);
    return { wall: performance.now() - start, busy: (user + system) / 1000 };
  };
  const [long, short] = [await time(tokens), await time(2)];
  return { wall: (long.wall - short.wall) / (tokens - 2), busy: (long.busy - short.busy) / (tokens - 2) };
}

async function measure(row: Row, rounds: number): Promise<void> {
  const { shape, sequences } = row;
  const engine = await OnnxEngine.create({ threads: row.threads });
  try {
    await engine.weights.load({ role: "policy", source: { from: "config", config: configOf(shape), seed: 1 }, trainable: false });
    const found = new Map<string, Cost[]>(draws.map(([name]) => [name, []]));
    // The first round builds graphs and does not count.
    for (let round = 0; round <= rounds; round++) {
      for (const [name, truncation] of draws) {
        const cost = await costOf(engine, row, truncation, round);
        if (round > 0) found.get(name)?.push(cost);
      }
    }
    const of = (costs: readonly Cost[] = [], key: keyof Cost): number => median(costs.map((cost) => cost[key]));
    const whole = found.get("whole");
    say(`${shape}, vocabulary ${shapes[shape].vocabulary}, ${sequences} sequences`);
    for (const [name, costs] of found) {
      const cells = (["wall", "busy"] as const).map((key) => `${of(costs, key).toFixed(2)} ms ${key} a step (${share(of(costs, key) / of(whole, key))})`);
      say(`  ${name.padEnd(10)}`, ...cells);
    }
  } finally {
    await engine.close();
  }
}

const args = process.argv.slice(2);
const at = args.indexOf("--rounds");
const rounds = at < 0 ? 3 : Number(args[at + 1]);
const wanted = args.filter((arg) => arg in shapes);
say(`${availableParallelism()} cores, median of ${rounds} rounds`);
for (const row of rows) if (wanted.length === 0 || wanted.includes(row.shape)) await measure(row, rounds);
