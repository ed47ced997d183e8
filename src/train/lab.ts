/** What the slots of a method may use: the lab of one step, with its tokens booked and its scores memoised. */
import { ConfigError } from "../core/errors.js";
import { type Context, type Message, type Problem, plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Trajectory } from "../core/trajectory.js";
import { unscored, type Verdict } from "../core/verdict.js";
import type { Engine, Sample, SampleRequest, Scores, ScoreWant, Sequence, WeightsRef } from "../engine/contract.js";
import type { Booking, Lab, ProblemSource, Request, Settings, Step } from "../methods/contract.js";
import { type Resolved, withholdsReferences } from "../methods/resolve.js";
import { coalesced, type SampleCall } from "../rollout/coalesce.js";
import { draw } from "../rollout/draw.js";
import type { EnvironmentHost } from "../rollout/environment.js";
import { drawEpisodes, episodeKeys } from "../rollout/episodes.js";
import { Rounds } from "../rollout/rounds.js";
import { withStopStrings } from "../rollout/stop-strings.js";
import type { AnswerClasses } from "../verify/contract.js";
import { refuseTruncated } from "./collect.js";
import type { Ledger } from "./ledger.js";
import { withheldSource } from "./problem-source.js";

/** The same for all steps of a run. */
export interface LabParts {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly settings: Settings;
  readonly problems: ProblemSource;
  /** Contexts of the run's own problems, as checked and, where asked for, truncated before step 1. */
  readonly contexts: ReadonlyMap<string, Context>;
  readonly roles: ReadonlySet<string>;
  readonly seed: number;
  readonly judge: (problem: Problem, response: string, truncated: boolean) => Promise<Verdict>;
  /** Of the verifier that judges, where it has classes. */
  readonly answers?: AnswerClasses;
  /** Present where an answer is a conversation. */
  readonly environment?: EnvironmentHost;
  readonly ledger: Ledger;
  readonly method: Resolved;
  readonly policyVersion: () => number;
  /** Of batches that are drawn ahead. */
  readonly ahead?: {
    /** The weights that stand for the policy's present ones. */
    readonly policy: WeightsRef;
    /** Further roles whose weights change while such a batch is drawn. */
    readonly changing: ReadonlySet<string>;
    readonly signal: AbortSignal;
    /** Called when problems were proposed, before anything is drawn of them. */
    readonly onProposed: () => void;
  };
}

export const policy: WeightsRef = { role: "policy" };

/** What the slots of one step share. */
interface Shared {
  readonly sample: SampleCall;
  readonly memo: Map<string, Scores>;
  readonly proposed: Problem[];
  readonly drawn: Trajectory[];
}

export class StepLab implements Step {
  readonly settings: Settings;
  readonly problems: ProblemSource;
  readonly conversational: boolean;
  readonly answers?: AnswerClasses;
  readonly engine: Lab["engine"];
  readonly roles: ReadonlySet<string>;
  readonly policy: WeightsRef;
  readonly weights: Lab["weights"];
  readonly tokenizer: Tokenizer;
  private readonly shared: Shared;
  private readonly withheld: boolean;
  private readonly rounds = new Rounds((requests) => this.sample(requests));

  constructor(
    private readonly parts: LabParts,
    readonly step: number,
    private readonly booking: Booking = "train",
    shared?: Shared,
  ) {
    this.settings = parts.settings;
    this.withheld = withholdsReferences(parts.method);
    this.problems = this.withheld ? withheldSource(parts.problems) : parts.problems;
    this.conversational = parts.environment !== undefined;
    if (parts.answers) this.answers = parts.answers;
    this.engine = parts.engine.info;
    this.roles = parts.roles;
    const { ahead } = parts;
    this.policy = ahead?.policy ?? policy;
    this.weights = ahead === undefined ? parts.engine.weights : pinned(parts.engine.weights, (ref) => this.pin(ref));
    this.tokenizer = parts.tokenizer;
    const options = ahead && { signal: ahead.signal };
    const engineSample = withStopStrings((...call) => parts.engine.sample(...call), parts.tokenizer);
    const sample = coalesced((requests) => engineSample(requests, options));
    this.shared = shared ?? { sample, memo: new Map(), proposed: [], drawn: [] };
  }

