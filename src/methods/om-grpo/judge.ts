/** The pairwise judge: which of two existing answers is more likely right, by one forced-choice token, asked in both orders. */
import { ConfigError } from "../../core/errors.js";
import type { Problem } from "../../core/problem.js";
import type { Scores, Sequence } from "../../engine/contract.js";
import type { Lab } from "../contract.js";
import { rewritten } from "../prompts.js";

export interface JudgeOptions {
  readonly judge: string;
  readonly judge_prompt: string;
  readonly judge_choices: readonly [string, string];
}

/** Answers of one problem that are compared with each other, each with every other. */
export interface Contest {
  readonly problem: Problem;
  readonly answers: readonly string[];
}

/** Ids of the two choices. Throws ConfigError for one that is not a single token. */
export function choiceIds({ judge_choices }: JudgeOptions, { tokenizer }: Lab): Int32Array {
  return Int32Array.from(judge_choices, (choice) => {
    const ids = tokenizer.encode(choice);
    if (ids.length === 1) return ids[0] as number;
    throw new ConfigError({
      place: "method om-grpo, option judge_choices",
      cause: `${JSON.stringify(choice)} is ${ids.length} tokens of this model`,
      mend: "name two answers of one token each",
    });
  });
}

/**
 * Shares s[i] of each contest's answers: the mean over the others of s_ij = (P(i first wins) + 1 - P(j first wins)) / 2.
 * A question that is too long for the model leaves its pair at 1/2; `skipped` counts them, a contest.
 */
export async function contests(asked: readonly Contest[], options: JudgeOptions, lab: Lab): Promise<{ shares: number[][]; skipped: number[] }> {
  const choices = choiceIds(options, lab);
  const weights = options.judge === "policy" ? lab.policy : { role: options.judge };
  const { maxTokens } = await lab.weights.info(options.judge);
  const places: (readonly [contest: number, first: number, second: number])[] = [];
  const sequences: Sequence[] = [];
  asked.forEach(({ problem, answers }, contest) => {
    for (const [i, first] of answers.entries()) {
      for (const [j, second] of answers.entries()) {
        if (i === j) continue;
        const context = lab.render(rewritten(problem, options.judge_prompt, { first, second }), "judge");
        if (context.ids.length >= maxTokens) continue;
        places.push([contest, i, j]);
        sequences.push({ context, response: choices.slice(0, 1), weights, temperature: 1 });
      }
    }
  });
  const targets = sequences.map(() => ({ k: 2, ids: choices }));
  const scores = sequences.length === 0 ? [] : await lab.book("aux").score(sequences, { targets });
  const wins = new Map(
    places.map((place, n) => {
      const [a, b] = (scores[n] as Scores).targetLogp as Float64Array;
      return [place.join(), 1 / (1 + Math.exp((b as number) - (a as number)))];
    }),
  );
  const skipped = asked.map(() => 0);
  const shares = asked.map(({ answers }, contest) =>
    answers.map((_, i) => {
      const against = answers.flatMap((_, j) => {
        if (i === j) return [];
        const [first, second] = [wins.get([contest, i, j].join()), wins.get([contest, j, i].join())];
        if (first !== undefined && second !== undefined) return [(first + 1 - second) / 2];
        if (i < j) skipped[contest] = (skipped[contest] as number) + 1;
        return [0.5];
      });
      return against.length === 0 ? 1 : against.reduce((a, b) => a + b, 0) / against.length;
    }),
  );
  return { shares, skipped };
}
