import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fixture } from "../../test/paths.js";
import type { Json } from "../core/json.js";
import { loadTokenizer } from "./load.js";

/** A copy of the chatml tokenizer's folder, changed. */
function folder(change: (path: (name: string) => string) => void): string {
  const copy = mkdtempSync(join(tmpdir(), "tokenizer-"));
  cpSync(fixture("tokenizer", "chatml"), copy, { recursive: true });
  change((name) => join(copy, name));
  return copy;
}

const edited =
  (name: string, edit: (json: { [key: string]: Json }) => unknown) =>
  (path: (name: string) => string): void => {
    const json = JSON.parse(readFileSync(path(name), "utf8")) as { [key: string]: Json };
    edit(json);
    writeFileSync(path(name), JSON.stringify(json));
  };
const config = (edit: (json: { [key: string]: Json }) => unknown) => edited("tokenizer_config.json", edit);
const hello = [{ role: "user" as const, content: "Hi" }];
const prompt = { addGenerationPrompt: true };

describe("a folder", () => {
  const faults: [what: string, change: (path: (name: string) => string) => void, says: RegExp][] = [
    ["without tokenizer.json", (path) => rmSync(path("tokenizer.json")), /it has no tokenizer.json; save the model again/],
    [
      "with a SentencePiece file alone",
      (path) => {
        rmSync(path("tokenizer.json"));
        writeFileSync(path("tokenizer.model"), "");
      },
      /tokenizer.model alone is not enough/,
    ],
    [
      "whose tokenizer.json is cut",
      (path) => writeFileSync(path("tokenizer.json"), readFileSync(path("tokenizer.json"), "utf8").slice(0, 5000)),
      /tokenizer.json, line \d+, column \d+: it is not JSON/,
    ],
    ["whose tokenizer.json is a list", (path) => writeFileSync(path("tokenizer.json"), "[]"), /tokenizer.json: it is not a JSON object/],
    [
      "whose tokenizer has no model",
      edited("tokenizer.json", (json) => {
        json.model = null;
      }),
      /tokenizer.json: it has no model/,
    ],
    [
      "of an unknown kind of model",
      edited("tokenizer.json", (json) => {
        (json.model as { type: string }).type = "Mystery";
      }),
      /its model is of the kind "Mystery", which is not known; use a tokenizer of BPE/,
    ],
    [
      "without an end token",
      config((json) => {
        json.eos_token = null;
      }),
      /its tokenizer has no end token/,
    ],
    [
      "whose end token is in no vocabulary",
      config((json) => {
        json.eos_token = "<|nowhere|>";
      }),
      /tokenizer_config\.json: its eos_token "<\|nowhere\|>" is no token of the vocabulary; take the file/,
    ],
    [
      "whose template has a fault of syntax",
      config((json) => {
        json.chat_template = "{% for m in %}";
      }),
      /tokenizer_config.json: the chat template cannot be parsed/,
    ],
  ];
  it.each(faults)("%s is refused", async (_what, change, says) => {
    await expect(loadTokenizer(folder(change))).rejects.toThrow(says);
  });

  it("takes end tokens from generation_config.json behind the tokenizer's own", async () => {
    const tokenizer = await loadTokenizer(folder((path) => writeFileSync(path("generation_config.json"), '{"eos_token_id": [388, 390]}')));
    expect(tokenizer.eosIds).toEqual([390, 388]);
  });

  it.each<[string, (path: (name: string) => string) => void]>([
    ["tokenizer_config.json asks for it", config((json) => Object.assign(json, { bos_token: "<|im_start|>", add_bos_token: true }))],
    [
      "the post-processor puts it there",
      (path) => {
        config((json) => Object.assign(json, { bos_token: { content: "<|im_start|>" } }))(path);
        edited("tokenizer.json", (json) => {
          json.post_processor = {
            type: "TemplateProcessing",
            single: [{ SpecialToken: { id: "<|im_start|>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
            pair: [],
            special_tokens: {},
          };
        })(path);
      },
    ],
  ])("begins plain texts with the beginning token where %s, and templates only by themselves", async (_where, change) => {
    const tokenizer = await loadTokenizer(folder(change));
    expect(tokenizer.bosId).toBe(389);
    expect([...tokenizer.prompt("a")]).toEqual([389, ...tokenizer.encode("a")]);
    expect([...tokenizer.render(hello, prompt)].filter((id) => id === 389)).toHaveLength(2);
  });
});

describe("a chat template", () => {
  const render = async (template: string, options = {}) => {
    const tokenizer = await loadTokenizer(fixture("tokenizer", "chatml"), { template, ...options });
    return tokenizer.decode(tokenizer.render(hello, prompt), "show");
  };
  const plain =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

  it("of the user's comes before the model's", async () => {
    expect(await render(plain)).toBe("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  });

  it("gets a system message, functions and variables", async () => {
    expect(await render(plain, { system: "Be brief." })).toBe(
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    );
    const asks = `{{ tools | tojson }}{{ mood }}${plain}`;
    expect(await render(asks, { tools: [{ name: "f" }], kwargs: { mood: "calm" } })).toContain('[{"name": "f"}]calm');
  });

  it("has no date to put into prompts, which would differ tomorrow", async () => {
    expect(await render(`{% if strftime_now is defined %}{{ strftime_now("%Y") }}{% else %}fixed{% endif %}${plain}`)).toMatch(/^fixed/);
  });

  it("whose answers do not follow their prompt is refused by name", async () => {
    await expect(render("{{ messages | length }}{% if add_generation_prompt %}?{% endif %}")).rejects.toThrow(
      /the chat template given: the chat template's round trip breaks: the prompt for an answer is "1\?", and with the answer it renders "2"/,
    );
  });

  it("that is not there leaves one message as plain text, and refuses more", async () => {
    const tokenizer = await loadTokenizer(
      folder(
        config((json) => {
          delete json.chat_template;
        }),
      ),
    );
    expect([...tokenizer.render(hello, prompt)]).toEqual([...tokenizer.encode("Hi")]);
    expect(() => tokenizer.render([...hello, ...hello], prompt)).toThrow(/no chat template, so a conversation of 2 messages has no form/);
  });

  it("of several is the one named default", async () => {
    const tokenizer = await loadTokenizer(
      folder(
        config((json) => {
          json.chat_template = [
            { name: "tool_use", template: "no" },
            { name: "default", template: plain },
          ];
        }),
      ),
    );
    expect(tokenizer.decode(tokenizer.render(hello, prompt), "show")).toContain("user\nHi");
  });
});