  /** Weights as they are for this step: what changes meanwhile is read as it was, or not at all. */
  private pin(ref: WeightsRef): WeightsRef {
    const { ahead } = this.parts;
    if (ahead === undefined || ref.at !== undefined) return ref;
    if (ref.role === "policy") return { ...ref, at: ahead.policy.at };
    if (!ahead.changing.has(ref.role)) return ref;
    throw new ConfigError({
      place: "overlap",
      cause: `the rollout reads the role ${ref.role}, whose weights change while batches are drawn ahead`,
      mend: "set overlap to 0, or let that role stay as it is",
    });
  }

  /** Problems proposed so far, in order. */
  get proposed(): readonly Problem[] {
    return this.shared.proposed;
  }

  /** Trajectories drawn so far, in the order of arrival. */
  get drawn(): readonly Trajectory[] {
    return this.shared.drawn;
  }

  book(purpose: Booking): StepLab {
    return new StepLab(this.parts, this.step, purpose, this.shared);
  }

  render(messages: readonly Message[], label = "plain"): Context {
    return plainContext(this.tokenizer.render(messages, { addGenerationPrompt: true }), label);
  }

  async *sample(requests: readonly SampleRequest[]): AsyncGenerator<Sample> {
    const pinned = this.parts.ahead ? requests.map((request) => ({ ...request, weights: this.pin(request.weights) })) : requests;
    for await (const sample of this.shared.sample(pinned)) {
      this.parts.ledger.book(
        "sampled",
        this.booking,
        sample.sampled.reduce((n, m) => n + m, 0),
      );
      yield sample;
    }
  }

  async score(given: readonly Sequence[], want: ScoreWant = {}): Promise<Scores[]> {
    const sequences = this.parts.ahead ? given.map((sequence) => ({ ...sequence, weights: this.pin(sequence.weights) })) : given;
    const keys = sequences.map((sequence, i) => scoreKey(sequence, want, i));
    const missing = [...new Map(keys.map((key, i) => [key, i] as const)).entries()].filter(([key]) => !this.shared.memo.has(key)).map(([, i]) => i);
    if (missing.length > 0) {
      const own = missing.map((i) => sequences[i] as Sequence);
      const targets = want.targets ? { targets: missing.map((i) => want.targets?.[i]) } : {};
      const scores = await this.parts.engine.score(own, { ...want, ...targets });
      missing.forEach((i, n) => this.shared.memo.set(keys[i] as string, scores[n] as Scores));
      this.parts.ledger.book(
        "scored",
        this.booking,
        own.reduce((n, { response }) => n + response.length, 0),
      );
    }
    return keys.map((key) => this.shared.memo.get(key) as Scores);
  }

  verify(problem: Problem, response: string, truncated = false): Promise<Verdict> {
    return this.judge(problem, response, truncated);
  }

  /** A verdict; none is asked for where the reference that it needs is withheld. */
  private judge(problem: Problem, response: string, truncated: boolean): Promise<Verdict> {
    return this.withheld ? Promise.resolve(unscored("no-reference")) : this.parts.judge(problem, response, truncated);
  }

  key(meaning: Parameters<Lab["key"]>[0]): ReturnType<Lab["key"]> {
    return randomKey({ seed: this.parts.seed, ...meaning });
  }

  /**
   * The next problems of the resolved `select`. Where one epoch ends within a step, a problem may come up twice; the second
   * is passed over, because a step takes a problem once (its key names its group and its random numbers).
   */
  async propose(n: number): Promise<Problem[]> {
    const seen = new Set(this.proposed.map(({ key }) => key));
    const fresh: Problem[] = [];
    for (let tries = 0; fresh.length < n && tries < 4; tries++) {
      for (const problem of await this.parts.method.one.select.value.propose(n - fresh.length, this)) {
        if (seen.has(problem.key)) continue;
        seen.add(problem.key);
        fresh.push(problem);
      }
    }
    this.shared.proposed.push(...fresh);
    this.parts.ahead?.onProposed();
    return fresh;
  }

