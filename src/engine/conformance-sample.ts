import { expect } from "vitest";
import { uniform } from "../core/random.js";
import { type Case, key } from "./conformance-bench.js";
import type { Sample } from "./contract.js";
import { mostLikely, topOf } from "./values.js";

/** All numbers of an answer. */
export const numbers = ({ ids, sampled, rawLogp, logp, entropy }: Sample): number[][] =>
  [ids, sampled, rawLogp, logp, entropy].map((array) => Array.from(array));

export const sampleCases: readonly Case[] = [
  {
    name: "the tokens and bits of an answer depend on its request alone: not on batch, order or what ran before",
    needs: ["sample"],
    run: async (bench) => {
      const info = await bench.role();
      const requests = [5, 1, 9, 2, 7, 3, 12].map((maxTokens, i) =>
        bench.request(info, i, { maxTokens, temperature: [1, 0.7, 1.4][i % 3], stop: { ids: [i, i + 1] } }),
      );
      const together = await bench.sample(requests);
      const reversed = (await bench.sample([...requests].reverse())).reverse();
      for (const [i, request] of requests.entries()) {
        const [alone] = await bench.sample([request]);
        bench.sameAnswer(together[i], alone);
        bench.sameAnswer(reversed[i], alone);
        expect([together[i].stop, reversed[i].stop]).toEqual([alone.stop, alone.stop]);
      }
    },
  },
  {
    name: "tokens are told as they are drawn, and a response ends where its caller says, with the numbers that it has without",
    needs: ["sample"],
    run: async (bench) => {
      const info = await bench.role();
      const requests = Array.from({ length: 5 }, (_, i) => bench.request(info, i, { maxTokens: 40, temperature: 1.3 }));
      const whole = await bench.sample(requests);
      const told: number[][] = requests.map(() => []);
      const most = [1, 40, 3, 40, 39];
      const onToken = (index: number, id: number): boolean => told[index].push(id) === most[index];
      const cut: Sample[] = [];
      for await (const answer of bench.engine.sample(requests, { onToken })) cut[answer.index] = answer;
      cut.forEach((answer, i) => {
        bench.sameAnswer(answer, whole[i], most[i]);
        expect(told[i]).toEqual([...answer.ids]);
        expect(answer.stop).toBe("stop");
      });
      const [first] = whole[0].ids;
      for await (const answer of bench.engine.sample([{ ...requests[0], stop: { ids: [first] } }], { onToken: () => true })) expect(answer.stop).toBe("eos");
      for await (const answer of bench.engine.sample(requests, { onToken: () => false })) bench.sameAnswer(answer, whole[answer.index]);
    },
  },
  {
    name: "noise is the inverse transform of the key's uniform at the token's position",
    needs: ["sample", "score.full"],
    run: async (bench) => {
      const info = await bench.role();
      const requests = Array.from({ length: 24 }, (_, i) => bench.request(info, i, { temperature: 0.8, maxTokens: 8 }));
      const answers = await bench.sample(requests);
      const scores = await bench.engine.score(
        answers.map(({ ids }, i) => ({ ...requests[i], response: ids })),
        { full: true },
      );
      answers.forEach(({ ids }, i) => {
        ids.forEach((id, t) => {
          const p = scores[i].full!.subarray(t * info.vocabulary, (t + 1) * info.vocabulary).map(Math.exp);
          const low = p.subarray(0, id).reduce((sum, x) => sum + x, 0);
          const slack = info.vocabulary * bench.tolerance.logp;
          const u = uniform(requests[i].key, t);
          expect(u, `token ${t} of answer ${i} is ${id}, which is drawn from ${low}`).toBeGreaterThanOrEqual(low - slack);
          expect(u, `token ${t} of answer ${i} is ${id}, which is drawn below ${low + p[id]}`).toBeLessThanOrEqual(low + p[id] + slack);
        });
      });
    },
  },
  {
    name: "the first tokens of many keys have the frequencies of the distribution",
    needs: ["sample", "score.full"],
    run: async (bench) => {
      const info = await bench.role();
      const one = bench.request(info, 0, { temperature: 1.5, maxTokens: 1 });
      const many = 2000;
      const answers = await bench.sample(Array.from({ length: many }, (_, i) => ({ ...one, key: key(i) })));
      const [{ full }] = await bench.engine.score([{ ...one, response: Int32Array.of(0) }], { full: true });
      const count = new Float64Array(info.vocabulary);
      for (const { ids } of answers) count[ids[0]]++;
      full!.forEach((logp, id) => {
        const p = Math.exp(logp);
        expect(Math.abs(count[id] / many - p), `id ${id} has probability ${p} and came ${count[id]} times`).toBeLessThanOrEqual(
          5 * Math.sqrt((p * (1 - p)) / many) + 1 / many,
        );
      });
    },
  },
  {
    name: "sampled log-probs equal scored ones, at the request's temperature and at 1",
    needs: ["sample", "score"],
    run: async (bench) => {
      const info = await bench.role();
      const both = bench.has("sample.temperature") && bench.has("score.temperature");
      const entropy = bench.has("sample.entropy") && bench.has("score.entropy");
      const requests = (both ? [0.6, 1, 1.7] : [1, 1]).map((temperature, i) => bench.request(info, i, { temperature, maxTokens: 9 }));
      const answers = await bench.sample(requests);
      const sequences = answers.map(({ ids }, i) => ({ ...requests[i], response: ids }));
      const processed = await bench.engine.score(sequences, { entropy });
      const raw = await bench.logp(sequences.map((sequence) => ({ ...sequence, temperature: 1 })));
      answers.forEach((answer, i) => {
        bench.close(answer.logp, processed[i].logp);
        bench.close(answer.rawLogp, raw[i]);
        if (entropy) bench.close(answer.entropy, processed[i].entropy!);
        else if (!bench.has("sample.entropy")) expect(answer.entropy.every(Number.isNaN)).toBe(true);
        expect(answer.sampled.every((x) => x === 1)).toBe(true);
        expect(answer.weights).toBe(processed[i].weights);
      });
    },
  },
  {
    name: "a stop id ends the response, belongs to it, and is nowhere else; the budget ends the others",
    needs: ["sample"],
    run: async (bench) => {
      const info = await bench.role();
      const ids = Array.from({ length: Math.ceil(info.vocabulary / 3) }, (_, i) => i);
      const answers = await bench.sample(Array.from({ length: 40 }, (_, i) => bench.request(info, i, { stop: { ids }, maxTokens: 4, temperature: 2 })));
      for (const answer of answers) {
        const first = answer.ids.findIndex((id) => ids.includes(id));
        expect(answer.stop).toBe(first >= 0 ? "eos" : "length");
        expect(answer.ids.length).toBe(first >= 0 ? first + 1 : 4);
        for (const array of [answer.sampled, answer.rawLogp, answer.logp, answer.entropy]) expect(array.length).toBe(answer.ids.length);
      }
      expect(new Set(answers.map(({ stop }) => stop))).toEqual(new Set(["eos", "length"]));
      expect(answers.some(({ stop, ids: tokens }) => stop === "eos" && tokens.length === 4)).toBe(true);
    },
  },
  {
    name: "forced tokens are reported with sampled 0 and do not shift the noise of the tokens after them",
    needs: ["sample", "sample.forced", "score"],
    run: async (bench) => {
      const info = await bench.role();
      const request = bench.request(info, 1, { maxTokens: 8, temperature: 1.2 });
      const [free] = await bench.sample([request]);
      const other = bench.ids(3, info.vocabulary);
      const [same, changed, whole] = await bench.sample([
        { ...request, forced: free.ids.slice(0, 3) },
        { ...request, forced: other },
        { ...request, forced: free.ids },
      ]);
      expect(Array.from(same.ids)).toEqual(Array.from(free.ids));
      bench.close(same.logp, free.logp);
      expect(Array.from(same.sampled)).toEqual([0, 0, 0, 1, 1, 1, 1, 1]);
      expect(Array.from(changed.ids.slice(0, 3))).toEqual(Array.from(other));
      expect(Array.from(whole.sampled)).toEqual(new Array(8).fill(0));
      expect(whole.stop).toBe("length");
      bench.close(changed.logp, (await bench.logp([{ ...request, response: changed.ids }]))[0]);
    },
  },
  {
    name: "top-k: the k most likely ids in order, and with the tail their mass is 1",
    needs: ["sample", "sample.top-k", "score.full"],
    run: async (bench) => {
      const info = await bench.role();
      const request = bench.request(info, 2, { topK: 4, temperature: 0.9 });
      const [answer] = await bench.sample([request]);
      const [{ full }] = await bench.engine.score([{ ...request, response: answer.ids }], { full: true });
      const { k, ids, logp, tail } = answer.top!;
      expect([k, ids.length, logp.length, tail.length]).toEqual([4, 4 * answer.ids.length, 4 * answer.ids.length, answer.ids.length]);
      answer.ids.forEach((_, t) => {
        const here = logp.subarray(4 * t, 4 * t + 4);
        const expected = topOf(full!.slice(t * info.vocabulary, (t + 1) * info.vocabulary), 4);
        bench.close(here, expected.logp);
        bench.close([tail[t]], [expected.tail]);
        bench.close(
          here,
          Array.from(ids.subarray(4 * t, 4 * t + 4), (id) => full![t * info.vocabulary + id]),
        );
        bench.close([here.reduce((sum, x) => sum + Math.exp(x), Math.exp(tail[t]))], [1], 4 * bench.tolerance.logp);
      });
    },
  },
  {
    name: "greedy takes the most likely token whatever the key, with log-probs of the temperature",
    needs: ["sample", "sample.greedy", "score.full"],
    run: async (bench) => {
      const info = await bench.role();
      const request = bench.request(info, 3, { greedy: true, temperature: 1.6 });
      const [first, second] = await bench.sample([request, { ...request, key: key(4) }]);
      expect(Array.from(first.ids)).toEqual(Array.from(second.ids));
      const [{ full, logp }] = await bench.engine.score([{ ...request, response: first.ids }], { full: true });
      bench.close(first.logp, logp);
      first.ids.forEach((_, t) => {
        const here = full!.subarray(t * info.vocabulary, (t + 1) * info.vocabulary);
        bench.close([logp[t]], [here[mostLikely(here)]]);
      });
    },
  },
  {
    name: "a cancelled call ends early: what was finished is whole, the rest is marked cancelled",
    needs: ["sample"],
    run: async (bench) => {
      const info = await bench.role();
      const most = Math.min(info.maxTokens, 400) - 3;
      const requests = [bench.request(info, 0, { maxTokens: 1 }), ...[1, 2, 3].map((i) => bench.request(info, i, { maxTokens: most }))];
      const controller = new AbortController();
      const answers: Sample[] = [];
      const [alone] = await bench.sample([requests[1]]);
      for await (const answer of bench.engine.sample(requests, { signal: controller.signal })) {
        answers.push(answer);
        controller.abort(new Error("enough"));
      }
      expect(answers[0].stop).toBe("length");
      // A server may draw all of them together, and tell any of them first.
      if (bench.has("exact")) expect(answers[0].index).toBe(0);
      expect(new Set(answers.map(({ index }) => index)).size).toBe(answers.length);
      for (const { stop, ids } of answers.slice(1)) expect(stop).toBe(ids.length === most ? "length" : "cancelled");
      expect(answers.slice(1).some(({ stop }) => stop === "length")).toBe(false);
      const part = answers.find(({ index }) => index === 1);
      if (part) expect(Array.from(part.ids)).toEqual(Array.from(alone.ids.slice(0, part.ids.length)));
    },
  },
  {
    name: "a signal that is aborted already refuses the call with its reason; a consumer that stops leaves the engine usable",
    needs: ["sample"],
    run: async (bench) => {
      const info = await bench.role();
      const request = bench.request(info, 0);
      const reason = new Error("not wanted");
      await expect(bench.sample([request], AbortSignal.abort(reason))).rejects.toThrow("not wanted");
      for await (const answer of bench.engine.sample([request, request, request])) {
        expect(answer.ids.length).toBeGreaterThan(0);
        break;
      }
      expect(await bench.sample([request])).toHaveLength(1);
      expect(await bench.sample([])).toEqual([]);
    },
  },
  {
    name: "usage counts a shared prompt once, and every token drawn",
    needs: ["sample"],
    run: async (bench) => {
      const info = await bench.role();
      const one = bench.request(info, 0, { context: { ids: bench.ids(11, info.vocabulary), label: "plain" }, maxTokens: 3 });
      const before = await bench.engine.usage();
      const answers = await bench.sample(Array.from({ length: 16 }, (_, i) => ({ ...one, key: key(i) })));
      const after = await bench.engine.usage();
      expect(after.sampledTokens - before.sampledTokens).toBe(answers.reduce((sum, { ids }) => sum + ids.length, 0));
      const prefill = after.prefillTokens - before.prefillTokens;
      expect(prefill % 11).toBe(0);
      expect(prefill).toBeGreaterThan(0);
      expect(prefill).toBeLessThanOrEqual(11 * (bench.subject.prefills ?? 1));
    },
  },
];
