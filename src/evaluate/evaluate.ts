/** Measures a policy: draws samples for problems, lets a verifier judge them, and computes metrics. Never trains. */
import { ArgumentError, EngineError, ModelError } from "../core/errors.js";
import { type Context, type Problem, plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Truncation } from "../core/trajectory.js";
import { scoreOf, type Verdict } from "../core/verdict.js";
import type { Engine, Sample, SampleRequest, WeightsRef } from "../engine/contract.js";
import { needCapability } from "../engine/refuse.js";
import type { EnvironmentHost } from "../rollout/environment.js";
import { type Episode, episodeKeys, playEpisodes, verdictOf } from "../rollout/episodes.js";
import { Rounds } from "../rollout/rounds.js";
import { withStopStrings } from "../rollout/stop-strings.js";
import { judge, type Verifier } from "../verify/contract.js";
import { type Metrics, metricsOf, tally } from "./metrics.js";
import { byProblem, type EvaluatedSample, type JudgedSample, voted } from "./samples.js";

export interface EvaluateOptions {
  readonly weights: WeightsRef;
  readonly problems: readonly Problem[];
  /** Evaluation's own: it need not be the one that rewards. */
  readonly verifier: Verifier;
  /** Where the verifier is called; default: here. */
  readonly judge?: Ask;
  /** Present where an answer is a conversation: its verdict, where it gives one, stands before the verifier's. */
  readonly environment?: EnvironmentHost;
  readonly tokenizer: Tokenizer;
  /** Samples a problem; default 1. */
  readonly n?: number;
  /** The k of pass@k and maj@k, each at most n; default 1 and n. */
  readonly k?: readonly number[];
  /** Default 1. */
  readonly temperature?: number;
  /** The most likely tokens instead of a draw; n is then 1. */
  readonly greedy?: boolean;
  readonly truncation?: Truncation;
  /** Budget of a response, in tokens. */
  readonly maxTokens: number;
  /** Strings that end a response once its text has one. */
  readonly stop?: readonly string[];
  readonly seed: number;
  /** With the seed, the key of all randomness, so that two purposes draw apart; default `evaluation`. */
  readonly purpose?: string;
  /** What a problem is asked under; default: its prompt by the tokenizer's template. */
  readonly prepare?: (problem: Problem) => Context;
  /** Keep the log-prob of each token in the samples. */
  readonly logprobs?: boolean;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

/** How far an evaluation is. Called after each judged sample. */
export interface Progress {
  readonly done: number;
  readonly total: number;
  readonly accepted: number;
  readonly scored: number;
  readonly tokens: number;
}

export interface Evaluation {
  /** In the order of problems and members, whatever the order in which they finished. */
  readonly samples: readonly EvaluatedSample[];
  readonly metrics: Metrics;
  /** Identity of the weights that drew them (`policy@12`). */
  readonly weights: string;
  /** What a reader of the numbers must know, a sentence each: unscored samples, one verdict for all, responses cut off. */
  readonly warnings: readonly string[];
}

/** The purpose of the random keys unless a caller says otherwise. */
export const evaluationPurpose = "evaluation";

/** Calls a verifier: here, or in a pool of workers. Never throws. */
export type Ask = (problem: Problem, response: string, truncated: boolean) => Promise<Verdict>;

/** Requests of one call, so that a large evaluation neither fills a message nor the memory. */
const requestsAtOnce = 4096;
/** Responses being judged at one time: a judge may be far away. */
const judgedAtOnce = 64;

/**
 * Draws n samples a problem, judges them and computes avg, pass@k and maj@k with 95 % intervals. Sample (problem, member)
 * is a pure function of weights, decoder, seed and purpose: neither the other problems nor n change it. What a verifier
 * cannot judge is unscored, left out and counted. Throws before it samples when something cannot be meant.
 */
export async function evaluate(engine: Engine, options: EvaluateOptions): Promise<Evaluation> {
  const {
    weights,
    problems,
    verifier,
    environment,
    tokenizer,
    n = 1,
    temperature = 1,
    greedy = false,
    truncation,
    maxTokens,
    seed,
    purpose = evaluationPurpose,
  } = options;
  const ask = options.judge ?? ((problem, response, truncated) => judge(verifier, problem, response, truncated));
  const ks = options.k ?? [1, n];
  check(options, n, ks);
  if (greedy) needCapability(engine.info, "sample.greedy", "evaluate");
  if (truncation) needCapability(engine.info, "sample.truncation", "evaluate");
  const prepare = options.prepare ?? ((problem) => plainContext(tokenizer.render(problem.prompt, { addGenerationPrompt: true })));
  const contexts = problems.map(prepare);
  await checkRoom(engine, options, contexts);
  const requestOf = (index: number): SampleRequest => {
    const at = Math.floor(index / n);
    return {
      context: contexts[at],
      weights,
      temperature,
      greedy,
      ...(truncation && { truncation }),
      maxTokens,
      stop: { ids: tokenizer.eosIds, ...(options.stop?.length ? { strings: options.stop } : {}) },
      key: randomKey({ seed, purpose, problem: problems[at].key, member: index % n }),
    };
  };
  const total = problems.length * n;
  const judged = new Array<JudgedSample>(total);
  const progress = { done: 0, total, accepted: 0, scored: 0, tokens: 0 };
  let identity = "";
  const engineSample = withStopStrings((...call) => engine.sample(...call), tokenizer);
  const drawn = (requests: readonly SampleRequest[], first: number): AsyncIterable<Sample | Episode> => {
    const sample = (asked: readonly SampleRequest[]): AsyncIterable<Sample> => engineSample(asked, options.signal ? { signal: options.signal } : {});
    if (environment === undefined) return sample(requests);
    const episodes = requests.map((request, i) => {
      const problem = problems[Math.floor((first + i) / n)];
      const meaning = { problem: problem.key, member: (first + i) % n };
      return { problem, request, ...episodeKeys(purpose, meaning, (own) => randomKey({ seed, ...own })) };
    });
    return playEpisodes(episodes, { host: environment, rounds: new Rounds(sample), tokenizer });
  };
  const settle = async (index: number, sample: Sample | Episode): Promise<void> => {
    const problem = problems[Math.floor(index / n)];
    const episode = "turns" in sample ? sample : undefined;
    const text = episode?.text ?? tokenizer.decode(sample.ids);
    const verdict = episode ? await verdictOf(episode, problem, ask) : await ask(problem, text, sample.stop === "length");
    const count = episode ? sample.sampled.reduce((a, b) => a + b, 0) : sample.entropy.length;
    const sum = (values: Float64Array): number | null => known(values.reduce((a, b) => a + b, 0));
    judged[index] = {
      problem: problem.key,
      member: index % n,
      ids: sample.ids,
      ...(episode && { sampled: sample.sampled, turns: episode.turns }),
      text,
      ...(options.logprobs && { logprobs: sample.logp }),
      logp: sum(sample.logp),
      rawLogp: sum(sample.rawLogp),
      entropy: known((sum(sample.entropy) ?? Number.NaN) / Math.max(1, count)),
      stop: sample.stop,
      verdict,
    };
    progress.done++;
    progress.tokens += sample.ids.length;
    if (verdict.kind === "accept") progress.accepted++;
    if (scoreOf(verdict) !== undefined) progress.scored++;
    options.onProgress?.({ ...progress });
  };
  const open = new Set<Promise<void>>();
  const faults: unknown[] = [];
  for (let first = 0; first < total; first += requestsAtOnce) {
    const requests = Array.from({ length: Math.min(requestsAtOnce, total - first) }, (_, i) => requestOf(first + i));
    for await (const sample of drawn(requests, first)) {
      options.signal?.throwIfAborted();
      identity = sample.weights;
      const settled = settle(first + sample.index, sample)
        .catch((error: unknown) => void faults.push(error))
        .finally(() => open.delete(settled));
      open.add(settled);
      if (open.size >= judgedAtOnce) await Promise.race(open);
    }
  }
  await Promise.all(open);
  options.signal?.throwIfAborted();
  if (faults.length > 0) throw faults[0];
  if (progress.done !== total) {
    throw new EngineError({ place: "evaluate", cause: `the engine answered ${progress.done} of ${total} requests`, mend: "start a new engine and try again" });
  }
  const samples = [...byProblem(judged).values()].flatMap((group) => voted(group, verifier));
  const metrics = metricsOf(samples, { k: ks, seed });
  return { samples, metrics, weights: identity, warnings: warningsOf(samples, metrics) };
}

/** A number that an engine tells; null in place of NaN. */
const known = (value: number): number | null => (Number.isNaN(value) ? null : value);

function refuse(cause: string, mend: string): never {
  throw new ArgumentError({ place: "evaluate", cause, mend });
}

function check({ problems, tokenizer, greedy, seed, maxTokens }: EvaluateOptions, n: number, ks: readonly number[]): void {
  const whole = (name: string, value: number): void => {
    if (!(Number.isSafeInteger(value) && value >= 1)) refuse(`${name} is ${value}`, "give a whole number of at least 1");
  };
  if (problems.length === 0) refuse("there are no problems", "give at least one");
  whole("n", n);
  whole("maxTokens", maxTokens);
  for (const k of ks) {
    whole("k", k);
    if (k > n) refuse(`k is ${k} and only ${n} samples a problem are drawn`, `give n of at least ${k}: unbiased pass@k needs k of n`);
  }
  if (greedy && n > 1) refuse(`n is ${n} with greedy decoding, which gives the same response each time`, "give n = 1, or leave greedy out");
  if (!Number.isSafeInteger(seed)) refuse(`the seed is ${seed}`, "give a whole number");
  if (tokenizer.eosIds.length === 0) refuse("the tokenizer has no end token", "give a tokenizer with one: responses would never stop");
  const keys = new Set<string>();
  for (const { key } of problems) {
    if (keys.has(key)) refuse(`two problems have the key ${JSON.stringify(key)}`, "give each its own: samples are drawn and counted by key");
    keys.add(key);
  }
}

async function checkRoom(engine: Engine, { problems, weights, tokenizer, maxTokens }: EvaluateOptions, contexts: readonly Context[]): Promise<void> {
  const model = await engine.weights.info(weights.role);
  if (tokenizer.size > model.vocabulary) {
    throw new ModelError({
      place: "evaluate",
      cause: `the tokenizer has ${tokenizer.size} tokens and the model ${model.vocabulary}`,
      mend: "give the tokenizer that belongs to the model",
    });
  }
  const long = contexts.findIndex(({ ids }) => ids.length + maxTokens > model.maxTokens);
  if (long < 0) return;
  const tooMany = contexts.filter(({ ids }) => ids.length + maxTokens > model.maxTokens).length;
  refuse(
    `the prompt of problem ${problems[long].key} has ${contexts[long].ids.length} tokens, and with ${maxTokens} for the response exceeds the model's ${model.maxTokens}`,
    `lower maxTokens or leave out such problems (${tooMany} of ${problems.length})`,
  );
}

function warningsOf(samples: readonly EvaluatedSample[], metrics: Metrics): string[] {
  const warnings: string[] = [];
  const { unscored, scored, verdicts, stops } = metrics;
  if (unscored > 0) {
    const verdict = samples.find((sample) => sample.verdict.kind === "unscored")?.verdict;
    const detail = verdict?.evidence ? `: ${JSON.stringify(verdict.evidence)}` : "";
    const reason = verdict && "reason" in verdict ? verdict.reason : "";
    warnings.push(`${unscored} of ${samples.length} samples are unscored and left out (the first: ${reason}${detail})`);
  }
  if (scored > 1 && verdicts.reject === scored) {
    const reasons = tally(samples.flatMap(({ verdict }) => (verdict.kind === "reject" ? [verdict.reason] : [])));
    const [reason] = Object.entries(reasons).sort(([, a], [, b]) => b - a)[0];
    warnings.push(`no sample was accepted (most often: ${reason}); check that the prompt asks for what the verifier reads`);
  }
  const cut = stops.length ?? 0;
  if (cut * 10 > samples.length)
    warnings.push(
      `${cut} of ${samples.length} responses were cut off by their ${samples.some(({ turns }) => turns) ? "budget of tokens or turns" : "token budget"}; a larger one may raise the numbers`,
    );
  return warnings;
}
