import { describe, expect, it } from "vitest";
import { plainContext } from "../../core/problem.js";
import { Stream } from "../../core/random.js";
import type { SampleRequest, Sequence } from "../contract.js";
import { splitRequests, splitSequences } from "./split.js";

const weights = { role: "policy" };
const request = (prompt: number, maxTokens = 10): SampleRequest => ({
  context: plainContext([prompt]),
  weights,
  temperature: 1,
  maxTokens,
  stop: { ids: [] },
  key: [0, 0, 0, 0],
});
const sequence = (tokens: number): Sequence => ({ context: plainContext([1]), response: new Int32Array(tokens - 1), weights, temperature: 1 });
const members = (prompt: number, count: number): SampleRequest[] => Array.from({ length: count }, () => request(prompt));

describe("requests over workers", () => {
  it("keep the members of a prompt together when that is balanced", () => {
    expect(splitRequests([request(1), request(2), request(1), request(2)], 2)).toEqual([
      [0, 2],
      [1, 3],
    ]);
  });

  it("cut a prompt apart when it would leave workers idle", () => {
    expect(splitRequests(members(1, 6), 3)).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
  });

  it("cut only the prompt at the border", () => {
    const requests = [...members(1, 4), ...members(2, 4), ...members(3, 4)];
    expect(splitRequests(requests, 2)).toEqual([
      [0, 1, 2, 3, 4, 5],
      [6, 7, 8, 9, 10, 11],
    ]);
  });

  it("tell prompts under other weights apart", () => {
    const other = { ...request(1), weights: { role: "teacher" } };
    expect(splitRequests([request(1), other, request(1), other], 2)).toEqual([
      [0, 2],
      [1, 3],
    ]);
  });
});

describe("sequences over workers", () => {
  it("balance tokens, longest first", () => {
    expect(splitSequences([sequence(3), sequence(8), sequence(4), sequence(2)], 2)).toEqual([[1], [0, 2, 3]]);
  });

  it("have each index exactly once, and no worker carries more than the mean and one sequence", () => {
    const random = new Stream([7, 7, 7, 7]);
    for (let round = 0; round < 100; round++) {
      const lengths = Array.from({ length: random.int(40) }, () => 1 + random.int(100));
      const workers = 1 + random.int(4);
      const parts = splitSequences(lengths.map(sequence), workers);
      expect(parts).toHaveLength(workers);
      expect(parts.flat().sort((a, b) => a - b)).toEqual(lengths.map((_, i) => i));
      const load = (part: readonly number[]): number => part.reduce((sum, i) => sum + (lengths[i] as number), 0);
      const mean = lengths.reduce((sum, length) => sum + length, 0) / workers;
      for (const part of parts) expect(load(part)).toBeLessThanOrEqual(mean + Math.max(0, ...lengths));
    }
  });
});
