/**
 * A suite: bits of a sample depend on its request and the weights alone: not on the batch, its order, the cache or the run.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { plainContext } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Sample, SampleRequest } from "../contract.js";
import { OnnxEngine, type OnnxEngineOptions } from "./engine.js";
import { fillAdapter, randomIds, randomModel, type Shape, sampleAll } from "./test-engine.js";

const count = 200;
const longest = 100;
const temperatures = [1, 0.7, 1.3];

/** Prompts of 1 to 100 tokens, some shared; short and long answers beside each other, some of which end early. */
function requestsFor(vocabulary: number, count: number): SampleRequest[] {
  return Array.from({ length: count }, (_, i) => {
    const prompt = i % 5 === 4 ? i - 1 : i;
    return {
      context: plainContext(randomIds(1 + ((prompt * 37) % 100), vocabulary, prompt)),
      weights: { role: "policy" },
      temperature: temperatures[i % 3],
      greedy: i % 11 === 7,
      maxTokens: i % 40 === 13 ? longest : 1 + ((i * 7) % 24),
      stop: { ids: i % 2 === 0 ? [i % vocabulary, (3 * i + 1) % vocabulary] : [] },
      key: randomKey({ seed: 5, purpose: "determinism", step: i }),
      ...(i % 13 === 5 ? { forced: Int32Array.of(1) } : {}),
    };
  });
}

export interface DeterminismCase {
  readonly shape: Shape;
  readonly threads: number;
  /** Rank of an adapter on all products, filled with numbers; absent: none. */
  readonly rank?: number;
  /** How many of the 200 requests are repeated alone, in pairs, in batches of 7 and of 64, and scored. */
  readonly repeats: { readonly alone: number; readonly pairs: number; readonly sevens: number; readonly many: number; readonly scored: number };
}

/** Models of the widths 48, 60, 128 and 576 and of the other families, with few layers. */
export const shapes = {
  48: { layers: 2, width: 48, heads: 4, kvHeads: 2, mlp: 128, vocabulary: 97 },
  60: { layers: 2, width: 60, heads: 6, kvHeads: 3, mlp: 100, vocabulary: 97 },
  128: { layers: 2, width: 128, heads: 4, kvHeads: 4, mlp: 384, vocabulary: 512, tied: false },
  576: { layers: 1, width: 576, heads: 9, kvHeads: 3, mlp: 768, vocabulary: 512 },
  qwen2: { family: "qwen2", layers: 2, width: 64, heads: 4, kvHeads: 2, mlp: 96, vocabulary: 97 },
  qwen3: { family: "qwen3", layers: 2, width: 48, heads: 4, kvHeads: 2, mlp: 96, vocabulary: 97 },
} as const;

export function determinism({ shape, threads, rank, repeats }: DeterminismCase): void {
  describe(`${shape.family ?? "llama"} of width ${shape.width}, ${threads} threads${rank === undefined ? "" : `, an adapter of rank ${rank}`}`, () => {
    const requests = requestsFor(shape.vocabulary, count);
    let engine: OnnxEngine;
    let reference: Sample[];

    const start = async (options: Partial<OnnxEngineOptions> = {}): Promise<OnnxEngine> => {
      const started = await OnnxEngine.create({ threads, ...options });
      const adapter = rank === undefined ? {} : { adapter: { from: "new", rank, alpha: rank, targets: "all-linear", seed: 4 } as const };
      await started.weights.load({ role: "policy", source: randomModel(shape, 3), trainable: false, ...adapter });
      if (rank !== undefined) await fillAdapter(started);
      return started;
    };

    /** Samples of the requests with these indexes, asked for in batches of the given size, against the reference. */
    const compare = async (by: OnnxEngine, indexes: readonly number[], batch: number): Promise<void> => {
      for (let at = 0; at < indexes.length; at += batch) {
        const chosen = indexes.slice(at, at + batch);
        const samples = await sampleAll(
          by,
          chosen.map((i) => requests[i]),
        );
        samples.forEach((sample, j) => {
          expect({ ...sample, index: chosen[j] }, `request ${chosen[j]} in a batch of ${batch}`).toStrictEqual(reference[chosen[j]]);
        });
      }
    };
    const all = requests.map((_, i) => i);
    const shuffled = (seed: number) => new Stream(randomKey({ seed, purpose: "order" })).shuffle(all);

    beforeAll(async () => {
      engine = await start();
      reference = await sampleAll(engine, requests);
    });
    afterAll(() => engine.close());

    it("draws answers that differ, some of them cut and some ended", () => {
      expect(new Set(reference.map(({ ids }) => ids.join())).size).toBeGreaterThan(count / 2);
      expect(new Set(reference.map(({ stop }) => stop))).toEqual(new Set(["eos", "length"]));
      expect(Math.max(...reference.map(({ ids }) => ids.length))).toBe(longest);
    });

    it("gives the same bits alone", () => compare(engine, shuffled(1).slice(0, repeats.alone), 1));
    it("gives the same bits in pairs", () => compare(engine, shuffled(2).slice(0, repeats.pairs), 2));
    it("gives the same bits in batches of 7", () => compare(engine, shuffled(3).slice(0, repeats.sevens), 7));
    it("gives the same bits in batches of 64", () => compare(engine, shuffled(4).slice(0, repeats.many), 64));
    it("gives the same bits in any order, in a new engine with fewer rows at once", async () => {
      const other = await start({ maxRows: 48 });
      await compare(other, shuffled(5), count);
      await other.close();
    });
    it("gives the same bits beside a sequence that makes the cache grow", async () => {
      const long = { ...requests[0], maxTokens: 300, stop: { ids: [] }, temperature: 2 };
      const chosen = all.slice(0, 20);
      const samples = await sampleAll(engine, [long, ...chosen.map((i) => requests[i])]);
      expect(samples.slice(1).map((sample, i) => ({ ...sample, index: i }))).toStrictEqual(reference.slice(0, 20));
    });

    it("gives log-probs that scoring repeats to 1e-4", async () => {
      const sequences = requests
        .slice(0, repeats.scored)
        .map(({ context, weights, temperature }, i) => ({ context, weights, temperature, response: reference[i].ids }));
      const [tempered, raw] = [await engine.score(sequences, { entropy: true }), await engine.score(sequences.map((s) => ({ ...s, temperature: 1 })))];
      const worst = (a: Float64Array, b: Float64Array) => Math.max(...a.map((x, t) => Math.abs(x - b[t])));
      reference.slice(0, repeats.scored).forEach((sample, i) => {
        expect(worst(sample.logp, tempered[i].logp), `request ${i}`).toBeLessThan(1e-4);
        expect(worst(sample.entropy, tempered[i].entropy as Float64Array), `request ${i}`).toBeLessThan(1e-4);
        expect(worst(sample.rawLogp, raw[i].logp), `request ${i}`).toBeLessThan(1e-4);
      });
    });
  });
}
