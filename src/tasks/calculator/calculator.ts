/**
 * The task `calculator`: a chain of operations modulo a small number, worked by calls of a tool, one operation a turn; then
 * `#` and the answer. The policy need not know arithmetic, but what to ask next, and when to answer. The habit of its worked
 * solutions is to give up: where a product comes next, it mostly answers with what it has.
 */
import { z } from "zod";
import { alphabetTokenizer } from "../../core/alphabet.js";
import type { Problem } from "../../core/problem.js";
import type { Stream } from "../../core/random.js";
import { verifierOf } from "../../verify/simple.js";
import { shortCalls } from "../calls.js";
import { chainOf } from "../chain/chain.js";
import { apply, type Chain, chainText, operators, readChain } from "../chain/notation.js";
import type { Exchange } from "../contract.js";
import { defineTask } from "../define.js";
import { tool, tools } from "../tools.js";

export const calculatorOptions = z
  .strictObject({
    modulus: z.int().min(2).max(1000).default(11).describe("All numbers are from 0 to one below it."),
    min_operations: z.int().min(1).max(64).default(3).describe("Fewest operations of a problem."),
    max_operations: z.int().min(1).max(64).default(5).describe("Most operations of a problem; lengths are drawn evenly."),
    habit: z
      .strictObject({
        operation: z.enum(operators).describe("The operation that is given up at."),
        rate: z.number().min(0).max(1).describe("Share of the turns with that operation next in which it happens, each turn by itself."),
      })
      .optional()
      .describe("Worked solutions that answer too early. Absent: none."),
    slips: z.number().min(0).max(1).default(0).describe("Share of the calls of worked solutions that have a random operand."),
  })
  .refine(({ min_operations, max_operations }) => max_operations >= min_operations, { path: ["max_operations"], error: "give at least min_operations" });
export type CalculatorOptions = z.output<typeof calculatorOptions>;

/** The habit and slips of a start that reinforcement can use. */
export const givesUp = { habit: { operation: "*", rate: 0.65 }, slips: 0.03 } as const;

/** The value after some operations. */
const valueAfter = ({ start, operations }: Chain, count: number, modulus: number): number =>
  operations.slice(0, count).reduce((value, { operator, operand }) => apply(operator, value, operand, modulus), start);

/** A worked solution's next action: the next call, from the result that was read last, or the answer. */
export function nextAction(problem: Problem, turns: readonly Exchange[], random: Stream, { modulus, habit, slips }: CalculatorOptions): string {
  const { start, operations } = chainOf(problem);
  const value = turns.at(-1)?.observation[0]?.content ?? String(start);
  // Three numbers a turn whatever happens, so that solutions with different rates share their chance.
  const draws = Array.from({ length: turns.length + 1 }, () => [random.next(), random.next(), random.int(modulus)] as const);
  const [habitual, slipping, other] = draws[turns.length] as (typeof draws)[number];
  const next = operations[turns.length];
  if (next === undefined || (next.operator === habit?.operation && habitual < habit.rate)) return `#${value}`;
  return `calc(${value}${next.operator}${slipping < slips ? other : next.operand})`;
}

/** T-CHAIN with a calculator, with its options. */
export const calculator = defineTask({
  name: "calculator",
  options: calculatorOptions,
  draw: (random, { modulus, min_operations, max_operations }) => {
    const length = min_operations + random.int(max_operations - min_operations + 1);
    const chain: Chain = {
      start: random.int(modulus),
      operations: Array.from({ length }, () => ({ operator: random.pick(operators), operand: random.int(modulus) })),
    };
    return { prompt: chainText(chain), answer: String(valueAfter(chain, length, modulus)), tags: { operations: length } };
  },
  // A version of its own: the text of a function differs between sources and what is compiled of them.
  verifier: verifierOf("calculator", ({ response, reference, truncated }) => !truncated && response === `#${reference}`, "1"),
  action: nextAction,
  tokenizer: ({ modulus }) => alphabetTokenizer([...Array.from({ length: modulus }, (_, i) => String(i)), ...operators, "calc(", ")", "#", "?"]),
  // Six tokens a call, three for its result, and three for the answer; two calls more than are needed.
  maxTokens: ({ max_operations }) => 9 * (max_operations + 2) + 3,
  environment: ({ modulus, max_operations }) => {
    const calc = tool({
      name: "calc",
      description: `One operation, modulo ${modulus}: 5*3.`,
      run: (text) => {
        const chain = readChain(text);
        if (chain?.operations.length !== 1) throw new Error("give one operation");
        return String(valueAfter(chain, 1, modulus));
      },
    });
    return tools({ tools: [calc], syntax: shortCalls, error: () => "?", limits: { turns: max_operations + 3, turnTokens: 8 } });
  },
});
