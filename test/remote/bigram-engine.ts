/** A small exact engine for the tests of this folder: one bigram table [vocabulary][vocabulary] a role, with faults on request. */
import { ArgumentError } from "../../src/core/errors.js";
import { uniform } from "../../src/core/random.js";
import type {
  Backward,
  Capability,
  Derivatives,
  Engine,
  EngineInfo,
  Forward,
  LoadRequest,
  ModelInfo,
  ParameterSet,
  Sample,
  SampleOptions,
  SampleRequest,
  Scores,
  Sequence,
  StepRequest,
  StepResult,
  TensorValue,
  Usage,
  Weights,
} from "../../src/engine/contract.js";
import { sumNumbers, writeNumbers } from "../../src/engine/flat-file.js";
import type { Replica } from "../../src/engine/replica.js";

export const vocabulary = 7;
const size = vocabulary * vocabulary;

interface Role {
  data: Float32Array;
  version: number;
  gradient: Float32Array | undefined;
}

/** A context with this label makes `score` block the thread for ten seconds, as a long matrix product does. */
export const blocking = "block";

const yieldToLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class BigramEngine implements Replica {
  readonly info: EngineInfo = {
    name: "bigram",
    has: new Set<Capability>(["sample", "score", "train"]),
    lacks: { media: "tables see no images" },
    fingerprint: { version: 1 },
  };
  /** Decode steps taken by all samples, and forward passes held: what tests of cancellation and release look at. */
  steps = 0;
  readonly passes = new Map<string, readonly Sequence[]>();
  private readonly roles = new Map<string, Role>();
  private readonly snapshots = new Map<string, Float32Array>();
  private nextPass = 0;
  private counts = { prefillTokens: 0, sampledTokens: 0, scoredTokens: 0, trainedTokens: 0, slots: 0, busyMs: 0 };

  readonly weights: Weights = {
    load: async (request: LoadRequest) => {
      const seed = request.source.from === "config" ? request.source.seed : 0;
      const data = Float32Array.from({ length: size }, (_, i) => 2 * uniform([seed, 1, 2, 3], i) - 1);
      this.roles.set(request.role, { data, version: 0, gradient: undefined });
      return this.modelInfo(request.role);
    },
    unload: async (role) => void this.roles.delete(role),
    info: async (role) => this.modelInfo(role),
    snapshot: async (role, name) => void this.snapshots.set(`${role}@${name}`, this.role(role).data.slice()),
    restore: async (role, name) => void this.role(role).data.set(this.snapshots.get(`${role}@${name}`) as Float32Array),
    dropSnapshot: async (role, name) => void this.snapshots.delete(`${role}@${name}`),
    read: async (ref) => [this.tensor(this.role(ref.role).data)],
    write: async (role, [tensor]) => void this.role(role).data.set((tensor as TensorValue).data),
    readGradient: async (set) => [this.tensor(this.roleOf(set).gradient ?? new Float32Array(size))],
    zeroGradient: async (set) => {
      this.roleOf(set).gradient = undefined;
    },
    saveOptimizer: async () => undefined,
    loadOptimizer: async () => undefined,
    resetOptimizer: async () => undefined,
    merge: async (role) => this.modelInfo(role),
    resetAdapter: async () => undefined,
    save: async () => undefined,
  };

  async *sample(requests: readonly SampleRequest[], options?: SampleOptions): AsyncGenerator<Sample> {
    const states = requests.map((request, index) => ({ request, index, ids: [] as number[], logp: [] as number[], told: false }));
    let active = states;
    while (active.length > 0) {
      await yieldToLoop();
      options?.signal?.throwIfAborted();
      this.steps++;
      for (const state of active) {
        const { request, index, ids, logp } = state;
        const log = this.row(request.weights.role, ids.at(-1) ?? (request.context.ids.at(-1) as number), request.temperature);
        const u = uniform(request.key, ids.length);
        let token = 0;
        for (let sum = Math.exp(log[0]); sum <= u && token < vocabulary - 1; ) sum += Math.exp(log[++token]);
        ids.push(token);
        logp.push(log[token]);
        state.told = options?.onToken?.(index, token) === true;
      }
      const ended = ({ request, ids, told }: (typeof states)[number]): boolean =>
        told || ids.length >= request.maxTokens || request.stop.ids.includes(ids.at(-1) as number);
      for (const state of active.filter(ended)) {
        this.counts.sampledTokens += state.ids.length;
        const logp = Float64Array.from(state.logp);
        yield {
          index: state.index,
          ids: Int32Array.from(state.ids),
          sampled: new Uint8Array(state.ids.length).fill(1),
          rawLogp: logp,
          logp,
          entropy: logp.map((x) => -x),
          stop: state.request.stop.ids.includes(state.ids.at(-1) as number) ? "eos" : state.told ? "stop" : "length",
          weights: this.identity(state.request.weights.role),
        };
      }
      active = active.filter((state) => !ended(state));
    }
  }

  async score(sequences: readonly Sequence[]): Promise<Scores[]> {
    if (sequences.some(({ context }) => context.label === blocking)) {
      for (const end = Date.now() + 10_000; Date.now() < end; );
    }
    return sequences.map((sequence) => {
      this.counts.scoredTokens += sequence.response.length;
      return { logp: this.logp(sequence), weights: this.identity(sequence.weights.role) };
    });
  }

  async forward(sequences: readonly Sequence[]): Promise<Forward> {
    const scores = await this.score(sequences);
    const handle = `f${this.nextPass++}`;
    this.passes.set(handle, sequences);
    return { handle, scores };
  }

  async backward(handle: string, derivatives: readonly Derivatives[], set: ParameterSet): Promise<Backward> {
    const sequences = this.passes.get(handle);
    if (!sequences) throw new ArgumentError({ place: "backward", cause: `no pass ${handle}`, mend: "use each once" });
    this.passes.delete(handle);
    if (set === "inputs") return { inputs: sequences.map(({ context, response }) => new Float32Array(context.ids.length + response.length)) };
    const gradient = this.gradientOf(set);
    sequences.forEach((sequence, s) => {
      this.counts.trainedTokens += sequence.response.length;
      sequence.response.forEach((token, t) => {
        const d = derivatives[s]?.dLogp?.[t] ?? 0;
        const before = previous(sequence, t);
        const log = this.row(sequence.weights.role, before, sequence.temperature);
        for (let v = 0; v < vocabulary; v++) {
          const at = before * vocabulary + v;
          gradient[at] += (d * ((v === token ? 1 : 0) - Math.exp(log[v]))) / sequence.temperature;
        }
      });
    });
    return {};
  }

  async release(handle: string): Promise<void> {
    this.passes.delete(handle);
  }

  async step({ set, update }: StepRequest): Promise<StepResult> {
    const role = this.roleOf(set);
    const gradient = role.gradient ?? new Float32Array(size);
    for (let i = 0; i < size; i++) role.data[i] -= update.rate * gradient[i];
    role.gradient = undefined;
    role.version++;
    return { gradNorm: Math.sqrt(gradient.reduce((sum, g) => sum + g * g, 0)), clipped: false, weights: this.identity(set.slice(5)) };
  }

  async usage(): Promise<Usage> {
    return { ...this.counts };
  }

  async close(): Promise<void> {}

  async exportGradient(set: ParameterSet, file: string): Promise<boolean> {
    const { gradient } = this.roleOf(set);
    if (gradient) writeNumbers(file, [gradient]);
    return gradient !== undefined;
  }

  async importGradient(set: ParameterSet, files: readonly string[]): Promise<void> {
    this.roleOf(set).gradient = undefined;
    if (files.length > 0) sumNumbers(files, [this.gradientOf(set)]);
  }

  private role(name: string): Role {
    const role = this.roles.get(name);
    if (!role) throw new ArgumentError({ place: "bigram engine", cause: `it has no role ${name}`, mend: "load it first", data: { role: name } });
    return role;
  }

  private roleOf(set: ParameterSet): Role {
    return this.role(set.slice("role:".length));
  }

  private gradientOf(set: ParameterSet): Float32Array {
    const role = this.roleOf(set);
    role.gradient ??= new Float32Array(size);
    return role.gradient;
  }

  private identity(role: string): string {
    return `${role}@${this.role(role).version}`;
  }

  private row(role: string, before: number, temperature: number): Float64Array {
    const logits = Float64Array.from(this.role(role).data.subarray(before * vocabulary, (before + 1) * vocabulary), (x) => x / temperature);
    const total = Math.log(logits.reduce((sum, x) => sum + Math.exp(x), 0));
    return logits.map((x) => x - total);
  }

  private logp(sequence: Sequence): Float64Array {
    return Float64Array.from(sequence.response, (token, t) => this.row(sequence.weights.role, previous(sequence, t), sequence.temperature)[token] as number);
  }

  private tensor(data: Float32Array): TensorValue {
    return { name: "table", shape: [vocabulary, vocabulary], data: Float64Array.from(data) };
  }

  private modelInfo(role: string): ModelInfo {
    return {
      role,
      parameters: size,
      vocabulary,
      width: vocabulary,
      layers: 0,
      maxTokens: 1e10,
      hasValueHead: false,
      trainable: true,
      tensors: [{ name: "table", shape: [vocabulary, vocabulary] }],
    };
  }
}

function previous({ context, response }: Sequence, t: number): number {
  return (t === 0 ? context.ids.at(-1) : response[t - 1]) as number;
}

/** A pool, a connection and the engine itself answer alike. */
export async function loaded<E extends Engine>(engine: E, seed = 5): Promise<E> {
  await engine.weights.load({ role: "policy", source: { from: "config", config: {}, seed }, trainable: true });
  return engine;
}
