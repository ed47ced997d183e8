/**
 * The onnx engine: Llama-style decoders in float32 on ONNX Runtime, in the calling process. The runtime computes on the
 * calling thread, so this class belongs into a process of its own (process.ts); start.ts starts it there.
 */
import { cpus } from "node:os";
import { checkDerivatives, checkReceiver, checkSample, checkSequences, checkStep, roleOfSet } from "../check.js";
import type {
  Backward,
  CallOptions,
  Derivatives,
  EngineInfo,
  Forward,
  ParameterSet,
  Sample,
  SampleOptions,
  SampleRequest,
  Scores,
  ScoreWant,
  Sequence,
  StepRequest,
  StepResult,
  Usage,
  Want,
  WeightsRef,
} from "../contract.js";
import { unknownHandle } from "../refuse.js";
import type { Replica } from "../replica.js";
import { has, lacks } from "./abilities.js";
import { orthogonaliser } from "./muon.js";
import { defaultPackPlaces, evenLength, pack } from "./pack.js";
import { addEmbeddingGradient, backwardPack, forwardPack, hiddenOf, type Model, type PackState } from "./pass.js";
import { Readout, type Writable } from "./readout.js";
import { type Role, Roles } from "./roles.js";
import { loadRuntime, runtimeVersion } from "./runtime.js";
import { Sampler } from "./sampler.js";
import { Sessions } from "./sessions.js";
import { hold, identityAt, modelOf } from "./weighted.js";

/** Settings of one engine process; all of them are part of what decides bits. */
export interface OnnxEngineOptions {
  /** Threads of the runtime and of the optimizer. */
  readonly threads: number;
  /** `keep`: activations of a layer stay for the backward pass; `recompute`: it computes each layer again from its input. */
  readonly activations?: "keep" | "recompute";
  /** Rows decoded together at most. */
  readonly maxRows?: number;
  /** Places of a training pack at most. */
  readonly packPlaces?: number;
}

/** Attention's cost of a place, relative to its products, per place of row length: 2 · 2 · T · width over 2 · parameters of a layer. */
const attentionShare = (model: Role["model"]): number => {
  const { width, heads, kvHeads, headDim, mlp } = model;
  return (2 * heads * headDim) / (width * (2 * heads * headDim + 2 * kvHeads * headDim + 3 * mlp));
};

/** Sequences of a call that run under the same weights. */
interface Part {
  readonly role: Role;
  readonly model: Model;
  readonly identity: string;
  /** Marks its weights as read, until the function returned is called. */
  readonly hold: () => () => void;
  readonly members: readonly number[];
  readonly sequences: readonly Sequence[];
  readonly want: ScoreWant;
  readonly states: PackState[];
}

/** A forward pass that waits for its derivatives. */
interface Kept {
  readonly parts: readonly Part[];
  readonly sequences: readonly Sequence[];
  readonly scores: readonly Scores[];
  readonly releases: readonly (() => void)[];
}

export class OnnxEngine implements Replica {
  readonly info: EngineInfo;
  readonly weights: Roles;
  private readonly kept = new Map<string, Kept>();
  private readonly counts = { prefillTokens: 0, sampledTokens: 0, scoredTokens: 0, trainedTokens: 0, slots: 0, busyMs: 0 };
  private nextHandle = 1;

  private constructor(
    private readonly sessions: Sessions,
    private readonly options: Required<OnnxEngineOptions>,
  ) {
    this.info = {
      name: "onnx",
      has: new Set(has),
      lacks,
      fingerprint: { runtime: runtimeVersion, node: process.version, arch: process.arch, processor: cpus()[0]?.model ?? "unknown", ...options },
    };
    this.weights = new Roles(this.info, { ...options, orthogonalise: orthogonaliser(sessions) });
  }

  /** Finds (or installs) ONNX Runtime; models are loaded by `weights.load`. */
  static async create({ threads, activations = "recompute", maxRows = 256, packPlaces = defaultPackPlaces }: OnnxEngineOptions): Promise<OnnxEngine> {
    return new OnnxEngine(new Sessions(await loadRuntime(), threads), { threads, activations, maxRows, packPlaces });
  }

  private readonly lookup = (ref: WeightsRef, place: string) => this.weights.resolve(ref, place).role.info;

