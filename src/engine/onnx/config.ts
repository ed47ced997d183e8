/** The shape of a decoder, read from and written to Hugging Face's config.json in its older and newer spelling. */

import { ModelError } from "../../core/errors.js";
import type { Json } from "../../core/json.js";

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
  readonly rope: { readonly kind: "default" };
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
};

/** Settings that change the network, with the one value that the graphs here have. */
const required: readonly (readonly [key: string, value: Json, meaning: string])[] = [
  ["hidden_act", "silu", "the SwiGLU activation"],
  ["attention_bias", false, "projections without biases"],
  ["mlp_bias", false, "an MLP without biases"],
  ["rope_interleaved", false, "rotary halves side by side"],
  ["partial_rotary_factor", 1, "rotation of whole heads"],
  ["quantization_config", null, "plain weights"],
];

type Fields = { readonly [key: string]: Json };

class Reader {
  constructor(
    readonly fields: Fields,
    readonly place: string,
  ) {}

  fail(cause: string, mend: string): never {
    throw new ModelError({ place: this.place, cause, mend });
  }

  /** A field that is present and not null. */
  has(key: string): boolean {
    return this.fields[key] !== undefined && this.fields[key] !== null;
  }

  number(key: string, fallback?: number): number {
    const value = this.has(key) ? this.fields[key] : fallback;
    if (value === undefined) this.fail(`${key} is missing`, "take the config.json that belongs to the weights");
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) this.fail(`${key} is ${JSON.stringify(value)}`, "give a positive number");
    return value;
  }

  count(key: string, fallback?: number): number {
    const value = this.number(key, fallback);
    if (!Number.isSafeInteger(value)) this.fail(`${key} is ${value}`, "give a whole number");
    return value;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.has(key) ? this.fields[key] : fallback;
    if (typeof value !== "boolean") this.fail(`${key} is ${JSON.stringify(value)}`, "give true or false");
    return value;
  }

  /** Token ids: a number, several, or none. */
  ids(key: string, vocabulary: number): number[] {
    const value = this.fields[key] ?? [];
    const list = Array.isArray(value) ? (value as readonly Json[]) : [value as Json];
    return list.map((id) => {
      if (!Number.isSafeInteger(id) || (id as number) < 0 || (id as number) >= vocabulary) {
        this.fail(`${key} has ${JSON.stringify(id)}, outside the vocabulary of ${vocabulary}`, "give ids of the vocabulary");
      }
      return id as number;
    });
  }
}

function reader(json: Json, place: string): Reader {
  if (json === null || typeof json !== "object" || Array.isArray(json)) {
    throw new ModelError({ place, cause: "it is not a JSON object", mend: "take the config.json that belongs to the weights" });
  }
  return new Reader(json as Fields, place);
}

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
    layers: r.count("num_hidden_layers"),
    width,
    heads,
    kvHeads,
    headDim,
    mlp: r.count("intermediate_size"),
    vocabulary,
    ...rotation(r),
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
  if (!Object.hasOwn(architectures, name)) r.fail(`the architecture ${name} is not known`, `use a model of ${Object.keys(architectures).join(", ")}`);
  return architectures[name];
}

/** `rope_parameters` (newer) or `rope_theta` and `rope_scaling` with `rope_type` or `type` (older). */
function rotation(r: Reader): Pick<DecoderConfig, "rope" | "ropeTheta"> {
  const key = r.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const inner = reader(r.fields[key] ?? {}, `${r.place}, ${key}`);
  const kind = inner.fields.rope_type ?? inner.fields.type ?? "default";
  if (kind !== "default") inner.fail(`the rotary embedding ${JSON.stringify(kind)} is not known`, "use a model with the default one");
  return { rope: { kind: "default" }, ropeTheta: inner.has("rope_theta") ? inner.number("rope_theta") : r.number("rope_theta", 10000) };
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
export function toHuggingFaceConfig(config: DecoderConfig): { [key: string]: Json } {
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
    rope_theta: config.ropeTheta,
    rope_scaling: null,
    attention_bias: config.attentionBias,
    attention_dropout: 0,
    mlp_bias: false,
    tie_word_embeddings: config.tied,
    initializer_range: config.initializerRange,
    // The padding id stays out: transformers would give its embedding no gradient, even where it is a real token.
    pad_token_id: null,
    bos_token_id: config.bosId ?? null,
    eos_token_id: one(config.eosIds),
    use_cache: true,
    torch_dtype: "float32",
  };
}

/** The content of a generation_config.json. */
export function toGenerationConfig(config: DecoderConfig): { [key: string]: Json } {
  return { bos_token_id: config.bosId ?? null, eos_token_id: one(config.eosIds), pad_token_id: config.padId ?? null };
}
