/** Worked conversations of a task, played and judged. */
import { type Problem, plainContext } from "../../src/core/problem.js";
import { randomKey } from "../../src/core/random.js";
import type { Verdict } from "../../src/core/verdict.js";
import { startHost } from "../../src/rollout/environment.js";
import { type Episode, episodeKeys, verdictOf, workedEpisode } from "../../src/rollout/episodes.js";
import type { Task } from "../../src/tasks/contract.js";
import { judge } from "../../src/verify/contract.js";

export async function played(task: Task, count: number): Promise<{ readonly problem: Problem; readonly episode: Episode; readonly verdict: Verdict }[]> {
  const { environment, tokenizer, maxTokens } = task;
  if (environment === undefined || tokenizer === undefined || maxTokens === undefined) throw new Error(`${task.name} has no environment, tokenizer or budget`);
  const host = await startHost({ environment });
  return Promise.all(
    task.problems("warm", count, 1).map(async (problem) => {
      const key = randomKey({ seed: 2, purpose: "worked", problem: problem.key });
      const context = plainContext(tokenizer.render(problem.prompt, { addGenerationPrompt: true }));
      const request = { context, weights: { role: "policy" }, temperature: 1, maxTokens, stop: { ids: tokenizer.eosIds }, key };
      const keys = episodeKeys("worked", { problem: problem.key }, (meaning) => randomKey({ seed: 2, ...meaning }));
      const episode = await workedEpisode(task, { problem, request, ...keys }, key, { host, tokenizer });
      if (episode === undefined) throw new Error(`${task.name} has no worked conversation for ${problem.key}`);
      return { problem, episode, verdict: await verdictOf(episode, problem, (own, text, truncated) => judge(task.verifier, own, text, truncated)) };
    }),
  );
}
