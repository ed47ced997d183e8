/** Rewards of a real server, one that fails too. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { batch, group, row } from "../../../test/support/batch.js";
import type { Json } from "../../core/json.js";
import type { Problem } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import { accept, rewardOf, type Verdict } from "../../core/verdict.js";
import { verdictReward } from "../../methods/base.js";
import { namedVerifier } from "../catalogue.js";
import { judge, type Verifier } from "../contract.js";
import type { RewardItem } from "./item.js";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Call {
  readonly items: readonly RewardItem[];
  readonly request: IncomingMessage;
  readonly number: number;
}

/** A server; a text is sent as it is, a number is a status, undefined leaves the connection hanging, "drop" cuts it. */
async function serve(answer: (call: Call) => Json | undefined): Promise<string> {
  let number = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const given = answer({ items: (JSON.parse(body) as { items: RewardItem[] }).items, request, number: number++ });
    if (given === undefined) return;
    if (given === "drop") request.socket.destroy();
    else if (typeof given === "number") response.writeHead(given).end("it went wrong");
    else response.end(typeof given === "string" ? given : JSON.stringify(given));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/reward`;
}

const problem: Problem = { key: "p", prompt: [{ role: "user", content: "?" }], reference: { state: "none", version: 0 } };
const open = async (url: string, options: Json = {}): Promise<Verifier> => (await namedVerifier(url, options)).verifier;
const all = (verifier: Verifier, responses: readonly string[]): Promise<Verdict[]> =>
  Promise.all(responses.map((response) => judge(verifier, problem, response)));
const brief = (verdicts: readonly Verdict[]): (number | string)[] =>
  verdicts.map((verdict) => (verdict.kind === "unscored" ? verdict.reason : (rewardOf(verdict) as number)));
const lengths = (items: readonly RewardItem[]): Json => ({ results: items.map(({ response }) => response.length) });

describe("a server", () => {
  it("gets batches by POST and is believed, also without references", async () => {
    let seen = "";
    const url = await serve(({ items, request }) => {
      seen = `${request.method} ${request.url} ${request.headers["content-type"]} ${request.headers["x-team"]} ${items[0]?.problem.reference}`;
      return lengths(items);
    });
    const verifier = await open(url, { range: [0, 10], batch: 8, headers: { "x-team": "ours" } });
    expect(brief(await all(verifier, ["", "a", "aaa", "aaaaaaaaaaaa"]))).toEqual([0, 1, 3, 12]);
    expect(seen).toBe("POST /reward application/json ours null");
  });

  it("gets a token from the environment, and is refused without it", async () => {
    const url = await serve(({ items, request }) => (request.headers.authorization === "Bearer abc" ? lengths(items) : 401));
    process.env.TEST_REWARD_TOKEN = "abc";
    expect(brief(await all(await open(url, { token_env: "TEST_REWARD_TOKEN" }), ["a"]))).toEqual([1]);
    delete process.env.TEST_REWARD_TOKEN;
    await expect(open(url, { token_env: "TEST_REWARD_TOKEN" })).rejects.toThrow(
      "verifier, option token_env: there is no environment variable TEST_REWARD_TOKEN",
    );
    expect(await all(await open(url), ["a"])).toMatchObject([
      { kind: "unscored", reason: "failed", evidence: { message: `${url}: status 401 (it went wrong)` } },
    ]);
  });

  it("is asked again where a fault may pass, and not where it will not", async () => {
    const calls: number[] = [];
    const passing = await serve(({ items, number }) => {
      calls.push(number);
      return number === 0 ? 503 : number === 1 ? "drop" : lengths(items);
    });
    expect(brief(await all(await open(passing), ["a"]))).toEqual([1]);
    expect(calls).toEqual([0, 1, 2]);
    let refused = 0;
    const lasting = await serve(() => {
      refused++;
      return 400;
    });
    expect(brief(await all(await open(lasting), ["a"]))).toEqual(["failed"]);
    expect(refused).toBe(1);
  });

  it.each<[string, (call: Call) => Json | undefined, string]>([
    ["hangs", () => undefined, "timeout"],
    ["cuts the connection", () => "drop", "unreachable"],
    ["is down", () => 500, "failed"],
    ["answers with a page", () => "<html>", "malformed"],
    ["gives another number of results", () => ({ results: [1, 1, 1] }), "malformed"],
    ["gives no results", () => ({ scores: [1] }), "malformed"],
    ["gives null", () => ({ results: [null] }), "no-score"],
    ["gives a number beyond all numbers", () => '{"results":[1e999]}', "malformed"],
  ])("that %s leaves answers unscored", async (_, answer, reason) => {
    const verifier = await open(await serve(answer), { deadline_ms: 300, retries: 0 });
    expect(brief(await all(verifier, ["a"]))).toEqual([reason]);
  });

  it("that is not there is told with what the system says", async () => {
    expect(await all(await open("http://127.0.0.1:9/x", { retries: 0 }), ["a"])).toMatchObject([{ kind: "unscored", reason: "unreachable" }]);
    await expect(open("http://[")).rejects.toThrow(/^verifier: "http:..\[" is no address; give the server's address/);
  });
});

describe("a server that fails half of the time", () => {
  it("leaves means unbiased, over the answers that have a score alone", async () => {
    const random = new Stream(randomKey({ seed: 1, purpose: "test/half" }));
    const url = await serve(({ items }) => (random.next() < 0.5 ? 500 : { results: items.map(({ response }) => Number(response)) }));
    const verifier = await open(url, { retries: 0, batch: 1, concurrency: 16 });
    // Rewards that are known: 0 to 1 in steps, each as often; their mean is 0.5 and their deviation 0.3162.
    const n = 1100;
    const known = Array.from({ length: n }, (_, i) => (i % 11) / 10);
    const verdicts = await all(verifier, known.map(String));
    const scored = verdicts.flatMap((verdict) => rewardOf(verdict) ?? []);
    expect(Math.abs(scored.length / n - 0.5)).toBeLessThan(4 * Math.sqrt(0.25 / n));
    expect(Math.abs(scored.reduce((sum, r) => sum + r, 0) / scored.length - 0.5)).toBeLessThan((4 * 0.3162) / Math.sqrt(scored.length));
    for (const [i, verdict] of verdicts.entries()) if (verdict.kind !== "unscored") expect(rewardOf(verdict)).toBe(known[i]);

    // Of a group of four with two failures, two have a number; the baseline is of those alone (methods/grpo).
    const failed: Verdict = { kind: "unscored", reason: "failed" };
    const rows = [accept(), failed, verdictOfHalf, failed].map((verdict, i) => row("p", i, { old: [-1], verdict }));
    const one = batch(group("p", rows));
    expect(verdictReward(one).values).toEqual([1, undefined, 0.5, undefined]);
  });
});

const verdictOfHalf: Verdict = { kind: "partial", score: 0.5 };
