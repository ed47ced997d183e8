/** Model folders and files with something wrong in them: one sentence each, from the headers, before an engine is started or weights are read. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { convertGguf } from "../src/engine/gguf/convert.js";
import { SafetensorsFile } from "../src/engine/safetensors.js";
import { type TensorToWrite, writeSafetensors } from "../src/engine/safetensors-write.js";
import { openModel } from "../src/export/source.js";
import { fixture } from "./paths.js";
import { refused } from "./support/bad-input.js";
import { modelFolder } from "./support/model-folder.js";

const temp = mkdtempSync(join(tmpdir(), "bad-models-"));
const good = join(temp, "good");
let sharded: string;

beforeAll(async () => {
  await convertGguf(fixture("gguf", "llama-f32.gguf"), good);
  sharded = modelFolder({ folder: "qwen3-bf16-sharded" });
});
afterAll(() => rmSync(temp, { recursive: true, force: true }));

type Fields = { [key: string]: unknown };
type Wrong = (folder: string) => void | Promise<void>;

/** Changes a JSON file of the folder. */
const json =
  (name: string, change: (fields: Fields) => void): Wrong =>
  (folder) => {
    const path = join(folder, name);
    const fields = JSON.parse(readFileSync(path, "utf8")) as Fields;
    change(fields);
    writeFileSync(path, JSON.stringify(fields));
  };
const config = (fields: Fields): Wrong => json("config.json", (own) => Object.assign(own, fields));
const text =
  (name: string, content: string): Wrong =>
  (folder) =>
    writeFileSync(join(folder, name), content);
const without =
  (...names: string[]): Wrong =>
  (folder) => {
    for (const name of names) rmSync(join(folder, name));
  };
const cut =
  (name: string, bytes: number): Wrong =>
  (folder) =>
    truncateSync(join(folder, name), bytes);
/** Rewrites the weights. */
const weights =
  (change: (tensor: TensorToWrite) => TensorToWrite): Wrong =>
  async (folder) => {
    const path = join(folder, "model.safetensors");
    const file = await SafetensorsFile.open(path);
    const tensors: TensorToWrite[] = [];
    for (const { name, shape } of file.entries.values()) tensors.push(change({ name, shape, data: await file.readFloat32(name) }));
    await file.close();
    await writeSafetensors(path, tensors);
  };
const index = (change: (map: { [tensor: string]: string }) => void): Wrong =>
  json("model.safetensors.index.json", ({ weight_map }) => change(weight_map as { [tensor: string]: string }));
const [first, second] = [1, 2].map((n) => `model-0000${n}-of-00002.safetensors`) as [string, string];