  async request(problem: Problem, member: number): Promise<Request> {
    const { temperature, maxTokens, stop } = this.settings;
    const context = this.parts.contexts.get(problem.key) ?? this.render(problem.prompt);
    let request: Request = {
      problem,
      member,
      turn: 0,
      role: "policy",
      purpose: this.booking === "aux" ? "aux" : "train",
      context,
      trainedUnder: context,
      weights: this.policy,
      temperature,
      maxTokens,
      stop,
      key: this.key({ purpose: "sample", step: this.step, problem: problem.key, member }),
    };
    for (const stage of this.parts.method.stages.prepare) request = await stage.run(request, this);
    return request;
  }

  async *draw(requests: readonly Request[]): AsyncGenerator<Trajectory> {
    const { policyVersion, tokenizer, environment, method } = this.parts;
    for (const { purpose, truncation } of requests) refuseTruncated(method, this.step, purpose, truncation);
    const judge = (...asked: Parameters<LabParts["judge"]>): Promise<Verdict> => this.judge(...asked);
    const common = { step: this.step, policyVersion: policyVersion(), judge };
    const rollouts =
      environment === undefined
        ? draw(requests, { ...common, sample: (asked) => this.sample(asked), decode: (ids) => tokenizer.decode(ids) })
        : drawEpisodes(requests, (request) => this.episodeKeys(request), { ...common, host: environment, rounds: this.rounds, tokenizer });
    for await (const trajectory of rollouts) {
      this.parts.ledger.rollouts++;
      this.shared.drawn.push(trajectory);
      yield trajectory;
    }
  }

  private episodeKeys({ problem, member }: Request): ReturnType<typeof episodeKeys> {
    return episodeKeys("sample", { step: this.step, problem: problem.key, member }, (meaning) => this.key(meaning));
  }

  expand(problem: Problem, n: number, from = 0): AsyncIterable<Trajectory> {
    return this.parts.method.one.expand.value.run(problem, n, this, from);
  }
}

/** Weights as a step that is drawn ahead reads them. */
function pinned(weights: Lab["weights"], pin: (ref: WeightsRef) => WeightsRef): Lab["weights"] {
  return {
    load: (request) => weights.load(request),
    unload: (role) => weights.unload(role),
    info: (role) => weights.info(role),
    snapshot: (role, name) => weights.snapshot(role, name),
    restore: (role, name) => weights.restore(role, name),
    dropSnapshot: (role, name) => weights.dropSnapshot(role, name),
    read: async (ref, names) => weights.read(pin(ref), names),
    write: (role, tensors) => weights.write(role, tensors),
    readGradient: (set, names) => weights.readGradient(set, names),
    zeroGradient: (set) => weights.zeroGradient(set),
    saveOptimizer: (set, file) => weights.saveOptimizer(set, file),
    loadOptimizer: (set, file) => weights.loadOptimizer(set, file),
    resetOptimizer: (set) => weights.resetOptimizer(set),
    merge: (role) => weights.merge(role),
    resetAdapter: (role, seed) => weights.resetAdapter(role, seed),
    save: async (ref, folder, options) => weights.save(pin(ref), folder, options),
  };
}

/** Equal for scores that are equal: everything that they depend on within a step. Rows and media are told apart by position. */
function scoreKey({ context, response, weights, temperature }: Sequence, want: ScoreWant, index: number): string {
  const { targets, ...rest } = want;
  const own = context.rows || context.media || targets?.[index] ? `#${index}:${unique++}` : "";
  return [JSON.stringify(weights), temperature, JSON.stringify(rest), context.ids.join(), response.join(), own].join("|");
}

let unique = 0;
