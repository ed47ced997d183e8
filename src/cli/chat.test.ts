/** `touchstone chat` and `touchstone score`: the loop on a softmax table, and the commands as processes with the starter policy. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { repository } from "../../test/paths.js";
import { run } from "../../test/run.js";
import { tokenizer } from "../../test/support/successor-task.js";
import { command } from "../../test/support/touchstone.js";
import { loadAlphabet } from "../core/alphabet.js";
import { TableEngine } from "../engine/table/engine.js";
import { Conversation } from "../rollout/conversation.js";
import { ChatJudge } from "./chat-judge.js";
import { Chat } from "./chat-loop.js";
import { runProgram } from "./program.js";

const touchstone = (args: readonly string[], input = "") => run(process.execPath, [...command, ...args], { cwd: repository, input, deadlineMs: 120_000 });
const starter = "starters/chain-1M";

afterEach(() => vi.restoreAllMocks());

/** A chat with a policy that never ends by itself; what it prints. */
async function talking(more: { readonly maxTokens?: number; readonly maxPositions?: number; readonly stop?: readonly string[] } = {}) {
  const engine = new TableEngine();
  const config = { kind: "table", vocabulary: tokenizer.size, order: 1, maxTokens: 100_000 } as never;
  const { tensors } = await engine.weights.load({ role: "policy", source: { from: "config", config, seed: 1 }, trainable: false });
  const [table] = await engine.weights.read({ role: "policy" }, [(tensors[0] as { name: string }).name]);
  if (table === undefined) throw new Error("a table has one tensor");
  // Special tokens come first in an alphabet.
  for (let row = 0; row < table.data.length; row += tokenizer.size) table.data.fill(-50, row, row + 5);
  await engine.weights.write("policy", [table]);
  let out = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
  let err = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    err += String(text);
    return true;
  });
  const conversation = new Conversation(tokenizer);
  const { maxTokens = 50, maxPositions = 100_000, stop = [] } = more;
  const chat = new Chat({
    engine,
    speakers: [{ label: "policy", role: "policy", tokenizer, maxPositions, stop, conversation }],
    judge: new ChatJudge({ verifier: "exact", verifierOptions: { truncated: "read" } }, 0),
    decoder: { temperature: 1, greedy: false, truncation: undefined, maxTokens, seed: 0 },
    json: false,
  });
  return { chat, conversation, printed: () => out, told: () => err };
}

describe("a chat", () => {
  it("keeps the tokens that were drawn, of an answer that was stopped too, and goes on after them", async () => {
    const { chat, conversation, printed, told } = await talking({ maxTokens: 50_000 });
    const first = chat.line("0");
    // While nothing was drawn there is nothing to keep.
    while (printed().length < 20) await new Promise((resolve) => setImmediate(resolve));
    expect(chat.interrupt()).toBe(true);
    expect(await first).toBe(true);
    expect(chat.interrupt()).toBe(false);
    expect(told()).toContain("(stopped)");
    const said = printed().trim();
    expect(said).toMatch(/^[0-9]{20,}$/);
    const next = conversation.asked([{ role: "user", content: "1" }]);
    expect(tokenizer.decode(next, "show")).toBe(`<user>0<assistant>${said}<eos><user>1<assistant>`);
  });

  it("ends an answer by a stop string, and judges it by the reference that is typed", async () => {
    const { chat, printed } = await talking({ maxTokens: 50_000, stop: ["42"] });
    await chat.line("0");
    const answer = printed().trim().split("\n").at(-1) as string;
    expect(answer.endsWith("42")).toBe(true);
    const before = printed().length;
    await chat.line(`/verdict ${answer}`);
    await chat.line("/verdict 1");
    expect(
      printed()
        .slice(before)
        .split("\n")
        .map((line) => line.split(/[ ,]/)[0]),
    ).toEqual(["accept", "reject", ""]);
  });

  it("says what a line lacks, and begins anew where the model has no more room", async () => {
    const { chat, conversation } = await talking({ maxTokens: 50, maxPositions: 10 });
    await expect(chat.line("/verdict 1")).rejects.toThrow("/verdict: there is no answer yet; ask something first");
    await expect(chat.line("/verdikt")).rejects.toThrow("/verdikt: there is no such command; did you mean /verdict?");
    await expect(chat.line("/problem")).rejects.toThrow("/problem: no task is known; name one with --task or --data, or chat with a run");
    await chat.line("0");
    await expect(chat.line("1")).rejects.toThrow(/policy: the conversation has \d+ tokens, and the model takes 10; begin a new one with \/reset/);
    await chat.line("/reset");
    expect([...conversation.asked([{ role: "user", content: "1" }])]).toHaveLength(3);
    expect(await chat.line("")).toBe(true);
    expect(await chat.line("/quit")).toBe(false);
  });
});

