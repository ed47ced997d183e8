/** The evaluation of a run: its own problems, its own verifier, the same draws every time. */
import type { Json } from "../core/json.js";
import type { Problem } from "../core/problem.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { Engine } from "../engine/contract.js";
import { evaluate } from "../evaluate/evaluate.js";
import { meanScores } from "../evaluate/metrics.js";
import { problemSetId } from "../evaluate/samples.js";
import type { EnvironmentHost } from "../rollout/environment.js";
import type { Verifier } from "../verify/contract.js";
import type { JudgePool } from "../verify/pool.js";
import { type TrainConfig, truncationOf } from "./config.js";
import { sourceScores } from "./data-statistics.js";
import { policy } from "./lab.js";

export interface EvaluationParts {
  readonly problems: readonly Problem[];
  readonly verifier: Verifier;
  readonly judges: JudgePool;
  readonly environment?: EnvironmentHost;
  readonly tokenizer: Tokenizer;
  readonly maxTokens: number;
  /** Strings that end an answer. */
  readonly stop?: readonly string[];
  readonly config: TrainConfig["eval"];
}

export interface Evaluated {
  /** Mean score; what keep-best compares. Absent where nothing could be scored. */
  readonly score?: number;
  /** For the event. */
  readonly data: { readonly [name: string]: Json };
  /** For metrics, under `eval.`. */
  readonly numbers: { readonly [name: string]: number };
  readonly tokens: number;
  readonly warnings: readonly string[];
}

/** Measures the policy as it is now. */
export async function measurePolicy(
  engine: Engine,
  parts: EvaluationParts,
  onProgress: (done: number, total: number) => void,
  signal?: AbortSignal,
): Promise<Evaluated> {
  const { problems, verifier, judges, environment, tokenizer, maxTokens, stop, config } = parts;
  const { samples, temperature, greedy, seed } = config;
  const truncation = truncationOf(config);
  const evaluation = await evaluate(engine, {
    weights: policy,
    problems,
    verifier,
    judge: (problem, response, truncated) => judges.judge(problem, response, truncated),
    tokenizer,
    ...(environment && { environment }),
    n: greedy ? 1 : samples,
    temperature,
    greedy,
    ...(truncation && { truncation }),
    maxTokens,
    ...(stop && { stop }),
    seed,
    ...(signal && { signal }),
    onProgress: ({ done, total }) => onProgress(done, total),
  });
  const { metrics, weights, warnings } = evaluation;
  const scores = meanScores(evaluation.samples);
  const average = metrics.estimates.find(({ name }) => name === "avg");
  const score = average?.value ?? undefined;
  const data = {
    weights,
    ...(score === undefined ? {} : { score }),
    problems: metrics.problems,
    samples: metrics.samples,
    unscored: metrics.unscored,
    estimates: metrics.estimates.map((estimate) => ({ ...estimate, n: { ...estimate.n }, interval: estimate.interval && { ...estimate.interval } })),
    verdicts: { ...metrics.verdicts },
    reasons: { ...metrics.reasons },
    tokens_mean: metrics.tokens.mean,
    ...(metrics.entropy !== null && { entropy: metrics.entropy }),
    // Of each problem in order, null where it has no score, so that runs can be compared problem by problem.
    scores: problems.map(({ key }) => rounded(scores.get(key))),
    problem_set: problemSetId(problems),
  } as { readonly [name: string]: Json };
  const numbers = { ...(score === undefined ? {} : { "eval.score": score }), ...sourceScores(problems, scores), "eval.tokens_mean": metrics.tokens.mean };
  return { ...(score === undefined ? {} : { score }), data, numbers, tokens: metrics.tokens.total, warnings };
}

/** To six digits: what a mean of few samples has. */
const rounded = (score: number | undefined): number | null => (score === undefined ? null : Number(score.toPrecision(6)));
