/**
 * An engine on a server of the Tinker protocol (SkyRL, or hosted): models are adapters on the server's base. A loss is
 * computed here, from a forward pass; its derivatives go out as importance sampling at ratio 1, whose gradient is theirs:
 *
 *     loss = -sum over s, t of r A,  r = exp(logp - q),  q = the log-prob just computed,  A = -dL/dlogp
 *
 * so that any loss of token log-probs is trained, at one further forward pass. Gradients are sent with the step.
 */
import { setMaxListeners } from "node:events";
import { ArgumentError, DivergenceError } from "../../core/errors.js";
import { checkDerivatives, checkReceiver, checkSample, checkSequences, checkStep } from "../check.js";
import type {
  Backward,
  CallOptions,
  Derivatives,
  Engine,
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
import { cutSample } from "../cut.js";
import { unknownHandle } from "../refuse.js";
import { allFinite, forwardData, trainData } from "./datum.js";
import type { ServerLink } from "./link.js";
import type { Adam } from "./model.js";
import { type Role, ServerRoles, stepped, type Waiting, waitingOf } from "./roles.js";
import { complete, encodeSample, encodeScore, groupsOf, promptLogp, readSample, type SampleGroup, sampleOf } from "./sample.js";
import { Arrivals, Slots } from "./stream.js";
import { type Datum, responseLength } from "./wire.js";

interface Held {
  readonly sequences: readonly Sequence[];
  readonly passed: Passed;
}

/** By sequence: its scores, and what was sent of it where anything was. */
interface Passed {
  readonly scores: Scores[];
  readonly data: (Datum | undefined)[];
}

export class TinkerEngine implements Engine {
  readonly info: EngineInfo;
  readonly weights: ServerRoles;
  private readonly kept = new Map<string, Held>();
  private readonly slots = new Slots(64);
  private nextHandle = 1;
  private counts = { prefillTokens: 0, sampledTokens: 0, scoredTokens: 0, trainedTokens: 0, slots: 0, busyMs: 0 };
  private busy = { calls: 0, since: 0 };
  private closing: Promise<void> | undefined;

  constructor(private readonly link: ServerLink) {
    this.info = link.info;
    this.weights = new ServerRoles(link);
  }

  private readonly lookup = (ref: WeightsRef, place: string) => this.weights.resolve(ref, place).info;

  async *sample(requests: readonly SampleRequest[], { signal, onToken }: SampleOptions = {}): AsyncGenerator<Sample> {
    signal?.throwIfAborted();
    checkSample(this.info, requests, this.lookup);
    const arrivals = new Arrivals<Sample>();
    const stop = new AbortController();
    setMaxListeners(0, stop.signal); // Every request of the call listens to it.
    const cancel = (): void => stop.abort(signal?.reason);
    signal?.addEventListener("abort", cancel, { once: true });
    const work = groupsOf(requests).map((group) => this.slots.run(() => this.drawn(group, requests, arrivals, stop.signal)));
    Promise.all(work).then(
      () => arrivals.end(),
      (error: unknown) => arrivals.fail(error),
    );
    try {
      for await (const sample of arrivals) {
        if (signal?.aborted) return;
        yield told(sample, onToken);
      }
    } catch (error) {
      // What a cancelled call had not heard of is left out.
      if (!signal?.aborted) throw error;
    } finally {
      signal?.removeEventListener("abort", cancel);
      stop.abort(new Error("nobody reads the answers"));
    }
  }

  private async drawn(group: SampleGroup, requests: readonly SampleRequest[], arrivals: Arrivals<Sample>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const role = this.weights.resolve(group.request.weights, "sample");
    const { place } = this.link;
    const { result, weights } = await this.working(() =>
      this.drawing(role, async (source) => ({
        result: await this.link.connection.operate({
          ...encodeSample(group, source, this.link.multiple),
          what: "asample",
          repeatable: true,
          signal,
          read: (answer) => {
            const read = readSample(answer);
            return read !== undefined && complete(read, group, this.link.multiple) ? read : undefined;
          },
        }),
        weights: role.identity,
      })),
    );
    this.count({ prefillTokens: group.request.context.ids.length, slots: group.request.context.ids.length });
    for (const [answer, indices] of group.indices.entries()) {
      for (const index of indices) {
        const sample = sampleOf(result.sequences[answer] as (typeof result.sequences)[number], index, requests[index] as SampleRequest, {
          vocabulary: role.info.vocabulary,
          weights,
          place,
        });
        this.count({ sampledTokens: sample.ids.length, slots: sample.ids.length });
        arrivals.put(sample);
      }
    }
  }

  /** With what names the weights of a role to a sampler. */
  private drawing<T>({ trainee }: Role, act: (source: object) => Promise<T>): Promise<T> {
    return trainee === undefined ? act({ base_model: this.link.baseModel }) : trainee.sampling((path) => act({ model_path: path }));
  }

  async score(sequences: readonly Sequence[], want: ScoreWant = {}, { signal }: CallOptions = {}): Promise<Scores[]> {
    signal?.throwIfAborted();
    checkSequences(this.info, "score", sequences, want, this.lookup);
    const { scores } = await this.run(sequences, signal);
    this.count({ scoredTokens: responseTokens(sequences) });
    return scores;
  }

  async forward(sequences: readonly Sequence[], want: Want = {}, { signal }: CallOptions = {}): Promise<Forward> {
    signal?.throwIfAborted();
    checkSequences(this.info, "forward", sequences, want, this.lookup);
    const passed = await this.run(sequences, signal);
    const handle = `pass-${this.nextHandle++}`;
    this.kept.set(handle, { sequences, passed });
    return { handle, scores: passed.scores };
  }

  async backward(handle: string, derivatives: readonly Derivatives[], set: ParameterSet): Promise<Backward> {
    const held = this.kept.get(handle);
    if (!held) throw unknownHandle("backward", handle);
    const { sequences, passed } = held;
    const { data, scores } = passed;
    checkDerivatives(derivatives, scores);
    const role = this.weights.trained(set, "backward");
    checkReceiver(set, role.name, sequences);
    this.kept.delete(handle);
    const [first] = scores;
    if (first !== undefined && first.weights !== role.identity) {
      const cause = `its forward ran under ${first.weights}, and the weights are ${role.identity} now`;
      throw new ArgumentError({ place: "backward", cause, mend: "run forward again" });
    }
    role.waiting.push(...waitingOf(data, scores, derivatives));
    this.count({ trainedTokens: responseTokens(sequences) });
    return {};
  }

  async release(handle: string): Promise<void> {
    if (!this.kept.delete(handle)) throw unknownHandle("release", handle);
  }

  async step(request: StepRequest): Promise<StepResult> {
    checkStep(this.info, request);
    const role = this.weights.trained(request.set, "step");
    const waiting = role.waiting.splice(0);
    if (waiting.length === 0) {
      throw new ArgumentError({ place: `step of ${role.name}`, cause: "no gradient was accumulated", mend: "run a backward pass before the step" });
    }
    const skipped = (): StepResult => {
      return { gradNorm: Number.NaN, clipped: false, skipped: { parameter: "the adapter", count: ++role.skipped }, weights: role.identity };
    };
    const acting = waiting.filter(acts);
    const data = trainData(acting.length > 0 ? acting : waiting.slice(0, 1), this.link.reduction);
    // One number that is none would poison the adapter, whatever the rate.
    if (!data.every(({ policy }) => policy !== undefined && allFinite(policy.advantages))) return skipped();
    const outcome = await this.working(() => role.trainee.step([{ loss: "importance_sampling", data }], adamOf(request)));
    if (outcome === "not finite") return skipped();
    this.count({ slots: data.reduce((sum, { ids }) => sum + ids.length - 1, 0) });
    role.identity = stepped(role.identity);
    return { gradNorm: outcome.gradNorm ?? Number.NaN, clipped: false, weights: role.identity };
  }

  async usage(): Promise<Usage> {
    return { ...this.counts, busyMs: this.counts.busyMs + (this.busy.calls > 0 ? performance.now() - this.busy.since : 0) };
  }

  close(): Promise<void> {
    this.kept.clear();
    this.closing ??= this.weights.close(10_000).finally(() => this.link.close());
    return this.closing;
  }

  /** Log-probs by the trainer for roles with a model, by the sampler for the base itself. */
  private run(sequences: readonly Sequence[], signal: AbortSignal | undefined): Promise<Passed> {
    return this.working(async () => {
      const scores = new Array<Scores>(sequences.length);
      const data = new Array<Datum | undefined>(sequences.length);
      const byRole = new Map<Role, number[]>();
      for (const [i, { weights, response }] of sequences.entries()) {
        const role = this.weights.resolve(weights, `sequence ${i}`);
        const indices = byRole.get(role) ?? [];
        byRole.set(role, indices);
        if (response.length === 0) scores[i] = { logp: new Float64Array(0), weights: role.identity };
        else indices.push(i);
      }
      for (const [role, indices] of byRole) {
        if (indices.length === 0) continue;
        const own = forwardData(indices.map((i) => sequences[i] as Sequence));
        const { logps, weights } = await this.logps(role, own, signal);
        for (const [n, i] of indices.entries()) {
          scores[i] = { logp: this.finite(logps[n] as Float64Array, role), weights };
          data[i] = own[n];
        }
        this.count({ slots: own.reduce((sum, { ids }) => sum + ids.length, 0) });
      }
      return { scores, data };
    });
  }

  private async logps(role: Role, data: readonly Datum[], signal: AbortSignal | undefined): Promise<{ logps: Float64Array[]; weights: string }> {
    if (role.trainee) {
      return role.trainee.reading(async (model) => {
        const weights = role.identity;
        return { logps: await model.forward(data, signal), weights };
      });
    }
    const logps = data.map(({ ids, from }) =>
      this.slots.run(async () => {
        const all = await this.link.connection.operate({
          ...encodeScore(ids, { base_model: this.link.baseModel }),
          what: "asample",
          repeatable: true,
          ...(signal ? { signal } : {}),
          read: (answer) => {
            const read = readSample(answer);
            return read && promptLogp(read, ids.length);
          },
        });
        return all.subarray(from);
      }),
    );
    return { logps: await Promise.all(logps), weights: role.identity };
  }

  private finite(logp: Float64Array, { name }: Role): Float64Array {
    if (allFinite(logp)) return logp;
    const at = logp.findIndex((x) => !Number.isFinite(x));
    throw new DivergenceError({
      place: this.link.place,
      cause: `the log-prob of response token ${at} under ${name} is ${logp[at]}`,
      mend: "go on from the last checkpoint with a lower learning rate",
      data: { reason: "non-finite" },
    });
  }

  private async working<T>(act: () => Promise<T>): Promise<T> {
    if (this.busy.calls++ === 0) this.busy.since = performance.now();
    try {
      return await act();
    } finally {
      if (--this.busy.calls === 0) this.counts.busyMs += performance.now() - this.busy.since;
    }
  }

  private count(more: Partial<Usage>): void {
    for (const key of Object.keys(more) as (keyof Usage)[]) this.counts[key] += more[key] as number;
  }
}

/** Whether a sequence has any gradient: the others would be passed through the model for nothing. */
function acts({ datum, dLogp }: Waiting): boolean {
  for (let t = 0; t < responseLength(datum); t++) if (dLogp[t] !== 0) return true;
  return false;
}

const responseTokens = (sequences: readonly Sequence[]): number => sequences.reduce((sum, { response }) => sum + response.length, 0);

/** Checked: of the rules, servers make Adam's steps alone. */
function adamOf({ update }: StepRequest): Adam {
  const { rate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0 } = update as Extract<StepRequest["update"], { rule: "adamw" }>;
  return { learning_rate: rate, beta1, beta2, eps: epsilon, weight_decay: weightDecay };
}

/** A server tells no token before the last: its caller hears of them now, and ends the response where it would have. */
function told(sample: Sample, onToken: SampleOptions["onToken"]): Sample {
  if (!onToken) return sample;
  const end = sample.ids.findIndex((id) => onToken(sample.index, id));
  return end < 0 || (end === sample.ids.length - 1 && sample.stop === "eos") ? sample : cutSample(sample, end + 1);
}
