/** config.json and generation_config.json from the metadata of a GGUF file. */
import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { anglesOf, type Rope, ropeFields } from "../onnx/rope.js";
import type { GgufFile } from "./file.js";
import { rotaryTensor } from "./names.js";

const architectures: { readonly [name: string]: { readonly architecture: string; readonly interleaved: boolean } } = {
  llama: { architecture: "LlamaForCausalLM", interleaved: true },
  qwen2: { architecture: "Qwen2ForCausalLM", interleaved: false },
  qwen3: { architecture: "Qwen3ForCausalLM", interleaved: false },
};

export interface GgufShape {
  readonly config: { readonly [key: string]: Json };
  readonly heads: number;
  readonly kvHeads: number;
  /** Rows of q and k lie interleaved. */
  readonly interleaved: boolean;
}

/** Reads the shape of a model. Throws ModelError for an architecture, or a rotary embedding, that is not known. */
export async function shapeOf(file: GgufFile): Promise<GgufShape> {
  const type = file.text("general.architecture");
  const known = architectures[type];
  if (known === undefined) {
    throw new ModelError({ place: file.path, cause: `the architecture ${type} is not known`, mend: `use a model of ${Object.keys(architectures).join(", ")}` });
  }
  const key = (name: string): string => `${type}.${name}`;
  if (file.has(key("expert_count")) && file.number(key("expert_count")) > 0) {
    throw new ModelError({ place: file.path, cause: "it is a mixture of experts", mend: "use a dense model" });
  }
  const width = file.number(key("embedding_length"));
  const heads = file.number(key("attention.head_count"));
  const kvHeads = file.number(key("attention.head_count_kv"), heads);
  const headDim = file.number(key("attention.key_length"), file.number(key("rope.dimension_count"), width / heads));
  const ropeTheta = file.decimal(key("rope.freq_base"), 10000);
  const maxPositions = file.number(key("context_length"));
  const [vocabulary] = file.tensor("token_embd.weight").shape as [number];
  const token = (name: string): number | null => (file.has(`tokenizer.ggml.${name}_token_id`) ? file.number(`tokenizer.ggml.${name}_token_id`) : null);
  const config = {
    architectures: [known.architecture],
    model_type: type,
    vocab_size: vocabulary,
    hidden_size: width,
    intermediate_size: file.number(key("feed_forward_length")),
    num_hidden_layers: file.number(key("block_count")),
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headDim,
    hidden_act: "silu",
    max_position_embeddings: maxPositions,
    rms_norm_eps: file.decimal(key("attention.layer_norm_rms_epsilon")),
    ...ropeFields({ rope: await ropeOf(file, key, { headDim, ropeTheta, maxPositions }), ropeTheta }),
    tie_word_embeddings: !file.tensors.has("output.weight"),
    initializer_range: 0.02,
    bos_token_id: token("bos"),
    eos_token_id: endsOf(token),
    // transformers would give the embedding of a padding id no gradient, even where it is a real token.
    pad_token_id: null,
    torch_dtype: "float32",
  };
  return { config, heads, kvHeads, interleaved: known.interleaved };
}

/** The end token, and those that end a turn or a message where the file names them too. */
function endsOf(token: (name: string) => number | null): number | readonly number[] | null {
  const ids = ["eos", "eot", "eom"].flatMap((name) => token(name) ?? []);
  const distinct = [...new Set(ids)];
  return distinct.length > 1 ? distinct : (distinct[0] ?? null);
}

interface Angular {
  readonly headDim: number;
  readonly ropeTheta: number;
  readonly maxPositions: number;
}

async function ropeOf(file: GgufFile, key: (name: string) => string, { headDim, ropeTheta, maxPositions }: Angular): Promise<Rope> {
  if (file.tensors.has(rotaryTensor)) return divided(file, headDim, ropeTheta);
  const kind = file.text(key("rope.scaling.type"), "none");
  if (kind === "none") return { kind: "default" };
  const factor = file.decimal(key("rope.scaling.factor"));
  if (kind === "linear") return { kind, factor };
  if (kind === "yarn") {
    const original = file.number(key("rope.scaling.original_context_length"), maxPositions);
    return { kind, factor, original, betaFast: 32, betaSlow: 1, truncate: true, attentionFactor: 0.1 * Math.log(factor) + 1 };
  }
  throw new ModelError({ place: file.path, cause: `the rotary scaling ${kind} is not known`, mend: "use a model without one, or with linear or yarn" });
}

/** Llama 3.1 and 3.2 carry what their scaling divides each frequency by; which scaling that is follows from the numbers. */
async function divided(file: GgufFile, headDim: number, ropeTheta: number): Promise<Rope> {
  const divisors = await file.read(rotaryTensor);
  const plain = anglesOf({ headDim, ropeTheta, rope: { kind: "default" } }).frequencies;
  for (const factor of [8, 32]) {
    const rope: Rope = { kind: "llama3", factor, original: 8192, lowFrequency: 1, highFrequency: 4 };
    const { frequencies } = anglesOf({ headDim, ropeTheta, rope });
    if (frequencies.length === divisors.length && frequencies.every((f, i) => Math.abs(plain[i] / f / divisors[i] - 1) < 1e-5)) return rope;
  }
  throw new ModelError({
    place: file.path,
    cause: `tensor ${rotaryTensor} holds a rotary scaling that is not known`,
    mend: "give the model as a Hugging Face folder",
  });
}
