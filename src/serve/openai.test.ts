/** A policy read by the client that people use for OpenAI's interface, held to the engine's own numbers. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServedPolicy, servedPolicy } from "../../test/support/served.js";
import { plainContext } from "../core/problem.js";
import { role } from "./policy.js";

let served: ServedPolicy;
let client: OpenAI;
beforeAll(async () => {
  served = await servedPolicy();
  client = new OpenAI({ baseURL: `${served.address}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(() => served.close());

const messages = [{ role: "user" as const, content: "ab a" }];
const base = { model: "table", messages, seed: 7, max_tokens: 30 };
const raw = (path: string, body: object) =>
  fetch(served.address + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

/** The engine's log-probs at temperature 1 of tokens that were named by their texts. */
async function scored(context: Int32Array, tokens: readonly string[]): Promise<number[]> {
  const ids = Int32Array.from(tokens.flatMap((token) => [...served.tokenizer.raw(token)]));
  expect(ids).toHaveLength(tokens.length);
  const [{ logp }] = await served.engine.score([{ context: plainContext(context), response: ids, weights: { role }, temperature: 1 }]);
  return [...logp];
}

describe("a chat", () => {
  it("has the model's text, the same for the same seed, with usage and a reason to end", async () => {
    const first = await client.chat.completions.create(base);
    const second = await client.chat.completions.create(base);
    const other = await client.chat.completions.create({ ...base, seed: 8 });
    const [choice] = first.choices;
    expect(choice?.message).toMatchObject({ role: "assistant" });
    expect(choice?.message.content).toBe(second.choices[0]?.message.content);
    expect(other.choices[0]?.message.content).not.toBe(choice?.message.content);
    const prompt = served.tokenizer.render(messages, { addGenerationPrompt: true });
    expect(first.usage).toMatchObject({ prompt_tokens: prompt.length, total_tokens: prompt.length + (first.usage?.completion_tokens ?? 0) });
    expect(["stop", "length"]).toContain(choice?.finish_reason);
  });

  it("streams to the same text, log-probs and usage", async () => {
    const whole = await client.chat.completions.create({ ...base, n: 3, logprobs: true });
    const stream = await client.chat.completions.create({ ...base, n: 3, logprobs: true, stream: true, stream_options: { include_usage: true } });
    const texts = ["", "", ""];
    const logprobs: number[][] = [[], [], []];
    const finishes: (string | null)[] = [];
    let pieces = 0;
    let usage: unknown;
    for await (const { choices, usage: used } of stream) {
      pieces++;
      usage = used ?? usage;
      for (const { index, delta, logprobs: told, finish_reason } of choices) {
        texts[index] += delta.content ?? "";
        logprobs[index]?.push(...(told?.content ?? []).map(({ logprob }) => logprob));
        if (finish_reason) finishes[index] = finish_reason;
      }
    }
    expect(texts).toEqual(whole.choices.map(({ message }) => message.content));
    expect(logprobs).toEqual(whole.choices.map((choice) => choice.logprobs?.content?.map(({ logprob }) => logprob)));
    expect(finishes).toEqual(whole.choices.map(({ finish_reason }) => finish_reason));
    expect(usage).toEqual(whole.usage);
    expect(pieces).toBeGreaterThan(10);
    expect(new Set(texts).size).toBe(3);
  });

  it("is read by the client's own accumulating stream", async () => {
    const final = await client.chat.completions.stream(base).finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe((await client.chat.completions.create(base)).choices[0]?.message.content);
  });

  it.each([{ temperature: 0 }, { temperature: 1 }, { temperature: 1, top_p: 0.8 }, { temperature: 0.6 }, { temperature: 1.7 }])(
    "tells log-probs at temperature 1, of other tokens too, with %j",
    async (decoder) => {
      const { choices } = await client.chat.completions.create({ ...base, ...decoder, logprobs: true, top_logprobs: 4, max_tokens: 8 });
      const content = choices[0]?.logprobs?.content ?? [];
      const context = served.tokenizer.render(messages, { addGenerationPrompt: true });
      const expected = await scored(
        context,
        content.map(({ token }) => token),
      );
      content.forEach(({ logprob, top_logprobs, token, bytes }, t) => {
        expect(logprob).toBeCloseTo(expected[t] as number, 9);
        expect(Buffer.from(bytes ?? []).toString()).toBe(token);
        expect(top_logprobs).toHaveLength(4);
        const own = top_logprobs.find((other) => other.token === token);
        if (own) expect(own.logprob).toBeCloseTo(logprob, 9);
        expect(top_logprobs.reduce((sum, other) => sum + Math.exp(other.logprob), 0)).toBeLessThanOrEqual(1 + 1e-9);
      });
      // Another token in the place of the last has the log-prob that is listed for it.
      const [other] = content.at(-1)?.top_logprobs ?? [];
      const instead = [...content.slice(0, -1).map(({ token }) => token), other?.token ?? ""];
      expect(other?.logprob).toBeCloseTo((await scored(context, instead)).at(-1) as number, 9);
    },
  );

  it("ends before a stop string, whole and streamed, wherever it is cut into tokens", async () => {
    const long = { ...base, max_tokens: 60, ...{ ignore_eos: true } };
    const { choices } = await client.chat.completions.create(long);
    const text = choices[0]?.message.content ?? "";
    const stop = text.slice(8, 11);
    expect(stop).toHaveLength(3);
    const cut = await client.chat.completions.create({ ...long, stop: [stop, "zzz"] });
    expect(cut.choices[0]?.message.content).toBe(text.slice(0, text.indexOf(stop)));
    expect(cut.choices[0]?.finish_reason).toBe("stop");
    let streamed = "";
    for await (const { choices: parts } of await client.chat.completions.create({ ...long, stop, stream: true })) streamed += parts[0]?.delta.content ?? "";
    expect(streamed).toBe(text.slice(0, text.indexOf(stop)));
  });

  it("draws the most likely tokens alone with top_k 1, min_p 1 and temperature 0", async () => {
    const text = async (more: object): Promise<unknown> =>
      (await client.chat.completions.create({ ...base, ...more } as typeof base)).choices[0]?.message.content;
    const greedy = await text({ temperature: 0 });
    expect(await text({ top_k: 1, temperature: 2 })).toBe(greedy);
    expect(await text({ min_p: 1, seed: 3 })).toBe(greedy);
    expect(await text({ top_p: 1e-9 })).toBe(greedy);
    expect(await text({ temperature: 2 })).not.toBe(greedy);
  });

  it("takes parts of text and the developer's role", async () => {
    const plain = await client.chat.completions.create({ ...base, messages: [{ role: "system", content: "a b" }, ...messages] });
    const parts = await client.chat.completions.create({
      ...base,
      messages: [
        { role: "developer", content: "a b" },
        {
          role: "user",
          content: [
            { type: "text", text: "ab" },
            { type: "text", text: " a" },
          ],
        },
      ],
    });
    expect(parts.choices[0]?.message.content).toBe(plain.choices[0]?.message.content);
  });
});

