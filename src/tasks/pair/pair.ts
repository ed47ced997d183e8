/**
 * The task `pair`: two different numbers with a given sum modulo a small number, none of them excluded. Most problems have
 * several right answers, so that coverage and diversity can be measured; the order of the two does not matter. The habit of
 * the worked solutions is to work the sum as a difference.
 */
import { z } from "zod";
import { alphabetTokenizer } from "../../core/alphabet.js";
import { DataError } from "../../core/errors.js";
import type { Problem } from "../../core/problem.js";
import type { Stream } from "../../core/random.js";
import { defineTask } from "../define.js";
import { pairVerifier } from "./verify.js";

export const pairOptions = z
  .strictObject({
    modulus: z.int().min(5).max(1000).default(13).describe("All numbers are from 0 to one below it."),
    excluded: z.int().min(0).max(8).default(3).describe("Numbers of a problem that must not be used; each costs at most one answer."),
    habit: z
      .strictObject({ rate: z.number().min(0).max(1).describe("Share of the worked solutions in which the two have the sum as their difference.") })
      .optional()
      .describe("A wrong habit in the worked solutions. Absent: none."),
    favourite: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe("Share of the worked solutions that begin with the least number that can be used: a narrow policy."),
    slips: z.number().min(0).max(1).default(0).describe("Share of the worked solutions whose second number is a random one."),
  })
  .refine(({ modulus, excluded }) => 2 * excluded + 4 <= modulus, {
    path: ["excluded"],
    error: "give at most half of modulus - 4, so that every problem has an answer",
  });
export type PairOptions = z.output<typeof pairOptions>;

/** The habit of a start that reinforcement can use: two in three sums worked as differences. */
export const differences = { habit: { rate: 0.65 }, slips: 0.03 } as const satisfies Partial<PairOptions>;

/** A problem of this task in numbers. */
export interface Wanted {
  readonly sum: number;
  /** Ascending. */
  readonly excluded: readonly number[];
}

/** `7!0!3`: sum 7, without 0 and 3. Undefined for other text. */
export function readWanted(text: string): Wanted | undefined {
  if (!/^\d{1,3}(?:!\d{1,3})*$/.test(text)) return undefined;
  const [sum, ...excluded] = text.split("!").map(Number) as [number, ...number[]];
  return { sum, excluded };
}

/** The inverse of `readWanted` for a problem. Throws DataError for one of another task. */
export function wantedOf({ key, prompt }: Problem): Wanted {
  const text = prompt.at(-1)?.content ?? "";
  const wanted = readWanted(text);
  if (wanted === undefined)
    throw new DataError({ place: `problem ${key}`, cause: `${JSON.stringify(text)} asks for no pair`, mend: "pose problems of the task pair" });
  return wanted;
}

/** All right answers, the smaller number first, ascending: what a policy can cover. */
export function answersTo({ sum, excluded }: Wanted, modulus: number): string[] {
  return Array.from({ length: modulus }, (_, a) => [a, (((sum - a) % modulus) + modulus) % modulus] as const)
    .filter((pair) => pair[0] < pair[1] && !pair.some((number) => excluded.includes(number)))
    .map((pair) => pair.join(" "));
}

/** A worked solution: one of the right answers in one of its orders, with the options' habit and slips. */
export function workedPair(wanted: Wanted, { modulus, habit, favourite, slips }: PairOptions, random: Stream): string {
  const firsts = answersTo(wanted, modulus)
    .flatMap((answer) => answer.split(" ").map(Number))
    .sort((a, b) => a - b);
  // As many numbers whatever happens, so that solutions with different rates share their chance.
  const [favouring, picked, habitual, slipping, offset] = [random.next(), random.pick(firsts), random.next(), random.next(), 1 + random.int(modulus - 1)];
  const first = favouring < favourite ? (firsts[0] as number) : picked;
  const difference = habitual < (habit?.rate ?? 0);
  const second = difference ? first - wanted.sum : wanted.sum - first;
  const written = slipping < slips ? second + offset : second;
  return `${first} ${((written % modulus) + modulus) % modulus}`;
}

/** T-PAIR, with its options. The reference is the list of right answers. */
export const pair = defineTask({
  name: "pair",
  options: pairOptions,
  draw: (random, { modulus, excluded }) => {
    const sum = random.int(modulus);
    const without = random
      .shuffle(Array.from({ length: modulus }, (_, i) => i))
      .slice(0, excluded)
      .sort((a, b) => a - b);
    const answer = answersTo({ sum, excluded: without }, modulus);
    return { prompt: [sum, ...without].join("!"), answer, solution: answer[0] as string, tags: { answers: answer.length } };
  },
  verifier: ({ modulus }) => pairVerifier(modulus),
  solution: (problem, random, options) => workedPair(wantedOf(problem), options, random),
  tokenizer: ({ modulus }) => alphabetTokenizer([...Array.from({ length: modulus }, (_, i) => String(i)), " ", "!"]),
  // Two numbers, the blank between them, the end token; one more tells an answer that goes on from one that ends.
  maxTokens: 5,
});
