/**
 * Several equal engines as one. Sampling, scoring, forward and backward are divided over the workers (split.ts);
 * for a step every worker takes the sum of all gradients, added in worker order, from files, and makes the same step. No
 * byte depends on timing; another number of workers sums gradients in another order, which changes their last bits.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ArgumentError, EngineError } from "../../core/errors.js";
import { checkDerivatives, checkReceiver, checkSample, checkSequences, type Lookup, roleOfSet } from "../check.js";
import type {
  Backward,
  CallOptions,
  Derivatives,
  Engine,
  EngineInfo,
  Forward,
  ModelInfo,
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
  Weights,
  WeightsRef,
} from "../contract.js";
import { unknownHandle } from "../refuse.js";
import type { Replica } from "../replica.js";
import { linkedController, merge } from "./merge.js";
import { gathered, type Part, pick, renumbered, wantOf, wholeError } from "./parts.js";
import { splitRequests, splitSequences } from "./split.js";

/** A forward pass: the handle of each part, and what a backward pass is checked against. */
interface Pass {
  readonly parts: readonly (Part & { readonly handle: string })[];
  readonly sequences: readonly Sequence[];
  readonly scores: readonly Scores[];
}

export class PoolEngine implements Engine {
  readonly info: EngineInfo;
  private readonly primary: Replica;
  private readonly passes = new Map<string, Pass>();
  private ownFolder = false;
  private nextPass = 1;
  private readonly models = new Map<string, Promise<ModelInfo>>();
  /** Changes of the weights happen one after another and before what is called later, so that all copies stay equal. */
  private change: Promise<unknown> = Promise.resolve();
  /** Settles when all calls made so far have passed their checks. */
  private beginnings: Promise<void> = Promise.resolve();
  /** Set once a change reached some workers only: from then on no answer would be that of one model. */
  private broken: { readonly error: unknown } | undefined;

  /** `workers` must be equal: the same engine with the same models, loaded through this pool or before. */
  constructor(
    private readonly workers: readonly Replica[],
    /** Where gradients are exchanged, if somebody else removes it; else one is made with the first step. */
    private folder?: string,
  ) {
    const [primary] = workers;
    if (!primary) throw new ArgumentError({ place: "engine pool", cause: "it has no workers", mend: "give at least one" });
    this.primary = primary;
    const { name, has, lacks, fingerprint } = primary.info;
    this.info = { name, has, lacks, fingerprint: { ...fingerprint, workers: workers.length } };
  }

  readonly weights: Weights = {
    load: (request) => this.reloaded(request.role, (worker) => worker.weights.load(request)),
    unload: (role) => this.reloaded(role, (worker) => worker.weights.unload(role)),
    info: (role) => this.onPrimary((worker) => worker.weights.info(role)),
    snapshot: (role, name) => this.onAll((worker) => worker.weights.snapshot(role, name)),
    restore: (role, name) => this.onAll((worker) => worker.weights.restore(role, name)),
    dropSnapshot: (role, name) => this.onAll((worker) => worker.weights.dropSnapshot(role, name)),
    read: (ref, names) => this.onPrimary((worker) => worker.weights.read(ref, names)),
    write: (role, tensors) => this.onAll((worker) => worker.weights.write(role, tensors)),
    readGradient: (set, names) =>
      this.inTurn(async () => {
        if (set !== "inputs" && this.workers.length > 1) {
          // From here on the primary has the sum, and the others nothing.
          const files = await this.gradientFiles(set);
          await this.equally(this.workers.map((worker, k) => worker.importGradient(set, k === 0 ? files : [])));
        }
        return this.primary.weights.readGradient(set, names);
      }),
    zeroGradient: (set) => this.onAll((worker) => worker.weights.zeroGradient(set)),
    saveOptimizer: (set, file) => this.onPrimary((worker) => worker.weights.saveOptimizer(set, file)),
    loadOptimizer: (set, file) => this.onAll((worker) => worker.weights.loadOptimizer(set, file)),
    resetOptimizer: (set) => this.onAll((worker) => worker.weights.resetOptimizer(set)),
    merge: (role) => this.reloaded(role, (worker) => worker.weights.merge(role)),
    resetAdapter: (role, seed) => this.onAll((worker) => worker.weights.resetAdapter(role, seed)),
    save: (ref, folder, options) => this.onPrimary((worker) => worker.weights.save(ref, folder, options)),
  };

