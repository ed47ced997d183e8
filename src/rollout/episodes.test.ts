import { afterEach, describe, expect, it } from "vitest";
import { adder, tokenizer } from "../../test/support/adder-task.js";
import type { Json } from "../core/json.js";
import { type Problem, plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import { accept, type Verdict } from "../core/verdict.js";
import type { Sample, SampleRequest } from "../engine/contract.js";
import type { Environment } from "../tasks/contract.js";
import { judge } from "../verify/contract.js";
import { type EnvironmentHost, startHost } from "./environment.js";
import { type Episode, type EpisodeRequest, episodeKeys, playEpisodes, verdictOf, workedEpisode } from "./episodes.js";
import { Rounds } from "./rounds.js";

const task = adder();
const environment = task.environment as Environment<Json>;
const problem: Problem = { key: "p", prompt: [{ role: "user", content: "3+4" }], reference: { state: "gold", answer: 7, version: 0 } };
const prompt = tokenizer.render(problem.prompt, { addGenerationPrompt: true });
const [eos, , , assistant, toolId] = [0, 1, 2, 3, 4];
const ids = (text: string): number[] => [...tokenizer.encode(text)];

const hosts: EnvironmentHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close();
});
const hostOf = async (own: Environment<Json> = environment, module?: string): Promise<EnvironmentHost> => {
  const host = await startHost({ environment: own, ...(module && { source: { module, name: "default", options: {} } }) });
  hosts.push(host);
  return host;
};

/** A policy that says what it is told, turn after turn: log-prob -1 - i of its i-th token, so that each can be told apart. */
function scripted(actions: readonly string[], asked: SampleRequest[] = []) {
  let turn = 0;
  return async function* (requests: readonly SampleRequest[]): AsyncGenerator<Sample> {
    for (const [index, request] of requests.entries()) {
      asked.push(request);
      const whole = Int32Array.from([...ids(actions[turn++] as string), eos]);
      const said = whole.slice(0, request.maxTokens);
      const logp = Float64Array.from(said, (_, i) => -1 - i);
      const stop = said.length < whole.length ? "length" : "eos";
      yield { index, ids: said, sampled: new Uint8Array(said.length).fill(1), logp, rawLogp: logp, entropy: logp.map((x) => -x), stop, weights: "policy@3" };
    }
  };
}

const requestOf = (maxTokens = 48, own = problem): EpisodeRequest => ({
  problem: own,
  request: {
    context: plainContext(prompt),
    weights: { role: "policy" },
    temperature: 1,
    maxTokens,
    stop: { ids: tokenizer.eosIds },
    key: randomKey({ seed: 1, purpose: "sample" }),
  },
  ...episodeKeys("sample", { problem: own.key, member: 0 }, (meaning) => randomKey({ seed: 1, ...meaning })),
});

async function played(actions: readonly string[], options: { host?: EnvironmentHost; asked?: SampleRequest[]; maxTokens?: number } = {}): Promise<Episode> {
  const host = options.host ?? (await hostOf());
  const rounds = new Rounds(scripted(actions, options.asked));
  for await (const episode of playEpisodes([requestOf(options.maxTokens)], { host, rounds, tokenizer })) return episode;
  throw new Error("no episode came");
}

const judged = (episode: Episode): Promise<Verdict> =>
  verdictOf(episode, problem, (own, response, truncated) => judge(task.verifier, own, response, truncated));

