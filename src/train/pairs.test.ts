import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fixture, repository } from "../../test/paths.js";
import { alphabetTokenizer } from "../core/alphabet.js";
import type { Message } from "../core/problem.js";
import { chain, misconception } from "../tasks/chain/chain.js";
import { defineTask } from "../tasks/define.js";
import { loadTokenizer } from "../tokenizers/load.js";
import { alphabetOf, pairExamples, readPairs } from "./pairs.js";
import { parametersOf, policyConfig, policySizes, workedBatches } from "./starter.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "pairs-"));
});
afterAll(() => rm(folder, { recursive: true }));

const columns = { prompt: "prompt", response: "response", messages: "messages" };
async function file(text: string): Promise<string> {
  const path = join(folder, "pairs.jsonl");
  await writeFile(path, text);
  return path;
}

describe("pairs from a file", () => {
  it("have a text or messages as prompt, and empty lines do not count", async () => {
    const path = await file('{"prompt":"ab","response":"b"}\n\n{"prompt":[{"role":"system","content":"a"},{"role":"user","content":"b"}],"response":"ba"}\n');
    const pairs = await readPairs(path, columns);
    expect(pairs.map(({ line, prompt, response }) => [line, prompt.length, response])).toEqual([
      [1, 1, "b"],
      [3, 2, "ba"],
    ]);
    const tokenizer = alphabetOf(pairs);
    const [first] = pairExamples(pairs, tokenizer, 100, path);
    expect(tokenizer.decode(first.response)).toBe("b");
    expect(first.response.at(-1)).toBe(tokenizer.eosIds[0]);
    expect(first.context).toEqual(tokenizer.render(pairs[0].prompt, { addGenerationPrompt: true }));
  });

  it("may be conversations, of which the assistant's turns are learnt as they would be asked for, and nothing else", async () => {
    const tokenizer = await loadTokenizer(fixture("tokenizer", "chatml"));
    const [system, one, two, three] = ["Be brief.", "2 + 3?", "plus 1?", "thanks"].map((content, i) => ({ role: i === 0 ? "system" : "user", content }));
    const said = ["5", "6 <|im_end|>"].map((content) => ({ role: "assistant", content }));
    const chats = [
      [system, one, said[0], two, said[1], three],
      [one, said[0]],
    ];
    const path = await file(chats.map((messages) => `${JSON.stringify({ messages, id: 1 })}\n`).join(""));
    const [long, short] = pairExamples(await readPairs(path, columns), tokenizer, 100, path);
    const show = (ids: ArrayLike<number>): string => tokenizer.decode(ids, "show");
    expect(show(long.context)).toBe("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2 + 3?<|im_end|>\n<|im_start|>assistant\n");
    expect(show(long.response)).toBe("5<|im_end|>\n<|im_start|>user\nplus 1?<|im_end|>\n<|im_start|>assistant\n6 <|im_end|><|im_end|>");
    expect(show(long.response.filter((_, t) => long.loss?.[t] === 1))).toBe("5<|im_end|>6 <|im_end|><|im_end|>");
    // What was typed is text; the end token stands last.
    const end = tokenizer.eosIds[0] as number;
    expect([...long.response].filter((id) => id === end)).toHaveLength(3);
    expect(long.response.at(-1)).toBe(end);
    expect(short.loss).toBeUndefined();
    expect(show(short.context)).toBe(show(long.context).slice(show(long.context).indexOf("\n<|im_start|>user") + 1));
    // Where the template writes an empty thought into an answer, it is the prompt's: what is learnt follows what is asked.
    const quiet = await loadTokenizer(fixture("tokenizer", "chatml"), { kwargs: { enable_thinking: false } });
    const [, asked] = pairExamples(await readPairs(path, columns), quiet, 100, path);
    const whole = quiet.render([one, said[0]] as Message[], { addGenerationPrompt: false });
    expect([...asked.context, ...asked.response]).toEqual([...whole].slice(0, -1));
  });

  it("may lie within a column, as in rows prepared for verl", async () => {
    const inside = { ...columns, response: "reward_model.ground_truth" };
    const pairs = await readPairs(join(repository, "test", "data", "verl-rows.parquet"), inside);
    expect(pairs).toHaveLength(5);
    expect(pairs.every(({ prompt, response }) => prompt.length > 0 && response !== "")).toBe(true);
    const path = await file('{"q":{"text":"1+1"},"q.text":"whole name","a":{"b":"2"}}');
    expect(await readPairs(path, { ...columns, prompt: "q.text", response: "a.b" })).toMatchObject([{ prompt: [{ content: "whole name" }], response: "2" }]);
  });

  it.each([
    ["not json", /line 1, column 1: it is not JSON: not stands where a value is due/],
    ['{"prompt":"a"}', /line 1: it has no column "response"/],
    ['{"prompt":"a","response":""}', /line 1: its response is empty, so that nothing would be trained/],
    ['{"prompt":3,"response":"a"}', /line 1: its prompt is the number 3, not a text or a list of messages/],
    ['{"messages":[{"role":"user","content":"a"}]}', /line 1: its messages has no message of the assistant, so that nothing would be trained/],
    ['{"messages":[{"role":"assistant","content":"a"}]}', /line 1: its messages begins with the assistant, whose answer follows nothing/],
    ['{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":""}]}', /line 1: its messages\[1\].content is empty/],
    ['{"messages":"hi"}', /line 1: its messages is the text "hi", not a list of messages/],
    ["null", /line 1: it is null, not a JSON object/],
    ["", /it is empty; give a file with one JSON object a line/],
  ])("that hold %j are refused with the line", async (text, message) => {
    await expect(readPairs(await file(text), columns)).rejects.toThrow(message);
  });

  it("are refused where the tokenizer cannot write them or the model cannot take them", async () => {
    const path = await file('{"prompt":"a","response":"a"}\n{"prompt":"a","response":"z"}\n{"prompt":"aaaaaaaaaa","response":"a"}\n');
    const pairs = await readPairs(path, columns);
    expect(() => pairExamples(pairs, alphabetTokenizer(["a"]), 8, path)).toThrow(
      /2 of 3 lines cannot be used \(line 2: .*"z" is not in the alphabet.*line 3: 14 tokens, and the model takes 8/,
    );
  });
});

describe("a warm start's batches", () => {
  const task = chain({ modulus: 7, ...misconception });
  const tokenizer = task.tokenizer!;

  it("are the same for the same seed, and draw a solution anew when its problem comes round", () => {
    const batch = workedBatches(task, tokenizer, 4, 3, 1);
    expect(batch(2)).toEqual(workedBatches(task, tokenizer, 4, 3, 1)(2));
    expect(batch(0)).not.toEqual(workedBatches(task, tokenizer, 4, 3, 2)(0));
    const rounds = Array.from({ length: 20 }, (_, round) => batch(3 * round).map(({ response }) => tokenizer.decode(response)));
    expect(rounds.every((texts) => texts.length === 4)).toBe(true);
    expect(new Set(rounds.map((texts) => texts.join("|"))).size).toBeGreaterThan(1);
    expect(batch(3).map(({ context }) => context)).toEqual(batch(0).map(({ context }) => context));
  });

  it("need worked solutions", () => {
    const bare = defineTask({ name: "bare", rows: () => [{ prompt: "1", answer: 1 }], verify: () => true })();
    expect(() => workedBatches(bare, tokenizer, 1, 1, 0)).toThrow(/task bare: it has no worked solutions; give prompt and response pairs with --data/);
  });

  it("are the rows' own where the task draws none; rows without one are passed over", () => {
    const rows = ["1", "2", "3"].map((prompt) => ({
      prompt,
      answer: prompt,
      split: "train" as const,
      ...(prompt !== "2" && { solution: `${prompt}${prompt}` }),
    }));
    const own = defineTask({ name: "own", rows, verify: () => true })();
    const texts = workedBatches(own, tokenizer, 4, 1, 0)(0).map(({ context, response }) => `${tokenizer.decode(context)} ${tokenizer.decode(response)}`);
    expect(new Set(texts.map((text) => text.trim()))).toEqual(new Set(["1 11", "3 33"]));
  });

  it("go to policies whose size is what their name says", () => {
    expect(parametersOf("100k", 22)).toBe(2 * (4 * 64 * 64 + 3 * 64 * 192 + 2 * 64) + 22 * 64 + 64);
    for (const [name, least, most] of [
      ["100k", 9e4, 1.2e5],
      ["1M", 0.9e6, 1.2e6],
      ["4M", 3.5e6, 5.5e6],
    ] as const) {
      expect(parametersOf(name, 22)).toBeGreaterThan(least);
      expect(parametersOf(name, 22)).toBeLessThan(most);
    }
    expect(policyConfig("1M", tokenizer, 128)).toMatchObject({
      vocab_size: tokenizer.size,
      hidden_size: policySizes["1M"].width,
      max_position_embeddings: 128,
    });
  });
});
