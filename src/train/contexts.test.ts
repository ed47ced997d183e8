import { describe, expect, it } from "vitest";
import { alphabetTokenizer } from "../core/alphabet.js";
import type { Problem } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { ModelInfo } from "../engine/contract.js";
import { renderContexts } from "./contexts.js";

const tokenizer = alphabetTokenizer(["a", "b"]);
const model = { maxTokens: 12, vocabulary: tokenizer.size } as ModelInfo;
/** A prompt renders to its letters and two tokens for the roles. */
const problem = (content: string): Problem => ({ key: content, prompt: [{ role: "user", content }], reference: { state: "none", version: 0 } });
const problems = [problem("ab"), problem("aaaaaabb"), problem("b")];
const limits = { max_tokens: 4, long_prompts: "fail" } as const; // leaves 8 of 12 for the prompt

describe("contexts", () => {
  it("refuses, leaves out or cuts prompts that are too long, by choice, and counts them", () => {
    expect(() => renderContexts(problems, tokenizer, model, limits)).toThrow(
      "problem aaaaaabb: its prompt has 10 tokens and at most 8 fit beside 4 for the response (1 of 3 prompts are too long); lower max_tokens, or set long_prompts to skip or truncate",
    );
    const skipping = renderContexts(problems, tokenizer, model, { ...limits, long_prompts: "skip" });
    expect(skipping).toMatchObject({ problems: [problems[0], problems[2]], skipped: 1, truncated: 0 });
    expect([...skipping.contexts.keys()]).toEqual(["ab", "b"]);
    const cutting = renderContexts(problems, tokenizer, model, { ...limits, long_prompts: "truncate" });
    expect(cutting).toMatchObject({ problems, skipped: 0, truncated: 1 });
    const whole = tokenizer.render(problems[1].prompt, { addGenerationPrompt: true });
    expect([...(cutting.contexts.get("aaaaaabb")?.ids ?? [])]).toEqual([...whole.slice(-8)]);
    expect(() => renderContexts(problems, tokenizer, model, { ...limits, long_prompts: "skip", max_prompt_tokens: 2 })).toThrow(
      /and at most 2 are allowed by max_prompt_tokens \(3 of 3 prompts are too long\); raise max_prompt_tokens, or give shorter prompts$/,
    );
    expect(() => renderContexts(problems, tokenizer, model, { ...limits, max_tokens: 12 })).toThrow("max_tokens: the response budget of 12 leaves no place");
  });

  it("refuses a prompt that begins with the beginning token twice, or has no token", () => {
    const rendering = (...ids: number[]): Tokenizer => ({
      ...tokenizer,
      size: tokenizer.size,
      eosIds: tokenizer.eosIds,
      bosId: 1,
      render: () => Int32Array.from(ids),
    });
    expect(() => renderContexts([problem("a")], rendering(1, 1, 2), model, limits)).toThrow(
      "problem a: its prompt begins with the beginning token twice; take it out of the prompt or of the chat template",
    );
    expect(renderContexts([problem("a")], rendering(1, 2, 1), model, limits).problems).toHaveLength(1);
    expect(() => renderContexts([problem("a")], rendering(), model, limits)).toThrow("its prompt is rendered to no token");
  });
});
