/**
 * The task `guess`: find the one of some listed numbers that is meant, with few guesses, each answered by `+` (it is
 * higher) or `-` (it is lower). Halving what is left finds it; the habit of the worked solutions is to say the first number
 * of the list, whatever was answered.
 */
import { z } from "zod";
import { alphabetTokenizer } from "../../core/alphabet.js";
import { DataError } from "../../core/errors.js";
import type { Problem } from "../../core/problem.js";
import type { Stream } from "../../core/random.js";
import { verifierOf } from "../../verify/simple.js";
import type { Exchange } from "../contract.js";
import { defineTask } from "../define.js";

export const guessOptions = z
  .strictObject({
    numbers: z.int().min(2).max(1000).default(20).describe("All numbers are from 0 to one below it."),
    listed: z.int().min(1).max(1000).default(7).describe("Numbers of a problem, one of which is meant."),
    guesses: z.int().min(1).max(64).default(3).describe("Guesses that one has: 3 find one of 7 by halving."),
    habit: z
      .strictObject({ rate: z.number().min(0).max(1).describe("Share of the guesses that are the first number of the list, each by itself.") })
      .optional()
      .describe("Worked solutions that say the first number again and again. Absent: none."),
  })
  .refine(({ numbers, listed }) => listed <= numbers, { path: ["listed"], error: "give at most numbers" });
export type GuessOptions = z.output<typeof guessOptions>;

/** The habit of a start that reinforcement can use. */
export const overAndOver = { habit: { rate: 0.6 } } as const;

/** The numbers of a problem of this task, ascending. Throws DataError for another problem. */
export function listOf({ key, prompt }: Problem): number[] {
  const text = prompt.at(-1)?.content ?? "";
  if (/^\d+(?: \d+)*$/.test(text)) return text.split(" ").map(Number);
  throw new DataError({ place: `problem ${key}`, cause: `${JSON.stringify(text)} is no list of numbers`, mend: "pose problems of the task guess" });
}

/** What is left of a list after the answers to some guesses. */
export function leftOf(list: readonly number[], turns: readonly Exchange[]): number[] {
  return turns.reduce(
    (left, { action, observation }) => {
      const answer = observation[0]?.content;
      return left.filter((number) => (answer === "+" ? number > Number(action) : answer === "-" ? number < Number(action) : true));
    },
    [...list],
  );
}

/** A worked solution's next guess: the middle of what is left (of two, the lower), or by habit the first of the list. */
export function nextGuess(problem: Problem, turns: readonly Exchange[], random: Stream, { habit }: GuessOptions): string {
  const list = listOf(problem);
  const left = leftOf(list, turns);
  const draws = Array.from({ length: turns.length + 1 }, () => random.next());
  const habitual = (draws.at(-1) as number) < (habit?.rate ?? 0);
  return String(habitual ? list[0] : left[Math.floor((left.length - 1) / 2)]);
}

/** What a game needs to know: the number, and the guesses so far. */
type State = { readonly number: number; readonly guesses: number };

/** The guessing game, with its options. */
export const guess = defineTask({
  name: "guess",
  options: guessOptions,
  draw: (random, { numbers, listed }) => {
    const list = random
      .shuffle(Array.from({ length: numbers }, (_, i) => i))
      .slice(0, listed)
      .sort((a, b) => a - b);
    return { prompt: list.join(" "), answer: random.pick(list) };
  },
  // A version of its own: the text of a function differs between sources and what is compiled of them.
  verifier: verifierOf("guess", ({ response, reference, truncated }) => !truncated && response === String(reference), "1"),
  action: nextGuess,
  tokenizer: ({ numbers }) => alphabetTokenizer([...Array.from({ length: numbers }, (_, i) => String(i)), " ", "+", "-", "?", "="]),
  // A guess has two tokens and its answer three; what has more tokens than three is no guess and ends the game.
  maxTokens: ({ guesses }) => 6 * guesses,
  environment: ({ guesses, numbers }) => ({
    limits: { turns: guesses, turnTokens: 3 },
    start: ({ reference }): State => ({ number: reference.answer as number, guesses: 0 }),
    step: (state: State, action) => {
      const said = /^(?:0|[1-9]\d{0,2})$/.test(action) ? Number(action) : undefined;
      const answer = said === undefined ? "?" : said === state.number ? "=" : said < state.number ? "+" : "-";
      const next = { ...state, guesses: state.guesses + 1 };
      const info = { distance: said === undefined ? numbers : Math.abs(said - state.number) };
      return { state: next, observation: [{ role: "user", content: answer }], info, done: answer === "=" || next.guesses >= guesses };
    },
  }),
});
