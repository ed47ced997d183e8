/**
 * What the contract promises of training, seen through log-probs and gradient norms alone: for engines that do not hand
 * out their weights, and for all others too.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type Bench, type Case, setOf } from "./conformance-bench.js";
import type { ModelInfo, Sequence } from "./contract.js";

const adamw = { rule: "adamw", rate: 0.01, beta1: 0.8, beta2: 0.9, epsilon: 1e-6, weightDecay: 0.1 } as const;
const still = { ...adamw, rate: 0 } as const;

/** Sequences of one length, so that an engine that compiles for shapes does so once, with coefficients of both signs. */
function batch(bench: Bench, info: ModelInfo): { readonly sequences: Sequence[]; readonly coefficients: Float64Array[] } {
  const sequences = [3, 1, 4, 2].map((context) => bench.sequence(info, context, 9 - context));
  return { sequences, coefficients: sequences.map(({ response }) => bench.numbers(response.length)) };
}

/** The norm of a gradient that is then dropped by a step of rate 0. */
async function normBy(bench: Bench, info: ModelInfo, calls: readonly (() => Promise<void>)[]): Promise<number> {
  for (const call of calls) await call();
  return (await bench.engine.step({ set: setOf(info.role), update: still })).gradNorm;
}

export const blindCases: readonly Case[] = [
  {
    name: "the norm that a step tells is of the sum: for any split and order, twice for twice the derivatives, and 1 + 1 for a sequence that comes twice",
    needs: ["train", "optimizer.adamw"],
    run: async (bench) => {
      const info = await bench.role();
      const { sequences, coefficients } = batch(bench, info);
      const some = (indices: readonly number[], factor = 1) => {
        return () =>
          bench.learn(
            indices.map((i) => sequences[i]),
            indices.map((i) => coefficients[i].map((x) => factor * x)),
          );
      };
      const whole = await normBy(bench, info, [some([0, 1, 2, 3])]);
      expect(whole).toBeGreaterThan(0);
      const allowed = Math.max(1e-5, bench.tolerance.gradient);
      const near = (found: number, expected: number, about: string) => {
        expect(Math.abs(found / expected - 1), `${about}: ${found} instead of ${expected}`).toBeLessThanOrEqual(allowed);
      };
      near(await normBy(bench, info, [some([3, 1, 0, 2])]), whole, "another order");
      near(await normBy(bench, info, [some([2]), some([0, 3]), some([1])]), whole, "three calls");
      near(await normBy(bench, info, [some([0, 1, 2, 3], 2)]), 2 * whole, "twice the derivatives");
      near(await normBy(bench, info, [some([0, 1, 2, 3]), some([0, 1, 2, 3])]), 2 * whole, "all of it twice");
      const alone = await normBy(bench, info, [some([0])]);
      near(await normBy(bench, info, [some([0, 0])]), 2 * alone, "one sequence twice");
      // A longer or a heavier neighbour changes nothing of what a sequence adds.
      near(await normBy(bench, info, [some([0]), some([1, 2, 3], 0)]), alone, "beside sequences without derivatives");
    },
  },
  {
    name: "a step of rate 0 leaves log-probs as they are, names new weights, and forgets the gradient",
    needs: ["score", "train", "optimizer.adamw"],
    run: async (bench) => {
      const info = await bench.role();
      const { sequences, coefficients } = batch(bench, info);
      const before = await bench.engine.score(sequences);
      expect(before[0].weights).toBe(`${info.role}@0`);
      await bench.learn(sequences, coefficients);
      const first = await bench.engine.step({ set: setOf(info.role), update: still });
      expect(first).toMatchObject({ clipped: false, weights: `${info.role}@1` });
      const after = await bench.engine.score(sequences);
      after.forEach(({ logp, weights }, i) => {
        bench.same(logp, before[i].logp);
        expect(weights).toBe(`${info.role}@1`);
      });
      await bench.learn(sequences, coefficients);
      const second = await bench.engine.step({ set: setOf(info.role), update: still });
      expect(Math.abs(second.gradNorm / first.gradNorm - 1)).toBeLessThanOrEqual(Math.max(1e-5, bench.tolerance.gradient));
    },
  },
  {
    name: "steps along a loss lower it, in score, forward and new samples alike",
    needs: ["sample", "score", "train", "optimizer.adamw"],
    run: async (bench) => {
      const info = await bench.role();
      const { sequences, coefficients } = batch(bench, info);
      const loss = (logps: readonly Float64Array[]): number =>
        logps.reduce((sum, logp, i) => sum + logp.reduce((part, x, t) => part + x * coefficients[i][t], 0), 0);
      const before = loss(await bench.logp(sequences));
      for (let step = 0; step < 3; step++) {
        await bench.learn(sequences, coefficients);
        await bench.engine.step({ set: setOf(info.role), update: { ...adamw, rate: 0.003, weightDecay: 0 } });
      }
      const now = await bench.logp(sequences);
      expect(loss(now)).toBeLessThan(before);
      const { handle, scores } = await bench.engine.forward(sequences);
      await bench.engine.release(handle);
      scores.forEach(({ logp }, i) => bench.close(logp, now[i]));
      const request = bench.request(info, 1, { maxTokens: 6 });
      const [answer] = await bench.sample([request]);
      expect(answer.weights).toBe(`${info.role}@3`);
      bench.close(answer.rawLogp, (await bench.logp([{ ...request, response: answer.ids }]))[0]);
    },
  },
  {
    name: "derivatives that are not finite leave a step out: the weights keep name and log-probs, and the next step is made",
    needs: ["score", "train", "optimizer.adamw"],
    run: async (bench) => {
      const info = await bench.role();
      const { sequences, coefficients } = batch(bench, info);
      const before = await bench.logp(sequences);
      for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
        await bench.learn(
          sequences,
          coefficients.map((each, i) => (i === 2 ? each.map((x, t) => (t === 1 ? bad : x)) : each)),
        );
        const result = await bench.engine.step({ set: setOf(info.role), update: adamw });
        expect(result.skipped?.parameter.length).toBeGreaterThan(0);
        expect(result.weights).toBe(`${info.role}@0`);
      }
      (await bench.logp(sequences)).forEach((logp, i) => bench.same(logp, before[i]));
      await bench.learn(sequences, coefficients);
      const next = await bench.engine.step({ set: setOf(info.role), update: adamw });
      expect([next.skipped, next.weights]).toEqual([undefined, `${info.role}@1`]);
      expect((await bench.logp(sequences))[0]).not.toEqual(before[0]);
    },
  },
  {
    name: "weights and optimizer go through a folder and a file: the next step is the same",
    needs: ["score", "train", "optimizer.adamw", "save"],
    run: async (bench) => {
      const folder = await mkdtemp(join(tmpdir(), "conformance-"));
      try {
        const info = await bench.role();
        const { sequences, coefficients } = batch(bench, info);
        const moved = async (role: string, scale: number): Promise<Float64Array[]> => {
          const own = sequences.map((sequence) => ({ ...sequence, weights: { role } }));
          await bench.learn(
            own,
            coefficients.map((each) => each.map((x) => scale * x)),
          );
          await bench.engine.step({ set: setOf(role), update: adamw });
          return bench.logp(own);
        };
        for (const scale of [1, -2]) await moved(info.role, scale);
        await bench.engine.weights.save({ role: info.role }, join(folder, "model"));
        await bench.engine.weights.saveOptimizer(setOf(info.role), join(folder, "optimizer.safetensors"));
        const expected = await moved(info.role, 3);
        const source = { from: "folder", path: join(folder, "model") } as const;
        const back = await bench.role({ source });
        await bench.engine.weights.loadOptimizer(setOf(back.role), join(folder, "optimizer.safetensors"));
        const found = await moved(back.role, 3);
        found.forEach((logp, i) => bench.same(logp, expected[i]));
        expect((await bench.engine.score([{ ...sequences[0], weights: { role: back.role } }]))[0].weights).toBe(`${back.role}@3`);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  },
];