  async *sample(requests: readonly SampleRequest[], options?: SampleOptions): AsyncGenerator<Sample> {
    await this.begin(requests, (lookup) => checkSample(this.info, requests, lookup));
    const { controller, unlink } = linkedController(options?.signal);
    const { signal } = controller;
    const onToken = options?.onToken;
    const streams = this.parts(splitRequests(requests, this.workers.length)).map(({ worker, indices }) =>
      renumbered(worker.sample(pick(requests, indices), { signal, ...(onToken && { onToken: (i, id) => onToken(indices[i], id) }) }), indices),
    );
    try {
      yield* merge(streams, () => controller.abort());
    } finally {
      unlink();
    }
  }

  async score(sequences: readonly Sequence[], want?: ScoreWant, options?: CallOptions): Promise<Scores[]> {
    const parts = this.parts(splitSequences(sequences, this.workers.length));
    await this.begin(sequences, (lookup) => checkSequences(this.info, "score", sequences, want ?? {}, lookup));
    const answers = await this.together(parts, options, ({ worker, indices }, signal) =>
      worker.score(pick(sequences, indices), wantOf(want, indices), { signal }),
    );
    return gathered(parts, answers, sequences.length);
  }

  async forward(sequences: readonly Sequence[], want?: Want, options?: CallOptions): Promise<Forward> {
    const parts = this.parts(splitSequences(sequences, this.workers.length));
    await this.begin(sequences, (lookup) => checkSequences(this.info, "forward", sequences, want ?? {}, lookup));
    const answers = await this.together(
      parts,
      options,
      ({ worker, indices }, signal) => worker.forward(pick(sequences, indices), wantOf(want, indices), { signal }),
      ({ worker }, { handle }) => worker.release(handle),
    );
    const handle = `pass-${this.nextPass++}`;
    const lists = answers.map((answer) => answer.scores);
    const scores = gathered(parts, lists, sequences.length);
    this.passes.set(handle, { parts: parts.map((part, k) => ({ ...part, handle: answers[k].handle })), sequences, scores });
    return { handle, scores };
  }

  async backward(handle: string, derivatives: readonly Derivatives[], set: ParameterSet): Promise<Backward> {
    const pass = this.pass("backward", handle);
    const { parts, sequences, scores } = pass;
    checkDerivatives(derivatives, scores);
    if (set !== "inputs") checkReceiver(set, roleOfSet(set, "backward"), sequences);
    this.passes.delete(handle);
    await this.ready();
    const calls = parts.map(({ worker, handle: part, indices }) => worker.backward(part, pick(derivatives, indices), set));
    const answers = await this.equally(calls).catch((error: unknown) => {
      if (!this.broken) this.passes.set(handle, pass); // all refused it, and still have it
      throw error;
    });
    if (set !== "inputs") return {};
    const lists = answers.map(({ inputs }) => inputs ?? []);
    return { inputs: gathered(parts, lists, sequences.length) };
  }

  async release(handle: string): Promise<void> {
    const { parts } = this.pass("release", handle);
    this.passes.delete(handle);
    await Promise.all(parts.map(({ worker, handle: part }) => worker.release(part)));
  }

  step(request: StepRequest): Promise<StepResult> {
    return this.inTurn(async () => {
      const { set } = request;
      if (set !== "inputs" && this.workers.length > 1) {
        const files = await this.gradientFiles(set);
        await this.equally(this.workers.map((worker) => worker.importGradient(set, files)));
      }
      // Every worker makes the step, from the same sum: that costs less than one step whose weights are then passed on.
      return (await this.equally(this.workers.map((worker) => worker.step(request))))[0];
    });
  }