  async *sample(requests: readonly SampleRequest[], options: SampleOptions = {}): AsyncGenerator<Sample> {
    options.signal?.throwIfAborted();
    checkSample(this.info, requests, this.lookup);
    // Rows of one graph have the same weights and the same number of listed tokens.
    const parts: { model: Model; identity: string; topK: number; rows: number; release: () => void; requests: { index: number; request: SampleRequest }[] }[] =
      [];
    requests.forEach((request, index) => {
      const { role, weighted } = this.weights.resolve(request.weights, `sample request ${index}`);
      const length = evenLength(request.context.ids.length + request.maxTokens);
      const restricted = request.truncation !== undefined;
      const rows = this.weights.rowsFor(role, { kind: "sample", sequences: Math.min(this.options.maxRows, requests.length), length, restricted });
      const { topK = 0, weights } = request;
      const model = modelOf(weighted, weights.scale);
      const own = { index, request };
      const part = parts.find((each) => each.model === model && each.topK === topK);
      if (part) {
        part.requests.push(own);
        part.rows = Math.min(part.rows, rows);
      } else parts.push({ model, identity: identityAt(weighted, weights.scale), topK, rows, release: hold(weighted), requests: [own] });
    });
    try {
      for (const { model, identity, rows, requests: own } of parts) {
        yield* this.timed(new Sampler(this.sessions, model, identity, rows, this.counts).run(own, options));
      }
    } finally {
      for (const { release } of parts) release();
    }
  }

  /** Adds the time between asking for an answer and having it to the busy time. */
  private async *timed(samples: AsyncGenerator<Sample>): AsyncGenerator<Sample> {
    try {
      for (;;) {
        const start = performance.now();
        const next = await samples.next();
        this.counts.busyMs += performance.now() - start;
        if (next.done) return;
        yield next.value;
      }
    } finally {
      await samples.return(undefined);
    }
  }

  async score(sequences: readonly Sequence[], want: ScoreWant = {}, { signal }: CallOptions = {}): Promise<Scores[]> {
    checkSequences(this.info, "score", sequences, want, this.lookup);
    const { scores } = await this.run(sequences, want, false, signal);
    this.counts.scoredTokens += sequences.reduce((sum, { response }) => sum + response.length, 0);
    return scores;
  }

  async forward(sequences: readonly Sequence[], want: Want = {}, { signal }: CallOptions = {}): Promise<Forward> {
    checkSequences(this.info, "forward", sequences, want, this.lookup);
    const { scores, parts } = await this.run(sequences, want, true, signal);
    const handle = `pass-${this.nextHandle++}`;
    this.kept.set(handle, { parts, sequences, scores, releases: parts.map((part) => part.hold()) });
    return { handle, scores };
  }

  async backward(handle: string, derivatives: readonly Derivatives[], set: ParameterSet): Promise<Backward> {
    const held = this.kept.get(handle);
    if (!held) throw unknownHandle("backward", handle);
    checkDerivatives(derivatives, held.scores);
    const role = set === "inputs" ? undefined : this.weights.trained(set, "backward");
    if (role) checkReceiver(set, roleOfSet(set, "backward"), held.sequences);
    this.release(handle);
    const start = performance.now();
    const inputs: Float32Array[] = [];
    for (const part of held.parts) {
      const own = part.members.map((i) => derivatives[i] as Derivatives);
      const { model } = part;
      const readout = new Readout(this.sessions, model, part.sequences, part.want);
      const gradients = role ? this.weights.gradientOf(role) : undefined;
      if (!role) for (const i of part.members) inputs[i] = new Float32Array(lengthOf(held.sequences[i] as Sequence) * part.role.model.width);
      for (const state of part.states) {
        await nextTurn();
        const dy = await readout.differentiate(state, own, gradients);
        if (!dy) continue;
        const dx = await backwardPack(this.sessions, model, state, dy, gradients);
        if (gradients && !gradients.adapterOnly) addEmbeddingGradient(model, state, part.sequences, dx, gradients);
        else if (!gradients) readInputs(part, state, dx, inputs);
      }
    }
    this.counts.trainedTokens += held.sequences.reduce((sum, { response }) => sum + response.length, 0);
    this.counts.busyMs += performance.now() - start;
    return role ? {} : { inputs };
  }

