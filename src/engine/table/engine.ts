/**
 * The table engine: softmax tables and linear softmax in float64, in process, with exact distributions and gradients.
 * It carries tabular tasks, control problems and every test of an estimator.
 */
import { checkDerivatives, checkReceiver, checkSample, checkSequences, checkStep, roleOfSet } from "../check.js";
import type {
  Backward,
  CallOptions,
  Capability,
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
import { sumNumbers, writeNumbers } from "../flat-file.js";
import { unknownHandle } from "../refuse.js";
import type { Replica } from "../replica.js";
import { logSoftmax } from "../values.js";
import { logitsGradient, type Pass, report } from "./report.js";
import { Roles } from "./roles.js";
import { Drawing } from "./sample.js";

const has: readonly Capability[] = [
  "sample",
  "sample.forced",
  "sample.top-k",
  "sample.greedy",
  "sample.truncation",
  "sample.temperature",
  "sample.entropy",
  "score",
  "score.top-k",
  "score.targets",
  "score.hidden",
  "score.values",
  "score.full",
  "score.temperature",
  "score.entropy",
  "train",
  "train.entropy",
  "train.targets",
  "train.values",
  "train.inputs",
  "optimizer.sgd",
  "optimizer.adamw",
  "optimizer.clip",
  "optimizer.groups",
  "optimizer.moments",
  "optimizer.reset",
  "roles",
  "snapshots",
  "weights.tensors",
  "weights.perturb",
  "input-rows",
  "save",
  "exact",
];

const noCall = "the engine contract has no call for it yet";
const noLayers = "a table has neither layers nor attention";

const lacks: EngineInfo["lacks"] = {
  "sample.stop-strings": "a table has no tokenizer",
  "sample.continue": noCall,
  "sample.gumbel": noCall,
  "score.sum-squares": noCall,
  "score.head-gradient": noCall,
  "score.divergence": noCall,
  "score.attention": noLayers,
  "score.logit-lens": noLayers,
  "score.ablate": noLayers,
  "optimizer.muon": "it orthogonalises hidden matrices, and a table has none",
  "weights.combine": noCall,
  adapters: "a table has no low-rank part",
  media: "a table sees token ids and input rows alone",
};

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class TableEngine implements Replica {
  readonly info: EngineInfo = { name: "table", has: new Set(has), lacks, fingerprint: { node: process.version, arch: process.arch } };
  readonly weights = new Roles(this.info);
  private readonly kept = new Map<string, { passes: readonly Pass[]; want: Want; scores: readonly Scores[] }>();
  private nextHandle = 1;
  private counts = { prefillTokens: 0, sampledTokens: 0, scoredTokens: 0, trainedTokens: 0, slots: 0, busyMs: 0 };

  private readonly lookup = (ref: WeightsRef, place: string) => {
    const { model } = this.weights.resolve({ role: ref.role, ...(ref.at === undefined ? {} : { at: ref.at }) }, place);
    return model.info(ref.role, true);
  };

  async *sample(requests: readonly SampleRequest[], { signal, onToken }: SampleOptions = {}): AsyncGenerator<Sample> {
    signal?.throwIfAborted();
    checkSample(this.info, requests, this.lookup);
    const prefixes = new Set<string>();
    const all = requests.map((request, index) => {
      const { model, weights } = this.weights.resolve(request.weights, `sample request ${index}`);
      const { ids, rows } = request.context;
      const prefix = [weights.identity, ids.join(), rows && [rows.mode, rows.positions.join(), rows.rows.join()].join(";")].join(";");
      if (!prefixes.has(prefix)) this.count({ prefillTokens: ids.length, slots: ids.length });
      prefixes.add(prefix);
      return new Drawing(index, request, model, weights);
    });
    let active = all;
    while (active.length > 0) {
      await nextTurn();
      if (signal?.aborted) break;
      const start = performance.now();
      const finished = new Set(active.filter((drawing) => drawing.advance(onToken)));
      this.count({ slots: active.length, busyMs: performance.now() - start });
      active = active.filter((drawing) => !finished.has(drawing));
      for (const drawing of finished) {
        this.count({ sampledTokens: drawing.drawn });
        yield drawing.answer();
      }
    }
    for (const drawing of active) {
      this.count({ sampledTokens: drawing.drawn });
      yield drawing.answer();
    }
  }

  async score(sequences: readonly Sequence[], want: ScoreWant = {}, { signal }: CallOptions = {}): Promise<Scores[]> {
    signal?.throwIfAborted();
    checkSequences(this.info, "score", sequences, want, this.lookup);
    const result = this.run(sequences).map((pass, index) => report(pass, want, index));
    this.count({ scoredTokens: sequences.reduce((sum, { response }) => sum + response.length, 0) });
    return result;
  }

  async forward(sequences: readonly Sequence[], want: Want = {}, { signal }: CallOptions = {}): Promise<Forward> {
    signal?.throwIfAborted();
    checkSequences(this.info, "forward", sequences, want, this.lookup);
    const passes = this.run(sequences);
    const scores = passes.map((pass, index) => report(pass, want, index));
    const handle = `pass-${this.nextHandle++}`;
    this.kept.set(handle, { passes, want, scores });
    return { handle, scores };
  }

  async backward(handle: string, derivatives: readonly Derivatives[], set: ParameterSet): Promise<Backward> {
    const held = this.kept.get(handle);
    if (!held) throw unknownHandle("backward", handle);
    const { passes, want, scores } = held;
    checkDerivatives(derivatives, scores);
    if (set !== "inputs")
      checkReceiver(
        set,
        roleOfSet(set, "backward"),
        passes.map(({ sequence }) => sequence),
      );
    const role = set === "inputs" ? undefined : this.weights.trained(set, "backward");
    const gradient = role && this.weights.gradientOf(role);
    this.kept.delete(handle);
    const start = performance.now();
    const inputs = passes.map((pass, index) => {
      const { model, weights, sequence, features, distributions } = pass;
      const { context, response } = sequence;
      const rows = new Float32Array(gradient ? 0 : (context.ids.length + response.length) * model.width);
      features.forEach((here, t) => {
        const value = derivatives[index].dValue?.[t] ?? 0;
        const logits = t < response.length ? logitsGradient(pass, t, derivatives[index], want, index) : new Float64Array(model.vocabulary);
        if (value === 0 && logits.every((x) => x === 0)) return;
        if (gradient) model.addWeightGradient(gradient, here, { logits, value });
        else rows.set(model.inputGradient(weights.tensors, { logits, value }), (context.ids.length - 1 + t) * model.width);
      });
      this.count({ trainedTokens: response.length, slots: distributions.length });
      return rows;
    });
    this.count({ busyMs: performance.now() - start });
    return gradient ? {} : { inputs };
  }

  async release(handle: string): Promise<void> {
    if (!this.kept.delete(handle)) throw unknownHandle("release", handle);
  }

  async step(request: StepRequest): Promise<StepResult> {
    checkStep(this.info, request);
    return this.weights.step(request);
  }

  async exportGradient(set: ParameterSet, file: string): Promise<boolean> {
    const { gradient } = this.weights.trained(set, "exportGradient");
    if (gradient) writeNumbers(file, gradient.values());
    return gradient !== undefined;
  }

  async importGradient(set: ParameterSet, files: readonly string[]): Promise<void> {
    const role = this.weights.trained(set, "importGradient");
    role.gradient = undefined;
    if (files.length > 0) sumNumbers(files, [...this.weights.gradientOf(role).values()]);
  }

  async usage(): Promise<Usage> {
    return { ...this.counts };
  }

  async close(): Promise<void> {
    this.kept.clear();
  }

  private run(sequences: readonly Sequence[]): Pass[] {
    const start = performance.now();
    const passes = sequences.map((sequence, index): Pass => {
      const { context, response, temperature } = sequence;
      const { model, weights } = this.weights.resolve(sequence.weights, `sequence ${index}`);
      const ids = [...context.ids, ...response];
      const features = Array.from({ length: response.length + 1 }, (_, t) => model.features(context, ids, context.ids.length - 1 + t));
      const distributions = features.slice(0, -1).map((here) => logSoftmax(model.logits(weights.tensors, here), temperature));
      this.count({ slots: ids.length });
      return { sequence, model, weights, features, distributions };
    });
    this.count({ busyMs: performance.now() - start });
    return passes;
  }

  private count(more: Partial<Usage>): void {
    for (const key of Object.keys(more) as (keyof Usage)[]) this.counts[key] += more[key]!;
  }
}
