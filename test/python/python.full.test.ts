/** What we write, read by other programs: model folders and GGUF files by transformers, adapters by PEFT, GGUF files by the gguf package. */
import { copyFileSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { plainContext } from "../../src/core/problem.js";
import { convertGguf } from "../../src/engine/gguf/convert.js";
import { OnnxEngine } from "../../src/engine/onnx/engine.js";
import { exportGguf, ggufTypes } from "../../src/export/gguf.js";
import { openModel } from "../../src/export/source.js";
import { loadTokenizer } from "../../src/tokenizers/load.js";
import { fixture, repository } from "../paths.js";
import { run } from "../run.js";
import { type FolderOf, modelFolder } from "../support/model-folder.js";
import { checks, pythonOf } from "./environment.js";

const python = await pythonOf(checks);

type LogProbs = readonly (readonly (readonly number[])[])[]; // [sequence][token][vocabulary]
interface Job {
  readonly kind: "folder" | "adapter" | "gguf" | "bytes" | "tokenizer";
  readonly path: string;
  readonly [field: string]: unknown;
}

const scratch = mkdtempSync(join(tmpdir(), "python-"));
const ids = [
  [3, 17, 5, 60, 41, 8, 9, 33, 2, 71, 12],
  [90, 4, 4, 55],
];
const tolerance = 1e-4;

/** What is asked of Python while files are written, all answered by one process. */
const jobs: Job[] = [];
const ask = (job: Job): number => jobs.push(job) - 1;

interface Written {
  readonly name: string;
  /** Our own log-probs, and the place of the answer to compare with. */
  readonly ours: LogProbs;
  readonly job: number;
}

async function logProbs(engine: OnnxEngine, scale?: number): Promise<LogProbs> {
  const weights = { role: "policy", ...(scale === undefined ? {} : { scale }) };
  const sequences = ids.map((row) => ({ context: plainContext(row.slice(0, 1)), response: Int32Array.from(row.slice(1)), weights, temperature: 1 }));
  const scores = await engine.score(sequences, { full: true });
  return scores.map(({ full, logp }) => {
    const all = [...(full as Float64Array)];
    const width = all.length / logp.length;
    return Array.from(logp, (_, t) => all.slice(t * width, (t + 1) * width));
  });
}

/** Our log-probs of what was loaded from a folder. */
async function loaded<T>(path: string, use: (engine: OnnxEngine) => Promise<T>, adapter?: string): Promise<T> {
  const engine = await OnnxEngine.create({ threads: 1 });
  try {
    const more = adapter === undefined ? {} : { adapter: { from: "folder" as const, path: adapter } };
    await engine.weights.load({ role: "policy", source: { from: "folder", path }, trainable: adapter !== undefined, ...more });
    return await use(engine);
  } finally {
    await engine.close();
  }
}

const models: readonly FolderOf[] = [
  { folder: "llama-tied" },
  { folder: "smollm" },
  { folder: "llama-f16" },
  { folder: "qwen2" },
  { folder: "qwen3" },
  { folder: "qwen3-bf16-sharded" },
  ...["linear", "yarn", "llama3"].map((kind) => ({ folder: "llama-rope", config: `configs/${kind}.json` })),
];
const nameOf = ({ folder, config }: FolderOf): string => `${folder}${config === undefined ? "" : ` ${config}`}`;

/** Saved as the engine saves a policy. */
async function saved(which: FolderOf, dtype: "f32" | "bf16"): Promise<Written> {
  const folder = modelFolder(which);
  const path = join(mkdtempSync(join(scratch, "saved-")), "model");
  await loaded(folder, (engine) => engine.weights.save({ role: "policy" }, path, { dtype }));
  return { name: `${nameOf(which)}, ${dtype}`, ours: await loaded(path, logProbs), job: ask({ kind: "folder", path, ids }) };
}

/** An adapter of the fixtures, loaded and saved by the engine: as a PEFT folder, or merged into its base. */
async function adapted(folder: string, form: "adapter" | "merged"): Promise<Written> {
  const base = modelFolder({ folder });
  const path = join(mkdtempSync(join(scratch, "adapter-")), "model");
  const lora = fixture("models", folder, "lora");
  const ours = await loaded(
    base,
    async (engine) => {
      await engine.weights.save({ role: "policy" }, path, { form });
      return logProbs(engine);
    },
    lora,
  );
  return { name: `${folder}, ${form}`, ours, job: ask(form === "adapter" ? { kind: "adapter", base, path, ids } : { kind: "folder", path, ids }) };
}

interface WrittenGguf extends Written {
  readonly bytes: number;
  readonly tokens: number;
}

/** Of a folder with a byte-level tokenizer; transformers reads the file as its own model. */
async function asGguf(source: string, type: (typeof ggufTypes)[number]): Promise<WrittenGguf> {
  const folder = join(mkdtempSync(join(scratch, "source-")), "model");
  await convertGguf(fixture("gguf", `${source}.gguf`), folder);
  const path = join(mkdtempSync(join(scratch, "gguf-")), "model.gguf");
  const model = await openModel(folder);
  await exportGguf(model, path, type).finally(() => model.close());
  const back = join(mkdtempSync(join(scratch, "back-")), "model");
  await convertGguf(path, back);
  return {
    name: `${source} as ${type}`,
    ours: await loaded(back, logProbs),
    job: ask({ kind: "gguf", path, ids }),
    bytes: ask({ kind: "bytes", path, folder }),
    tokens: model.shape.vocabulary,
  };
}

describe.skipIf(!python)("in Python", () => {
  const folders: Written[] = [];
  const adapters: Written[] = [];
  const files: WrittenGguf[] = [];
  const tokenizers: { readonly name: string; readonly path: string; readonly job: number }[] = [];
  const chats = [[{ role: "user", content: "What is 12 + 30?\n" }]] as const;
  const texts = ["Hello, world", "  two  blanks\n\n7 and 1234", "naïve ☕ 你好"];
  let answers: readonly never[] = [];

  beforeAll(async () => {
    for (const which of models) for (const dtype of ["f32", "bf16"] as const) folders.push(await saved(which, dtype));
    for (const folder of ["llama-tied", "qwen2"]) for (const form of ["adapter", "merged"] as const) adapters.push(await adapted(folder, form));
    for (const source of ["llama-f32", "qwen2-q8_0"]) for (const type of ggufTypes) files.push(await asGguf(source, type));
    for (const name of ["chatml", "digits"]) {
      const path = mkdtempSync(join(scratch, "tokenizer-"));
      for (const file of ["tokenizer.json", "tokenizer_config.json", ...(name === "digits" ? ["chat_template.jinja"] : [])])
        copyFileSync(fixture("tokenizer", name, file), join(path, file));
      tokenizers.push({ name, path, job: ask({ kind: "tokenizer", path, texts, chats }) });
    }
    const { code, out, err } = await run(python as string, [join(repository, "test/python/check.py")], { input: JSON.stringify(jobs), deadlineMs: 600_000 });
    if (code !== 0) throw new Error(`check.py ended with code ${code}: ${err.trim().split("\n").slice(-6).join("\n")}`);
    answers = JSON.parse(out);
    console.log(`Python checked ${answers.length} files`);
  });

  const compare = ({ name, ours, job }: Written): void => {
    const theirs = answers[job] as LogProbs;
    const off = ours.flatMap((row, s) => row.flatMap((all, t) => all.map((x, v) => Math.abs(x - (theirs[s]?.[t]?.[v] as number)))));
    expect(off.length, name).toBeGreaterThan(1000);
    expect(Math.max(...off), name).toBeLessThanOrEqual(tolerance);
  };

  it("transformers loads what is saved, f32 and bf16, and has our log-probs within 1e-4", () => {
    expect(folders).toHaveLength(2 * models.length);
    for (const written of folders) compare(written);
  });

  it("PEFT loads saved adapters on their base, and transformers what they were merged into", () => {
    expect(adapters).toHaveLength(4);
    for (const written of adapters) compare(written);
  });

  it("transformers reads exported GGUF files as the same model", () => {
    expect(files).toHaveLength(4);
    for (const written of files) compare(written);
  });

  it("the gguf package reads them, and makes the same bytes of the same numbers", () => {
    for (const { name, bytes, tokens } of files) {
      const { different, types, fields } = answers[bytes] as { different: string[]; types: { [name: string]: string }; fields: { [key: string]: unknown } };
      expect(different, name).toEqual([]);
      expect(types["blk.0.attn_q.weight"]).toBe(name.endsWith("q8_0") ? "Q8_0" : "F16");
      expect(fields["tokenizer.ggml.tokens"]).toHaveLength(tokens);
      expect(fields["tokenizer.chat_template"]).toBe(JSON.parse(readFileSync(fixture("tokenizer", "chatml", "tokenizer_config.json"), "utf8")).chat_template);
    }
  });

  it("transformers' tokenizers have our ids of texts and chats", async () => {
    for (const { name, path, job } of tokenizers) {
      const theirs = answers[job] as { texts: number[][]; chats: number[][] };
      const ours = await loadTokenizer(path);
      expect(
        texts.map((text) => [...ours.encode(text)]),
        name,
      ).toEqual(theirs.texts);
      expect(
        chats.map((chat) => [...ours.render(chat, { addGenerationPrompt: true })]),
        name,
      ).toEqual(theirs.chats);
    }
  });
});
