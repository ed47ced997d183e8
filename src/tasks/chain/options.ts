/** The options of the task `chain`. What is absent changes no problem and no solution of a task without it. */
import { z } from "zod";
import { formNames } from "./forms.js";
import { operators } from "./notation.js";

const weights = z.array(z.number().min(0)).min(1).max(65);
const someWeight = (list: readonly number[]): boolean => list.some((weight) => weight > 0);
const allZero = { error: "give one weight above 0 at least" };

/** Relative frequencies of the forms of prompts; those not named have none, but `plain` has 1. */
const formWeights = z
  .strictObject(
    Object.fromEntries(
      formNames.map((form) => [
        form,
        z
          .number()
          .min(0)
          .default(form === "plain" ? 1 : 0),
      ]),
    ) as Record<(typeof formNames)[number], z.ZodDefault<z.ZodNumber>>,
  )
  .refine((given) => someWeight(Object.values(given)), allZero);

export const chainOptions = z
  .strictObject({
    modulus: z.int().min(2).max(1000).default(11).describe("All numbers are from 0 to one below it."),
    min_operations: z.int().min(1).max(64).default(3).describe("Fewest operations of a problem."),
    max_operations: z.int().min(1).max(64).default(6).describe("Most operations of a problem; lengths are drawn evenly."),
    lengths: weights.refine(someWeight, allZero).optional().describe("Relative frequencies of the lengths from min_operations on, one each. Absent: even."),
    counts: z
      .strictObject({
        operation: z.enum(operators).describe("The operation that is counted."),
        weights: weights
          .refine(someWeight, allZero)
          .describe("Relative frequencies of 0, 1, 2 and so on of them; a problem has at most as many as it is long."),
      })
      .optional()
      .describe("How often problems have one operation: their difficulty where solutions have a habit with it. Absent: operations are drawn evenly."),
    habit: z
      .strictObject({
        operation: z.enum(operators).describe("The operation worked wrongly."),
        as: z.enum([...operators, "random"]).describe("The operation worked in its place; random: any wrong result."),
        rate: z.number().min(0).max(1).describe("Share of the lines with that operation in which it happens, each line by itself."),
      })
      .optional()
      .describe("A wrong habit in the worked solutions; later lines go on from its result. Absent: none."),
    slips: z.number().min(0).max(1).default(0).describe("Share of the lines of worked solutions whose result is a random wrong number."),
    popular: z
      .strictObject({
        answer: z.int().min(0).max(999).describe("The answer that is written whatever the lines say."),
        below: z.int().min(0).max(1000).describe("Problems whose start value is below this have it at `rate`."),
        rate: z.number().min(0).max(1).describe("Share of their worked solutions that end with it."),
        elsewhere: z.number().min(0).max(1).default(0).describe("The same of all other problems."),
      })
      .optional()
      .describe("An answer that worked solutions often end with, right or wrong. Absent: none."),
    fillers: z.boolean().optional().describe("Worked solutions begin each line with one of six phrases that mean the same. Absent: none."),
    forms: formWeights
      .optional()
      .describe(
        "Relative frequencies of prompts with hints and of choices between two answers, and privileged data for them. Absent: plain prompts, and no symbols for others.",
      ),
    strict: z.boolean().optional().describe("An answer is right only if all of its lines are. Absent: the answer alone decides."),
  })
  .refine((options) => options.min_operations <= options.max_operations, { path: ["max_operations"], message: "give at least min_operations" })
  .refine((options) => (options.lengths?.length ?? 0) <= options.max_operations - options.min_operations + 1, {
    path: ["lengths"],
    error: "give at most one weight for each length",
  })
  .refine((options) => (options.popular?.answer ?? 0) < options.modulus, { path: ["popular", "answer"], error: "give a number below modulus" });
export type ChainOptions = z.output<typeof chainOptions>;

/** The habit of the starter policy: `*` as `+` in 65 % of its lines, 3 % slips. Its worked solutions are right for three in eight problems. */
export const misconception = { habit: { operation: "*", as: "+", rate: 0.65 }, slips: 0.03 } as const satisfies Partial<ChainOptions>;