describe("a conversation of three turns with two tool results", () => {
  it("has the tokens that were sampled and observed, and trains the sampled ones alone, token by token", async () => {
    const asked: SampleRequest[] = [];
    const episode = await played(["add(3+4)", "add(7+0)", "#7"], { asked });
    const rows: [id: number, sampled: number, logp: number][] = [
      ...ids("add(3+4)").map((id, i): [number, number, number] => [id, 1, -1 - i]),
      [eos, 1, -6],
      [toolId, 0, 0],
      [ids("7")[0] as number, 0, 0],
      [assistant, 0, 0],
      ...ids("add(7+0)").map((id, i): [number, number, number] => [id, 1, -1 - i]),
      [eos, 1, -6],
      [toolId, 0, 0],
      [ids("7")[0] as number, 0, 0],
      [assistant, 0, 0],
      ...ids("#7").map((id, i): [number, number, number] => [id, 1, -1 - i]),
      [eos, 1, -3],
    ];
    expect([...episode.ids]).toEqual(rows.map(([id]) => id));
    expect([...episode.sampled]).toEqual(rows.map(([, sampled]) => sampled));
    expect([...episode.logp]).toEqual(rows.map(([, , logp]) => logp));
    expect(episode.spans).toEqual([
      { name: "turn", start: 0, end: 6 },
      { name: "observation", start: 6, end: 9 },
      { name: "turn", start: 9, end: 15 },
      { name: "observation", start: 15, end: 18 },
      { name: "turn", start: 18, end: 21 },
    ]);
    expect(episode.turns).toEqual([
      { action: "add(3+4)", observation: "7", info: { calls: 1, failed: 0 } },
      { action: "add(7+0)", observation: "7", info: { calls: 1, failed: 0 } },
      { action: "#7", observation: "", info: { calls: 0, failed: 0 } },
    ]);
    expect(episode).toMatchObject({ text: "#7", stop: "eos", weights: "policy@3" });
    expect(await judged(episode)).toEqual(accept());
    // A turn is asked under exactly what stands before it.
    expect(asked.map(({ context }) => [...context.ids])).toEqual([0, 9, 18].map((n) => [...prompt, ...rows.slice(0, n).map(([id]) => id)]));
    expect(asked.map(({ maxTokens }) => maxTokens)).toEqual([8, 8, 8]);
    expect(new Set(asked.map(({ key }) => key.join())).size).toBe(3);
  });

  it("ends where its turns or tokens are used up, and is then judged as cut off", async () => {
    const four = await played(["add(1+1)", "add(1+1)", "add(1+1)", "add(1+1)", "#7"]);
    expect(four).toMatchObject({ stop: "length", text: "add(1+1)" });
    expect(four.turns).toHaveLength(4);
    const [long, short] = [await played(["add(1+1+1+1+1)"]), await played(["add(1+1)", "#7"], { maxTokens: 9 })];
    expect([long.stop, long.turns.length, long.ids.length]).toEqual(["length", 1, 8]);
    // 6 tokens of the call and 3 of its result leave none for an answer.
    expect([short.stop, short.turns.length, short.ids.length]).toEqual(["length", 1, 6]);
    expect(short.turns[0]).toMatchObject({ observation: "2" });
    expect((await played(["add(1+1)", "#7"], { maxTokens: 12 })).stop).toBe("eos");
  });

  it("is the same for a worked solution, without anything sampled", async () => {
    const worked = await workedEpisode(task, requestOf(), randomKey({ seed: 1, purpose: "worked" }), { host: await hostOf(), tokenizer });
    const episode = await played(["add(3+4)", "#7"]);
    expect([...(worked?.ids ?? [])]).toEqual([...episode.ids]);
    expect([...(worked?.sampled ?? [])]).toEqual([...episode.sampled]);
    expect(await workedEpisode({}, requestOf(), randomKey({ seed: 1, purpose: "worked" }), { host: await hostOf(), tokenizer })).toBe(undefined);
  });
});

describe("a tool that", () => {
  it.each([
    ["throws", "fail(1)", { observation: "!", info: { calls: 1, failed: 1 } }, 0],
    ["never answers", "wait(1)", { observation: "!", info: { calls: 1, failed: 1 } }, 1],
    ["prints without end", "print(1)", { observation: "1".repeat(10), info: { calls: 1, failed: 0 }, cut: 999_990 }, 0],
    ["does not exist", "add(3", { observation: "!", info: { calls: 1, failed: 1 } }, 0],
  ])("%s ends in a recorded turn, and the conversation goes on", async (_, action, turn, clocked) => {
    const host = await hostOf();
    const episode = await played([action, "#7"], { host });
    expect(episode.turns).toEqual([
      { action, ...turn },
      { action: "#7", observation: "", info: { calls: 0, failed: 0 } },
    ]);
    expect(await judged(episode)).toEqual(accept());
    expect(host.clocked).toBe(clocked);
  });

  it("computes for ever is ended with its thread; others in that thread are answered all the same", async () => {
    const host = await hostOf(environment, new URL("../../test/support/adder-task.ts", import.meta.url).href);
    const [stuck, other] = await Promise.all([played(["loop(1)", "#7"], { host }), played(["add(3+4)", "#7"], { host })]);
    expect(stuck.turns[0]).toEqual({ action: "loop(1)", observation: "!", info: { calls: 1, failed: 1 }, fault: "no answer within 1030 ms" });
    expect(other.turns[0]).toEqual({ action: "add(3+4)", observation: "7", info: { calls: 1, failed: 0 } });
    expect([await judged(stuck), await judged(other)]).toEqual([accept(), accept()]);
    expect(host.clocked).toBe(1);
  });
});

