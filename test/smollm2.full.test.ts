/** SmolLM2-135M-Instruct by the commands, against the numbers that a float64 transformer gave (test/fixtures/smollm2). */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { smollm2 } from "./models.js";
import { fixture, repository } from "./paths.js";
import { run } from "./run.js";
import { command } from "./support/touchstone.js";

const model = await smollm2();

interface Prompt {
  readonly name: string;
  readonly messages?: readonly { readonly content: string }[];
  readonly text: string;
  readonly prompt_ids: number[];
  readonly greedy: { readonly ids: number[]; readonly logp: number[]; readonly gap: number[]; readonly stopped: string };
}
interface Text {
  readonly text: string;
  readonly ids: number[];
  readonly logp: number[];
  readonly mean_nll: number;
  readonly perplexity: number;
}
const expected: { readonly prompts: Prompt[]; readonly texts: { readonly [name: string]: Text } } = JSON.parse(
  readFileSync(fixture("smollm2", "expected.json"), "utf8"),
);

const touchstone = async (args: readonly string[], input = ""): Promise<string[]> => {
  const { code, out, err } = await run(process.execPath, [...command, ...args], {
    cwd: repository,
    input,
    deadlineMs: 300_000,
  });
  expect(code, err).toBe(0);
  return out.trimEnd().split("\n");
};
/** Mean and largest difference. */
const off = (got: readonly number[], want: readonly number[]): [number, number] => {
  const all = want.map((value, i) => Math.abs((got[i] as number) - value));
  return [all.reduce((a, b) => a + b, 0) / all.length, Math.max(...all)];
};
/** A tie below this may go either way. */
const tie = 1e-3;

function compare(
  { prompt_ids, ids, logprobs, stop }: { prompt_ids: number[]; ids: number[]; logprobs: number[]; stop: string },
  { prompt_ids: asked, greedy, name }: Prompt,
): void {
  expect(prompt_ids, name).toEqual(asked);
  const differs = greedy.ids.findIndex((id, t) => ids[t] !== id);
  if (differs >= 0) expect(greedy.gap[differs], `${name}, token ${differs}`).toBeLessThan(tie);
  else expect([ids.length, stop], name).toEqual([greedy.ids.length, greedy.stopped]);
  const same = differs < 0 ? greedy.logp : greedy.logp.slice(0, differs);
  const [mean, most] = off(logprobs, same);
  expect(mean, name).toBeLessThanOrEqual(1e-5);
  expect(most, name).toBeLessThanOrEqual(1e-3);
}

describe.skipIf(!model)("SmolLM2-135M-Instruct", () => {
  it("goes on with texts, and answers chats, as it does elsewhere: ids, greedy tokens and their log-probs", async () => {
    const named = ["sample", model as string, "--greedy", "--max-tokens", "32", "--json"];
    const raw = await touchstone([...named, ...expected.prompts.flatMap(({ text }) => ["--prompt", text])]);
    expect(raw).toHaveLength(6);
    for (const [i, line] of raw.entries()) compare(JSON.parse(line), expected.prompts[i] as Prompt);
    const chats = expected.prompts.filter(({ messages }) => messages !== undefined);
    const answered = await touchstone([...named, "--chat", ...chats.flatMap(({ messages = [] }) => ["--prompt", messages[0]?.content ?? ""])]);
    expect(answered).toHaveLength(3);
    for (const [i, line] of answered.entries()) compare(JSON.parse(line), chats[i] as Prompt);
  });

  it("scores texts as elsewhere", async () => {
    const texts = Object.values(expected.texts);
    const lines = await touchstone(["score", model as string, "--json", ...texts.flatMap(({ text }) => ["--text", text])]);
    expect(lines).toHaveLength(2);
    for (const [i, line] of lines.entries()) {
      const { ids, logp, mean_nll, perplexity } = texts[i] as Text;
      const got = JSON.parse(line);
      expect(got.ids).toEqual(ids);
      const [mean, most] = off(got.logprobs, logp);
      expect(mean).toBeLessThanOrEqual(1e-5);
      expect(most).toBeLessThanOrEqual(1e-3);
      expect(Math.abs(got.nll - mean_nll)).toBeLessThan(2e-5);
      expect(Math.abs(got.perplexity / perplexity - 1)).toBeLessThan(2e-5);
    }
  });

  it("talks: a second question follows the answer's own tokens, and a stop string ends an answer", async () => {
    const lines = await touchstone(["chat", model as string, "--greedy", "--json", "--stop", "is Rome"], "What is the capital of France?\nAnd of Italy?\n");
    const [first, second] = lines.map((line) => JSON.parse(line));
    compare(first, expected.prompts.find(({ name }) => name === "capital") as Prompt);
    const before = [...first.prompt_ids, ...first.ids];
    expect(second.prompt_ids.slice(0, before.length)).toEqual(before);
    // "\n<|im_start|>user\n"
    expect(second.prompt_ids.slice(before.length, before.length + 4)).toEqual([198, 1, 4093, 198]);
    expect(second).toMatchObject({ text: "The capital of Italy is Rome", stop: "stop" });
  });
});