describe("a completion", () => {
  it("goes on with texts and with token ids, several at once", async () => {
    const ids = [...served.tokenizer.raw("<user>ab<assistant>")];
    const one = await client.completions.create({ model: "table", prompt: "<user>ab<assistant>", seed: 1, max_tokens: 12 });
    const same = await client.completions.create({ model: "table", prompt: ids, seed: 1, max_tokens: 12 });
    expect(same.choices[0]?.text).toBe(one.choices[0]?.text);
    const many = await client.completions.create({ model: "table", prompt: [ids, ids], seed: 1, max_tokens: 12, n: 2 });
    expect(many.choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    expect(many.choices[0]?.text).toBe(one.choices[0]?.text);
    expect(many.usage?.prompt_tokens).toBe(2 * ids.length);
  });

  it("streams", async () => {
    const ask = { model: "table", prompt: "ab", seed: 2, max_tokens: 20 };
    let text = "";
    for await (const { choices } of await client.completions.create({ ...ask, stream: true })) text += choices[0]?.text ?? "";
    expect(text).toBe((await client.completions.create(ask)).choices[0]?.text);
  });

  it("echoes its prompt with the log-probs of its tokens, without and with an answer", async () => {
    const prompt = "<user>ab c<assistant>";
    const ids = served.tokenizer.raw(prompt);
    for (const max_tokens of [0, 5]) {
      const { choices } = await client.completions.create({ model: "table", prompt: [...ids], max_tokens, echo: true, logprobs: 2, seed: 1 });
      const told = choices[0]?.logprobs;
      expect(told?.token_logprobs?.[0]).toBeNull();
      expect(told?.tokens?.slice(0, ids.length).join("")).toBe(prompt);
      const expected = await scored(ids.slice(0, 1), (told?.tokens ?? []).slice(1));
      expected.forEach((logp, t) => expect(told?.token_logprobs?.[t + 1]).toBeCloseTo(logp, 9));
      const listed = told?.top_logprobs?.[2] ?? {};
      expect(Object.keys(listed)).toHaveLength(2);
      if (max_tokens === 0) expect(told?.tokens).toHaveLength(ids.length);
    }
  });
});

describe("what cannot be meant", () => {
  it.each<[string, object, number, string]>([
    ["/v1/chat/completions", { messages: [] }, 400, "messages"],
    ["/v1/chat/completions", { messages, modle: "table" }, 400, 'did you mean "model"?'],
    ["/v1/chat/completions", { messages, model: "gpt" }, 404, 'there is no model "gpt" here; there is "table"'],
    ["/v1/chat/completions", { messages, frequency_penalty: 0.5 }, 400, "frequency_penalty is not built"],
    ["/v1/chat/completions", { messages, tools: [{ type: "function" }] }, 400, "tools is not built"],
    ["/v1/chat/completions", { messages, response_format: { type: "json_object" } }, 400, "response_format is not built"],
    ["/v1/chat/completions", { messages, temperature: -1 }, 400, "temperature"],
    ["/v1/chat/completions", { messages, top_logprobs: 3 }, 400, "top_logprobs wants logprobs"],
    ["/v1/chat/completions", { messages, logprobs: true, top_logprobs: 3, temperature: 0.5, top_p: 0.5 }, 400, "log-probs of other tokens"],
    ["/v1/chat/completions", { messages: [{ role: "user", content: "a".repeat(500) }] }, 400, "the model takes 400"],
    ["/v1/chat/completions", { messages: [{ role: "user", content: "1" }] }, 400, "is not in the alphabet"],
    ["/v1/completions", { prompt: [1000] }, 400, "outside the vocabulary"],
    ["/v1/completions", { prompt: "a", max_tokens: 0 }, 400, "asks for nothing"],
    ["/v1/completions", { prompt: "a", echo: true, stream: true }, 400, "echo"],
  ])("%s %j is refused with %d", async (path, body, status, says) => {
    const response = await raw(path, body);
    expect(response.status).toBe(status);
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error.message).toContain(says);
  });

  it("is an error of the client's own kinds", async () => {
    await expect(client.chat.completions.create({ ...base, model: "gpt" })).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    await expect(client.chat.completions.create({ ...base, temperature: -1 })).rejects.toBeInstanceOf(OpenAI.BadRequestError);
  });

  it("changes nothing where it says that nothing is to be changed", async () => {
    const idle = {
      frequency_penalty: 0,
      presence_penalty: 0,
      logit_bias: {},
      user: "me",
      response_format: { type: "text" as const },
      tools: [],
      top_p: 1,
      stop: null,
    };
    expect((await client.chat.completions.create({ ...base, ...idle })).choices).toEqual((await client.chat.completions.create(base)).choices);
  });
});