describe("an environment of one's own", () => {
  const silent = { start: () => 0, step: () => ({ state: 0, observation: [], info: {}, done: true }) } satisfies Environment<number>;

  it.each([
    ["throws", { step: () => JSON.parse("{") }, "environment-failed", 0],
    ["never answers", { limits: { deadlineMs: 20 }, step: () => new Promise<never>(() => undefined) }, "environment-deadline", 1],
    ["gives no step", { step: () => ({ done: "yes" }) as never }, "environment-failed", 0],
    ["gives a number that is none", { step: () => ({ state: 0, observation: [], info: { width: Number.NaN }, done: true }) }, "environment-failed", 0],
  ])("that %s leaves its conversation unscored", async (_, own, reason, clocked) => {
    const host = await hostOf({ ...silent, ...own });
    const episode = await played(["#7"], { host });
    expect(await judged(episode)).toMatchObject({ kind: "unscored", reason });
    expect(episode.turns[0]?.fault).toBeTypeOf("string");
    expect(host.clocked).toBe(clocked);
  });

  it("has the last word with its verdict, and keeps those of its turns", async () => {
    const own: Environment<number> = {
      start: () => 0,
      step: (n, action) => ({
        state: n + 1,
        observation: [{ role: "user", content: String(n) }],
        verdict: n === 1 ? accept() : { kind: "partial", score: 0.5 },
        info: { length: action.length },
        done: n === 1,
      }),
    };
    const episode = await played(["1", "23"], { host: await hostOf(own as Environment<never> as Environment<Json>) });
    expect(episode.turns.map(({ verdict, info, observation }) => [verdict?.kind, info.length, observation])).toEqual([
      ["partial", 1, "0"],
      ["accept", 2, "1"],
    ]);
    expect(await judged(episode)).toEqual(accept());
  });

  it("that cannot be started stops the run with the problem's name", async () => {
    const host = await hostOf({ ...silent, start: () => JSON.parse("{") as Json });
    await expect(played(["#7"], { host })).rejects.toThrow("environment, problem p: it cannot be started");
  });

  it("is refused with limits that cannot be meant", async () => {
    await expect(hostOf({ ...silent, limits: { turns: 0 } })).rejects.toThrow("environment, limits.turns: it is 0; give a whole number of at least 1");
  });

  it("cannot change the state of another conversation", async () => {
    const start = { said: [] as string[] };
    const own: Environment<Json> = {
      start: () => start,
      step: (state, action) => {
        (state as typeof start).said.push(action);
        return { state, observation: [{ role: "tool", content: (state as typeof start).said.join("+") }], info: {}, done: action === "2" };
      },
    };
    const host = await hostOf(own);
    const [first, second] = [await played(["1", "2"], { host }), await played(["2"], { host })];
    expect(first.turns.map(({ observation }) => observation)).toEqual(["1", "1+2"]);
    expect(second.turns.map(({ observation }) => observation)).toEqual(["2"]);
  });
});

describe("conversations side by side", () => {
  it("are sampled in one call a turn, whatever their lengths", async () => {
    const calls: number[] = [];
    const host = await hostOf();
    const script = [["#7"], ["add(1+1)", "#7"], ["add(1+1)", "add(2+2)", "#7"]];
    const own = script.map((actions) => scripted(actions));
    const rounds = new Rounds(async function* (requests) {
      calls.push(requests.length);
      for (const [index, request] of requests.entries()) {
        const which = request.weights.at === undefined ? 0 : Number(request.weights.at);
        for await (const sample of (own[which] as (typeof own)[number])([request])) yield { ...sample, index };
      }
    });
    const requests = script.map((_, i) => ({ ...requestOf(), request: { ...requestOf().request, weights: { role: "policy", at: String(i) } } }));
    const episodes: Episode[] = [];
    for await (const episode of playEpisodes(requests, { host, rounds, tokenizer })) episodes.push(episode);
    expect(episodes.sort((a, b) => a.index - b.index).map(({ turns }) => turns.length)).toEqual([1, 2, 3]);
    expect(calls).toEqual([3, 2, 1]);
  });

  it("all fail when the engine does", async () => {
    const rounds = new Rounds(async function* () {
      yield* [];
    });
    const all = async (): Promise<void> => {
      for await (const _ of playEpisodes([requestOf(), requestOf()], { host: await hostOf(), rounds, tokenizer }));
    };
    await expect(all()).rejects.toThrow("the engine answered 0 of 2 requests");
  });
});
