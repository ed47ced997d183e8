/** Restricted draws (C8): top-k, top-p and min-p, one after another on the distribution at its temperature. */
import { expect } from "vitest";
import { uniform } from "../core/random.js";
import type { Truncation } from "../core/trajectory.js";
import { type Bench, type Case, key } from "./conformance-bench.js";
import { numbers } from "./conformance-sample.js";
import type { ModelInfo, Sample, SampleRequest } from "./contract.js";
import { entropyOf, logSoftmax, truncated } from "./values.js";

const rules: readonly Truncation[] = [
  { topK: 1 },
  { topK: 3 },
  { topP: 0.4 },
  { topP: 0.9 },
  { minP: 0.3 },
  { topK: 5, topP: 0.8 },
  { topK: 4, minP: 0.5 },
  { topP: 0.95, minP: 0.2 },
  { topK: 6, topP: 0.9, minP: 0.1 },
];

/** Four requests a rule, of different temperatures. */
function requestsOf(bench: Bench, info: ModelInfo): (SampleRequest & { readonly truncation: Truncation })[] {
  return rules.flatMap((truncation, r) =>
    [0.7, 1, 1.3, 2].map((temperature, i) => ({ ...bench.request(info, 10 * r + i, { temperature, maxTokens: 5 }), truncation })),
  );
}

/** For each token of each answer the whole distribution at the request's temperature, and what its rules leave of it. */
async function distributions(bench: Bench, info: ModelInfo, requests: readonly SampleRequest[], answers: readonly Sample[]) {
  const sequences = answers.map(({ ids }, i) => ({ ...(requests[i] as SampleRequest), temperature: 1, response: ids }));
  const scores = await bench.engine.score(sequences, { full: true });
  return requests.map(({ temperature, truncation }, i) =>
    Array.from(answers[i].ids, (_, t) => {
      const raw = scores[i].full!.slice(t * info.vocabulary, (t + 1) * info.vocabulary);
      const whole = logSoftmax(raw, temperature);
      return { raw, whole, left: truncated(whole, truncation ?? {}) };
    }),
  );
}

const needs = ["sample", "sample.truncation", "score.full"] as const;

