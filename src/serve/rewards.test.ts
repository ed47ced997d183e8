/** Verdicts over HTTP, asked as trainers ask, and as those who mean harm do. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { servedVerifier } from "../../test/support/served.js";
import type { Problem } from "../core/problem.js";
import { namedVerifier } from "../verify/catalogue.js";
import { judge } from "../verify/contract.js";
import type { Served } from "./server.js";

const problem: Problem = {
  key: "p1",
  prompt: [{ role: "user", content: "6 * 7" }],
  reference: { state: "gold", answer: "42", version: 0 },
  privileged: { solution: "secret" },
};
let served: Served;

beforeAll(async () => {
  served = await servedVerifier("number", {}, { problems: [problem], mostBytes: 2 ** 20, readMs: 2000 });
});
afterAll(() => served.close());

interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: read as a client reads it
  readonly body: any;
  readonly headers: Headers;
}

async function post(path: string, body: unknown, { at = served, headers = {} }: { at?: Served; headers?: { [name: string]: string } } = {}): Promise<Reply> {
  const text = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  const response = await fetch(at.address + path, { method: "POST", body: text as BodyInit, headers: { "content-type": "application/json", ...headers } });
  return { status: response.status, body: await response.json(), headers: response.headers };
}

describe("plain JSON", () => {
  it("judges answers in their order, with scores, reasons and null where there is none", async () => {
    const { status, body } = await post("/reward", {
      items: [
        { response: "It is 12.", reference: "12" },
        { response: "It is 13.", reference: "12" },
        { response: "hm", reference: "12", prompt: "6 + 6", truncated: false },
        { response: "12", reference: "no number" },
        { response: "42", key: "p1" },
      ],
    });
    expect(status).toBe(200);
    expect(body.results.map(({ kind, score, reward, reason }: { [name: string]: unknown }) => [kind, score, reward, reason])).toEqual([
      ["accept", 1, 1, undefined],
      ["reject", 0, 0, "wrong"],
      ["reject", 0, 0, "no-answer"],
      ["unscored", null, null, "bad-reference"],
      ["accept", 1, 1, undefined],
    ]);
    expect(body.verifier).toMatch(/^number:/);
  });

  it("is what our own rewards over HTTP speak, so that one server can judge for another", async () => {
    const { verifier } = await namedVerifier(`${served.address}/reward`);
    const asked = (response: string, answer?: string) =>
      judge(verifier, { ...problem, reference: answer === undefined ? { state: "none", version: 0 } : { state: "gold", answer, version: 0 } }, response);
    const verdicts = await Promise.all([asked("42", "42"), asked("41", "42"), asked("42", "?"), asked("42")]);
    expect(verdicts.map((verdict) => [verdict.kind, "reason" in verdict && verdict.reason])).toEqual([
      ["accept", false],
      ["reject", "wrong"],
      ["unscored", "bad-reference"],
      ["unscored", "no-reference"],
    ]);
  });

  it.each([
    [{ items: [{ response: "1" }] }, "items[0]: it has no reference to be judged against"],
    [{ items: [{ response: "1", key: "p9" }] }, 'there is no problem "p9"'],
    [{ items: [{ response: "1", refrence: "1" }] }, 'did you mean "reference"?'],
    [{ items: [{ response: 1, reference: "1" }] }, "items[0].response: got 1"],
    [{ item: [] }, "there is no such option"],
    [[], "an empty list"],
    [null, "null"],
  ])("refuses %j", async (asked, says) => {
    const { status, body } = await post("/reward", asked);
    expect(status).toBe(400);
    expect(body.error.message).toContain(says);
  });

  it("lists its problems without what only training may see", async () => {
    const listed = await (await fetch(`${served.address}/problems?n=5`)).json();
    expect(listed).toMatchObject({ problems: [{ key: "p1", prompt: problem.prompt, reference: "42" }], total: 1, next: null });
    expect(JSON.stringify(listed)).not.toContain("secret");
    expect((await fetch(`${served.address}/problems?from=x`)).status).toBe(400);
  });
});

describe("OpenRLHF", () => {
  const prompts = ["<|im_start|>user\n6*7<|im_end|>\n<|im_start|>assistant\n", "<|im_start|>user\n1+1<|im_end|>\n<|im_start|>assistant\n"];

  it("gets numbers for what follows the prompt, its end tokens left out", async () => {
    const query = [`${prompts[0]}42<|im_end|>\n`, `${prompts[1]}It is 3<|im_end|><|endoftext|>`];
    const { status, body } = await post("/openrlhf", { query, prompts, labels: ["42", "2"] });
    expect([status, body]).toEqual([200, { rewards: [1, 0], scores: [1, 0], extra_logs: {} }]);
    expect((await post("/openrlhf", { query: query[0], prompts: prompts[0], labels: "42" })).body.rewards).toEqual([1]);
  });

  it("gets no number where one has none: the request fails, and can be tried again", async () => {
    const { status, body, headers } = await post("/openrlhf", { query: ["42", "2"], labels: ["42", "no number"] });
    expect([status, headers.get("retry-after"), body.error.code]).toEqual([503, "1", "unscored"]);
    expect(body.error.message).toBe("1 of 2 answers have no score, which is not 0: 1 (bad-reference)");
    expect(body.rewards).toBeUndefined();
  });

  it.each([
    [{ query: ["a", "b"], labels: ["1"] }, "labels has 1 entries, and query 2"],
    [{ query: ["a"], prompts: ["b"], labels: ["1"] }, "query[0] does not begin with prompts[0]"],
    [{ query: ["a"] }, "labels[0]: it has no reference"],
  ])("is told what is wrong in %j", async (asked, says) => {
    const { status, body } = await post("/openrlhf", asked);
    expect(status).toBe(400);
    expect(body.error.message).toContain(says);
  });
});

describe("verl", () => {
  it("gets an object with its score for the arguments of compute_score, and null where there is none", async () => {
    const asked = (solution_str: string, ground_truth: string) => post("/verl", { data_source: "gsm8k", solution_str, ground_truth, extra_info: { index: 3 } });
    expect((await asked("42", "42")).body).toEqual({ score: 1, acc: 1, kind: "accept", reason: "" });
    expect((await asked("41", "42")).body).toEqual({ score: 0, acc: 0, kind: "reject", reason: "wrong" });
    expect((await asked("41", "none")).body).toEqual({ score: null, acc: null, kind: "unscored", reason: "bad-reference" });
  });

  it("gets a list for lists", async () => {
    const { body } = await post("/verl", { data_sources: ["a", "a"], solution_strs: ["1", "2"], ground_truths: ["1", "1"], extra_infos: [{}, null] });
    expect(body.results.map(({ score }: { score: number }) => score)).toEqual([1, 0]);
    expect((await post("/verl", { solution_strs: ["1", "2"], ground_truths: ["1"] })).status).toBe(400);
  });
});

describe("who may ask", () => {
  it("is this machine by its own names, without a token", async () => {
    const raw = (host: string): Promise<string> =>
      new Promise((resolve) => {
        const { port } = new URL(served.address);
        const socket = connect(Number(port), "127.0.0.1", () => socket.write(`GET /problems HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`));
        let text = "";
        socket.on("data", (piece) => {
          text += piece;
        });
        socket.on("close", () => resolve(text.split("\r\n")[0] as string));
      });
    expect(await raw("localhost")).toContain("200");
    expect(await raw("evil.example")).toContain("403");
  });

  it("is with a token who knows it; an address that others reach wants one", async () => {
    const guarded = await servedVerifier("number", {}, { token: "word" });
    const asked = { items: [{ response: "1", reference: "1" }] };
    const statuses = [
      await post("/reward", asked, { at: guarded }),
      await post("/reward", asked, { at: guarded, headers: { authorization: "Bearer other" } }),
      await post("/reward", asked, { at: guarded, headers: { authorization: "Bearer word" } }),
      await post("/reward?token=word", asked, { at: guarded }),
    ].map(({ status }) => status);
    await guarded.close();
    expect(statuses).toEqual([401, 401, 200, 200]);
    await expect(servedVerifier("number", {}, { host: "0.0.0.0" })).rejects.toThrow("others can reach 0.0.0.0, and no token keeps them out");
  });

  it("does not include pages of other sites, which cannot send JSON unasked", async () => {
    const { status } = await post("/reward", { items: [] }, { headers: { "content-type": "text/plain" } });
    expect(status).toBe(415);
  });
});

describe("hostile requests", () => {
  const deep = "[".repeat(900_000);
  const many = `[${"{},".repeat(300_000)}{}]`;
  const manyKeys = JSON.stringify(Object.fromEntries(Array.from({ length: 80_000 }, (_, i) => [`k${i}`, 1])));

  it.each<[string, string | Uint8Array, number]>([
    ["deep", deep, 400],
    ["deep within a string's end", `{"items": "${"\\".repeat(1000)}`, 400],
    ["of many small values", many, 413],
    ["of many keys", manyKeys, 413],
    ["larger than allowed", " ".repeat(2 ** 20 + 1), 413],
    ["binary", Uint8Array.from({ length: 5000 }, (_, i) => (i * 7919) % 256), 400],
    ["half of a JSON text", '{"items": [{"response": "1"', 400],
    ["empty", "", 400],
    ["with a prototype", '{"__proto__": {"items": []}, "items": []}', 400],
  ])("with a body that is %s are refused, and the next one is answered", async (_, body, status) => {
    const refused = await post("/reward", body);
    expect(refused.status).toBe(status);
    expect(refused.body.error.message.length).toBeLessThan(600);
    expect((await post("/reward", { items: [{ response: "1", reference: "1" }] })).status).toBe(200);
  });

  it("that send their body slowly are ended, while others are answered", async () => {
    const { port } = new URL(served.address);
    const slow = Array.from({ length: 50 }, () => {
      const socket = connect(Number(port), "127.0.0.1");
      socket.write("POST /reward HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{");
      const drip = setInterval(() => socket.writable && socket.write(" "), 200);
      const ended = new Promise<void>((resolve) => socket.on("close", resolve).on("error", () => undefined)).finally(() => clearInterval(drip));
      socket.resume();
      return ended;
    });
    const answers = await Promise.all(Array.from({ length: 50 }, () => post("/reward", { items: [{ response: "1", reference: "1" }] })));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    await Promise.all(slow);
  });

  it("with more answers than are judged at a time, methods and paths that are not there, are told so", async () => {
    expect((await post("/reward", { items: Array.from({ length: 9000 }, () => ({ response: "1", reference: "1" })) })).status).toBe(413);
    expect((await fetch(`${served.address}/reward`)).status).toBe(405);
    expect((await (await fetch(`${served.address}/rewards`)).json()).error.message).toContain("there is POST /reward, POST /openrlhf, POST /verl");
  });
});

describe("two hundred graders at once", () => {
  it("all get the verdicts of their own answers", async () => {
    const judged = await Promise.all(
      Array.from({ length: 200 }, async (_, grader) => {
        const right: boolean[] = [];
        for (let i = 0; i < 10; i++) {
          const { status, body } = await post("/reward", { items: [{ response: `so ${grader + (i % 2)}`, reference: String(grader) }] });
          right.push(status === 200 && body.results[0].reward === (i % 2 === 0 ? 1 : 0));
        }
        return right;
      }),
    );
    expect(judged.flat().filter((right) => !right)).toEqual([]);
    expect(judged.flat()).toHaveLength(2000);
  });
});

describe("a verifier that is slow", () => {
  it("leaves answers unscored when the request's time is up, and a large request does not stand before small ones", async () => {
    const slow = await servedVerifier("./test/support/slow-reward.ts", {}, { deadlineMs: 5000 });
    const large = post("/reward", { items: Array.from({ length: 200 }, (_, i) => ({ response: `${i} slow`, reference: "1" })) }, { at: slow });
    const small = await post("/reward", { items: [{ response: "1", reference: "1" }] }, { at: slow });
    expect(small.body.results[0].reward).toBe(1);
    const results = (await large).body.results as { readonly kind: string; readonly reason?: string; readonly reward: number | null }[];
    expect(results).toHaveLength(200);
    expect(results[0]?.reward).toBe(1);
    expect(results.at(-1)).toMatchObject({ kind: "unscored", reason: "deadline", reward: null });
    await slow.close();
  });
});

describe("the end", () => {
  it("takes nothing new, and finishes what is under way", async () => {
    const ending = await servedVerifier("./test/support/slow-reward.ts");
    const asked = post("/reward", { items: [{ response: "1 slow", reference: "1" }] }, { at: ending });
    while (ending.open === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const closed = ending.close();
    expect((await asked).body.results[0].reward).toBe(1);
    await closed;
    await expect(post("/reward", { items: [] }, { at: ending })).rejects.toThrow();
  });
});