  async release(handle: string): Promise<void> {
    const held = this.kept.get(handle);
    if (!held) throw unknownHandle("release", handle);
    this.kept.delete(handle);
    for (const release of held.releases) release();
  }

  async step(request: StepRequest): Promise<StepResult> {
    checkStep(this.info, request);
    const start = performance.now();
    const result = await this.weights.step(request);
    this.counts.busyMs += performance.now() - start;
    return result;
  }

  async exportGradient(set: ParameterSet, file: string): Promise<boolean> {
    const start = performance.now();
    const written = this.weights.exportGradient(set, file);
    this.counts.busyMs += performance.now() - start;
    return written;
  }

  async importGradient(set: ParameterSet, files: readonly string[]): Promise<void> {
    const start = performance.now();
    this.weights.importGradient(set, files);
    this.counts.busyMs += performance.now() - start;
  }

  async usage(): Promise<Usage> {
    return { ...this.counts };
  }

  async close(): Promise<void> {
    this.kept.clear();
    this.weights.close();
    await this.sessions.close();
  }

  /** Runs all sequences, in parts of one model each; keeps what backward needs if asked to. */
  private async run(
    sequences: readonly Sequence[],
    want: ScoreWant,
    keep: boolean,
    signal: AbortSignal | undefined,
  ): Promise<{ scores: Scores[]; parts: Part[] }> {
    const start = performance.now();
    const scores: Writable<Scores>[] = [];
    const parts = this.parts(sequences, want);
    for (const part of parts) {
      const { model } = part;
      const readout = new Readout(this.sessions, model, part.sequences, part.want);
      const own = readout.blank(() => part.identity);
      const lengths = part.sequences.map(lengthOf);
      const longest = evenLength(Math.max(...lengths));
      const slots = evenLength(
        Math.min(
          lengths.reduce((a, b) => a + b, 0),
          Math.max(longest, this.options.packPlaces),
        ),
      );
      this.weights.refuseUnlessFits(
        part.role,
        keep && part.role.trainable
          ? { kind: "train", slots, length: longest, activations: this.options.activations }
          : { kind: "score", slots, length: longest },
      );
      for (const next of pack(lengths, this.options.packPlaces, attentionShare(part.role.model))) {
        await nextTurn();
        signal?.throwIfAborted();
        const state = await forwardPack(this.sessions, model, next, part.sequences, keep && this.options.activations === "keep");
        this.counts.slots += next.rows * next.length;
        await readout.read(state, own);
        if (want.hidden)
          for (const { sequence, row, start: at } of next.places)
            (own[sequence] as Writable<Scores>).hidden = hiddenOf(model, state, want.hidden, sequence, row, at);
        if (keep) part.states.push(state);
      }
      part.members.forEach((i, own_i) => (scores[i] = own[own_i] as Scores));
    }
    this.counts.busyMs += performance.now() - start;
    return { scores, parts };
  }

  private parts(sequences: readonly Sequence[], want: ScoreWant): Part[] {
    const byModel = new Map<Model, Pick<Part, "role" | "identity" | "hold"> & { readonly members: number[] }>();
    sequences.forEach(({ weights }, i) => {
      const { role, weighted } = this.weights.resolve(weights, `sequence ${i}`);
      const model = modelOf(weighted, weights.scale);
      const part = byModel.get(model) ?? { role, identity: identityAt(weighted, weights.scale), hold: () => hold(weighted), members: [] };
      part.members.push(i);
      byModel.set(model, part);
    });
    return [...byModel].map(([model, { members, ...part }]) => ({
      ...part,
      model,
      members,
      sequences: members.map((i) => sequences[i] as Sequence),
      want: want.targets ? { ...want, targets: members.map((i) => want.targets?.[i]) } : want,
      states: [],
    }));
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const lengthOf = ({ context, response }: Sequence): number => context.ids.length + response.length;

/** Copies the gradient of each sequence's embeddings out of a pack. */
function readInputs(part: Part, state: PackState, dx: Float32Array, inputs: Float32Array[]): void {
  const { width } = part.role.model;
  for (const { sequence, row, start } of state.pack.places) {
    const from = (row * state.pack.length + start) * width;
    inputs[part.members[sequence] as number] = dx.slice(from, from + (state.lengths[sequence] as number) * width);
  }
}
