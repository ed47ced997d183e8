/** The engine on servers as others build them: what is found of each, what comes of its answers, and of its faults. */
import { afterEach, describe, expect, it } from "vitest";
import { type OpenaiStub, openaiStub } from "../../../test/support/openai-stub.js";
import type { StubServer } from "../../../test/support/stub-server.js";
import { alphabetTokenizer } from "../../core/alphabet.js";
import { plainContext } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import type { Sample, SampleOptions, SampleRequest } from "../contract.js";
import { OpenaiEngine, type OpenaiEngineOptions } from "./engine.js";

const tokenizer = alphabetTokenizer([..."abcdefghijk"]);
const open: (StubServer | OpenaiEngine)[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

async function started(stub: Partial<OpenaiStub> = {}, options: Partial<OpenaiEngineOptions> = {}): Promise<{ engine: OpenaiEngine; server: StubServer }> {
  const server = await openaiStub({ text: (id) => tokenizer.decode([id], "show"), size: tokenizer.size, eos: tokenizer.eosIds[0] as number, ...stub });
  open.push(server);
  const engine = await OpenaiEngine.open({
    baseUrl: `${server.url}/v1`,
    served: "small",
    key: "secret-key",
    model: { tokenizer },
    retries: 2,
    deadlineMs: 2000,
    ...options,
  });
  open.push(engine);
  await engine.weights.load({ role: "policy", source: { from: "folder", path: "served" }, trainable: false });
  return { engine, server };
}

const request = (member: number, more: Partial<SampleRequest> = {}): SampleRequest => ({
  context: plainContext([5, 6, 7]),
  weights: { role: "policy" },
  temperature: 1,
  maxTokens: 8,
  stop: { ids: [] },
  key: randomKey({ seed: 1, purpose: "test", member }),
  ...more,
});

async function drawn(engine: OpenaiEngine, requests: readonly SampleRequest[], options: SampleOptions = {}): Promise<Sample[]> {
  const samples: Sample[] = [];
  for await (const sample of engine.sample(requests, options)) samples[sample.index] = sample;
  return samples;
}

describe("what a server can do", () => {
  it("is found by asking: one as vLLM is", async () => {
    const { engine, server } = await started();
    const { has, lacks, fingerprint } = engine.info;
    expect([...has].sort()).toEqual(["sample", "sample.greedy", "sample.truncation", "score"]);
    expect(fingerprint).toEqual({ base_url: `${server.url}/v1`, served_model: "small", token_ids: "returned", logprobs: "raw", echo_tokens: 0 });
    expect(lacks["sample.temperature"]).toBe("the server tells log-probs at temperature 1, whatever it draws at");
    expect((await engine.weights.info("policy")).maxTokens).toBe(64);
    expect(server.requests.every(({ headers }) => headers.authorization === "Bearer secret-key")).toBe(true);
    expect(JSON.stringify(engine.info)).not.toContain("secret");
  });

  it.each<[string, Partial<OpenaiStub>, { readonly [name: string]: unknown }, { readonly [capability: string]: string }]>([
    ["ids in the names of tokens", { ids: "named" }, { token_ids: "named" }, {}],
    ["no fields but OpenAI's", { strict: true }, { token_ids: "text" }, { "sample.truncation": "it refuses a rule", score: "it tells no ids" }],
    ["log-probs of what it draws from", { logprobs: "processed" }, { logprobs: "processed" }, { "sample.temperature": "of what it draws from" }],
    ["no log-probs", { logprobs: "none" }, {}, { sample: "it tells no log-probs", score: "it tells no log-probs" }],
    ["no echo", { echo: "none" }, {}, { score: "it does not echo prompts" }],
    ["echoed log-probs of another model", { echo: "wrong" }, {}, { score: "differ by 0.50 from those that it drew with" }],
    [
      "no rules of a restricted draw",
      { ignores: ["top_k", "min_p"] },
      {},
      { "sample.truncation": "it takes top_k and min_p and draws as if nothing had been said" },
    ],
    ["another prompt than it is sent", { before: 1 }, {}, { sample: "it makes 5 tokens of a prompt of 4" }],
    ["a temperature of 0 that it ignores", { ignores: ["temperature"] }, {}, { "sample.greedy": "two answers at temperature 0 differ" }],
    [
      "draws that are all the same",
      { sure: true },
      { logprobs: "unknown" },
      { "sample.truncation": "its free draws do not differ", "sample.temperature": "nobody knows" },
    ],
    ["texts that are not tokens of this tokenizer", { ids: "text", text: (id) => `<${id}>` }, {}, { sample: "not exactly the tokens of the tokenizer" }],
  ])("is found of a server with %s", async (_, stub, facts, reasons) => {
    const { engine } = await started(stub);
    expect(engine.info.fingerprint).toMatchObject(facts);
    for (const [capability, reason] of Object.entries(reasons)) {
      expect(engine.info.has.has(capability as never)).toBe(false);
      expect(engine.info.lacks[capability as never]).toContain(reason);
    }
  });

  it("includes the models that it serves", async () => {
    await expect(started({}, { served: "smal" })).rejects.toThrow('it serves no model "smal"; did you mean small?');
    await expect(started({}, { served: "gpt-x" })).rejects.toThrow("name one of small, large");
  });
});

describe("a draw", () => {
  it("has ids, log-probs at temperature 1 as they are told, and NaN for what is not told", async () => {
    const { engine } = await started();
    const [plain, hot, cut] = await drawn(engine, [request(0), request(1, { temperature: 2 }), request(2, { truncation: { topK: 3 } })]);
    for (const sample of [plain, hot, cut]) {
      const [{ logp }] = await engine.score([{ ...request(0), response: (sample as Sample).ids }]);
      (sample as Sample).rawLogp.forEach((told, t) => expect(told).toBeCloseTo(logp[t] as number, 12));
      expect([...(sample as Sample).entropy].every(Number.isNaN)).toBe(true);
    }
    expect(plain?.logp).toEqual(plain?.rawLogp);
    expect([...(hot as Sample).logp, ...(cut as Sample).logp].every(Number.isNaN)).toBe(true);
  });

  it("of a server that tells what it draws from has that, and NaN at temperature 1", async () => {
    const { engine } = await started({ logprobs: "processed" });
    const [sample] = await drawn(engine, [request(0, { temperature: 2 })]);
    expect([...(sample as Sample).logp].every(Number.isFinite)).toBe(true);
    expect([...(sample as Sample).rawLogp].every(Number.isNaN)).toBe(true);
  });

  it.each(["returned", "named", "text"] as const)("gets its ids where they are %s", async (ids) => {
    const { engine } = await started({ ids });
    const [same] = await drawn((await started()).engine, [request(3)]);
    const [sample] = await drawn(engine, [request(3)]);
    expect(sample?.ids).toEqual(same?.ids);
  });

  it("is refused where its text is not exactly the tokens that it names", async () => {
    let mangled = true;
    const change = (choice: { [name: string]: unknown }): void => {
      if (mangled) (choice.logprobs as { tokens: string[] }).tokens[0] = "aa";
    };
    // The probe refuses a server that is so from the start; one that becomes so is refused at its answer.
    expect((await started({ ids: "text", change })).engine.info.has.has("sample")).toBe(false);
    mangled = false;
    const { engine } = await started({ ids: "text", change });
    mangled = true;
    await expect(drawn(engine, [request(0)])).rejects.toThrow("which are not exactly the tokenizer's");
  });

  it("ends with an end token also where the server goes on", async () => {
    const { engine } = await started({ strict: true, ids: "text", eos: -1 });
    const [free] = await drawn(engine, [request(4)]);
    const stop = (free as Sample).ids[3] as number;
    const first = [...(free as Sample).ids].indexOf(stop);
    const [cut] = await drawn(engine, [request(4, { stop: { ids: [stop] } })]);
    expect([...(cut as Sample).ids]).toEqual([...(free as Sample).ids].slice(0, first + 1));
    expect(cut).toMatchObject({ stop: "eos" });
    expect(cut?.rawLogp).toHaveLength(first + 1);
  });
});

describe("tokens that are told", () => {
  it.each([true, false])("end a response where the caller says, streamed: %s", async (streams) => {
    const { engine } = await started({ streams });
    const [whole] = await drawn(engine, [request(5, { maxTokens: 30 })]);
    const told: number[] = [];
    const [cut] = await drawn(engine, [request(5, { maxTokens: 30 })], { onToken: (_, id) => told.push(id) === 4 });
    expect(cut).toMatchObject({ stop: "stop", ids: whole?.ids.slice(0, 4), rawLogp: whole?.rawLogp.slice(0, 4) });
    expect(told).toEqual([...(whole as Sample).ids].slice(0, 4));
    const [all] = await drawn(engine, [request(5, { maxTokens: 30 })], { onToken: () => false });
    expect(all).toEqual(whole);
  });

  it("are not told anew when the stream breaks off: the call fails", async () => {
    let broken = false;
    const { engine } = await started({
      fault: ({ body }) => {
        if (!broken || !body.includes('"stream":true')) return undefined;
        return {
          pieces: [
            `data: ${JSON.stringify({ choices: [{ text: "a", token_ids: [5], logprobs: { tokens: ["a"], token_logprobs: [-1] }, finish_reason: null }] })}\n\n`,
          ],
        };
      },
    });
    broken = true;
    const told: number[] = [];
    await expect(drawn(engine, [request(0)], { onToken: (_, id) => told.push(id) < 0 })).rejects.toThrow("ended a response without a reason");
    expect(told).toEqual([5]);
  });
});

describe("a server that misbehaves", () => {
  type Fault = ReturnType<NonNullable<OpenaiStub["fault"]>>;

  /** What completion n after the engine was opened is answered in place of an answer, until it is mended. */
  async function misbehaving(faultOf: (n: number) => Fault, options: Partial<OpenaiEngineOptions> = {}) {
    let first = Number.POSITIVE_INFINITY;
    const { engine, server } = await started({ fault: ({ number }) => (number < first ? undefined : faultOf(number - first)) }, options);
    first = server.requests.length;
    return { engine, asked: () => server.requests.length - first, mend: () => (first = Number.POSITIVE_INFINITY) };
  }

  it("is asked again where that may help, and the answer is the same", async () => {
    const { engine, asked } = await misbehaving((n) => (n === 0 ? { status: 500 } : n === 1 ? { status: 429, headers: { "retry-after": "0.1" } } : undefined));
    const [sample] = await drawn(engine, [request(6)]);
    const [same] = await drawn((await started()).engine, [request(6)]);
    expect(sample).toEqual(same);
    expect(asked()).toBe(3);
  });

  it.each<[string, Fault, string]>([
    ["500", { status: 500, body: "out of memory" }, "status 500 (out of memory)"],
    ["half a body", { half: '{"choices":[{' }, "the answer broke off"],
    ["no JSON", { body: "<html>" }, "its answer is not JSON"],
    ["silence", "silence", "no answer within 300 ms"],
    ["a cut connection", "drop", "server at"],
  ])("with %s again and again fails the call within its tries", async (_, fault, says) => {
    const { engine, asked, mend } = await misbehaving(() => fault, { retries: 2, deadlineMs: 300 });
    await expect(drawn(engine, [request(0)])).rejects.toThrow(says);
    // A connection that was kept may be old, so that one try then is two.
    expect(asked()).toBeGreaterThanOrEqual(3);
    expect(asked()).toBeLessThanOrEqual(6);
    mend();
    expect(await drawn(engine, [request(0)])).toHaveLength(1);
  });

  it.each<[string, object, string]>([
    ["no choices", { choices: [] }, "ended a response without a reason"],
    [
      "fewer log-probs than tokens",
      { choices: [{ token_ids: [5, 6], logprobs: { tokens: ["a", "b"], token_logprobs: [-1] }, finish_reason: "length" }] },
      "tells 1 log-probs of 2 tokens",
    ],
    ["log-probs of null", { choices: [{ token_ids: [5], logprobs: { tokens: ["a"], token_logprobs: [null] }, finish_reason: "stop" }] }, "log-probs"],
    [
      "a reason of its own",
      { choices: [{ token_ids: [5], logprobs: { tokens: ["a"], token_logprobs: [-1] }, finish_reason: "content_filter" }] },
      '"content_filter"',
    ],
    ["an error in place of an answer", { error: { message: "model is loading" } }, "model is loading"],
    ["400", {}, "status 400"],
  ])("with %s is told so, in one sentence", async (name, body, says) => {
    const { engine } = await misbehaving(() => ({ body, ...(name === "400" && { status: 400 }) }), { retries: 0 });
    const error = await drawn(engine, [request(0)]).catch((thrown: unknown) => thrown as Error);
    expect((error as Error).message).toContain(says);
    expect((error as Error).message).not.toContain("secret");
    expect((error as Error).message).not.toContain("\n");
  });

  it("ends the other requests of a call when one fails, and is usable afterwards", async () => {
    const { engine, asked, mend } = await misbehaving((n) => (n === 0 ? { status: 400, body: "no" } : undefined), { retries: 0, concurrency: 2 });
    await expect(
      drawn(
        engine,
        Array.from({ length: 40 }, (_, i) => request(i)),
      ),
    ).rejects.toThrow("status 400");
    expect(asked()).toBeLessThan(10);
    mend();
    expect(await drawn(engine, [request(1)])).toHaveLength(1);
  });

  it("that is not there, or refuses the key, is told when it is opened", async () => {
    const options = { served: "small", model: { tokenizer }, retries: 0 };
    await expect(OpenaiEngine.open({ ...options, baseUrl: "http://127.0.0.1:9/v1" })).rejects.toThrow("server at http://127.0.0.1:9/v1: ECONNREFUSED");
    await expect(started({ fault: () => ({ status: 401, body: "bad key" }) })).rejects.toThrow("status 401 (bad key)");
  });
});

describe("many requests", () => {
  it("are as many at once as was said, and come as they finish", async () => {
    const { engine, server } = await started({}, { concurrency: 5 });
    const samples = await drawn(
      engine,
      Array.from({ length: 60 }, (_, i) => request(i)),
    );
    expect(samples).toHaveLength(60);
    expect(server.most).toBeLessThanOrEqual(6);
    const [alone] = await drawn(engine, [request(17)]);
    expect({ ...samples[17], index: 0 }).toEqual(alone);
  });
});
