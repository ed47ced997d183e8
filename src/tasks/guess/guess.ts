/**
 * The task `guess`: find a number in a range with few guesses, each answered by `+` (it is higher) or `-` (it is lower).
 * Halving what is left finds it; the habit of the worked solutions is to go through the range one by one.
 */
import { z } from "zod";
import { alphabetTokenizer } from "../../core/alphabet.js";
import { DataError } from "../../core/errors.js";
import type { Problem } from "../../core/problem.js";
import type { Stream } from "../../core/random.js";
import type { Exchange, Row } from "../contract.js";
import { defineTask } from "../define.js";

export const guessOptions = z
  .strictObject({
    numbers: z.int().min(2).max(1000).default(32).describe("All numbers are from 0 to one below it."),
    min_width: z.int().min(1).max(1000).default(10).describe("Fewest numbers of a range."),
    max_width: z.int().min(1).max(1000).default(15).describe("Most numbers of a range."),
    guesses: z.int().min(1).max(64).default(4).describe("Guesses that one has; halving needs the logarithm of the range."),
    habit: z
      .strictObject({ rate: z.number().min(0).max(1).describe("Share of the guesses that are the lowest number left, each by itself.") })
      .optional()
      .describe("Worked solutions that go through the range one by one. Absent: none."),
  })
  .refine(({ min_width, max_width }) => max_width >= min_width, { path: ["max_width"], error: "give at least min_width" })
  .refine(({ numbers, max_width }) => max_width <= numbers, { path: ["max_width"], error: "give at most numbers" });
export type GuessOptions = z.output<typeof guessOptions>;

/** The habit of a start that reinforcement can use. */
export const oneByOne = { habit: { rate: 0.85 } } as const;

interface Range {
  readonly low: number;
  readonly high: number;
}

/** The range of a problem of this task. Throws DataError for another problem. */
export function rangeOf({ key, prompt }: Problem): Range {
  const text = prompt.at(-1)?.content ?? "";
  const read = /^(\d+)-(\d+)$/.exec(text);
  if (read === null) throw new DataError({ place: `problem ${key}`, cause: `${JSON.stringify(text)} is no range`, mend: "pose problems of the task guess" });
  return { low: Number(read[1]), high: Number(read[2]) };
}

/** What is left of a range after the answers to some guesses. */
export function leftOf(range: Range, turns: readonly Exchange[]): Range {
  return turns.reduce(({ low, high }, { action, observation }) => {
    const guess = Number(action);
    const answer = observation[0]?.content;
    return { low: answer === "+" ? Math.max(low, guess + 1) : low, high: answer === "-" ? Math.min(high, guess - 1) : high };
  }, range);
}

/** A worked solution's next guess: the middle of what is left (of two, the lower), or by habit the lowest. */
export function nextGuess(problem: Problem, turns: readonly Exchange[], random: Stream, { habit }: GuessOptions): string {
  const { low, high } = leftOf(rangeOf(problem), turns);
  const draws = Array.from({ length: turns.length + 1 }, () => random.next());
  return String((draws.at(-1) as number) < (habit?.rate ?? 0) ? low : Math.floor((low + high) / 2));
}

/** All ranges with all their numbers. */
function* rowsOf({ numbers, min_width, max_width }: GuessOptions): Generator<Row<number>> {
  for (let width = min_width; width <= max_width; width++) {
    for (let low = 0; low + width <= numbers; low++) {
      const prompt = `${low}-${low + width - 1}`;
      for (let answer = low; answer < low + width; answer++) yield { prompt, answer, key: `${prompt}=${answer}`, tags: { width } };
    }
  }
}

/** What a game needs to know: the number, and the guesses so far. */
type State = { readonly number: number; readonly guesses: number };

/** The guessing game, with its options. */
export const guess = defineTask({
  name: "guess",
  options: guessOptions,
  rows: (options) => [...rowsOf(options)],
  shares: { eval: 0.35, train: 0.35, warm: 0.3 },
  verify: ({ response, reference, truncated }) => !truncated && response === String(reference),
  action: nextGuess,
  tokenizer: ({ numbers }) => alphabetTokenizer([...Array.from({ length: numbers }, (_, i) => String(i)), "+", "-", "?", "="]),
  // A guess has two tokens, its answer three; a guess of more than one number is none, but may be said.
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
