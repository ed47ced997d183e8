/**
 * What the exact value function of a policy explains of its returns, by resampling: from each prefix of held-out answers K continuations are drawn.
 *
 *     explained = 1 - E[V (1 - V)] / Var(R)          over all tokens of the answers, R 0 or 1, V = P(R = 1 | prefix)
 *
 * p (1 - p) K / (K - 1) of the share p that is right is an unbiased estimate of V (1 - V), so that few continuations do. No critic
 * that reads prefixes alone can explain more, but for chance; beside it stands what a critic explains on the same answers.
 */
import { type Problem, plainContext } from "../../src/core/problem.js";
import { randomKey, Stream } from "../../src/core/random.js";
import type { Engine, SampleRequest } from "../../src/engine/contract.js";
import type { Task } from "../../src/tasks/contract.js";
import { judge } from "../../src/verify/contract.js";

export interface ProbeOptions {
  /** With the role `policy`, and `critic` where there is one to be compared. */
  readonly engine: Engine;
  readonly task: Task;
  readonly problems: readonly Problem[];
  /** Continuations a prefix, at least 2. */
  readonly continuations: number;
  readonly critic?: boolean;
  readonly seed?: number;
}

/** An answer with one entry a token, read before the token is seen. */
export interface Valued {
  readonly reward: number;
  /** Share of the continuations that were right. */
  readonly share: readonly number[];
  readonly critic?: readonly number[];
}

export interface Explained {
  /** Answers, and the part of them that was right. */
  readonly answers: number;
  readonly right: number;
  readonly exact: number;
  /** Standard deviation over resamplings of the answers. */
  readonly exact_error: number;
  readonly critic: number | null;
  readonly critic_error: number | null;
}

/** Requests in one call of the engine. */
const atOnce = 4096;

/** One answer to each problem, its prefixes valued by continuations and by the critic. */
export async function valuedAnswers({ engine, task, problems, continuations, critic = false, seed = 0 }: ProbeOptions): Promise<Valued[]> {
  const { tokenizer, maxTokens } = task;
  if (tokenizer === undefined || maxTokens === undefined) throw new Error(`task ${task.name} has no tokenizer or no budget of its own`);
  const weights = { role: "policy" };
  const drawn = async (requests: readonly SampleRequest[]): Promise<Int32Array[]> => {
    const answers: Int32Array[] = [];
    for (let from = 0; from < requests.length; from += atOnce) {
      for await (const { index, ids } of engine.sample(requests.slice(from, from + atOnce))) answers[from + index] = ids;
    }
    return answers;
  };
  const request = (ids: readonly number[], left: number, key: SampleRequest["key"]): SampleRequest => ({
    context: plainContext(ids),
    weights,
    temperature: 1,
    maxTokens: left,
    stop: { ids: tokenizer.eosIds },
    key,
  });
  const right = async (problem: Problem, ids: readonly number[]): Promise<boolean> => {
    const truncated = !tokenizer.eosIds.includes(ids.at(-1) as number);
    const verdict = await judge(task.verifier, problem, tokenizer.decode(ids), truncated);
    if (verdict.kind === "unscored" || verdict.kind === "partial") throw new Error(`problem ${problem.key}: a verdict of right or wrong is needed`);
    return verdict.kind === "accept";
  };
  const prompts = problems.map(({ prompt }) => [...tokenizer.render(prompt, { addGenerationPrompt: true })]);
  const answers = await drawn(prompts.map((ids, i) => request(ids, maxTokens, randomKey({ seed, purpose: "value of prefixes", problem: problems[i].key }))));
  const prefixes = answers.flatMap((answer, i) => Array.from(answer, (_, t) => ({ i, t })));
  const rests = await drawn(
    prefixes.flatMap(({ i, t }) =>
      Array.from({ length: continuations }, (_, member) =>
        request(
          [...prompts[i], ...answers[i].subarray(0, t)],
          maxTokens - t,
          randomKey({ seed, purpose: "continuation", problem: problems[i].key, turn: t, member }),
        ),
      ),
    ),
  );
  const shares: number[][] = answers.map(() => []);
  for (const [n, { i, t }] of prefixes.entries()) {
    const own = rests.slice(n * continuations, (n + 1) * continuations);
    const verdicts = await Promise.all(own.map((rest) => right(problems[i], [...answers[i].subarray(0, t), ...rest])));
    shares[i].push(verdicts.filter(Boolean).length / continuations);
  }
  const sequences = answers.map((response, i) => ({ context: plainContext(prompts[i]), response, weights: { role: "critic" }, temperature: 1 }));
  const scores = critic ? await engine.score(sequences, { values: true }) : undefined;
  return Promise.all(
    answers.map(async (answer, i) => ({
      reward: (await right(problems[i], [...answer])) ? 1 : 0,
      share: shares[i],
      ...(scores && { critic: [...(scores[i].values as Float64Array)].slice(0, answer.length) }),
    })),
  );
}

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;
const variance = (values: readonly number[]): number => mean(values.map((x) => x * x)) - mean(values) ** 2;

/** 1 - E[V (1 - V)] / Var(R), with V (1 - V) estimated without bias from shares of `continuations`. */
export function explainedExactly(answers: readonly Valued[], continuations: number): number {
  const inside = answers.flatMap(({ share }) => share.map((p) => (p * (1 - p) * continuations) / (continuations - 1)));
  return 1 - mean(inside) / variance(answers.flatMap(({ reward, share }) => share.map(() => reward)));
}

/** 1 - Var(R - V) / Var(R) of the critic's values. */
export function explainedByCritic(answers: readonly Valued[]): number {
  const of = (f: (reward: number, value: number) => number): number[] => answers.flatMap(({ reward, critic = [] }) => critic.map((value) => f(reward, value)));
  return 1 - variance(of((reward, value) => reward - value)) / variance(of((reward) => reward));
}

/** Both, with their errors by 200 resamplings of the answers. */
export function explained(answers: readonly Valued[], continuations: number): Explained {
  const stream = new Stream(randomKey({ seed: 0, purpose: "bootstrap of explained variance" }));
  const error = (statistic: (some: readonly Valued[]) => number): number => {
    const values = Array.from({ length: 200 }, () => statistic(answers.map(() => answers[stream.int(answers.length)])));
    return Math.sqrt(variance(values));
  };
  const exactly = (some: readonly Valued[]): number => explainedExactly(some, continuations);
  const critic = answers.every((answer) => answer.critic !== undefined);
  return {
    answers: answers.length,
    right: mean(answers.map(({ reward }) => reward)),
    exact: exactly(answers),
    exact_error: error(exactly),
    critic: critic ? explainedByCritic(answers) : null,
    critic_error: critic ? error(explainedByCritic) : null,
  };
}
