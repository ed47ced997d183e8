import { expect } from "vitest";
import { type Case, sameBits } from "./conformance-bench.js";
import type { Scores, Sequence } from "./contract.js";
import { entropyOf, logSoftmax, logSumExp, tailOf, topOf } from "./values.js";

export const scoreCases: readonly Case[] = [
  {
    name: "log-prob, entropy, top-k and targets agree with the full distribution, which sums to 1",
    needs: ["score", "score.full", "score.top-k", "score.targets", "score.entropy", "score.temperature"],
    run: async (bench) => {
      const info = await bench.role();
      const sequences = bench.mixed(info);
      const targets = sequences.map((sequence, i) => (i === 1 ? undefined : bench.targets(sequence, i + 2, info.vocabulary)));
      const scores = await bench.engine.score(sequences, { entropy: true, full: true, topK: 3, targets });
      scores.forEach(({ logp, entropy, full, top, targetLogp, targetTail }, s) => {
        const { response } = sequences[s];
        expect(full).toHaveLength(response.length * info.vocabulary);
        expect(targetLogp === undefined).toBe(s === 1);
        expect(targetTail === undefined).toBe(s === 1);
        response.forEach((id, t) => {
          const here = full!.slice(t * info.vocabulary, (t + 1) * info.vocabulary);
          bench.close([logSumExp(here)], [0]);
          bench.close([logp[t]], [here[id]]);
          bench.close([entropy![t]], [entropyOf(here)]);
          const best = topOf(here, 3);
          bench.close(top!.logp.subarray(3 * t, 3 * t + 3), best.logp);
          bench.close([top!.tail[t]], [best.tail]);
          const listed = targets[s];
          if (!listed) return;
          const ids = listed.ids.subarray(t * listed.k, (t + 1) * listed.k);
          bench.close(
            targetLogp!.subarray(t * listed.k, (t + 1) * listed.k),
            Array.from(ids, (target) => here[target]),
          );
          bench.close([targetTail![t]], [tailOf(here, ids)]);
        });
      });
    },
  },
  {
    name: "targets that list the whole vocabulary leave no tail",
    needs: ["score.targets"],
    run: async (bench) => {
      const info = await bench.role();
      const sequence = bench.sequence(info, 2, 2);
      const [{ targetLogp, targetTail }] = await bench.engine.score([sequence], { targets: [bench.targets(sequence, info.vocabulary, info.vocabulary)] });
      for (const tail of targetTail!) expect(Math.exp(tail)).toBeLessThanOrEqual(1e-6);
      bench.close([logSumExp(targetLogp!.subarray(0, info.vocabulary))], [0]);
    },
  },
  {
    name: "a temperature divides the logits",
    needs: ["score", "score.full", "score.temperature"],
    run: async (bench) => {
      const info = await bench.role();
      const sequence = bench.sequence(info, 3, 4);
      const temperatures = [0.5, 1, 2.5];
      const scores = await bench.engine.score(
        temperatures.map((temperature) => ({ ...sequence, temperature })),
        { full: true },
      );
      for (let t = 0; t < 4; t++) {
        const at = (i: number): Float64Array => scores[i].full!.slice(t * info.vocabulary, (t + 1) * info.vocabulary);
        for (const [i, temperature] of temperatures.entries()) bench.close(at(i), logSoftmax(at(1), temperature), 4 * bench.tolerance.logp);
      }
      expect(scores[0].logp[0]).not.toBeCloseTo(scores[2].logp[0], 3);
    },
  },
  {
    name: "a sequence scores the same alone and among others in any order",
    needs: ["score"],
    run: async (bench) => {
      const info = await bench.role();
      const sequences = bench.mixed(info);
      const want = { entropy: bench.has("score.entropy") };
      const together = await bench.engine.score(sequences, want);
      const reversed = (await bench.engine.score([...sequences].reverse(), want)).reverse();
      for (const [i, sequence] of sequences.entries()) {
        const [alone] = await bench.engine.score([sequence], want);
        expect(alone.logp).toHaveLength(sequence.response.length);
        for (const other of [together[i], reversed[i]]) {
          bench.close(other.logp, alone.logp);
          bench.close(other.entropy ?? [], alone.entropy ?? []);
        }
      }
      const again = await bench.engine.score(sequences, want);
      again.forEach(({ logp, entropy }, i) => {
        bench.same(logp, together[i].logp);
        bench.same(entropy ?? [], together[i].entropy ?? []);
      });
    },
  },
  {
    name: "a token sees what is before it and nothing after; where the context ends makes no difference",
    needs: ["score"],
    run: async (bench) => {
      const info = await bench.role();
      const sequence = bench.sequence(info, 2, 6);
      const { context, response } = sequence;
      const changed = response.slice();
      changed[5] = (changed[5] + 1) % info.vocabulary;
      const moved = { ...sequence, context: { ...context, ids: Int32Array.from([...context.ids, ...response.slice(0, 2)]) }, response: response.slice(2) };
      const [plain, later, shifted] = await bench.logp([sequence, { ...sequence, response: changed }, moved]);
      bench.close(later.subarray(0, 5), plain.subarray(0, 5));
      bench.close(shifted, plain.subarray(2));
      expect(Math.abs(later[5] - plain[5])).toBeGreaterThan(bench.tolerance.logp);
    },
  },
  {
    name: "an empty response has no log-probs, and no sequences no scores",
    needs: ["score"],
    run: async (bench) => {
      const info = await bench.role();
      const [none, some] = await bench.engine.score([bench.sequence(info, 3, 0), bench.sequence(info, 1, 2)], { entropy: bench.has("score.entropy") });
      expect([none.logp.length, none.entropy?.length ?? 0, some.logp.length]).toEqual([0, 0, 2]);
      expect(await bench.engine.score([])).toEqual([]);
    },
  },
  {
    name: "values: one before each token and one after the last, each a function of the tokens before it",
    needs: ["score.values"],
    run: async (bench) => {
      const info = await bench.role();
      const sequence = bench.sequence(info, 3, 5);
      const start = { ...sequence, response: sequence.response.slice(0, 2) };
      const [whole, part, empty] = await bench.engine.score([sequence, start, { ...sequence, response: new Int32Array(0) }], { values: true });
      expect([whole.values!.length, part.values!.length, empty.values!.length]).toEqual([6, 3, 1]);
      bench.close(part.values!, whole.values!.subarray(0, 3));
      bench.close(empty.values!, whole.values!.subarray(0, 1));
      expect(whole.values!.every(Number.isFinite)).toBe(true);
    },
  },
  {
    name: "hidden states: width numbers for each token of context and response, the same for the same prefix",
    needs: ["score.hidden"],
    run: async (bench) => {
      const info = await bench.role();
      const sequence = bench.sequence(info, 3, 4);
      const start = { ...sequence, response: sequence.response.slice(0, 1) };
      const [whole, part] = await bench.engine.score([sequence, start], { hidden: [0, info.layers, "final"] });
      for (const layer of ["0", String(info.layers), "final"]) {
        expect(whole.hidden![layer]).toHaveLength(7 * info.width);
        bench.close(part.hidden![layer], whole.hidden![layer].subarray(0, 4 * info.width), 10 * bench.tolerance.logp);
      }
    },
  },
  {
    name: "input rows: zeros added change nothing, and a row in place of a token acts as the token it belongs to",
    needs: ["score", "score.hidden", "input-rows"],
    run: async (bench) => {
      const info = await bench.role();
      const one = bench.sequence(info, 4, 1);
      const other = { ...one, context: { ...one.context, ids: one.context.ids.map((id, at) => (at === 3 ? (id + 1) % info.vocabulary : id)) } };
      const [plain, expected] = await bench.engine.score([one, other], { hidden: [0] });
      const row = (scores: Scores): Float32Array => scores.hidden!["0"].slice(3 * info.width, 4 * info.width);
      const under = (rows: Float32Array, mode: "add" | "replace"): Sequence => ({
        ...one,
        context: { ...one.context, rows: { positions: Int32Array.of(3), rows, mode } },
      });
      const difference = row(expected).map((x, i) => x - row(plain)[i]);
      const [zero, own, replaced, added] = await bench.logp([
        under(new Float32Array(info.width), "add"),
        under(row(plain), "replace"),
        under(row(expected), "replace"),
        under(difference, "add"),
      ]);
      bench.close(zero, plain.logp);
      bench.close(own, plain.logp);
      bench.close(replaced, expected.logp);
      bench.close(added, expected.logp, 10 * bench.tolerance.logp);
      expect(Math.abs(expected.logp[0] - plain.logp[0])).toBeGreaterThan(bench.tolerance.logp);
    },
  },
  {
    name: "perturbed weights: sigma 0 changes nothing, one seed is one perturbation, the role keeps its weights",
    needs: ["score", "weights.perturb"],
    run: async (bench) => {
      const info = await bench.role();
      const sequence = bench.sequence(info, 2, 5);
      const under = (seed: number, sigma: number) => ({ ...sequence, weights: { role: info.role, perturb: { seed, sigma } } });
      const [plain, zero, one, same, other, after] = await bench.logp([sequence, under(1, 0), under(1, 0.1), under(1, 0.1), under(2, 0.1), sequence]);
      sameBits(zero, plain);
      sameBits(same, one);
      sameBits(after, plain);
      expect(Math.abs(one[0] - plain[0])).toBeGreaterThan(1e-5);
      expect(Math.abs(other[0] - one[0])).toBeGreaterThan(1e-5);
    },
  },
];
