/** What the cases of the conformance suite share: models, requests, and comparisons. */
import { expect } from "vitest";
import { plainContext } from "../core/problem.js";
import { type RandomKey, randomKey, Stream } from "../core/random.js";
import type {
  Capability,
  Engine,
  LoadRequest,
  ModelInfo,
  ModelSource,
  ParameterSet,
  Sample,
  SampleRequest,
  Sequence,
  Targets,
  TensorValue,
} from "./contract.js";

/** How exact an engine is. */
export interface Tolerance {
  /** Absolute, of a log-prob, entropy or value: sampled against scored, together against alone. */
  readonly logp: number;
  /** Of a gradient against central differences, and between orders of summation; relative to the gradient's size. */
  readonly gradient: number;
  /** Of a weight after a step, relative to the largest of weight, rate and 1e-3. */
  readonly update: number;
}

/** An engine under test. */
export interface Subject {
  readonly engine: Engine;
  /**
   * A small model (vocabulary of at least 8, 48 tokens or more), whose distributions are neither flat nor all on one
   * id. Every case loads it under roles of its own.
   */
  readonly source: ModelSource;
  readonly tolerance: Tolerance;
  /** Size of the differences, relative to a tensor's root mean square. Default 1e-3, for float64; float32 wants 0.03 to 0.1. */
  readonly step?: number;
  /** How often one prompt may be computed in one call: the number of workers. Default 1. */
  readonly prefills?: number;
}

/** One case of the suite. */
export interface Case {
  readonly name: string;
  readonly needs: readonly Capability[];
  readonly run: (bench: Bench) => Promise<void>;
}

let roles = 0;

export class Bench {
  readonly engine: Engine;
  readonly tolerance: Tolerance;
  readonly step: number;
  readonly stream = new Stream(randomKey({ seed: 1, purpose: "conformance" }));
  private readonly loaded: string[] = [];

  constructor(readonly subject: Subject) {
    this.engine = subject.engine;
    this.tolerance = subject.tolerance;
    this.step = subject.step ?? 1e-3;
  }

  has(capability: Capability): boolean {
    return this.engine.info.has.has(capability);
  }

  /** Loads a role of a fresh name, with a value head where the engine trains one. */
  async role(request: Partial<LoadRequest> = {}): Promise<ModelInfo> {
    const role = `case${++roles}`;
    const valueHead = this.has("score.values") || this.has("train.values");
    const info = await this.engine.weights.load({
      role,
      source: this.subject.source,
      trainable: this.has("train"),
      ...(valueHead ? { valueHead } : {}),
      ...request,
    });
    this.loaded.push(info.role);
    return info;
  }

  async end(): Promise<void> {
    for (const role of this.loaded.splice(0)) await this.engine.weights.unload(role);
  }

  ids(count: number, vocabulary: number): Int32Array {
    return Int32Array.from({ length: count }, () => this.stream.int(vocabulary));
  }

  numbers(count: number): Float64Array {
    return Float64Array.from({ length: count }, () => this.stream.normal());
  }

  sequence({ role, vocabulary }: ModelInfo, contextLength: number, responseLength: number, temperature = 1): Sequence {
    return { context: plainContext(this.ids(contextLength, vocabulary)), response: this.ids(responseLength, vocabulary), weights: { role }, temperature };
  }

  /** Four sequences of unequal length and, where the engine can, temperature; one holds a single token many times. */
  mixed(info: ModelInfo): Sequence[] {
    const at = (temperature: number): number => (this.has("score.temperature") ? temperature : 1);
    const repeated = this.sequence(info, 2, 9, at(0.7));
    repeated.response.fill(repeated.response[0], 2, 8);
    return [this.sequence(info, 3, 6, 1), this.sequence(info, 1, 1, at(1.3)), this.sequence(info, 5, 3, at(0.7)), repeated];
  }

  /** k distinct ids for each response token. */
  targets({ response }: Sequence, k: number, vocabulary: number): Targets {
    const all = Array.from({ length: vocabulary }, (_, id) => id);
    return { k, ids: Int32Array.from(Array.from(response).flatMap(() => this.stream.shuffle(all).slice(0, k))) };
  }

