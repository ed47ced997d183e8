/** The shape of a decoder, read from and written to Hugging Face's config.json in its older and newer spelling. */

import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";
import { type Reader, reader } from "./fields.js";
import { type Rope, ropeFields, ropeOf } from "./rope.js";

/** Everything that decides a decoder's graph and the shapes of its weights. */
export interface DecoderConfig {
  readonly family: "llama" | "qwen2" | "qwen3";
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  /** Key and value heads; each serves `heads / kvHeads` query heads. */
  readonly kvHeads: number;
  /** Even; may differ from `width / heads`. */
  readonly headDim: number;
  /** Inner width of the SwiGLU block. */
  readonly mlp: number;
  readonly vocabulary: number;
  readonly ropeTheta: number;
  readonly rope: Rope;
  readonly rmsEpsilon: number;
  /** The head is the embedding table. */
  readonly tied: boolean;
  readonly maxPositions: number;
  /** Biases on q, k and v. */
  readonly attentionBias: boolean;
  /** RMS norms on the heads of q and k. */
  readonly qkNorm: boolean;
  /** Standard deviation of random initial weights. */
  readonly initializerRange: number;
  /** Every id that ends a text, the first one first. */
  readonly eosIds: readonly number[];
  readonly bosId?: number;
  readonly padId?: number;
}

interface Architecture {
  readonly family: DecoderConfig["family"];
  readonly modelType: string;
  readonly attentionBias: boolean;
  readonly qkNorm: boolean;
}

/** What can be loaded, by the name in `architectures`. */
const architectures: { readonly [name: string]: Architecture } = {
  LlamaForCausalLM: { family: "llama", modelType: "llama", attentionBias: false, qkNorm: false },
  Qwen2ForCausalLM: { family: "qwen2", modelType: "qwen2", attentionBias: true, qkNorm: false },
  Qwen3ForCausalLM: { family: "qwen3", modelType: "qwen3", attentionBias: false, qkNorm: true },
};

/** Settings that change the network, with the one value that the graphs here have. */
const required: readonly (readonly [key: string, value: Json, meaning: string])[] = [
  ["hidden_act", "silu", "the SwiGLU activation"],
  ["attention_bias", false, "projections without biases"],
  ["mlp_bias", false, "an MLP without biases"],
  ["rope_interleaved", false, "rotary halves side by side"],
  ["partial_rotary_factor", 1, "rotation of whole heads"],
  ["quantization_config", null, "plain weights"],
  ["use_sliding_window", false, "attention to all tokens before"],
];

/**
 * Reads the content of a config.json; `place` names it in errors. Refuses with a ModelError, by name, what would change
 * the network in a way that the graphs here do not have.
 */
export function parseModelConfig(json: Json, place: string): DecoderConfig {
  const r = reader(json, place);
  const { family, attentionBias, qkNorm } = architectureOf(r);
  for (const [key, value, meaning] of required) {
    if (r.has(key) && r.fields[key] !== value)
      r.fail(`${key} is ${JSON.stringify(r.fields[key])}`, `use a model with ${meaning} (${key}: ${JSON.stringify(value)})`);
  }
  const types = r.fields.layer_types;
  const other = Array.isArray(types) ? (types as readonly Json[]).find((type) => type !== "full_attention") : undefined;
  if (other !== undefined) r.fail(`layer_types has ${JSON.stringify(other)}`, "use a model whose layers all attend to all tokens before (full_attention)");
  const width = r.count("hidden_size");
  const heads = r.count("num_attention_heads");
  const kvHeads = r.count("num_key_value_heads", heads);
  if (heads % kvHeads !== 0)
    r.fail(`${heads} query heads cannot share ${kvHeads} key heads evenly`, "make num_attention_heads a multiple of num_key_value_heads");
  if (!r.has("head_dim") && width % heads !== 0) r.fail(`hidden_size ${width} is not a multiple of ${heads} heads`, "give head_dim");
  const headDim = r.count("head_dim", width / heads);
  if (headDim % 2 !== 0) r.fail(`head_dim is ${headDim}`, "make it even: rotary embedding turns pairs");
  const vocabulary = r.count("vocab_size");
  const [bosId] = r.ids("bos_token_id", vocabulary);
  const [padId] = r.ids("pad_token_id", vocabulary);
  return {
    family,
    layers: layersOf(r),
    width,
    heads,
    kvHeads,
    headDim,
    mlp: r.count("intermediate_size"),
    vocabulary,
    ...ropeOf(r),
    rmsEpsilon: r.number("rms_norm_eps", 1e-6),
    tied: r.flag("tie_word_embeddings", false),
    maxPositions: r.count("max_position_embeddings"),
    attentionBias,
    qkNorm,
    initializerRange: r.number("initializer_range", 0.02),
    eosIds: r.ids("eos_token_id", vocabulary),
    ...(bosId === undefined ? {} : { bosId }),
    ...(padId === undefined ? {} : { padId }),
  };
}