describe("the server", () => {
  it("lists its model", async () => {
    expect((await client.models.list()).data).toMatchObject([{ id: "table", owned_by: "touchstone", max_model_len: 400 }]);
  });

  it("draws no further for a client that went away, and answers the others", async () => {
    const long = await servedPolicy({ maxTokens: 60_000 });
    const own = new OpenAI({ baseURL: `${long.address}/v1`, apiKey: "none", maxRetries: 0 });
    const stream = await own.completions.create({ model: "table", prompt: "ab", max_tokens: 50_000, stream: true, ...{ ignore_eos: true } });
    let pieces = 0;
    for await (const _ of stream) if (++pieces === 5) break;
    while (long.open > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    expect((await long.engine.usage()).sampledTokens).toBeLessThan(50_000);
    expect((await own.completions.create({ model: "table", prompt: "ab", max_tokens: 3 })).choices).toHaveLength(1);
    await long.close();
  });

  it("wants its token where it has one", async () => {
    const guarded = await servedPolicy({ token: "word" });
    const ask = (apiKey: string) => new OpenAI({ baseURL: `${guarded.address}/v1`, apiKey, maxRetries: 0 }).models.list();
    await expect(ask("other")).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    expect((await ask("word")).data).toHaveLength(1);
    await guarded.close();
  });

  it("answers fifty at once, each as it answers it alone", async () => {
    const ask = (seed: number) => client.completions.create({ model: "table", prompt: "ab", seed, max_tokens: 20 });
    const together = await Promise.all(Array.from({ length: 50 }, (_, seed) => ask(seed)));
    for (const seed of [0, 17, 49]) expect((await ask(seed)).choices).toEqual(together[seed]?.choices);
  });
});