type Case = readonly [what: string, wrong: Wrong, says: string];
const cases: readonly Case[] = [
  [
    "config.json that is not JSON",
    text("config.json", '{"architectures": '),
    "{folder}/config.json, line 1, column 19: it is not JSON: it ends before }; fetch or write the file again",
  ],
  ["config.json that is a list", text("config.json", "[]"), "{folder}/config.json: it is not a JSON object; take the file that belongs to the model"],
  ["config.json that is missing", without("config.json"), "model {folder}: it has neither config.json nor run.json; give the folder of a model or of a run"],
  [
    "an architecture of another family",
    config({ architectures: ["MistralForCausalLM"] }),
    "{folder}/config.json: the architecture MistralForCausalLM is not known; use a model of LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM",
  ],
  [
    "an unknown rotary embedding",
    config({ rope_scaling: { rope_type: "longrope", factor: 4 } }),
    '{folder}/config.json, rope_scaling: the rotary embedding "longrope" is not known; use a model with one of default, linear, dynamic, llama3, yarn',
  ],
  [
    "a rotary scaling without a factor",
    config({ rope_scaling: { rope_type: "linear" } }),
    "{folder}/config.json, rope_scaling: factor is missing; take the config.json that belongs to the weights",
  ],
  [
    "another activation",
    config({ hidden_act: "gelu" }),
    '{folder}/config.json: hidden_act is "gelu"; use a model with the SwiGLU activation (hidden_act: "silu")',
  ],
  [
    "sliding windows",
    config({ use_sliding_window: true }),
    "{folder}/config.json: use_sliding_window is true; use a model with attention to all tokens before (use_sliding_window: false)",
  ],
  [
    "quantised weights",
    config({ quantization_config: { quant_method: "awq" } }),
    '{folder}/config.json: quantization_config is {"quant_method":"awq"}; use a model with plain weights (quantization_config: null)',
  ],
  [
    "key heads that do not divide the query heads",
    config({ num_key_value_heads: 3 }),
    "{folder}/config.json: 4 query heads cannot share 3 key heads evenly; make num_attention_heads a multiple of num_key_value_heads",
  ],
  ["an odd head", config({ head_dim: 15 }), "{folder}/config.json: head_dim is 15; make it even: rotary embedding turns pairs"],
  ["a number of layers that is none", config({ num_hidden_layers: -2 }), "{folder}/config.json: num_hidden_layers is -2; give a positive number"],
  [
    "more layers than could be told apart",
    config({ num_hidden_layers: 1e9 }),
    "{folder}/config.json: num_hidden_layers is 1000000000, and at most 4096 are read; take a configuration that belongs to the weights",
  ],
  [
    "two architectures",
    config({ architectures: ["LlamaForCausalLM", "Qwen2ForCausalLM"] }),
    "{folder}/config.json: architectures has 2 entries; leave the one that the weights are of",
  ],
  [
    "a model type of another architecture",
    config({ model_type: "mixtral" }),
    '{folder}/config.json: model_type is "mixtral" and the architecture LlamaForCausalLM; take a configuration that belongs to the weights',
  ],
  [
    "a GGUF file in place of the folder's own files",
    (folder) => {
      for (const name of ["config.json", "model.safetensors", "tokenizer.json"]) rmSync(join(folder, name));
      cpSync(fixture("gguf", "llama-f32.gguf"), join(folder, "small.gguf"));
    },
    "model {folder}: it has neither config.json nor run.json; give the GGUF file in it: {folder}/small.gguf",
  ],
  [
    "a width that is missing",
    json("config.json", (own) => delete own.hidden_size),
    "{folder}/config.json: hidden_size is missing; take the config.json that belongs to the weights",
  ],
  [
    "an end token beyond the vocabulary",
    config({ eos_token_id: 400 }),
    "{folder}/config.json: eos_token_id has 400, outside the vocabulary of 400; give ids of the vocabulary",
  ],
  [
    "an end token beyond the vocabulary in generation_config.json",
    json("generation_config.json", (own) => Object.assign(own, { eos_token_id: [2, 4000] })),
    "{folder}/generation_config.json: eos_token_id has 4000, outside the vocabulary of 400; give ids of the vocabulary",
  ],
  [
    "a vocabulary larger than the embedding",
    config({ vocab_size: 512 }),
    "{folder}/model.safetensors: the vocabulary of 512 is larger than tensor model.embed_tokens.weight with its 400 rows; set vocab_size in config.json to the number of rows",
  ],
  [
    "a vocabulary smaller than the embedding",
    config({ vocab_size: 399 }),
    "{folder}/model.safetensors: tensor model.embed_tokens.weight has the shape [400,64] and config.json asks for [399,64]; take weights and config.json of one model",
  ],
  [
    "another width than the tensors'",
    config({ hidden_size: 32 }),
    "{folder}/model.safetensors: tensor model.embed_tokens.weight has the shape [400,64] and config.json asks for [400,32]; take weights and config.json of one model",
  ],
  [
    "another MLP than the tensors'",
    config({ intermediate_size: 128 }),
    "{folder}/model.safetensors: tensor model.layers.0.mlp.gate_proj.weight has the shape [96,64] and config.json asks for [128,64]; take weights and config.json of one model",
  ],
  [
    "more layers than the tensors'",
    config({ num_hidden_layers: 3 }),
    "{folder}: tensor model.layers.2.self_attn.q_proj.weight is missing; take weights and config.json of one model",
  ],
  [
    "fewer layers than the tensors'",
    config({ num_hidden_layers: 1 }),
    "{folder}/model.safetensors: tensor model.layers.1.input_layernorm.weight has no place in this llama model; take weights and config.json of one model",
  ],
  [
    "an untied head that is missing",
    config({ tie_word_embeddings: false }),
    "{folder}: tensor lm_head.weight is missing; take weights and config.json of one model",
  ],
  [
    "tensors of another family",
    config({ architectures: ["Qwen2ForCausalLM"], model_type: "qwen2" }),
    "{folder}: tensor model.layers.0.self_attn.q_proj.bias is missing; take weights and config.json of one model",
  ],
  [
    "no weights",
    without("model.safetensors"),
    "{folder}: it has neither model.safetensors nor model.safetensors.index.json; give the path of a Hugging Face model folder",
  ],
  [
    "weights that only Python reads",
    (folder) => renameSync(join(folder, "model.safetensors"), join(folder, "pytorch_model.bin")),
    "{folder}: its weights are in pytorch_model.bin, which only Python can read; save the model again as safetensors",
  ],
  [
    "a folder in place of the weights",
    (folder) => {
      rmSync(join(folder, "model.safetensors"));
      mkdirSync(join(folder, "model.safetensors"));
    },
    "{folder}/model.safetensors: it is a folder; put the file there",
  ],
  [
    "weights that are cut among the tensors",
    cut("model.safetensors", 100_000),
    "{folder}/model.safetensors: it is truncated: tensor model.embed_tokens.weight ends at byte 104464 of 100000; fetch or write the file again",
  ],
  [
    "weights that are cut in the header",
    cut("model.safetensors", 300),
    "{folder}/model.safetensors: its header of 2056 bytes passes the end of the file (300 bytes); fetch or write the file again",
  ],
  [
    "weights that are empty",
    cut("model.safetensors", 0),
    "{folder}/model.safetensors: it has 0 bytes, too few for a safetensors file; fetch or write the file again",
  ],
  [
    "weights of another format",
    text("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 500000\n"),
    "{folder}/model.safetensors: it is a pointer of Git LFS in place of the file; fetch the file itself (git lfs pull)",
  ],
  [
    "a tensor of whole numbers",
    weights((tensor) => (tensor.name === "model.norm.weight" ? { ...tensor, data: Int32Array.from(tensor.data as Float32Array) } : tensor)),
    "{folder}/model.safetensors: tensor model.norm.weight holds I32; give one that holds F32, F16, BF16, F64",
  ],
  [
    "a tensor under another name",
    weights((tensor) => (tensor.name === "model.norm.weight" ? { ...tensor, name: "model.final_norm.weight" } : tensor)),
    "{folder}: tensor model.norm.weight is missing; take weights and config.json of one model",
  ],
  [
    "no tokenizer",
    without("tokenizer.json", "tokenizer_config.json"),
    "{folder}: it has no tokenizer.json; save the model again with transformers, which writes tokenizer.json, or give a folder that has one",
  ],
  [
    "a tokenizer that Python reads alone",
    (folder) => renameSync(join(folder, "tokenizer.json"), join(folder, "tokenizer.model")),
    "{folder}: it has no tokenizer.json, and tokenizer.model alone is not enough; save the model again with transformers, which writes tokenizer.json, or give a folder that has one",
  ],
  [
    "a tokenizer that is not JSON",
    cut("tokenizer.json", 1000),
    "{folder}/tokenizer.json, line 57, column 18: it is not JSON: it ends before }; fetch or write the file again",
  ],
  [
    "a tokenizer without a model",
    json("tokenizer.json", (own) => delete own.model),
    "{folder}/tokenizer.json: it has no model; take the file that belongs to the model",
  ],
  [
    "a tokenizer of an unknown kind",
    json("tokenizer.json", (own) => Object.assign(own.model as Fields, { type: "WordLevel" })),
    '{folder}/tokenizer.json: its model is of the kind "WordLevel", which is not known; use a tokenizer of BPE, WordPiece, Unigram',
  ],
  [
    "a tokenizer with a broken part",
    json("tokenizer.json", (own) => Object.assign(own, { pre_tokenizer: { type: "Magic" } })),
    "{folder}/tokenizer.json: no tokenizer can be built from it (Unknown PreTokenizer type: Magic); take the file that belongs to the model",
  ],
  [
    "a vocabulary that is a list",
    json("tokenizer.json", (own) => Object.assign(own.model as Fields, { vocab: ["a"] })),
    "{folder}/tokenizer.json: its vocabulary is no object of tokens and their ids; take the file that belongs to the model",
  ],
  [
    "an id that is none",
    json("tokenizer.json", (own) => Object.assign((own.model as { vocab: Fields }).vocab, { "5": "7" })),
    '{folder}/tokenizer.json: token "5" of its vocabulary has the id "7"; take the file that belongs to the model',
  ],
  [
    "an id that two tokens have",
    json("tokenizer.json", (own) => Object.assign((own.model as { vocab: Fields }).vocab, { "5": (own.model as { vocab: Fields }).vocab["6"] })),
    '{folder}/tokenizer.json: tokens "5" and "6" of its vocabulary have the same id 21; take the file that belongs to the model',
  ],
  [
    "a merge of what is no token",
    json("tokenizer.json", (own) => ((own.model as { merges: unknown[] }).merges as unknown[]).push("qqq zzz")),
    '{folder}/tokenizer.json: merge "qqq zzz" is of "qqq", which is no token; take the file that belongs to the model',
  ],
  [
    "no merges",
    json("tokenizer.json", (own) => delete (own.model as Fields).merges),
    "{folder}/tokenizer.json: it has no list of merges; take the file that belongs to the model",
  ],
  [
    "added tokens that are no list",
    json("tokenizer.json", (own) => Object.assign(own, { added_tokens: "none" })),
    "{folder}/tokenizer.json: added_tokens is no list; take the file that belongs to the model",
  ],
  [
    "an added token in another's place",
    json("tokenizer.json", (own) => (own.added_tokens as Fields[]).push({ id: 50, content: "<extra>", special: true })),
    '{folder}/tokenizer.json: added token "<extra>" has the id 50 of token "S"; take the file that belongs to the model',
  ],
  [
    "an end token that is no token",
    json("tokenizer_config.json", (own) => Object.assign(own, { eos_token: "<nope>" })),
    '{folder}/tokenizer_config.json: its eos_token "<nope>" is no token of the vocabulary; take the file that belongs to the tokenizer',
  ],
  [
    "an end token named by its number",
    json("tokenizer_config.json", (own) => Object.assign(own, { eos_token: 5 })),
    "{folder}/tokenizer_config.json: eos_token is 5; write the token's text",
  ],
  [
    "a chat template that is no text",
    json("tokenizer_config.json", (own) => Object.assign(own, { chat_template: { default: "x" } })),
    '{folder}/tokenizer_config.json: chat_template is {"default":"x"}; write the template\'s text, or a list of templates with their names',
  ],
  [
    "a tokenizer without an end token",
    (folder) => {
      for (const name of ["tokenizer_config.json", "generation_config.json", "config.json"])
        json(name, (own) => {
          delete own.eos_token;
          delete own.eos_token_id;
        })(folder);
    },
    "{folder}: its tokenizer has no end token, so no response would ever stop; name it as eos_token in tokenizer_config.json, or as eos_token_id in generation_config.json",
  ],
  [
    "a tokenizer with more tokens than the embedding",
    json("tokenizer.json", (own) => (own.added_tokens as Fields[]).push({ id: 400, content: "<extra>", special: true })),
    "{folder}: its tokenizer has 401 tokens and its vocabulary 400; give the tokenizer that belongs to the model",
  ],
  [
    "a chat template with a syntax error",
    json("tokenizer_config.json", (own) => Object.assign(own, { chat_template: "{% for message in messages %}{{ message.content }" })),
    "{folder}/tokenizer_config.json: the chat template cannot be parsed (Parser Error: Expected closing expression token. CloseCurlyBracket !== CloseExpression.); take the template that belongs to the model, or give another one",
  ],
  [
    "a chat template that cannot be gone on with",
    text("chat_template.jinja", "{% for message in messages %}{{ message.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"),
    '{folder}/chat_template.jinja: the chat template\'s round trip breaks: the prompt for an answer is "question>", and with the answer it renders "questionreply"; give a template in which the answer follows its prompt unchanged',
  ],
];
const ofShards: readonly Case[] = [
  [
    "a missing shard",
    without(second),
    "{folder}/model.safetensors.index.json: the shard model-00002-of-00002.safetensors that it names is missing; fetch that file too",
  ],
  [
    "a shard that is cut",
    cut(first, 5000),
    "{folder}/model-00001-of-00002.safetensors: it is truncated: tensor lm_head.weight ends at byte 10024 of 5000; fetch or write the file again",
  ],
  [
    "an index that is not JSON",
    cut("model.safetensors.index.json", 50),
    "{folder}/model.safetensors.index.json, line 4, column 3: it is not JSON: a text is not closed; fetch or write the file again",
  ],
  [
    "an index without a map",
    json("model.safetensors.index.json", (own) => delete own.weight_map),
    "{folder}/model.safetensors.index.json: it has no weight_map; fetch or write the file again",
  ],
  [
    "an index that names a missing tensor",
    index((map) => Object.assign(map, { "model.layers.9.mlp.up_proj.weight": first })),
    "{folder}/model.safetensors.index.json: it names tensor model.layers.9.mlp.up_proj.weight, which model-00001-of-00002.safetensors does not hold; take shards and index of one model",
  ],
  [
    "an index that misses a tensor",
    index((map) => delete map["model.norm.weight"]),
    "{folder}/model-00002-of-00002.safetensors: tensor model.norm.weight is in it and not in model.safetensors.index.json; take shards and index of one model",
  ],
  [
    "an index that leads out of the folder",
    index((map) => Object.assign(map, { "model.norm.weight": "../model.safetensors" })),
    '{folder}/model.safetensors.index.json: tensor model.norm.weight is said to lie in "../model.safetensors"; name a file of the folder',
  ],
  [
    "an index that names another shard",
    index((map) => Object.assign(map, { "model.norm.weight": map["model.norm.weight"] === first ? second : first })),
    "{folder}/model.safetensors.index.json: it names tensor model.norm.weight, which model-00001-of-00002.safetensors does not hold; take shards and index of one model",
  ],
];