function architectureOf(r: Reader): Architecture {
  const named = r.fields.architectures;
  const names = Array.isArray(named) ? (named as readonly Json[]) : [];
  const byType = Object.keys(architectures).find((name) => architectures[name].modelType === r.fields.model_type);
  const name = names.length > 0 ? String(names[0]) : (byType ?? String(r.fields.model_type ?? "none"));
  if (names.length > 1) r.fail(`architectures has ${names.length} entries`, "leave the one that the weights are of");
  if (!Object.hasOwn(architectures, name)) r.fail(`the architecture ${name} is not known`, `use a model of ${Object.keys(architectures).join(", ")}`);
  const { modelType } = architectures[name];
  if (r.has("model_type") && r.fields.model_type !== modelType)
    r.fail(`model_type is ${JSON.stringify(r.fields.model_type)} and the architecture ${name}`, "take a configuration that belongs to the weights");
  return architectures[name];
}

/** Far above any model, and few enough that what is said of each layer fits into memory. */
const mostLayers = 4096;

function layersOf(r: Reader): number {
  const layers = r.count("num_hidden_layers");
  if (layers > mostLayers) r.fail(`num_hidden_layers is ${layers}, and at most ${mostLayers} are read`, "take a configuration that belongs to the weights");
  return layers;
}

/** Takes the token ids of generation_config.json where it names them: it may list more than one id that ends a text. */
export function withGeneration(config: DecoderConfig, json: Json, place: string): DecoderConfig {
  const r = reader(json, place);
  const eosIds = r.ids("eos_token_id", config.vocabulary);
  const [bosId = config.bosId] = r.ids("bos_token_id", config.vocabulary);
  const [padId = config.padId] = r.ids("pad_token_id", config.vocabulary);
  return {
    ...config,
    eosIds: eosIds.length > 0 ? eosIds : config.eosIds,
    ...(bosId === undefined ? {} : { bosId }),
    ...(padId === undefined ? {} : { padId }),
  };
}

const one = (ids: readonly number[]): Json => (ids.length > 1 ? ids : (ids[0] ?? null));

/** The content of a config.json, in the older spelling: transformers 4 and 5 and other tools read it. */
export function toHuggingFaceConfig(config: DecoderConfig, dtype: "float32" | "bfloat16" = "float32"): { [key: string]: Json } {
  const entry = Object.entries(architectures).find(([, { family }]) => family === config.family);
  if (!entry)
    throw new ModelError({ place: "config.json", cause: `the family ${config.family} has no architecture to be written as`, mend: "use another family" });
  const [name, { modelType }] = entry;
  return {
    architectures: [name],
    model_type: modelType,
    vocab_size: config.vocabulary,
    hidden_size: config.width,
    intermediate_size: config.mlp,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    hidden_act: "silu",
    max_position_embeddings: config.maxPositions,
    rms_norm_eps: config.rmsEpsilon,
    ...ropeFields(config),
    // Biases on q, k and v alone are the family's own; the key would ask for one on the output too.
    attention_bias: false,
    attention_dropout: 0,
    mlp_bias: false,
    tie_word_embeddings: config.tied,
    initializer_range: config.initializerRange,
    // The padding id stays out: transformers would give its embedding no gradient, even where it is a real token.
    pad_token_id: null,
    bos_token_id: config.bosId ?? null,
    eos_token_id: one(config.eosIds),
    use_cache: true,
    torch_dtype: dtype,
  };
}

/** The content of a generation_config.json. */
export function toGenerationConfig(config: DecoderConfig): { [key: string]: Json } {
  return { bos_token_id: config.bosId ?? null, eos_token_id: one(config.eosIds), pad_token_id: config.padId ?? null };
}
