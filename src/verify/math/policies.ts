/** What can be argued about when two answers are compared, as data: sixteen policies, each with its values, its default and its meaning. */
import { z } from "zod";
import { parseOptions } from "../../core/options.js";

/** The sixteen policies, as options of a verifier. */
export const policySchema = z.strictObject({
  "percent-number": z
    .enum(["either", "number", "fraction", "strict"])
    .default("either")
    .describe("What a percentage equals beside itself: its number (20 % is 20), its fraction (20 % is 1/5), either, or neither."),
  "unreduced-fraction": z.enum(["accept", "reject"]).default("accept").describe("Whether 2/4 answers 1/2."),
  "base-optional": z.enum(["accept", "reject"]).default("accept").describe("Whether 204 answers 204₅."),
  "set-versus-inequality": z.enum(["accept", "reject"]).default("accept").describe("Whether x < 3 and (−∞, 3) are one answer."),
  "tuple-versus-set": z.enum(["accept", "reject"]).default("reject").describe("Whether (1, 2) and {1, 2} are one answer."),
  "list-order": z.enum(["any", "same"]).default("any").describe("Whether a list of answers may come in another order."),
  rounding: z
    .enum(["exact", "full-precision", "reference", "either"])
    .default("full-precision")
    .describe(
      "When a decimal answers a number it is not: never; with ten significant digits or more, all of them right; within half a unit of the last digit of a reference that is a decimal; with as many digits as it has, at least three, all of them right.",
    ),
  "unit-conflict": z.enum(["reject", "ignore"]).default("reject").describe("Whether 44 km answers 44 cm."),
  "unit-conversion": z.enum(["accept", "reject"]).default("accept").describe("Whether 44 m answers 4400 cm."),
  "currency-ignored": z.enum(["accept", "reject"]).default("accept").describe("Whether a sign or word of a currency may stand on one side only."),
  "require-committed-answer": z.enum(["yes", "no"]).default("yes").describe("Whether an answer must be committed, by a box, a phrase or the like, to count."),
  "unfinished-thinking": z.enum(["reject", "read"]).default("reject").describe("What to do with an answer inside a thinking part that never ends."),
  "assume-positive-variables": z
    .enum(["no", "yes"])
    .default("no")
    .describe("Whether expressions are compared at positive values of their variables only, so that √(x²) is x."),
  "expression-versus-equation": z.enum(["reject", "accept"]).default("reject").describe("Whether x² − 1 = 0 answers x² − 1."),
  "vector-orientation": z.enum(["strict", "free"]).default("strict").describe("Whether a row may stand for a column."),
  "unclosed-box": z.enum(["reject", "read"]).default("reject").describe("What to do with a box that has no closing brace."),
});
export type Policies = z.output<typeof policySchema>;
export type PolicyName = keyof Policies;

/** Every policy with its default. */
export const defaultPolicies: Policies = policySchema.parse({});

export const policyNames = Object.keys(policySchema.shape) as readonly PolicyName[];

/** Policies with defaults filled in. Throws ConfigError for a name or a value that is none, with the nearest one. */
export const resolvePolicies = (value: z.input<typeof policySchema> = {}, place = "policies"): Policies => parseOptions(policySchema, value, place);
