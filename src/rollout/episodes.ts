/**
 * Conversations with an environment: sample an action, let the environment answer, append the answer, until it is done or a
 * budget is used up. The context of a turn is the ids of the one before, the ids that were sampled, and the ids of the
 * observation: nothing is encoded twice. So a conversation is one trajectory (C2), whose observations nobody is trained on.
 */

import { DataError } from "../core/errors.js";
import { Inbox } from "../core/inbox.js";
import type { Json } from "../core/json.js";
import type { Context, Problem } from "../core/problem.js";
import type { Meaning, RandomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Span, StopReason, Trajectory, Turn } from "../core/trajectory.js";
import { unscored, type Verdict } from "../core/verdict.js";
import type { Sample, SampleRequest } from "../engine/contract.js";
import type { Request } from "../methods/contract.js";
import type { Exchange, Task } from "../tasks/contract.js";
import { type DrawParts, sampleRequest, trajectoryOf } from "./draw.js";
import type { EnvironmentHost } from "./environment.js";
import { observed } from "./observation.js";
import type { BoundedStep } from "./reply.js";
import type { Rounds } from "./rounds.js";

/** A conversation to be played. `request.maxTokens` is the budget of all of it, observations included; `request.key` that of the first turn. */
export interface EpisodeRequest {
  readonly problem: Problem;
  readonly request: SampleRequest;
  /** Of the noise of a later turn (from 1). */
  readonly key: (turn: number) => RandomKey;
  /** Of the environment: 0 for its start, then the number of actions so far. */
  readonly environmentKey: (actions: number) => RandomKey;
}

/** Random keys of a member's conversation. `purpose`: of its samples; the environment draws apart from them. */
export function episodeKeys(
  purpose: string,
  meaning: Pick<Meaning, "step" | "problem" | "member">,
  key: (meaning: Omit<Meaning, "seed">) => RandomKey,
): Pick<EpisodeRequest, "key" | "environmentKey"> {
  return {
    key: (turn) => key({ purpose, ...meaning, turn }),
    environmentKey: (actions) => key({ purpose: `${purpose}/environment`, ...meaning, turn: actions }),
  };
}

/** A conversation that is over, in the shape of a sample: arrays over all its tokens, 0 where they were observed. */
export interface Episode extends Sample {
  readonly spans: readonly Span[];
  readonly turns: readonly Turn[];
  /** The last action. */
  readonly text: string;
  /** The environment's last word, or that there can be none; undefined: the verifier judges `text`. */
  readonly verdict?: Verdict;
}

export interface EpisodeParts {
  readonly host: EnvironmentHost;
  readonly rounds: Rounds;
  readonly tokenizer: Tokenizer;
}

/** Plays conversations side by side; they come as they end. */
export async function* playEpisodes(requests: readonly EpisodeRequest[], parts: EpisodeParts): AsyncGenerator<Episode> {
  const inbox = new Inbox<Episode>();
  let left = requests.length;
  if (left === 0) return;
  parts.rounds.enter(left);
  requests.forEach((request, index) => {
    play(request, index, parts, (asked) => parts.rounds.ask(asked))
      .finally(() => parts.rounds.leave())
      .then(
        (episode) => {
          inbox.put(episode);
          if (--left === 0) inbox.end();
        },
        (error: unknown) => inbox.fail(error),
      );
  });
  yield* inbox;
}

/** Plays, verifies and records conversations, as `draw` does with plain answers. */
export async function* drawEpisodes(
  requests: readonly Request[],
  keys: (request: Request) => Pick<EpisodeRequest, "key" | "environmentKey">,
  parts: EpisodeParts & Pick<DrawParts, "step" | "policyVersion" | "judge">,
): AsyncGenerator<Trajectory> {
  const inbox = new Inbox<Trajectory>();
  const work = async (): Promise<void> => {
    const judging: Promise<void>[] = [];
    const asked = requests.map((request): EpisodeRequest => ({ problem: request.problem, request: sampleRequest(request), ...keys(request) }));
    for await (const episode of playEpisodes(asked, parts)) {
      const request = requests[episode.index] as Request;
      const judged = verdictOf(episode, request.problem, parts.judge).then((verdict) => {
        const { spans, turns, text } = episode;
        inbox.put({ ...trajectoryOf(request, episode, text, verdict, parts), spans, turns });
      });
      judged.catch((error: unknown) => inbox.fail(error));
      judging.push(judged);
    }
    await Promise.all(judging);
    inbox.end();
  };
  work().catch((error: unknown) => inbox.fail(error));
  yield* inbox;
}