  async usage(): Promise<Usage> {
    const [first, ...others] = await Promise.all(this.workers.map((worker) => worker.usage()));
    return others.reduce<Usage>(
      (a, b) => ({
        prefillTokens: a.prefillTokens + b.prefillTokens,
        sampledTokens: a.sampledTokens + b.sampledTokens,
        scoredTokens: a.scoredTokens + b.scoredTokens,
        trainedTokens: a.trainedTokens + b.trainedTokens,
        slots: a.slots + b.slots,
        busyMs: a.busyMs + b.busyMs,
      }),
      first as Usage,
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.close()));
    if (this.folder && this.ownFolder) rmSync(this.folder, { recursive: true, force: true });
  }

  private pass(call: string, handle: string): Pass {
    const pass = this.passes.get(handle);
    if (!pass) throw unknownHandle(call, handle);
    return pass;
  }

  /** Has every worker write its gradient; the files of those that have one, in worker order, whatever is ready first. */
  private async gradientFiles(set: ParameterSet): Promise<string[]> {
    if (this.folder === undefined) {
      this.folder = mkdtempSync(join(tmpdir(), "touchstone-"));
      this.ownFolder = true;
    }
    const { folder } = this;
    const files = this.workers.map((_, k) => join(folder, `gradient-${k}`));
    const written = await Promise.all(this.workers.map((worker, k) => worker.exportGradient(set, files[k])));
    return files.filter((_, k) => written[k]);
  }

  private parts(split: readonly (readonly number[])[]): Part[] {
    const parts = split.flatMap((indices, k) => (indices.length > 0 ? [{ worker: this.workers[k], indices }] : []));
    // A call about nothing still reaches an engine, which may have something to say of it.
    return parts.length > 0 ? parts : [{ worker: this.primary, indices: [] }];
  }

  /** Runs the parts at the same time. When one fails the others are cancelled, their results are undone, and its error is thrown. */
  private async together<P extends Part, R>(
    parts: readonly P[],
    options: CallOptions | undefined,
    run: (part: P, signal: AbortSignal) => Promise<R>,
    undo?: (part: P, result: R) => Promise<void>,
  ): Promise<R[]> {
    const { controller, unlink } = linkedController(options?.signal);
    const errors: unknown[] = [];
    const results = await Promise.all(
      parts.map(async (part): Promise<R | undefined> => {
        try {
          return await run(part, controller.signal);
        } catch (error) {
          errors.push(wholeError(error, part.indices));
          controller.abort();
          return undefined;
        }
      }),
    );
    unlink();
    if (errors.length > 0) {
      await Promise.allSettled(parts.map(async (part, k) => results[k] !== undefined && (await undo?.(part, results[k]))));
      throw errors[0];
    }
    return results as R[];
  }

  /** Waits for earlier changes and checks a request; later changes wait for that, so that calls keep the order in which they were made. */
  private begin(items: readonly { readonly weights: WeightsRef }[], check: (lookup: Lookup) => void): Promise<void> {
    const beginning = this.ready().then(async () => check(await this.lookup(items)));
    this.beginnings = Promise.allSettled([this.beginnings, beginning]).then(() => undefined);
    return beginning;
  }

  /** What requests are checked against as a whole, before any worker begins. */
  private async lookup(items: readonly { readonly weights: WeightsRef }[]): Promise<Lookup> {
    const known = new Map<string, ModelInfo>();
    for (const role of new Set(items.map(({ weights }) => weights.role))) {
      const info = this.models.get(role) ?? this.primary.weights.info(role);
      this.models.set(role, info);
      try {
        known.set(role, await info);
      } catch (error) {
        this.models.delete(role);
        throw error;
      }
    }
    return ({ role }) => known.get(role) as ModelInfo;
  }

  private reloaded<T>(role: string, run: (worker: Replica) => Promise<T>): Promise<T> {
    return this.onAll(run).finally(() => this.models.delete(role));
  }

  private async onPrimary<T>(run: (worker: Replica) => Promise<T>): Promise<T> {
    await this.ready();
    return run(this.primary);
  }

  private onAll<T>(run: (worker: Replica) => Promise<T>): Promise<T> {
    return this.inTurn(async () => (await this.equally(this.workers.map(run)))[0]);
  }

  /** The results of a change on several workers. What all refuse leaves them equal; what only some refuse does not. */
  private async equally<T>(changes: readonly Promise<T>[]): Promise<T[]> {
    const outcomes = await Promise.allSettled(changes);
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    if (refused.length === 0) return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<T>).value);
    const [{ reason }] = refused;
    if (refused.length < outcomes.length) this.broken ??= { error: reason };
    throw reason;
  }

  private inTurn<T>(run: () => Promise<T>): Promise<T> {
    const earlier = this.beginnings;
    const result = this.ready().then(async () => {
      await earlier;
      return run();
    });
    this.change = result.catch(() => undefined);
    return result;
  }

  private async ready(): Promise<void> {
    await this.change;
    if (this.broken) {
      const { error } = this.broken;
      if (error instanceof EngineError) throw error;
      throw new EngineError({ place: "engine pool", cause: `its workers are no longer equal since one failed (${String(error)})`, mend: "start a new engine" });
    }
  }
}
