/** Requests that are drawn together, on an engine that says what it was asked and when it goes on. */
import { describe, expect, it } from "vitest";
import { plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Sample, SampleOptions, SampleRequest } from "../engine/contract.js";
import { Batcher } from "./batcher.js";

const request = (first: number, more: Partial<SampleRequest> = {}): SampleRequest => ({
  context: plainContext([first]),
  weights: { role: "policy" },
  temperature: 1,
  maxTokens: 3,
  stop: { ids: [] },
  key: randomKey({ seed: first, purpose: "test" }),
  ...more,
});

const quiet = new AbortController().signal;
const never = (): boolean => false;
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2));

/** Draws `first`, `first + 1`, … one token of each request a turn; a request that begins with 13 is a fault. */
function slowEngine() {
  const calls: number[][] = [];
  async function* sample(requests: readonly SampleRequest[], { signal, onToken }: SampleOptions): AsyncGenerator<Sample> {
    calls.push(requests.map(({ context }) => context.ids[0] as number));
    if (requests.some(({ context }) => context.ids[0] === 13)) throw new Error("13 is outside the vocabulary");
    const rows = requests.map((each, index) => ({ each, index, ids: [] as number[], over: false }));
    while (rows.some(({ over }) => !over)) {
      await turn();
      if (signal?.aborted) return;
      for (const row of rows.filter(({ over }) => !over)) {
        const id = (row.each.context.ids[0] as number) + row.ids.length;
        row.ids.push(id);
        const told = onToken?.(row.index, id) === true;
        if (!told && row.ids.length < row.each.maxTokens) continue;
        row.over = true;
        const numbers = new Float64Array(row.ids.length);
        const ids = Int32Array.from(row.ids);
        yield { index: row.index, ids, sampled: new Uint8Array(ids.length), rawLogp: numbers, logp: numbers, entropy: numbers, stop: "length", weights: "" };
      }
    }
  }
  return { sample, calls };
}

const drawn = async (batcher: Batcher, requests: readonly SampleRequest[], signal = quiet): Promise<number[][]> =>
  (await batcher.draw(requests, signal, never)).map(({ ids }) => [...ids]);

describe("a batcher", () => {
  it("draws together what comes in one turn, and what waited, each with its own answer", async () => {
    const { sample, calls } = slowEngine();
    const batcher = new Batcher(sample, { calls: 1, rows: 64 });
    const first = Promise.all([drawn(batcher, [request(1)]), drawn(batcher, [request(2), request(3)])]);
    await turn();
    const later = Promise.all([4, 5, 6].map((id) => drawn(batcher, [request(id)])));
    expect(await first).toEqual([
      [[1, 2, 3]],
      [
        [2, 3, 4],
        [3, 4, 5],
      ],
    ]);
    expect(await later).toEqual([[[4, 5, 6]], [[5, 6, 7]], [[6, 7, 8]]]);
    expect(calls).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
  });

  it("answers a short request before the long one beside it, and lets another call begin meanwhile", async () => {
    const { sample, calls } = slowEngine();
    const batcher = new Batcher(sample, { calls: 2, rows: 64 });
    const order: string[] = [];
    const as = (name: string, id: number, maxTokens: number) => drawn(batcher, [request(id, { maxTokens })]).then(() => order.push(name));
    const all = [as("long", 1, 60), as("short", 2, 2)];
    await turn();
    all.push(as("late", 3, 2));
    await Promise.all(all);
    expect(order).toEqual(["short", "late", "long"]);
    expect(calls).toEqual([[1, 2], [3]]);
  });

  it("keeps a call within its rows, and apart what lists other numbers of tokens", async () => {
    const { sample, calls } = slowEngine();
    const batcher = new Batcher(sample, { calls: 1, rows: 3 });
    const asked = [[request(1), request(2)], [request(3), request(4)], [request(5)], [request(6, { topK: 2 })], [1, 2, 3, 4, 5].map((id) => request(20 + id))];
    const answers = await Promise.all(asked.map((each) => drawn(batcher, each)));
    expect(answers.map((each) => each.map(([id]) => id))).toEqual([[1, 2], [3, 4], [5], [6], [21, 22, 23, 24, 25]]);
    expect(calls).toEqual([[1, 2, 5], [3, 4], [6], [21, 22, 23, 24, 25]]);
  });

  it("fails the request that is at fault, and none beside it", async () => {
    const { sample } = slowEngine();
    const batcher = new Batcher(sample, { calls: 1, rows: 64 });
    const answers = await Promise.allSettled([1, 13, 2].map((id) => drawn(batcher, [request(id)])));
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((answers[1] as PromiseRejectedResult).reason).toEqual(new Error("13 is outside the vocabulary"));
    expect(await drawn(batcher, [request(3)])).toEqual([[3, 4, 5]]);
  });

  it("lets one go, waiting or under way, and draws on for the others", async () => {
    const { sample, calls } = slowEngine();
    const batcher = new Batcher(sample, { calls: 1, rows: 64 });
    const [one, two] = [new AbortController(), new AbortController()];
    const under = drawn(batcher, [request(1, { maxTokens: 1e9 })], one.signal);
    const beside = drawn(batcher, [request(2, { maxTokens: 20 })]);
    await turn();
    const waits = drawn(batcher, [request(3)], two.signal);
    await turn();
    expect(batcher.waiting).toBe(1);
    two.abort(new Error("gone"));
    one.abort(new Error("gone too"));
    await expect(waits).rejects.toThrow("gone");
    await expect(under).rejects.toThrow("gone too");
    expect((await beside)[0]).toHaveLength(20);
    expect(await drawn(batcher, [request(4)])).toEqual([[4, 5, 6]]);
    expect(calls).toEqual([[1, 2], [4]]);
    const alone = new AbortController();
    const last = drawn(batcher, [request(5, { maxTokens: 1e9 })], alone.signal);
    await turn();
    alone.abort(new Error("the last"));
    await expect(last).rejects.toThrow("the last");
    expect(await drawn(batcher, [request(6)])).toEqual([[6, 7, 8]]);
  });
});