/** Of a GGUF file: its bytes, changed. */
const ofFiles: readonly (readonly [what: string, wrong: (bytes: Buffer) => Uint8Array, says: string])[] = [
  [
    "that is cut among the tensors",
    (bytes) => bytes.subarray(0, bytes.length - 1000),
    "{file}: it is truncated: tensor blk.1.ffn_down.weight ends at byte 361888 of 361144; fetch the file again",
  ],
  [
    "that is no GGUF file",
    () => Buffer.from("version https://git-lfs.github.com/spec/v1\n"),
    "{file}: it does not begin as a GGUF file does; give a GGUF file",
  ],
  [
    "of another architecture",
    (bytes) =>
      Buffer.from(
        bytes.toString("latin1").replace("general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama", "general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0gemma"),
        "latin1",
      ),
    "{file}: the architecture gemma is not known; use a model of llama, qwen2, qwen3",
  ],
  [
    "without a vocabulary",
    (bytes) => Buffer.from(bytes.toString("latin1").replaceAll("tokenizer.ggml.tokens", "tokenizer.ggml.tokenz"), "latin1"),
    "{file}: it has no vocabulary (tokenizer.ggml.tokens); give the model as a Hugging Face folder, whose tokenizer.json says the rule",
  ],
  [
    "whose tensors are of another model than its metadata",
    (bytes) => {
      const at = bytes.indexOf("llama.feed_forward_length") + "llama.feed_forward_length".length + 4;
      bytes.writeUInt32LE(128, at);
      return bytes;
    },
    "{file}: tensor blk.0.ffn_gate.weight has the shape [96,64] and its metadata asks for [128,64]; convert the model again",
  ],
  [
    "that has fewer layers than its metadata says",
    (bytes) => {
      const at = bytes.indexOf("llama.block_count") + "llama.block_count".length + 4;
      bytes.writeUInt32LE(3, at);
      return bytes;
    },
    "{file}: it has no tensor for model.layers.2.self_attn.q_proj.weight; convert the model again, or take a whole file",
  ],
  [
    "that is said to have more layers than could be told apart",
    (bytes) => {
      const at = bytes.indexOf("llama.block_count") + "llama.block_count".length + 4;
      bytes.writeUInt32LE(4_000_000_000, at);
      return bytes;
    },
    "{file}, metadata: num_hidden_layers is 4000000000, and at most 4096 are read; take a configuration that belongs to the weights",
  ],
];