  request({ role, vocabulary }: ModelInfo, member: number, more: Partial<SampleRequest> = {}): SampleRequest {
    return { context: plainContext(this.ids(3, vocabulary)), weights: { role }, temperature: 1, maxTokens: 6, stop: { ids: [] }, key: key(member), ...more };
  }

  /** All answers, by index; fails when an index is missing or comes twice. */
  async sample(requests: readonly SampleRequest[], signal?: AbortSignal): Promise<Sample[]> {
    const answers: Sample[] = [];
    for await (const answer of this.engine.sample(requests, signal ? { signal } : {})) answers.push(answer);
    answers.sort((a, b) => a.index - b.index);
    expect(answers.map(({ index }) => index)).toEqual(requests.map((_, index) => index));
    return answers;
  }

  read({ role, tensors }: ModelInfo): Promise<TensorValue[]> {
    return this.engine.weights.read(
      { role },
      tensors.map(({ name }) => name),
    );
  }

  gradient({ role, tensors }: ModelInfo): Promise<TensorValue[]> {
    return this.engine.weights.readGradient(
      setOf(role),
      tensors.map(({ name }) => name),
    );
  }

  /** One forward and backward pass with derivatives of the log-probs alone. */
  async learn(sequences: readonly Sequence[], coefficients: readonly Float64Array[]): Promise<void> {
    const { handle } = await this.engine.forward(sequences);
    await this.engine.backward(
      handle,
      coefficients.map((dLogp) => ({ dLogp })),
      setOf(sequences[0].weights.role),
    );
  }

  async logp(sequences: readonly Sequence[]): Promise<Float64Array[]> {
    return (await this.engine.score(sequences)).map(({ logp }) => logp);
  }

  /** The same bits, or within the tolerance where the engine does not promise bits. */
  same(actual: ArrayLike<number>, expected: ArrayLike<number>): void {
    if (this.has("exact")) sameBits(actual, expected);
    else this.close(actual, expected);
  }

  /** Two answers to one request. */
  sameAnswer(actual: Sample, expected: Sample, tokens = expected.ids.length): void {
    expect([...actual.ids], "tokens").toEqual([...expected.ids.slice(0, tokens)]);
    expect([...actual.sampled]).toEqual([...expected.sampled.slice(0, tokens)]);
    for (const column of ["rawLogp", "logp", "entropy"] as const) this.same(actual[column], expected[column].slice(0, tokens));
  }

  close(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance = this.tolerance.logp): void {
    expect(actual.length).toBe(expected.length);
    for (let i = 0; i < expected.length; i++) {
      if (Object.is(actual[i], expected[i]) || actual[i] === expected[i]) continue;
      expect(Math.abs(actual[i] - expected[i]), `entry ${i}: ${actual[i]} instead of ${expected[i]}`).toBeLessThanOrEqual(tolerance);
    }
  }
}

export const key = (member: number): RandomKey => randomKey({ seed: 3, purpose: "sample", member });
export const setOf = (role: string): ParameterSet => `role:${role}`;

/** Entry by entry the same bits, as far as a test can see them (−0 is not 0). */
export function sameBits(actual: ArrayLike<number>, expected: ArrayLike<number>): void {
  expect(Array.from(actual)).toEqual(Array.from(expected));
}

export function sameTensors(actual: readonly TensorValue[], expected: readonly TensorValue[]): void {
  expect(actual.map(({ name, shape }) => [name, shape])).toEqual(expected.map(({ name, shape }) => [name, shape]));
  for (const [i, { data }] of actual.entries()) sameBits(data, expected[i].data);
}

export function normOf(tensors: readonly TensorValue[]): number {
  return Math.hypot(...tensors.map(({ data }) => Math.hypot(...data)));
}

/** ‖a − b‖ / ‖b‖ over all tensors together. */
export function relativeDistance(a: readonly TensorValue[], b: readonly TensorValue[]): number {
  const difference = a.map((tensor, i) => ({ ...tensor, data: tensor.data.map((x, j) => x - b[i].data[j]) }));
  return normOf(difference) / normOf(b);
}
