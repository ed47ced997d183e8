/**
 * The task `chain`: a start value and some operations modulo a small number, worked one line each, then the answer. A
 * small policy learns it in minutes, and the worked solutions can carry a habit (`*` worked as `+`) that reinforcement has
 * to unlearn: sampling still finds the right way, the most likely way is wrong.
 */
import { z } from "zod";
import { DataError } from "../../core/errors.js";
import type { Problem } from "../../core/problem.js";
import type { Stream } from "../../core/random.js";
import { defineTask } from "../define.js";
import { apply, type Chain, chainText, chainTokenizer, lineText, operators, readChain } from "./notation.js";
import { chainVerifier } from "./verify.js";

export const chainOptions = z
  .strictObject({
    modulus: z.int().min(2).max(1000).default(11).describe("All numbers are from 0 to one below it."),
    min_operations: z.int().min(1).max(64).default(3).describe("Fewest operations of a problem."),
    max_operations: z.int().min(1).max(64).default(6).describe("Most operations of a problem; lengths are drawn evenly."),
    habit: z
      .strictObject({
        operation: z.enum(operators).describe("The operation worked wrongly."),
        as: z.enum(operators).describe("The operation worked in its place."),
        rate: z.number().min(0).max(1).describe("Share of the lines with that operation in which it happens, each line by itself."),
      })
      .optional()
      .describe("A wrong habit in the worked solutions; later lines go on from its result. Absent: none."),
    slips: z.number().min(0).max(1).default(0).describe("Share of the lines of worked solutions whose result is a random wrong number."),
  })
  .refine((options) => options.min_operations <= options.max_operations, { path: ["max_operations"], message: "give at least min_operations" });
export type ChainOptions = z.output<typeof chainOptions>;

/** The habit of the starter policy: `*` as `+` in 65 % of its lines, 3 % slips. Its worked solutions are right for three in eight problems. */
export const misconception = { habit: { operation: "*", as: "+", rate: 0.65 }, slips: 0.03 } as const satisfies Partial<ChainOptions>;

/** A worked solution: with the options' habit and slips, or flawless without a stream. */
export function workedSolution({ start, operations }: Chain, options: Pick<ChainOptions, "modulus" | "habit" | "slips">, random?: Stream): string {
  const { modulus, habit, slips } = options;
  let value = start;
  const lines = operations.map((operation) => {
    const { operator, operand } = operation;
    // Three numbers a line whatever happens, so that solutions with different rates share their chance.
    const [habitual, slipping, offset] = random ? [random.next(), random.next(), 1 + random.int(modulus - 1)] : [1, 1, 0];
    const worked = habit !== undefined && operator === habit.operation && habitual < habit.rate ? habit.as : operator;
    const result = apply(worked, value, operand, modulus);
    value = slipping < slips ? (result + offset) % modulus : result;
    return lineText(operation, value);
  });
  return [...lines, `#${value}`].join("\n");
}

/** The chain of a problem of this task. Throws DataError for another problem. */
export function chainOf(problem: Problem): Chain {
  const text = problem.prompt.at(-1)?.content ?? "";
  const chain = readChain(text);
  if (chain === undefined)
    throw new DataError({ place: `problem ${problem.key}`, cause: `${JSON.stringify(text)} is no chain`, mend: "pose problems of the task chain" });
  return chain;
}

/** T-CHAIN, with its options. */
export const chain = defineTask({
  name: "chain",
  options: chainOptions,
  draw: (random, options) => {
    const { modulus, min_operations, max_operations } = options;
    const length = min_operations + random.int(max_operations - min_operations + 1);
    const drawn: Chain = {
      start: random.int(modulus),
      operations: Array.from({ length }, () => ({ operator: random.pick(operators), operand: random.int(modulus) })),
    };
    const solution = workedSolution(drawn, { modulus, slips: 0 });
    return { prompt: chainText(drawn), answer: solution.slice(solution.lastIndexOf("#") + 1), solution, tags: { operations: length } };
  },
  verifier: (options) => chainVerifier(options.modulus),
  solution: (problem, random, options) => workedSolution(chainOf(problem), options, random),
  tokenizer: (options) => chainTokenizer(options.modulus),
  // Five tokens a line, `#`, the answer, and the end token.
  maxTokens: (options) => 5 * options.max_operations + 3,
});
