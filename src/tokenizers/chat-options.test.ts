import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fixture } from "../../test/paths.js";
import { alphabetTokenizer, saveAlphabet } from "../core/alphabet.js";
import { readChatOptions } from "./chat-options.js";
import { loadTokenizer } from "./load.js";

const folder = mkdtempSync(join(tmpdir(), "touchstone-chat-"));
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const place = (option: string): string => `option ${option}`;
const chatml = fixture("tokenizer", "chatml");
const ask = [{ role: "user" as const, content: "What is 2 + 3?" }];

describe("options of the chat template", () => {
  it("reach the rendered conversation: variables, tools, a system message, and another template", async () => {
    const tools = file("tools.json", '[{"type": "function", "function": {"name": "weigh", "parameters": {}}}]');
    const shown = async (options: Parameters<typeof readChatOptions>[0]): Promise<string> => {
      const tokenizer = await loadTokenizer(chatml, readChatOptions(options, place));
      return tokenizer.decode(tokenizer.render(ask, { addGenerationPrompt: true }), "show");
    };
    const plain = "<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n<|im_start|>assistant\n";
    expect(await shown({})).toBe(plain);
    expect(await shown({ chat_template_kwargs: { enable_thinking: false } })).toBe(`${plain}<think>\n\n</think>\n\n`);
    expect(await shown({ system: "Be brief." })).toBe(`<|im_start|>system\nBe brief.<|im_end|>\n${plain}`);
    expect(await shown({ tools })).toContain('"name": "weigh"');
    const template = file(
      "own.jinja",
      "{% for m in messages %}[{{ m.role }}] {{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}",
    );
    expect(await shown({ chat_template: template })).toBe("[user] What is 2 + 3?<|im_end|>[assistant] ");
  });

  it("name the file of a template that cannot be parsed, or whose answer does not follow its prompt", async () => {
    const rendered = async (text: string): Promise<unknown> => {
      const tokenizer = await loadTokenizer(chatml, readChatOptions({ chat_template: file("broken.jinja", text) }, place));
      return tokenizer.render(ask, { addGenerationPrompt: true });
    };
    await expect(rendered("{% for m in messages %}")).rejects.toThrow(`${folder}/broken.jinja: the chat template cannot be parsed`);
    await expect(rendered("{{ messages | length }}{{ messages[0].content }}")).rejects.toThrow(`${folder}/broken.jinja: the chat template's round trip breaks`);
  });

  it.each([
    ["a missing template", { chat_template: join(folder, "none.jinja") }, /^option chat_template, .*none.jinja: there is no such file; check the path$/],
    ["tools that are no JSON", { tools: file("a.json", "[{]") }, /^option tools, .*a.json, line 1, column 3: it is not JSON: /],
    ["tools that are no list", { tools: file("b.json", '{"name": "weigh"}') }, /^option tools, .*b.json: it is no list of functions; give a JSON list/],
    [
      "a variable that the conversation gives",
      { chat_template_kwargs: { messages: [] } },
      /^option chat_template_kwargs: messages is what the conversation gives/,
    ],
    ["tools among the variables", { chat_template_kwargs: { tools: [] } }, /give it as tools$/],
  ])("refuse %s", (_, options, says) => {
    expect(() => readChatOptions(options, place)).toThrow(says);
  });

  it("are refused for a model that has no template", async () => {
    await saveAlphabet(alphabetTokenizer(["a"]), folder);
    await expect(loadTokenizer(folder, { system: "Be brief." })).rejects.toThrow(
      `model ${folder}: it has an alphabet in place of a chat template, so a system message would change nothing; leave it out`,
    );
  });
});

describe("a raw text", () => {
  it("has the tokens that its special names mean, of a Hugging Face tokenizer and of an alphabet", async () => {
    const tokenizer = await loadTokenizer(chatml);
    const ids = tokenizer.render(ask, { addGenerationPrompt: true });
    expect(tokenizer.raw(tokenizer.decode(ids, "show"))).toEqual(ids);
    const alphabet = alphabetTokenizer(["1", "+"]);
    const asked = alphabet.render([{ role: "user", content: "1+1" }], { addGenerationPrompt: true });
    expect(alphabet.raw("<user>1+1<assistant>")).toEqual(asked);
  });

  it("begins once with the beginning token where texts have one", async () => {
    const bos = mkdtempSync(join(tmpdir(), "touchstone-bos-"));
    const config = { ...JSON.parse(readFileSync(join(chatml, "tokenizer_config.json"), "utf8")), add_bos_token: true, bos_token: "<|endoftext|>" };
    writeFileSync(join(bos, "tokenizer_config.json"), JSON.stringify(config));
    writeFileSync(join(bos, "tokenizer.json"), readFileSync(join(chatml, "tokenizer.json")));
    const tokenizer = await loadTokenizer(bos);
    expect(tokenizer.raw("a")).toEqual(tokenizer.prompt("a"));
    expect(tokenizer.raw("<|endoftext|>a")).toEqual(tokenizer.prompt("a"));
  });
});