/** Of an adapter on its base. */
const ofAdapters: readonly (readonly [what: string, base: string, wrong: Wrong, says: string])[] = [
  [
    "another base",
    "smollm",
    () => undefined,
    "{adapter}/adapter_model.safetensors: it is an adapter of another base: tensor base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight has the shape [4,48] and {base} needs [4,54]; name the base that it was trained on",
  ],
  [
    "a base of another family",
    "qwen2",
    () => undefined,
    "{adapter}/adapter_model.safetensors: it is an adapter of another base: tensor base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight has the shape [4,48] and {base} needs [4,56]; name the base that it was trained on",
  ],
  [
    "another rank than its tensors",
    "llama-tied",
    json("adapter_config.json", (own) => Object.assign(own, { r: 8 })),
    "{adapter}/adapter_model.safetensors: tensor base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight is of rank 4, and adapter_config.json says r 8; take weights and configuration of one adapter",
  ],
  [
    "no factor",
    "llama-tied",
    json("adapter_config.json", (own) => delete own.lora_alpha),
    "{adapter}/adapter_config.json: lora_alpha is missing; take the adapter_config.json that belongs to the weights",
  ],
  [
    "another kind of adapter",
    "llama-tied",
    json("adapter_config.json", (own) => Object.assign(own, { peft_type: "IA3" })),
    '{adapter}/adapter_config.json: peft_type is "IA3"; take a LoRA adapter',
  ],
  [
    "no weights",
    "llama-tied",
    without("adapter_model.safetensors"),
    "{adapter}: it has no adapter_model.safetensors; take the file that belongs to the configuration",
  ],
  [
    "weights that are cut",
    "llama-tied",
    cut("adapter_model.safetensors", 900),
    "{adapter}/adapter_model.safetensors: its header of 1016 bytes passes the end of the file (900 bytes); fetch or write the file again",
  ],
];