/** The environment's verdict where it gave one, else the verifier's on the last action. */
export function verdictOf({ verdict, text, stop }: Episode, problem: Problem, judge: DrawParts["judge"]): Promise<Verdict> {
  return verdict === undefined ? judge(problem, text, stop === "length") : Promise.resolve(verdict);
}

/** Who acts: the policy, or whoever shows it how. Gives an action for the request of a turn and the turns before. */
type Act = (request: SampleRequest, turns: readonly Exchange[]) => Promise<Sample>;

/** A conversation in which a task's worked solution acts, token by token as a policy would have been asked; undefined: the task has none for this problem. */
export async function workedEpisode(
  task: Pick<Task, "action">,
  episode: EpisodeRequest,
  key: RandomKey,
  { host, tokenizer }: Omit<EpisodeParts, "rounds">,
): Promise<Episode | undefined> {
  class None extends Error {}
  const act: Act = async ({ maxTokens }, turns) => {
    const text = task.action?.(episode.problem, turns, key);
    if (text === undefined) throw new None();
    const ids = Int32Array.from([...tokenizer.encode(text), tokenizer.eosIds[0] as number]).slice(0, maxTokens);
    const zeros = new Float64Array(ids.length);
    const stop = tokenizer.eosIds.includes(ids.at(-1) as number) ? "eos" : "length";
    return { index: 0, ids, sampled: new Uint8Array(ids.length).fill(1), rawLogp: zeros, logp: zeros, entropy: zeros, stop, weights: "" };
  };
  return play(episode, 0, { host, tokenizer }, act).catch((error: unknown) => {
    if (error instanceof None) return undefined;
    throw error;
  });
}

async function play(episode: EpisodeRequest, index: number, { host, tokenizer }: Omit<EpisodeParts, "rounds">, act: Act): Promise<Episode> {
  const { request } = episode;
  const { limits } = host;
  const tape = new Tape(request.context);
  const exchanges: Exchange[] = [];
  let state = await started(host, episode);
  const ended = (stop: StopReason, verdict?: Verdict): Episode => tape.episode(index, stop, verdict);
  for (let turn = 0; ; turn++) {
    const { forced, ...later } = request;
    const room = request.maxTokens - tape.length;
    const asked = turn === 0 ? request : { ...later, context: tape.context(), key: episode.key(turn) };
    const sample = await act({ ...asked, maxTokens: Math.min(room, limits.turnTokens ?? room) }, exchanges);
    const action = tokenizer.decode(sample.ids);
    tape.act(sample, action);
    if (sample.stop === "length" || sample.stop === "cancelled") return ended(sample.stop);
    const step = await stepped(host, state, action, episode.environmentKey(turn + 1));
    if (!("done" in step)) {
      tape.close({ observation: "", info: {}, fault: step.fault });
      return ended(sample.stop, unscored(`environment-${step.kind}`, { evidence: { message: step.fault } }));
    }
    state = step.state;
    exchanges.push({ action, observation: step.observation });
    const left = request.maxTokens - tape.length - 1; // The next action has at least one token.
    const last = tokenizer.eosIds.includes(sample.ids.at(-1) as number);
    const seen = observed(tokenizer, step.observation, { tokens: limits.observationTokens, ended: last, cut: step.cut });
    const over = step.done || turn + 1 >= limits.turns || seen.ids.length > left;
    tape.close({
      observation: seen.text,
      ...(step.verdict && { verdict: step.verdict }),
      info: step.info,
      ...(seen.cut > 0 && { cut: seen.cut }),
      ...(step.fault !== undefined && { fault: step.fault }),
    });
    // A budget that ends it is as one that cuts an answer off: what was said last is not the policy's last word.
    if (over) return ended(step.done ? sample.stop : "length", step.verdict);
    tape.observe(seen.ids);
  }
}