export const truncationCases: readonly Case[] = [
  {
    name: "truncation renormalises what it keeps; raw log-probs and entropy are of the whole distribution",
    needs,
    run: async (bench) => {
      const info = await bench.role();
      const requests = requestsOf(bench, info);
      const answers = await bench.sample(requests);
      const expected = await distributions(bench, info, requests, answers);
      answers.forEach((answer, i) => {
        answer.ids.forEach((id, t) => {
          const { raw, whole, left } = expected[i][t];
          bench.close([answer.rawLogp[t]], [raw[id]]);
          bench.close([answer.entropy[t]], [entropyOf(whole)]);
          bench.close([answer.logp[t]], [left[id]], 4 * bench.tolerance.logp);
        });
      });
    },
  },
  {
    name: "a restricted draw is the inverse transform of the key's uniform over what is kept, in the order of ids",
    needs,
    run: async (bench) => {
      const info = await bench.role();
      const requests = requestsOf(bench, info);
      const answers = await bench.sample(requests);
      const expected = await distributions(bench, info, requests, answers);
      const slack = info.vocabulary * bench.tolerance.logp;
      answers.forEach(({ ids }, i) => {
        ids.forEach((id, t) => {
          const p = expected[i][t].left.map(Math.exp);
          const low = p.subarray(0, id).reduce((sum, x) => sum + x, 0);
          const u = uniform(requests[i].key, t);
          const about = `token ${t} of answer ${i} is ${id}, drawn from ${low} to ${low + p[id]}`;
          expect(p[id], about).toBeGreaterThan(0);
          expect(u, about).toBeGreaterThanOrEqual(low - slack);
          expect(u, about).toBeLessThanOrEqual(low + p[id] + slack);
        });
      });
    },
  },
  {
    name: "the first tokens of many keys have the frequencies of what the rules leave",
    needs,
    run: async (bench) => {
      const info = await bench.role();
      const many = 2000;
      for (const truncation of [{ topK: 4 }, { topP: 0.8 }, { minP: 0.2 }, { topK: 6, topP: 0.9, minP: 0.1 }]) {
        const one = bench.request(info, 0, { temperature: 1.5, maxTokens: 1, truncation });
        const answers = await bench.sample(Array.from({ length: many }, (_, i) => ({ ...one, key: key(i) })));
        const [[{ left }]] = await distributions(bench, info, [one], [answers[0]]);
        const count = new Float64Array(info.vocabulary);
        for (const { ids } of answers) count[ids[0]]++;
        left.forEach((logp, id) => {
          const p = Math.exp(logp);
          const about = `${JSON.stringify(truncation)}: id ${id} has probability ${p} and came ${count[id]} times`;
          // Five standard deviations; what is not kept never comes.
          expect(Math.abs(count[id] / many - p), about).toBeLessThanOrEqual(p === 0 ? 0 : 5 * Math.sqrt((p * (1 - p)) / many) + 1 / many);
        });
      }
    },
  },
  {
    name: "restricted answers depend on their request alone, beside others of other rules and of none",
    needs: ["sample", "sample.truncation"],
    run: async (bench) => {
      const info = await bench.role();
      const requests = requestsOf(bench, info).map((request, i): SampleRequest => {
        const { truncation: _, ...free } = request;
        return i % 4 === 1 ? free : request;
      });
      const together = await bench.sample(requests);
      const reversed = (await bench.sample([...requests].reverse())).reverse();
      for (const [i, request] of requests.entries()) {
        const alone = numbers((await bench.sample([request]))[0]);
        expect(numbers(together[i])).toEqual(alone);
        expect(numbers(reversed[i])).toEqual(alone);
      }
    },
  },
  {
    name: "rules that keep everything change no bit",
    needs: ["sample", "sample.truncation"],
    run: async (bench) => {
      const info = await bench.role();
      const requests = [0, 1, 2, 3].map((i) => bench.request(info, i, { temperature: [1, 0.8][i % 2] }));
      const free = (await bench.sample(requests)).map(numbers);
      for (const truncation of [{ topK: info.vocabulary }, { topK: 1_000_000 }, { topP: 1 }, { minP: 0 }, { topK: info.vocabulary, topP: 1, minP: 0 }, {}]) {
        const answers = await bench.sample(requests.map((request) => ({ ...request, truncation })));
        expect(answers.map(numbers), JSON.stringify(truncation)).toEqual(free);
      }
    },
  },
  {
    name: "rules that leave one token draw the most likely one with certainty",
    needs: ["sample", "sample.truncation", "sample.greedy"],
    run: async (bench) => {
      const info = await bench.role();
      const request = bench.request(info, 1);
      const [greedy] = await bench.sample([{ ...request, greedy: true }]);
      for (const truncation of [{ topK: 1 }, { topP: 1e-9 }, { minP: 1 }]) {
        const [answer, both] = await bench.sample([
          { ...request, truncation },
          { ...request, truncation, greedy: true },
        ]);
        expect(Array.from(answer.ids)).toEqual(Array.from(greedy.ids));
        expect(Array.from(both.ids)).toEqual(Array.from(greedy.ids));
        bench.close(answer.logp, new Float64Array(answer.ids.length));
        bench.close(answer.rawLogp, greedy.rawLogp);
      }
    },
  },
  {
    name: "a forced token outside of what is kept has log-prob -Infinity, and the next is drawn from what is kept after it",
    needs: [...needs, "sample.forced"],
    run: async (bench) => {
      const info = await bench.role();
      const request = bench.request(info, 2, { truncation: { topK: 1 } });
      const [free] = await bench.sample([request]);
      const other = (free.ids[0] + 1) % info.vocabulary;
      const [answer] = await bench.sample([{ ...request, forced: Int32Array.of(other) }]);
      expect([answer.logp[0], answer.sampled[0]]).toEqual([-Infinity, 0]);
      const [expected] = await distributions(bench, info, [request], [answer]);
      bench.close([answer.rawLogp[0]], [expected[0].raw[other]]);
      bench.close([answer.logp[1]], [expected[1].left[answer.ids[1]]]);
    },
  },
  {
    name: "the top-k that is reported is of the whole distribution",
    needs: ["sample", "sample.truncation", "sample.top-k"],
    run: async (bench) => {
      const info = await bench.role();
      const request = bench.request(info, 3, { topK: 4, maxTokens: 1 });
      const [free, restricted] = await bench.sample([request, { ...request, truncation: { topK: 2 } }]);
      expect(restricted.top).toEqual(free.top);
    },
  },
];
