/** Small models, requests and sequences for tests through the engine contract. */
import { plainContext } from "../../core/problem.js";
import { randomKey, Stream } from "../../core/random.js";
import type { Derivatives, Engine, ModelSource, ParameterSet, Sample, SampleRequest, Sequence, TensorValue } from "../contract.js";
import type { ParameterStore } from "./params.js";

export interface Shape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly mlp: number;
  readonly vocabulary: number;
  readonly tied?: boolean;
  /** Default llama. */
  readonly family?: "llama" | "qwen2" | "qwen3";
}

/** A random model whose distributions are far from uniform: weights are wider than those that training starts from. */
export function randomModel(s: Shape, seed: number, initializerRange = 2 / Math.sqrt(s.width)): ModelSource {
  return {
    from: "config",
    seed,
    config: {
      model_type: s.family ?? "llama",
      hidden_size: s.width,
      intermediate_size: s.mlp,
      num_hidden_layers: s.layers,
      num_attention_heads: s.heads,
      num_key_value_heads: s.kvHeads,
      vocab_size: s.vocabulary,
      max_position_embeddings: 1024,
      rms_norm_eps: 1e-5,
      rope_theta: 10000,
      tie_word_embeddings: s.tied ?? true,
      initializer_range: initializerRange,
    },
  };
}

const stream = (seed: number): Stream => new Stream(randomKey({ seed, purpose: "onnx-tests" }));

/** Token ids. */
export function randomIds(length: number, vocabulary: number, seed: number): Int32Array {
  const random = stream(seed);
  return Int32Array.from({ length }, () => random.int(vocabulary));
}

/** A sequence of the role `policy` with random tokens. */
export function randomSequence(context: number, response: number, vocabulary: number, seed: number, temperature = 1): Sequence {
  const ids = randomIds(context + response, vocabulary, seed);
  return { context: plainContext(ids.slice(0, context)), response: ids.slice(context), weights: { role: "policy" }, temperature };
}

/** Derivatives between −1 and 1 by every log-prob of the sequences. */
export function randomDerivatives(sequences: readonly Sequence[], seed: number): Derivatives[] {
  const random = stream(seed);
  return sequences.map(({ response }) => ({ dLogp: Float64Array.from(response, () => 2 * random.next() - 1) }));
}

/** Puts numbers of the size of trained ones into every B of a role's adapter. */
export async function fillAdapter(engine: Engine, role = "policy"): Promise<void> {
  const { adapter } = await engine.weights.info(role);
  const tensors = (adapter?.tensors ?? []).filter(({ name }) => name.includes("lora_B"));
  const filled = tensors.map(({ name, shape }, t): TensorValue => {
    return { name, shape, data: Float64Array.from({ length: shape[0] * shape[1] }, (_, i) => 0.05 * Math.sin(0.7 * i + t)) };
  });
  await engine.weights.write(role, filled);
}

/** The answers in the order of the requests. */
export async function sampleAll(engine: Engine, requests: readonly SampleRequest[]): Promise<Sample[]> {
  const answers: Sample[] = [];
  for await (const sample of engine.sample(requests)) answers[sample.index] = sample;
  return answers;
}

/** The gradient of Σ derivative · log-prob, by one forward and backward pass; the accumulated gradient is empty before and after. */
export async function gradientOf(engine: Engine, sequences: readonly Sequence[], derivatives: readonly Derivatives[]): Promise<TensorValue[]> {
  await accumulate(engine, sequences, derivatives);
  return takeGradient(engine);
}

export const policySet: ParameterSet = "role:policy";

/** Adds the gradient of Σ derivative · log-prob. */
export async function accumulate(engine: Engine, sequences: readonly Sequence[], derivatives: readonly Derivatives[]): Promise<void> {
  const { handle } = await engine.forward(sequences);
  await engine.backward(handle, derivatives, policySet);
}

/** Reads the accumulated gradient of all tensors and empties it. */
export async function takeGradient(engine: Engine): Promise<TensorValue[]> {
  const { tensors } = await engine.weights.info("policy");
  const names = tensors.map(({ name }) => name);
  const gradient = await engine.weights.readGradient(policySet, names);
  await engine.weights.zeroGradient(policySet);
  return gradient;
}

/** All weights of the role `policy`, tensor by tensor. */
export async function readWeights(engine: Engine): Promise<TensorValue[]> {
  const { tensors } = await engine.weights.info("policy");
  return engine.weights.read(
    { role: "policy" },
    tensors.map(({ name }) => name),
  );
}

/** ‖a − b‖ / ‖a‖ over all tensors together. */
export function distance(a: readonly TensorValue[], b: readonly TensorValue[]): number {
  let difference = 0;
  let size = 0;
  a.forEach(({ data }, t) => {
    data.forEach((x, i) => {
      difference += (x - b[t].data[i]) ** 2;
      size += x ** 2;
    });
  });
  return Math.sqrt(difference / size);
}

/** Whether two lists of tensors are equal byte for byte. */
export function sameBytes(a: readonly TensorValue[], b: readonly TensorValue[]): boolean {
  const bytes = ({ data }: TensorValue): Buffer => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return a.length === b.length && a.every((tensor, i) => tensor.name === b[i].name && bytes(tensor).equals(bytes(b[i])));
}

/** All weights of a store end to end. */
export const flatWeights = (store: ParameterStore): Float32Array => Float32Array.from(store.tensors.flatMap(({ name }) => [...store.read(name)]));

/** Gives a store the weights of another of the same shape. */
export function copyWeights(from: ParameterStore, to: ParameterStore): void {
  for (const { name } of from.tensors) to.write(name, from.read(name));
}