/** A copy of a good folder with one thing wrong. */
async function spoilt(source: string, wrong: Wrong): Promise<string> {
  const folder = join(mkdtempSync(join(temp, "bad-")), "model");
  cpSync(source, folder, { recursive: true });
  await wrong(folder);
  return folder;
}

const ask = (model: string) => refused(["sample", model, "--prompt", "hello", "--chat", "--max-tokens", "2"]);

/** The sentence, with nothing started and our own kind of error. */
function hold(got: Awaited<ReturnType<typeof refused>>, says: string, paths: { readonly [name: string]: string }): void {
  const text = Object.entries(paths).reduce((sentence, [name, path]) => sentence?.replaceAll(path, `{${name}}`), got.says);
  expect({ ...got, says: text }).toEqual({ says, code: expect.any(Number), ours: true, started: 0 });
  // Place, cause and mend, and no line end.
  expect(text).toMatch(/^[^\n]+: [^\n]+; [^\n]+$/);
}

describe("a model folder is refused in a sentence for", () => {
  it.each(cases)("%s", async (_what, wrong, says) => {
    const folder = await spoilt(good, wrong);
    hold(await ask(folder), says, { folder });
  });

  it.each(ofShards)("%s", async (_what, wrong, says) => {
    const folder = await spoilt(sharded, wrong);
    hold(await ask(folder), says, { folder });
  });

  it("nothing, where nothing is wrong", async () => {
    for (const source of [good, sharded])
      await expect(openModel(await spoilt(source, () => undefined)).then((model) => model.close())).resolves.toBeUndefined();
  });
});

describe("a GGUF file is refused in a sentence", () => {
  it.each(ofFiles)("%s", async (_what, wrong, says) => {
    const file = join(mkdtempSync(join(temp, "bad-")), "model.gguf");
    writeFileSync(file, wrong(readFileSync(fixture("gguf", "llama-f32.gguf"))));
    hold(await ask(file), says, { file });
  });
});

describe("an adapter is refused in a sentence for", () => {
  it.each(ofAdapters)("%s", async (_what, name, wrong, says) => {
    const base = modelFolder({ folder: name });
    const adapter = await spoilt(fixture("models", "llama-tied", "lora"), wrong);
    const got = await openModel(base, adapter).then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    );
    expect(got?.replaceAll(base, "{base}").replaceAll(adapter, "{adapter}")).toBe(says);
    expect(says).toMatch(/^[^\n]+: [^\n]+; [^\n]+$/);
  });
});
