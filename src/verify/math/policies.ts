/** What can be argued about when two answers are compared, as data: sixteen policies, each with its values, its default and its meaning. */
import { z } from "zod";
import { parseOptions } from "../../core/options.js";

const choice = <const V extends readonly [string, ...string[]]>(values: V, preset: V[number], text: string) =>
  z.enum(values as unknown as { [K in V[number]]: K } & Readonly<Record<string, string>>).default(preset as never).describe(text);

/** The sixteen policies, as options of a verifier. */
export const policySchema = z.strictObject({
  "percent-number": choice(["either", "number", "fraction", "strict"], "either", "What a percentage equals beside itself: its number (20 % is 20), its fraction (20 % is 1/5), either, or neither."),
  "unreduced-fraction": choice(["accept", "reject"], "accept", "Whether 2/4 answers 1/2."),
  "base-optional": choice(["accept", "reject"], "accept", "Whether 204 answers 204₅."),
  "set-versus-inequality": choice(["accept", "reject"], "accept", "Whether x < 3 and (−∞, 3) are one answer."),
  "tuple-versus-set": choice(["accept", "reject"], "reject", "Whether (1, 2) and {1, 2} are one answer."),
  "list-order": choice(["any", "same"], "any", "Whether a list of answers may come in another order."),
  rounding: choice(
    ["exact", "full-precision", "reference", "either"],
    "full-precision",
    "When a decimal answers a number it is not: never; with ten significant digits or more, all of them right; within half a unit of the last digit of a reference that is a decimal; with as many digits as it has, at least three, all of them right.",
  ),
  "unit-conflict": choice(["reject", "ignore"], "reject", "Whether 44 km answers 44 cm."),
  "unit-conversion": choice(["accept", "reject"], "accept", "Whether 44 m answers 4400 cm."),
  "currency-ignored": choice(["accept", "reject"], "accept", "Whether a sign or word of a currency may stand on one side only."),
  "require-committed-answer": choice(["yes", "no"], "yes", "Whether an answer must be committed, by a box, a phrase or the like, to count."),
  "unfinished-thinking": choice(["reject", "read"], "reject", "What to do with an answer inside a thinking part that never ends."),
  "assume-positive-variables": choice(["no", "yes"], "no", "Whether expressions are compared at positive values of their variables only, so that √(x²) is x."),
  "expression-versus-equation": choice(["reject", "accept"], "reject", "Whether x² − 1 = 0 answers x² − 1."),
  "vector-orientation": choice(["strict", "free"], "strict", "Whether a row may stand for a column."),
  "unclosed-box": choice(["reject", "read"], "reject", "What to do with a box that has no closing brace."),
});
export type Policies = z.output<typeof policySchema>;
export type PolicyName = keyof Policies;

/** Every policy with its default. */
export const defaultPolicies: Policies = policySchema.parse({});

export const policyNames = Object.keys(policySchema.shape) as readonly PolicyName[];

/** Policies with defaults filled in. Throws ConfigError for a name or a value that is none, with the nearest one. */
export const resolvePolicies = (value: z.input<typeof policySchema> = {}, place = "policies"): Policies => parseOptions(policySchema, value, place);