async function started(host: EnvironmentHost, { problem, environmentKey }: EpisodeRequest): Promise<Json> {
  const reply = await host.call({ ask: "start", problem, key: environmentKey(0) });
  if ("state" in reply) return reply.state;
  const cause = "fault" in reply ? `it cannot be started (${reply.fault.message})` : "it cannot be started";
  throw new DataError({ place: `environment, problem ${problem.key}`, cause, mend: "correct the environment's start, or leave such problems out" });
}

type Stepped = (BoundedStep & { readonly fault?: string }) | { readonly kind: "failed" | "deadline"; readonly fault: string };

/** A step, or what the environment says in place of one that failed. */
async function stepped(host: EnvironmentHost, state: Json, action: string, key: RandomKey): Promise<Stepped> {
  const reply = await host.call({ ask: "step", state, action, key });
  if ("step" in reply) return reply.step;
  const fault = "fault" in reply ? reply.fault : { kind: "threw" as const, message: "it gave no step" };
  const kind = fault.kind === "deadline" ? "deadline" : "failed";
  if (!host.recovers) return { kind, fault: fault.message };
  const recovered = await host.call({ ask: "recover", state, action, fault });
  if ("step" in recovered) return { ...recovered.step, fault: fault.message };
  return { kind, fault: fault.message };
}

/** The tokens of a conversation, and what is known of each. */
class Tape {
  private readonly ids: number[] = [];
  private readonly sampled: number[] = [];
  private readonly logp: number[] = [];
  private readonly rawLogp: number[] = [];
  private readonly entropy: number[] = [];
  private readonly spans: Span[] = [];
  private readonly turns: Turn[] = [];
  private weights = "";
  private text = "";

  constructor(private readonly first: Context) {}

  get length(): number {
    return this.ids.length;
  }

  /** Everything so far. Input rows and media of the first context keep their positions. */
  context(): Context {
    return { ...this.first, ids: Int32Array.from([...this.first.ids, ...this.ids]) };
  }

  act(sample: Sample, action: string): void {
    const start = this.length;
    for (let t = 0; t < sample.ids.length; t++) {
      this.ids.push(sample.ids[t] as number);
      this.sampled.push(sample.sampled[t] as number);
      this.logp.push(sample.logp[t] as number);
      this.rawLogp.push(sample.rawLogp[t] as number);
      this.entropy.push(sample.entropy[t] as number);
    }
    this.spans.push({ name: "turn", start, end: this.length });
    this.weights = sample.weights;
    this.text = action;
    this.turns.push({ action, observation: "", info: {} });
  }

  /** What came of the last action. */
  close(outcome: Omit<Turn, "action">): void {
    this.turns[this.turns.length - 1] = { action: this.text, ...outcome };
  }

  observe(ids: Int32Array): void {
    const start = this.length;
    for (const id of ids) {
      this.ids.push(id);
      for (const column of [this.sampled, this.logp, this.rawLogp, this.entropy]) column.push(0);
    }
    this.spans.push({ name: "observation", start, end: this.length });
  }

  episode(index: number, stop: StopReason, verdict: Verdict | undefined): Episode {
    return {
      index,
      ids: Int32Array.from(this.ids),
      sampled: Uint8Array.from(this.sampled),
      logp: Float64Array.from(this.logp),
      rawLogp: Float64Array.from(this.rawLogp),
      entropy: Float64Array.from(this.entropy),
      stop,
      weights: this.weights,
      spans: this.spans,
      turns: this.turns,
      text: this.text,
      ...(verdict && { verdict }),
    };
  }
}
