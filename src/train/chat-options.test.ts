/** Runs of a policy with a published model's tokenizer: what options of the chat template and stop strings do to them, and to a resume. */
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { fixture } from "../../test/paths.js";
import { scratch, tablePolicy, options as tabular } from "../../test/support/tabular.js";
import type { Trajectory } from "../core/trajectory.js";
import { TableEngine } from "../engine/table/engine.js";
import { loadTokenizer } from "../tokenizers/load.js";
import { dryRun } from "./dry-run.js";
import { RunReader } from "./store/reader.js";
import { resume, type TrainOptions, train } from "./train.js";

const folder = scratch();
const model = join(folder, "policy");
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

beforeAll(async () => {
  const tokenizer = fixture("tokenizer", "chatml");
  const engine = new TableEngine();
  const config = { kind: "table", vocabulary: 400, order: 1, maxTokens: 200 } as never;
  await engine.weights.load({ role: "policy", source: { from: "config", config, seed: 1 }, trainable: false });
  await engine.weights.save({ role: "policy" }, model);
  await engine.close();
  for (const name of ["tokenizer.json", "tokenizer_config.json"]) cpSync(join(tokenizer, name), join(model, name));
  file("data.jsonl", Array.from({ length: 8 }, (_, i) => `${JSON.stringify({ prompt: `${i} + 1?`, answer: i + 1 })}\n`).join(""));
});

const options = (more: Partial<TrainOptions> = {}): TrainOptions =>
  tabular(model, {
    task: undefined,
    data: { file: join(folder, "data.jsonl") },
    verifier: "number",
    max_tokens: 8,
    steps: 2,
    checkpoint: { every: 1, keep_last: 9 },
    ...more,
  });

/** The text of the first prompt, with special tokens, and all trajectories of the first batch. */
async function first(more: Partial<TrainOptions>): Promise<{ prompt: string; rows: readonly Trajectory[] }> {
  const { batch, decode } = await dryRun(options(more));
  const rows = batch.groups.flatMap(({ trajectories }) => trajectories);
  return { prompt: decode((rows[0] as Trajectory).sampledUnder.ids), rows };
}

describe("options of the chat template", () => {
  it("decide what the policy is asked", async () => {
    const { prompt: plain } = await first({});
    expect(plain).toMatch(/^<\|im_start\|>user\n\d \+ 1\?<\|im_end\|>\n<\|im_start\|>assistant\n$/);
    const tools = file("tools.json", '[{"type": "function", "function": {"name": "weigh"}}]');
    const { prompt } = await first({ system: "Be brief.", tools, chat_template_kwargs: { enable_thinking: false } });
    expect(prompt).toContain("Be brief.");
    expect(prompt).toContain('"name": "weigh"');
    expect(prompt.endsWith("<think>\n\n</think>\n\n")).toBe(true);
  });

  it("are kept by the run: its policy has the template, and a resume refuses another", async () => {
    const text = "{% for m in messages %}({{ m.role }}) {{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}(assistant) {% endif %}";
    const template = file("own.jinja", text);
    const stop = new AbortController();
    const run = options({
      chat_template: template,
      steps: 4,
      signal: stop.signal,
      onProgress: (progress) => progress.kind === "step" && progress.step === 2 && stop.abort(),
    });
    const { model: saved } = await train(run);
    expect(readFileSync(join(saved, "chat_template.jinja"), "utf8")).toBe(text);
    const tokenizer = await loadTokenizer(saved);
    expect(tokenizer.decode(tokenizer.render([{ role: "user", content: "a" }], { addGenerationPrompt: true }), "show")).toBe("(user) a<|im_end|>(assistant) ");
    writeFileSync(template, `${text} `);
    await expect(resume(run.out)).rejects.toThrow(
      "a file of its prompts has changed since it began (own.jinja), so the policy would be asked otherwise than before",
    );
    writeFileSync(template, text);
    expect((await resume(run.out)).steps).toBe(4);
  });

  it("are refused before anything is begun where they cannot be read, or there is no template", async () => {
    const run = options({ tools: join(folder, "none.json") });
    await expect(train(run)).rejects.toThrow(/^tools, .*none.json: there is no such file; check the path$/);
    const alphabet = tabular(await tablePolicy(), { system: "Be brief." });
    await expect(train(alphabet)).rejects.toThrow(/so a system message would change nothing; leave it out$/);
    expect(existsSync(run.out) || existsSync(alphabet.out as string)).toBe(false);
  });
});

describe("stop strings", () => {
  it("end answers of training and evaluation, and change no token before", async () => {
    const plain = await first({ max_tokens: 40 });
    const stop = ["a", "</"];
    const { rows } = await first({ max_tokens: 40, stop });
    const tokenizer = await loadTokenizer(model);
    const ended = rows.filter((row) => row.stop === "stop");
    expect(ended.length).toBeGreaterThan(rows.length / 2);
    for (const [i, { response, stop: reason }] of rows.entries()) {
      const before = tokenizer.decode(response.slice(0, -1), "show");
      expect(stop.some((text) => before.includes(text))).toBe(false);
      expect(stop.some((text) => tokenizer.decode(response, "show").includes(text))).toBe(reason === "stop");
      expect([...(plain.rows[i] as Trajectory).response].slice(0, response.length)).toEqual([...response]);
    }
    const run = options({ max_tokens: 40, stop, eval: { every: 2, data: { file: file("held.jsonl", '{"prompt": "9 + 9?", "answer": 18}\n') }, samples: 20 } });
    await train(run);
    const [event] = [...RunReader.open(run.out).events()].filter(({ kind }) => kind === "evaluation");
    expect(event?.data.tokens_mean).toBeLessThan(30);
    const groups = (await RunReader.open(run.out).groups(1)).flatMap(({ group }) => group.trajectories);
    expect(groups.some((row) => row.stop === "stop")).toBe(true);
  });
});
