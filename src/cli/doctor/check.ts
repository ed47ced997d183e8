/**
 * The self-check: twenty numbers of a small random model, computed by the engine and compared with stored ones. The stored
 * log-probs, entropies and gradients are those of a plain float64 decoder (check.test.ts), so that agreement means more
 * than that two machines err alike.
 */
import { plainContext } from "../../core/problem.js";
import { randomKey } from "../../core/random.js";
import type { Engine } from "../../engine/contract.js";

/** Wide enough for vector code, a head of more than one block, shared key heads. */
export const checkConfig = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  vocab_size: 320,
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: true,
  initializer_range: 0.15,
  eos_token_id: null,
} as const;
export const checkSeed = 20;
export const checkTemperature = 0.8;
export const checkContext = [17, 301, 4, 88, 255, 256];
export const checkResponse = [9, 130, 319, 0, 71, 204];
/** The loss is −Σ logp + 0.5 · Σ entropy over the response. */
export const entropyWeight = 0.5;
/** Whose gradients' L2 norms are compared, by Hugging Face name; the fourth norm is that of the whole gradient. */
export const checkTensors = ["model.embed_tokens.weight", "model.layers.0.self_attn.k_proj.weight", "model.layers.1.mlp.down_proj.weight"];

/** Absolute for log-probs and entropies, relative for gradient norms; drawn tokens must be the same. */
export const checkTolerance = 1e-4;

/** The stored numbers. */
export const stored = {
  logp: [-8.45748056, -8.12902926, -5.6366394, -6.51191148, -5.29845589, -7.19896629],
  entropy: [4.7439352, 4.86108019, 4.58472312, 4.78585117],
  norms: [82.13412, 40.65748, 15.33583, 145.8053],
  tokens: [202, 202, 122, 191, 163, 18],
};

/** One of the twenty. */
export interface CheckedNumber {
  readonly name: string;
  readonly stored: number;
  readonly found: number;
  readonly agrees: boolean;
}

/** What the engine computes for the check, in the layout of `stored`. Leaves no role behind. */
export async function computeNumbers(engine: Engine): Promise<typeof stored> {
  const role = "self-check";
  await engine.weights.load({ role, source: { from: "config", config: checkConfig, seed: checkSeed }, trainable: true });
  const context = plainContext(checkContext);
  const weights = { role };
  const { handle, scores } = await engine.forward([{ context, response: Int32Array.from(checkResponse), weights, temperature: checkTemperature }], {
    entropy: true,
  });
  const [{ logp, entropy = [] }] = scores as [(typeof scores)[0]];
  const dLogp = new Float64Array(checkResponse.length).fill(-1);
  await engine.backward(handle, [{ dLogp, dEntropy: dLogp.map(() => entropyWeight) }], `role:${role}`);
  const gradients = await engine.weights.readGradient(`role:${role}`, checkTensors);
  const norms = gradients.map(({ data }) => Math.sqrt(data.reduce((sum, x) => sum + x * x, 0)));
  const { gradNorm } = await engine.step({ set: `role:${role}`, update: { rule: "sgd", rate: 0 } });
  const tokens: number[] = [];
  const request = { context, weights, temperature: checkTemperature, maxTokens: stored.tokens.length, stop: { ids: [] } };
  for await (const sample of engine.sample([{ ...request, key: randomKey({ seed: checkSeed, purpose: "self-check" }) }])) tokens.push(...sample.ids);
  await engine.weights.unload(role);
  return { logp: [...logp], entropy: [...entropy].slice(0, stored.entropy.length), norms: [...norms, gradNorm], tokens };
}

/** Runs the check on an engine. */
export async function selfCheck(engine: Engine): Promise<CheckedNumber[]> {
  const found = await computeNumbers(engine);
  const compare = (kind: keyof typeof stored, names: (i: number) => string, allowed: (value: number) => number): CheckedNumber[] =>
    stored[kind].map((value, i) => ({
      name: names(i),
      stored: value,
      found: found[kind][i] ?? Number.NaN,
      agrees: Math.abs((found[kind][i] ?? Number.NaN) - value) <= allowed(value),
    }));
  return [
    ...compare(
      "logp",
      (i) => `log-prob of token ${i + 1}`,
      () => checkTolerance,
    ),
    ...compare(
      "entropy",
      (i) => `entropy before token ${i + 1}`,
      () => checkTolerance,
    ),
    ...compare(
      "norms",
      (i) => `gradient norm of ${checkTensors[i] ?? "all weights"}`,
      (value) => checkTolerance * value,
    ),
    ...compare(
      "tokens",
      (i) => `drawn token ${i + 1}`,
      () => 0,
    ),
  ];
}
