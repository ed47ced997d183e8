/** The warm start of tasks with an environment: conversations in which the task's worked solution acts, learnt without their observations. */
import { ConfigError } from "../core/errors.js";
import { plainContext } from "../core/problem.js";
import { randomKey } from "../core/random.js";
import type { Tokenizer } from "../core/tokenizer.js";
import type { EnvironmentHost } from "../rollout/environment.js";
import { episodeKeys, workedEpisode } from "../rollout/episodes.js";
import type { Task } from "../tasks/contract.js";
import type { Example } from "./sft.js";
import { warmProblems } from "./starter.js";

export interface WorkedOptions {
  readonly host: EnvironmentHost;
  readonly tokenizer: Tokenizer;
  readonly batchSize: number;
  readonly steps: number;
  readonly seed: number;
}

/** Batches of a task's worked conversations, played anew each time a problem comes round. Throws a ConfigError where the task has none. */
export function workedEpisodes(task: Task, { host, tokenizer, batchSize, steps, seed }: WorkedOptions): (step: number) => Promise<Example[]> {
  const maxTokens = task.maxTokens ?? Number.MAX_SAFE_INTEGER;
  const problems = task.action === undefined ? [] : warmProblems(task, batchSize * steps, seed);
  if (problems.length === 0) {
    throw new ConfigError({
      place: `task ${task.name}`,
      cause: "it has no worked conversations",
      mend: "add `action` to the task, or learn from rollouts with --rollouts",
    });
  }
  const contexts = problems.map(({ prompt }) => plainContext(tokenizer.render(prompt, { addGenerationPrompt: true })));
  const example = async (n: number): Promise<Example> => {
    const at = n % problems.length;
    const problem = problems[at];
    const meaning = { problem: problem.key, step: Math.floor(n / problems.length) };
    const purpose = "worked-solution";
    const key = randomKey({ seed, purpose, ...meaning });
    const request = { context: contexts[at], weights: { role: "policy" }, temperature: 1, maxTokens, stop: { ids: tokenizer.eosIds }, key };
    const keys = episodeKeys(purpose, meaning, (own) => randomKey({ seed, ...own }));
    const played = await workedEpisode(task, { problem, request, ...keys }, key, { host, tokenizer });
    if (played === undefined) {
      const cause = `its action gives none for the problem ${problem.key}`;
      throw new ConfigError({ place: `task ${task.name}`, cause, mend: "let it give one for every problem of the split" });
    }
    return { context: contexts[at].ids, response: played.ids, loss: played.sampled };
  };
  return (step) => Promise.all(Array.from({ length: batchSize }, (_, i) => example(step * batchSize + i)));
}