describe("touchstone chat", () => {
  it("answers the lines of standard input, with verdicts on posed problems, and fails where a line cannot be followed", async () => {
    const { out, err, code } = await touchstone(["chat", starter, "--task", "chain", "--json", "--greedy"], "7+3\n1+1\n/problem\n/verdict\n/nonsense\n");
    const tokenizer = await loadAlphabet(join(repository, starter));
    const [first, second, posed, judged, ...rest] = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rest).toEqual([]);
    expect([...tokenizer.render([{ role: "user", content: "7+3" }], { addGenerationPrompt: true })]).toEqual(first.prompt_ids);
    const between = [...tokenizer.render([{ role: "user", content: "1+1" }], { addGenerationPrompt: true })];
    expect(second.prompt_ids).toEqual([...first.prompt_ids, ...first.ids, ...(first.stop === "eos" ? [] : [0]), ...between]);
    expect(first.logprobs).toHaveLength(first.ids.length);
    expect(posed.prompt_ids.length).toBeLessThan(second.prompt_ids.length);
    expect(["accept", "reject"]).toContain(judged.verdict.kind);
    expect(err).toContain("/nonsense: there is no such command");
    expect(code).toBe(1);
  });

  it("shows two policies side by side", async () => {
    const { out, code } = await touchstone(["chat", starter, "--against", "starters/chain-hints", "--greedy"], "1+2-3\n");
    expect(code).toBe(0);
    const lines = out.trimEnd().split("\n");
    expect(lines[0]?.split("│").map((side) => side.trim())).toEqual([starter, "starters/chain-hints"]);
    expect(lines.length).toBeGreaterThan(3);
    expect(lines.every((line) => line.includes("│"))).toBe(true);
  });
});

describe("touchstone score", () => {
  it("gives the log-probs that sampling gave, of a text just as the model sees it", async () => {
    const sampled = await touchstone(["sample", starter, "--prompt", "<user>7+3<assistant>", "--json", "--max-tokens", "12", "--n", "2"]);
    const answers = sampled.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const tokenizer = await loadAlphabet(join(repository, starter));
    const texts = answers.map(({ prompt_ids, ids }) => tokenizer.decode([...prompt_ids, ...ids], "show"));
    const file = join(mkdtempSync(join(tmpdir(), "touchstone-score-")), "text.txt");
    writeFileSync(file, texts[0] as string);
    const scored = await touchstone(["score", starter, "--text", texts[0] as string, "--text", texts[1] as string, "--json"]);
    const all = scored.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(all).toHaveLength(2);
    for (const [i, { ids, logprobs, nll, perplexity }] of all.entries()) {
      const { prompt_ids, ids: drawn, logprobs: own } = answers[i];
      expect(ids).toEqual([...prompt_ids, ...drawn]);
      expect(logprobs).toHaveLength(ids.length - 1);
      (own as number[]).forEach((logp, t) => {
        expect(Math.abs(logprobs[prompt_ids.length - 1 + t] - logp)).toBeLessThan(1e-4);
      });
      expect(nll).toBeCloseTo(-(logprobs as number[]).reduce((a, b) => a + b, 0) / logprobs.length, 12);
      expect(perplexity).toBeCloseTo(Math.exp(nll), 12);
    }
    const table = await touchstone(["score", starter, "--file", file]);
    expect(table.out).toContain(all[0].nll.toFixed(4));
  });

  it.each([
    ["no text", [], "touchstone score: there is no text; give one of --text TEXT and --file FILE"],
    ["one token", ["--text", "1"], "--text: it has one token, which is predicted from nothing; give a text of at least two tokens"],
    ["a text beyond the model's length", ["--text", "1+".repeat(500)], /--text: it has 1000 tokens, and the model takes \d+; score parts of it/],
  ])("refuses %s", async (_, args, says) => {
    await expect(runProgram(["score", join(repository, starter), ...args])).rejects.toThrow(says);
  });
});
